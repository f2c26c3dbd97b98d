package patterns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Recorder learns from outcomes which patterns to follow and which to avoid. Make one with [New].
// All of its state is in its store, so another recorder over the same store goes on where it
// stopped. It does not start goroutines or need to be closed. It is a [heed.Sweeper], and safe for
// concurrent use by multiple goroutines.
type Recorder struct {
	// cfg has its defaults, and does not change.
	cfg        Config
	kinds      kinds
	policies   map[string]evidence.Policy // by kind of cell
	approaches []compiled
	watch      *watch.Watch
	past       past
	swept      atomic.Pointer[time.Time] // when Sweep last did its work
	// refused has the last outcomes for which the store had no room, because a run of a step that
	// fails can't show the next one why. If one is forgotten, its next attempt costs one commit more.
	refused *text.Memo[bool]
}

// New opens the recorder of this name in the store. It returns all faults of the configuration,
// joined. Each is a [*heed.ConfigError].
//
// The store keeps the settings of a recorder. A half-life that is not set is the stored one. A
// half-life other than the stored one is a [*heed.SettingsError]: keep the stored one, call
// [Rebuild], or reset what was learned. Every other setting applies to all that is stored. The
// store takes it over, and the audit has the change.
func New(ctx context.Context, cfg Config) (*Recorder, error) {
	r, err := open(ctx, cfg, func(st store.Store, now time.Time, own settings.Component) error {
		return settings.Open(ctx, st, now, own)
	})
	return r, failed("new", err)
}

// Open returns the recorder of cfg.Name with the settings that its host left in the store, for a
// tool next to the host. It does not write to the store. Of cfg, only Store, Name, the clock and
// the functions count. Without such a recorder Open returns [heed.ErrNotFound].
func Open(ctx context.Context, cfg Config) (*Recorder, error) {
	r, err := open(ctx, cfg, func(st store.Store, _ time.Time, own settings.Component) error {
		return settings.Adopt(ctx, st, own)
	})
	return r, failed("open", err)
}

// keptOutcomes is how many observations of a cell a store keeps by default. A person is forgotten
// by them.
const keptOutcomes = 10_000

// open makes a recorder of a configuration. agree makes its settings agree with those in the store,
// and may change them, so they are validated before and after. Kinds are declared first, because
// agree may write to the audit.
func open(
	ctx context.Context, cfg Config,
	agree func(st store.Store, now time.Time, own settings.Component) error,
) (*Recorder, error) {
	c := cfg.withDefaults()
	approaches, err := compile(c.Approaches)
	if err = errors.Join(c.validate(), err); err != nil {
		return nil, err
	}
	k := kindsOf(c.Name)
	cells := []store.Kind{{Name: k.patternCells, History: keptOutcomes},
		{Name: k.criterionCells, History: keptOutcomes}}
	if err := c.Store.Declare(ctx, append(cells, k.patterns.Kind, k.transitions.Kind, k.entries.Kind,
		k.errors.Kind, store.Audit)...); err != nil {
		return nil, err
	}
	cfg.Name, cfg.Approaches = c.Name, c.Approaches
	if err := agree(c.Store, c.Now(), cfg.component()); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Recorder{
		cfg: cfg, kinds: k, refused: text.NewMemo[bool](100), approaches: approaches,
		watch: watch.New(cfg.Observer, componentOf+cfg.Name, cfg.Now),
		policies: map[string]evidence.Policy{
			k.patternCells:   {HalfLife: cfg.HalfLife, ByOrigin: true},
			k.criterionCells: {HalfLife: quarter, ByOrigin: true},
		},
	}, nil
}

// Steps returns what only package loop adds to its own steps, and what it reads for them. Other
// hosts have [Recorder.RecordIn].
func (r *Recorder) Steps() steps { return steps{r} }

// steps are the methods of a recorder for package loop.
type steps struct{ *Recorder }

// Recorded is what came of an outcome or a rating.
type Recorded struct {
	// Score is the outcome's score. 0 for a rating.
	Score Score
	// Duplicate reports that the id was recorded before, and was not counted again. The score is then
	// the score of the first delivery.
	Duplicate bool
	// Transitions are what became of the patterns that were credited, in the order in which they were
	// named.
	Transitions []Transition
	// Inversions are the anti-patterns of the patterns that were inverted. Reason is why, and Twin is
	// the pattern.
	Inversions []Pattern
}

// complete fills in what an outcome leaves open. If the host counted no errors, the errors that
// were recorded are counted.
func (r *Recorder) complete(tx *store.Tx, o *Outcome) error {
	*o = o.clone()
	if o.Errors == 0 {
		known, err := r.Steps().ErrorsIn(tx, HistoryQuery{About: o.Task})
		if err != nil {
			return err
		}
		o.Errors = len(known.Errors)
	}
	o.At = stored(o.At)
	o.Description, o.FailureDetail = tame(o.Description), tame(o.FailureDetail)
	return nil
}

// Record takes an outcome and does everything that follows from it, in one commit. It scores and
// keeps the outcome. Each criterion that the outcome names gets evidence, as strong as the outcome
// was clear. Each pattern that it names gets an observation: a success if the outcome was helpful,
// a failure if it was harmful or the task failed, no observation if the task succeeded with a
// neutral score. Then each of these patterns gets the state that follows from its evidence.
//
// An outcome counts once, by its id. If it is recorded again, the call has no effect, so record it
// again after an error.
//
// If the store refuses another pattern, patterns that are not known are left out. An outcome that
// names only patterns that are not known is refused with [evidence.ErrFull].
func (r *Recorder) Record(ctx context.Context, o Outcome) (Recorded, error) {
	var recorded *Recorded
	err := store.Do(ctx, r.cfg.Store, func(tx *store.Tx) (err error) {
		if recorded, err = r.recordIn(tx, o); err == nil && !recorded.Duplicate {
			tx.Add(store.Batch{ID: r.cfg.Name + ":outcome:" + o.ID})
		}
		return err
	})
	if err == nil && recorded.Duplicate { // perhaps because another caller came first
		var first store.Row[Entry]
		first, err = r.kinds.entries.In(store.Reading(ctx, r.cfg.Store), o.ID)
		if first.Revision > 0 {
			recorded.Score = first.Value.Score
		}
	}
	if err != nil {
		return Recorded{}, failed("record", err)
	}
	return *recorded, nil
}

// outcomeWants names what [Recorder.RecordIn] reads.
func (r *Recorder) outcomeWants(o Outcome) store.Wants {
	w := r.wants(o.credited())
	for _, name := range o.Criteria {
		w.Cells = append(w.Cells, r.criterionCell(name))
	}
	w.Add(HistoryQuery{ID: o.ID}.wants(r.kinds.entries.Name, ""))
	if o.Errors == 0 {
		w.Add(r.Steps().ErrorsWants(HistoryQuery{About: o.Task}))
	}
	return w
}

// RecordIn is [Recorder.Record] in a step. Its result is final when the step is committed. An
// outcome whose entry the store no longer keeps is not known to the step, but its evidence still
// counts once.
func (r *Recorder) RecordIn(tx *store.Tx, o Outcome) (*Recorded, error) {
	recorded, err := r.recordIn(tx, o)
	return recorded, failed("record", err)
}

// recordIn does what RecordIn does. What the commit decides, for example that the evidence was
// counted before, is filled in when the step has ended. It first looks for an entry of this id, so
// a delivery that comes again is answered from the entry.
func (r *Recorder) recordIn(tx *store.Tx, o Outcome) (*Recorded, error) {
	now := r.cfg.Now()
	fillTime(&o.At, now)
	if err := o.validate(now); err != nil {
		return nil, err
	}
	tx.Want(r.outcomeWants(o))
	if err := r.complete(tx, &o); err != nil {
		return nil, err
	}
	named, entry := o.credited(), Entry{Outcome: o, Score: o.Score()}
	first, err := r.kinds.entries.In(tx, o.ID)
	if err != nil {
		return nil, err
	}
	d, err := r.draft(tx, named)
	if err != nil {
		return nil, err
	}
	one := evidence.Observation{ID: d.evidence("outcome", o.ID), Source: o.Source, Session: o.Task,
		At: o.At}
	if d.Duplicate = first.Revision > 0; d.Duplicate {
		d.Score = first.Value.Score
		return &d.Recorded, nil
	}
	d.Score, entry.RecordedAt = entry.Score, stored(d.now)
	r.kinds.entries.Put(tx, entry, 0)
	_, d.full = r.refused.Get(o.ID)
	if err := d.credit(&entry, one, named); err != nil {
		return nil, err
	}
	tx.Again(func(err error) bool { // without the patterns that have no room
		full := errors.Is(err, evidence.ErrFull) && d.adds
		if full {
			r.refused.Put(o.ID, true)
		}
		return full
	})
	return &d.Recorded, nil
}

// credit adds the evidence of an outcome, and settles the patterns that it names. A failure with a
// neutral score is harmful, because the task did not do what it was for. Outcomes with a neutral
// score and success settle patterns without an observation.
func (d *draft) credit(e *Entry, one evidence.Observation, named []PatternID) error {
	o, class := &e.Outcome, e.Score.Class
	for i, name := range o.Criteria {
		if slices.Contains(o.Criteria[:i], name) {
			continue
		}
		one.Reward, one.Weight = rewardOf(class), d.r.strength(e.Score)
		if err := d.judge(name, one); err != nil {
			return err
		}
	}
	credited := d.resolve(named)
	if d.full && len(credited) == 0 && len(named) > 0 {
		return evidence.ErrFull
	}
	if class == neutral && (d.r.cfg.literal || !o.Success) {
		class = harmful
	}
	one.Reward, one.Weight = rewardOf(class), 1
	for _, id := range credited {
		if class != neutral {
			d.observe(id, one)
		}
		p := d.edited(id)
		p.addExample(o.Task)
		d.settle(p, "", "")
	}
	return nil
}

// resolve returns the patterns under which evidence on these is kept, each once. It adds a pattern
// that is not known, unless the store is full or only its anti-pattern was named: plans must not
// come to recommend what the host never named.
func (d *draft) resolve(ids []PatternID) (resolved []PatternID) {
	for _, id := range ids {
		root := rootOf(id)
		_, known := d.pattern(root)
		if slices.Contains(resolved, root) || !known && (d.full || isAnti(id)) {
			continue
		}
		if !known {
			d.put(d.r.fresh(Pattern{ID: root, Content: d.r.contentOf(root)}))
		}
		resolved = append(resolved, root)
	}
	return resolved
}

// strength returns how much evidence on a criterion an outcome is. It is more if the outcome was
// clearer either way.
func (r *Recorder) strength(s Score) float64 {
	switch {
	case s.Class == neutral:
		return 0
	case s.Class == harmful && !r.cfg.literal:
		return float64(100-s.Value) / 100
	default:
		return float64(s.Value) / 100
	}
}

// rewardOf returns the reward of a class. A neutral one has no weight, so its reward does not
// matter.
func rewardOf(class string) float64 {
	switch class {
	case helpful:
		return 1
	case harmful:
		return 0
	default:
		return 0.5
	}
}

// patternCell names the evidence on a pattern.
func (r *Recorder) patternCell(id PatternID) evidence.Cell {
	return evidence.Cell{Kind: r.kinds.patternCells, Item: string(id)}
}

// criterionCell names the evidence on a criterion.
func (r *Recorder) criterionCell(name string) evidence.Cell {
	return evidence.Cell{Kind: r.kinds.criterionCells, Item: name}
}

// Define stores a pattern that is not known yet, and returns it. Of one that is known, it returns
// the stored one. The caller sets ID, Content, Tags, and for an anti-pattern Anti and Reason.
// Evidence makes all else.
//
// There may be 100,000 patterns, unless the store is configured otherwise. One more is refused with
// [evidence.ErrFull].
func (r *Recorder) Define(ctx context.Context, p Pattern) (Pattern, error) {
	wanted := r.fresh(p)
	err := wanted.validate()
	if err == nil {
		_, err = r.change(ctx, []PatternID{wanted.ID}, func(d *draft) error {
			known := false
			if p, known = d.pattern(wanted.ID); !known {
				p = d.put(wanted)
			}
			return nil
		})
	}
	if err != nil {
		return Pattern{}, failed("define", err)
	}
	return p.clone(), nil
}

// fresh returns a pattern as it begins.
func (r *Recorder) fresh(p Pattern) Pattern {
	now := stored(r.cfg.Now())
	p = Pattern{
		ID: p.ID, Anti: p.Anti, Content: p.Content, Tags: slices.Clone(p.Tags), Reason: p.Reason,
		State: candidate, CreatedAt: now, UpdatedAt: now,
	}
	if p.Anti {
		p.State = inverted
	}
	return p
}

// A Rating reports that a criterion or a pattern was helpful or harmful, without an outcome: it
// comes from a person, or from a check elsewhere.
type Rating struct {
	// ID names the rating. A rating that is delivered again under the same id counts once.
	ID string
	// Criterion or Pattern is rated: one of them. A pattern that is not known is added.
	// Without its pattern, an anti-pattern is not rated: the error is a [heed.ErrNotFound].
	Criterion string
	Pattern   PatternID
	// Class is the judgement. A neutral rating is remembered by its id and is no evidence.
	Class string
	// Strength is how much evidence it is, in (0, 1]. 1 is one full observation.
	Strength float64
	// Task is the task that it is about, and Source is who gave it. Both may be empty.
	Task   string
	Source string
	// At is when it was given. It fades from then. The zero time means now.
	At time.Time
}

// Rate counts a rating, in one commit with what becomes of the pattern. Deliver it again after an
// error, as with [Recorder.Record].
func (r *Recorder) Rate(ctx context.Context, rating Rating) (Recorded, error) {
	now := r.cfg.Now()
	fillTime(&rating.At, now)
	if err := rating.validate(now); err != nil {
		return Recorded{}, failed("rate", err)
	}
	var named []PatternID
	if rating.Pattern != "" {
		named = []PatternID{rating.Pattern}
	}
	one := evidence.Observation{
		Source: rating.Source, Session: rating.Task, Reward: rewardOf(rating.Class),
		Weight: rating.Strength, At: rating.At,
	}
	if rating.Class == neutral {
		one.Weight = 0
	}
	d, err := r.change(ctx, named, func(d *draft) error {
		one.ID = d.evidence("rating", rating.ID)
		d.tx.Add(store.Batch{ID: one.ID})
		if rating.Pattern == "" {
			return d.judge(rating.Criterion, one)
		}
		rated := d.resolve(named)
		if len(rated) == 0 {
			return heed.ErrNotFound
		}
		d.observe(rated[0], one)
		d.settle(d.edited(rated[0]), "", "")
		return nil
	})
	if err != nil {
		return Recorded{}, failed("rate", err)
	}
	return d.Recorded, nil
}

// validate reports the first fault of a rating.
func (g *Rating) validate(now time.Time) error {
	switch {
	case (g.Criterion == "") == (g.Pattern == ""):
		return valid.Input("Criterion", "or Pattern must be set, and not both")
	case g.Class != helpful && g.Class != neutral && g.Class != harmful:
		return valid.Input("Class", "must be helpful, neutral or harmful")
	case !(g.Strength > 0 && g.Strength <= 1):
		return valid.Input("Strength", "is %v, must be in (0, 1]", g.Strength)
	}
	return cmp.Or(valid.Names(maxID, "ID", g.ID), valid.Texts(maxID, "Criterion", g.Criterion,
		"Pattern", string(g.Pattern), "Task", g.Task, "Source", g.Source), valid.Time("At", g.At, now),
		checkID("Pattern", rootOf(g.Pattern)))
}
