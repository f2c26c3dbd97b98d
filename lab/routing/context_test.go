package routing

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// At no price the dear arm gets what it is better at, and at a high one nothing.
func TestACurveOfQuality(t *testing.T) {
	table := &table{arms: []string{"cheap", "dear"}, items: []string{"hard", "easy"}}
	for i := range 400 { // both are right on easy tasks; on hard ones the dear arm is
		table.tasks = append(table.tasks, task{i % 2, []bool{i%2 == 1, true}})
	}
	points, err := table.drawCurve(context.Background(), 9, 7, silent)
	require.NoError(t, err)
	require.Len(t, points, len(prices))
	for i, p := range points {
		assert.InDelta(t, prices[i], p.Price, 0)
		assert.InDelta(t, 1-2*(1-p.Quality), p.Recovered, 1e-9, "of a gap of a half")
		assert.True(t, p.Share >= 0 && p.Share <= 1 && p.Quality <= 1+1e-9)
	}
	tenth := points[3]
	assert.Greater(t, tenth.Recovered, 0.9)
	assert.Less(t, tenth.Share, 0.7, "at a tenth of a right answer, about half of the calls win nearly all of the gap")

	s := &study{Runs: 2, table: table, Curve: points}
	var b strings.Builder
	require.NoError(t, s.reportCurve(&b))
	assert.Contains(t, b.String(), "calls to dear")
	assert.Contains(t, b.String(), "(50.00 %) and dear (100.00 %)")
}

func TestFormsAreRead(t *testing.T) {
	table, err := readTable(write(t, "item,question,a,b\nx,1,0,1\nx,2,0,1\ny,1,1,0\n"))
	require.NoError(t, err)
	assert.Len(t, policies(table), 6)
	require.NoError(t, table.readForms(write(t, "item,question,flag,long\ny,1,1,1000\nx,1,0,10\nx,2,0.5,100\nz,1,0,1\n")))
	assert.Len(t, policies(table), 9)
	require.Len(t, table.forms, 3)
	assert.InDelta(t, 0, table.forms[0][0], 0)
	assert.InDelta(t, 0.5, table.forms[1][0], 0)
	assert.InDelta(t, 1, table.forms[2][0], 0)
	assert.Equal(t, []float32{1, 0, 0, 0}, table.forms[0][1:], "the least")
	assert.Equal(t, []float32{0, 0, 0, 1}, table.forms[2][1:], "the most")
	for _, form := range table.forms {
		var sum float32
		for _, x := range form[1:] {
			sum += x
		}
		assert.InDelta(t, 1, sum, 1e-6)
	}
}

func TestFormFaults(t *testing.T) {
	table, err := readTable(write(t, "item,question,a,b\nx,1,0,1\n"))
	require.NoError(t, err)
	for text, fault := range map[string]string{
		"":                             "is empty",
		"item,question\n":              "has 2 columns",
		"item,question,n\nx,1,many\n":  `table.csv:2: column 3 (n, at character 5): "many" is no number`,
		"item,question,n\nx,1,-1\n":    `"-1" is no number from 0 to 1e9`,
		"item,question,n\nx,1,NaN\n":   `"NaN" is no number`,
		"item,question,n\nx,1\n":       "wrong number of fields",
		"item,question,n\nx,2,1\n":     "has no form of the question 1 of x",
		"item,question,n\nx,1,1,\"2\n": "line 2",
	} {
		require.ErrorContains(t, table.readForms(write(t, text)), fault)
		assert.Nil(t, table.forms)
	}
	assert.ErrorIs(t, table.readForms(filepath.Join(t.TempDir(), "missing.csv")), fs.ErrNotExist)
}

// Where the better arm depends on the form and not on the subject, the item should be the form's cell.
func TestByForm(t *testing.T) {
	var data, forms strings.Builder
	data.WriteString("item,question,a,b\n")
	forms.WriteString("item,question,long,flag\n")
	for i := range 600 {
		row, form := "x,%d,1,0\n", "x,%d,10,0\n"
		if i%2 == 1 {
			row, form = "x,%d,0,1\n", "x,%d,1000,1\n"
		}
		data.WriteString(strings.ReplaceAll(row, "%d", string(rune('a'+i%26))+strings.Repeat("z", i/26)))
		forms.WriteString(strings.ReplaceAll(form, "%d", string(rune('a'+i%26))+strings.Repeat("z", i/26)))
	}
	var out bytes.Buffer
	require.NoError(t, Run(context.Background(), kit.NewCall("routing", &out, "-data", write(t,
		data.String()), "-forms", write(t, forms.String()), "-runs", "1")))
	for _, text := range []string{"no item", "by form", "subject and form", "Quality against the share of calls to b"} {
		assert.Contains(t, out.String(), text)
	}
	table, err := readTable(write(t, data.String()))
	require.NoError(t, err)
	require.NoError(t, table.readForms(write(t, forms.String())))
	s, err := run(context.Background(), table, 0.1, 1, 7, silent)
	require.NoError(t, err)
	reward := make(map[string]float64)
	for _, r := range s.Policies {
		reward[r.Name] = r.RewardMean
	}
	assert.Greater(t, reward["by form"], 1.6*reward["no item"])
}

// TestRecordedForms plays a run over recorded outcomes with the forms of the questions, where both are at hand: to know the form is better than to know nothing,
// and the subject is better than both.
func TestRecordedForms(t *testing.T) {
	if os.Getenv("HEED_LONG") == "" {
		t.Skip("it takes long: set HEED_LONG=1")
	}
	const data, forms = "../../../shared/data/mmlu_routing.csv", "../../../shared/data/mmlu_forms.csv"
	table, err := readTable(data)
	if err == nil {
		err = table.readForms(forms)
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the optional tables ../shared/data/mmlu_routing.csv and mmlu_forms.csv are not here")
	}
	require.NoError(t, err)
	s, err := run(context.Background(), table, 0.10, 4, 2026, silent)
	require.NoError(t, err)
	regret := make(map[string]float64)
	for _, r := range s.Policies {
		regret[r.Name] = r.RegretMean
	}
	assert.Less(t, regret["by form"], regret["no item"])
	assert.Less(t, regret["two-level"], regret["by form"])
	assert.Less(t, regret["two-level"], regret["subject and form"])
}
