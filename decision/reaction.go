package decision

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
)

// A Reaction is what somebody makes of an answer.
type Reaction struct {
	ResponseID string
	// Person is who reacts, an opaque name. All who have no name are one person.
	Person string
	// Source is how it is known: "user_explicit", "dev", "implicit_undo". Reactions from different sources do not replace
	// each other.
	Source string
	// Target is what of the answer is meant, where a host tells that apart: that it came at all, or what it said. Reactions
	// to different targets do not replace each other.
	Target string
	// Value is how good the answer was, from -1 to 1: 1 and -1 for thumbs, and [Score] for marks. 0 is neither.
	Value float64
	// At is when it came. The zero time means now. The latest reaction holds.
	At time.Time
}

// Score returns the value of a mark from 1 to points, evenly spaced over [-1, 1]: of five marks, 1 is -1, 3 is 0, 5 is 1.
// What is no such mark is NaN, which [Reactions.Feedback] refuses.
func Score(mark, points int) float64 {
	if points < 2 || mark < 1 || mark > points {
		return math.NaN()
	}
	return 2*float64(mark-1)/float64(points-1) - 1
}

// A Credit is what a reaction is worth, and to whom, as plain values to hand on to what learns.
type Credit struct {
	// ID names the reaction: what comes again has the same. Replaces is the ID of the reaction that this one replaces, which
	// is to be taken back; it is empty where there was none.
	ID, Replaces string
	// HeuristicID is the heuristic that earned it. It is empty where the model gave the answer: nobody else is to be blamed
	// or praised for that.
	HeuristicID string
	// Superseded says that a later reaction is known already, so that this one counts for nothing.
	Superseded bool

	EventID, ResponseID, Domain string
	Path                        Path
	Variant                     string
	Person, Source, Target      string
	Value                       float64 // as in the reaction
	Weight                      float64 // how much the reaction counts: 1, times the factors that are configured
	Predicted                   Prediction
	At                          time.Time
}

// Weights are factors of what a reaction counts. The zero value weighs all alike.
type Weights struct {
	// Sources and Paths give factors in [0, 10] by source and by path. What is not named has 1, and 0 is nothing.
	Sources map[string]float64
	Paths   map[Path]float64
	// HalfLife is the time between answer and reaction after which the reaction counts half. 0: time is of no account.
	HalfLife time.Duration
	// Calibration allows for how harsh a person's reactions run.
	Calibration Calibration
}

// Calibration makes the rare reactions of a person count more and the common ones less, so that who always complains, or
// never, says little by it. With p the share of a person's positive reactions, a positive one has the factor ½/p and a
// negative one ½/(1-p), within [½, 2]; so far as these bounds allow, what a person says in praise and in blame weighs the
// same in the long run. p starts at ½, with the weight of Strength reactions.
type Calibration struct {
	// Store keeps how many reactions of each kind a person has had, as evidence on cells of the kind "decision.person".
	// nil: everybody's reactions count alike.
	Store evidence.Store
	// Strength is after how many reactions a person is believed to be as they seem, half-way. 0 means 10.
	Strength float64
}

// ReactionsConfig configures [Reactions].
type ReactionsConfig struct {
	// Traces is where the strategies keep theirs. It must be set.
	Traces TraceStore
	// Weights are factors of what a reaction counts.
	Weights Weights
	// Now is the clock. nil means time.Now.
	Now func() time.Time
}

// Reactions turns reactions to answers into credit for the heuristics that gave them. It holds nothing but its
// configuration.
//
// Reactions is safe for concurrent use by multiple goroutines.
type Reactions struct{ cfg ReactionsConfig }

// NewReactions returns what turns reactions into credit, or all faults of its configuration, joined: each is a
// [*heed.ConfigError].
func NewReactions(cfg ReactionsConfig) (*Reactions, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	return &Reactions{cfg}, nil
}

func (c ReactionsConfig) withDefaults() ReactionsConfig {
	c.Weights.Sources = maps.Clone(c.Weights.Sources)
	c.Weights.Paths = maps.Clone(c.Weights.Paths)
	c.Weights.Calibration.Strength = cmp.Or(c.Weights.Calibration.Strength, 10)
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	return c
}

const maxFactor = 10

func (c ReactionsConfig) validate() error {
	var found faults.List
	found.Check(c.Traces != nil, "Traces", nil, "must be set")
	isFactor := func(x float64) bool { return x >= 0 && x <= maxFactor }
	for source, x := range c.Weights.Sources {
		found.Check(isFactor(x), "Weights.Sources["+strconv.Quote(source)+"]", x, "must be in [0, 10]")
	}
	for path, x := range c.Weights.Paths {
		found.Check(path.Valid() && isFactor(x), "Weights.Paths["+strconv.Quote(string(path))+"]", x, "must be of a path, and in [0, 10]")
	}
	found.Check(c.Weights.HalfLife >= 0, "Weights.HalfLife", c.Weights.HalfLife, "must not be negative")
	s := c.Weights.Calibration.Strength
	found.Check(s > 0 && s <= evidence.MaxWeight, "Weights.Calibration.Strength", s, "must be in (0, 1e6], or 0 for the default")
	return found.Err()
}

// Config returns the configuration in force, defaults filled in.
func (f *Reactions) Config() ReactionsConfig { return f.cfg.withDefaults() }

// Feedback turns a reaction into credit. Of the reactions of one person, source and target to an answer the latest holds;
// the same again gives the same credit.
//
// An answer without a trace, or whose trace is past its time, is [heed.ErrNotFound]; a reaction that is not valid is a
// [*heed.InputError].
func (f *Reactions) Feedback(ctx context.Context, r Reaction) (Credit, error) {
	credit, err := f.feedback(ctx, r)
	if err != nil {
		return Credit{}, fmt.Errorf("decision: feedback: %w", err)
	}
	return credit, nil
}

func (f *Reactions) feedback(ctx context.Context, r Reaction) (Credit, error) {
	if r.At.IsZero() {
		r.At = f.cfg.Now()
	}
	r.At = evidence.InstantOf(r.At).Time()
	if err := f.check(&r); err != nil {
		return Credit{}, err
	}
	mine := Verdict{Person: r.Person, Source: r.Source, Target: r.Target, Value: r.Value, At: r.At}
	t, standing, err := f.cfg.Traces.React(ctx, r.ResponseID, mine)
	if err != nil {
		return Credit{}, err
	}
	credit := Credit{
		ID: verdictID(r.ResponseID, mine), HeuristicID: t.CreditID, EventID: t.EventID, ResponseID: t.ResponseID, Domain: t.Domain,
		Path: t.Path, Variant: t.Variant, Person: r.Person, Source: r.Source, Target: r.Target, Value: r.Value,
		Predicted: Prediction{t.Success, t.Confidence}, At: r.At,
		Superseded: standing.Now.Value != mine.Value || !standing.Now.At.Equal(mine.At),
	}
	if credit.Superseded {
		return credit, nil
	}
	if standing.Before != (Verdict{}) {
		credit.Replaces = verdictID(r.ResponseID, standing.Before)
	}
	credit.Weight, err = f.weigh(ctx, &credit, t.At)
	return credit, err
}

func (f *Reactions) check(r *Reaction) error {
	for _, text := range [...]struct{ field, value string }{
		{"ResponseID", r.ResponseID}, {"Person", r.Person}, {"Source", r.Source}, {"Target", r.Target},
	} {
		if err := evidence.CheckText(text.field, text.value); err != nil {
			return err
		}
	}
	switch now := f.cfg.Now(); {
	case r.ResponseID == "":
		return &heed.InputError{Field: "ResponseID", Reason: "must not be empty"}
	case !(r.Value >= -1 && r.Value <= 1):
		return &heed.InputError{Field: "Value", Reason: fmt.Sprintf("is %v, must be in [-1, 1]", r.Value)}
	case r.At.Unix() < 0 || r.At.Sub(now) > evidence.MaxSkew: // no store of evidence would take it
		return &heed.InputError{Field: "At", Reason: fmt.Sprintf("must be from 1970 on, and not more than %v ahead of the clock", evidence.MaxSkew)}
	}
	return nil
}

// verdictID names a verdict by what it says, so that the same again has the same name.
func verdictID(responseID string, v Verdict) string {
	var text []byte
	for _, part := range []string{responseID, v.Person, v.Source, v.Target} {
		text = binary.LittleEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	text = binary.LittleEndian.AppendUint64(text, math.Float64bits(v.Value+0)) // -0 is 0
	text = binary.LittleEndian.AppendUint64(text, uint64(evidence.InstantOf(v.At)))
	sum := sha256.Sum256(text)
	return "verdict:" + hex.EncodeToString(sum[:])
}

// weigh returns what a reaction to an answer of that time counts.
func (f *Reactions) weigh(ctx context.Context, c *Credit, answered time.Time) (float64, error) {
	weight := 1.
	if x, ok := f.cfg.Weights.Sources[c.Source]; ok {
		weight *= x
	}
	if x, ok := f.cfg.Weights.Paths[c.Path]; ok {
		weight *= x
	}
	if half := f.cfg.Weights.HalfLife; half > 0 {
		weight *= math.Exp2(-max(c.At.Sub(answered), 0).Hours() / half.Hours())
	}
	factor, err := f.cfg.Weights.Calibration.factor(ctx, c)
	return weight * factor, err
}

// factor counts the reaction and returns its factor, by what is known of the person beside it.
func (c *Calibration) factor(ctx context.Context, credit *Credit) (float64, error) {
	if c.Store == nil || credit.Value == 0 {
		return 1, nil
	}
	cell := evidence.Cell{Kind: "decision.person", Item: credit.Person, Name: "positive"}
	o := evidence.Observation{ID: credit.ID, Cell: cell, Source: credit.Person, Weight: 1, At: credit.At}
	if credit.Value > 0 {
		o.Reward = 1
	}
	batch := evidence.Batch{
		Policies:     map[string]evidence.Policy{cell.Kind: {ByOrigin: true}}, // so that a person can be expunged at any time
		Observations: []evidence.Observation{o},
	}
	if credit.Replaces != "" {
		batch.Retract = []string{credit.Replaces}
	}
	_, err := c.Store.Commit(ctx, batch)
	if errors.Is(err, heed.ErrNotFound) || errors.Is(err, evidence.ErrForgotten) { // what it replaces was not counted, or is past
		batch.Retract = nil
		_, err = c.Store.Commit(ctx, batch)
	}
	if err != nil {
		return 0, err
	}
	parts, err := c.Store.Read(ctx, nil, cell)
	if err != nil {
		return 0, err
	}
	sums := evidence.Caps{}.Pool(parts, evidence.InstantOf(credit.At))
	sums.Reward, sums.Mass = max(sums.Reward-o.Reward, 0), max(sums.Mass-1, 0) // without itself, so that it is the same when it comes again
	p := sums.Posterior(evidence.Beta{Alpha: c.Strength / 2, Beta: c.Strength / 2}).Mean()
	if credit.Value < 0 {
		p = 1 - p
	}
	return min(max(0.5/p, 0.5), 2), nil
}
