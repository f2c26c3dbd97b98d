package learning

import (
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// How many people there are cannot come from the evidence of one heuristic, because a liar may be
// the only one who stated something about it. It comes from one cell for each domain, which is read
// together with the heuristic: each person who makes evidence about a heuristic of the domain is
// counted there, in one of 64 places by a hash of the name. So the cell contains at most 64 parts,
// and it names no person. Two people in one place count as one. The count fades with
// Config.HalfLife, and a person is counted again when half of it has faded, so a person costs one
// more observation in a half-life. Instruments are not counted.
//
// Rejected: the people of all heuristics that a step reads, because a step that reads fewer of
// them would believe somebody else; and a record of names, because many processes would write it
// at once.
const (
	cellPeople   = "people"
	peoplePlaces = 64
)

// peopleCell returns the cell that counts the people of a domain.
func (m *Module) peopleCell(domain string) evidence.Cell {
	return evidence.Cell{Kind: m.kinds.people, Item: domain, Name: cellPeople}
}

// placeOf returns the place in which a person is counted.
func placeOf(person string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(person)) // it returns no error
	return strconv.Itoa(int(h.Sum32() % peoplePlaces))
}

// A crowd is the evidence of the people of a domain, as it will be after the step.
type crowd struct{ parts []evidence.Part }

// people returns how many there are at a moment.
func (c *crowd) people(now evidence.Instant) (n float64) {
	for i := range c.parts {
		n += min(1, c.parts[i].Tally.At(now).Mass)
	}
	return n
}

// meet counts the person behind an observation about a heuristic as one of the domain's people,
// unless more than half of an earlier count is left.
func (l *ledger) meet(a *account, o *evidence.Observation) {
	if o.Weight == 0 || slices.Contains(l.m.cfg.Trust.Instruments, o.Source) {
		return
	}
	place, now := placeOf(o.Source), evidence.InstantOf(o.At)
	at := slices.IndexFunc(a.crowd.parts, func(p evidence.Part) bool { return p.Channel == place })
	if at >= 0 && a.crowd.parts[at].Tally.At(now).Mass > 0.5 {
		return
	}
	met := evidence.Observation{
		ID:   "met:" + store.IDOf(l.m.cfg.Name, a.heuristic.Value.Domain, place, o.ID),
		Cell: l.m.peopleCell(a.heuristic.Value.Domain), Channel: place, Reward: 1, Weight: 1, At: o.At,
	}
	l.evidence(store.Batch{Observations: []evidence.Observation{met}})
	if at < 0 {
		at = len(a.crowd.parts)
		a.crowd.parts = append(a.crowd.parts, evidence.Part{
			Cell: met.Cell, Channel: place, Tally: evidence.Tally{HalfLife: l.m.cfg.HalfLife},
		})
	}
	a.crowd.parts[at].Tally.Add(1, 0, 1, now)
}
