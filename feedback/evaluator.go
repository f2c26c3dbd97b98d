package feedback

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heedhq/heed/internal/host"
)

// Evaluator says what to make of a feedback. It is asked about corrections whose text can be compared, and neither about
// approvals, which are [Positive], nor where what is known contradicts the feedback, which is [Ambiguous].
//
// Evaluate is called by one goroutine at a time of each [Service], without a lock that others wait for, and must return when
// the context is done. Its error leaves the feedback unclassified, to be evaluated again; so does an answer that is not
// valid, and a panic.
type Evaluator interface {
	Evaluate(ctx context.Context, c Case) (Verdict, error)
}

// A Classification is what became of a feedback.
type Classification string

// The classifications.
const (
	GeneralizableHigh Classification = "generalizable_high" // enough agree for a rule
	GeneralizableLow  Classification = "generalizable_low"  // some agree; it waits for a batch
	EdgeCase          Classification = "edge_case"          // it stands alone
	Ambiguous         Classification = "ambiguous"          // a person has to say: Service.Resolve
	Positive          Classification = "positive"           // an approval without changes
	Archived          Classification = "archived"           // a person said that it is to be ignored
)

// Valid reports whether it is one of those above.
func (c Classification) Valid() bool {
	return c.Generalizable() || c == EdgeCase || c == Ambiguous || c == Positive || c == Archived
}

// Generalizable reports whether a rule may be made of it.
func (c Classification) Generalizable() bool { return c == GeneralizableHigh || c == GeneralizableLow }

// An Evaluation is what is known of a feedback once it was evaluated.
type Evaluation struct {
	Class      Classification `json:"classification,omitempty"` // "" until it was evaluated
	Confidence float64        `json:"confidence,omitempty"`     // in [0, 1]
	Rationale  string         `json:"rationale,omitempty"`
	Similar    []string       `json:"similar_feedback_ids,omitempty"` // what it was found to be like, the most alike first
	// Cluster names the feedback that it stands with: the id of the first of them. Link is how alike it was to the most
	// alike of them when it came, in [0, 1], and 1 for the first.
	Cluster string  `json:"cluster,omitempty"`
	Link    float64 `json:"link,omitempty"`
	Action  Action  `json:"proposed_action,omitempty"` // what should come of it; "" nothing
	// Resolution is why a person decided it, and Resolver who, where one did.
	Resolution string `json:"resolution,omitempty"`
	Resolver   string `json:"resolver,omitempty"`
}

// A Case is a feedback with all that an [Evaluator] may want to know of it.
type Case struct {
	Feedback Feedback
	// Candidates are earlier corrections of the same agent, the most alike first.
	Candidates []Match
	// Cluster are the candidates, and others alike to them, that the feedback stands with by the similarity.
	Cluster []Record
	// Support is that of the cluster with the feedback in it.
	Support Support
	// High says what it takes to be GeneralizableHigh.
	High Thresholds
	// Ceiling is the most that a confidence may be, as the similarity knows no better: see [Traits].
	Ceiling float64
}

// A Match is a feedback that was compared with another.
type Match struct {
	Record
	Score float64 // how alike the texts are, in [0, 1]
	// Opposed is how the texts contradict each other, and "" if they do not: "polarity", "number", "antonym", "order", "name" or
	// "word".
	Opposed string
}

// Thresholds say what it takes for a cluster to be [GeneralizableHigh].
type Thresholds struct {
	Occurrences int  // corrections. 0 means 3
	Reviewers   int  // distinct ones. 0 means 2
	Both        bool // both are needed, where otherwise either is enough
}

// Met reports whether the support is enough.
func (t Thresholds) Met(s Support) bool {
	occurrences, reviewers := s.Occurrences >= t.Occurrences, s.Reviewers >= t.Reviewers
	if t.Both {
		return occurrences && reviewers
	}
	return occurrences || reviewers
}

// A Support is how many stand behind a claim.
type Support struct {
	Occurrences int     // corrections
	Reviewers   int     // distinct people who made them
	Strength    float64 // the links of the corrections, added up
}

// Confidence returns how far the support is to be trusted: 1 − 2^(−0.8·(strength + reviewers − 1)), and 0 where there is
// none. Each correction counts by how alike it is, and each reviewer after the first like one correction more. It is in
// [0, 1) and never falls when a correction or a reviewer is added; three corrections by two reviewers that say the same make
// 0.89.
func (s Support) Confidence() float64 {
	return 1 - math.Exp2(-0.8*max(s.Strength+float64(s.Reviewers)-1, 0))
}

// A Verdict is an evaluator's answer.
type Verdict struct {
	// Class is GeneralizableHigh, GeneralizableLow, EdgeCase or Ambiguous. A GeneralizableHigh without the support that
	// Case.High asks for is taken as GeneralizableLow, and a generalizable one that stands alone as EdgeCase.
	Class      Classification
	Confidence float64 // in [0, 1]; it is cut at Case.Ceiling
	Rationale  string  // why, in at most [MaxComment] characters
	// Similar are the ids of the candidates that say the same, where the evaluator knows better than the similarity. nil
	// leaves the case's cluster. Candidates that contradict the feedback are not accepted.
	Similar []string
	// Action is what should come of it. "" means [CreateRule] where it is generalizable, and [DocumentOnly] where it is an
	// edge case.
	Action Action
}

func (v *Verdict) validate(c *Case) error {
	switch {
	case !v.Class.Generalizable() && v.Class != EdgeCase && v.Class != Ambiguous:
		return invalid("Verdict.Class", "must be generalizable, an edge case or ambiguous")
	case !(v.Confidence >= 0 && v.Confidence <= 1):
		return invalid("Verdict.Confidence", "must be in [0, 1]")
	case v.Action != "" && !v.Action.Valid():
		return invalid("Verdict.Action", "is none of the actions")
	}
	for i, id := range v.Similar {
		field := fmt.Sprintf("Verdict.Similar[%d]", i)
		at := slices.IndexFunc(c.Candidates, func(m Match) bool { return m.ID == id })
		if at < 0 || c.Candidates[at].Opposed != "" {
			return invalid(field, "must be a candidate that does not contradict the feedback")
		}
		if slices.Index(v.Similar, id) < i {
			return invalid(field, "is there twice")
		}
	}
	return checkProse("Verdict.Rationale", v.Rationale, MaxComment)
}

// Counting is the evaluator that needs no model: it counts corrections and reviewers. Enough of either make
// [GeneralizableHigh], two corrections [GeneralizableLow], one an [EdgeCase].
type Counting struct{}

var _ Evaluator = Counting{}

// Evaluate implements [Evaluator].
func (Counting) Evaluate(_ context.Context, c Case) (Verdict, error) {
	s := c.Support
	v := Verdict{
		Class:      EdgeCase,
		Confidence: s.Confidence(),
		Rationale:  fmt.Sprintf("alike corrections: %d, by distinct reviewers: %d", s.Occurrences, s.Reviewers),
	}
	switch {
	case c.High.Met(s):
		v.Class = GeneralizableHigh
		if s.Reviewers == 1 {
			v.Rationale += "; a single reviewer"
		}
	case s.Occurrences > 1:
		v.Class = GeneralizableLow
	}
	return v, nil
}

// ask asks the evaluator, and survives what it does.
func ask(ctx context.Context, e Evaluator, c Case) (v Verdict, err error) {
	given := c
	given.Candidates, given.Cluster = nil, nil
	for i := range c.Candidates {
		m := c.Candidates[i]
		m.Record = m.Record.Clone()
		given.Candidates = append(given.Candidates, m)
	}
	for i := range c.Cluster {
		given.Cluster = append(given.Cluster, c.Cluster[i].Clone())
	}
	given.Feedback = c.Feedback.clone()
	err = host.Call("the evaluator", func() error {
		v, err = e.Evaluate(ctx, given)
		return err
	})
	if err != nil {
		return Verdict{}, err
	}
	return v, v.validate(&c)
}
