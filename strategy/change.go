package strategy

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// ChangeTest tests whether an arm's rewards for an item have changed. It uses the outcomes in the
// store's history; without history, no change is ever found. After a change, outcomes from before
// it no longer count for any arm of the item, so all arms are tried again. The store's audit log
// records the change.
//
// For each place at which the outcomes can be cut in two, the test compares their probability with
// one rate and with two. It is the generalised likelihood ratio for Bernoulli rewards with the
// threshold ln(3·n^1.5/FalseAlarms) (Besson, Kaufmann, Maillard and Seznec 2022), which also bounds
// other rewards in [0, 1]. If more than two people gave evidence on the item, the evidence of each
// counts within the limits of Config.Trust, and a change must show without each person, so that no
// one person can make one up. The test finds changes of arms that are in use. Only a learner whose
// evidence fades notices that an arm which is never chosen became better: see Config.HalfLife.
type ChangeTest struct {
	// FalseAlarms is roughly the probability that a change is ever reported for an arm that never
	// changes, in (0, 0.5]. 0.001 is a good value. 0: no test. Set it if arms may change at once, for
	// example when a provider replaces a model.
	FalseAlarms float64
	// every is how many outcomes of an item's arm lie between two tests. Tests set another than 5.
	every int
}

// changeWindow bounds the outcomes of a test, and so its cost.
const changeWindow = 200

func (c ChangeTest) withDefaults() ChangeTest {
	if c.FalseAlarms > 0 {
		c.every = cmp.Or(c.every, 5)
	}
	return c
}

func (c ChangeTest) validate() error {
	var found valid.Faults
	found.Check(c.FalseAlarms >= 0 && c.FalseAlarms <= 0.5, "FalseAlarms", c.FalseAlarms,
		"must be in (0, 0.5], or 0 for no test")
	return found.Err()
}

// due reports whether to test an arm with this number of outcomes now.
func (c ChangeTest) due(outcomes uint64) bool {
	return c.FalseAlarms > 0 && outcomes > 1 && outcomes%uint64(c.every) == 0
}

// find returns where the rewards have changed most, if they have. The oldest outcome comes first.
func (c ChangeTest) find(outcomes []evidence.Observation) (at int, found bool) {
	return c.findIn(outcomes, func(*evidence.Observation) float64 { return 1 })
}

// findIn does what find does, with which part of each outcome counts.
func (c ChangeTest) findIn(
	outcomes []evidence.Observation, kept func(*evidence.Observation) float64,
) (at int, found bool) {
	var n, mass, reward float64
	masses := make([]float64, len(outcomes))
	for i := range outcomes {
		part := kept(&outcomes[i])
		masses[i] = massOf(&outcomes[i]) * part
		n += part
		mass += masses[i]
		reward += masses[i] * outcomes[i].Reward
	}
	if n <= 1 {
		return 0, false
	}
	mean := reward / mass
	most := math.Log(3 * n * math.Sqrt(n) / c.FalseAlarms)
	var massBefore, rewardBefore float64
	for i := range len(outcomes) - 1 {
		massBefore += masses[i]
		rewardBefore += masses[i] * outcomes[i].Reward
		if massBefore <= 0 || massBefore >= mass {
			continue // all that counts is on one side
		}
		// Weights count relative to each other: all together they are n outcomes.
		ratio := n / mass * (massBefore*divergence(rewardBefore/massBefore, mean) +
			(mass-massBefore)*divergence((reward-rewardBefore)/(mass-massBefore), mean))
		if ratio > most {
			at, most, found = i+1, ratio, true
		}
	}
	return at, found
}

// findChange returns where the rewards of an arm have changed most, if they have, and if they have
// without each person.
func (l *Learner) findChange(
	outcomes []evidence.Observation, read *reading, arm int, now evidence.Instant,
) (at int, found bool) {
	kept := l.cfg.Trust.Kept(read.arms, arm, now)
	if kept == nil {
		return l.cfg.Change.find(outcomes)
	}
	part := func(o *evidence.Observation) float64 { return kept(o.Source) }
	if at, found = l.cfg.Change.findIn(outcomes, part); !found {
		return 0, false
	}
	without := make(map[string]bool)
	for i := range outcomes {
		source := outcomes[i].Source
		if without[source] || slices.Contains(l.cfg.Trust.Instruments, source) {
			continue
		}
		without[source] = true
		_, found := l.cfg.Change.findIn(outcomes, func(o *evidence.Observation) float64 {
			if o.Source == source {
				return 0
			}
			return part(o)
		})
		if !found {
			return 0, false
		}
	}
	return at, true
}

// divergence is the Kullback-Leibler divergence of a Bernoulli variable with rate q from one with
// rate p.
func divergence(p, q float64) float64 {
	var d float64
	if p > 0 {
		d += p * math.Log(p/q)
	}
	if p < 1 {
		d += (1 - p) * math.Log((1-p)/(1-q))
	}
	return d
}

// restartIfChanged tests an arm of an item, and leaves out what happened before a change.
func (l *Learner) restartIfChanged(
	ctx context.Context, s *segment, item string, arm int, now time.Time,
) error {
	read, err := l.read(store.Reading(ctx, l.cfg.Store), s, item, now)
	if err != nil {
		return err
	}
	of := l.cfg.Arms[arm].ID
	outcomes, err := l.counted(ctx, s.space.arm(item, of), read.counts[arm])
	if err != nil || len(outcomes) < 2 {
		return err
	}
	cut, found := l.findChange(outcomes, read, arm, evidence.InstantOf(now))
	if !found {
		return nil
	}
	at := outcomes[cut].At
	reason := fmt.Sprintf("the rewards of %s changed from %.2f to %.2f on average", of,
		meanReward(outcomes[:cut]), meanReward(outcomes[cut:]))
	b := store.Batch{
		ID: derivedID("restart", l.cfg.Name, s.space.scope, item, string(of),
			at.Format(time.RFC3339Nano)),
		Policies: l.policies,
	}
	job := store.Job{At: now, Reset: []store.Selection{
		{Kind: l.kinds.sessions, Scope: s.space.scope, Item: item},
	}}
	for i, n := range read.counts {
		if n > 0 {
			cell := s.space.arm(item, l.cfg.Arms[i].ID)
			b.Restart = append(b.Restart, store.Restart{Cell: cell, At: at})
		}
	}
	if read.Given != nil {
		given := store.Selection{Kind: l.kinds.given, Scope: s.space.scope, Item: item}
		job.Reset = append(job.Reset, given)
	}
	e := LearnerEvent{Type: restarted, Item: item, At: now, Reason: reason}
	done, err := l.forget(ctx, s, b, job, e, "heed", ".restart")
	if done && l.watch != nil {
		l.watch.Tell(ctx, heed.Inverted{
			Component: l.watch.Name(), At: now, Subject: item, Reason: reason,
		})
	}
	return err
}

// counted returns the last of the n outcomes of a cell that count, the oldest first.
func (l *Learner) counted(ctx context.Context, cell evidence.Cell,
	n uint64) (outcomes []evidence.Observation, err error) {
	for o, err := range l.cfg.Store.History(ctx, cell) {
		if err != nil {
			return nil, err
		}
		if uint64(len(outcomes)) == min(n, changeWindow) {
			break
		}
		if o.Weight > 0 {
			outcomes = append(outcomes, o)
		}
	}
	slices.Reverse(outcomes)
	return outcomes, nil
}

func meanReward(outcomes []evidence.Observation) float64 {
	var sums evidence.Sums
	for _, o := range outcomes {
		sums.Mass += massOf(&o)
		sums.Reward += massOf(&o) * o.Reward
	}
	return sums.Mean()
}

// massOf is how much evidence an observation is before it fades.
func massOf(o *evidence.Observation) float64 { return o.Weight * cmp.Or(o.Share, 1) }
