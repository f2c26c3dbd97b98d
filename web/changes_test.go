package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// The page of changes has what learning changed and what people decided, each with a link to why,
// by time, kind, domain and name.
func TestWhatChanged(t *testing.T) {
	hs := newHouse(t)
	require.NoError(t, hs.store.Declare(t.Context(), store.Audit))
	scope := answers.Scope("mail", "at night")
	entries := []store.AuditEntry{
		{Action: "loop.leads", Subject: scope, Details: map[string]string{"arm": "long"}},
		{Action: "loop.leads", Subject: scope, Details: map[string]string{"arm": "short",
			"before": "long"}},
		{Action: "loop.answers", Subject: "rotate", Details: map[string]string{"domain": "disks"}},
		{Action: "loop.outage", Subject: "store"},
		{Action: "strategy.reset", Actor: "kim", Details: map[string]string{"category": "disks",
			"context": ""}},
		{Action: "strategy.revise", Actor: "kim", Subject: "office",
			Details: map[string]string{"category": "disks"}},
		{Action: "loop.import", Details: map[string]string{"answers": "40", "of arm long": "40"}},
		{Action: "patterns.promote", Actor: "kim", Subject: "split"},
		{Action: "feedback.promote", Subject: "review-7"},
		{Action: "feedback.propose.refused", Subject: "proposal-7"},
	}
	for i, e := range entries {
		e.ID, e.At = string(rune('a'+i)), hs.now.Add(time.Duration(i-48)*time.Hour)
		_, err := hs.store.Commit(t.Context(), store.Batch{Records: []store.Record{e.Record()}})
		require.NoError(t, err)
	}
	all := hs.get("kim", "/changes")
	for _, want := range []string{
		"found that short leads instead of long", "found that long leads<",
		`href="/segment?category=mail&amp;context=at&#43;night"`, `href="/heuristic?id=rotate"><bdi>rotate</bdi></a>`,
		"found that it answers by itself", "found that it can&#39;t be reached", "promoted (patterns)",
		"<bdi>mail, at night</bdi>", "imported 40 answers, 40 of arm long", `<a href="/answers"><bdi>answers</bdi></a>`,
		`href="/way?id=split"`, `href="/correction?id=review-7"`, `href="/segment?category=disks&amp;context="`,
		`href="/changes?name=store"`,
	} {
		assert.Contains(t, all, want)
	}
	assert.NotContains(t, all, "revised", "a single statement")
	assert.NotContains(t, all, "proposal-7", "no page has what was refused")
	for query, rows := range map[string]int{
		"kind=statement": 1, "kind=arm": 3, "domain=mail": 2, "domain=disks": 2, "name=kim": 2,
		"name=ROTATE": 1, "since=2026-02-28": 9, "kind=import": 1, "until=2026-02-27": 0,
		"kind=incident": 1,
	} {
		page := hs.get("kim", "/changes?"+query)
		assert.Equal(t, rows, max(strings.Count(page, "<tr>")-1, 0), query)
	}
	got := ask{method: http.MethodGet, path: "/v1/changes?kind=arm&limit=1", person: "kim"}.of(hs.h)
	assert.Equal(t, http.StatusOK, got.Code)
	assert.Contains(t, got.Body.String(), `"action":"strategy.reset","details":{"category":"disks","context":""},"kind":"arm"`)
	assert.Contains(t, got.Body.String(), `"next":`)
}
