package decision

import (
	"cmp"
	"context"
	"math"
	"strconv"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// A said is what the store has of an answer, of the person's last verdict on it, and of the person.
type said struct {
	trace   records.Kept[traceRow]
	verdict records.Kept[verdictRow]
	person  records.Kept[personRow]
}

// react reads what holds, and commits the reaction if it changes that.
func (f *Reactions) react(ctx context.Context, r *Reaction) (credit Credit, repeated bool, err error) {
	mine := verdictRow{ResponseID: r.ResponseID, Person: r.Person, Channel: r.Channel, Target: r.Target, Now: verdict{r.Value, r.At}}
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
		b.Expect = []store.Expectation{verdictKind.Expect(mine.id(), s.verdict.Revision)}
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
	credit.Weight = mine.Weight
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

func (v verdict) same(w verdict) bool { return v.Value == w.Value && v.At.Equal(w.At) }

// creditOf returns the credit of a verdict, without its weight and what it replaces.
func creditOf(t *traceRow, v *verdictRow) Credit {
	return Credit{
		ID: v.credit(v.Now), HeuristicID: t.CreditID, EventID: t.EventID, ResponseID: t.ResponseID, Domain: t.Domain, Path: t.Path,
		Variant: t.Variant, Person: v.Person, Channel: v.Channel, Target: v.Target, Value: v.Now.Value,
		Success: t.Success, Confidence: t.Confidence, At: v.Now.At,
	}
}

// credit returns the ID of a verdict's credit. A repeated verdict has the same ID.
func (v *verdictRow) credit(said verdict) string {
	value := strconv.FormatFloat(said.Value+0, 'g', -1, 64) // -0 is 0
	at := strconv.FormatInt(int64(evidence.InstantOf(said.At)), 10)
	return "verdict:" + records.ID(v.ResponseID, v.Person, v.Channel, v.Target, value, at)
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
	weight := 1.
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
