package answers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

var ctx = context.Background()

// An answer is found from the moment when it is due, and before that only in the last half of its
// time.
func TestDue(t *testing.T) {
	for _, waits := range []time.Duration{
		-time.Minute, 0, time.Millisecond, 14 * time.Second, 15 * time.Second, 29 * time.Second,
		30 * time.Second, 31 * time.Second, 15 * time.Minute, 25 * time.Minute, time.Hour,
		100 * time.Minute, 23 * time.Hour, 24 * time.Hour, 29 * 24 * time.Hour,
	} {
		st := new(memstore.Store)
		view := answers.View("answer")
		require.NoError(t, st.Declare(ctx, view.Kind))
		a := answer.Answer{ID: "e", At: start, Fires: []answer.Fire{{Due: start.Add(waits)}}}
		_, err := st.Commit(ctx, store.Batch{Records: []store.Record{view.Record(a, 0)}})
		require.NoError(t, err)
		found := func(after time.Duration) bool {
			seen := false
			_, err := answers.Sweep(ctx, st, view, start.Add(after), func(a *answer.Answer) bool {
				seen = true
				assert.Equal(t, "e", a.ID)
				return false
			}, nil)
			require.NoError(t, err)
			return seen
		}
		assert.True(t, found(max(waits, 0)), waits)
		assert.True(t, found(waits+100*24*time.Hour), waits)
		if waits >= 15*time.Second {
			assert.False(t, found(waits/2-time.Second), waits)
		}
		a.Fires[0].Closed = true
		wait := func(key string) bool { return strings.HasPrefix(key, "wait=") }
		assert.False(t, slices.ContainsFunc(answers.Keys(&a), wait), fmt.Sprint(waits))
	}
}

// A scope is read back as it was written, whatever is in its texts. No other text is one.
func TestScopesAreReadBack(t *testing.T) {
	texts := []string{"", "a", "a/b", `a"b`, `"a"`, "/", `"`, "ä\n", "'a'", "`", "`a`"}
	for _, category := range texts {
		for _, context := range texts {
			c, in, ok := answers.ParseScope(answers.Scope(category, context))
			assert.Equal(t, []any{category, context, true}, []any{c, in, ok})
		}
	}
	for _, scope := range []string{"", "a", `"a"`, `"a"b/c`} {
		_, _, ok := answers.ParseScope(scope)
		assert.False(t, ok, scope)
	}
}

// A record is found by what can still change it, and a choice that is used alone as long as it has
// no outcome.
func TestKeys(t *testing.T) {
	choice := func(change func(*answer.Choice)) *answer.Answer {
		c := &answer.Choice{Learner: "l", Category: "c", Item: "i", Session: "s"}
		if change != nil {
			change(c)
		}
		return &answer.Answer{ID: "e", At: start, Choice: c}
	}
	with := func(a *answer.Answer, change func(*answer.Answer)) *answer.Answer {
		change(a)
		return a
	}
	fired := func(all ...answer.Statement) *answer.Answer {
		return with(said(all...), func(a *answer.Answer) {
			a.Session, a.Stream = "s", "x"
			a.Reply = &answer.Reply{}
			a.Fires = []answer.Fire{{Due: start.Add(time.Minute), Phrase: "it works"}}
		})
	}
	id, view := choice(nil).Choice.ID.String(), answers.View("answer")
	open := []string{answers.OpenSession("s"), answers.OpenTo("asker"), answers.OpenStream("x"),
		answers.OpenPhrase("it works")}
	for name, test := range map[string]struct {
		a      *answer.Answer
		id     string
		has    []string
		hasNot []string
	}{
		"a choice": {choice(nil), answers.LastID("l", "s", "i"),
			[]string{answers.Pending("l"), answers.Item("i"), answers.Session("s")},
			[]string{answers.Vectors("l", answers.Scope("c", ""))}},
		"a choice of no session": {choice(func(c *answer.Choice) { c.Session = "" }), id,
			[]string{answers.Pending("l")}, []string{answers.Session("")}},
		"a choice of its own": {choice(func(c *answer.Choice) { c.Own = true }), id, nil, nil},
		"a choice by a vector": {choice(func(c *answer.Choice) { c.Linear = new(answer.Linear) }),
			answers.LastID("l", "s", "i"),
			[]string{answers.Vectors("l", answers.Scope("c", ""))}, nil},
		"an expired choice": {choice(func(c *answer.Choice) { c.Expired = true }),
			answers.LastID("l", "s", "i"), nil, []string{answers.Pending("l")}},
		"a choice with an outcome": {with(choice(nil), func(a *answer.Answer) {
			answers.Say(a, outcome("ci", 1, 1))
		}), answers.LastID("l", "s", "i"), nil, []string{answers.Pending("l")}},
		"an answer by a choice": {with(choice(nil), func(a *answer.Answer) {
			a.Reply = &answer.Reply{}
		}), answers.ID("e"), []string{answers.Item("i")}, []string{answers.Pending("l")}},
		"an open answer": {fired(), answers.ID("e"), open, []string{answers.Bad}},
		"an ignored one": {fired(ignored()), answers.ID("e"),
			append(open[:2:2], open[3], answers.Bad), open[2:3]},
		"one that worked": {fired(success()), answers.ID("e"), open[:3], append(open[3:], answers.Bad)},
		"one that is undone": {fired(undo("asker", 1)), answers.ID("e"),
			append(open[2:], answers.Bad), open[:2]},
		"a closed one": {with(fired(), func(a *answer.Answer) { a.Fires[0].Closed = true }),
			answers.ID("e"), []string{answers.Session("s")}, open},
	} {
		keys := answers.Keys(test.a)
		assert.Equal(t, test.id, view.Record(*test.a, 0).ID, name)
		assert.Subset(t, keys, test.has, name)
		for _, key := range test.hasNot {
			assert.NotContains(t, keys, key, name)
		}
	}
}

// To freeze what is frozen is no change, and adds no entry to the audit.
func TestFreeze(t *testing.T) {
	st := &storetest.Failing{Store: new(memstore.Store)}
	require.NoError(t, st.Declare(ctx, answers.Freezes("a").Kind))
	require.NoError(t, st.Declare(ctx, store.Audit))
	freeze := func(frozen bool) bool {
		changed, err := answers.Freeze(ctx, st, "a", answers.Frozen{Frozen: frozen, At: start},
			store.AuditEntry{Action: "freeze", Subject: "a"})
		require.NoError(t, err)
		return changed
	}
	assert.Equal(t, []bool{false, true, false, true},
		[]bool{freeze(false), freeze(true), freeze(true),
			freeze(false)})
	n := 0
	for _, err := range store.AuditEntries(ctx, st, store.Query{}) {
		require.NoError(t, err)
		n++
	}
	assert.Equal(t, 2, n)
	st.SetAway(true)
	_, err := answers.Freeze(ctx, st, "a", answers.Frozen{Frozen: true}, store.AuditEntry{})
	require.ErrorIs(t, err, storetest.ErrFailed)
	_, err = answers.Sweep(ctx, st, answers.View("answer"), start, nil, nil)
	require.ErrorIs(t, err, storetest.ErrFailed)
}

// A step that fails is repeated for each of its answers, and the others are swept.
func TestSweepGoesOnWithoutTheAnswersThatFail(t *testing.T) {
	st := new(memstore.Store)
	view := answers.View("answer")
	require.NoError(t, st.Declare(ctx, view.Kind))
	const all = 150
	for i := range all {
		a := answer.Answer{ID: fmt.Sprint(i), At: start, Fires: []answer.Fire{{Due: start}}}
		_, err := st.Commit(ctx, store.Batch{Records: []store.Record{view.Record(a, 0)}})
		require.NoError(t, err)
	}
	bad, steps := answers.ID("70"), 0
	failed := errors.New("failed")
	swept, err := answers.Sweep(ctx, st, view, start.Add(time.Hour),
		func(*answer.Answer) bool { return true },
		func(ids []string) (int, error) {
			steps++
			if slices.Contains(ids, bad) {
				return 0, failed
			}
			return len(ids), nil
		})
	require.ErrorIs(t, err, failed)
	assert.Equal(t, all-1, swept)
	assert.Equal(t, 3+64, steps)

	steps = 0
	swept, err = answers.Sweep(ctx, st, view, start.Add(time.Hour),
		func(*answer.Answer) bool { return true },
		func([]string) (int, error) {
			steps++
			return 0, heed.ErrUnavailable
		})
	require.ErrorIs(t, err, heed.ErrUnavailable)
	assert.Zero(t, swept)
	assert.Equal(t, 1, steps, "a store that is away is not asked for each answer")
}

func TestSources(t *testing.T) {
	for source, want := range map[string]answer.SourceKind{
		"": "", "ci": "instrument", "ann": "person",
	} {
		assert.Equal(t, want, answers.KindOf(source, []string{"ci"}), source)
	}
	a := &answer.Answer{Fires: []answer.Fire{{Heuristic: "h"}, {Heuristic: "i"}}}
	assert.Same(t, &a.Fires[1], answers.FireOf(a, "i"))
	assert.Nil(t, answers.FireOf(a, ""))
}
