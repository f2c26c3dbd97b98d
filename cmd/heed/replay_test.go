package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
	"github.com/heedhq/heed/strategy/money"
	"github.com/heedhq/heed/strategy/partition"
)

// requests writes a log of 300 requests: the large model is better for contracts, and the small one
// as good for greetings. Without propensities, the column stays empty.
func requests(t *testing.T, told bool) string {
	var b strings.Builder
	b.WriteString("item,category,arm,outcome,cost,propensity,at\n")
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		item, arm, cost, rate := "contracts", "small", 0.001, 0.4
		if n%2 == 0 {
			item, rate = "greetings", 0.9
		}
		if rng.Float64() < 0.5 {
			arm, cost, rate = "large", 0.01, 0.9
		}
		p := ""
		if told {
			p = "0.5"
		}
		at := start.Add(time.Duration(n) * time.Minute).Format(time.RFC3339)
		fmt.Fprintf(&b, "%s,law,%s,%v,%v,%s,%s\n", item, arm, rng.Float64() < rate, cost, p, at)
	}
	file := filepath.Join(t.TempDir(), "requests.csv")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

func TestReplay(t *testing.T) {
	t.Parallel()
	file, db := requests(t, true), filepath.Join(t.TempDir(), "start.db")
	screen := call{args: []string{"strategy", "replay", file},
		env: []string{"NO_COLOR=1"}}.onTerminal(t, 80)
	require.Zero(t, screen.code, screen.out)
	assertFits(t, screen.out, 80)
	golden(t, "replay-80.txt", ansi.Strip(screen.out))

	wrote := call{args: []string{"--db", db, "--json", "strategy", "replay", file, "--name",
		"models"}}.run(t)
	require.Zero(t, wrote.code, wrote.err)
	var report replayReport
	require.NoError(t, json.Unmarshal([]byte(wrote.out), &report))
	assert.Equal(t, db, report.Wrote)
	assert.Equal(t, "told", report.Propensities)
	of := make(map[string]float64)
	for _, p := range report.Policies {
		of[p.Policy] = p.Reward.Mean
		if p.Policy == "always small" {
			assert.LessOrEqual(t, *p.Reward.Low, 0.65)
			assert.GreaterOrEqual(t, *p.Reward.High, 0.65)
		}
	}
	assert.Equal(t, 150, report.Judged)
	assert.InDelta(t, of["heed"], of["always large"], 1e-12, "the same policy on the same requests")
	assert.Greater(t, of["heed"], of["always small"])

	shown := call{args: []string{"--db", db, "strategy", "--learner", "models", "item",
		"contracts"}}.run(t)
	require.Zero(t, shown.code, shown.err)
	assert.Contains(t, shown.out, "large")
	assert.Contains(t, call{args: []string{"--db", db, "strategy", "show", "law"}}.run(t).out,
		"300 reports of 2 items")
	again := call{args: []string{"--db", db, "strategy", "replay", file}}.run(t)
	assert.Equal(t, failed, again.code)
	assert.Contains(t, again.err, "is not empty: name a new store, or add --dry-run")
	assert.Zero(t, call{args: []string{"--db", db, "strategy", "replay", file,
		"--dry-run"}}.run(t).code)

	alone := filepath.Join(t.TempDir(), "alone.db")
	kinds := func(file string) (names []string) {
		for _, kind := range read[diagnosis](t, "--db", file, "doctor").Records {
			names = append(names, kind.Kind)
		}
		return names
	}
	require.Zero(t, call{args: []string{"--db", alone, "strategy", "replay", file,
		"--alone"}}.run(t).code)
	assert.Contains(t, kinds(alone), "strategy.answer")
	assert.Contains(t, kinds(db), "loop.answer", "an agent goes on from it")

	counted := call{args: []string{"strategy", "replay", requests(t, false)}}.run(t)
	assert.Contains(t, counted.out, "Propensities are not known.")
}

// TestALoopGoesOnFromAReplay opens the store with defaults. The agent has the evidence, the cells,
// the costs and the records.
func TestALoopGoesOnFromAReplay(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("text,arm,outcome,cost,propensity\n")
	rng := rand.New(rand.NewPCG(3, 4))
	for range 120 {
		text, arm, cost := "Please write a long and friendly letter to the customer.", "small", 0.001
		if rng.Float64() < 0.5 {
			text = "func f(x int) int { return x*x }"
		}
		if rng.Float64() < 0.4 {
			arm, cost = "large", 0.01
		}
		fmt.Fprintf(&b, "%s,%s,%v,%v,%v\n", text, arm, rng.Float64() < 0.9, cost,
			map[string]float64{"small": 0.6, "large": 0.4}[arm])
	}
	dir := t.TempDir()
	file, db := filepath.Join(dir, "requests.csv"), filepath.Join(dir, "start.db")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	for _, name := range []string{"", "bot"} {
		place := db + name
		args := []string{"--db", place, "strategy", "replay", file}
		if name != "" {
			args = append(args, "--agent", name)
		}
		r := call{args: args}.run(t)
		require.Zero(t, r.code, r.err)
		onFile(t, place, func(handle *sql.DB) {
			st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite)
			require.NoError(t, err)
			cfg := loop.Config{
				Store: st, Name: name, Arms: []loop.Arm{{ID: "small"}, {ID: "large"}},
				Choosing: loop.Choosing{Partition: &partition.Config{Name: "partition"},
					Choose: func(ctx context.Context, l *strategy.Learner) (loop.Chooser, error) {
						return money.New(ctx, money.Config{Learner: l, Quality: 0.5})
					}},
			}
			agent, err := loop.New(ctx, cfg)
			require.NoError(t, err)
			cheap := 0
			for n := range 20 {
				plan, err := agent.Prepare(ctx, loop.Event{ID: fmt.Sprint(n),
					Text: "func f(x int) int { return x*x }"})
				require.NoError(t, err)
				assert.Regexp(t, "^partition:", plan.Choice.Item)
				if plan.Arm.ID == "small" {
					cheap++
				}
				for d, err := range agent.Strategy().Distributions(ctx, strategy.Query{}) {
					require.NoError(t, err)
					item, ok := d.Item(plan.Choice.Item)
					require.True(t, ok)
					assert.Greater(t, item.Arms[0].Outcomes, uint64(20))
				}
			}
			assert.Greater(t, cheap, 15, "the costs of the log are known")
		})
	}
}

// TestReplayDividesTexts that have no item, and the store has the cells for the host.
func TestReplayDividesTexts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for n := range 60 {
		text, arm, good := "Please write a long and friendly letter to the customer.", "small", true
		if n%2 == 0 {
			text, good = "func f(x int) int { return x*x }", false
		}
		if n%3 == 0 {
			arm, good = "large", !good
		}
		fmt.Fprintf(&b, "{\"text\": %q, \"arm\": %q, \"outcome\": %v, \"propensity\": 0.5}\n", text,
			arm, good)
	}
	dir := t.TempDir()
	file, db := filepath.Join(dir, "requests.jsonl"), filepath.Join(dir, "start.db")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	r := call{args: []string{"--db", db, "strategy", "replay", file}}.run(t)
	require.Zero(t, r.code, r.err)
	assert.Contains(t, r.out, "60 texts without an item were divided by their form")
	handle, err := sql.Open("sqlite", "file:"+db)
	require.NoError(t, err)
	defer handle.Close()
	st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite)
	require.NoError(t, err)
	cells, err := partition.New(ctx, partition.Config{Store: st})
	require.NoError(t, err)
	item, err := cells.Item(ctx, "func f(x int) int { return x*x }")
	require.NoError(t, err)
	assert.NotEmpty(t, item)
	assert.Contains(t, call{args: []string{"--db", db, "strategy", "item", item}}.run(t).out, "small")
}

func TestReplayFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	for want, args := range map[string][]string{
		"there is no file nowhere.csv: check its name": {"nowhere.csv"},
		`bad.csv:2: outcome is "good", must be a number from 0 to 1, true or false`: {write("bad.csv",
			"arm,outcome\na,good\n")},
		"is in the future: correct its time": {write("late.csv",
			"arm,outcome,at\na,1,2190-01-01T00:00:00Z\n")},
	} {
		r := call{args: append([]string{"strategy", "replay"}, args...)}.run(t)
		assert.Equal(t, failed, r.code, want)
		assert.Contains(t, r.err, want)
	}
}

// TestWinners shows a race that has ended.
func TestWinners(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.db")
	onFile(t, file, func(handle *sql.DB) {
		w := newWorld(t, handle, sqlstore.SQLite, start)
		learner, err := strategy.New(ctx, strategy.Config{
			Store: w.store, Now: w.clock, NewID: w.id, Seed: rand.NewPCG(5, 6), Name: "models",
			Pooling: strategy.Alone{},
			Arms:    []strategy.Arm{{ID: "small"}, {ID: "large"}},
		})
		require.NoError(t, err)
		race, err := best.New(ctx, best.Config{Learner: learner, Explore: 0.1})
		require.NoError(t, err)
		for range 60 {
			w.now = w.now.Add(time.Minute)
			c, err := race.Select(ctx, strategy.Query{Category: "law"})
			require.NoError(t, err)
			o := strategy.Outcome{Choice: c, Value: 1, Confidence: 1, Cost: 1, Latency: time.Second}
			if c.Arm == "large" {
				o.Value, o.Cost = -0.9, 8
			}
			_, err = learner.Observe(ctx, o)
			require.NoError(t, err)
		}
	})
	for name, args := range map[string][]string{"winners": {"strategy", "winners"}} {
		screen := call{args: append([]string{"--db", file}, args...),
			env: []string{"NO_COLOR=1"}}.onTerminal(t, 80)
		require.Zero(t, screen.code, screen.out)
		assertFits(t, screen.out, 80)
		golden(t, name+"-80.txt", ansi.Strip(screen.out))
		inJSON := call{args: append([]string{"--db", file, "--json"}, args...)}.run(t)
		assert.True(t, json.Valid([]byte(inJSON.out)), inJSON.out)
	}
	db := sqliteFile(t)
	assert.Contains(t, call{args: []string{"--db", db, "strategy", "--learner", "models",
		"winners"}}.run(t).out, "There are no winners here.")
}

// With times the log is put in order. Without, a log that is sorted by its outcomes has no narrow
// interval.
func TestReplayOfALogOutOfOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	var good, bad, timedGood, timedBad strings.Builder
	for n := range 600 {
		arm, to, timed := "a", &bad, &timedBad
		if rng.Float64() < 0.5 {
			arm = "b"
		}
		if rng.Float64() < 0.7 {
			to, timed = &good, &timedGood
		}
		outcome := to == &good
		fmt.Fprintf(to, "%s,%v,0.5\n", arm, outcome)
		fmt.Fprintf(timed, "%s,%v,0.5,%s\n", arm, outcome,
			start.Add(time.Duration(n)*time.Minute).Format(time.RFC3339))
	}
	dir := t.TempDir()
	said := func(name, text string) (replayReport, string) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		r := call{args: []string{"strategy", "replay", file}}.run(t)
		require.Zero(t, r.code, r.err)
		var report replayReport
		require.NoError(t, json.Unmarshal([]byte(call{args: []string{"--json", "strategy", "replay",
			file}}.run(t).out), &report))
		return report, r.out
	}
	// The second half alone is judged: 0.4 of it is good.
	report, out := said("sorted.csv", "arm,outcome,propensity\n"+good.String()+bad.String())
	assert.Contains(t, out, "Parts of the log contradict each other about heed, always b, always a.")
	assert.False(t, report.Sorted)
	assert.Zero(t, *report.Policies[1].Reward.Low)
	report, out = said("timed.csv", "\"arm\",\"outcome\",\"propensity\",\"at\"\n"+timedGood.String()+
		timedBad.String())
	assert.Contains(t, out, "The requests were put in the order of their times.")
	assert.NotContains(t, out, "contradict")
	assert.True(t, report.Sorted)
	assert.InDelta(t, 0.7, report.Policies[1].Reward.Mean, 0.1)
}
