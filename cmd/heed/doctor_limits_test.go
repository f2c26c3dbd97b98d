package main

import (
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

// findings returns what doctor or the overview finds at a moment, in one text.
func findings(t *testing.T, db string, now time.Time, command ...string) string {
	t.Helper()
	args := append([]string{"--db", db, "--json", "--now", now.Format(time.RFC3339Nano)}, command...)
	out, err := within(args)
	require.NoError(t, err, out)
	return out
}

// What waits or is kept is reported only after its time.
func TestDoctorWaits(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	require.NoError(t, w.store.Declare(ctx, stream.Outbox))
	sent := func(from, to int) {
		var all []store.Record
		for i := from; i < to; i++ {
			all = append(all, stream.Event{ID: fmt.Sprintf("e%04d", i), Topic: "t",
				At: end.Add(time.Duration(i) * time.Microsecond)}.Waiting())
		}
		_, err := w.store.Commit(ctx, store.Batch{Records: all})
		require.NoError(t, err)
	}
	sent(0, 1)
	var traces []time.Time
	onFile(t, db, func(handle *sql.DB) {
		rows, err := handle.Query(
			"SELECT at FROM heed_record WHERE kind = 'decision.trace' ORDER BY at")
		require.NoError(t, err)
		for rows.Next() {
			var at int64
			require.NoError(t, rows.Scan(&at))
			traces = append(traces, time.UnixMicro(at))
		}
		require.NoError(t, errors.Join(rows.Err(), rows.Close()))
	})
	require.Len(t, traces, 2)
	for _, of := range []struct {
		since  time.Time
		waits  time.Duration
		report string
	}{
		{end, time.Hour, "1 event waits in the outbox, the first since 2026-01-09 08:00:00"},
		{traces[0], 2 * day, "1 is kept of decision.trace longer than 1 day"},
		{traces[1], 2 * day, "2 are kept of decision.trace longer than 1 day"},
	} {
		assert.NotContains(t, findings(t, db, of.since.Add(of.waits), "doctor"), of.report)
		late := of.since.Add(of.waits + time.Second)
		assert.Contains(t, findings(t, db, late, "doctor"), of.report)
	}
	sent(1, 999)
	assert.Contains(t, findings(t, db, end.Add(2*time.Hour), "doctor"), "999 events wait")
	sent(999, 1001)
	assert.Contains(t, findings(t, db, end.Add(2*time.Hour), "doctor"), "1000 or more events wait")
}

// An overview names the newest proposals and counts all, and misses an application after a week.
func TestTheOverviewIsShort(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	statement(t, db, stillOpen)
	w := host(t, db)
	service, err := feedback.Open(ctx, feedback.Config{Store: w.store, Now: w.clock})
	require.NoError(t, err)
	for i := range 4 {
		w.now = w.now.Add(time.Minute)
		_, err := service.Rules().Propose(ctx, feedback.Submission{Draft: feedback.Draft{
			Text: fmt.Sprint("Do it in way number ", i), Agents: []string{"writer"}},
			Actor: "wendy", Reason: "x"})
		require.NoError(t, err)
	}
	sum := read[summary](t, at(db)...)
	assert.Equal(t, 6, sum.Pending)
	require.Len(t, sum.Waiting, 5)
	assert.Equal(t, "Do it in way number 3", sum.Waiting[0].Text)
	const idle = "no process has written here for "
	assert.NotContains(t, findings(t, db, sum.Written.Add(7*day)), idle)
	assert.Contains(t, findings(t, db, sum.Written.Add(7*day+time.Second)), idle+"7 days")

	for agent, count := range map[string]int{"coder": 2, "writer": 4} {
		rules := read[[]view.Rule](t, at(db, "rules", "list", "--agent", agent)...)
		assert.Len(t, rules, count, agent)
	}
	empty := filepath.Join(t.TempDir(), "new.db")
	require.Zero(t, call{args: []string{"--db", empty, "store", "migrate"}}.run(t).code)
	assert.Contains(t, call{args: []string{"--db", empty}}.run(t).out,
		"nothing was ever learned here")
}

// A person is named by a text that is their name, however deep in a document, in a text or an
// encoding of one.
func TestWhoIsMentioned(t *testing.T) {
	t.Parallel()
	coded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for want, values := range map[bool][]any{
		true: {"ann", "Ann", store.Key("person", "ann"), []any{"bob", "ann"},
			map[string]any{"by": "ann"}, map[string]any{"a": []any{1.0, map[string]any{"b": "ann"}}},
			`{"by": "ann"}`,
			`{"in": ["bob", "{\"by\": \"ann\"}"]}`, coded(`{"by": "ann"}`)},
		false: {"anna", "", nil, 7.0, true, []any{}, map[string]any{"ann": "bob"},
			`{"by": "bob"}`, `{"by": "ann"`, coded("ann"), store.Key("person", "bob"),
			`it was {"by": "ann"}`},
	} {
		for _, value := range values {
			assert.Equal(t, want, mentioned("ann", value, strings.EqualFold), "%v", value)
		}
	}
	for says, found := range map[string]map[string][]string{
		"no row of the store has that name":                       {},
		"rows that belong to no tenant have that name: leave out": {"": {"x"}, "acme": {"x"}},
		`with --tenant in each of "acme", "bravo"`:                {"bravo": {"x"}, "acme": {"x"}},
	} {
		err := notNamed("ann", found)
		require.ErrorContains(t, err, `there is no person "ann": `)
		require.ErrorContains(t, err, says)
	}
}

// A refusal says what to do about it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	require.Same(t, other, refused(other))
	require.NoError(t, refused(nil))
	for says, why := range map[string]*feedback.RefusedError{
		"the rule is retired: it is in no prompt, and the pages propose to restore it": {
			Reason: "The rule is RETIRED", State: "retired", Err: other},
		"it contradicts: retire those, or have it approved with --override": {Reason: "it contradicts",
			Conflicts: []feedback.Conflict{{}}},
		"you wrote it: have somebody else approve it": {Reason: "you wrote it"},
		"the host refuses: other":                     {Reason: "the host refuses", Err: other},
	} {
		assert.EqualError(t, refused(fmt.Errorf("%w", why)), says)
	}
	for says, way := range map[string]view.Way{
		"  PROVEN  ": {State: "PROVEN"}, "  PROVEN, by hand  ": {State: "PROVEN", ByHand: true},
	} {
		var out strings.Builder
		require.NoError(t, (&printer{w: &out}).render("ways", []view.Way{way}))
		assert.Contains(t, out.String(), says)
	}
}

// A filter selects what is shown and what is reset.
func TestFilters(t *testing.T) {
	t.Parallel()
	db, hash := undecided(t)
	of := func(command string) (string, error) {
		return within(append([]string{"--db", db, "--json"}, strings.Fields(command)...))
	}
	for command, count := range map[string]int{
		"strategy --agent strategy learning prefer-tabs":                       1,
		"strategy --agent strategy learning prefer-tabs --category correction": 1,
		"strategy --agent strategy learning prefer-tabs --context interactive": 1,
		"strategy --agent strategy show correction":                            2,
		"strategy --agent strategy show correction --context code_review":      1,
		"strategy --agent strategy learning prefer-tabs --category tool_usage": -1,
		"strategy --agent strategy learning prefer-tabs --context code_review": -1,
		"strategy --agent strategy show correction --context nowhere":          -1,
		"strategy --agent strategy history prefer-tabs --limit 3":              3,
		"strategy --agent strategy history say-please --stage pending":         1,
		"confidence --domain chat":                                             1,
		"store audit --limit 2":                                                2,
	} {
		out, err := of(command)
		if count < 0 {
			require.Error(t, err, command)
			continue
		}
		require.NoError(t, err, command)
		assert.Equal(t, count, strings.Count(out, "\n  {"), "%s: %s", command, out)
	}
	for items, lines := range map[string]int{"0": 0, "1": 1, "9": 2} {
		all := read[[]view.SegmentDetail](t, at(db, "strategy", "--agent", "strategy", "show",
			"correction", "--context", "interactive", "--items", items)...)
		assert.Len(t, all[0].Standings, lines)
	}
	assert.Len(t, read[view.HeuristicDetail](t, at(db, "confidence", "greet-by-name", "--limit",
		"2")...).History, 2)
	for n, code := range map[int]int{7: failed, 8: done} {
		r := call{args: []string{"--db", db, "rules", "approve", "7d0c2b13-rule", "--hash", hash[:n],
			"--yes", "--reason", "x"}}.run(t)
		assert.Equal(t, code, r.code, "%d characters: %s", n, r.err)
	}
}
