//go:build !race

package fair_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
)

// TestFewNeverOutweighManyInOnePlace: who shares places with others has no more than who has a name
// of their own, whatever they say and however often.
func TestFewNeverOutweighManyInOnePlace(t *testing.T) {
	var trust evidence.Trust
	parts := make([]evidence.Part, fair.MostParts)
	for i := range parts {
		parts[i] = part("", fmt.Sprint("p", i), 0, 1)
	}
	rapid.Check(t, func(t *rapid.T) {
		all, k := parts, rapid.IntRange(1, 6).Draw(t, "k")
		at := map[string]*evidence.Part{}
		for i := range k {
			source := fair.Apart(trust, all, fmt.Sprint("m", i))
			mass := rapid.Float64Range(1e-3, 1e6).Draw(t, "mass")
			given := part("", source, mass, 0)
			if before := at[source]; before != nil {
				given.Tally.Merge(before.Tally)
			}
			at[source] = &given
		}
		for _, p := range at {
			all = append(all[:len(all):len(all)], *p)
		}
		sums := fair.Pool(trust, [][]evidence.Part{all}, origin)[0]
		n := float64(len(all))
		assert.LessOrEqual(t, sums.Mean(), max(2/n, 1/(1+sums.Mass-sums.Reward))*float64(k)+1e-9)
		assert.False(t, math.IsNaN(sums.Mean()))
	})
}

// Who is remembered and who is read are kept apart alike.
func TestSourcesAreKeptApartAsTheirPartsAre(t *testing.T) {
	trust := evidence.Trust{Instruments: []string{"ci"}}
	parts := make([]evidence.Part, fair.MostParts-3)
	for i := range parts {
		parts[i] = part("", fmt.Sprint("p", i), 1, 0)
	}
	sources := fair.SourcesOf(parts)
	for _, name := range []string{"", "ann", "p1", "ann", "ben", "cy", "ann", "ci", "", "p4092"} {
		kept := fair.Apart(trust, parts, name)
		assert.Equal(t, kept, sources.Apart(trust, name), name)
		if !slices.ContainsFunc(parts, func(p evidence.Part) bool { return p.Source == kept }) {
			parts = append(parts, part("", kept, 1, 0))
		}
		sources.Add(kept)
	}
	assert.Equal(t, fair.Place("dan"), sources.Apart(trust, "dan"))
}

func TestApart(t *testing.T) {
	trust := evidence.Trust{Instruments: []string{"ci"}}
	few := []evidence.Part{part("", "ann", 1, 0)}
	assert.Equal(t, "ben", fair.Apart(trust, few, "ben"))
	many := make([]evidence.Part, fair.MostParts)
	for i := range many {
		many[i] = part("", fmt.Sprint("p", i), 1, 0)
	}
	for _, kept := range []string{"p1", "ci", ""} {
		assert.Equal(t, kept, fair.Apart(trust, many, kept))
	}
	places := map[string]bool{}
	for i := range 3000 {
		place := fair.Apart(trust, many, fmt.Sprint("new ", i))
		if i%10 == 0 {
			assert.Equal(t, place, fair.Apart(trust, many, fmt.Sprint("new ", i)))
		}
		places[place] = true
	}
	assert.InDelta(t, 969, len(places), 30, "3,000 names in 1,024 places")
}
