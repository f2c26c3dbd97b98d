package view_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
)

// operationAt returns the operation of a path of the API.
func operationAt(t *testing.T, path string) *view.Operation {
	t.Helper()
	for _, o := range view.Operations() {
		if o.Path == path {
			return &o
		}
	}
	t.Fatal(path)
	return nil
}

// A program gets 50 elements unless it asks for another number, up to 200.
func TestHowManyElementsAProgramGets(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	st, recorder := newRecorder(t, &now)
	for i := range 210 {
		_, err := recorder.Define(t.Context(), patterns.Pattern{
			ID: patterns.PatternID(fmt.Sprint(i)), Content: "Avoid", Anti: true, Reason: "it failed",
		})
		require.NoError(t, err)
	}
	caller := &view.Caller{View: &view.Source{Store: st, Patterns: recorder}}
	warnings := operationAt(t, "/v1/warnings")
	for query, want := range map[string]int{
		"": 50, "limit=1": 1, "limit=200": 200, "limit=201": 0, "limit=-1": 0, "limit=x": 0,
		"limit=1&limit=1": 0,
	} {
		got, err := warnings.Query(t.Context(), caller, query)
		if want == 0 {
			assert.Equal(t, "limit", view.FaultOf(err, warnings.In).Field, query)
			continue
		}
		require.NoError(t, err, query)
		assert.Len(t, got.(view.List[view.Way]).Items, want, query)
	}
}

// Active rules come in the order in which prompts have them, and others by their time.
func TestOrderOfRules(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	st, err := memstore.New(memstore.Config{Now: func() time.Time { return now }})
	require.NoError(t, err)
	service, err := feedback.New(t.Context(), feedback.Config{Store: st, Now: func() time.Time {
		return now
	}})
	require.NoError(t, err)
	approve := func(d feedback.Draft) feedback.Proposal {
		now = now.Add(time.Hour)
		p, err := service.Rules().Propose(t.Context(), feedback.Submission{Draft: d, Actor: "wendy",
			Reason: "x"})
		require.NoError(t, err)
		for _, who := range []string{"ann", "bob"} {
			_, err = service.Rules().Review(t.Context(), feedback.Review{
				Proposal: p.ID, Decision: feedback.Approved, Actor: who, Reason: "x", Hash: p.Hash(),
			})
			require.NoError(t, err)
		}
		return p
	}
	first := approve(feedback.Draft{Text: "Name the server.", Agents: []string{"a"}})
	second := approve(feedback.Draft{Text: "Give times with their zone.", Agents: []string{"a"}})
	pin := first.Draft
	pin.Change, pin.Of = "PIN", first.ID
	approve(pin)
	source := &view.Source{Store: st, Feedback: service}
	for status, want := range map[string][]string{
		"active": {first.ID, second.ID}, "": {second.ID, first.ID},
	} {
		found, err := source.Rules(t.Context(), view.RuleQuery{Status: status})
		require.NoError(t, err)
		var ids []string
		for i := range found.Items {
			ids = append(ids, found.Items[i].ID)
		}
		assert.Equal(t, want, ids, status)
	}
}

// A fault names the field by its place in the input, and what is not known by its sort.
func TestFaultsNameWhatIsWrong(t *testing.T) {
	answer := operationAt(t, view.AnswerPath)
	caller := &view.Caller{View: &view.Source{}}
	for body, field := range map[string]string{
		`{"text":"x","history":[{"role":"user","text":"y"},{"role":1,"text":"z"}]}`: "history[1].role",
		`{"text":"x","history":[{"role":"user","text":"y"},7]}`:                     "history[1]",
		`{"text":"x","at":7}`: "at", `{"text":"x","text":"y"}`: "text", `{"session":"s"}`: "text",
	} {
		_, err := answer.Do(t.Context(), caller, []byte(body))
		assert.Equal(t, field, view.FaultOf(err, answer.In).Field, body)
	}
	for in, want := range map[reflect.Type]string{
		reflect.TypeFor[view.Reaction]():    "No answer of this id is known, or no longer.",
		reflect.TypeFor[view.Observation](): "No choice of this id is known, or no longer.",
		reflect.TypeFor[view.Search]():      "Nothing of this name is known, or no longer.",
	} {
		assert.Equal(t, want, view.FaultOf(heed.ErrNotFound, in).Detail)
	}
}

// The weeks of a course begin on Mondays, and add up their days.
func TestWeeksOfACourse(t *testing.T) {
	m := loop.Measured{Answers: 2, Outcomes: 1, Success: 1}
	g := view.Gain{Gain: loop.Gain{Days: []loop.GainPart{
		{Name: "2026-03-02", Alone: m}, {Name: "2026-03-09", Alone: loop.Measured{Answers: 2}},
		{Name: "2026-03-15", Alone: loop.Measured{Answers: 6, Outcomes: 3}},
	}}}
	weeks := g.Course(view.ByWeek, 8)
	require.Len(t, weeks, 2)
	assert.Equal(t, "2026-03-09", weeks[1].Name, "a Sunday is of the week before")
	assert.InDelta(t, 8, weeks[1].Alone.Answers, 1e-9)
	assert.Zero(t, weeks[1].Alone.Success)
	assert.Len(t, g.Course(view.ByDay, 2), 2)
}
