package enginetest_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// BenchmarkTenants has a number of tenants that asked once, days ago. It measures the first answer
// of a tenant that is not in memory, an answer of one that is, a sweep of the store, and the memory
// of agents.
func BenchmarkTenants(b *testing.B) {
	clock := time.Now().Add(-72 * time.Hour)
	now := func() time.Time { return clock }
	for _, n := range []int{10, 10_000} {
		for name, open := range map[string]func() store.Store{
			"memory": func() store.Store {
				st, err := memstore.New(memstore.Config{Now: now})
				require.NoError(b, err)
				return st
			},
			"sqlite": func() store.Store {
				return backends[0].place(b).store(b, sqlstore.Config{Now: now})
			},
		} {
			clock = time.Now().Add(-72 * time.Hour)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				town := &town{st: open(), now: now}
				town.fill(b, n)
				clock = clock.Add(48 * time.Hour)
				agent := town.agent(b)
				for range n/200 + 1 { // what is due after two days
					require.NoError(b, agent.Sweep(ctx, time.Time{}))
				}
				town.measure(b, min(n, 256))
			})
		}
	}
}

// A town has the tenants of one store.
type town struct {
	st  store.Store
	now func() time.Time
}

func (t *town) agent(b *testing.B) *loop.Agent {
	agent, err := loop.New(ctx, loop.Config{
		Store: t.st, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}},
		Model:   &llmtest.Model{Answers: llmtest.Say("Restart it.")},
		Testing: loop.Testing{Now: t.now},
	})
	require.NoError(b, err)
	return agent
}

func (t *town) ask(b *testing.B, agent *loop.Agent, tenant int) {
	of, err := agent.Tenant(ctx, fmt.Sprint("tenant ", tenant))
	require.NoError(b, err)
	_, err = of.Answer(ctx, loop.Event{Text: "The build hangs", Person: "ann"})
	require.NoError(b, err)
}

func (t *town) fill(b *testing.B, n int) {
	agent := t.agent(b)
	for i := range n {
		t.ask(b, agent, i)
	}
}

func (t *town) measure(b *testing.B, agents int) {
	b.Run("first answer", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			agent := t.agent(b)
			b.StartTimer()
			t.ask(b, agent, 7)
		}
	})
	agent := t.agent(b)
	b.Run("answer", func(b *testing.B) {
		for b.Loop() {
			t.ask(b, agent, 7)
		}
	})
	b.Run("sweep", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, agent.Sweep(ctx, time.Time{}))
		}
	})
	b.Run("memory", func(b *testing.B) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		many := t.agent(b)
		for i := range agents {
			_, err := many.Tenant(ctx, fmt.Sprint("tenant ", i))
			require.NoError(b, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(agents), "B/agent")
		runtime.KeepAlive(many)
	})
}
