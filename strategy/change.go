package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// A changeTest tests whether an arm's rewards have changed, for one item or for most items of a
// segment at once.
//
// For each moment at which the outcomes can be cut in two, it compares their probability with one
// rate and with two. This is the generalised likelihood ratio for Bernoulli rewards with the
// threshold ln(3·n^1.5/alarms) (Besson, Kaufmann, Maillard and Seznec 2022), which also bounds
// other rewards in [0, 1]. Items differ, so the rate before and after the cut is compared with what
// the items' own means let expect there. The items' means were estimated from both sides, so the
// ratio is scaled by the information that is left, as in the test of Cochran, Mantel and Haenszel
// (1959). For one item alone that is the plain ratio.
//
// Besson, Kaufmann, Maillard and Seznec call it GLR-klUCB with the Bernoulli GLR test. The test
// here looks only at outcomes that this process counted, so that most outcomes cost no reading of
// the store.
type changeTest struct {
	// alarms is roughly the probability of a false alarm for an arm, in a window of outcomes. The
	// test of a segment and the test of each of its items have the same alarms.
	alarms float64
	// every is how many outcomes of an arm lie between two tests at least. A test costs time in
	// proportion to the outcomes of the window, and a single outcome seldom shows a change.
	every int
}

// The defaults of the test. Over 100 runs of each world of lab/board, with 1,000 requests, 0.05
// costs at most 3 % of the regret where nothing changes, and 0.2 up to 7 %.
const (
	falseAlarms  = 0.05
	testedEvery  = 5
	changeWindow = 1024 // outcomes of a segment that are compared
)

// mostRestarted bounds the cells that one change of a segment restarts, because an outcome waits
// for that. A commit restarts restartedAtOnce of them.
const (
	mostRestarted   = 4000
	restartedAtOnce = 500
	fewPeople       = 2 // are believed as they are: see [evidence.Trust]
)

// withDefaults returns the test with the defaults in place of zeros. Only tests of this package set
// other values.
func (c changeTest) withDefaults() changeTest {
	return changeTest{cmp.Or(c.alarms, falseAlarms), cmp.Or(c.every, testedEvery)}
}

// without is the test that a change has to pass without each person and item. One that it needs
// leaves hardly anything to find, so the test can be weaker.
func (c changeTest) without() changeTest {
	c.alarms *= 20
	return c
}

// A recent outcome is what the test of a change needs of an outcome. Its mass is its weight times
// its share, before it fades.
type recent struct {
	id, item, source string
	arm              int
	at               evidence.Instant
	mass, reward     float64
}

// latest are the last outcomes of a segment that this process counted. The test reads the store
// only if they show a change.
type latest struct {
	outcomes []recent
	// untested counts, by arm, how many outcomes came since the arm's last test.
	untested []int
}

// add keeps an outcome. Silence is left out, because it comes in bursts, at sweeps. The caller
// holds the lock of the segment.
func (l *latest) add(o *evidence.Observation, item string, arm, arms int) {
	if o.Channel == silenceChannel {
		return
	}
	if l.untested == nil {
		l.untested = make([]int, arms)
	}
	l.untested[arm]++
	// The window may grow by a quarter before it is cut, so that the outcomes are moved seldom.
	if len(l.outcomes) >= changeWindow*5/4 {
		l.outcomes = append(l.outcomes[:0], l.outcomes[len(l.outcomes)-changeWindow:]...)
	}
	l.outcomes = append(l.outcomes,
		recent{o.ID, item, o.Source, arm, evidence.InstantOf(o.At), massOf(o), o.Reward})
}

// takeBack leaves out outcomes that were taken back: they are no news of an arm.
func (s *segment) takeBack(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest.outcomes = slices.DeleteFunc(s.latest.outcomes, func(o recent) bool {
		return slices.Contains(ids, o.id)
	})
}

// drop leaves out the outcomes of an item, or of all items, from before a moment. Without this the
// same change would be found again with the next outcome.
func (s *segment) drop(item string, all bool, before evidence.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest.outcomes = slices.DeleteFunc(s.latest.outcomes, func(o recent) bool {
		return (all || o.item == item) && o.at < before
	})
}

// due returns the last outcomes in the order of time, if an arm is to be tested now: after each few
// outcomes, and seldom if there are many.
func (s *segment) due(c changeTest, arm int) (all []recent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.latest
	// With 1,024 outcomes an arm is tested every 32, so that the cost of all tests stays linear.
	if l.untested == nil || l.untested[arm] < max(c.every, len(l.outcomes)/32) {
		return nil
	}
	l.untested[arm] = 0
	all = slices.Clone(l.outcomes[max(len(l.outcomes)-changeWindow, 0):])
	slices.SortStableFunc(all, func(a, b recent) int { return cmp.Compare(a.at, b.at) })
	return all
}

// A stratum is what the test counts of an item: the mass of its outcomes, the sum of their rewards,
// and the mass of those before the cut that is looked at.
type stratum struct{ n, reward, before float64 }

// find returns the first outcome after the change that is most likely, if there is a change. The
// outcomes are of one arm, the oldest first. part is how much of each counts. The last outcome
// can't be a change by itself, because a cut needs outcomes on both sides.
func (c changeTest) find(outcomes []recent, part func(*recent) float64) (at int, found bool) {
	// First pass: the totals, by which the second pass knows what each item's mean lets expect.
	var mass, reward, squares, weights float64
	masses, items := make([]float64, len(outcomes)), make(map[string]*stratum)
	for i := range outcomes {
		o, kept := &outcomes[i], part(&outcomes[i])
		if kept <= 0 {
			continue
		}
		masses[i] = o.mass * kept
		mass, reward, weights = mass+masses[i], reward+masses[i]*o.reward, weights+masses[i]*o.mass
		squares += masses[i] * o.reward * o.reward
		of := items[o.item]
		if of == nil {
			of = new(stratum)
			items[o.item] = of
		}
		of.n, of.reward = of.n+masses[i], of.reward+masses[i]*o.reward
	}
	// Weights count relative to each other: all together they are n outcomes. This is the effective
	// number, so that many outcomes of little weight do not multiply what the others show.
	scale := mass / weights
	n := mass * scale
	if !(n > 1) {
		return 0, false
	}
	scale *= sharper(items, n, reward/mass, squares*scale, scale)
	most := math.Log(3 * n * math.Sqrt(n) / c.alarms)
	// Second pass: the cut moves over the outcomes. information is the sum over items of the mass
	// before times the mass after the cut, over the item's mass. It is 0 for an item that lies on one
	// side only, because such an item was estimated from that side and can't differ from its own
	// mean.
	var before, is, expected, information float64
	for i := range len(outcomes) - 1 {
		if masses[i] == 0 {
			continue
		}
		of := items[outcomes[i].item]
		information -= of.before * (of.n - of.before) / of.n
		of.before += masses[i]
		information += of.before * (of.n - of.before) / of.n
		before += masses[i]
		is += masses[i] * outcomes[i].reward
		expected += masses[i] * of.reward / of.n
		after := mass - before
		if information <= 1e-9*mass || after <= 0 {
			continue // all that counts of each item is on one side
		}
		ratio := before*divergence(is/before, expected/before) +
			after*divergence((reward-is)/after, (reward-expected)/after)
		ratio *= scale * before * after / mass / information
		if ratio > most {
			at, most, found = i+1, ratio, true
		}
	}
	return at, found
}

// sharper is how much more evidence an outcome is than a yes or no with the same mean, from how
// much the outcomes of an item differ: at most 10 times, and 1 if there are few outcomes. The
// variance of a yes or no is mean·(1−mean). Rewards such as 0.4 and 0.5 vary far less within an
// item, so each of them is worth more than one yes or no, by the ratio of the two variances.
func sharper(items map[string]*stratum, n, mean, squares, scale float64) float64 {
	rest := n - float64(len(items)) // degrees of freedom
	if rest <= 20 {
		return 1
	}
	for _, of := range items {
		squares -= of.reward * of.reward / of.n * scale
	}
	return min(max(mean*(1-mean)*(rest+1)/(squares+0.25), 1), 10)
}

// divergence is the Kullback-Leibler divergence of a Bernoulli variable with rate q from one with
// rate p. Rounding may put a rate beyond its bounds.
func divergence(p, q float64) float64 {
	p, q = min(max(p, 0), 1), min(max(q, leastShape), 1-leastShape)
	var d float64
	if p > 0 {
		d += p * math.Log(p/q)
	}
	if p < 1 {
		d += (1 - p) * math.Log((1-p)/(1-q))
	}
	return d
}

// A change is where the rewards of an arm have changed. It is what was found, before the store was
// asked whether it still has these outcomes.
type change struct {
	item     string
	all      bool // it changed for several items
	arm      int
	outcomes []recent // of the arm, for these items
	at       int      // the first of them after the change

	kept func(*recent) float64 // how much of each counts within the limits on people
}

// changed returns a change of an arm, or nil. First the item is tested by itself. A change of the
// segment must show without each single item. If more than two people gave evidence, each counts
// within the limits of Config.Trust, and a change must show without each single person and without
// the tenth of the people who make most of it, so that few can't make one up.
func (l *Learner) changed(all []recent, item string, arm int, now evidence.Instant) *change {
	// The limits are computed before other arms are left out, because a person's part depends on how
	// much the person gave to all arms.
	kept, limited := l.keptOf(all, now)
	all = slices.DeleteFunc(all, func(o recent) bool { return o.arm != arm })
	own := slices.DeleteFunc(slices.Clone(all), func(o recent) bool { return o.item != item })
	tests := []change{
		{item: item, arm: arm, outcomes: own, kept: kept},
		{all: true, arm: arm, outcomes: all, kept: kept},
	}
	// If all outcomes are of this item, the segment's test would repeat the item's.
	if len(own) == len(all) {
		tests = tests[:1]
	}
	for _, c := range tests {
		found := false
		c.at, found = l.cfg.change.find(c.outcomes, kept)
		if found && limited {
			found = l.showsWithoutFew(&c, 0) &&
				l.showsWithout(&c, func(o *recent) string { return o.source })
		}
		if c.all {
			found = found && l.showsWithout(&c, func(o *recent) string { return o.item })
		}
		if found {
			return &c
		}
	}
	return nil
}

// showsWithoutFew reports whether a change shows without the tenth of the people, at least one, who
// make most of it: by what they stated before the change, after it, and in both. An outcome makes
// what its distance from the item's mean adds to the difference of both sides, so 0 where an
// item has outcomes on one side only. A restart leaves out what the others stated before, so what
// few can make up would outweigh many. The tenth is of the people of these outcomes, or of people
// if that is more.
func (l *Learner) showsWithoutFew(c *change, people int) bool {
	halves := [...][]recent{c.outcomes[:c.at], c.outcomes[c.at:]}
	items := make(map[string][2]evidence.Sums)
	for side, half := range halves {
		for i := range half {
			of, mass := items[half[i].item], c.kept(&half[i])*half[i].mass
			of[side] = of[side].Plus(evidence.Sums{Mass: mass, Reward: mass * half[i].reward})
			items[half[i].item] = of
		}
	}
	for _, signs := range [...][2]float64{{-1, 1}, {-1, 0}, {0, 1}} {
		makes, all := make(map[string]float64), 0.
		for side, half := range halves {
			for i := range half {
				o, of := &half[i], items[half[i].item]
				both := of[0].Plus(of[1])
				part := signs[side] * c.kept(o) * o.mass * (o.reward - both.Mean())
				part *= of[1-side].Mass / max(both.Mass, leastShape) // an outcome may weigh 0
				makes[o.source], all = makes[o.source]+part, all+part
			}
		}
		// Instruments are trusted, so a change may rest on a single one of them.
		maps.DeleteFunc(makes, func(name string, _ float64) bool {
			return slices.Contains(l.cfg.Trust.Instruments, name)
		})
		names := slices.SortedFunc(maps.Keys(makes), func(a, b string) int {
			return cmp.Or(cmp.Compare(makes[b]*all, makes[a]*all), strings.Compare(a, b))
		})
		few := names[:min(max(1, (max(len(names), people)+9)/10), len(names))]
		if !l.shows(c, func(o *recent) bool { return slices.Contains(few, o.source) }) {
			return false
		}
	}
	return true
}

// showsWithout reports whether a change shows without each person or item that a name gives. The
// names of instruments are left out.
func (l *Learner) showsWithout(c *change, name func(*recent) string) bool {
	times := make(map[string]int)
	for i := range c.outcomes {
		times[name(&c.outcomes[i])]++
	}
	names := slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(times[b]-times[a], strings.Compare(a, b)) // who may decide comes first
	})
	return !slices.ContainsFunc(names, func(without string) bool {
		return !slices.Contains(l.cfg.Trust.Instruments, without) &&
			!l.shows(c, func(o *recent) bool { return name(o) == without })
	})
}

// shows reports whether a change shows without some of its outcomes.
func (l *Learner) shows(c *change, without func(*recent) bool) bool {
	_, found := l.cfg.change.without().find(c.outcomes, func(o *recent) float64 {
		if without(o) {
			return 0
		}
		return c.kept(o)
	})
	return found
}

// keptOf returns the part of each outcome that counts within the limits on people, and whether
// there are limits.
func (l *Learner) keptOf(
	all []recent, now evidence.Instant,
) (kept func(*recent) float64, limited bool) {
	given := fair.NewGiven(len(l.cfg.Arms))
	for _, o := range all {
		given.Add(o.arm, o.source, o.mass, o.reward, o.at)
	}
	of := fair.Kept(l.cfg.Trust, given.Arms, now)
	if of == nil {
		return func(*recent) float64 { return 1 }, false
	}
	return func(o *recent) float64 { return of(o.arm, o.source) }, true
}

// restartIfChanged tests an arm after an outcome of an item, and leaves out what happened before a
// change: of all arms of the item, or of all items if the arm changed for several.
func (l *Learner) restartIfChanged(
	ctx context.Context, s *segment, item string, arm int, now time.Time,
) error {
	// Most outcomes end here, without a look at the store.
	all := s.due(l.cfg.change, arm)
	if len(all) == 0 {
		return nil
	}
	c := l.changed(all, item, arm, evidence.InstantOf(now))
	if c == nil {
		return nil
	}
	cells, err := l.toRestart(ctx, s, c)
	if err == nil && len(cells) > 0 {
		err = l.restart(ctx, s, c, cells)
	}
	// Without history nothing can restart. After another failure the change is found again.
	if err != nil && !errors.Is(err, evidence.ErrForgotten) {
		return err
	}
	// Also what is not restarted is not found again: another process or a reset came first.
	s.drop(c.item, c.all, c.outcomes[c.at].at)
	return nil
}

// toRestart returns the cells that a change restarts, or none if the store has fewer than half of
// the outcomes of the arm that this process counted: they were reset or restarted elsewhere. The
// same holds if the change rests on few of the people whose evidence would go: the process may have
// counted outcomes of these few alone. These people are counted up to as many as a window can have.
// A change of more than mostRestarted cells restarts none, because the commits would take longer
// than the caller of an outcome can wait.
func (l *Learner) toRestart(ctx context.Context, s *segment, c *change) ([]evidence.Cell, error) {
	var cells []evidence.Cell
	outcomes, people := uint64(0), make(map[string]bool)
	add := func(parts []evidence.Part) {
		if n := countOf(parts); n > 0 && l.isArm(ArmID(parts[0].Cell.Name)) {
			cells = append(cells, parts[0].Cell)
			for i := range parts {
				who := parts[i].Source
				if len(people) < changeWindow && !slices.Contains(l.cfg.Trust.Instruments, who) {
					people[who] = true
				}
			}
			if parts[0].Cell.Name == string(l.cfg.Arms[c.arm].ID) {
				outcomes += n
			}
		}
	}
	if !c.all {
		parts, err := l.readCells(ctx, l.armCells(s.space, c.item)...)
		if err != nil {
			return nil, err
		}
		for len(parts) > 0 {
			of := leading(parts, parts[0].Cell)
			add(of)
			parts = parts[len(of):]
		}
	} else {
		q := store.CellQuery{Kind: l.kinds.arm, Scope: s.space.scope}
		for parts, err := range listed(l.cfg.Store.List(ctx, q)) {
			if err != nil {
				return nil, err
			}
			if add(parts); len(cells) > mostRestarted {
				return nil, nil
			}
		}
	}
	if 2*outcomes < uint64(len(c.outcomes)) ||
		len(people) > fewPeople && !l.showsWithoutFew(c, len(people)) {
		return nil, nil
	}
	return cells, nil
}

// restart leaves out of cells what happened before a change. A restart is an entry of the store's
// audit, an event, and what is dropped with it: the counts of sessions and the copies, which hold
// evidence from before the change. These are dropped by a job in the first commit only, because
// they do not belong to single cells. The id of a batch is derived from the change, so two
// processes that find the same change restart once.
func (l *Learner) restart(ctx context.Context, s *segment, c *change, cells []evidence.Cell) error {
	at, of := c.outcomes[c.at].at.Time(), l.cfg.Arms[c.arm].ID
	reason := fmt.Sprintf("the rewards of %s changed from %.2f to %.2f on average", of,
		c.mean(c.outcomes[:c.at]), c.mean(c.outcomes[c.at:]))
	now := l.cfg.Now()
	job := store.Job{At: now, Reset: []store.Selection{
		{Kind: l.kinds.sessions, Scope: s.space.scope, Item: c.item},
	}}
	if l.specializes() {
		job.Reset = append(job.Reset,
			store.Selection{Kind: l.kinds.given, Scope: s.space.scope, Item: c.item})
	}
	for some := range slices.Chunk(cells, restartedAtOnce) {
		b := store.Batch{
			ID: derivedID("restart", l.cfg.Name, s.space.scope, c.item, string(of),
				at.Format(time.RFC3339Nano), some[0].Item, some[0].Name),
			Policies: l.policies,
		}
		for _, cell := range some {
			b.Restart = append(b.Restart, store.Restart{Cell: cell, At: at})
		}
		e := LearnerEvent{Type: restarted, Item: c.item, At: now, Reason: reason}
		done, err := l.forget(ctx, s, b, job, e, "heed", ".restart")
		if err != nil || !done {
			return err
		}
		job.Reset = nil
	}
	if l.watch != nil {
		l.watch.Tell(ctx, heed.Changed{
			What: "inverted", Component: l.watch.Name(), At: now, Subject: c.item, Reason: reason,
		})
	}
	return nil
}

// mean is the mean reward of outcomes, weighed by what counts of their masses. Without outcomes it
// is 0.5.
func (c *change) mean(outcomes []recent) float64 {
	var sums evidence.Sums
	for i := range outcomes {
		mass := c.kept(&outcomes[i]) * outcomes[i].mass
		sums.Mass += mass
		sums.Reward += mass * outcomes[i].reward
	}
	return sums.Mean()
}

// massOf is how much evidence an observation is before it fades.
func massOf(o *evidence.Observation) float64 { return o.Weight * cmp.Or(o.Share, 1) }
