package past_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/cmd/heed/internal/past"
)

func read(t testing.TB, file string) *past.Table {
	in, err := os.Open("testdata/" + file)
	require.NoError(t, err)
	defer in.Close()
	var table past.Table
	require.NoError(t, table.Read(file, in))
	return &table
}

func TestALog(t *testing.T) {
	for _, file := range []string{"log.csv", "log.jsonl"} {
		f := read(t, file)
		assert.Equal(t, []string{"large", "small"}, f.Arms)
		require.Len(t, f.Requests, 3)
		assert.Equal(t, past.Request{
			Text: "Is a contract, once signed, binding?", Item: "contracts", Category: "law",
			Context: "short", At: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC),
			Try: past.Try{
				Arm: "large", Reward: 1, Cost: 0.012, Latency: 1500 * time.Millisecond, Tokens: 420,
				Propensity: 0.5,
			},
		}, f.Requests[0], file)
		assert.Equal(t, past.Request{
			Item: "contracts", Category: "law", Try: past.Try{Arm: "small"},
		}, f.Requests[1], file)
		assert.InDelta(t, 0.25, f.Requests[2].Reward, 0)
	}
}

// A table has the requests of all files that were read.
func TestFilesAreOneTable(t *testing.T) {
	table := read(t, "log.csv")
	require.NoError(t, table.Read("more", strings.NewReader("arm,outcome\nother,1\n")))
	assert.Equal(t, []string{"large", "small", "other"}, table.Arms)
	assert.Len(t, table.Requests, 4)
}

// File, line and column.
func TestAFaultHasItsPlace(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":       {" \n", "f:1:1: is empty"},
		"something":     {"a,b\n1,2\n", "f:1:1: a is none of the columns"},
		"only a header": {"arm,outcome\n", "f:1:1: has no requests"},
		"outcome": {"arm,outcome\na,1\nb,2\n",
			`f:3:3: outcome is "2", must be true, false or a number in [0, 1]`},
		"propensity": {"arm,outcome,propensity\na,1,0\n",
			"f:2:5: propensity must be at least 1e-6"},
		"time":           {"arm,outcome,at\na,1,today\n", "f:2:5: at is no time"},
		"fields":         {"arm,outcome\na\n", "f:2:1: has more or fewer fields than the header"},
		"quote":          {"arm,outcome\n\"a,1\n", `f:`},
		"column":         {"arm,outcome,colour\na,1,red\n", "f:1:13: colour is none of the columns"},
		"twice":          {"arm,outcome,arm\na,1,a\n", "f:1:13: arm is there twice"},
		"missing column": {"arm,cost\na,1\n", "f:1:1: the column outcome is missing"},
		"upper case":     {"Arm,Outcome\na,1\n", "f:1:1: Arm is none of the columns arm, outcome, "},
		"semicolons":     {"arm;outcome\na;1\n", "which are in lower case and separated by commas"},
		"no arm":         {"text,outcome\na,1\n", "f:1:1: the column arm is missing"},
		"empty arm":      {"arm,outcome\n,1\n", "f:2:1: arm must not be empty"},
		"JSON": {`{"arm": "a", "outcome": 1}` + "\n" + `{"arm": "a", "outcome": "good"}`,
			`f:2:14: outcome is "good"`},
		"no JSON":      {`{"arm": "a", "outcome": }`, "f:1:25: invalid character '}'"},
		"JSON key":     {`{"arm": "a", "outcome": 1, "x": 1}`, "f:1:28: x is none of the keys"},
		"JSON missing": {`{"arm": "a"}`, "f:1:1: outcome is missing"},
	} {
		err := new(past.Table).Read("f", strings.NewReader(test.text))
		var fault *past.Error
		require.ErrorAs(t, err, &fault, name)
		assert.Contains(t, err.Error(), test.want, name)
	}
}

// FuzzLog reads anything, and checks what every table promises.
func FuzzLog(f *testing.F) {
	for _, file := range []string{"log.csv", "log.jsonl"} {
		text, err := os.ReadFile("testdata/" + file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var table past.Table
		if err := table.Read("f", bytes.NewReader(text)); err != nil {
			var fault *past.Error
			require.ErrorAs(t, err, &fault)
			require.True(t, fault.Line == 0 || fault.Line > 0 && fault.Column > 0, "%v", fault)
			return
		}
		require.NotEmpty(t, table.Requests)
		for _, q := range table.Requests {
			require.Contains(t, table.Arms, q.Arm)
			require.True(t, q.Reward >= 0 && q.Reward <= 1 && q.Cost >= 0 && q.Tokens >= 0 &&
				q.Latency >= 0)
			require.True(t, q.Propensity == 0 || q.Propensity >= 1e-6 && q.Propensity <= 1, "%+v", q)
		}
	})
}
