package enginetest_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// triage is the learner of one process over a store.
func triage(ctx context.Context, st store.Store) (*strategy.Learner, error) {
	ids := byte(0)
	return strategy.New(ctx, strategy.Config{
		Store: st, Seed: rand.NewPCG(1, 2), Now: func() time.Time { return ticketAt },
		Topic: "heed.strategy",
		NewID: func() strategy.ChoiceID { ids++; return strategy.ChoiceID{15: ids} },
		Arms: []strategy.Arm{{ID: "short", Parameters: []strategy.Parameter{{Name: "n",
			Values: []string{"1", "2"}}}}, {ID: "long"}},
	})
}

var ticketAt = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

var ofTicket = strategy.Query{Session: "ticket 7", Item: "billing", Arms: []strategy.ArmID{"short"}}

func resolved(ctx context.Context, st store.Store) error {
	l, err := triage(ctx, st)
	if err != nil {
		return err
	}
	c, err := l.Select(ctx, ofTicket)
	if err == nil {
		_, err = l.Observe(ctx, strategy.Outcome{Choice: c, ID: "resolved", Value: 1, Confidence: 1,
			Source: "ann"})
	}
	return err
}

// correctedBy is a call of a process that knows the ticket alone.
func correctedBy(do func(context.Context, *strategy.Learner, strategy.Choice) error) func(
	context.Context, store.Store) error {
	return func(ctx context.Context, st store.Store) error {
		l, err := triage(ctx, st)
		if err != nil {
			return err
		}
		found, err := l.FindSession(ctx, "ticket 7", ticketAt)
		if err != nil {
			return err
		}
		return do(ctx, l, found[0].Choice)
	}
}

func reopened(ctx context.Context, l *strategy.Learner, c strategy.Choice) error {
	_, err := l.Revise(ctx, []string{"resolved"},
		[]strategy.Outcome{{Choice: c, ID: "open again", Value: -1, Confidence: 1, Source: "bob"}},
		"bob")
	return err
}

// TestATicketIsOpenAgain on each backend and in memory, by another process than that which has
// chosen.
func TestATicketIsOpenAgain(t *testing.T) {
	now := func() time.Time { return ticketAt }
	check := func(t *testing.T, first, second store.Store) {
		require.NoError(t, resolved(ctx, first))
		open, err := triage(ctx, first)
		require.NoError(t, err)
		for range 2 { // it is delivered again
			require.NoError(t, correctedBy(reopened)(ctx, second))
		}
		found, err := open.Find(ctx, "ticket 7", "billing", ticketAt)
		require.NoError(t, err)
		assert.Equal(t, &strategy.Result{ID: "open again", Value: -1, Confidence: 1, Source: "bob",
			At: ticketAt}, found.Result)
		did, err := open.Observe(ctx, strategy.Outcome{Choice: found.Choice, ID: "resolved", Value: 1,
			Confidence: 1, Source: "ann"})
		require.NoError(t, err)
		assert.Equal(t, strategy.Duplicate, did)
		for _, kind := range []string{"strategy.arm", "strategy.parameter"} {
			for p, err := range first.List(ctx, store.CellQuery{Kind: kind, Scope: `""/`}) {
				require.NoError(t, err)
				assert.Equal(t, evidence.Sums{Mass: 1},
					evidence.Sums{Mass: p.Tally.Mass, Reward: p.Tally.Reward}, p.Cell)
			}
		}
		assert.Len(t, evidenceOf(t, open, ofTicket), 1)
		entries := 0
		for e, err := range store.AuditEntries(ctx, first, store.Query{}) {
			require.NoError(t, err)
			assert.Equal(t, "strategy.revise", e.Action)
			entries++
		}
		assert.Equal(t, 1, entries)
	}
	t.Run("memory", func(t *testing.T) {
		st, err := memstore.New(memstore.Config{Now: now})
		require.NoError(t, err)
		check(t, st, st)
	})
	onEach(t, func(t *testing.T, at place) {
		cfg := sqlstore.Config{Now: now}
		check(t, at.store(t, cfg), at.store(t, cfg))
	})
}

// TestRetractingWhatAResetHasTaken, after the cell's history has lost as much as it holds, is the
// same on each backend and in memory.
func TestRetractingWhatAResetHasTaken(t *testing.T) {
	now := func() time.Time { return ticketAt }
	for _, expunge := range []bool{false, true} {
		check := func(t *testing.T, st store.Store) error {
			seen := func(id, source string) store.Batch {
				o := observe(id, ticketAt)
				o.Source = source
				return store.Batch{Observations: []evidence.Observation{o}}
			}
			commit := func(b store.Batch) {
				_, err := st.Commit(ctx, b)
				require.NoError(t, err)
			}
			commit(seen("o1", "mallory"))
			if c := observe("o1", ticketAt).Cell; expunge {
				commit(store.Batch{Expunge: []store.SourceOf{{Cell: c, Source: "mallory"}}})
			} else {
				commit(store.Batch{Reset: []evidence.Cell{c}})
			}
			for _, id := range []string{"o2", "o3", "o4", "o5"} {
				commit(seen(id, "ann"))
			}
			_, err := st.Commit(ctx, store.Batch{Retract: []string{"o1"}})
			return err
		}
		st,
			err := memstore.New(memstore.Config{Now: now, Retention: store.Retention{HistoryPerCell: 3}})
		require.NoError(t, err)
		want := check(t, st)
		onEach(t, func(t *testing.T, at place) {
			assert.Equal(t, want == nil, check(t, at.store(t,
				sqlstore.Config{Now: now, Retention: store.Retention{HistoryPerCell: 3}})) == nil,
				"expunge %v: %v", expunge, want)
		})
	}
}

// evidenceOf returns the outcomes that the evidence of an item has.
func evidenceOf(
	t *testing.T, l *strategy.Learner, q strategy.Query,
) (all []strategy.ChoiceRecord) {
	for r, err := range l.History(ctx, strategy.ChoiceFilter{
		Evidence: true, Item: q.Item, Category: q.Category, Context: q.Context,
	}) {
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}
