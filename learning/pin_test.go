package learning_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

func at(share float64) learning.Constraints {
	return learning.Constraints{Floor: share, Ceiling: share}
}

func (f *fixture) audit() (all []store.AuditEntry) {
	f.Helper()
	for e, err := range store.AuditEntries(ctx, f.store, store.Query{}) {
		require.NoError(f, err)
		all = append(all, e)
	}
	return all
}

// It holds the confidence whatever is heard, in one commit with its audit entry, and what the host
// had set is there again afterwards.
func TestPin(t *testing.T) {
	f := newFixture(t, learning.Config{})
	host := learning.Constraints{Floor: 0.4, Ceiling: 0.6, FeedbackWeight: 0.5}
	f.put(learning.Heuristic{ID: "h", Initial: 0.5, Constraints: host})
	commits := len(f.store.commits)
	pin := learning.Pin{HeuristicID: "h", Constraints: at(0.2), Actor: "Ops",
		Reason: "it upsets visitors", At: start}
	require.NoError(t, f.Pin(ctx, pin))
	assert.Len(t, f.store.commits, commits+1)
	f.apply("1", "h", 5)
	assert.Equal(t, 0.2, f.confidence("h"))
	assert.Equal(t, pin, f.standing("h").Pin)
	e, err := f.Explain(ctx, "h")
	require.NoError(t, err)
	assert.Equal(t, learning.Constraints{Lock: "unlocked", Floor: 0.2, Ceiling: 0.2,
		FeedbackWeight: 0.5}, e.Constraints)

	f.clock.Advance(time.Minute)
	pin.At = time.Time{}
	commits = len(f.store.commits)
	require.NoError(t, f.Pin(ctx, pin), "the same again")
	assert.Len(t, f.store.commits, commits)
	pin.Constraints = at(0.3)
	require.NoError(t, f.Pin(ctx, pin))
	ends := learning.Pin{HeuristicID: "h", Actor: "Ops", Reason: "its text was rewritten"}
	require.NoError(t, f.Pin(ctx, ends))
	assert.Equal(t, 0.6, f.confidence("h"),
		"the host's range holds again, and what was heard meanwhile counts")
	assert.Equal(t, learning.Pin{}, f.standing("h").Pin)
	assert.Equal(t, host, f.standing("h").Heuristic.Constraints)
	assert.ErrorIs(t, f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: "Ops"}), heed.ErrNotFound)
	require.NoError(t, f.Pin(ctx, pin))
	pin.Constraints = learning.Constraints{Lock: "locked", FeedbackWeight: 2}
	require.NoError(t, f.Pin(ctx, pin))

	var got [][]string
	for _, e := range f.audit() {
		assert.Equal(t, "Ops", e.Actor)
		assert.Equal(t, "h", e.Subject)
		got = append(got, []string{e.Action, e.Reason, e.Details["before"], e.Details["after"]})
	}
	assert.ElementsMatch(t, [][]string{
		{"learning.pin", "it upsets visitors", "nothing", "0.2 to 0.2"},
		{"learning.pin", "it upsets visitors", "0.2 to 0.2", "0.3 to 0.3"},
		{"learning.unpin", "its text was rewritten", "0.3 to 0.3", "nothing"},
		{"learning.pin", "it upsets visitors", "nothing", "0.3 to 0.3"},
		{"learning.pin", "it upsets visitors", "0.3 to 0.3", "locked, weight 2"},
	}, got)
}

func TestPinRefuses(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	good := learning.Pin{HeuristicID: "h", Constraints: at(0.2), Actor: "ops"}
	for field, spoil := range map[string]func(*learning.Pin){
		"Actor":               func(p *learning.Pin) { p.Actor = "" },
		"Reason":              func(p *learning.Pin) { p.Reason = "\xff" },
		"Constraints.Ceiling": func(p *learning.Pin) { p.Constraints = at(2) },
	} {
		p := good
		spoil(&p)
		assertInputError(t, f.Pin(ctx, p), field)
	}
	good.HeuristicID = "no such"
	assert.ErrorIs(t, f.Pin(ctx, good), heed.ErrNotFound)
	assert.ErrorIs(t, f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: "ops"}), heed.ErrNotFound)
	assertInputError(t, f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: ""}), "Actor")
	assertInputError(t, f.Pin(ctx, learning.Pin{Actor: "ann"}), "HeuristicID")
	assert.Empty(t, f.audit())
}

// They are listed by id, changed by revision, and deleted with their pins.
func TestHeuristics(t *testing.T) {
	f := newFixture(t, learning.Config{})
	full := learning.Heuristic{
		ID: "heuristic/1 — ✓", Domain: "home", Pack: "kitchen", Action: "switch it off",
		Condition: "the oven is on\nand nobody is in", Initial: 0.45,
		Constraints: learning.Constraints{Lock: "unlocked",
			Floor: 0.2, Ceiling: 0.9, FeedbackWeight: 0.5},
		CreatedAt: time.Date(2026, 3, 14, 15, 9, 26, 535897932, time.FixedZone("", 3600)),
	}
	stored := f.put(full)
	full.CreatedAt, full.Revision = time.Date(2026, 3, 14, 14, 9, 26, 535897000, time.UTC),
		stored.Revision
	assert.Equal(t, full, stored)
	assert.Equal(t, full, f.standing(full.ID).Heuristic)
	for _, id := range []string{"b", "a", "é", "Z"} {
		assert.Equal(t, start, f.put(learning.Heuristic{ID: id}).CreatedAt)
	}
	var ids []string
	for h, err := range f.Heuristics(ctx) {
		require.NoError(t, err)
		assert.NotZero(t, h.Revision)
		if ids = append(ids, h.ID); h.ID == full.ID {
			break
		}
	}
	assert.Equal(t, []string{"Z", "a", "b", full.ID}, ids)

	again := full
	again.Revision = 0
	equal, err := f.Put(ctx, again)
	require.NoError(t, err, "it is there")
	assert.Equal(t, full, equal)
	_, err = f.Put(ctx, learning.Heuristic{ID: "a", Domain: "garden"})
	assert.ErrorIs(t, err, heed.ErrConflict, "another one is there")
	assert.EqualError(t, err,
		"learning: put: a heuristic of this id is stored with another revision: conflict")
	changed := full
	changed.Domain = "garden"
	changed = f.put(changed)
	_, err = f.Put(ctx, full)
	assert.ErrorIs(t, err, heed.ErrConflict, "somebody was quicker")
	f.apply("1", full.ID, 1)
	confidence := f.confidence(full.ID)
	require.NoError(t, f.Pin(ctx, learning.Pin{HeuristicID: full.ID, Constraints: at(0.2),
		Actor: "ops"}))
	require.NoError(t, f.Delete(ctx, full.ID))
	assert.ErrorIs(t, f.Delete(ctx, full.ID), heed.ErrNotFound)
	_, err = f.Standing(ctx, full.ID)
	assert.ErrorIs(t, err, heed.ErrNotFound)
	_, err = f.Put(ctx, changed)
	assert.ErrorIs(t, err, heed.ErrConflict, "it is gone")
	full.Revision = 0
	f.put(full)
	assert.Equal(t, confidence, f.confidence(full.ID),
		"the evidence stays, whatever the domain, and the pin does not")

	last := time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{time.Unix(0, 1000).UTC(), last} {
		assert.Equal(t, at, f.put(learning.Heuristic{ID: at.String(), CreatedAt: at}).CreatedAt)
	}
	_, err = f.Put(ctx, learning.Heuristic{ID: "x", CreatedAt: last.Add(time.Hour)})
	assertInputError(t, err, "CreatedAt")
	for weight, fine := range map[float64]bool{0.24: false, 0.25: true, 2: true, 2.01: false} {
		_, err := f.Put(ctx, learning.Heuristic{ID: fmt.Sprint(weight),
			Constraints: learning.Constraints{FeedbackWeight: weight}})
		if assert.Equal(t, fine, err == nil, weight); !fine {
			assertInputError(t, err, "Constraints.FeedbackWeight")
		}
	}
	for field, h := range map[string]learning.Heuristic{
		"ID": {}, "Domain": {ID: "x", Domain: "a\x00b"}, "Condition": {ID: "x", Condition: "\xff"},
		"Initial":             {ID: "x", Initial: 1},
		"Action":              {ID: "x", Action: strings.Repeat("x", 16<<10+1)},
		"CreatedAt":           {ID: "x", CreatedAt: time.Unix(-1, 0)},
		"Constraints.Ceiling": {ID: "x", Constraints: at(2)},
		"Constraints.Lock":    {ID: "x", Constraints: learning.Constraints{Lock: "half"}},
	} {
		_, err := f.Put(ctx, h)
		assertInputError(t, err, field)
	}
}

// unlisted is a store whose records can't be listed.
type unlisted struct{ store.Store }

func (unlisted) Find(context.Context, store.Query) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) { yield(store.Record{}, errDown) }
}

// As long as no heuristic changes, they are listed once.
func TestHeuristicsAreListedOnce(t *testing.T) {
	f := newFixture(t, learning.Config{}, "a", "b")
	list := func() (n int, failed error) {
		for _, err := range f.Heuristics(ctx) {
			if n, failed = n+1, err; err != nil {
				n--
			}
		}
		return n, failed
	}
	for range 2 {
		n, err := list()
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		f.store.Store = unlisted{f.store.Store}
	}
	f.put(learning.Heuristic{ID: "c"})
	_, err := list()
	assert.ErrorIs(t, err, errDown)
}

// A row of ignores is kept for a month.
func TestWhatIsKept(t *testing.T) {
	kinds, _ := learning.RecordKinds("learning")
	assert.Equal(t, 10_000, kinds[0].History)
	assert.Equal(t, store.Limits{For: 30 * aDay, Most: 100_000}, kinds[2].Limits)
}

// A store that an earlier version wrote: what it limits stays limited, its settings are no change,
// and what is written is what the earlier version reads.
func TestConstraintsOfAnEarlierVersion(t *testing.T) {
	dump, err := os.ReadFile("testdata/earlier.jsonl")
	require.NoError(t, err)
	kept, err := memstore.New(memstore.Config{})
	require.NoError(t, err)
	require.NoError(t, kept.Load(ctx, bytes.NewReader(dump)))
	cfg := learning.Config{Store: kept, Packs: map[string]learning.Constraints{"p": {Ceiling: 0.3}}}
	for _, open := range []func(context.Context, learning.Config) (*learning.Module, error){
		learning.Open, learning.New, learning.Open,
	} {
		m, err := open(ctx, cfg)
		require.NoError(t, err)
		f := &fixture{TB: t, Module: m, store: &faulty{Store: kept}}
		for id, want := range map[string]float64{"pinned": 0.1, "packed": 0.3, "own": 0.3} {
			assert.Equal(t, want, f.confidence(id), id)
		}
		for _, e := range f.audit() {
			assert.NotEqual(t, "settings", e.Action, e.Details)
		}
	}
	text, err := json.Marshal(learning.Constraints{Lock: "locked", Floor: 0.1, Ceiling: 0.3,
		FeedbackWeight: 2})
	require.NoError(t, err)
	assert.JSONEq(t, `{"Lock":"locked","Range":{"Floor":0.1,"Ceiling":0.3},"FeedbackWeight":2}`,
		string(text))
}
