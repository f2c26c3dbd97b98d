//go:build !race

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// newArchive returns a workshop with a record of each kind. refs are the answers, and one record of
// each other kind, in a fixed order.
func newArchive(t *testing.T) (w *workshop, refs []store.Ref) {
	w = newWorkshop(t)
	yes := true
	approved(t, w.Feedback(), "Name the ticket.")
	require.NoError(t, w.KeepPlan(ctx, "kim", w.plan))
	require.NoError(t, w.Freeze(ctx, true))
	require.NoError(t, w.Freeze(ctx, false))
	require.NoError(t, w.Outcome(ctx, "m", loop.Outcome{Success: &yes, Source: "ci"}))
	require.NoError(t, second(w.Tool(ctx, "m", loop.ToolResult{Name: "imap", Err: errors.New("x")})))
	require.NoError(t, second(w.Correct(ctx, "h", loop.Correction{Reviewer: "kim", Text: "Hurry."})))
	require.NoError(t, second(w.Import(ctx, each([]loop.Past{{
		Event: loop.Event{ID: "old", Text: "t", At: start}, Text: "x", Arm: "only",
		Reactions: []loop.Reaction{{Person: "ann", Value: 1}},
	}}), "kim", "file")))
	order := w.texts()
	for ref, text := range order {
		order[ref] = ref.Kind + drawn.ReplaceAllString(text, "")
	}
	refs = slices.SortedFunc(maps.Keys(order), func(a, b store.Ref) int {
		return strings.Compare(order[a], order[b])
	})
	return w, slices.CompactFunc(refs, func(a, b store.Ref) bool {
		return a.Kind == b.Kind && a.Kind != "loop.answer"
	})
}

// texts returns all records.
func (w *workshop) texts() map[store.Ref]string {
	all := make(map[store.Ref]string)
	for kind, err := range w.kept.Find(ctx, store.Query{Kind: store.Declarations}) {
		require.NoError(w.t, err)
		for r, err := range w.kept.Find(ctx, store.Query{Kind: kind.ID}) {
			require.NoError(w.t, err)
			text, err := r.Body.JSON()
			require.NoError(w.t, err)
			all[r.Ref] = string(text)
		}
	}
	return all
}

// drawn are ids that differ from run to run, and those that are derived from them.
var drawn = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[\w-]{22}\b`)

// whole returns all that was learned and recorded, without one record.
func (w *workshop) whole(except store.Ref) (lines []string) {
	for _, kind := range []string{"learning.heuristic", "strategy.arm", "patterns.pattern"} {
		for scope, err := range w.kept.Scopes(ctx, kind) {
			require.NoError(w.t, err)
			for p, err := range w.kept.List(ctx, store.CellQuery{Kind: kind, Scope: scope}) {
				require.NoError(w.t, err)
				lines = append(lines, fmt.Sprintf("%v %q %q %.9f %.9f %d", p.Cell, p.Channel, p.Source,
					p.Tally.Mass, p.Tally.Reward, p.Tally.N()))
			}
		}
	}
	for ref, text := range w.texts() {
		if ref != except {
			lines = append(lines, ref.Kind+" "+drawn.ReplaceAllString(text, ""))
		}
	}
	slices.Sort(lines)
	return lines
}

// A reads store notes the kinds of records that are read.
type reads struct {
	store.Store
	kinds map[string]bool
}

func (s *reads) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	for _, ref := range refs {
		s.kinds[ref.Kind] = true
	}
	for _, q := range finds {
		s.kinds[q.Kind] = true
	}
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

func (s *reads) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	s.kinds[q.Kind] = true
	return s.Store.Find(ctx, q)
}

// A damaged record is never taken for an answer, nor for a missing one: each method returns an
// error that names the record, or has the result that it has if the record is whole.
func TestADamagedRecordIsAnError(t *testing.T) {
	for _, f := range fallibles() {
		t.Run(f.method+" "+f.how, func(t *testing.T) {
			t.Parallel()
			sound, ids := newArchive(t)
			seen := &reads{Store: sound.fails.Store, kinds: make(map[string]bool)}
			sound.fails.Store = seen
			require.NoError(t, f.call(sound))
			for n := range ids {
				if !seen.kinds[ids[n].Kind] {
					continue
				}
				w, refs := newArchive(t)
				damage(t, w.kept, refs[n].Kind, refs[n].ID)
				if err := f.call(w); err == nil {
					assert.Equal(t, sound.whole(ids[n]), w.whole(refs[n]), refs[n])
				} else {
					assert.ErrorIs(t, err, heed.ErrDamaged, refs[n])
					assert.ErrorContains(t, err, refs[n].Kind)
				}
			}
		})
	}
}

// While it is unknown whether to learn, no call of an agent or of its tenants guesses, and the
// error has the remedy, which works.
func TestADamagedFreeze(t *testing.T) {
	for _, frozen := range []bool{true, false} {
		w, _ := newArchive(t)
		acme, err := w.Tenant(ctx, "acme")
		require.NoError(t, err)
		damage(t, w.kept, "loop.frozen", "frozen")
		w.clock.Advance(time.Minute)
		for _, agent := range []*loop.Agent{w.Agent, acme} {
			err := second(agent.Answer(ctx, loop.Event{Text: full}))
			require.ErrorIs(t, err, heed.ErrDamaged)
			require.ErrorContains(t, err, "heed store unfreeze")
			require.ErrorContains(t, err, `loop.frozen "frozen"`)
		}
		before := w.confidence("rotate")
		require.Error(t, w.React(ctx, "h", loop.Reaction{Person: "bob", Value: -1}))
		require.NoError(t, w.Freeze(ctx, frozen))
		for _, agent := range []*loop.Agent{w.Agent, acme} {
			require.NoError(t, second(agent.Answer(ctx, loop.Event{Text: full})))
		}
		require.NoError(t, w.React(ctx, "h", loop.Reaction{Person: "bob", Value: -1}))
		assert.Equal(t, frozen, before == w.confidence("rotate"))
	}
}

// An event that took an answer back, and is prepared again, looks for that answer.
func TestADamagedAnswerThatWasTakenBack(t *testing.T) {
	for _, undo := range []loop.Event{
		{ID: "m", Session: "t", Person: "bob"}, {ID: "h", Session: "s", Person: "ann", Stream: "x"},
	} {
		w, _ := newArchive(t)
		of := undo.ID
		undo.ID, undo.Text = "u", "Undo that"
		for range 2 {
			p, err := w.Prepare(ctx, undo)
			require.NoError(t, err)
			require.Equal(t, []string{of}, p.Undone)
		}
		damage(t, w.kept, "loop.answer", answers.ID(of))
		require.ErrorIs(t, second(w.Prepare(ctx, undo)), heed.ErrDamaged)
	}
}

// A failure that is reported after the answer has the answer, unless the rules can't be read.
func TestADamagedRuleAfterTheAnswer(t *testing.T) {
	w := newWorkshop(t)
	w.enforce("Never use sudo.", feedback.Check{Forbid: "sudo"})
	p, err := w.Prepare(ctx, loop.Event{ID: "q", Text: "Why?"})
	require.NoError(t, err)
	failed := loop.Reply{Err: llm.Unusable}
	require.NoError(t, second(w.Answered(ctx, p, loop.Reply{Text: "Use sudo."})))
	a, err := w.Answered(ctx, p, failed)
	require.NoError(t, err)
	assert.Equal(t, "Use sudo.", a.Text)
	assert.Equal(t, []string{"Never use sudo."}, broken(a.Violations))
	for ref := range w.texts() {
		if ref.Kind == "feedback.rule" {
			damage(t, w.kept, ref.Kind, ref.ID)
		}
	}
	require.ErrorIs(t, second(w.Answered(ctx, p, failed)), heed.ErrDamaged)
	for _, text := range []string{full, "Why?"} { // of a heuristic, and of the model
		require.ErrorIs(t, second(w.Prepare(ctx, loop.Event{Text: text})), heed.ErrDamaged)
	}
}
