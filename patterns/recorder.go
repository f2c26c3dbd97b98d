package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A Recorder learns from outcomes which patterns to follow and which to avoid. Make one with [New]. It holds nothing that
// its stores do not: another recorder over the same stores goes on where it stopped. It starts no goroutine and needs no
// closing.
//
// A Recorder is safe for concurrent use by multiple goroutines.
type Recorder struct {
	cfg      Config
	kinds    kinds
	policies map[string]evidence.Policy // by kind
	rules    []compiled
	gates    gating
}

// kinds are the kinds of a recorder's cells.
type kinds struct{ pattern, criterion string }

func kindsOf(recorder string) kinds { return kinds{recorder + ".pattern", recorder + ".criterion"} }

// Kinds returns the kinds of the cells in which a recorder of this name keeps what it learns, each its name and an ending: for
// a tool that looks into a store of a host that it doesn't know.
func Kinds(recorder string) []string {
	k := kindsOf(recorder)
	return []string{k.pattern, k.criterion}
}

// New returns a recorder, or all faults of its configuration, joined: each is a [*heed.ConfigError].
func New(cfg Config) (*Recorder, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("patterns: %w", err)
	}
	r := &Recorder{cfg: cfg, kinds: kindsOf(cfg.Name), rules: compile(cfg.Rules), gates: gates}
	if cfg.Literal {
		r.gates = literalGates
	}
	r.policies = map[string]evidence.Policy{
		r.kinds.pattern: {HalfLife: cfg.Maturity.HalfLife}, r.kinds.criterion: {HalfLife: cfg.Criteria.HalfLife},
	}
	return r, nil
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
// evidence then says.
//
// An outcome counts once, by its id. One that is recorded again changes no count; what an earlier call was kept from doing
// by an error, it does. So record again what returned an error.
func (r *Recorder) Record(ctx context.Context, o Outcome) (Recorded, error) {
	recorded, err := r.record(ctx, o)
	if err != nil {
		return Recorded{}, fmt.Errorf("patterns: record: %w", err)
	}
	return recorded, nil
}

func (r *Recorder) record(ctx context.Context, o Outcome) (Recorded, error) {
	entry, err := r.enter(ctx, o)
	if err != nil {
		return Recorded{}, err
	}
	credited, err := r.resolve(ctx, entry.Outcome.credited())
	if err != nil {
		return Recorded{}, err
	}
	receipt, err := r.cfg.Evidence.Commit(ctx, r.batch(&entry, credited))
	if err != nil {
		return Recorded{}, err
	}
	recorded := Recorded{Score: entry.Score, Duplicate: receipt.Duplicate}
	for _, id := range credited {
		done, err := r.settle(ctx, id, "", func(p *Pattern, t *evidence.Tally) (string, error) {
			p.addExample(entry.Outcome.Task)
			return r.unarchive(p, t)
		})
		if err != nil {
			return Recorded{}, err
		}
		recorded.add(done)
	}
	recorded.Strikes, err = r.strikes(ctx, entry.Outcome.Task)
	return recorded, err
}

func (r *Recorded) add(s settled) {
	if s.transition == nil {
		return
	}
	r.Transitions = append(r.Transitions, *s.transition)
	if s.transition.To == Inverted && s.transition.From != Inverted {
		r.Inversions = append(r.Inversions, InvertedPattern{s.pattern, *s.anti, s.anti.Reason})
	}
}

// enter keeps an outcome, and returns what is kept under its id: of an outcome that came before, that.
func (r *Recorder) enter(ctx context.Context, o Outcome) (Entry, error) {
	if err := r.complete(ctx, &o); err != nil {
		return Entry{}, err
	}
	switch entry, err := r.cfg.Store.Entry(ctx, o.ID); {
	case err == nil && entry.Review != nil:
		return Entry{}, inputError("ID", "is that of a review")
	case err == nil || !errors.Is(err, heed.ErrNotFound):
		return entry, err
	}
	entry := Entry{Outcome: o, Score: r.cfg.Scoring.Score(o)}
	if err := r.cfg.Store.Commit(ctx, Changes{Entries: []Entry{entry}}); err != nil {
		return Entry{}, err
	}
	first, err := r.cfg.Store.Entry(ctx, o.ID) // another caller may have come first
	if errors.Is(err, heed.ErrNotFound) {
		return entry, nil // the store is full of later ones
	}
	return first, err
}

// resolve returns the patterns whose evidence outcomes of these are: those that an anti-pattern was made of in its place,
// each once. What is not known is added.
func (r *Recorder) resolve(ctx context.Context, ids []PatternID) ([]PatternID, error) {
	resolved := make([]PatternID, 0, len(ids))
	for _, id := range ids {
		p, err := r.cfg.Store.Pattern(ctx, id)
		switch {
		case errors.Is(err, heed.ErrNotFound):
			p, err = r.Define(ctx, Pattern{ID: id, Kind: kindOf(id), Content: string(id)})
			if err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		}
		if root := p.root(); !slices.Contains(resolved, root) {
			resolved = append(resolved, root)
		}
	}
	return resolved, nil
}

// root returns the id under which the evidence of a pattern is.
func (p *Pattern) root() PatternID {
	if p.Kind == Anti && p.Twin != "" {
		return p.Twin
	}
	return p.ID
}

// batch is the evidence of an outcome. Its id makes it count once as a whole, even where it says nothing.
func (r *Recorder) batch(e *Entry, credited []PatternID) evidence.Batch {
	o := &e.Outcome
	b := evidence.Batch{ID: r.cfg.Name + ":outcome:" + o.ID, Policies: r.policies}
	observation := evidence.Observation{ID: b.ID, Source: o.Source, Session: o.Task, At: o.At}
	for i, name := range o.Criteria {
		if slices.Contains(o.Criteria[:i], name) {
			continue
		}
		observation.Cell = r.criterionCell(name)
		observation.Reward, observation.Weight = rewardOf(e.Score.Class), r.strength(e.Score)
		b.Observations = append(b.Observations, observation)
	}
	class := e.Score.Class
	if class == Neutral && r.cfg.Literal {
		class = Harmful
	}
	if class == Neutral {
		return b
	}
	for _, id := range credited {
		observation.Cell = r.patternCell(id)
		observation.Reward, observation.Weight = rewardOf(class), 1
		b.Observations = append(b.Observations, observation)
	}
	return b
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
	return evidence.Cell{Kind: r.kinds.pattern, Item: string(id)}
}

func (r *Recorder) criterionCell(name string) evidence.Cell {
	return evidence.Cell{Kind: r.kinds.criterion, Item: name}
}

// tallies reads what cells have earned. One without evidence is not in the map.
func (r *Recorder) tallies(ctx context.Context, cells []evidence.Cell) (map[evidence.Cell]evidence.Tally, error) {
	seen := make(map[evidence.Cell]bool, len(cells)) // a pattern and its anti-pattern share a cell, which counts once
	cells = slices.DeleteFunc(slices.Clone(cells), func(c evidence.Cell) bool {
		again := seen[c]
		seen[c] = true
		return again
	})
	parts, err := r.cfg.Evidence.Read(ctx, nil, cells...)
	if err != nil {
		return nil, err
	}
	tallies := make(map[evidence.Cell]evidence.Tally, len(parts))
	for i := range parts {
		t := tallies[parts[i].Cell]
		t.Merge(parts[i].Tally)
		tallies[parts[i].Cell] = t
	}
	return tallies, nil
}

// Define stores a pattern that is not known yet, and returns it; of one that is known it returns what is stored. The ID,
// the Kind ("" means [Positive]), Content, Tags and, of an anti-pattern, the Reason are the caller's; all else follows from
// evidence. An id that begins with [AntiPrefix] is an anti-pattern's.
func (r *Recorder) Define(ctx context.Context, p Pattern) (Pattern, error) {
	now := r.cfg.Now()
	p = Pattern{
		ID: p.ID, Kind: cmp.Or(p.Kind, Positive), Content: p.Content, Tags: slices.Clone(p.Tags), Reason: p.Reason,
		State: Candidate, CreatedAt: stored(now), UpdatedAt: stored(now),
	}
	if p.Kind == Anti {
		p.State = Inverted
	}
	if err := firstError(p.validate(), p.checkKind()); err != nil {
		return Pattern{}, fmt.Errorf("patterns: define: %w", err)
	}
	err := r.cfg.Store.Commit(ctx, Changes{Patterns: []Pattern{p}})
	if err == nil || errors.Is(err, heed.ErrConflict) {
		p, err = r.cfg.Store.Pattern(ctx, p.ID)
	}
	if err != nil {
		return Pattern{}, fmt.Errorf("patterns: define: %w", err)
	}
	return p, nil
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
