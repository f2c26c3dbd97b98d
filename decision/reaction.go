package decision

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/store"
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
	// Commit hands the credit to what learns, so that the reaction and what it changes are one commit. nil: the reaction is
	// recorded alone.
	Commit Commit `json:"-"`
}

// Commit commits a batch that records a credit, together with what the credit changes elsewhere: in one Commit of the store
// that the batch is for. Methods of other packages that take batches to commit along do that.
//
// It is called anew where it returns [heed.ErrConflict], as somebody else was quicker, and for a reaction that comes again,
// whose batch changes nothing. So what it adds must count once by an id of its own. If it returns an error, nothing may
// have been committed, or all.
type Commit func(ctx context.Context, credit Credit, b store.Batch) error

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
	// Calibration makes the rare reactions of a person count more and the common ones less, so that a person who always
	// complains, or never, says little by it. With p the share of a person's positive reactions, a positive one has the
	// factor ½/p and a negative one ½/(1-p), within [½, 2]; so far as these bounds allow, what a person says in praise and in
	// blame weighs the same in the long run. p starts at ½, with the weight of Calibration reactions: 10 is a good number.
	// 0: everybody's reactions count alike, and are not counted by person.
	Calibration float64
}

// ReactionsConfig configures [Reactions].
type ReactionsConfig struct {
	// Store is where the strategies keep their traces. Reactions are kept beside them, as records of the kind
	// "decision.verdict", for as long. It must be set.
	Store store.Store
	// Weights are factors of what a reaction counts.
	Weights Weights
	// Now is the clock. nil means time.Now.
	Now func() time.Time
}

// Reactions turns reactions to answers into credit for the heuristics that gave them. It holds nothing but its
// configuration. Make one with [NewReactions].
//
// Reactions is safe for concurrent use by multiple goroutines.
type Reactions struct{ cfg ReactionsConfig }

// NewReactions returns what turns reactions into credit, or all faults of its configuration, joined: each is a
// [*heed.ConfigError]. The store keeps the weights, and its audit log tells when they change.
func NewReactions(ctx context.Context, cfg ReactionsConfig) (*Reactions, error) {
	cfg = cfg.withDefaults()
	err := cfg.validate()
	if err == nil {
		err = cfg.open(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	return &Reactions{cfg}, nil
}

// open declares what is kept, and keeps the settings.
func (c *ReactionsConfig) open(ctx context.Context) error {
	if err := declare(ctx, c.Store); err != nil {
		return err
	}
	w := &c.Weights
	return settings.Open(ctx, c.Store, c.Now(), settings.Component{Name: "decision/reactions", Fields: []settings.Field{
		{Name: "Sources", Value: &w.Sources, Set: w.Sources != nil}, {Name: "Paths", Value: &w.Paths, Set: w.Paths != nil},
		{Name: "HalfLife", Value: &w.HalfLife, Set: w.HalfLife != 0}, {Name: "Calibration", Value: &w.Calibration, Set: w.Calibration != 0},
	}})
}

func (c ReactionsConfig) withDefaults() ReactionsConfig {
	c.Weights.Sources = maps.Clone(c.Weights.Sources)
	c.Weights.Paths = maps.Clone(c.Weights.Paths)
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	return c
}

const maxFactor = 10

func (c ReactionsConfig) validate() error {
	var found faults.List
	found.Check(c.Store != nil, "Store", nil, "must be set")
	isFactor := func(x float64) bool { return x >= 0 && x <= maxFactor }
	for source, x := range c.Weights.Sources {
		found.Check(isFactor(x), "Weights.Sources["+strconv.Quote(source)+"]", x, "must be in [0, 10]")
	}
	for path, x := range c.Weights.Paths {
		found.Check(path.Valid() && isFactor(x), "Weights.Paths["+strconv.Quote(string(path))+"]", x, "must be of a path, and in [0, 10]")
	}
	found.Check(c.Weights.HalfLife >= 0, "Weights.HalfLife", c.Weights.HalfLife, "must not be negative")
	strength := c.Weights.Calibration
	found.Check(strength >= 0 && strength <= evidence.MaxWeight, "Weights.Calibration", strength, "must be in [0, 1e6]")
	return found.Err()
}

// Config returns the configuration in force, defaults filled in.
func (f *Reactions) Config() ReactionsConfig { return f.cfg.withDefaults() }

// Feedback turns a reaction into credit. Of the reactions of one person, source and target to an answer the latest holds;
// the same again gives the same credit.
//
// An answer without a trace, or whose trace is no longer kept, is [heed.ErrNotFound]. A reaction that is not valid is a
// [*heed.InputError]. One to an answer that has reactions of 1,000 persons, sources and targets is [evidence.ErrFull].
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
	var credit Credit
	err := patiently(ctx, func() (err error) {
		credit, err = f.react(ctx, &r)
		return err
	})
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
