package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/web"
)

// The command, the API and the pages show the same numbers of one store.
func TestRenderersShowTheSame(t *testing.T) {
	t.Parallel()
	file := sqliteFile(t)
	onFile(t, file, func(handle *sql.DB) {
		moment, err := time.Parse(time.RFC3339, asOf)
		require.NoError(t, err)
		clock := func() time.Time { return moment }
		st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{Now: clock})
		require.NoError(t, err)
		learner, err := strategy.Open(ctx, strategy.Config{Store: st, Name: "strategy", Now: clock})
		require.NoError(t, err)
		module, err := learning.Open(ctx, learning.Config{Store: st, Now: clock})
		require.NoError(t, err)
		pages, err := web.Over(&view.Source{Store: st, Strategy: learner, Learning: module},
			web.Config{
				Now: clock, Identify: func(*http.Request) (string, error) { return "kim", nil },
			})
		require.NoError(t, err)
		get := func(path string) []byte {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
			require.Equal(t, http.StatusOK, w.Code, path)
			return w.Body.Bytes()
		}
		var segments view.List[view.Segment]
		require.NoError(t, json.Unmarshal(get("/v1/segments"), &segments))
		require.NotEmpty(t, segments.Items)
		shown := read[[]view.Segment](t,
			at(file, "strategy", "--agent", "strategy", "distributions")...)
		assert.Equal(t, segments.Items, shown)
		var heuristics view.List[view.Heuristic]
		require.NoError(t, json.Unmarshal(get("/v1/heuristics"), &heuristics))
		require.NotEmpty(t, heuristics.Items)
		assert.Equal(t, heuristics.Items, read[[]view.Heuristic](t, at(file, "confidence")...))
		for _, s := range segments.Items {
			assert.Contains(t, string(get("/arms")), fmt.Sprintf("%.0f %%", 100*s.Lead().Mean))
		}
		for _, h := range heuristics.Items {
			assert.Contains(t, string(get("/heuristics")), fmt.Sprintf("%.3f", h.Confidence))
		}
	})
}
