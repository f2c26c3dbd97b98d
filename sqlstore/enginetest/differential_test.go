package enginetest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
)

var start = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

var kinds = map[string]evidence.Policy{
	"plain": {}, "fading": {HalfLife: time.Hour}, "origin": {HalfLife: time.Hour, ByOrigin: true},
}

// cells are all that the differential test has.
var cells = func() (all []evidence.Cell) {
	for _, kind := range []string{"fading", "origin", "plain"} {
		for _, item := range []string{"", "i\"'é\\"} {
			for _, name := range []string{"a", "b"} {
				all = append(all, evidence.Cell{Kind: kind, Scope: "s", Item: item, Name: name})
			}
		}
	}
	return all
}()

var (
	someCells   = rapid.SampledFrom(cells)
	someIDs     = rapid.SampledFrom([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"})
	someSources = rapid.SampledFrom([]string{"ann", "bob", "cy"})
	// Some lie several steps of the landmark apart, near enough for it to show where their sums are not scaled.
	someTimes = rapid.Custom(func(t *rapid.T) time.Time {
		hours := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 600), rapid.SampledFrom([]int{900, 2000})).Draw(t, "hours ago")
		return start.Add(-time.Duration(hours)*time.Hour - time.Duration(rapid.IntRange(0, 600).Draw(t, "minutes ago"))*time.Minute)
	})
	someObservations = rapid.Custom(func(t *rapid.T) evidence.Observation {
		return evidence.Observation{
			ID: someIDs.Draw(t, "id"), Cell: someCells.Draw(t, "cell"), At: someTimes.Draw(t, "at"),
			Channel: rapid.SampledFrom([]string{"", "spoken"}).Draw(t, "channel"),
			Source:  rapid.OneOf(rapid.Just(""), someSources).Draw(t, "source"),
			Reward:  rapid.OneOf(rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}), rapid.Float64Range(0, 1)).Draw(t, "reward"),
			Weight:  rapid.OneOf(rapid.SampledFrom([]float64{0, 0.5, 1, 3}), rapid.Float64Range(0, 10)).Draw(t, "weight"),
		}
	})
)

// someBatch draws any batch.
func someBatch(t *rapid.T) evidence.Batch {
	b := evidence.Batch{Policies: kinds, Observations: rapid.SliceOfN(someObservations, 0, 4).Draw(t, "observations")}
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		c := someCells.Draw(t, "reset")
		b.Reset = []evidence.Selection{{Kind: c.Kind, Scope: c.Scope, Item: c.Item, Name: rapid.SampledFrom([]string{"", c.Name}).Draw(t, "of")}}
	case 1:
		b.Rebuild = []evidence.Cell{someCells.Draw(t, "rebuild")}
	case 2:
		b.Restart = []evidence.Restart{{Cell: someCells.Draw(t, "restart"), At: someTimes.Draw(t, "from")}}
	case 3:
		b.Retract = rapid.SliceOfN(someIDs, 1, 3).Draw(t, "retract")
		b.Observations = slices.DeleteFunc(b.Observations, func(o evidence.Observation) bool { return slices.Contains(b.Retract, o.ID) })
	case 4:
		b.Expunge = []string{someSources.Draw(t, "expunge")}
		b.Observations = slices.DeleteFunc(b.Observations, func(o evidence.Observation) bool { return o.Source == b.Expunge[0] })
	case 5:
		b.ID = fmt.Sprint("batch", rapid.IntRange(0, 3).Draw(t, "batch"))
	case 6:
		b.Policies = map[string]evidence.Policy{"plain": kinds["origin"]}
	case 7:
		b.Audit = []evidence.AuditEntry{{ID: someIDs.Draw(t, "entry"), At: start, Action: "did", Actor: "é\"", Details: map[string]string{"k": "\x01"}}}
	case 8:
		b.Events = []evidence.Event{{ID: someIDs.Draw(t, "event"), At: start, Topic: "t", Payload: []byte{0, 255, '"'}}}
	case 9:
		b.Sent = []string{someIDs.Draw(t, "sent")}
	}
	return b
}

// TestEvidenceAgreesWithMemory gives the same random batches to a store in memory and to one in a database, which is
// closed and opened again in between: they say the same of every batch, and the same can be read of them.
func TestEvidenceAgreesWithMemory(t *testing.T) {
	skipRaced(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			handle := at.handle(t)
			rapid.Check(t, func(t *rapid.T) {
				wipe(t, handle)
				now := func() time.Time { return start }
				kept := rapid.SampledFrom([]int{1, 3, 10_000}).Draw(t, "history")
				reference, err := memstore.NewEvidence(memstore.EvidenceConfig{Now: now, HistoryPerCell: kept})
				require.NoError(t, err)
				reopen := func() (store *sqlstore.Evidence, done func()) {
					own, err := at.open()
					require.NoError(t, err)
					db, err := sqlstore.New(ctx, own, at.dialect)
					require.NoError(t, err)
					store, err = sqlstore.NewEvidence(db, sqlstore.EvidenceConfig{Now: now, HistoryPerCell: kept})
					require.NoError(t, err)
					return store, func() { require.NoError(t, own.Close()) }
				}
				store, done := reopen()
				defer func() { done() }()
				for range rapid.IntRange(1, 15).Draw(t, "batches") {
					b := someBatch(t)
					want, wantErr := reference.Commit(ctx, b)
					got, gotErr := store.Commit(ctx, b)
					// Which of several reasons to refuse a batch comes first, the contract does not say.
					require.Equal(t, wantErr == nil, gotErr == nil, "%v, %v", wantErr, gotErr)
					require.True(t, expected(gotErr), "%v", gotErr)
					require.Equal(t, want, got)
					require.NoError(t, store.Sweep(ctx))
					if rapid.IntRange(0, 9).Draw(t, "reopen") == 0 {
						done()
						store, done = reopen()
					}
					requireSame(t, reference, store)
				}
			})
		})
	}
}

// expected reports whether an error is one of the contract, or nil.
func expected(err error) bool {
	return err == nil || errors.Is(err, heed.ErrConflict) || errors.Is(err, evidence.ErrForgotten) || errors.Is(err, heed.ErrNotFound)
}

// requireSame compares all that can be read of two stores: sums to the last bits, all else exactly.
func requireSame(t require.TestingT, want, got evidence.Store) {
	read := func(store evidence.Store) (parts []evidence.Part, rest []any) {
		parts, err := store.Read(ctx, nil, cells...)
		require.NoError(t, err)
		for _, kind := range []string{"fading", "origin", "plain"} {
			for scope, err := range store.Scopes(ctx, kind) {
				require.NoError(t, err)
				rest = append(rest, kind, scope)
			}
		}
		for _, c := range cells {
			for o, err := range store.History(ctx, c) {
				require.NoError(t, err)
				rest = append(rest, o)
			}
		}
		for a, err := range store.Audit(ctx) {
			require.NoError(t, err)
			rest = append(rest, a)
		}
		for e, err := range store.Outbox(ctx) {
			require.NoError(t, err)
			rest = append(rest, e)
		}
		return parts, rest
	}
	wantParts, wantRest := read(want)
	gotParts, gotRest := read(got)
	require.Equal(t, wantRest, gotRest)
	require.Len(t, gotParts, len(wantParts))
	for i := range wantParts {
		w, g := wantParts[i], gotParts[i]
		a, b := w.Tally.At(evidence.InstantOf(start)), g.Tally.At(evidence.InstantOf(start))
		for _, x := range [][2]float64{{a.Mass, b.Mass}, {a.Squares, b.Squares}, {a.Reward, b.Reward}, {a.RewardSquares, b.RewardSquares}} {
			require.InDelta(t, x[0], x[1], 1e-9)
		}
		for _, tally := range []*evidence.Tally{&w.Tally, &g.Tally} {
			tally.Mass, tally.Squares, tally.Reward, tally.RewardSquares = 0, 0, 0, 0
		}
		require.Equal(t, w, g)
	}
}
