package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A Recorder learns from outcomes which patterns to follow and which to avoid. Make one with [New]. It holds nothing that
// its store does not: another recorder over the same store goes on where it stopped. It starts no goroutine and needs no
// closing. It is a [heed.Sweeper].
//
// A Recorder is safe for concurrent use by multiple goroutines.
type Recorder struct {
	cfg      Config
	kinds    kinds
	policies map[string]evidence.Policy // by kind of cell
	rules    []compiled
	gates    gating
	turn     chan struct{} // holds who tries again

	mu    sync.Mutex
	swept time.Time // when Sweep last did its work
}

var _ heed.Sweeper = (*Recorder)(nil)

// New opens the recorder of this name in the store. All faults of the configuration are returned, joined: each is a
// [*heed.ConfigError].
//
// The store keeps the settings of a recorder. A half-life other than the stored one is a [*heed.SettingsError]: keep the
// stored one, call [Rebuild], or reset what was learned. One that is not set is the stored one. Every other setting applies
// to what is stored already: the store takes over what cfg says, and the change is audited.
func New(ctx context.Context, cfg Config) (*Recorder, error) {
	r, err := open(ctx, cfg, (*Config).settle)
	if err != nil {
		return nil, fmt.Errorf("patterns: %w", err)
	}
	return r, nil
}

// Open returns the recorder of cfg.Name with the settings that its host has left in the store, for a tool beside the host. It
// writes nothing. Of cfg, only Store, Name, the clock and the functions count. Without such a recorder Open returns
// [heed.ErrNotFound].
func Open(ctx context.Context, cfg Config) (*Recorder, error) {
	r, err := open(ctx, cfg, (*Config).adopt)
	if err != nil {
		return nil, fmt.Errorf("patterns: %w", err)
	}
	return r, nil
}

// open makes a recorder of a configuration whose settings agree with those in the store.
func open(ctx context.Context, cfg Config, agree func(*Config, context.Context) error) (*Recorder, error) {
	c := cfg.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	kinds := kindsOf(c.Name)
	if err := c.Store.Declare(ctx, kinds.patterns.Kind, kinds.transitions.Kind, kinds.entries.Kind, store.Audit); err != nil {
		return nil, err
	}
	if err := agree(&cfg, ctx); err != nil {
		return nil, err
	}
	r := &Recorder{cfg: cfg, kinds: kinds, policies: cfg.policies(), rules: compile(cfg.Rules), gates: gates, turn: make(chan struct{}, 1)}
	if cfg.Literal {
		r.gates = literalGates
	}
	return r, nil
}

// policies says how cells are kept, by their kind.
func (c *Config) policies() map[string]evidence.Policy {
	k := kindsOf(c.Name)
	return map[string]evidence.Policy{
		k.patternCells: {HalfLife: c.Maturity.HalfLife}, k.criterionCells: {HalfLife: c.Criteria.HalfLife},
	}
}

// Config returns the configuration in force, defaults filled in.
func (r *Recorder) Config() Config { return r.cfg.withDefaults() }

// Recorded is what came of an outcome.
type Recorded struct {
	Score Score
	// Duplicate is whether its evidence had been counted before. The score is then that of the first delivery.
	Duplicate bool
	// Transitions are what became of the patterns that were credited, in the order in which the outcome named them.
	Transitions []Transition
	// Inversions are those of the transitions that made an anti-pattern.
	Inversions []InvertedPattern
	// Strikes are the failures on end that the task has now.
	Strikes Strikes
}

// An InvertedPattern is a pattern that was inverted, with the anti-pattern that was made of it.
type InvertedPattern struct {
	Original Pattern
	Anti     Pattern
	Reason   string
}

// Score scores an outcome, as [Recorder.Record] does, and records nothing.
func (r *Recorder) Score(ctx context.Context, o Outcome) (Score, error) {
	if err := r.complete(ctx, &o); err != nil {
		return Score{}, fmt.Errorf("patterns: score: %w", err)
	}
	return r.cfg.Scoring.Score(o), nil
}

// complete fills in what an outcome leaves open, and validates it.
func (r *Recorder) complete(ctx context.Context, o *Outcome) error {
	now := r.cfg.Now()
	if o.At.IsZero() {
		o.At = now
	}
	if err := o.validate(now); err != nil {
		return err
	}
	if o.Errors == 0 && r.cfg.Errors != nil {
		stats, err := r.cfg.Errors.Stats(ctx, o.Task)
		if err != nil {
			return err
		}
		o.Errors = stats.Total
	}
	*o = o.clone()
	o.At = stored(o.At)
	o.Description, o.FailureDetail = tame(o.Description, MaxDetail), tame(o.FailureDetail, MaxDetail)
	return nil
}

// Record takes an outcome and does all that follows from it: it is scored and kept; the criteria that it names get
// feedback, as strong as the outcome was clear; the patterns that it names get an observation, a success where it was
// helpful, a failure where it was harmful, and none where it was neutral; and each of those patterns becomes what its
// evidence then says. All of that is one commit.
//
// An outcome counts once, by its id. One that is recorded again changes nothing. So record again what returned an error.
func (r *Recorder) Record(ctx context.Context, o Outcome) (Recorded, error) {
	err := r.complete(ctx, &o)
	var recorded Recorded
	if err == nil {
		err = r.retry(ctx, func() (err error) {
			recorded, err = r.record(ctx, &o)
			return err
		})
	}
	if err != nil {
		return Recorded{}, fmt.Errorf("patterns: record: %w", err)
	}
	return recorded, nil
}

func (r *Recorder) record(ctx context.Context, o *Outcome) (Recorded, error) {
	named := o.credited()
	found, err := r.read(ctx, named, o.ID)
	if err != nil {
		return Recorded{}, err
	}
	if found.entry.Revision > 0 {
		return r.duplicate(ctx, &found.entry.Value)
	}
	recent, err := r.recent(ctx, o.Task)
	if err != nil {
		return Recorded{}, err
	}
	d := r.draft(found)
	entry := Entry{Outcome: *o, Score: r.cfg.Scoring.Score(*o), RecordedAt: stored(d.now)}
	recorded := Recorded{Score: entry.Score, Strikes: r.strikes(o.Task, append([]Entry{entry.clone()}, recent...))}
	if err := d.credit(&entry, named, &recorded); err != nil {
		return Recorded{}, err
	}
	d.batch.Records = append(d.batch.Records, r.kinds.entries.Record(entry, store.Once))
	receipt, err := d.commit(ctx)
	if err != nil || !receipt.Duplicate {
		return recorded, err
	}
	first, err := r.kinds.entries.Get(ctx, r.cfg.Store, o.ID) // another caller came first
	if errors.Is(err, heed.ErrNotFound) {                     // or the entry is no longer kept
		first.Value, err = entry, nil
	}
	if err != nil {
		return Recorded{}, err
	}
	return r.duplicate(ctx, &first.Value)
}

// duplicate returns what comes of an outcome that was recorded before: nothing.
func (r *Recorder) duplicate(ctx context.Context, first *Entry) (Recorded, error) {
	if first.Review != nil {
		return Recorded{}, inputError("ID", "is that of a review")
	}
	recent, err := r.recent(ctx, first.Outcome.Task)
	return Recorded{Score: first.Score, Duplicate: true, Strikes: r.strikes(first.Outcome.Task, recent)}, err
}

// credit adds the evidence of an outcome, and settles the patterns that it names.
func (d *draft) credit(e *Entry, named []PatternID, recorded *Recorded) error {
	o, class := &e.Outcome, e.Score.Class
	d.batch.ID = d.r.cfg.Name + ":outcome:" + o.ID
	one := evidence.Observation{ID: d.batch.ID, Source: o.Source, Session: o.Task, At: o.At}
	for i, name := range o.Criteria {
		if slices.Contains(o.Criteria[:i], name) {
			continue
		}
		one.Cell = d.r.criterionCell(name)
		one.Reward, one.Weight = rewardOf(class), d.r.strength(e.Score)
		d.batch.Observations = append(d.batch.Observations, one)
	}
	credited, err := d.resolve(named)
	if err != nil {
		return err
	}
	if class == Neutral && d.r.cfg.Literal {
		class = Harmful
	}
	one.Reward, one.Weight = rewardOf(class), 1
	for _, id := range credited {
		if class != Neutral {
			d.observe(id, one)
		}
		s, err := d.settle(id, "", func(p *Pattern, t *evidence.Tally) (string, error) {
			p.addExample(o.Task)
			return d.r.unarchive(p, t)
		})
		if err != nil {
			return err
		}
		recorded.add(s)
	}
	return nil
}

func (r *Recorded) add(s settled) {
	if s.transition == nil {
		return
	}
	r.Transitions = append(r.Transitions, *s.transition)
	if s.transition.To == Inverted && s.transition.From != Inverted {
		r.Inversions = append(r.Inversions, InvertedPattern{s.pattern.clone(), s.anti.clone(), s.anti.Reason})
	}
}

// resolve returns the patterns whose evidence outcomes of these are: those that an anti-pattern was made of in its place,
// each once. One that is not known is added.
func (d *draft) resolve(ids []PatternID) ([]PatternID, error) {
	resolved := make([]PatternID, 0, len(ids))
	for _, id := range ids {
		p, known := d.pattern(id)
		if known {
			id = p.root()
			_, known = d.pattern(id)
		}
		if !known {
			fresh, err := d.r.fresh(Pattern{ID: id, Kind: kindOf(id), Content: string(id)})
			if err != nil {
				return nil, err
			}
			d.put(fresh)
		}
		if !slices.Contains(resolved, id) {
			resolved = append(resolved, id)
		}
	}
	return resolved, nil
}

// strength returns how much evidence on a criterion an outcome is: the more, the clearer it was either way.
func (r *Recorder) strength(s Score) float64 {
	switch {
	case s.Class == Neutral:
		return 0
	case s.Class == Harmful && !r.cfg.Literal:
		return float64(100-s.Value) / 100
	default:
		return literalStrength(s)
	}
}

func rewardOf(c Class) float64 {
	switch c {
	case Helpful:
		return 1
	case Harmful:
		return 0
	default:
		return 0.5
	}
}

func (r *Recorder) patternCell(id PatternID) evidence.Cell {
	return evidence.Cell{Kind: r.kinds.patternCells, Item: string(id)}
}

func (r *Recorder) criterionCell(name string) evidence.Cell {
	return evidence.Cell{Kind: r.kinds.criterionCells, Item: name}
}

func kindOf(id PatternID) Kind {
	if strings.HasPrefix(string(id), AntiPrefix) {
		return Anti
	}
	return Positive
}

// checkKind keeps ids apart from those of the anti-patterns that inversions make.
func (p *Pattern) checkKind() error {
	switch {
	case p.Kind != Positive && p.Kind != Anti:
		return inputError("Kind", "must be pattern or anti_pattern")
	case p.Kind == Positive && kindOf(p.ID) == Anti:
		return inputError("ID", fmt.Sprintf("begins with %q, as only those of anti-patterns do", AntiPrefix))
	case len(p.ID)+len(AntiPrefix) > MaxID:
		return inputError("ID", fmt.Sprintf("must leave room for %q", AntiPrefix))
	}
	return nil
}
