package routing

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

func silent(int, int) {}

func write(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "table.csv")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestTableFaultsNameTheirPlace(t *testing.T) {
	for name, test := range map[string]struct{ text, fault string }{
		"empty":           {"", "table.csv: is empty"},
		"few columns":     {"item,question,only\n", "table.csv:1: has 3 columns"},
		"nameless arm":    {"item,question,a,\n", `table.csv:1: column 4: the arm "" has no name`},
		"arm twice":       {"item,question,a,a\n", `table.csv:1: column 4: the arm "a" has no name`},
		"no tasks":        {"item,question,a,b\n", "table.csv: has no tasks"},
		"not 0 or 1":      {"item,question,a,b\nx,1,0,1\nx,2,1,yes\n", `table.csv:3: column 4 (b, at character 7): "yes" is not 0 or 1`},
		"empty cell":      {"item,question,a,b\nx,1,0,\n", `table.csv:2: column 4`},
		"missing cell":    {"item,question,a,b\nx,1,0\n", "record on line 2: wrong number of fields"},
		"nameless item":   {"item,question,a,b\n,1,0,1\n", "table.csv:2: column 1: the item has no name"},
		"item in Latin 1": {"item,question,a,b\nx,1,0,1\ncaf\xe9,1,0,1\n", "table.csv:3: column 1: item: must be valid UTF-8"},
		"arm in Latin 1":  {"item,question,a,caf\xe9\n", "table.csv:1: column 4: arm: must be valid UTF-8"},
		"a lonely quote":  {"item,question,a,b\nx,\"1,0,1\n", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readTable(write(t, test.text))
			require.ErrorContains(t, err, test.fault)
		})
	}
	_, err := readTable(filepath.Join(t.TempDir(), "missing.csv"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "missing.csv")
}

func TestTableIsRead(t *testing.T) {
	table, err := readTable(write(t, "\ufeff\"whatever\",id,cheap,dear\nb,1,0,1\na,2,1,0\nb,3,1,1\n"))
	require.NoError(t, err)
	assert.Equal(t, []string{"cheap", "dear"}, table.arms)
	assert.Equal(t, []string{"b", "a"}, table.items)
	assert.Equal(t, []task{{0, []bool{false, true}}, {1, []bool{true, false}}, {0, []bool{true, true}}}, table.tasks)
	assert.InDelta(t, 0.1/1.1, table.reward(0, 0, 0.1), 1e-12)
	assert.InDelta(t, 1/1.1, table.reward(0, 1, 0.1), 1e-12)
	assert.InDelta(t, 1, table.reward(1, 0, 0.1), 1e-12)
	assert.Equal(t, []int{1, 0}, table.best(0.1))
	assert.Equal(t, []int{0, 0}, table.best(2))
}

func FuzzParseTable(f *testing.F) {
	f.Add("item,question,a,b\nx,1,0,1\n")
	f.Add("item,question,a,b\n\"x\ny\",1,0,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parseTable("table.csv", strings.NewReader(text))
		if err != nil {
			assert.ErrorContains(t, err, "table.csv")
			return
		}
		for _, task := range table.tasks {
			assert.Len(t, task.right, len(table.arms))
			assert.Less(t, task.item, len(table.items))
		}
	})
}

// small is a table of two items for which different arms are the best.
func small() *table {
	t := &table{arms: []string{"a", "b", "c"}, items: []string{"x", "y"}}
	for i := range 200 {
		t.tasks = append(t.tasks, task{i % 2, []bool{i%2 == 0, i%2 == 1, i%4 == 0}})
	}
	return t
}

func TestStudy(t *testing.T) {
	steps := 0
	s, err := run(context.Background(), small(), 0.1, 3, 7, func(done, of int) {
		steps++
		assert.Equal(t, steps, done)
		assert.Equal(t, 7*3, of)
	})
	require.NoError(t, err)
	assert.Equal(t, 7*3, steps)
	byName := make(map[string]result)
	for _, r := range s.Policies {
		byName[r.Name] = r
		assert.InDelta(t, r.RegretMean, r.curve[points], 1e-9)
		// Reward and regret add up to the reward of the best arms.
		assert.InDelta(t, 200., r.RewardMean+r.RegretMean, 1e-9, r.Name)
	}
	for _, name := range []string{"two-level", "copy", "alone", "uniform", "always:a", "always:b", "always:c"} {
		assert.Contains(t, byName, name)
	}
	assert.InDelta(t, 100/1.1, byName["always:a"].RegretMean, 1e-9)
	assert.Zero(t, byName["always:a"].RegretCI95)
	assert.Positive(t, byName["uniform"].RegretCI95)
	assert.Less(t, byName["two-level"].RegretMean, byName["uniform"].RegretMean/2)
	assert.Equal(t, []int{0, 1}, s.settled)
	assert.Equal(t, []int{0, 1}, s.best)

	again, err := run(context.Background(), small(), 0.1, 3, 7, silent)
	require.NoError(t, err)
	for i, r := range again.Policies {
		assert.InDelta(t, s.Policies[i].RegretMean, r.RegretMean, 1e-9, "the same seed gives the same study")
	}
}

func TestStudyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := run(ctx, small(), 0.1, 3, 7, silent)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestCommandWritesAReportAndAPicture(t *testing.T) {
	name := write(t, "item,question,a,<b & c>\nx,1,0,1\ny,2,1,0\nx,3,0,1\n")
	picture := filepath.Join(t.TempDir(), "curves.svg")
	var out bytes.Buffer
	require.NoError(t, Run(context.Background(), kit.NewCall("routing", &out, "-data", name, "-runs",
		"2", "-svg", picture)))
	for _, text := range []string{"3 tasks of 2 items", "two-level", "always:<b & c>", "regret", "settled on the best arm for"} {
		assert.Contains(t, out.String(), text)
	}
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	var names []string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok {
			names = append(names, string(text))
		}
	}
	assert.True(t, slices.Contains(names, "always:<b & c>"), "%q", names)
}

func TestCommandFaults(t *testing.T) {
	for _, test := range []struct {
		args  []string
		code  int
		fault string
	}{
		{[]string{"-help"}, 0, "help requested"},
		{[]string{"-nonsense"}, 2, "flag provided but not defined"},
		{[]string{"table.csv"}, 2, `unexpected argument "table.csv"`},
		{[]string{"-runs", "0"}, 2, "-runs 0 must be at least 1"},
		{[]string{"-price", "-1"}, 2, "-price -1 must be between 0 and 1e6"},
		{[]string{"-price", "NaN"}, 2, "-price NaN"},
		{[]string{"-data", "missing.csv"}, 1, "missing.csv"},
		{[]string{"-svg", filepath.Join("missing", "curves.svg")}, 1, "curves.svg"},
	} {
		err := Run(context.Background(), kit.NewCall("routing", io.Discard, test.args...))
		require.ErrorContains(t, err, test.fault)
		assert.Equal(t, test.code, kit.ExitCode(err), "%v", test.args)
	}
}

// TestRecordedTable replays real recorded outcomes, where they are at hand.
func TestRecordedTable(t *testing.T) {
	if os.Getenv("HEED_LONG") == "" {
		t.Skip("it takes long: set HEED_LONG=1")
	}
	const file = "../../../shared/data/mmlu_routing.csv"
	table, err := readTable(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the optional table ../shared/data/mmlu_routing.csv is not here")
	}
	require.NoError(t, err)
	assert.Len(t, table.items, 57)
	assert.Len(t, table.tasks, 14_042)
	s, err := run(context.Background(), table, 0.10, 8, 2026, silent)
	require.NoError(t, err)
	regret := make(map[string]float64)
	for _, r := range s.Policies {
		regret[r.Name] = r.RegretMean
	}
	// The bounds leave room for chance: 40 runs give 0.58 and 0.93.
	assert.Less(t, regret["two-level"], 0.75*regret["copy"])
	assert.Less(t, regret["two-level"], 1.10*regret["alone"])
	assert.InDelta(t, 293, regret["always:gpt_4_1106"], 2)
}
