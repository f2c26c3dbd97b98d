package scores_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/adapter/scores"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

var (
	start  = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	clock  = func() time.Time { return start }
	ranges = map[string]scores.Meaning{
		"helpful":     {},
		"toxicity":    {Worst: 1, Best: 0, Weight: 2},
		"verdict":     {Labels: map[string]float64{"fail": -1}},
		"correctness": {Labels: map[string]float64{"fail": -0.5}},
		"user_score":  {Worst: -1, Best: 1},
	}
)

// newAgent returns an agent that has answered the events.
func newAgent(t require.TestingT, st store.Store, events ...string) *loop.Agent {
	agent, err := loop.New(context.Background(), loop.Config{
		Store: st, Testing: loop.Testing{Now: clock}, Arms: []loop.Arm{{ID: "brief"}, {ID: "long"}},
		Choosing: loop.Choosing{ArmsIgnoreSilence: true},
		Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
			error) {
			return decision.LLMResponse{Text: "Rotate its logs."}, nil
		}),
	})
	require.NoError(t, err)
	for _, id := range events {
		answer(t, agent, id)
	}
	return agent
}

func answer(t require.TestingT, agent *loop.Agent, id string) {
	_, err := agent.Answer(context.Background(),
		loop.Event{ID: id, Text: "The disk of db-1 is full.", At: start.Add(-2 * time.Hour)})
	require.NoError(t, err)
}

func newTaker(t require.TestingT, agent *loop.Agent) *scores.Taker {
	cfg := scores.Config{Agent: agent, Meanings: ranges, Now: clock}
	taker, err := scores.New(context.Background(), cfg)
	require.NoError(t, err)
	return taker
}

func worth(t require.TestingT, agent *loop.Agent, id string) float64 {
	account, err := agent.Explain(context.Background(), id)
	require.NoError(t, err)
	return account.Worth
}

func outcomes(t require.TestingT, agent *loop.Agent) (n int) {
	for d, err := range agent.Strategy().Distributions(context.Background()) {
		require.NoError(t, err)
		n += int(d.Outcomes)
	}
	return n
}

func of(v float64) *float64 { return &v }

func TestTake(t *testing.T) {
	st := &memstore.Store{}
	agent := newAgent(t, st)
	taker := newTaker(t, agent)
	for name, tt := range map[string]struct {
		grade scores.Grade
		want  scores.Taken
		worth float64
		field string
	}{
		"from 0 to 1": {scores.Grade{Answer: "one", Name: "helpful", Value: of(0.75)},
			scores.Learned, 0.5, ""},
		"less is better": {scores.Grade{Answer: "one", Name: "toxicity", Value: of(0)},
			scores.Learned, 1, ""},
		"a label": {scores.Grade{Answer: "one", Name: "correctness", Label: "fail"},
			scores.Learned, -0.5, ""},
		"a label goes first": {scores.Grade{Answer: "one", Name: "verdict", Label: "fail",
			Value: of(1)}, scores.Learned, -1, ""},
		"an unknown label": {scores.Grade{Answer: "one", Name: "verdict", Label: "fine"},
			scores.Ignored, 0, "Label"},
		"too much": {scores.Grade{Answer: "one", Name: "toxicity", Value: of(1.5)},
			scores.Ignored, 0, "Value"},
		"too little": {scores.Grade{Answer: "one", Name: "user_score", Value: of(-2)},
			scores.Ignored, 0, "Value"},
		"no text": {scores.Grade{Answer: "one", ID: "\xff", Name: "helpful",
			Value: of(1)}, scores.Ignored, 0, "ID"},
		"another name": {scores.Grade{Answer: "one", Name: "length", Value: of(1)},
			scores.Ignored, 0, ""},
		"no answer": {scores.Grade{Name: "helpful", Value: of(1)}, scores.Ignored, 0, ""},
		"an answer nobody gave": {scores.Grade{Answer: "none", Name: "helpful", Value: of(1)},
			scores.Unknown, 0, ""},
		"a comment alone": {scores.Grade{Answer: "one", Name: "helpful", Comment: "fine"},
			scores.Ignored, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer(t, agent, name)
			if tt.grade.Answer == "one" {
				tt.grade.Answer = name
			}
			got, err := taker.Take(t.Context(), tt.grade)
			assert.Equal(t, tt.want, got)
			assert.InDelta(t, tt.worth, worth(t, agent, name), 1e-9)
			if tt.field == "" {
				require.NoError(t, err)
				return
			}
			var input *heed.InputError
			require.ErrorAs(t, err, &input)
			assert.Equal(t, tt.field, input.Field)
		})
	}
}

// Grades come in any order, several times, changed in between, to two processes at once. The
// outcome is the mean of the latest of each.
func TestEachOnce(t *testing.T) {
	st := &memstore.Store{}
	agent := newAgent(t, st)
	processes := []*scores.Taker{newTaker(t, agent), newTaker(t, newAgent(t, st))}
	if os.Getenv("HEED_LONG") == "" && flag.Lookup("rapid.checks").Value.String() == "100" {
		defer func() { _ = flag.Set("rapid.checks", "100") }()
		_ = flag.Set("rapid.checks", "25")
	}
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		id := fmt.Sprint("event ", checks)
		answer(t, agent, id)
		var all []scores.Grade
		latest := make(map[string]scores.Grade)
		for i := range rapid.IntRange(1, 6).Draw(t, "grades") {
			r := scores.Grade{
				ID: fmt.Sprint("r", rapid.IntRange(0, 2).Draw(t, "id")), Answer: id,
				Name:  rapid.SampledFrom([]string{"helpful", "toxicity"}).Draw(t, "name"),
				Value: of(rapid.Float64Range(0, 1).Draw(t, "value")),
				At:    start.Add(time.Duration(i-10) * time.Second),
			}
			all, latest[r.ID] = append(all, r, r), r
		}
		order := rapid.Permutation(all).Draw(t, "order")
		var wait sync.WaitGroup
		for p, taker := range processes {
			wait.Go(func() {
				for i := p; i < len(order); i += len(processes) {
					_, err := taker.Take(context.Background(), order[i])
					assert.NoError(t, err)
				}
			})
		}
		wait.Wait()
		var sum, weights float64
		for _, r := range latest {
			switch r.Name {
			case "helpful":
				sum, weights = sum+2**r.Value-1, weights+1
			default:
				sum, weights = sum+2*(1-2**r.Value), weights+2
			}
		}
		assert.InDelta(t, sum/weights, worth(t, agent, id), 1e-9)
		got, err := processes[1].Take(context.Background(), order[0])
		require.NoError(t, err)
		assert.Equal(t, scores.Repeated, got)
	})
	assert.Equal(t, checks, outcomes(t, agent))
}

// Whichever call of the store fails, the grade counts once it comes again, and once.
func TestAProcessThatEndsInBetween(t *testing.T) {
	storetest.FailEach(func(at int, after bool) bool {
		own := &storetest.Failing{Store: &memstore.Store{}}
		agent := newAgent(t, own, "one")
		taker := newTaker(t, agent)
		r := scores.Grade{ID: "r", Answer: "one", Name: "helpful", Value: of(1)}
		own.Fail(at, after)
		if _, err := taker.Take(t.Context(), r); !own.Failed() {
			require.NoError(t, err)
			return false
		}
		_, err := taker.Take(t.Context(), r)
		require.NoError(t, err)
		assert.InDelta(t, 1, worth(t, agent, "one"), 1e-9)
		assert.Equal(t, 1, outcomes(t, agent))
		return true
	})
}

func TestManyGrades(t *testing.T) {
	st := &memstore.Store{}
	agent := newAgent(t, st, "one")
	taker := newTaker(t, agent)
	for i := range 105 { // the first five, which are bad ones, go
		r := scores.Grade{ID: fmt.Sprint(i), Answer: "one", Name: "helpful",
			Value: of(min(float64(i/5), 1)), At: start.Add(time.Duration(i-200) * time.Second)}
		_, err := taker.Take(t.Context(), r)
		require.NoError(t, err)
	}
	assert.InDelta(t, 1, worth(t, agent, "one"), 1e-9)
}

func TestCorrections(t *testing.T) {
	st := &memstore.Store{}
	agent := newAgent(t, st, "one")
	taker := newTaker(t, agent)
	long := fmt.Sprintf("%0600d", 7)
	for i, tt := range []struct {
		grade            scores.Grade
		want             scores.Taken
		summary, comment string
	}{
		{scores.Grade{ID: "1", Name: "output", Correction: "Name the server.", Reviewer: "kim"},
			scores.Learned, "Name the server.", ""},
		{scores.Grade{ID: "1", Name: "output", Correction: "Name the server.", Reviewer: "kim"},
			scores.Repeated, "Name the server.", ""},
		{scores.Grade{ID: "1", Name: "output", Correction: "Name it.", Reviewer: "kim"},
			scores.Repeated, "Name the server.", ""},
		{scores.Grade{ID: "2", Correction: "Restart db-1.", Comment: "It left out the server."},
			scores.Learned, "It left out the server.", "Restart db-1."},
		{scores.Grade{ID: "3", Correction: long}, scores.Learned, long[:499] + "…", long},
	} {
		tt.grade.Answer = "one"
		got, err := taker.Take(t.Context(), tt.grade)
		require.NoError(t, err, i)
		assert.Equal(t, tt.want, got, i)
		known := heard(t, agent)
		require.NotEmpty(t, known)
		found := false
		for _, f := range known {
			found = found || f.Summary == tt.summary && f.Comment == tt.comment
		}
		assert.True(t, found, "%d: %v", i, known)
	}
	assert.Len(t, heard(t, agent), 3)
	for field, g := range map[string]scores.Grade{"Correction": {Correction: "a\x00"},
		"Comment": {Correction: "a", Comment: "b\x00"}} {
		g.ID, g.Answer = field, "one"
		_, err := taker.Take(t.Context(), g)
		var input *heed.InputError
		require.ErrorAs(t, err, &input)
		assert.Equal(t, field, input.Field)
	}
	assert.Len(t, heard(t, agent), 3)
	got, err := taker.Take(t.Context(), scores.Grade{ID: "4", Answer: "none", Correction: "No."})
	require.NoError(t, err)
	assert.Equal(t, scores.Unknown, got)
}

func heard(t *testing.T, agent *loop.Agent) []feedback.Feedback {
	t.Helper()
	all, _, err := agent.Feedback().List(t.Context(), feedback.Listing{})
	require.NoError(t, err)
	return all
}

// Evaluators are one person's word, unless the host names them as an instrument. A correction is a
// person's in any case.
func TestScoresAreAnInstrumentIfTheHostSaysSo(t *testing.T) {
	for _, instruments := range [][]string{nil, {"scores"}} {
		agent, err := loop.New(t.Context(), loop.Config{
			Store: new(memstore.Store), Testing: loop.Testing{Now: clock}, Instruments: instruments,
			Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
				error) {
				return decision.LLMResponse{Text: "Rotate its logs."}, nil
			}),
		})
		require.NoError(t, err)
		answer(t, agent, "one")
		taker := newTaker(t, agent)
		_, err = taker.Take(t.Context(), scores.Grade{Answer: "one", Name: "helpful", Value: of(1)})
		require.NoError(t, err)
		account, err := agent.Explain(t.Context(), "one")
		require.NoError(t, err)
		require.Len(t, account.Statements, 1)
		assert.Equal(t, "scores", account.Statements[0].Source)
		correction := scores.Grade{ID: "1", Answer: "one", Correction: "Name the server."}
		_, err = taker.Take(t.Context(), correction)
		if instruments == nil {
			assert.EqualValues(t, "person", account.Statements[0].Kind)
			require.NoError(t, err)
			continue
		}
		assert.EqualValues(t, "instrument", account.Statements[0].Kind)
		var input *heed.InputError
		require.ErrorAs(t, err, &input)
		assert.Equal(t, "Reviewer", input.Field)
		correction.Reviewer = "kim"
		_, err = taker.Take(t.Context(), correction)
		require.NoError(t, err)
	}
}

func TestConfig(t *testing.T) {
	_, err := scores.New(t.Context(), scores.Config{Source: "\xff",
		Meanings: map[string]scores.Meaning{
			"a": {Worst: 2, Best: 2, Weight: -1, Labels: map[string]float64{"x": 3}},
		}})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.ElementsMatch(t, []string{"Agent", "Source", `Meanings["a"].Best`, `Meanings["a"].Weight`, `Meanings["a"].Labels["x"]`}, fields)
}

func TestDocs(t *testing.T) { adaptertest.Page(t, "README.md") }

// TestARefusedScore checks that a refused score enters no mean. Here the taker's clock runs ahead
// of the agent's.
func TestARefusedScore(t *testing.T) {
	now := start
	st := &memstore.Store{}
	agent := newAgent(t, st, "a")
	cfg := scores.Config{Agent: agent, Meanings: ranges, Now: func() time.Time { return now }}
	taker, err := scores.New(t.Context(), cfg)
	require.NoError(t, err)
	now = start.Add(3 * time.Hour)
	_, err = taker.Take(t.Context(), scores.Grade{ID: "1", Answer: "a", Name: "helpful", Value: of(0),
		At: start.Add(-time.Minute)})
	require.NoError(t, err)
	assert.InDelta(t, -1, worth(t, agent, "a"), 1e-9)
	_, err = taker.Take(t.Context(), scores.Grade{ID: "2", Answer: "a", Name: "helpful", Value: of(1),
		At: start.Add(200 * 24 * time.Hour)})
	require.ErrorAs(t, err, new(*heed.InputError), "the agent's clock has another time")
	now = start
	_, err = taker.Take(t.Context(), scores.Grade{ID: "3", Answer: "a", Name: "helpful", Value: of(1),
		At: start})
	require.NoError(t, err)
	assert.InDelta(t, 0, worth(t, agent, "a"), 1e-9, "the score that was refused counts in no mean")
}

// TestAForgottenScore changes a score that the store's history no longer has. The change is a fault
// of the score, so that its reader goes on with the next one.
func TestAForgottenScore(t *testing.T) {
	st, err := memstore.New(memstore.Config{Now: clock, HistoryPerCell: 2})
	require.NoError(t, err)
	rotate := learning.Heuristic{
		ID: "rotate", Condition: "The disk of db-1 is full.", Action: "Rotate its logs.", Initial: 0.8,
	}
	agent, err := loop.New(t.Context(), loop.Config{
		Store: st, Testing: loop.Testing{Now: clock},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{rotate}},
	})
	require.NoError(t, err)
	taker := newTaker(t, agent)
	for i := range 5 {
		id := fmt.Sprint(i)
		answer(t, agent, id)
		_, err := taker.Take(t.Context(), scores.Grade{
			Answer: id, Name: "helpful", Value: of(1), At: start.Add(-time.Minute),
		})
		require.NoError(t, err)
	}
	_, err = taker.Take(t.Context(), scores.Grade{
		Answer: "0", Name: "helpful", Value: of(0), At: start,
	})
	require.ErrorIs(t, err, evidence.ErrForgotten)
	require.ErrorAs(t, err, new(*heed.InputError))
	assert.InDelta(t, 1, worth(t, agent, "0"), 1e-9)
}
