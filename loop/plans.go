package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// The plans that the store keeps. The oldest go first.
const (
	planFor   = time.Hour
	mostPlans = 10_000
)

// KeepPlan keeps a plan for an hour. Call it in a server if the server's clients ask the model: any
// process on the store finds the plan by [Agent.KeptPlan] when the answer comes. caller is the
// person who asked for the plan, and only this person gets it. A later plan of the same event
// replaces it. Texts are kept as Redact leaves them. If the store can't be reached, only this
// process has the plan, among its latest, and that is no error. While the store is away, this
// process also has a plan of a person who was forgotten, until its hour is over.
func (a *Agent) KeepPlan(ctx context.Context, caller string, p Plan) error {
	limited, cancel := patient(ctx, storeTimeout)
	defer cancel()
	row, err := a.planRowOf(caller, p)
	if err != nil {
		return wrap("keep plan", err)
	}
	text, err := json.Marshal(row) // a copy, because the caller may change the plan
	if err != nil {
		return wrap("keep plan", err)
	}
	a.prepared.Lock()
	a.prepared.put(planID(caller, p.Event.ID), text, 1+len(text)/partBytes)
	a.prepared.Unlock()
	err = store.Do(limited, a.cfg.Store, func(tx *store.Tx) error {
		before, err := a.planned.In(tx, planID(caller, p.Event.ID))
		if err == nil {
			a.planned.Put(tx, row, before.Revision)
		}
		return err
	})
	if a.down(ctx, limited, err) != nil {
		return nil
	}
	return wrap("keep plan", err)
}

// KeptPlan returns the plan of an event that was kept for a caller, for [Agent.Answered]. It has
// what Answered needs, and no Heard and Contents. Without a plan, the error is a
// [heed.ErrNotFound].
func (a *Agent) KeptPlan(ctx context.Context, caller, event string) (Plan, error) {
	limited, cancel := patient(ctx, storeTimeout)
	defer cancel()
	row, err := a.planned.In(store.Reading(limited, a.cfg.Store), planID(caller, event))
	if err == nil && row.Revision > 0 && row.Value.By == caller && a.fresh(&row.Value) {
		return a.planOf(&row.Value), nil
	}
	if err == nil {
		err = fmt.Errorf("no plan of %.40q: %w", event, heed.ErrNotFound)
	}
	down := a.down(ctx, limited, err) // before the lock, which it does not need
	a.prepared.Lock()
	defer a.prepared.Unlock()
	if text, ok := a.prepared.get(planID(caller, event)); ok && down != nil {
		var r planRow
		if json.Unmarshal(text, &r) == nil && a.fresh(&r) {
			return a.planOf(&r), nil
		}
	}
	return Plan{}, wrap("kept plan", cmp.Or(down, err))
}

// A planRow is a plan as it is kept: what [Agent.Answered] needs.
type planRow struct {
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Plan Plan      `json:"plan"`
	keptPlan
}

// A keptPlan is what a [Plan] has for the loop alone, and what is kept of that.
type keptPlan struct {
	Item string       `json:"item,omitempty"` // the cell of the event's text: see query
	Ask  decision.Ask `json:"ask"`            // what the model is asked
	// Unchecked reports that no rule has a check, so the answer needs no step to be compared with
	// rules.
	Unchecked bool        `json:"unchecked,omitempty"`
	Frozen    bool        `json:"frozen,omitempty"` // see Agent.Freeze
	Side      answer.Side `json:"side,omitzero"`    // of the comparison that the answer is on
	// Overruled are heuristics, each with the rule that it would break, and how.
	Overruled map[string]string `json:"overruled,omitempty"`
}

// planID returns the id of a plan's record. It contains the caller, so that another caller's plan
// of the same event is another record.
func planID(caller, event string) string { return store.IDOf("plan", caller, event) }

// plansOf returns the kind of the plans of an agent. To forget a person removes the plans for
// them.
func plansOf(name string) store.View[planRow] {
	return store.View[planRow]{
		Kind: store.Kind{
			Name: name + ".plan", Limits: store.Limits{For: planFor, Most: mostPlans},
			Caused: []string{"by", "plan.Event.Person"}, Whole: true,
		},
		Place: func(r planRow) (string, time.Time, []string) {
			keys := stores.PersonKeys(r.By, r.Plan.Event.Person)
			return planID(r.By, r.Plan.Event.ID), r.At, keys
		},
	}
}

// planRowOf returns a plan as it may be stored. The prompt is in Ask. What only the process has,
// such as functions and models, is left out, and so is what the client has already, such as the
// history.
func (a *Agent) planRowOf(caller string, p Plan) (planRow, error) {
	p.Event.History, p.Event.Vector, p.Event.OnChunk = nil, nil, nil
	p.Heard, p.Contents = nil, nil
	p.Prompt, p.Degraded, p.Arm.Model, p.Arm.Brief = "", nil, nil, nil
	r := planRow{By: caller, At: a.cfg.Testing.Now(), keptPlan: p.kept}
	err := cmp.Or(valid.Texts(evidence.MaxText, "caller", caller),
		valid.Names(evidence.MaxText, "Plan.Event.ID", p.Event.ID),
		a.redact(&p.Event.Text, &p.System, &r.Ask.System, &r.Ask.Prompt))
	r.Plan = p
	return r, err
}

// fresh reports whether a plan may still be used.
func (a *Agent) fresh(r *planRow) bool { return a.cfg.Testing.Now().Sub(r.At) < planFor }

// planOf returns the plan that is kept in a row, with the arm as it is configured here.
func (a *Agent) planOf(r *planRow) Plan {
	p := r.Plan
	p.Prompt, p.kept = r.Ask.Prompt, r.keptPlan
	if arm, known := a.arm(p.Arm.ID); known {
		p.Arm = arm
	}
	return p
}
