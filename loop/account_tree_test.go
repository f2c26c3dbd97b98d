package loop_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
)

// at is a moment n minutes after the start.
func at(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

// trustOf returns what is known of a heuristic that answered at start.
func trustOf(change func(*learning.Explanation)) *learning.Explanation {
	e := &learning.Explanation{
		Standing: learning.Standing{
			Heuristic: learning.Heuristic{ID: "rotate", Since: at(-1)}, Confidence: 0.69999, Fires: 1,
			Successes: 4, Failures: 5,
		},
		Prior: evidence.Beta{Alpha: 1.5, Beta: 0.5},
	}
	if change != nil {
		change(e)
	}
	return e
}

// trees are accounts of each form of answer.
func trees() map[string]loop.Account {
	choice := strategy.ChoiceOf(&answer.Choice{
		ID: uuid.UUID{1}, Arm: "brief", Session: "s1", Item: "disk", At: at(-1),
		Draws: []answer.Draw{{Arm: "brief", Sample: 0.75,
			Belief: evidence.Belief{Level: evidence.Beta{Alpha: 1, Beta: 3}}}},
	})
	fresh := strategy.ChoiceOf(&answer.Choice{
		ID: uuid.UUID{1}, Arm: "brief", Category: "d", At: start,
	})
	many := make([]evidence.Observation, 6)
	for i := range many {
		many[i] = evidence.Observation{At: at(i), Reward: 0.25, Weight: 2}
	}
	many[0].Channel, many[0].Source = "user_explicit", "ann"
	return map[string]loop.Account{
		"of a heuristic": {
			Heuristic: "rotate", Needed: 0.7, Believed: 0.7999, Undelivered: true, Cut: true,
			Trust: trustOf(func(e *learning.Explanation) {
				e.Standing.Fires, e.People, e.History = 9, 3, many
				e.Shares = []learning.Share{
					{Channel: "user_explicit", Source: "ann", Kind: "person", For: 3, Against: 1,
						CountsFor: 1, CountsAgainst: 0.5, Count: 4},
					{For: 1, CountsFor: 1, Count: 1},
				}
				e.Limits = []string{"people"}
			}),
		},
		"of a heuristic with another text": {
			Heuristic: "rotate", Trust: trustOf(func(e *learning.Explanation) {
				e.Standing.Heuristic.Since = at(1)
			}),
		},
		"of a deleted heuristic": {Heuristic: "rotate", Worth: -0.5, Known: true,
			Channel: "implicit_undo"},
		"of an arm": {
			Choice: &choice, Unusable: true, Spare: true,
			Item: &strategy.Standing{Arms: []strategy.ArmReport{
				{Arm: "brief", Mean: 0.5, Low: 0.25, High: 0.75, Outcomes: 2},
				{Arm: "long", Mean: 0.5, High: 1, Outcomes: 1},
			}},
			Outcomes: []strategy.ChoiceRecord{{
				Choice: choice, Result: &strategy.Result{Value: 0.5, Channel: "outcome", At: at(3)},
			}},
			Statements: []loop.Statement{
				{Channel: "outcome", Source: "ci", Kind: "instrument", At: at(3), Value: 0.5},
			},
		},
		"of the first choice of a category": {Choice: &fresh, Known: true,
			Worth: 1, Channel: "user_explicit", Statements: []loop.Statement{
				{Channel: "user_explicit", Source: "ann", At: at(1), Value: 1, Confidence: 0.75},
				{Channel: "silence", At: at(2), Value: 0.8},
			}},
		"of what the prompt had": {
			Control: &answer.Side{}, Notes: []string{"n"}, Ways: []string{"w"},
			Warnings: []string{"x"}, Followed: []string{"y"}, Shown: []string{"h"},
			Contents:  map[string]string{"w": "Ask  first"},
			Overruled: map[string]string{"b": "9: it matches sudo", "a": "8: it matches rm"},
			Compared: []answer.Comparison{
				{HeuristicID: "c", Similarity: 0.5, Agrees: true}, {HeuristicID: "d"},
			},
			Told: []string{"t"},
			Rules: []feedback.Rule{{
				Draft:     feedback.Draft{Text: "Be brief."},
				Approvals: []feedback.Review{{Actor: "kim", At: at(1), Reason: "right"}},
			}},
		},
		"that took others back": {
			Undid: []string{"e1", "e2"}, Known: true,
			Statements: []loop.Statement{{Channel: "user_explicit", At: at(1), Confidence: 1}},
		},
	}
}

// The whole trees of answers, as testdata/trees.txt has them.
func TestTreesOfAnswers(t *testing.T) {
	var all strings.Builder
	accounts := trees()
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		a := accounts[name]
		a.ID, a.Text, a.At = "e", "Why?\nSo.", start
		all.WriteString("# " + name + "\n\n" + a.String() + "\n")
	}
	const golden = "testdata/trees.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(all.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), all.String(), "run go test ./loop -run TreesOf -update")
	assert.Empty(t, loop.Account{}.String())
}
