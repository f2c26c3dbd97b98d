package enginetest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// TestFeedbackAgreesWithMemory lives through months of decisions, reviews, orders and sweeps over
// memory and over each database, which is opened again in between: all are told the same, and the
// same can be read at the end.
func TestFeedbackAgreesWithMemory(t *testing.T) {
	skipRaced(t)
	lived := func(t *testing.T, open func(now func() time.Time) store.Store) []string {
		o := &office{t: t, now: time.Date(2026, 3, 14, 15, 9, 26, 123456000, time.UTC),
			dice: rand.New(rand.NewPCG(12, 6)), open: open}
		return o.works()
	}
	memory := &memstore.Store{}
	want := lived(t, func(func() time.Time) store.Store { return memory })
	for _, part := range []string{"APPROVED", "ACTIVE", "RETIRED", "REJECTED", "EXPIRED", "SUPERSEDED", "ambiguous", `"measured"`, "feedback.erase"} {
		assert.Contains(t, fmt.Sprint(want), part, "the months have no %s", part)
	}
	onEach(t, func(t *testing.T, at place) {
		got := lived(t, func(now func() time.Time) store.Store {
			st, err := sqlstore.Open(ctx, at.handle(t), at.dialect, sqlstore.Config{Now: now})
			require.NoError(t, err)
			return st
		})
		for i := range want {
			require.Equal(t, want[i], got[i], "step %d", i)
		}
	})
}

// An office is where people review what an agent makes.
type office struct {
	*feedback.Service
	t    *testing.T
	now  time.Time
	ids  int
	dice *rand.Rand
	open func(now func() time.Time) store.Store
}

func (o *office) reopen() {
	clock := func() time.Time { return o.now }
	var err error
	o.Service, err = feedback.New(ctx, feedback.Config{
		Store: o.open(clock), Now: clock, NewID: func() string {
			o.ids++
			return fmt.Sprint("id-",
				o.ids)
		},
	})
	require.NoError(o.t, err)
}

func (o *office) works() (told []string) {
	said := []string{"the summary is too long", "the summary is not too long", "tests are missing",
		"name the owner of \"each\" risk, é"}
	people := []string{"ann", "bob", "cleo", "dan"}
	one := func(of []string) string { return of[o.dice.IntN(len(of))] }
	steps := 120
	if long {
		steps = 400
	}
	for i := range steps {
		if i%50 == 0 {
			o.reopen()
		}
		o.now = o.now.Add(time.Duration(1+o.dice.IntN(6)) * time.Hour)
		rules := o.Rules()
		proposals, _, err := rules.Proposals(ctx, feedback.ProposalQuery{Status: feedback.StatePending},
			0)
		require.NoError(o.t, err)
		active, err := rules.List(ctx, feedback.RuleQuery{})
		require.NoError(o.t, err)
		var got answer
		switch n := o.dice.IntN(20); {
		case n < 9:
			f := feedback.Feedback{
				ID: fmt.Sprint("d", i), Gate: "g", Agent: one([]string{"a", "b"}),
				Decision: feedback.ApprovedWithChanges, Reviewer: one(people),
				At: o.now, Summary: one(said), Tags: []string{"style"},
				Duration: time.Minute + time.Nanosecond,
			}
			if o.dice.IntN(3) == 0 {
				f.Decision, f.Summary = feedback.Approved, ""
			}
			_, err = o.Record(ctx, f)
			require.NoError(o.t, err)
			got.value, err = o.Evaluate(ctx, f.ID)
		case n < 14 && len(proposals) > 0:
			p := proposals[o.dice.IntN(len(proposals))]
			decision := feedback.Approved
			if o.dice.IntN(6) == 0 {
				decision = feedback.Rejected
			}
			review := feedback.Review{
				Proposal: p.ID, Decision: decision, Actor: one(people), Reason: "so it is", Hash: p.Hash(),
			}
			for _, c := range p.Conflicts {
				review.Override = append(review.Override, c.ID)
			}
			got.value, err = rules.Review(ctx, review)
		case n == 14 && len(active) > 0:
			r, by := active[o.dice.IntN(len(active))], one(people)
			if o.dice.IntN(3) == 0 {
				got.value, err = rules.Move(ctx, feedback.Act{ID: r.ID, Actor: by, Reason: "x"},
					feedback.StateRetired)
				break
			}
			r.Change, r.Of = []string{"RESTORE", "PIN"}[o.dice.IntN(2)], r.ID
			got.value, err = rules.Propose(ctx, feedback.Submission{Draft: r.Draft, Actor: by,
				Reason: "x"})
		case n == 15:
			d := feedback.Draft{Text: one(said), Agents: []string{"a", "b", "c", "d",
				"e"}[:1+4*o.dice.IntN(2)]}
			got.value, err = rules.Propose(ctx, feedback.Submission{Draft: d, Actor: one(people),
				Reason: "x"})
		case n == 16 && i > 20:
			err = o.Erase(ctx, feedback.Act{ID: fmt.Sprint("d", o.dice.IntN(i)), Actor: one(people),
				Reason: "my right"})
		case n == 17:
			got.value, err = rules.Consolidate(ctx)
		case n == 18 && len(proposals) > 0:
			p := proposals[o.dice.IntN(len(proposals))]
			d := p.Draft
			d.Text += ", please"
			got.value, err = rules.Propose(ctx, feedback.Submission{Draft: d, Replaces: p.ID,
				Actor: one(people), Reason: "x"})
		default:
			err = o.Sweep(ctx, time.Time{})
		}
		told = append(told, got.told(o.t, err))
	}
	o.now = o.now.Add(40 * 24 * time.Hour)
	told = append(told, answer{}.told(o.t, o.Sweep(ctx, time.Time{})))
	files, err := o.Tree(ctx)
	require.NoError(o.t, err)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		told = append(told, name+" "+string(files[name]))
	}
	for entry, err := range store.AuditEntries(ctx, o.Config().Store, store.Query{}) {
		told = append(told, answer{entry}.told(o.t, err))
	}
	for _, agent := range []string{"a", "b", "e"} {
		in, err := o.Rules().Inject(ctx, agent, "base", "")
		told = append(told, answer{in}.told(o.t, err))
	}
	return told
}

// answer is what a call returns.
type answer struct{ value any }

func (a answer) told(t *testing.T, err error) string {
	text, marshal := json.Marshal(a.value)
	require.NoError(t, marshal)
	if err != nil {
		return fmt.Sprint(string(text), " ", err)
	}
	return string(text)
}
