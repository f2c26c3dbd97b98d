//go:build !race

// The race detector makes these tests several times slower. Nothing in them is concurrent.

package web_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/web"
)

// compared returns pages over an agent with good answers after learning, and without it one in
// three.
func compared(t *testing.T, control float64, pause time.Duration) *web.Handler {
	t.Helper()
	now := start
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	agent, err := loop.New(t.Context(), loop.Config{
		Store: st, Name: "desk", Model: parrot{"Rotate the logs."}, Control: control,
		Arms:    []loop.Arm{{ID: "short"}, {ID: "long"}},
		Testing: loop.Testing{Now: clock, Seed: rand.NewPCG(1, 2)},
	})
	require.NoError(t, err)
	for i := range 300 {
		now = now.Add(pause)
		id := fmt.Sprint("e", i)
		_, err := agent.Answer(t.Context(), loop.Event{ID: id, Session: id, Text: "?", Domain: "disks"})
		require.NoError(t, err)
		account, err := agent.Explain(t.Context(), id)
		require.NoError(t, err)
		r := loop.Reaction{Person: "ann", Value: 1}
		if account.Control != nil && i%3 > 0 {
			r.Value = -1
		}
		require.NoError(t, agent.React(t.Context(), id, r))
	}
	h, err := web.New(web.Config{Agent: agent, Identify: byHeader, Now: clock})
	require.NoError(t, err)
	return h
}

func TestTheFirstPageShowsWhatLearningGains(t *testing.T) {
	h := compared(t, 0.2, 2*time.Hour)
	w := &world{T: t}
	page := w.shown(h, "/")
	for _, part := range []string{"Learning helps", "at every look", "without learning cost",
		"polyline", start.Format("2006-01-")} {
		assert.Contains(t, page, part)
	}
	page = w.shown(h, "/gain?by=week")
	assert.Contains(t, page, "Week from")
	assert.Contains(t, page, "disks")

	var g view.Gain
	require.NoError(t, json.Unmarshal([]byte(w.shown(h, "/v1/gain")), &g))
	assert.Equal(t, loop.Helps, g.Verdict)
	assert.InDelta(t, 1, g.Learned.Success, 1e-9)
	var n float64
	for _, week := range g.Course(view.ByWeek, 100) {
		n += week.Learned.Outcomes + week.Control.Outcomes
	}
	assert.InDelta(t, 300, n, 1e-6)

	page = w.shown(compared(t, 0, 2*time.Hour), "/")
	assert.Contains(t, page, "does not show whether learning is the cause")
	assert.Equal(t, http.StatusUnprocessableEntity,
		ask{path: "/gain?by=hour", person: "ann"}.of(h).Code)
}

// The course has at most 60 points: of days where that is enough, or else of weeks, unless a reader
// asks for days.
func TestTheCourseIsBounded(t *testing.T) {
	w := &world{T: t}
	points := func(h http.Handler, path string) int {
		page := w.shown(h, path)
		line := regexp.MustCompile(`<polyline[^>]* points="([^"]*)"`).FindStringSubmatch(page)
		require.Len(t, line, 2, path)
		return len(strings.Fields(line[1]))
	}
	days := compared(t, 0, 4*time.Hour) // 50 days, and a part of one
	assert.Equal(t, 51, points(days, "/gain"))
	assert.Contains(t, w.shown(days, "/gain"), `href="?by=day" aria-current="true"`)
	weeks := compared(t, 0, 6*time.Hour) // 75 days
	assert.Equal(t, 11, points(weeks, "/gain"))
	assert.Equal(t, 60, points(weeks, "/gain?by=day"))
}

// The list of answers finds the bad ones of a time, and a person corrects one and takes it back.
func TestAnswersAreFoundAndCorrected(t *testing.T) {
	h := compared(t, 0.2, 2*time.Hour)
	w := &world{T: t}
	list := func(query string) (l view.List[view.Answer]) {
		require.NoError(t, json.Unmarshal([]byte(w.shown(h, "/v1/answers?"+query)), &l))
		return l
	}
	bad := list("sort=worst&limit=200").Items
	require.NotEmpty(t, bad)
	for _, a := range bad {
		assert.True(t, a.Known && a.Worth < 0 && a.Control, a.ID)
	}
	page := w.shown(h, "/answer?id="+bad[0].ID)
	assert.Contains(t, page, "the default arm <bdi>short</bdi> answered")
	assert.Contains(t, page, "Was it wrong?")
	assert.Contains(t, page, `action="/answer/correct"`)
	assert.Len(t, list("outcome=bad&limit=200").Items, len(bad))
	assert.Len(t, list("outcome=good&limit=200").Items, 200)
	assert.NotEmpty(t, list("outcome=good&limit=200").Next)
	assert.Empty(t, list("outcome=unknown").Items)
	assert.Empty(t, list("person=bob").Items)
	assert.Empty(t, list("arm=none").Items)
	day := start.AddDate(0, 0, 3).Format(time.DateOnly)
	assert.Len(t, list("since="+day+"&until="+day).Items, 12)
	for _, fault := range []string{"since=yesterday", "outcome=fine", "sort=best"} {
		assert.Equal(t, http.StatusUnprocessableEntity,
			ask{path: "/v1/answers?" + fault, person: "ann"}.of(h).Code, fault)
		assert.Equal(t, http.StatusUnprocessableEntity,
			ask{path: "/answers?" + fault, person: "ann"}.of(h).Code, fault)
	}
	page = w.shown(h, "/answers?sort=worst")
	assert.Contains(t, page, "without learning")
	assert.Contains(t, page, bad[0].ID)

	good := list("outcome=good&limit=1").Items[0].ID
	post := func(path string, form url.Values) int {
		form.Set("id", good)
		return ask{method: http.MethodPost, path: path, person: "kim", form: form}.of(h).Code
	}
	for _, text := range []string{"", strings.Repeat("x", 501)} {
		assert.Equal(t, http.StatusUnprocessableEntity, post("/answer/correct",
			url.Values{"text": {text}}))
	}
	assert.Equal(t, http.StatusSeeOther, post("/answer/correct",
		url.Values{"text": {"Name the server."}}))
	page = w.shown(h, "/answer?id="+good)
	assert.Contains(t, page, "kim")
	assert.Contains(t, page, "0.00, from") // ann was content, and kim was not
	assert.Equal(t, http.StatusSeeOther, post("/answer/undo", url.Values{}))
	assert.Contains(t, w.shown(h, "/answer?id="+good), "-1.00")
	assert.Len(t, list("sort=worst&limit=200").Items, len(bad)+1)
}
