// Package scores brings scores of evaluators, and of the people who look at traces, to a
// [loop.Agent].
//
//	meanings := map[string]scores.Meaning{"helpful": {}}
//	taker, err := scores.New(ctx, scores.Config{Agent: agent, Meanings: meanings})
//	_, err = taker.Take(ctx, scores.Grade{ID: "s1", Answer: trace, Name: "helpful", Value: &value})
//
// A [Taker] takes scores from anywhere, such as from a list of an evaluation service. The scores of
// an answer become one outcome of it, which is their mean. A correction becomes a correction of the
// answer. Each counts once, however often and to however many processes it is delivered.
package scores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// A Grade is a score that somebody gave an answer, or a correction of it, or both.
type Grade struct {
	// of the grade, in its service. A later grade of the same ID takes its place. "" means Name
	ID     string
	Answer string // the id of the answer; "" for something other than an answer of heed's
	Name   string // what was rated, such as "helpful": see [Config].Meanings
	Value  *float64
	Label  string // such as "pass", where the range has Labels
	// Correction is the text that the answer should have been, and Comment why. Reviewer is the
	// author of both.
	Correction, Comment, Reviewer string
	// when it was made, or changed last. The zero time means now
	At time.Time
}

// A Meaning maps the values of a score to what they are worth. The zero Meaning belongs to a score
// from 0 to 1 whose best value is 1.
type Meaning struct {
	// Worst and Best are the values that are worth -1 and 1. Those between are worth what lies
	// between. Worst may be the greater one, for example for toxicity. Both 0 mean 0 and 1.
	Worst, Best float64
	// Labels are what labels are worth, in [-1, 1].
	Labels map[string]float64
	// Weight is the weight of the score relative to the other scores of an answer, above 0 and at
	// most 1e6. 0 means 1.
	Weight float64
}

// Config configures a [Taker].
type Config struct {
	Agent *loop.Agent // must be set
	// Meanings are the scores that count, by name. Others are ignored, because heed cannot decide
	// which of their values are good. With no Meanings, only corrections are taken.
	Meanings map[string]Meaning
	// Source is who states how an answer turned out: see [loop.Outcome]. "" means "scores". Takers of
	// one source and store share their records.
	Source string
	// Now is the clock. nil means time.Now.
	Now func() time.Time
}

// Taken is what became of a grade.
type Taken int

// These are the fates of a grade.
const (
	Ignored  Taken = iota // its name is not in Meanings, and it has no correction
	Unknown               // no answer has its id, or the answer is no longer kept
	Repeated              // it counted before
	Learned               // it counts
)

func (t Taken) String() string {
	return [...]string{"ignored", "unknown", "repeated", "learned"}[min(max(t, Ignored), Learned)]
}

// A Taker takes grades of an agent's answers. It is safe for concurrent use by multiple goroutines,
// and any number of processes may take grades of the same answers.
type Taker struct{ cfg Config }

// rated is what is known of an answer.
type rated struct {
	ID     string    `json:"id"` // of the source and the answer
	At     time.Time `json:"at"` // of the outcome
	Grades []counted `json:"grades"`
}

// counted is a grade that counts.
type counted struct {
	ID     string    `json:"id"`
	Worth  float64   `json:"worth"`
	Weight float64   `json:"weight"`
	At     time.Time `json:"at"`
}

const (
	month = 30 * 24 * time.Hour
	// maxGrades is how many grades of an answer count. The oldest goes first.
	maxGrades  = 100
	maxSummary = 500   // characters of a reviewer's sentence
	maxComment = 2_000 // characters of the comment
)

var ratedAnswers = store.View[rated]{
	Kind:  store.Kind{Name: "scores.answer", Limits: store.Limits{For: month, Most: 100_000}},
	Place: func(r rated) (string, time.Time, []string) { return r.ID, r.At, nil },
}

// New returns a taker; or all faults of its configuration, joined, each a [*heed.ConfigError].
func New(ctx context.Context, cfg Config) (*Taker, error) {
	cfg.Source = cmp.Or(cfg.Source, "scores")
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // the default clock
	}
	ranges := make(map[string]Meaning, len(cfg.Meanings))
	var found valid.Faults
	found.Check(cfg.Agent != nil, "Agent", nil, "must be set")
	found.Check(evidence.CheckText("Source", cfg.Source) == nil, "Source", cfg.Source,
		"must be text that a store can keep")
	for name, r := range cfg.Meanings {
		field := fmt.Sprintf("Meanings[%q]", name)
		if r.Worst == 0 && r.Best == 0 {
			r.Best = 1
		}
		r.Weight = cmp.Or(r.Weight, 1)
		finite := !math.IsInf(r.Best-r.Worst, 0) && !math.IsNaN(r.Best-r.Worst)
		found.Check(name != "", field, name, "must have a name")
		found.Check(finite && r.Worst != r.Best, field+".Best", r.Best,
			"must be finite, and another value than Worst")
		found.Check(r.Weight > 0 && r.Weight <= 1e6, field+".Weight", r.Weight, "must be in [0, 1e6]")
		for label, worth := range r.Labels {
			found.Check(worth >= -1 && worth <= 1, fmt.Sprintf("%s.Labels[%q]", field, label), worth,
				"must be in [-1, 1]")
		}
		ranges[name] = r
	}
	cfg.Meanings = ranges
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("scores: %w", err)
	}
	if err := cfg.Agent.Store().Declare(ctx, ratedAnswers.Kind); err != nil {
		return nil, fmt.Errorf("scores: %w", err)
	}
	return &Taker{cfg}, nil
}

// Take takes a grade. The grades of an answer are one [loop.Outcome]: the mean of what they are
// worth, by their weights. A grade that was taken before, of the same ID and of no later time, has
// no effect. A correction becomes a [loop.Correction], and its first wording counts. An agent
// without package feedback takes no corrections.
//
// Bad input is a [*heed.InputError] that names the field. If the store's history no longer has the
// outcome that the grade changes, the old outcome goes on counting, and the error is also
// [evidence.ErrForgotten]. After any other error, take the grade again.
func (t *Taker) Take(ctx context.Context, r Grade) (Taken, error) {
	taken, err := t.take(ctx, r)
	if err != nil {
		err = fmt.Errorf("scores: take: %w", err)
	}
	return taken, err
}

func (t *Taker) take(ctx context.Context, r Grade) (Taken, error) {
	of, scored := t.cfg.Meanings[r.Name]
	scored = scored && (r.Value != nil || r.Label != "")
	corrects := r.Correction != "" && t.cfg.Agent.Feedback() != nil
	if r.Answer == "" || !scored && !corrects {
		return Ignored, nil
	}
	for _, text := range []struct{ field, value string }{{"ID", r.ID}, {"Answer", r.Answer},
		{"Reviewer", r.Reviewer}} {
		if err := evidence.CheckText(text.field, text.value); err != nil {
			return Ignored, err
		}
	}
	taken := Ignored
	if scored {
		worth, err := of.worth(&r)
		if err != nil {
			return Ignored, err
		}
		if taken, err = t.score(ctx, &r, worth, of.Weight); err != nil {
			return taken, err
		}
	}
	if corrects {
		corrected, err := t.correct(ctx, &r)
		return max(taken, corrected), err
	}
	return taken, nil
}

// worth returns what a grade is worth, in [-1, 1].
func (of *Meaning) worth(r *Grade) (float64, error) {
	if worth, known := of.Labels[r.Label]; known {
		return worth, nil
	}
	if r.Value == nil {
		return 0, &heed.InputError{Field: "Label",
			Reason: fmt.Sprintf("%q is not one of the Labels of %q", r.Label, r.Name)}
	}
	low, high := min(of.Worst, of.Best), max(of.Worst, of.Best)
	if !(*r.Value >= low && *r.Value <= high) {
		return 0, &heed.InputError{Field: "Value",
			Reason: fmt.Sprintf("%v of %q must be in [%v, %v]", *r.Value, r.Name, low, high)}
	}
	return 2*(*r.Value-of.Worst)/(of.Best-of.Worst) - 1, nil
}

// score counts a grade, in one step with the outcome of the answer. Each outcome is later than the
// outcome before, because the agent keeps the latest.
func (t *Taker) score(
	ctx context.Context, r *Grade, worth, weight float64,
) (taken Taken, err error) {
	now := t.cfg.Now()
	at := r.At
	if at.IsZero() || at.After(now) {
		at = now
	}
	grade := counted{
		ID: store.IDOf(cmp.Or(r.ID, r.Name)), Worth: worth, Weight: weight,
		At: at.UTC().Truncate(time.Microsecond),
	}
	err = store.Do(ctx, t.cfg.Agent.Store(), func(tx *store.Tx) error {
		kept, err := ratedAnswers.In(tx, store.IDOf(t.cfg.Source, r.Answer))
		if err != nil {
			return err
		}
		if taken = Repeated; !kept.Value.add(grade, r.At.IsZero()) {
			return nil
		}
		taken, kept.Value.ID = Learned, kept.ID
		ratedAnswers.Put(tx, kept.Value, kept.Revision)
		mean := kept.Value.mean()
		_, err = t.cfg.Agent.OutcomeIn(tx, r.Answer, loop.Outcome{
			Reward: &mean, Source: t.cfg.Source, At: kept.Value.At,
		})
		return err
	})
	switch {
	case errors.Is(err, loop.ErrNoAnswer):
		return Unknown, nil
	case errors.Is(err, evidence.ErrForgotten), errors.Is(err, heed.ErrNotFound):
		fault := &heed.InputError{
			Field: "At", Reason: "is too late: the outcome before can't be replaced",
		}
		return Ignored, fmt.Errorf("%w: %w", fault, evidence.ErrForgotten)
	case err != nil:
		return Ignored, err
	}
	return taken, nil
}

// add adds a grade, or puts it in the place of an earlier one, and reports whether that changes
// anything. timeless reports whether the grade has no time.
func (r *rated) add(n counted, timeless bool) bool {
	r.Grades = slices.Clone(r.Grades)
	i := slices.IndexFunc(r.Grades, func(o counted) bool { return o.ID == n.ID })
	switch {
	case i >= 0 && (!n.At.After(r.Grades[i].At) || timeless && n.Worth == r.Grades[i].Worth):
		return false
	case i >= 0:
		r.Grades[i] = n
	case len(r.Grades) >= maxGrades:
		oldest := 0
		for j := range r.Grades {
			if r.Grades[j].At.Before(r.Grades[oldest].At) {
				oldest = j
			}
		}
		r.Grades[oldest] = n
	default:
		r.Grades = append(r.Grades, n)
	}
	if next := r.At.Add(time.Microsecond); n.At.Before(next) {
		n.At = next
	}
	r.At = n.At
	return true
}

// mean returns the mean of the grades by their weights.
func (r *rated) mean() float64 {
	var sum, weights float64
	for _, n := range r.Grades {
		sum += n.Weight * n.Worth
		weights += n.Weight
	}
	return min(max(sum/weights, -1), 1)
}

// correct reports a correction to the agent. The comment, if there is one, is the reviewer's
// sentence, and then the corrected text is added to it.
func (t *Taker) correct(ctx context.Context, r *Grade) (Taken, error) {
	c := loop.Correction{
		ID:       "scores:" + store.IDOf(t.cfg.Source, r.Answer, cmp.Or(r.ID, r.Name)),
		Reviewer: cmp.Or(r.Reviewer, t.cfg.Source), Text: short(r.Correction, maxSummary),
	}
	switch {
	case strings.TrimSpace(r.Comment) != "":
		c.Text, c.Comment = short(r.Comment, maxSummary), short(r.Correction, maxComment)
	case c.Text != r.Correction:
		c.Comment = short(r.Correction, maxComment)
	}
	_, unknown := t.cfg.Agent.Feedback().Feedback(ctx, c.ID)
	_, err := t.cfg.Agent.Correct(ctx, r.Answer, c)
	switch {
	case errors.Is(err, loop.ErrNoAnswer):
		return Unknown, nil
	// it came before, perhaps in other words
	case err == nil && unknown == nil, errors.Is(err, heed.ErrConflict):
		return Repeated, nil
	case err != nil:
		return Ignored, ofGrade(err, c.Text == short(r.Comment, maxSummary))
	}
	return Learned, nil
}

// ofGrade returns an error about a correction as one about the field of the grade. summed reports
// that the sentence is the comment.
func ofGrade(err error, summed bool) error {
	var input *heed.InputError
	if !errors.As(err, &input) {
		return err
	}
	field := input.Field[strings.LastIndexByte(input.Field, '.')+1:]
	switch {
	case field == "Summary" && !summed, field == "Comment":
		field = "Correction"
	case field == "Summary":
		field = "Comment"
	}
	return &heed.InputError{Field: field, Reason: input.Reason}
}

// short returns the beginning of a text.
func short(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
