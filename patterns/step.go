package patterns

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// A draft is what one call adds to a step.
type draft struct {
	// The reading is shared by all calls of the step, so a second outcome sees what the first one
	// changed.
	*reading
	r    *Recorder
	tx   *store.Tx
	now  time.Time
	full bool // the store refuses another pattern

	what, id string                 // the evidence: "outcome" and its id; empty without evidence
	adds     bool                   // a pattern is new
	counted  []evidence.Observation // the evidence that is added
	// Recorded is what becomes of patterns, and, after the commit, whether the evidence had been
	// counted before.
	Recorded
}

// step returns what the recorder read and wrote in a step of its store.
func (r *Recorder) step(tx *store.Tx) *reading {
	return tx.State(r, func() any {
		tx.Add(store.Batch{Policies: r.policies})
		return newReading()
	}).(*reading)
}

// draft begins what a call adds to a step. After the commit the observer is notified.
func (r *Recorder) draft(tx *store.Tx, ids []PatternID) (*draft, error) {
	d := &draft{reading: r.step(tx), r: r, tx: tx, now: r.cfg.Now()}
	tx.Then(func(receipt store.Receipt, err error) {
		if err == nil {
			d.committed(receipt)
			r.notify(tx.Context(), d)
		}
	})
	return d, r.look(tx, d.reading, ids)
}

// committed takes back what a draft would have changed if its evidence had been counted before.
func (d *draft) committed(receipt store.Receipt) {
	if receipt.Duplicate {
		d.Transitions, d.Inversions = nil, nil
	}
	d.Duplicate = d.Duplicate || receipt.Duplicate ||
		slices.ContainsFunc(d.counted, func(o evidence.Observation) bool {
			return slices.Contains(receipt.Duplicates, o.ID)
		})
}

// evidence names the evidence that the draft counts, and returns the id of its observations.
func (d *draft) evidence(what, id string) string {
	d.what, d.id = what, id
	return d.r.cfg.Name + ":" + what + ":" + id
}

// add adds an observation.
func (d *draft) add(o evidence.Observation) {
	d.counted = append(d.counted, o)
	d.tx.Observe(o)
}

// judge adds evidence on a criterion. Like a pattern, a criterion keeps a bounded number of people
// apart: see [evidence.Trust.Apart].
func (d *draft) judge(name string, o evidence.Observation) error {
	var s store.Snapshot
	o.Cell = d.r.criterionCell(name)
	if err := d.tx.Read(&s, []evidence.Cell{o.Cell}, nil); err != nil {
		return err
	}
	fair.Apart(d.r.cfg.trust(), s.Parts, &o)
	d.add(o)
	return nil
}

// pattern returns a pattern as it is in the step. It must not be changed.
func (d *draft) pattern(id PatternID) (p Pattern, known bool) {
	row, known := d.patterns[id]
	return row.Value, known
}

// put has the step write a pattern.
func (d *draft) put(p Pattern) Pattern {
	p.UpdatedAt = stored(d.now)
	row := d.patterns[p.ID]
	row.Value = p
	d.patterns[p.ID] = row
	d.adds = d.adds || row.Revision == 0
	d.r.kinds.patterns.Put(d.tx, p, row.Revision)
	return p
}

// observe adds evidence on a pattern. It writes the pattern's record, too, so that the revision
// changes with the evidence.
func (d *draft) observe(id PatternID, o evidence.Observation) {
	parts := slices.Clone(d.parts[id])
	o.Cell = d.r.patternCell(id)
	fair.Apart(d.r.cfg.trust(), parts, &o)
	d.add(o)
	i := slices.IndexFunc(parts, func(p evidence.Part) bool { return p.Source == o.Source })
	if i < 0 {
		i = len(parts)
		parts = append(parts, evidence.Part{Cell: o.Cell, Source: o.Source,
			Tally: evidence.Tally{HalfLife: d.r.policies[d.r.kinds.patternCells].HalfLife}})
	}
	parts[i].Tally.Add(o.Weight, o.Share, o.Reward, evidence.InstantOf(o.At))
	d.parts[id], d.tallies[id] = parts, d.r.cfg.sum(parts)
	p, _ := d.pattern(id)
	d.put(p)
}

// edited returns a copy of a pattern to change. The caller passes it to [draft.settle].
func (d *draft) edited(id PatternID) Pattern {
	p, _ := d.pattern(id)
	return p.clone()
}

// settle brings a pattern in line with its evidence. It runs after the evidence was added, and
// writes only what differs. cause is set if what the caller changed is a transition by itself.
func (d *draft) settle(p Pattern, actor, cause string) {
	before, _ := d.pattern(p.ID)
	t := d.tallies[p.ID]
	if because := d.r.advance(&p, &t, d.now); cause == "" {
		cause = because
	} else if because != "" {
		cause += "; " + because
	}
	if p.State == inverted && before.State != inverted {
		d.Inversions = append(d.Inversions, p.warning(countsOf(&t)))
	}
	if cause != "" || !reflect.DeepEqual(before, p) {
		d.put(p)
	}
	if cause != "" {
		done := Transition{
			d.tx.ID(d.r.cfg.NewID), p.ID, before.State, p.State, stored(d.now), actor, cause,
		}
		d.Transitions = append(d.Transitions, done)
		d.r.kinds.transitions.Put(d.tx, done, store.Once)
	}
}

// change runs a step about some patterns, and returns what became of it.
func (r *Recorder) change(
	ctx context.Context, ids []PatternID, do func(d *draft) error,
) (d *draft, err error) {
	err = store.Do(ctx, r.cfg.Store, func(tx *store.Tx) (err error) {
		if d, err = r.draft(tx, ids); err == nil {
			err = do(d)
		}
		return err
	})
	return d, err
}

// advance gives a pattern the state that its evidence calls for. It returns the cause if the state
// changes. What a person decided comes first, and then an inversion that holds. A pattern that is
// rehabilitated begins at zero towards the next inversion, and its state follows from its evidence
// as usual. An inversion ends, too, if its failures were forgotten.
func (r *Recorder) advance(p *Pattern, t *evidence.Tally, now time.Time) (cause string) {
	if p.Anti {
		return ""
	}
	from, counts := p.State, countsOf(t)
	p.Base, p.Inverted = counts.atMost(p.Base), counts.atMost(p.Inverted)
	if counts.minus(p.Base).Failures == 0 {
		p.Twin = "" // there is no failure to warn of
	}
	switch {
	case p.Override != "":
		p.State = p.Override
		return ""
	case p.State == inverted && p.Twin != "" && !p.rehabilitated(t):
	case p.State != inverted && counts.minus(p.Base).inverts():
		p.State, p.Inverted, p.Twin = inverted, counts, antiPrefix+p.ID
		return counts.minus(p.Base).reason()
	default:
		if p.State == inverted {
			cause = fmt.Sprintf("rehabilitated by %d successes since it was inverted: ",
				counts.minus(p.Inverted).Successes)
			if p.Twin == "" {
				cause = "its failures were forgotten: "
			}
			p.Base = counts
		}
		p.State, p.Twin = stateOf(r.cfg.conditions(t, now)), ""
	}
	if p.State == from {
		return ""
	}
	return cause + fmt.Sprintf("%d helpful, %d harmful, a harmful share of %s", counts.Successes,
		counts.Failures, share(harmfulShare(t)))
}

// rehabilitated reports whether an inverted pattern showed that it works after all.
func (p *Pattern) rehabilitated(t *evidence.Tally) bool {
	again := countsOf(t).minus(p.Inverted).Successes
	return again >= minInverting && harmfulShare(t) <= harmfulFrom+tolerance
}

// countsOf returns the observations of a tally, which do not fade.
func countsOf(t *evidence.Tally) Observations { return Observations{t.Positive.N, t.Negative.N} }

// notify notifies the observer of what a draft changed. The words of a person are not in a notice,
// because observers may log it.
func (r *Recorder) notify(ctx context.Context, d *draft) {
	if r.watch == nil {
		return
	}
	name := r.watch.Name()
	if d.Duplicate {
		r.watch.Tell(ctx, heed.Duplicate{Component: name, At: d.now, What: d.what, ID: d.id})
		return
	}
	for _, o := range d.counted {
		if o.Weight > 0 {
			r.watch.Tell(ctx, heed.Counted{
				Component: name, At: d.now, Subject: o.Cell.Item, Channel: d.what, Reward: o.Reward,
				Weight: o.Weight,
			})
		}
	}
	for _, t := range d.Transitions {
		reason := t.Cause
		if t.Actor != "" {
			reason = "decided by hand" // and not in that person's words
		}
		tell := func(what, reason string) {
			r.watch.Tell(ctx, heed.Changed{What: what, Component: name, At: d.now,
				Subject: string(t.Pattern), Reason: reason})
		}
		if t.To == inverted && t.From != inverted {
			tell("harmful", reason)
		}
		switch was, is := inUse(t.From), inUse(t.To); {
		case t.To == inverted && was:
			tell("inverted", reason)
		case is && !was:
			tell("activated", "")
		case was && !is, t.To == deprecated && t.From != deprecated:
			tell("retired", reason)
		}
	}
}

// inUse reports whether plans recommend patterns in this state.
func inUse(s string) bool { return s == established || s == proven }
