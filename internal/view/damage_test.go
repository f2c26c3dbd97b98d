package view_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// spoil has the newest record of a kind replaced by what can't be decoded, and returns its name.
func (s *story) spoil(kind string) string {
	s.Helper()
	for r, err := range s.store.Find(s.Context(), store.Query{Kind: kind, Limit: 1}) {
		require.NoError(s, err)
		r.Body = store.Raw([]byte("[7]"))
		_, err = s.store.Commit(s.Context(), store.Batch{Records: []store.Record{r}})
		require.NoError(s, err)
		return r.ID + " of " + kind
	}
	s.Fatal("there is no ", kind)
	return ""
}

// A damagedList is how many elements a list has, and what it calls damaged.
type damagedList struct {
	n     int
	names view.Names
}

func listed[T any](t *testing.T, l view.List[T], err error) damagedList {
	t.Helper()
	require.NoError(t, err)
	return damagedList{len(l.Items), l.Damaged}
}

// partly is a reading that is no list.
func partly[T any](t *testing.T, all []T, err error) damagedList {
	t.Helper()
	names, err := view.DamagedIn(err)
	require.NoError(t, err)
	return damagedList{len(all), names}
}

// Each list names the record of its kind that is damaged, and has the others.
func TestDamageHidesNothingSound(t *testing.T) {
	s := told(t)
	ctx, of := t.Context(), view.Of(s.agent, s.world.Now)
	lists := func() map[string]damagedList {
		all := make(map[string]damagedList)
		heuristics, err := of.Heuristics(ctx, view.HeuristicQuery{})
		all["heuristics"] = listed(t, heuristics, err)
		rules, err := of.Rules(ctx, view.RuleQuery{})
		all["rules"] = listed(t, rules, err)
		proposals, err := of.Proposals(ctx, view.RuleQuery{Status: "pending"})
		all["proposals"] = listed(t, proposals, err)
		ways, err := of.Ways(ctx, view.WayQuery{})
		all["ways"] = listed(t, ways, err)
		answers, err := of.Answers(ctx, view.AnswerQuery{Page: view.Page{Limit: 100}})
		all["answers"] = listed(t, answers, err)
		changes, err := of.Changes(ctx, view.ChangeQuery{Page: view.Page{Limit: 100}})
		all["changes"] = listed(t, changes, err)
		waiting, err := of.Waiting(ctx)
		all["waiting"] = partly(t, waiting, err)
		choices, err := of.History(ctx, strategy.ChoiceFilter{}, 1000,
			func(*strategy.Choice) bool { return true })
		all["choices"] = partly(t, choices, err)
		return all
	}
	before := lists()
	bad := make(map[string]string)
	for list, kind := range map[string]string{
		"heuristics": "ops.learning.heuristic", "ways": "ops.patterns.pattern",
		"rules": "feedback.rule", "proposals": "feedback.proposal", "waiting": "feedback.record",
		"answers": "ops.answer", "changes": store.Audit.Name,
	} {
		bad[list] = s.spoil(kind)
	}
	bad["choices"] = bad["answers"]
	for list, now := range lists() {
		assert.Contains(t, now.names, bad[list], list)
		assert.Positive(t, now.n, list)
		assert.GreaterOrEqual(t, now.n, before[list].n-2, "%s, a way with its warning", list)
	}
	in, err := of.Inbox(ctx, 10)
	names, err := view.DamagedIn(err)
	require.NoError(t, err)
	assert.Contains(t, names, bad["proposals"])
	assert.Positive(t, in.Pending)
}

// A torn store has a cell that can't be read in one segment.
type torn struct {
	store.Store
	scope string
}

func (s *torn) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	if q.Scope != s.scope {
		return s.Store.List(ctx, q)
	}
	return func(yield func(evidence.Part, error) bool) {
		yield(evidence.Part{}, fmt.Errorf("%w: a cell", heed.ErrDamaged))
	}
}

// A segment that can't be read hides no other in a list. Sums of all segments are then an error.
func TestDamagedSegments(t *testing.T) {
	ctx := t.Context()
	st := &torn{Store: new(memstore.Store)}
	l, err := strategy.New(ctx, strategy.Config{Store: st, Name: "s",
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}})
	require.NoError(t, err)
	for _, category := range []string{"x", "y"} {
		c, err := l.Select(ctx, strategy.Query{Category: category})
		require.NoError(t, err)
		_, err = l.Observe(ctx, strategy.Outcome{Choice: c, ID: category, Value: 1,
			Confidence: 1})
		require.NoError(t, err)
	}
	st.scope = answers.Scope("x", "")
	fresh, err := strategy.Open(ctx, strategy.Config{Store: st, Name: "s"})
	require.NoError(t, err)
	of := &view.Source{Store: st, Strategy: fresh, Now: time.Now}
	all, err := of.Segments(ctx, view.Page{})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
	assert.Equal(t, "y", all.Items[0].Category)
	require.Len(t, all.Damaged, 1)
	assert.Contains(t, all.Damaged[0], "a cell")
	status, err := of.Status(ctx)
	require.ErrorIs(t, err, heed.ErrDamaged)
	assert.Empty(t, status, "no count would be of all segments")
}
