package enginetest_test

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// host is an application with all stores in one database.
type host struct {
	handle   *sql.DB
	db       *sqlstore.DB
	evidence *sqlstore.Evidence
	choices  *sqlstore.Choices
	stream   *sqlstore.Stream
	learner  *strategy.Learner
	module   *learning.Module
	recorder *patterns.Recorder
}

func newHost(t testing.TB, at place) *host {
	h := &host{handle: at.handle(t)}
	var err error
	must := func() { require.NoError(t, err) }
	h.db, err = sqlstore.New(ctx, h.handle, at.dialect)
	must()
	h.evidence = newEvidence(t, h.db, sqlstore.EvidenceConfig{NoCache: true})
	h.choices, err = sqlstore.NewChoices(h.db, sqlstore.ChoicesConfig{})
	must()
	h.stream, err = sqlstore.NewStream(ctx, h.db, sqlstore.StreamConfig{Name: "inbox"})
	must()
	h.learner, err = strategy.New(strategy.Config{
		Store: h.evidence, Choices: h.choices, Arms: []strategy.Arm{{ID: "x"}, {ID: "y"}}, Topic: strategy.DefaultTopic,
	})
	must()
	h.module, err = learning.New(learning.Config{Heuristics: sqlstore.NewHeuristics(h.db), Evidence: h.evidence, BySource: true})
	must()
	kept, err := sqlstore.NewPatterns(h.db, sqlstore.PatternsConfig{})
	must()
	h.recorder, err = patterns.New(patterns.Config{Store: kept, Evidence: h.evidence})
	must()
	return h
}

// lives has a person do all that leaves a name behind. The key is in ids, in place of the name.
func (h *host) lives(t testing.TB, key, person string) {
	var err error
	must := func() { t.Helper(); require.NoError(t, err) }

	// As the cause of evidence, of a result, and of an event on its way out.
	choice, err := h.learner.Select(ctx, strategy.Query{Session: key, Item: "item"})
	must()
	_, err = h.learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1, Source: person})
	must()
	_, err = sqlstore.NewHeuristics(h.db).Put(ctx, learning.Heuristic{ID: "h " + key})
	must()
	require.NoError(t, h.module.Fire(ctx, learning.Fire{HeuristicID: "h " + key, EventID: key, Person: person}))
	_, err = h.module.Feedback(ctx, learning.Feedback{HeuristicID: "h " + key, EventID: key, Person: person, Positive: true})
	must()

	// As the cause of what waits.
	waits, err := strategy.NewAttribution(key, time.Now(), strategy.AttributionEvent{Session: key, Source: person})
	must()
	require.NoError(t, h.stream.Publish(ctx, waits))
	require.NoError(t, h.add(evidence.Batch{Events: []evidence.Event{waits}}))
	review, err := json.Marshal(map[string]any{"decision_id": key, "reviewer_id": person, "seconds": json.Number("1.50")})
	must()
	require.NoError(t, h.stream.Publish(ctx, evidence.Event{ID: "review " + key, Topic: "t", At: time.Now(), Payload: review}))

	// As the cause of a task's outcome, and as who decides on a pattern.
	_, err = h.recorder.Record(ctx, patterns.Outcome{ID: key, Task: key, Strategy: "way", Source: person, Success: true})
	must()
	by := patterns.Decision{Actor: person, Reason: "why not"}
	_, err = h.recorder.Define(ctx, patterns.Pattern{ID: patterns.PatternID("p " + key), Content: "c"})
	must()
	_, err = h.recorder.Promote(ctx, patterns.PatternID("p "+key), by)
	must()
	_, err = h.recorder.Reset(ctx, patterns.Reset{Pattern: "way", Decision: by})
	must()
	require.NoError(t, h.recorder.ClearStrikes(ctx, key, by))

	// In the audit log of the evidence, and in the event that tells of it.
	require.NoError(t, h.learner.Reset(ctx, strategy.Reset{Category: "other", Actor: person, Reason: "r"}))
	require.NoError(t, h.add(evidence.Batch{Audit: []evidence.AuditEntry{
		{ID: "about " + key, At: time.Now(), Actor: "ops", Action: "expunge", Subject: person},
	}}))
}

func (h *host) add(b evidence.Batch) error {
	_, err := h.evidence.Commit(ctx, b)
	return err
}

// where returns in which columns, and in documents of which sorts, there is a text in whatever form: every value of every
// table of heed's is looked at.
func (h *host) where(t testing.TB, text string) map[string]int {
	found := make(map[string]int)
	for _, table := range append([]string{"heed_schema"}, tables...) {
		rows, err := h.handle.QueryContext(ctx, "SELECT * FROM "+table)
		require.NoError(t, err)
		columns, err := rows.Columns()
		require.NoError(t, err)
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			require.NoError(t, rows.Scan(into...))
			for i, column := range columns {
				value := fmt.Sprint(values[i])
				if raw, ok := values[i].([]byte); ok {
					value = string(raw)
				}
				if !strings.Contains(strings.ToLower(value), text) {
					continue
				}
				place := table + "." + column
				if table == "heed_documents" {
					place = fmt.Sprintf("%s of %s", column, values[2])
				}
				found[place]++
			}
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	return found
}

// The name has what JSON and statements escape. In whatever form it is kept, its last part is in it.
const (
	annika = `Ann "&" O'Neil`
	neil   = `neil`
)

var payloads = regexp.MustCompile(`"payload":"[^"]*"`)

// readable is an export whose payloads are the texts that they were.
func readable(export string) string {
	return payloads.ReplaceAllStringFunc(export, func(payload string) string {
		_, text, _ := strings.Cut(payload, ":")
		raw, err := base64.StdEncoding.DecodeString(strings.Trim(text, `"`))
		if err != nil {
			return payload
		}
		return `"payload":` + string(raw)
	})
}

var aPseudonym = regexp.MustCompile(`forgotten-[0-9a-f-]{36}`)

// TestForget: no table has the name of a person any more who was everywhere, what others did is as it was, and what is left
// of the person is of one who has no name.
func TestForget(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		h := newHost(t, at)
		h.lives(t, "1", annika)
		h.lives(t, "2", "bob")
		known := h.where(t, neil)
		for _, place := range []string{
			"heed_tallies.source", "heed_history.source", "heed_history.observation", "heed_audit.entry",
			"heed_outbox.payload", "heed_choices.result", "heed_choices.result_by", "heed_stream.payload",
			"body of pattern", "body of transition", "body of entry",
		} {
			assert.Positive(t, known[place], place)
		}
		before := readable(export(t, h.db))

		require.NoError(t, h.db.Forget(ctx, annika))

		assert.Empty(t, h.where(t, neil))
		text := export(t, h.db)
		after := make(map[string]bool)
		for _, line := range strings.Split(readable(text), "\n") {
			after[line] = true
		}
		for _, line := range strings.Split(before, "\n") {
			// Sums that are not kept by origin change, and the last line counts the others.
			if !strings.Contains(strings.ToLower(line), neil) && !strings.Contains(line, `"table":"tallies"`) && !strings.HasPrefix(line, `{"rows"`) {
				assert.True(t, after[line], "it is not as it was: %s", line)
			}
		}
		pseudonyms := make(map[string]bool)
		for _, pseudonym := range aPseudonym.FindAllString(readable(text), -1) {
			pseudonyms[pseudonym] = true
		}
		require.Len(t, pseudonyms, 1)

		require.NoError(t, h.db.Forget(ctx, annika), "there is nothing left to do")
		assert.Equal(t, text, export(t, h.db))
		require.ErrorAs(t, h.db.Forget(ctx, ""), new(*heed.InputError))
		assert.Equal(t, text, export(t, h.db))
		h.requireForgotten(t)
	})
}

// requireForgotten checks that all reads well in which the first of two persons was.
func (h *host) requireForgotten(t *testing.T) {
	r, err := h.learner.Find(ctx, "1", "item", time.Time{})
	require.NoError(t, err)
	assert.Equal(t, []any{strategy.Observed, "", 1.}, []any{r.Stage, r.Result.Source, r.Result.Value})
	entries, err := collect(h.evidence.Audit(ctx))
	require.NoError(t, err)
	assert.Len(t, entries, 6)

	p, err := h.recorder.Standing(ctx, "p 1")
	require.NoError(t, err)
	pseudonym := p.Pattern.Override.Decision.Actor
	assert.Regexp(t, aPseudonym, pseudonym)

	_, err = h.recorder.Reset(ctx, patterns.Reset{Pattern: "p 1", Decision: patterns.Decision{Actor: "cleo", Reason: "r"}})
	require.NoError(t, err)

	// Of what waits, the other's attribution and both reviews are left, and what a learner did leads elsewhere to the same.
	var left []string
	for range 3 {
		d, err := h.stream.Receive(ctx)
		require.NoError(t, err)
		left = append(left, d.Event().ID)
		if d.Event().ID == "review 1" {
			assert.JSONEq(t, `{"decision_id": "1", "reviewer_id": "`+pseudonym+`", "seconds": 1.5}`, string(d.Event().Payload))
			assert.Contains(t, string(d.Event().Payload), "1.50", "numbers stay as they were written")
		}
		require.NoError(t, d.Ack(ctx))
	}
	assert.Equal(t, []string{"review 1", "2", "review 2"}, left)
	elsewhere := &memstore.Evidence{}
	replica, err := strategy.New(strategy.Config{Store: elsewhere, Arms: h.learner.Config().Arms})
	require.NoError(t, err)
	var log []evidence.Event
	for e, err := range h.evidence.Outbox(ctx) {
		require.NoError(t, err)
		log = append(log, e)
	}
	require.NotEmpty(t, log)
	_, err = replica.Replay(ctx, func(yield func(evidence.Event, error) bool) {
		for _, e := range log {
			if e.Topic == strategy.DefaultTopic && !yield(e, nil) {
				return
			}
		}
	})
	require.NoError(t, err)
	require.NoError(t, h.learner.Refresh(ctx))
	want, err := h.learner.Beliefs(ctx, strategy.Query{Item: "item"})
	require.NoError(t, err)
	got, err := replica.Beliefs(ctx, strategy.Query{Item: "item"})
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// TestForgetKeepsTexts: what people wrote stays, and so does what a host has named after a person.
func TestForgetKeepsTexts(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		h := newHost(t, at)
		o := observe("neil", time.Now())
		o.Cell.Item, o.Session, o.Source = "neil", "neil", "bob"
		require.NoError(t, h.add(evidence.Batch{
			Observations: []evidence.Observation{o},
			Audit:        []evidence.AuditEntry{{ID: "a", At: time.Now(), Action: "neil", Reason: "neil"}},
			Events: []evidence.Event{
				{ID: "neil", Topic: "t", At: time.Now(), Payload: []byte(`{"actor":"neil","source":"neil"}`)},
				{ID: "e", Topic: "t", At: time.Now(), Payload: []byte("neil")},
			},
		}))
		before := export(t, h.db)
		require.NoError(t, h.db.Forget(ctx, "neil"))
		assert.Equal(t, before, export(t, h.db))
	})
}

// TestForgetIsWhole: where a part of it can't be done, none is.
func TestForgetIsWhole(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		h := newHost(t, at)
		h.lives(t, "1", annika)
		for _, damage := range []struct {
			is         error
			statements [2]string // that make it, and that take it back
		}{
			{evidence.ErrForgotten, [2]string{"UPDATE heed_tallies SET lost_source = 1", "UPDATE heed_tallies SET lost_source = 0"}},
			{nil, [2]string{"UPDATE heed_audit SET entry = 'x' || entry", "UPDATE heed_audit SET entry = substr(entry, 2)"}},
			{nil, [2]string{
				"UPDATE heed_choices SET result = 'x' || result WHERE result_by <> ''",
				"UPDATE heed_choices SET result = substr(result, 2) WHERE result_by <> ''",
			}},
			{nil, [2]string{
				"UPDATE heed_documents SET body = 'x' || body WHERE sort = 'entry'",
				"UPDATE heed_documents SET body = substr(body, 2) WHERE sort = 'entry'",
			}},
		} {
			_, err := h.handle.Exec(damage.statements[0])
			require.NoError(t, err)
			before := export(t, h.db)
			err = h.db.Forget(ctx, annika)
			require.Error(t, err, damage.statements[0])
			if damage.is != nil {
				require.ErrorIs(t, err, damage.is)
			}
			require.NotContains(t, err.Error(), neil, "an error has no name in it")
			require.Equal(t, before, export(t, h.db))
			_, err = h.handle.Exec(damage.statements[1])
			require.NoError(t, err)
		}
		done, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, h.db.Forget(done, annika), context.Canceled)
		require.NoError(t, h.db.Forget(ctx, annika))
		assert.Empty(t, h.where(t, neil))
	})
}

// TestForgetInAnyCase: what a person caused is found by their very name, and what they decided in any case.
func TestForgetInAnyCase(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		h := newHost(t, at)
		var b evidence.Batch
		for _, who := range []string{"Ann", "ANN", "annex", "Änn"} {
			o := observe(who, time.Now())
			o.Source = who
			b.Observations = append(b.Observations, o)
			b.Audit = append(b.Audit, evidence.AuditEntry{ID: who, At: time.Now(), Actor: who, Action: "a"})
		}
		require.NoError(t, h.add(b))
		require.NoError(t, h.db.Forget(ctx, "ANN"))
		assert.ElementsMatch(t, []string{"Ann", "annex", "Änn"}, historyOf(t, h.evidence))
		var actors []string
		for e, err := range h.evidence.Audit(ctx) {
			require.NoError(t, err)
			actors = append(actors, e.Actor)
		}
		assert.Regexp(t, aPseudonym, actors[2])
		assert.Equal(t, []string{"Änn", "annex", actors[2], actors[2]}, actors)
	})
}

// TestForgetKnowsItsOwnEvents: whatever heed would read as an event of its own loses the name, in whatever letters its keys are;
// what is of the host's making stays.
func TestForgetKnowsItsOwnEvents(t *testing.T) {
	const gone = ""
	payloads := map[string]string{
		`{"session":"1","source":"bob","order":{"total":12}}`:                                                `{"session":"1","source":"bob","order":{"total":12}}`,
		"{\"decision_id\":\"1\",\"reviewer_id\":\"bob\"}\n{\"decision_id\":\"2\",\"reviewer_id\":\"ann\"}\n": "{\"decision_id\":\"1\",\"reviewer_id\":\"bob\"}\n{\"decision_id\":\"2\",\"reviewer_id\":\"ann\"}\n",
		`{"Session":"1","Source":"bob","Attribution_Records":[{"item":"i","attributed_value":1}]}`:           gone,
		`{"session":"1","source":"bob"}`:                                                                     gone,
		`{"session":"1","source":"ann","Source":"bob"}`:                                                      gone,
		`{"decision_id":"1","Reviewer_ID":"bob"}`:                                                            `{"Reviewer_ID":"someone","decision_id":"1"}`,
		`{"session":"1","source":"ann","session_ended":true}`:                                                `{"session":"1","source":"ann","session_ended":true}`,
	}
	onEach(t, func(t *testing.T, at place) {
		db := at.db(t)
		stream, err := sqlstore.NewStream(ctx, db, sqlstore.StreamConfig{Name: "s"})
		require.NoError(t, err)
		want := make(map[string]string)
		for payload, after := range payloads {
			require.NoError(t, stream.Publish(ctx, evidence.Event{ID: payload, Topic: "t", At: time.Now(), Payload: []byte(payload)}))
			if after != gone {
				want[payload] = after
			}
		}
		require.NoError(t, db.Forget(ctx, "bob"))
		stream.Close()
		got := make(map[string]string)
		for {
			d, err := stream.Receive(ctx)
			if errors.Is(err, strategy.ErrClosed) {
				break
			}
			require.NoError(t, err)
			got[d.Event().ID] = aPseudonym.ReplaceAllString(string(d.Event().Payload), "someone")
			require.NoError(t, d.Ack(ctx))
		}
		assert.Equal(t, want, got)
	})
}

// TestForgetNamesTheSums that may have the person in them, and a cell of the person's name goes though it was restarted.
func TestForgetNamesTheSums(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		now := time.Now()
		db := at.db(t)
		store := newEvidence(t, db, sqlstore.EvidenceConfig{Now: func() time.Time { return now }})
		bobs := evidence.Cell{Kind: "k", Item: "bob"}
		one := evidence.Observation{ID: "1", Cell: bobs, Source: "bob", Weight: 1, At: now.Add(-time.Hour)}
		_, err := store.Commit(ctx, evidence.Batch{Observations: []evidence.Observation{one}})
		require.NoError(t, err)
		_, err = store.Commit(ctx, evidence.Batch{Restart: []evidence.Restart{{Cell: bobs, At: now}}})
		require.NoError(t, err)
		require.NoError(t, db.Forget(ctx, "bob"))
		assert.NotContains(t, export(t, db), "bob")

		o := observe("ann's", now)
		o.Source = "ann"
		add(t, store, o)
		now = now.Add(31 * 24 * time.Hour)
		require.NoError(t, store.Sweep(ctx))
		err = db.Forget(ctx, "anybody")
		require.ErrorIs(t, err, evidence.ErrForgotten)
		assert.ErrorContains(t, err, fmt.Sprintf("kind %q and scope %q", arm.Kind, arm.Scope))
	})
}
