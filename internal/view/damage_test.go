package view_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// spoil makes the newest record of a kind one that can't be decoded, and returns its name.
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
