package loop

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/store"
)

// How the comparison with and without learning is counted. A session is drawn into the control
// group by a keyed hash, so that it stays there. Each change of an answer's success adds one
// observation to a few sums, in the commit of the statement. [ReadGain] reads the sums, and not the
// answers, so it takes the same time for a million answers.

// The sums of a [Gain] are cells of one kind. A success is in three of them, and without a control
// group only in the cell of its day:
//
//	scope   item            name   channel
//	pairs   share           side   group of the session
//	days                    side   day of the answer
//	parts   domain          side   arm
//
// The name of a success that was taken back ends in minus, so that all sums only grow and the
// history need not be read. The cells of days also count answers and what they took.
const (
	pairs = "pairs"
	days  = "days"
	parts = "parts"
	minus = "-"

	ofAnswers, ofCost, ofSeconds = " answers", " cost", " seconds"
)

// The sides of the comparison.
const (
	alone   = "alone" // there was no control group
	learned = "learned"
	control = "control"
)

// groups is into how many groups sessions are drawn. Their sums show how much answers of one
// session have in common.
const groups = 64

// gainKind returns the kind of the cells of a Gain.
func gainKind(agent string) string { return agent + ".gain" }

// gainPolicy keeps the sums of channels apart, and lets them never fade: a comparison is of all
// answers.
var gainPolicy = evidence.Policy{ByOrigin: true}

// openTrial reads the key by which sessions are drawn. The first agent of the name stores it.
// Agents of the same name in other processes read it, so that a session is on one side everywhere.
// The key stays if Control changes, so a greater share only adds sessions to the group.
func (a *Agent) openTrial(ctx context.Context, source rand.Source) error {
	if a.cfg.Control == 0 {
		return nil
	}
	if source == nil {
		source = rand.NewPCG(rand.Uint64(), rand.Uint64()) //nolint:forbidigo // no Seed was given
	}
	a.trialKey = binary.BigEndian.AppendUint64(
		binary.BigEndian.AppendUint64(nil, source.Uint64()), source.Uint64())
	return settings.Open(ctx, a.cfg.Store, a.cfg.Testing.Now(), settings.Component{
		Name:   "loop/" + a.cfg.Name + "/control",
		Fields: []settings.Field{{Name: "Key", Value: &a.trialKey, Fixed: true}},
	})
}

// trial draws whether an event is answered without learning. All events of a session are drawn
// together; without a session, all events of a person. It is not stored with the session: the same
// key gives the same draw.
func (a *Agent) trial(e *Event) answer.Side {
	t := answer.Side{Share: a.cfg.Control}
	if t.Share == 0 {
		return t
	}
	mac := hmac.New(sha256.New, a.trialKey)
	_, _ = fmt.Fprintf(mac, "%q %q", a.tenant, cmp.Or(e.Session, e.Person, e.ID))
	sum := mac.Sum(nil)
	t.Control = float64(binary.BigEndian.Uint64(sum)>>11)/(1<<53) < t.Share
	t.Group = int(sum[8]) % groups
	return t
}

// always returns the arm that answers without learning.
func (a *Agent) always(notes []Note) Arm {
	if a.learner != nil && (len(notes) > 0 || !aboutNotes(a.arms)) {
		if arm, known := a.arm(string(a.learner.Config().Default)); known {
			return arm
		}
	}
	return Arm{}
}

// side returns the name of the side that an answer is on.
func side(t *answer.Side) string {
	switch {
	case t.Share == 0:
		return alone
	case t.Control:
		return control
	default:
		return learned
	}
}

// gained is one observation of the comparison.
func (a *Agent) gained(scope, item, name, channel string) evidence.Observation {
	return evidence.Observation{
		Cell:    evidence.Cell{Kind: gainKind(a.cfg.Name), Scope: scope, Item: item, Name: name},
		Channel: channel, Weight: 1, At: a.cfg.Testing.Now(),
	}
}

// countTaken counts an answer and what it took, if there is something to compare that with. Cost
// and time are the weights of observations, because only their sums are needed.
func (a *Agent) countTaken(tx *store.Tx, r *answer.Answer, spent answer.Spent) {
	if r.Reply.Side.Share == 0 {
		return
	}
	day, name := r.At.UTC().Format(time.DateOnly), side(r.Reply.Side)
	one := a.gained(days, "", name+ofAnswers, day)
	if r.Reply.Path == string(decision.Model) {
		one.Reward = 1
	}
	all := []evidence.Observation{one}
	for _, of := range [...]struct {
		name   string
		amount float64
	}{{ofCost, spent.Cost}, {ofSeconds, spent.Latency.Seconds()}} {
		if of.amount > 0 {
			one := a.gained(days, "", name+of.name, day)
			one.Weight = min(of.amount, evidence.MaxWeight)
			all = append(all, one)
		}
	}
	a.putGained(tx, r, all...)
}

// countGain counts what an answer was worth, in place of what was counted of it before. A change
// takes the former success back by an observation under a name that ends in minus.
func (a *Agent) countGain(tx *store.Tx, r *answer.Answer) {
	if r.Reply.Side == nil {
		return
	}
	t := *r.Reply.Side
	worth, channel, known := answers.WorthOf(r)
	if channel == string(answers.Silence) && a.cfg.Choosing.ArmsIgnoreSilence {
		known = false // for heuristics' answers as well: both sides are measured alike
	}
	before, now := t.Counted, (worth+1)/2
	// Most later statements leave the success as it is. Then there is no observation.
	if known == (before != nil) && (!known || *before == now) {
		return
	}
	if t.Counted = nil; known {
		t.Counted = &now
	}
	// The number of the change is part of the observation's id, because an id counts once.
	t.Changes++
	own(r).Side = &t
	arm := r.Reply.Arm
	if r.Choice != nil {
		arm = string(r.Choice.Arm)
	}
	var all []evidence.Observation
	add := func(success *float64, sign string) {
		if success == nil {
			return
		}
		name := side(&t) + sign
		of := []evidence.Observation{a.gained(days, "", name, r.At.UTC().Format(time.DateOnly))}
		if t.Share > 0 {
			of = append(of, a.gained(parts, r.Domain, name, arm),
				a.gained(pairs, shareText(t.Share), name, strconv.Itoa(t.Group)))
		}
		for i := range of {
			of[i].Reward = *success
		}
		all = append(all, of...)
	}
	add(before, minus)
	add(t.Counted, "")
	a.putGained(tx, r, all...)
}

// shareText writes the share of the control group. Answers under different shares are compared
// apart, because the kind of sessions in the group may have changed with it.
func shareText(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// reportGain reports to the observer what learning gains, and once that it harms. Each sweep
// reports the comparison; the harm is reported when the verdict becomes Harms.
func (a *Agent) reportGain(ctx context.Context) error {
	if a.watch == nil || a.cfg.Control == 0 {
		return nil
	}
	g, err := a.Gain(ctx)
	if err != nil || g.Control.Outcomes < 0.5 || g.Learned.Outcomes < 0.5 {
		return err
	}
	now := a.cfg.Testing.Now()
	a.watch.Tell(ctx, heed.Compared{
		Component: a.watch.Name(), At: now, Learned: g.Learned.Success, Control: g.Control.Success,
		Low: g.Low, High: g.High,
	})
	if harms := g.Verdict() == Harms; a.harms.Swap(harms) != harms && harms {
		a.watch.Tell(ctx, heed.Changed{
			What: "harmful", Component: a.watch.Name(), At: now, Subject: "learning", Reason: fmt.Sprintf(
				"answers with learning succeed less often, by %.3f to %.3f", -g.High, -g.Low),
		})
	}
	return nil
}

// putGained adds observations about an answer to a step.
func (a *Agent) putGained(tx *store.Tx, r *answer.Answer, all ...evidence.Observation) {
	id := store.IDOf("gain", a.cfg.Name, r.ID, strconv.Itoa(r.Reply.Side.Changes))
	for i := range all {
		all[i].ID = id
	}
	tx.Add(store.Batch{
		Policies: map[string]evidence.Policy{gainKind(a.cfg.Name): gainPolicy}, Observations: all,
	})
}
