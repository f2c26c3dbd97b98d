package enginetest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

func BenchmarkBeside(b *testing.B) {
	for _, backend := range backends {
		b.Run("store="+backend.name, func(b *testing.B) {
			at := backend.place(b)
			if at.dialect == sqlstore.Postgres {
				at = durable(b)
			}
			db := at.db(b)
			old := newEvidence(b, db, sqlstore.EvidenceConfig{})
			choices, err := sqlstore.NewChoices(db, sqlstore.ChoicesConfig{})
			require.NoError(b, err)
			st := at.store(b, sqlstore.Config{})
			require.NoError(b, st.Declare(ctx, store.Kind{Name: "choice"}))
			n := 0
			obs := func() evidence.Observation {
				n++
				return evidence.Observation{
					ID: fmt.Sprint(n), Reward: 1, Weight: 1, At: time.Now(), Source: "ann",
					Cell: evidence.Cell{Kind: "strategy.arm", Scope: "preference/planning", Item: fmt.Sprint("item", n%50), Name: "a"},
				}
			}
			choice := func() strategy.Choice {
				return strategy.Choice{ID: strategy.ChoiceID{15: byte(n), 14: byte(n >> 8), 13: byte(n >> 16)}, Session: "s", Item: fmt.Sprint("item", n%50), At: time.Now()}
			}
			parts := func(o evidence.Observation) {
				_, err := old.Read(ctx, nil, o.Cell)
				require.NoError(b, err)
			}
			var spent [7]time.Duration
			var revision uint64
			run := []func(){
				func() {
					_, err := old.Commit(ctx, evidence.Batch{Observations: []evidence.Observation{obs()}})
					require.NoError(b, err)
				},
				func() {
					_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{obs()}})
					require.NoError(b, err)
				},
				func() {
					o := obs()
					_, err := old.Commit(ctx, evidence.Batch{Observations: []evidence.Observation{o}})
					require.NoError(b, err)
					parts(o)
				},
				func() {
					_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{obs()}, Parts: true})
					require.NoError(b, err)
				},
				func() {
					o := obs()
					_, err := old.Commit(ctx, evidence.Batch{Observations: []evidence.Observation{o}})
					require.NoError(b, err)
					require.NoError(b, choices.Add(ctx, choice()))
				},
				func() {
					o, c := obs(), choice()
					r, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{o}, Records: []store.Record{{
						Ref: store.Ref{Kind: "choice", ID: o.ID}, At: o.At, Keys: []string{"session=s", "item=" + c.Item, "category=preference", "context=planning"}, Body: store.Of(c),
					}}})
					require.NoError(b, err)
					revision = r[0].Revision
				},
				func() {
					id := fmt.Sprint(n)
					o, c := obs(), choice()
					_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{o}, Records: []store.Record{{
						Ref: store.Ref{Kind: "choice", ID: id}, Revision: revision, At: o.At, Keys: []string{"session=s", "item=" + c.Item, "category=preference", "context=planning"}, Body: store.Of(c),
					}}})
					require.NoError(b, err)
				},
			}
			for b.Loop() {
				for i, f := range run {
					began := time.Now()
					f()
					spent[i] += time.Since(began)
				}
			}
			for i, name := range []string{"old-µs", "new-µs", "old+read-µs", "new+parts-µs", "old-two-µs", "new-recorded-µs", "new-update-µs"} {
				b.ReportMetric(float64(spent[i].Microseconds())/float64(b.N), name)
			}
		})
	}
}
