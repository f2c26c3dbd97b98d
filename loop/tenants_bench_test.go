package loop_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
)

// BenchmarkTenants has a number of tenants that asked once, days ago. It measures the first answer
// of a tenant that is not in memory, an answer of one that is, and a sweep of the store.
func BenchmarkTenants(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		clock := &clock{now: start}
		st, err := memstore.New(memstore.Config{Now: clock.Now})
		require.NoError(b, err)
		cfg := loop.Config{
			Store: st, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}},
			Model:   &llmtest.Model{Answers: llmtest.Say("Restart it.")},
			Testing: loop.Testing{Now: clock.Now},
		}
		opened := func() *loop.Agent {
			agent, err := loop.New(ctx, cfg)
			require.NoError(b, err)
			return agent
		}
		ask := func(agent *loop.Agent, tenant string) {
			of, err := agent.Tenant(ctx, tenant)
			require.NoError(b, err)
			_, err = of.Answer(ctx, loop.Event{Text: "The build hangs", Person: "ann"})
			require.NoError(b, err)
		}
		agent := opened()
		for i := range n {
			ask(agent, fmt.Sprint("tenant ", i))
		}
		agent = opened()
		clock.now = clock.now.Add(48 * time.Hour)
		for range n/200 + 1 { // what is due after two days
			require.NoError(b, agent.Sweep(ctx, time.Time{}))
		}
		agent = opened()
		b.Run(fmt.Sprintf("first answer, %d tenants", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				agent := opened()
				b.StartTimer()
				ask(agent, "tenant 7")
			}
		})
		b.Run(fmt.Sprintf("answer, %d tenants", n), func(b *testing.B) {
			for b.Loop() {
				ask(agent, "tenant 7")
			}
		})
		b.Run(fmt.Sprintf("sweep, %d tenants", n), func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, agent.Sweep(ctx, time.Time{}))
			}
		})
		b.Run(fmt.Sprintf("memory of agents, %d tenants", n), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			many := opened()
			for i := range min(n, 256) {
				_, err := many.Tenant(ctx, fmt.Sprint("tenant ", i))
				require.NoError(b, err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(min(n, 256)), "B/agent")
			runtime.KeepAlive(many)
		})
	}
}
