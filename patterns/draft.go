package patterns

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A draft is what one commit is to change, worked out from what was read. It must not be used concurrently.
type draft struct {
	*reading
	r     *Recorder
	now   time.Time
	batch store.Batch
	next  map[PatternID]Pattern // those that the commit writes
	order []PatternID           // of next
}

func (r *Recorder) draft(from *reading) *draft {
	return &draft{reading: from, r: r, now: r.cfg.Now(), batch: store.Batch{Policies: r.policies}, next: make(map[PatternID]Pattern)}
}

// pattern returns a pattern as it is in the draft. It must not be changed.
func (d *draft) pattern(id PatternID) (p Pattern, known bool) {
	if p, known = d.next[id]; known {
		return p, true
	}
	kept, known := d.patterns[id]
	return kept.Value, known
}

// put has the commit write a pattern.
func (d *draft) put(p Pattern) Pattern {
	if _, known := d.next[p.ID]; !known {
		d.order = append(d.order, p.ID)
	}
	p.UpdatedAt = stored(d.now)
	d.next[p.ID] = p
	return p
}

// observe adds evidence on a pattern, whose record is then written, too: so its revision tells that the evidence has changed.
func (d *draft) observe(id PatternID, o evidence.Observation) {
	o.Cell = d.r.patternCell(id)
	d.batch.Observations = append(d.batch.Observations, o)
	t := d.tallies[id]
	if t.N() == 0 {
		t = evidence.Tally{HalfLife: d.r.policies[d.r.kinds.patternCells].HalfLife}
	}
	t.Add(o.Weight, o.Reward, evidence.InstantOf(o.At))
	d.tallies[id] = t
	p, _ := d.pattern(id)
	d.put(p)
}

// An edit changes a pattern, whose evidence it is shown. It returns the cause where that is a transition by itself, and
// errDone where nothing is to change.
type edit func(p *Pattern, t *evidence.Tally) (cause string, err error)

var errDone = errors.New("done")

// settled is what came of settling a pattern.
type settled struct {
	pattern    Pattern
	anti       *Pattern    // its anti-pattern, where it has one
	transition *Transition // what became of it, if anything
}

// settle makes an edit to a pattern and brings it in line with its evidence, its anti-pattern with it.
func (d *draft) settle(id PatternID, actor string, change edit) (settled, error) {
	before, _ := d.pattern(id)
	p, t := before.clone(), d.tallies[id]
	cause, err := change(&p, &t)
	if err != nil {
		return settled{}, err
	}
	if because := d.r.advance(&p, &t, d.now); cause == "" {
		cause = because
	} else if because != "" {
		cause += "; " + because
	}
	s := settled{}
	if p.Twin != "" && p.Kind == Positive {
		anti := d.warn(&p, &t)
		s.anti = &anti
	}
	if cause != "" || !reflect.DeepEqual(before, p) {
		p = d.put(p)
	}
	s.pattern = p
	if cause != "" {
		s.transition = &Transition{d.r.cfg.NewID(), id, before.State, p.State, stored(d.now), actor, cause}
		d.batch.Records = append(d.batch.Records, d.r.kinds.transitions.Record(*s.transition, store.Once))
	}
	return s, nil
}

// warn brings the anti-pattern of a pattern in line with it, and returns it: with the counts of today while the pattern is
// inverted, and archived when it no longer is.
func (d *draft) warn(p *Pattern, t *evidence.Tally) Pattern {
	before, known := d.pattern(AntiPrefix + p.ID)
	anti := before.clone()
	if !known {
		anti.CreatedAt = stored(d.now)
	}
	switch {
	case p.State == Inverted:
		anti.ArchivedAt = time.Time{}
		d.r.cfg.Inversion.warn(&anti, p, countsOf(t).minus(p.Base))
	case p.State == Deprecated && p.Override != nil: // it goes on warning
	case !anti.Archived():
		anti.ArchivedAt = stored(d.now)
	}
	if !reflect.DeepEqual(before, anti) {
		anti = d.put(anti)
	}
	return anti
}

// commit stores all of it, or none and an error. A draft without an id that changes nothing is not stored.
func (d *draft) commit(ctx context.Context) (store.Receipt, error) {
	for _, id := range d.order {
		d.batch.Records = append(d.batch.Records, d.r.kinds.patterns.Record(d.next[id], d.patterns[id].Revision))
	}
	if d.batch.ID == "" && len(d.batch.Records) == 0 && !d.batch.TakesAway() {
		return store.Receipt{}, nil
	}
	receipts, err := d.r.cfg.Store.Commit(ctx, d.batch)
	if err != nil {
		if errors.Is(err, heed.ErrConflict) && !errors.As(err, new(*evidence.PolicyError)) {
			err = &raceError{err}
		}
		return store.Receipt{}, err
	}
	return receipts[0], nil
}

// A raceError says that somebody else has stored a pattern since it was read.
type raceError struct{ error }

func (e *raceError) Unwrap() error { return e.error }

// advance gives a pattern the state that its evidence calls for, and returns the cause if that is another one.
func (r *Recorder) advance(p *Pattern, t *evidence.Tally, now time.Time) (cause string) {
	if p.Kind != Positive {
		return ""
	}
	from := p.State
	counts := countsOf(t)
	switch {
	case p.Override != nil:
		p.State = p.Override.State
		return ""
	case p.State == Inverted && !r.rehabilitated(p, t):
	case p.State != Inverted && r.cfg.Inversion.inverts(counts.minus(p.Base)):
		p.State, p.Inverted, p.Twin = Inverted, counts, AntiPrefix+p.ID
		return counts.minus(p.Base).reason()
	default:
		if p.State == Inverted {
			p.Base = counts
			cause = fmt.Sprintf("rehabilitated by %d successes since it was inverted: ", counts.minus(p.Inverted).Successes)
		}
		p.State = stateOf(r.gates(&r.cfg.Maturity, t, now))
	}
	if p.State == from {
		return ""
	}
	return cause + fmt.Sprintf("%d helpful, %d harmful, a harmful share of %s", counts.Successes, counts.Failures, share(harmfulShare(t)))
}

// rehabilitated reports whether an inverted pattern has shown that it works after all. The learning-systems design knows
// no way back.
func (r *Recorder) rehabilitated(p *Pattern, t *evidence.Tally) bool {
	return !r.cfg.Literal && countsOf(t).minus(p.Inverted).Successes >= uint64(r.cfg.Inversion.Rehabilitation) &&
		harmfulShare(t) <= r.cfg.Maturity.Deprecation+tolerance
}

func countsOf(t *evidence.Tally) Counts { return Counts{t.Positive.N, t.Negative.N} }
