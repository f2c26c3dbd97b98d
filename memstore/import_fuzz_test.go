package memstore_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// FuzzImport changes an export in two places: some bytes there give way to others. An import that is refused leaves the stores
// empty, and after one that is not they can be read, and what is in their histories can be taken back.
func FuzzImport(f *testing.F) {
	good := exportFile(f)
	at := func(text string) int { return strings.Index(good, text) + len(text) }
	f.Add(0, 0, "", len(good), 0, "")
	f.Add(at(`"n_positive":`), 1, "4", at(`"mass":`), 1, "2")
	f.Add(at(`"n_positive":`), 1, "1", len(good), 0, "")
	f.Add(at(`"landmark":19`), 2, "30", at(`"lost_source":`), 1, "0")
	f.Add(at(`"by_origin":`), 1, "1", at(`"restart":`), 1, "1777863700000000")
	f.Add(at(`"retracted":`), 1, "1", at(`"traced":`), 1, "0")
	f.Add(at(`\"weight\":`), 1, "0", at(`\"reward\":`), 1, "0.5")
	f.Add(at(`"stage":"`), 8, "pending", at(`"result":`), 1, "null")
	f.Add(at(`"moment":17`), 2, "-9", at(`"sort":"`), 0, "x")
	f.Add(at(`"rows":`), 2, "2", at("\n"), len(good), `{"rows":0}`)
	f.Fuzz(func(t *testing.T, at, n int, with string, at2, n2 int, with2 string) {
		text := changed(changed(good, at, n, with), at2, n2, with2)
		into := emptyStores(t)
		if err := importText(text, into); err != nil {
			require.True(t, errors.As(err, new(*heed.InputError)) || errors.Is(err, evidence.ErrFull), "%v", err)
			require.NoError(t, importText(exportOf(), into), "they are empty")
			return
		}
		readEvidence(t, into.Evidence)
		for _, err := range []error{
			drain(into.Choices.List(ctx, strategy.ChoiceFilter{})), drain(into.Heuristics.All(ctx)),
			drain(into.Patterns.Patterns(ctx, patterns.PatternQuery{})), drain(into.Patterns.Entries(ctx, patterns.EntryQuery{})),
			drain(into.Errors.Errors(ctx, "")), into.Choices.EndSession(ctx, "models", "a"), into.Errors.Forget(ctx, "t1"),
		} {
			require.NoError(t, err)
		}
	})
}

// changed replaces n bytes of a text, as many as there are.
func changed(text string, at, n int, with string) string {
	at = min(max(at, 0), len(text))
	return text[:at] + with + text[at+min(max(n, 0), len(text)-at):]
}

func drain[T any](seq func(func(T, error) bool)) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// readEvidence reads the cells of the kinds that the seeds have, then takes back all that the history holds of them, and at
// last what came from a source.
func readEvidence(t *testing.T, store *memstore.Evidence) {
	var cells []evidence.Cell
	counted := make(map[evidence.Cell]uint64)
	for _, kind := range []string{"models.arm", "models.sessions", "plain", "origin"} {
		for scope, err := range store.Scopes(ctx, kind) {
			require.NoError(t, err)
			for part, err := range store.List(ctx, kind, scope) {
				require.NoError(t, err)
				requireSound(t, part)
				cells = append(cells, part.Cell)
				counted[part.Cell] += part.Tally.N()
			}
		}
	}
	taken := func(b evidence.Batch) {
		_, err := store.Commit(ctx, b)
		require.True(t, err == nil || errors.Is(err, evidence.ErrForgotten) || errors.Is(err, heed.ErrNotFound), "%v", err)
	}
	for _, c := range cells {
		for _, id := range history(t, store, c) {
			taken(evidence.Batch{Retract: []string{id}})
		}
	}
	taken(evidence.Batch{Expunge: []string{"ann", "bob"}})
	for _, c := range cells {
		taken(evidence.Batch{Restart: []evidence.Restart{{Cell: c, At: start}}})
		taken(evidence.Batch{Rebuild: []evidence.Cell{c}})
		parts, err := store.Read(ctx, nil, c)
		require.NoError(t, err)
		left := uint64(0)
		for _, part := range parts {
			requireSound(t, part)
			left += part.Tally.N()
		}
		require.LessOrEqual(t, left, counted[c], "a count has wrapped")
	}
	require.NoError(t, drain(store.Audit(ctx)))
	require.NoError(t, drain(store.Outbox(ctx)))
}

func requireSound(t *testing.T, p evidence.Part) {
	require.Positive(t, p.Tally.N())
	for _, sum := range []float64{p.Tally.Mass, p.Tally.Squares, p.Tally.Reward, p.Tally.RewardSquares} {
		require.Less(t, math.Abs(sum), math.Inf(1))
	}
}
