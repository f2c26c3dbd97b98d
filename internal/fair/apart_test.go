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
			source := apart(trust, all, "", fmt.Sprint("m", i)).Source
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
		kept := apart(trust, parts, "", name).Source
		assert.Equal(t, kept, sources.Apart(trust, name), name)
		if !slices.ContainsFunc(parts, func(p evidence.Part) bool { return p.Source == kept }) {
			parts = append(parts, part("", kept, 1, 0))
		}
		sources.Add(kept)
	}
	assert.Equal(t, fair.Place("dan"), sources.Apart(trust, "dan"))
}

// apart returns the origin under which a cell keeps an observation.
func apart(
	t evidence.Trust, parts []evidence.Part, channel, source string,
) (o evidence.Observation) {
	o.Channel, o.Source = channel, source
	fair.Apart(t, parts, &o)
	return o
}

// However many channels people use, a cell has a bounded number of parts, and one person does not
// take the names of others from it.
func TestApartByChannels(t *testing.T) {
	trust := evidence.Trust{Instruments: []string{"ci"}, Silence: []string{"implicit_timeout"}}
	var parts []evidence.Part
	seen := map[[2]string]bool{}
	say := func(channel, source string) evidence.Observation {
		o := apart(trust, parts, channel, source)
		if origin := [2]string{o.Channel, o.Source}; !seen[origin] {
			seen[origin] = true
			parts = append(parts, part(o.Channel, o.Source, 1, 0))
		}
		return o
	}
	for i := range 3 * fair.MostParts {
		channel := fmt.Sprint("channel ", i)
		say(channel, "mallory")
		say(channel, "ci")
		say(channel, "")
	}
	assert.Len(t, parts, 3*(fair.MostChannels+1))
	for _, silence := range []string{"silence", "implicit_timeout"} {
		assert.Equal(t, silence, say(silence, "mallory").Channel, "silence has a limit")
	}
	assert.Equal(t, "channel 3", say("channel 3", "mallory").Channel, "it is there")
	assert.Equal(t, "ann", say("channel 3", "ann").Source, "mallory takes no name from others")
	for i := range 3 * fair.MostParts {
		for k := range 3 {
			say(fmt.Sprint("channel ", k), fmt.Sprint("m", i))
		}
	}
	assert.LessOrEqual(t, len(parts), 2*(fair.MostParts+1024))
}

func TestApart(t *testing.T) {
	trust := evidence.Trust{Instruments: []string{"ci"}}
	few := []evidence.Part{part("", "ann", 1, 0)}
	assert.Equal(t, "ben", apart(trust, few, "", "ben").Source)
	many := make([]evidence.Part, fair.MostParts)
	for i := range many {
		many[i] = part("", fmt.Sprint("p", i), 1, 0)
	}
	for _, kept := range []string{"p1", "ci", ""} {
		assert.Equal(t, kept, apart(trust, many, "", kept).Source)
	}
	places := map[string]bool{}
	for i := range 3000 {
		place := apart(trust, many, "", fmt.Sprint("new ", i)).Source
		if i%10 == 0 {
			assert.Equal(t, place, apart(trust, many, "", fmt.Sprint("new ", i)).Source)
		}
		places[place] = true
	}
	assert.InDelta(t, 969, len(places), 30, "3,000 names in 1,024 places")
}

// A cell is full with its last part, and for a source with its last channel.
func TestFull(t *testing.T) {
	parts := make([]evidence.Part, fair.MostParts)
	assert.True(t, fair.Full(parts, "ann"))
	assert.False(t, fair.Full(parts[1:], "ann"))
	var channels []evidence.Part
	for i := range fair.MostChannels {
		assert.False(t, fair.Full(channels, "ann"))
		channels = append(channels, evidence.Part{Source: "ann", Channel: fmt.Sprint(i)})
	}
	assert.True(t, fair.Full(channels, "ann"))
	assert.False(t, fair.Full(channels, "bob"))
}
