package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func logOf(t testing.TB, file string) []byte {
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	return text
}

func TestALog(t *testing.T) {
	for _, file := range []string{"log.csv", "log.jsonl"} {
		log, err := readLog(file, logOf(t, file))
		require.NoError(t, err)
		require.Len(t, log, 3)
		for i := range log {
			assert.True(t, strings.HasPrefix(log[i].place, file+":"))
			log[i].place = ""
		}
		assert.Equal(t, request{
			text: "Is a contract, once signed, binding?", item: "contracts", category: "law",
			context: "short", at: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), arm: "large", reward: 1,
			cost: 0.012, latency: 1500 * time.Millisecond, tokens: 420, propensity: 0.5,
		}, log[0], file)
		assert.Equal(t, request{item: "contracts", category: "law", arm: "small"}, log[1], file)
		assert.InDelta(t, 0.25, log[2].reward, 0)
	}
}

// A fault has its file and its line.
func TestAFaultHasItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		" \n":                           "f has no requests",
		"a,b\n1,2\n":                    "f:2: arm is missing",
		"arm,outcome\n":                 "f has no requests",
		"arm,outcome\na,1\nb,2\n":       `f:3: outcome is "2", must be a number from 0 to 1, true or false`,
		"arm,outcome,propensity\na,1,0": `f:2: propensity is "0", must be a number from 1e-06 to 1`,
		"arm,outcome,at\na,1,today\n":   "f:2: at is no time",
		"arm,outcome\na\n":              "f:2: wrong number of fields",
		"arm,outcome\n\"a,1\n":          "f:2: ",
		"arm,outcome,colour\na,1,red\n": `f:2: "colour" is none of arm, outcome, `,
		"arm,outcome,arm\na,1,a\n":      `the column "arm" is there twice`,
		"arm,cost\na,1\n":               "f:2: outcome is missing",
		"Arm,Outcome\na,1\n":            "f:2: arm is missing",
		"arm,outcome\n,1\n":             "f:2: arm is missing",
		`{"arm": "a", "outcome": 1}` + "\n" + `{"arm": "a", "outcome": "good"}`: `f:2: outcome is "good"`,
		`{"arm": "a", "outcome": }`:          "line 1: invalid character '}'",
		`{"arm": "a", "outcome": 1, "x": 1}`: `f:1: "x" is none of`,
		`{"arm": "a"}`:                       "f:1: outcome is missing",
	} {
		_, err := readLog("f", []byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

// FuzzLog reads anything, and checks what every log promises.
func FuzzLog(f *testing.F) {
	for _, file := range []string{"log.csv", "log.jsonl"} {
		f.Add(logOf(f, file))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		log, err := readLog("f", text)
		if err != nil {
			return
		}
		require.NotEmpty(t, log)
		for _, q := range log {
			require.NotEmpty(t, q.arm)
			require.True(t, q.reward >= 0 && q.reward <= 1 && q.cost >= 0 && q.tokens >= 0 &&
				q.latency >= 0)
			require.True(t, q.propensity == 0 || q.propensity >= 1e-6 && q.propensity <= 1, "%+v", q)
		}
	})
}
