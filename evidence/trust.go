package evidence

import (
	"github.com/heedhq/heed/internal/valid"
)

// Trust limits how much each source counts. One rule sets the limit from the number of people. The
// zero Trust is ready to use. The limit applies when beliefs are read and never changes what is
// stored, so Trust can be changed at any time, and the order of arrival does not matter. It needs a
// policy that keeps origins apart: see [Policy].
//
// A source is a person, unless it is named as an instrument. All that has no source is one person.
// The rule is about a group of cells that are alternatives: the arms of one item, or the arms of
// all items of a segment together, each with the number of its people,
//
//	N = Σ min(1, m)
//
// for the mass m that each person has in the group. It fades as evidence does. One or two people
// are believed as they are. Of more, each may have twice a fair share of an arm: the mass x that
// solves
//
//	x = 2/N · Σ min(m, x), or a = max(1, 20/(N-1)) if that is more
//
// for the mass m that each person has on the arm. The evidence of a person who has more is scaled
// down to x. So k people, whatever they send, have at most this part of what counts for an arm:
//
//	f(k) = max(2k/N, k·a/(k·a + h))
//
// where h is the mass of all others within their limits, and N counts all people, these included.
// As the limits go by N, k people who join n others also shift what each of the others weighs. With
// that, they move a mean by at most f(k) + k/n within one item. Over several items, whose limits
// shift as well, random tests find no more than f(k) + 4k/n.
type Trust struct {
	// Instruments names the sources that are no people: CI, a test suite, payments. Each is
	// believed as it is, and counts for no one's limit. Choose names that no user can take.
	Instruments []string
	// Silence names the channels of silence: "implicit_timeout". Their positive evidence counts for
	// at most one observation plus the positive evidence of all other channels. So a complaint
	// never makes silence louder. From an even prior, silence alone brings a belief to 2/3 at most.
	// Empty means no limit. Set it if most answers get no reaction at all.
	Silence []string
}

// Validate reports all faults, joined.
func (t Trust) Validate() error {
	var found valid.Faults
	for _, name := range t.Instruments {
		found.Check(name != "" && CheckText("", name) == nil, "Instruments", name,
			"must be text that a store can keep, and not empty, because that means no source")
	}
	return found.Err()
}
