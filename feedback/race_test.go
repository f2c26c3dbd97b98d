package feedback_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
)

// A move is what one goroutine does to one proposal, and what it is told.
type move struct {
	verb, actor string
}

// told is the status that a move left behind, or the state that it was refused for.
type told struct {
	status  feedback.State
	refused bool
}

// gateModel is the gate of one proposal, as it should be: a status and who has approved.
var gateModel = porcupine.Model{
	Init: func() any { return string(feedback.StatePending) },
	Step: func(state, input, output any) (bool, any) {
		status, approvers, _ := strings.Cut(state.(string), " ")
		in, out := input.(move), output.(told)
		if status != string(feedback.StatePending) {
			// A repeated approval, rejection or edit gets the same answer.
			same := map[string]string{"approve": string(feedback.StateApproved),
				"reject": string(feedback.StateRejected), "edit": string(feedback.StateSuperseded),
			}[in.verb] == status
			same = same && strings.Contains(" "+approvers+" ", " "+in.actor+" ")
			return out.refused != same && string(out.status) == status, state
		}
		next := status
		switch in.verb {
		case "reject":
			next = string(feedback.StateRejected) + " " + in.actor
		case "edit":
			next = string(feedback.StateSuperseded) + " " + in.actor
		case "approve":
			people := strings.Fields(approvers)
			if !strings.Contains(" "+approvers+" ", " "+in.actor+" ") {
				people = append(people, in.actor)
			}
			sort.Strings(people)
			if len(people) >= 2 {
				next = string(feedback.StateApproved)
			}
			next += " " + strings.Join(people, " ")
		}
		status, _, _ = strings.Cut(next, " ")
		return !out.refused && string(out.status) == status, next
	},
	Equal: func(a, b any) bool { return a == b },
}

// 64 goroutines race to approve, reject and edit 400 proposals (2,000 with HEED_LONG) through two
// services over one store. Their answers make a history that one caller after the other could have
// had, and no rule is active without its quorum.
func TestRacesLeaveALegalHistory(t *testing.T) {
	const workers = 64
	proposals := 200
	if thorough {
		proposals = 2000
	}
	now := (&clock{}).Now
	cfg := feedback.Config{Store: newStore(t, now),
		Gate: feedback.Gate{Pending: 1 << 30}, Now: now, NewID: uuid.NewString}
	w := newWorld(t, cfg)
	other, err := feedback.New(ctx, cfg)
	require.NoError(t, err)
	services := []*feedback.Rules{w.rules, other.Rules()}
	seed(w, proposals)

	var mu sync.Mutex
	history := map[string][]porcupine.Operation{}
	began := time.Now()
	record := func(id string, client int, in move, call int64, out told) {
		mu.Lock()
		defer mu.Unlock()
		history[id] = append(history[id], porcupine.Operation{
			ClientId: client, Input: in, Call: call, Output: out, Return: time.Since(began).Nanoseconds(),
		})
	}
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(worker)))
			rules := services[worker%2]
			for i := range proposals / 8 { // eight goroutines for each proposal, in about the same order
				id := fmt.Sprint("p", (i*8+worker/8)%proposals)
				in := move{[]string{"approve", "approve", "approve", "approve", "reject",
					"edit"}[rng.IntN(6)], fmt.Sprint("reviewer", rng.IntN(4))}
				call := time.Since(began).Nanoseconds()
				out, err := in.make(rules, id)
				if !assert.NoError(t, err) {
					return
				}
				record(id, worker, in, call, out)
			}
		})
	}
	wg.Wait()

	moves, refused := 0, 0
	for id, operations := range history {
		require.True(t, porcupine.CheckOperations(gateModel, operations), "proposal %s: %+v", id,
			operations)
		for _, o := range operations {
			if moves++; o.Output.(told).refused {
				refused++
			}
		}
	}
	rulesMade, err := w.rules.List(ctx, feedback.RuleQuery{})
	require.NoError(t, err)
	for _, r := range rulesMade {
		people := map[string]bool{}
		for _, a := range r.Approvals {
			people[a.Actor] = true
			assert.Equal(t, r.Hash(), a.Hash)
		}
		assert.GreaterOrEqual(t, len(people), 2, r.ID)
		p, err := w.rules.Proposal(ctx, r.ID)
		require.NoError(t, err)
		assert.Equal(t, feedback.StateApproved, p.Status)
	}
	assert.Len(t, rulesMade, len(w.proposals(feedback.StateApproved)))
	// The work has to have been done for this to say anything.
	assert.GreaterOrEqual(t, moves, proposals*8)
	assert.Greater(t, refused, moves/20)
	assert.Greater(t, len(rulesMade), proposals/10)
	t.Logf("%d moves, of which %d were refused; %d rules", moves, refused, len(rulesMade))
}

// seed opens proposals, each for an agent of its own.
func seed(w *world, n int) {
	for i := range n {
		p := feedback.Proposal{
			ID: fmt.Sprint("p", i), Status: feedback.StatePending, Created: start,
			Expires: start.Add(day), Writers: []string{"paul"},
			Draft: feedback.Draft{Action: feedback.CreateRule, Type: feedback.Guideline, Text: "Be brief",
				Agents: []string{fmt.Sprint("agent", i)}},
		}
		w.put(p)
	}
}

func (m move) make(rules *feedback.Rules, id string) (told, error) {
	var p feedback.Proposal
	var err error
	switch m.verb {
	case "edit":
		var seen feedback.Proposal
		if seen, err = rules.Proposal(ctx, id); err != nil {
			return told{}, err
		}
		d := seen.Draft
		d.Text = "Be terse"
		if _, err = rules.Propose(ctx, feedback.Submission{Replaces: id, Draft: d, Actor: m.actor,
			Reason: "shorter"}); err == nil {
			p.Status = feedback.StateSuperseded
		}
	default:
		var seen feedback.Proposal
		if seen, err = rules.Proposal(ctx, id); err != nil {
			return told{}, err
		}
		decision := feedback.Approved
		if m.verb == "reject" {
			decision = feedback.Rejected
		}
		p, err = rules.Review(ctx, feedback.Review{
			Proposal: id, Decision: decision, Actor: m.actor, Reason: "so it is", Hash: seen.Hash(),
		})
	}
	if state := (*feedback.RefusedError)(nil); errors.As(err, &state) {
		return told{feedback.State(state.State), true}, nil
	}
	return told{p.Status, false}, err
}

// Histories that no gate may have.
func TestTheModelBites(t *testing.T) {
	type op = porcupine.Operation
	for name, history := range map[string][]op{
		"approved by one": {{Input: move{"approve", "a"}, Output: told{feedback.StateApproved, false},
			Return: 1}},
		"approved by one, twice": {
			{Input: move{"approve", "a"}, Output: told{feedback.StatePending, false}, Return: 1},
			{Input: move{"approve", "a"}, Output: told{feedback.StateApproved, false}, Call: 2,
				Return: 3},
		},
		"approved after it was rejected": {
			{Input: move{"approve", "a"}, Output: told{feedback.StatePending, false}, Return: 1},
			{Input: move{"reject", "b"}, Output: told{feedback.StateRejected, false}, Call: 2, Return: 3},
			{Input: move{"approve", "b"}, Output: told{feedback.StateApproved, false}, Call: 4,
				Return: 5},
		},
		"both rejected and edited": {
			{Input: move{"reject", "a"}, Output: told{feedback.StateRejected, false}, Return: 5},
			{ClientId: 1, Input: move{"edit", "b"}, Output: told{feedback.StateSuperseded, false},
				Return: 5},
		},
	} {
		assert.False(t, porcupine.CheckOperations(gateModel, history), name)
	}
}
