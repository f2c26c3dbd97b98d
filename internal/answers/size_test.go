//go:build !race

package answers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// crowded is the record of an answer of a heuristic that 100 people judged, each with what it
// counted.
func crowded(t testing.TB) *answer.Answer {
	choice := uuid.MustParse("0196d3a2-7c1e-7b52-9f0a-5d2c4be81f37")
	belief := evidence.Belief{
		Level:    evidence.Beta{Alpha: 12.345678901234567, Beta: 3.4567890123456789},
		Strength: 8.7654321098765432, Successes: 4.3210987654321098, Failures: 1.2345678901234567,
	}
	a := &answer.Answer{
		ID: "evt_01HZX3J8Q9R7T6V5W4Y2A1B0CD", At: start,
		Person:  "maria.gonzalez@example.com",
		Session: "ticket-4711-maria", Domain: "customer-support", Stream: "ticket-4711-maria",
		Reply: &answer.Reply{
			Path: "heuristic", Heuristic: "refund-within-30-days", Threshold: 0.7, Believed: 0.8123456789,
			Text: "You can return it within 30 days. I have sent the label to your address.",
			Task: "refund",
		},
		Choice: &answer.Choice{
			ID: choice, Learner: "support", Arm: "brief", Session: "ticket-4711-maria", Item: "refund",
			At: start,
			Draws: []answer.Draw{
				{Arm: "brief", Sample: 0.8123456789012345, Belief: belief},
				{Arm: "thorough", Sample: 0.7123456789012345, Belief: belief},
				{Arm: "friendly", Sample: 0.6123456789012345, Belief: belief},
			},
		},
		Fires: []answer.Fire{{
			Heuristic: "refund-within-30-days", Domain: "customer-support", Path: "heuristic",
			Shown: start,
			Undo:  start.Add(10 * time.Minute), Silence: start.Add(30 * time.Second), Closed: true,
		}},
	}
	for i := range answers.MaxStated {
		moment := start.Add(time.Duration(i)*time.Minute + 123456*time.Microsecond)
		value := []float64{1, 1, -1, 0.5}[i%4]
		on, _, effect := answers.Say(a, answer.Statement{
			By: fmt.Sprintf("firstname.lastname%d@example.com", i), Kind: "person",
			Channel: "user_explicit", Of: a.Reply.Heuristic, Value: value, Worth: thumb * value,
			At: moment,
		})
		require.Equal(t, answers.Holds, effect)
		answers.Edit(a, on.N, func(s *answer.Statement) {
			s.Credit = &answer.Credit{
				ID: "click:" + store.IDOf("learning", a.ID,
					s.By), Cell: "said", Channel: "user_explicit",
				Reward: (1 + value) / 2, Weight: thumb, At: moment,
			}
		})
	}
	for i, p := range answers.ForArm(a) {
		a.Choice.Told++
		a.Choice.Credits = append(a.Choice.Credits, answer.ArmCredit{
			Number: uint64(i + 1), Of: p.Of, Value: p.Value, Trust: p.Trust, Share: p.Share,
		})
	}
	require.Len(t, a.Choice.Credits, answers.MaxStated)
	return a
}

// A record that everybody has judged stays small, because it is read and written for every
// judgement.
func TestSizeOfARecord(t *testing.T) {
	a := crowded(t)
	size := func(v any) int {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return len(text)
	}
	all := size(a)
	t.Logf("%d bytes: a statement %d, the credit of an arm %d",
		all, size(a.Statements[50]), size(a.Choice.Credits[50]))
	assert.Less(t, all, 32<<10)
	assert.Equal(t, *a, deep(t, a))
}

// A credit that shares its statement's moment and channel leaves them out, and has them again when
// it is read. One that differs keeps its own, also if that is empty.
func TestACreditIsKeptAsJSON(t *testing.T) {
	for name, c := range map[string]answer.Credit{
		"the same":  {ID: "o", Cell: "said", Channel: "thumbs", At: at(1), Weight: 0.8},
		"different": {ID: "o", Cell: "said", Channel: "mail", At: at(2), Source: "ann"},
		"empty":     {ID: "o"},
	} {
		t.Run(name, func(t *testing.T) {
			a := said(judged("ann", 1, 1))
			answers.Edit(a, 1, func(s *answer.Statement) { s.Credit = &c })
			assert.Equal(t, *a, deep(t, a))
			text, err := json.Marshal(a)
			require.NoError(t, err)
			assert.Equal(t, name == "the same", strings.Count(string(text), `"channel"`) == 1)
			assert.Equal(t, name == "the same", strings.Count(string(text), `"at"`) == 2)
		})
	}
}

func TestAnArmCreditIsKeptAsJSON(t *testing.T) {
	for text, c := range map[string]answer.ArmCredit{
		`[1,"said 2",-1,0.5,0.25]`: {Number: 1, Of: "said 2", Value: -1, Trust: 0.5,
			Share: 0.25},
		`[1,"said 2",-1,0.5,0.25,3]`: {Number: 1, Of: "said 2", Value: -1, Trust: 0.5,
			Share: 0.25, Cost: 3},
		`[1,"said 2",-1,0.5,0.25,0,true]`: {Number: 1, Of: "said 2", Value: -1, Trust: 0.5,
			Share: 0.25, Dropped: true},
		`[1,"said 2",-1,0.5,0.25,3.5,true]`: {Number: 1, Of: "said 2", Value: -1, Trust: 0.5,
			Share: 0.25, Cost: 3.5, Dropped: true},
	} {
		got, err := json.Marshal(c)
		require.NoError(t, err)
		assert.JSONEq(t, text, string(got))
		back := answer.ArmCredit{Cost: 7, Dropped: true}
		require.NoError(t, json.Unmarshal(got, &back))
		assert.Equal(t, c, back)
	}
	var c answer.ArmCredit
	require.Error(t, json.Unmarshal([]byte(`{"number":1}`), &c))
	require.Error(t, json.Unmarshal([]byte(`["1"]`), &c))
}

// A statement that can't be read is an error, and not an empty statement.
func TestADamagedStatement(t *testing.T) {
	var s answer.Statement
	require.Error(t, json.Unmarshal([]byte(`{"n":"one"}`), &s))
	require.Error(t, json.Unmarshal([]byte(`{"n":1,"credit":7}`), &s))
	require.NoError(t, json.Unmarshal([]byte(`{"n":1}`), &s))
	assert.EqualValues(t, 1, s.N)
}
