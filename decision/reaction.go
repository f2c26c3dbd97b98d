package decision

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Reaction is what somebody makes of an answer.
type Reaction struct {
	ResponseID string
	// Person is who reacts. All without a name are one person.
	Person string
	// Channel is how the reaction is known: "user_explicit", "implicit_undo". Reactions on different channels do not replace
	// each other.
	Channel string
	// Session is where the reaction came; may be empty.
	Session string
	// Target is the part of the answer that is meant. Reactions to different targets do not replace each other.
	Target heed.Target
	// Value is how good the answer was, in [-1, 1]: 1 and -1 for thumbs, and [Score] for marks. 0 withdraws what the person said
	// before.
	Value float64
	// Weight multiplies the weight of the credit, in [0, 1e6]. 0 means 1.
	Weight float64
	// At is when the reaction came. The zero time means now. The latest reaction holds.
	At time.Time
	// Commit commits the batch that records the credit, together with the changes that the credit causes elsewhere: in one
	// Commit of the store, by a method of another package that takes batches to commit along. nil records the reaction alone.
	//
	// Commit is called again when it returns [heed.ErrConflict], and for a repeated reaction, whose batch changes nothing. So
	// its own changes need ids by which they count once. If it returns an error, either all was committed or nothing.
	Commit func(ctx context.Context, credit Credit, b store.Batch) error `json:"-"`
}

// Score returns the value of a mark from 1 to points, evenly spaced over [-1, 1]: of five marks, 1 is -1, 3 is 0 and 5 is 1.
// Any other mark is NaN, which [Reactions.Feedback] refuses.
func Score(mark, points int) float64 {
	if points < 2 || mark < 1 || mark > points {
		return math.NaN()
	}
	return 2*float64(mark-1)/float64(points-1) - 1
}

// A Credit is a [Reaction] as it counts. Its Verdict goes to learning.Module.Judge as it is.
type Credit struct {
	// The verdict names the heuristic that earned the credit. Its weight is the reaction's, times the factors of
	// [ReactionsConfig]. If one of them is 0, its value is 0: the reaction counts for nothing.
	heed.Verdict
	// ID names the reaction. A repeated reaction has the same ID. Replaces is the ID of the reaction that this one replaces,
	// whose effect has to be taken back; it is empty if there is none.
	ID, Replaces string
	// Superseded says that a later reaction is known already. This one counts for nothing.
	Superseded bool

	ResponseID, Domain string
	Path               Path
	Variant            string
	Prediction         *Prediction // as in the result
}

// ReactionsConfig configures [Reactions].
type ReactionsConfig struct {
	// Store has the traces of the strategies. Reactions are stored beside them, as records of the kind "decision.verdict", for
	// as long. It must be set.
	Store store.Store
	// Channels and Paths are factors of a reaction's weight, in [0, 10], by channel and by path. The default is 1.
	Channels map[string]float64
	Paths    map[Path]float64
	// HalfLife is the time between answer and reaction after which the weight halves. 0: the time does not matter.
	HalfLife time.Duration
	// Calibration makes a person's rare reactions weigh more than the common ones, so that a person who always complains, or
	// never, says little by it. If p is the share of a person's positive reactions, a positive reaction has the factor ½/p and
	// a negative one ½/(1-p), within [½, 2]. At first p is ½, as if the person had given Calibration reactions before, half of
	// them positive; 10 is a good value. 0: all reactions weigh alike, and heed keeps no counts.
	Calibration float64
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Observer is told of each credit that a heuristic earned ([heed.Counted]) and of repeated reactions ([heed.Duplicate]).
	Observer heed.Observer
}

// Reactions turns reactions to answers into credit for the heuristics that gave them. Make one with [NewReactions]. It is safe
// for concurrent use by multiple goroutines.
type Reactions struct {
	cfg   ReactionsConfig
	watch *watch.Watch
}

// NewReactions returns a Reactions, or all faults of its configuration, joined; each is a [*heed.ConfigError]. The store keeps
// the factors, and its audit log tells when they change.
func NewReactions(ctx context.Context, cfg ReactionsConfig) (*Reactions, error) {
	cfg.Channels, cfg.Paths = maps.Clone(cfg.Channels), maps.Clone(cfg.Paths)
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // the default clock
	}
	err := cfg.validate()
	if err == nil {
		err = cfg.open(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	return &Reactions{cfg, watch.New(cfg.Observer, "decision/reactions", cfg.Now)}, nil
}

// open declares the kinds of records and keeps the settings.
func (c *ReactionsConfig) open(ctx context.Context) error {
	if err := declare(ctx, c.Store); err != nil {
		return err
	}
	return settings.Open(ctx, c.Store, c.Now(), settings.Component{Name: "decision/reactions", Fields: []settings.Field{
		{Name: "Channels", Value: &c.Channels, Set: c.Channels != nil}, {Name: "Paths", Value: &c.Paths, Set: c.Paths != nil},
		{Name: "HalfLife", Value: &c.HalfLife, Set: c.HalfLife != 0}, {Name: "Calibration", Value: &c.Calibration, Set: c.Calibration != 0},
	}})
}

func (c *ReactionsConfig) validate() error {
	var found faults.List
	found.Check(c.Store != nil, "Store", nil, "must be set")
	isFactor := func(x float64) bool { return x >= 0 && x <= 10 }
	for channel, x := range c.Channels {
		found.Check(isFactor(x), "Channels["+strconv.Quote(channel)+"]", x, "must be in [0, 10]")
	}
	for path, x := range c.Paths {
		answers := path == Heuristic || path == Model
		found.Check(answers && isFactor(x), "Paths["+strconv.Quote(string(path))+"]", x, "must be of heuristic or llm, and in [0, 10]")
	}
	found.Check(c.HalfLife >= 0, "HalfLife", c.HalfLife, "must not be negative")
	found.Check(c.Calibration >= 0 && c.Calibration <= evidence.MaxWeight, "Calibration", c.Calibration, "must be in [0, 1e6]")
	return found.Err()
}

// Feedback turns a reaction into credit. Of the reactions of one person, channel and target to an answer the latest holds. A
// repeated reaction gives the same credit.
//
// It returns [heed.ErrNotFound] if the answer has no trace, or no longer; a [*heed.InputError] for an invalid reaction; and
// [evidence.ErrFull] if the answer has reactions of 1,000 persons, channels and targets.
func (f *Reactions) Feedback(ctx context.Context, r Reaction) (Credit, error) {
	credit, repeated, err := f.feedback(ctx, &r)
	switch {
	case err != nil:
		return Credit{}, fmt.Errorf("decision: feedback: %w", err)
	case f.watch == nil || credit.Superseded:
	case repeated:
		f.watch.Tell(ctx, heed.Duplicate{Component: f.watch.Name(), At: f.cfg.Now(), What: "reaction", ID: credit.ID})
	case credit.HeuristicID != "":
		f.watch.Tell(ctx, heed.Counted{
			Component: f.watch.Name(), At: f.cfg.Now(), Subject: credit.HeuristicID, Channel: credit.Channel,
			Reward: (credit.Value + 1) / 2, Weight: credit.Weight,
		})
	}
	return credit, nil
}

func (f *Reactions) feedback(ctx context.Context, r *Reaction) (credit Credit, repeated bool, err error) {
	if r.At.IsZero() {
		r.At = f.cfg.Now()
	}
	r.At = evidence.InstantOf(r.At).Time()
	if err := f.check(r); err != nil {
		return Credit{}, false, err
	}
	err = patiently(ctx, func() (err error) {
		credit, repeated, err = f.react(ctx, r)
		return err
	})
	return credit, repeated, err
}

func (f *Reactions) check(r *Reaction) error {
	for _, text := range [...]struct{ field, value string }{
		{"ResponseID", r.ResponseID}, {"Person", r.Person}, {"Session", r.Session}, {"Channel", r.Channel},
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
	case !r.Target.Valid():
		return &heed.InputError{Field: "Target", Reason: "must be rule, response or empty"}
	case !(r.Weight >= 0 && r.Weight <= evidence.MaxWeight):
		return &heed.InputError{Field: "Weight", Reason: fmt.Sprintf("is %v, must be in [0, 1e6]", r.Weight)}
	case r.At.Unix() < 0 || r.At.Sub(now) > evidence.MaxSkew: // stores refuse it
		return &heed.InputError{Field: "At", Reason: fmt.Sprintf("must be from 1970 on, and not more than %v ahead of the clock", evidence.MaxSkew)}
	}
	return nil
}

// A said is what the store has of an answer, of the person's last verdict on it, and of the person.
type said struct {
	trace   store.Row[traceRow]
	verdict store.Row[verdictRow]
	person  store.Row[personRow]
}

// react reads what holds, and commits the reaction if it changes that.
func (f *Reactions) react(ctx context.Context, r *Reaction) (credit Credit, repeated bool, err error) {
	mine := verdictRow{ResponseID: r.ResponseID, Person: r.Person, Channel: r.Channel, Target: r.Target, Now: verdict{r.Value, r.Weight, r.At}, Session: r.Session}
	s, err := f.read(ctx, &mine)
	if err != nil {
		return Credit{}, false, err
	}
	last, known := &s.verdict.Value, s.verdict.Revision > 0
	credit = creditOf(&s.trace.Value, &mine)
	var b store.Batch
	switch {
	case known && mine.Now.At.Before(last.Now.At):
		credit.Superseded = true
		return credit, false, nil
	case known && mine.Now.same(last.Now):
		repeated = true
		mine = *last
		b.Expect = []store.Precondition{verdictKind.Expect(mine.id(), s.verdict.Revision)}
	case !known && s.trace.Value.Verdicts >= maxVerdicts:
		return Credit{}, false, evidence.ErrFull
	default:
		b.Records = f.replace(&s, &mine)
	}
	if known {
		b.Expect = append(b.Expect, traceKind.Expect(r.ResponseID, s.trace.Revision))
	} else {
		s.trace.Value.Verdicts++
		b.Records = append(b.Records, traceKind.Record(s.trace.Value, s.trace.Revision))
	}
	if mine.Before != nil {
		credit.Replaces = mine.credit(*mine.Before)
	}
	if credit.Weight = min(mine.Weight, evidence.MaxWeight); credit.Weight == 0 {
		credit.Value = 0
	}
	return credit, repeated, f.commit(ctx, r, credit, b)
}

func (f *Reactions) read(ctx context.Context, mine *verdictRow) (s said, err error) {
	personID, _, _ := personKind.Place(personRow{Person: mine.Person})
	refs := []store.Ref{traceKind.Ref(mine.ResponseID), verdictKind.Ref(mine.id()), personKind.Ref(personID)}
	var read store.Snapshot
	if err := f.cfg.Store.Read(ctx, &read, nil, refs); err != nil {
		return s, err
	}
	var err2, err3 error
	s.trace, err = traceKind.Of(read.Records[0])
	s.verdict, err2 = verdictKind.Of(read.Records[1])
	s.person, err3 = personKind.Of(read.Records[2])
	if err = cmp.Or(err, err2, err3); err == nil && s.trace.Revision == 0 {
		err = heed.ErrNotFound
	}
	return s, err
}

func (v verdict) same(w verdict) bool {
	return v.Value == w.Value && cmp.Or(v.Weight, 1) == cmp.Or(w.Weight, 1) && v.At.Equal(w.At)
}

// creditOf returns the credit of a verdict, without its weight and what it replaces.
func creditOf(t *traceRow, v *verdictRow) Credit {
	return Credit{
		Verdict: heed.Verdict{
			HeuristicID: t.CreditID, EventID: t.EventID, Person: v.Person, Session: v.Session, Channel: v.Channel,
			Target: v.Target, Value: v.Now.Value, At: v.Now.At,
		},
		ID: v.credit(v.Now), ResponseID: t.ResponseID, Domain: t.Domain, Path: t.Path, Variant: t.Variant, Prediction: t.Prediction,
	}
}

// credit returns the ID of a verdict's credit. A repeated verdict has the same ID.
func (v *verdictRow) credit(said verdict) string {
	value := strconv.FormatFloat(said.Value+0, 'g', -1, 64) // -0 is 0
	at := strconv.FormatInt(int64(evidence.InstantOf(said.At)), 10)
	weight := strconv.FormatFloat(cmp.Or(said.Weight, 1), 'g', -1, 64)
	return "verdict:" + store.IDOf(v.ResponseID, v.Person, v.Channel, string(v.Target), value, weight, at)
}

// replace lets a verdict replace the person's last one, and weighs it. It returns the records to write.
func (f *Reactions) replace(s *said, mine *verdictRow) []store.Record {
	if s.verdict.Revision > 0 {
		before := s.verdict.Value.Now
		mine.Before = &before
	}
	mine.Answered = s.trace.Value.At
	mine.Weight = f.weight(&s.trace.Value, mine)
	written := make([]store.Record, 0, 3)
	calibrated := f.cfg.Calibration > 0
	if p := s.person.Value; calibrated || s.verdict.Value.Counted {
		if s.verdict.Value.Counted {
			p.add(s.verdict.Value.Now, -1)
		}
		if calibrated && mine.Now.Value != 0 {
			mine.Weight *= p.factor(mine.Now, f.cfg.Calibration)
			mine.Counted = true
			p.add(mine.Now, 1)
		}
		p.Person = mine.Person
		if mine.Now.At.After(p.At) {
			p.At = mine.Now.At
		}
		written = append(written, personKind.Record(p, s.person.Revision))
	}
	return append(written, verdictKind.Record(*mine, s.verdict.Revision))
}

// weight returns the weight of a verdict before calibration.
func (f *Reactions) weight(t *traceRow, v *verdictRow) float64 {
	weight := cmp.Or(v.Now.Weight, 1)
	if x, ok := f.cfg.Channels[v.Channel]; ok {
		weight *= x
	}
	if x, ok := f.cfg.Paths[t.Path]; ok {
		weight *= x
	}
	if half := f.cfg.HalfLife; half > 0 {
		weight *= math.Exp2(-max(v.Now.At.Sub(t.At), 0).Hours() / half.Hours())
	}
	return weight
}

// add counts a verdict, or takes it back.
func (p *personRow) add(v verdict, n int) {
	switch {
	case v.Value > 0:
		p.Positive = max(p.Positive+n, 0)
	case v.Value < 0:
		p.Negative = max(p.Negative+n, 0)
	}
}

// factor returns the calibration of a verdict, by the person's other verdicts.
func (p *personRow) factor(v verdict, strength float64) float64 {
	share := (float64(p.Positive) + strength/2) / (float64(p.Positive+p.Negative) + strength)
	if v.Value < 0 {
		share = 1 - share
	}
	return min(max(0.5/share, 0.5), 2)
}

// commit commits the changes of a reaction, and the host's with them.
func (f *Reactions) commit(ctx context.Context, r *Reaction, credit Credit, b store.Batch) error {
	if r.Commit != nil {
		return host.Call("Reaction.Commit", func() error { return r.Commit(ctx, credit, b) })
	}
	if len(b.Records) == 0 {
		return nil
	}
	_, err := f.cfg.Store.Commit(ctx, b)
	return err
}
