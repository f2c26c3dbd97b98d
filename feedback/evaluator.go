package feedback

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
)

// A Classification is what became of a feedback: one of the constants, or "positive" for an
// approval without changes, or "archived" for what is private or what a person chose to ignore.
// Approvals with a text may become an example.
type Classification string

// The classifications.
const (
	// GeneralizableHigh: three corrections, or two reviewers, agree. That is enough for a rule.
	GeneralizableHigh Classification = "generalizable_high"
	// GeneralizableLow: some agree. It waits for [Service.Flush], which proposes a rule as well.
	GeneralizableLow Classification = "generalizable_low"
	// EdgeCase: it is the only one of its kind so far.
	EdgeCase Classification = "edge_case"
	// Ambiguous: it contradicts another one, or lacks a text. A person decides: [Service.Resolve].
	Ambiguous Classification = "ambiguous"
)

const (
	positive Classification = "positive"
	archived Classification = "archived"
)

// unclassified is the value in the store, and in a [Listing], of a class that is not set.
const unclassified Classification = "unclassified"

// generalizable reports whether a rule may be made of it.
func (c Classification) generalizable() bool {
	return c == GeneralizableHigh || c == GeneralizableLow
}

// An Evaluation is what is known of a feedback once it was evaluated. It is also the answer of a
// [Config].Evaluator, which sets Class, Confidence, Rationale, Similar, Contradicts and Action;
// heed ignores the rest of an answer.
//
// The Class of an answer is GeneralizableHigh, GeneralizableLow, EdgeCase or Ambiguous. Heed treats
// GeneralizableHigh as GeneralizableLow unless three corrections or two reviewers agree, and a
// generalizable feedback that is alone in its cluster as EdgeCase. Confidence 0 means what the
// number of corrections and reviewers makes. If corrections in other words are in the cluster that
// it did not name, a confidence is cut. Rationale has at most 10,000 characters. Similar lists the
// candidates that mean the same, if the verdict differs from the similarity's, also of those that
// seem to contradict the feedback; nil keeps the similarity's. Contradicts lists the candidates,
// and the feedback of Case.Opposing, that the correction contradicts; nil keeps what the words
// suggest, except for ids in Similar, and an empty list means that it contradicts no other. Action
// "" means "CREATE_RULE" if it is generalizable, and "DOCUMENT_ONLY" if it is an edge case.
type Evaluation struct {
	// Class is what became of it, and "" before it is evaluated.
	Class Classification `json:"classification,omitempty"`
	// Confidence is how sure it is that the cluster is worth a rule, in [0, 1].
	Confidence float64 `json:"confidence,omitempty"`
	// Rationale is why, for people. It may be a model's, and name people.
	Rationale string `json:"rationale,omitempty"`
	// Similar is what it was found to be like, the most alike first.
	Similar []string `json:"similar_feedback_ids,omitempty"`
	// Cluster is the id of the first feedback of its cluster. Link is how alike it was to the most
	// alike member when it joined, in [0, 1], and 1 for the first.
	Cluster string  `json:"cluster,omitempty"`
	Link    float64 `json:"link,omitempty"`
	// Worded reports that it has other words than the rest of its cluster, and that
	// [Config].Evaluator did not name it. It may mean something else, because [Config].Similarity
	// ranks opposites and exceptions high as well.
	Worded bool `json:"worded,omitempty"`
	// Contradicts are the ids of earlier feedback that it contradicts, also if it counts
	// nevertheless.
	Contradicts []string `json:"contradicts,omitempty"`
	// Dispute describes how an [Ambiguous] feedback seems to contradict the first of these.
	Dispute string `json:"dispute,omitempty"`
	// Near are the ids of earlier corrections that may mean the same, or the opposite, but were kept
	// apart because words and a similarity cannot decide it: at most five, the most alike first. Read
	// them side by side.
	Near []string `json:"near_feedback_ids,omitempty"`
	// Unanswered is why it has no Class yet, if Config.Evaluator gave no answer that can be used.
	Unanswered Unanswered `json:"unanswered,omitzero"`
	// Apart lists the ids of feedback that it is never clustered with, because a person took it out
	// of its cluster: see [Service.Split].
	Apart []string `json:"apart,omitempty"`
	// Action is what should come of it, as in [Draft], and "" if no action is due.
	Action string `json:"proposed_action,omitempty"`
	// Resolver is the person who resolved it, if one did, and Resolution the reason.
	Resolution string `json:"resolution,omitempty"`
	Resolver   string `json:"resolver,omitempty"`
	// Joiner is the person who joined it with the others of its cluster, if one did: see
	// [Service.Join].
	Joiner string `json:"joiner,omitempty"`
	// Proposal is the id of the pending proposal that it supports, set by [Service.Evaluate] and
	// [Service.Resolve]. It is not stored.
	Proposal string `json:"-"`
}

// Unanswered is why an evaluator's answer could not be used. [Service.EvaluateAll] asks again from
// Next on: a minute after the first failure, and after twice as long each time, up to a day.
type Unanswered struct {
	// Reason is the error, on one line.
	Reason string `json:"reason"`
	// Times is how often the evaluator was asked in vain.
	Times int `json:"times"`
	// Next is when it is asked again. [Service.Evaluate] asks at once.
	Next time.Time `json:"next"`
}

// A Case is a feedback with the other feedback that a [Config].Evaluator may compare it with. It is
// a copy, so an evaluator may change it.
type Case struct {
	// Feedback is the correction to classify.
	Feedback Feedback
	// Candidates are earlier corrections of the same agent that have a text, the most alike first:
	// those among its latest 1,000 decisions.
	Candidates []Match
	// Opposing is the earlier feedback that the feedback seems to contradict, by its words. It is a
	// question: see Evaluation.Contradicts. Some of it is among the Candidates, too.
	Opposing []Match
}

// byEvaluator is the opposition that [Config].Evaluator found.
const byEvaluator = "found by the host's evaluator"

// A Match is a feedback that was compared with another.
type Match struct {
	// Feedback is the earlier one of the two.
	Feedback
	// Score is how alike the texts are, in [0, 1], by [Config].Similarity.
	Score float64
	// Opposed describes how the texts seem to contradict each other, and is "" if they do not. All
	// but what the evaluator found are guesses from words. With other numbers, names and words both
	// texts may hold.
	Opposed string

	released bool // it was ambiguous, and counts from now on
	same     bool // it has the same text, or the evaluator found that it means the same
	reworded bool // the comparison cannot decide whether they mean the same
	cleared  bool // the evaluator found no contradiction
}

// These values are the Adaptive Feedback Learning design's.
const (
	// enoughCorrections, or corrections by enoughReviewers, make a cluster [GeneralizableHigh].
	enoughCorrections, enoughReviewers = 3, 2
	// expedite is the confidence from which on such a cluster is proposed at once, and not with the
	// next batch. Corrections in other words ([Evaluation].Worded) raise a confidence to nine tenths
	// of it at most.
	expedite = 0.7
)

// A support is how many people and corrections support a claim.
type support struct {
	// occurrences counts the corrections, and reviewers the distinct people who made them.
	occurrences, reviewers int
	// strength is the sum of the links of the corrections: see Evaluation.Link. It is less than
	// occurrences if they are only alike.
	strength float64
}

// confidence returns 1 − 2^(−0.8·(strength + reviewers − 1)), and 0 without support. Each
// correction counts by how alike it is, and each reviewer after the first counts like one more
// correction. It is in [0, 1), and never falls when a correction or a reviewer is added. For
// example, three corrections by two reviewers that mean the same make 0.89.
func (s support) confidence() float64 {
	return 1 - math.Exp2(-0.8*max(s.strength+float64(s.reviewers)-1, 0))
}

// alone is the confidence of one correction.
var alone = support{reviewers: 1, strength: 1}.confidence()

// enough reports whether the support makes a cluster [GeneralizableHigh].
func (s support) enough() bool {
	return s.occurrences >= enoughCorrections || s.reviewers >= enoughReviewers
}

// validate reports an answer that heed cannot use: a class that only heed gives, or an id that the
// case does not have. A model may invent ids.
func (v *Evaluation) validate(c *Case) error {
	switch {
	case !v.Class.generalizable() && v.Class != EdgeCase && v.Class != Ambiguous:
		return valid.Input("Evaluation.Class", "must be generalizable, an edge case or ambiguous")
	case !(v.Confidence >= 0 && v.Confidence <= 1):
		return valid.Input("Evaluation.Confidence", "must be in [0, 1]")
	case v.Action != "" && !slices.Contains(actions, v.Action):
		return valid.Input("Evaluation.Action", "is not one of the actions")
	}
	for _, list := range []struct {
		field string
		ids   []string
		of    []Match
	}{
		{"Similar", v.Similar, c.Candidates},
		{"Contradicts", v.Contradicts, slices.Concat(c.Candidates, c.Opposing)},
	} {
		for i, id := range list.ids {
			field := fmt.Sprintf("Evaluation.%s[%d]", list.field, i)
			switch {
			case !slices.ContainsFunc(list.of, func(m Match) bool { return m.ID == id }):
				return valid.Input(field, "must be the id of a candidate")
			case slices.Index(list.ids, id) < i:
				return valid.Input(field, "is there twice")
			case list.field == "Contradicts" && slices.Contains(v.Similar, id):
				return valid.Input(field, "is in Similar, too")
			}
		}
	}
	return checkProse("Evaluation.Rationale", v.Rationale, maxComment)
}

// counted is the verdict where no [Config].Evaluator is set. It counts corrections and reviewers.
func (s support) counted() Evaluation {
	v := Evaluation{Class: EdgeCase, Rationale: fmt.Sprintf(
		"alike corrections: %d, by distinct reviewers: %d", s.occurrences, s.reviewers)}
	switch {
	case s.enough():
		v.Class = GeneralizableHigh
		if s.reviewers == 1 {
			v.Rationale += "; a single reviewer"
		}
	case s.occurrences > 1:
		v.Class = GeneralizableLow
	}
	return v
}

// ask asks the evaluator about a copy of the case, and checks its answer.
func ask(ctx context.Context, e func(context.Context, Case) (Evaluation, error),
	c Case) (v Evaluation, err error) {
	given := c
	given.Feedback = c.Feedback.at(c.Feedback.Revision)
	given.Candidates, given.Opposing = copyMatches(c.Candidates), copyMatches(c.Opposing)
	err = host.Call("the evaluator", func() error {
		v, err = e(ctx, given)
		return err
	})
	if err == nil {
		err = v.validate(&c)
	}
	if err != nil && ctx.Err() == nil {
		err = &unansweredError{err}
	}
	return v, err
}

// An unansweredError is of an evaluator that gave no answer that can be used.
type unansweredError struct{ error }

func (e *unansweredError) Unwrap() error { return e.error }

// copyMatches returns matches that the evaluator may change, because records of the store are
// shared.
func copyMatches(matches []Match) []Match {
	matches = slices.Clone(matches)
	for i := range matches {
		m := &matches[i]
		m.Feedback = m.Feedback.at(m.Revision)
	}
	return matches
}

// copies returns independent copies of these values.
func copies[T kept[T]](values []T) []T {
	values = slices.Clone(values)
	for i, value := range values {
		values[i] = value.at(value.revision())
	}
	return values
}
