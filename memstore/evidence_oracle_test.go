package memstore_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
)

// oracle is a store without any cleverness: it keeps every observation and adds all of them up when it is asked.
type oracle struct {
	kept     []evidence.Observation
	known    map[string]bool
	restarts map[evidence.Cell]time.Time
}

var oraclePolicies = map[string]evidence.Policy{
	"plain": {}, "fading": {HalfLife: time.Hour}, "origin": {HalfLife: time.Hour, ByOrigin: true},
}

func (o *oracle) remove(gone func(evidence.Observation) bool) {
	o.kept = slices.DeleteFunc(o.kept, gone)
}

func (o *oracle) commit(b evidence.Batch) {
	if o.known[b.ID] && b.ID != "" {
		return
	}
	for _, s := range b.Reset {
		o.remove(func(x evidence.Observation) bool { return s.Covers(x.Cell) })
		for c := range o.restarts {
			if s.Covers(c) {
				delete(o.restarts, c)
			}
		}
	}
	for _, r := range b.Restart {
		if r.At.After(o.restarts[r.Cell]) {
			o.restarts[r.Cell] = r.At
		}
	}
	before := make(map[string]bool)
	for id := range o.known {
		before[id] = true
	}
	for i, x := range b.Observations {
		same := func(y evidence.Observation) bool { return y.ID == x.ID && y.Cell == x.Cell }
		if !before[x.ID] && !slices.ContainsFunc(b.Observations[:i], same) {
			o.kept = append(o.kept, x)
			o.known[x.ID] = true
		}
	}
	o.remove(func(x evidence.Observation) bool { return slices.Contains(b.Retract, x.ID) })
	o.remove(func(x evidence.Observation) bool { return slices.Contains(b.Expunge, x.Source) })
	if b.ID != "" {
		o.known[b.ID] = true
	}
}

// tallies adds up what counts of a cell, by origin.
func (o *oracle) tallies(c evidence.Cell) map[[2]string]*evidence.Tally {
	policy := oraclePolicies[c.Kind]
	all := make(map[[2]string]*evidence.Tally)
	for _, x := range o.kept {
		if x.Cell != c || x.Weight == 0 || x.At.Before(o.restarts[c]) {
			continue
		}
		var from [2]string
		if policy.ByOrigin {
			from = [2]string{x.Channel, x.Source}
		}
		if all[from] == nil {
			all[from] = &evidence.Tally{HalfLife: policy.HalfLife}
		}
		all[from].Add(x.Weight, x.Reward, evidence.InstantOf(x.At))
	}
	return all
}

// TestEvidenceAgreesWithAnOracle makes random batches of everything that a batch may hold, in any combination, and compares
// what can be read with what the oracle says.
func TestEvidenceAgreesWithAnOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := newClock()
		store, err := memstore.NewEvidence(memstore.EvidenceConfig{
			Now: clock.time, HistoryPerCell: rapid.SampledFrom([]int{1, 3, 10_000}).Draw(t, "history"),
		})
		require.NoError(t, err)
		truth := &oracle{known: make(map[string]bool), restarts: make(map[evidence.Cell]time.Time)}

		cells := rapid.Custom(func(t *rapid.T) evidence.Cell {
			return evidence.Cell{
				Kind: rapid.SampledFrom([]string{"plain", "fading", "origin"}).Draw(t, "kind"), Scope: "s",
				Item: rapid.SampledFrom([]string{"", "i"}).Draw(t, "item"), Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
			}
		})
		times := rapid.Custom(func(t *rapid.T) time.Time {
			return start.Add(-time.Duration(rapid.IntRange(0, 600).Draw(t, "minutes ago")) * time.Minute)
		})
		ids := rapid.SampledFrom([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"})
		sources := rapid.SampledFrom([]string{"ann", "bob", "cy"})
		observations := rapid.Custom(func(t *rapid.T) evidence.Observation {
			return evidence.Observation{
				ID: ids.Draw(t, "id"), Cell: cells.Draw(t, "cell"), At: times.Draw(t, "at"),
				Channel: rapid.SampledFrom([]string{"", "spoken"}).Draw(t, "channel"),
				Source:  rapid.OneOf(rapid.Just(""), sources).Draw(t, "source"),
				Reward:  rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "reward"),
				Weight:  rapid.SampledFrom([]float64{0, 0.5, 1, 3}).Draw(t, "weight"),
			}
		})
		for range rapid.IntRange(1, 25).Draw(t, "batches") {
			b := evidence.Batch{Policies: oraclePolicies}
			b.Observations = rapid.SliceOfN(observations, 0, 4).Draw(t, "observations")
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0:
				c := cells.Draw(t, "reset")
				b.Reset = []evidence.Selection{{Kind: c.Kind, Scope: c.Scope, Item: c.Item, Name: rapid.SampledFrom([]string{"", c.Name}).Draw(t, "of")}}
			case 1:
				b.Rebuild = []evidence.Cell{cells.Draw(t, "rebuild")}
			case 2:
				b.Restart = []evidence.Restart{{Cell: cells.Draw(t, "restart"), At: times.Draw(t, "from")}}
			case 3:
				b.Retract = rapid.SliceOfN(ids, 1, 3).Draw(t, "retract")
				b.Retract = slices.DeleteFunc(b.Retract, func(id string) bool { return !truth.known[id] })
				b.Observations = slices.DeleteFunc(b.Observations, func(o evidence.Observation) bool { return slices.Contains(b.Retract, o.ID) })
			case 4:
				b.Expunge = []string{sources.Draw(t, "expunge")}
				b.Observations = slices.DeleteFunc(b.Observations, func(o evidence.Observation) bool { return o.Source == b.Expunge[0] })
			case 5:
				b.ID = fmt.Sprint("batch", rapid.IntRange(0, 3).Draw(t, "batch"))
			}
			_, err := store.Commit(ctx, b)
			if err == nil {
				truth.commit(b)
			} else { // what is refused changes nothing
				require.ErrorIs(t, err, evidence.ErrForgotten)
			}
			compare(t, store, truth)
		}
	})
}

func compare(t *rapid.T, store *memstore.Evidence, truth *oracle) {
	for kind := range oraclePolicies {
		for _, item := range []string{"", "i"} {
			for _, name := range []string{"a", "b"} {
				c := evidence.Cell{Kind: kind, Scope: "s", Item: item, Name: name}
				want := truth.tallies(c)
				parts, err := store.Read(ctx, nil, c)
				require.NoError(t, err)
				require.Len(t, parts, len(want), "%v", c)
				for _, part := range parts {
					w := want[[2]string{part.Channel, part.Source}]
					require.NotNil(t, w)
					now := evidence.InstantOf(start)
					got, expected := part.Tally.At(now), w.At(now)
					assert.LessOrEqual(t, math.Abs(got.Mass-expected.Mass), 1e-9, "%v", c)
					assert.LessOrEqual(t, math.Abs(got.Reward-expected.Reward), 1e-9, "%v", c)
					assert.LessOrEqual(t, math.Abs(got.Squares-expected.Squares), 1e-9, "%v", c)
					assert.Equal(t, [3]evidence.Count{w.Positive, w.Negative, w.Neutral},
						[3]evidence.Count{part.Tally.Positive, part.Tally.Negative, part.Tally.Neutral}, "%v", c)
				}
			}
		}
	}
}

// TestEvidenceWritesTextsAnew fills a store with items and resets most of them, over and over: those that stay keep their
// names, and the memory of the others is given back.
func TestEvidenceWritesTextsAnew(t *testing.T) {
	store := newEvidence(t, memstore.EvidenceConfig{NoHistory: true, Now: newClock().time})
	item := func(i int) evidence.Cell {
		return evidence.Cell{Kind: "kind", Scope: fmt.Sprint("scope", i%2), Item: fmt.Sprintf("%0*d", 900+i%100, i)}
	}
	var before uint64
	for round := range 4 {
		for i := range 10_000 {
			o := observe(fmt.Sprint(round, "-", i), start)
			o.Cell = item(round*10_000 + i)
			add(t, store, o)
		}
		commit(t, store, evidence.Batch{Reset: []evidence.Selection{{Kind: "kind", Scope: "scope0"}}})
		stay := item(round*10_000 + 1)
		assert.EqualValues(t, 1, read(t, store, stay).N())
		n := 0
		for part, err := range store.List(ctx, "kind", "scope1") {
			require.NoError(t, err)
			require.True(t, len(part.Cell.Item) >= 900 && part.Tally.N() == 1)
			n++
		}
		assert.Equal(t, 5_000, n)
		commit(t, store, evidence.Batch{Reset: []evidence.Selection{{Kind: "kind", Scope: "scope1"}}})
		switch now := heap(); round {
		case 0:
			before = now
		default:
			assert.Less(t, float64(now), 1.5*float64(before)+4e6, "round %d", round)
		}
	}
}
