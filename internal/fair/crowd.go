// Package fair limits how much each person counts among many: see [evidence.Trust].
package fair

import (
	"iter"
	"slices"

	"github.com/heedhq/heed/evidence"
)

// A Crowd counts the people who gave evidence on a group of items that learn from each other, such
// as the items of a segment, and how much each gave about each arm in all items together: see
// [evidence.Trust]. First [Crowd.Hear] collects the evidence of all cells. Then [Crowd.Settle]
// computes the factor by which each person's part of an arm counts.
//
// If items differ, much evidence on one item is still weak evidence on the others. So a person is
// limited twice: by mass, and then by items, where a mass m in a cell that counts for n in all is
// 2m/(1+n). Without that, lies about a hundred items would outweigh a crowd that rated ten. By
// items a person may have in any case the mass a of [evidence.Trust], times what a mass of this arm
// is by items on average: otherwise two people with items of their own would outweigh a crowd that
// rated three.
//
// Share and ShareVoices may be called by many goroutines at the same time. All other methods must
// not be used concurrently.
type Crowd struct {
	trust  evidence.Trust
	known  people
	arms   int
	masses []float64 // of each person, by arm

	count   float64   // of people when the crowd settled
	now     float64   // of people since
	limits  []float64 // by arm
	factors []float64 // of each person, by arm
	counted []float64 // what people count for, by arm, when the crowd settled
	given   []float64 // the evidence they had given, by arm
	grown   []float64 // how much they gave since, by arm
	over    []float64 // by how much people have passed their limits since, by arm
	items   byItems
}

// byItems has the same as a crowd, by items and not by mass.
type byItems struct {
	given   []float64 // by each person, by arm, within the limits of all rounds but the last
	least   []float64 // what one may have in any case, by arm
	limits  []float64 // 0 if two people settled at most: then any more evidence is over them
	counted []float64
	over    []float64
}

// A Voice is the evidence of one source in one cell, read at a moment.
type Voice struct {
	person  int32 // or one of the following
	given   evidence.Sums
	silence evidence.Sums // in the channels of silence
}

// instrument replaces a person's number for all instruments, and stranger the number of a person
// who is not in the crowd.
const (
	instrument = -1
	stranger   = -2
)

// New returns an empty crowd for this number of arms.
func New(t evidence.Trust, arms int) *Crowd {
	zero := func() []float64 { return make([]float64, arms) }
	c := &Crowd{
		trust: t, arms: arms, limits: zero(), counted: zero(), given: zero(), grown: zero(),
		over:  zero(),
		items: byItems{least: zero(), limits: zero(), counted: zero(), over: zero()},
	}
	c.known.trust = &c.trust
	return c
}

// Hear adds the parts of a cell of an arm to the crowd. It appends the evidence of each source
// there to the voices, for ShareVoices and [PoolVoices].
func (c *Crowd) Hear(voices []Voice, arm int, parts []evidence.Part, now evidence.Instant) []Voice {
	first := len(voices)
	voices = c.known.read(voices, parts, now, c.number)
	for i := first; i < len(voices); i++ {
		if v := &voices[i]; v.person >= 0 {
			c.masses[int(v.person)*c.arms+arm] += v.mass()
		}
	}
	return voices
}

// number returns the number of a source, and makes room for a new one.
func (c *Crowd) number(source string) int32 {
	n := c.known.number(source)
	for len(c.masses) < c.known.count()*c.arms {
		c.masses, c.items.given = append(c.masses, 0), append(c.items.given, 0)
	}
	return n
}

// people are numbered in the order in which they come.
type people struct {
	trust  *evidence.Trust
	known  bool
	first  string // if there is one; where one person is alone, there is no map
	others map[string]int32
}

func (p *people) count() int {
	if !p.known {
		return 0
	}
	return 1 + len(p.others)
}

// find returns the number of a source, or stranger.
func (p *people) find(source string) int32 {
	switch n, ok := p.others[source]; {
	case slices.Contains(p.trust.Instruments, source):
		return instrument
	case p.known && source == p.first:
		return 0
	case ok:
		return n
	default:
		return stranger
	}
}

// number returns the number of a source, which it gives to a new one.
func (p *people) number(source string) int32 {
	n := p.find(source)
	switch {
	case n != stranger:
	case !p.known:
		p.known, p.first, n = true, source, 0
	default:
		if p.others == nil {
			p.others = make(map[string]int32)
		}
		n = int32(1 + len(p.others)) //nolint:gosec // more do not fit into memory
		p.others[source] = n
	}
	return n
}

// read appends the evidence of each source in a cell.
func (p *people) read(
	voices []Voice, parts []evidence.Part, now evidence.Instant, number func(string) int32,
) []Voice {
	first := len(voices)
	if len(parts) > cap(voices)-first { // exactly, because a learner keeps them
		voices = append(make([]Voice, 0, first+len(parts)), voices...)
	}
	var at map[string]int // of the sources, where one may have several parts
	for i := range parts {
		part := &parts[i]
		v, sums := Voice{person: number(part.Source)}, part.Tally.At(now)
		if slices.Contains(p.trust.Silence, part.Channel) {
			v.silence = sums
		} else {
			v.given = sums
		}
		if at == nil && i > 0 && parts[i-1].Source >= part.Source { // there are several channels
			at = make(map[string]int, len(parts))
			for j := range i {
				at[parts[j].Source] = first + j
			}
		}
		if was, ok := at[part.Source]; ok {
			voices[was].given = voices[was].given.Plus(v.given)
			voices[was].silence = voices[was].silence.Plus(v.silence)
			continue
		}
		if at != nil {
			at[part.Source] = len(voices)
		}
		voices = append(voices, v)
	}
	return voices
}

func (v *Voice) mass() float64 { return max(v.given.Mass+v.silence.Mass, 0) }

// Settle works out how many people there are, and the factor by which each person's evidence on an
// arm counts. Its argument is the evidence on each item, by arm. It is called once.
func (c *Crowd) Settle(items iter.Seq[[][]Voice]) {
	for n := range c.known.count() {
		c.count += c.counts(n)
	}
	c.now = c.count
	for i, m := range c.masses {
		c.given[i%c.arms] += m
	}
	c.factors = make([]float64, len(c.masses))
	for i := range c.factors {
		c.factors[i] = 1
	}
	least := make([]float64, c.arms)
	for arm := range least {
		least[arm] = floor(c.count)
	}
	c.restrict(c.masses, least, c.limits, c.counted)
	if c.count <= believed {
		return
	}
	// A cell whose people are limited counts for less, so what is left of each of them is more by
	// items: the limits are applied again until they hold.
	before, mass := make([]float64, len(c.factors)), make([]float64, len(c.factors))
	for range mostRounds {
		copy(before, c.factors)
		c.spread(items)
		for arm := range c.arms {
			c.items.least[arm] = least[arm] * c.average(arm)
		}
		c.restrict(c.items.given, c.items.least, c.items.limits, c.items.counted)
		for i, m := range c.masses {
			mass[i] = m * c.factors[i]
		}
		// Some may now have more than their share of what is left.
		c.restrict(mass, least, c.limits, c.counted)
		holds := true
		for i := range before {
			holds = holds && c.factors[i] > 0.99*before[i]
		}
		if holds {
			break
		}
	}
}

// mostRounds bounds how often limits are applied. A round brings a factor closer to the one that
// holds by half at least.
const mostRounds = 20

// spread works out what each person's evidence is by items, within the limits by mass.
func (c *Crowd) spread(items iter.Seq[[][]Voice]) {
	clear(c.items.given)
	for item := range items {
		for arm, voices := range item {
			all := max(c.ShareVoices(arm, voices).Mass, 0)
			for i := range voices {
				if v := &voices[i]; v.person >= 0 {
					at := int(v.person)*c.arms + arm
					c.items.given[at] += spread(v.mass()*c.factor(arm, v.person), all)
				}
			}
		}
	}
}

// spread returns what a mass in a cell is by items, if the cell counts for n in all.
func spread(mass, n float64) float64 { return 2 * mass / (1 + n) }

// average returns what a mass on an arm is by items, on average over the people.
func (c *Crowd) average(arm int) float64 {
	given := 0.
	for i := arm; i < len(c.items.given); i += c.arms {
		given += c.items.given[i]
	}
	if given <= 0 {
		return 1
	}
	return given / c.counted[arm]
}

// restrict limits what each person has of each arm, and notes the limits. It also notes for how
// much all people count within them, by arm. least is what one may have in any case.
func (c *Crowd) restrict(of, least, limits, counted []float64) {
	for arm := range c.arms {
		limits[arm], counted[arm] = limitFrom(c.count, least[arm], of, arm, c.arms), 0
		for i := arm; i < len(of); i += c.arms {
			if of[i] > limits[arm] {
				c.factors[i] *= limits[arm] / of[i]
			}
			counted[arm] += min(of[i], limits[arm])
		}
	}
}

// Part returns the part of people's evidence on an arm that counted when the crowd settled, in [0,
// 1].
func (c *Crowd) Part(arm int) float64 {
	if c.given[arm] <= 0 {
		return 1
	}
	return c.counted[arm] / c.given[arm]
}

// counts returns for how much a person counts among the people.
func (c *Crowd) counts(person int) float64 {
	all := 0.
	for _, m := range c.masses[person*c.arms : (person+1)*c.arms] {
		all += m
	}
	return min(1, all)
}

// factor returns the part of a person's evidence on an arm that counts in all cells together, in
// (0, 1].
func (c *Crowd) factor(arm int, person int32) float64 {
	at := int(person)*c.arms + arm
	if person < 0 || at >= len(c.factors) {
		return 1
	}
	return c.factors[at]
}

// Kept returns the part of a source's evidence on an arm that counts in all cells together, in (0,
// 1], and whether the crowd has heard the source, or it is an instrument. A stranger has 1.
func (c *Crowd) Kept(arm int, source string) (part float64, heard bool) {
	person := c.known.find(source)
	return c.factor(arm, person), person != stranger
}

// Share returns what a cell of an arm is for the whole group, at a moment: its parts, each scaled
// by its source's factor. A person whom the crowd has not heard has a factor of 1.
func (c *Crowd) Share(arm int, parts []evidence.Part, now evidence.Instant) evidence.Sums {
	var few [4]Voice
	return c.ShareVoices(arm, c.known.read(few[:0], parts, now, c.known.find))
}

// ShareVoices does what Share does for what was heard of a cell.
func (c *Crowd) ShareVoices(arm int, voices []Voice) evidence.Sums {
	return addUp(voices, func(v *Voice) float64 { return c.factor(arm, v.person) })
}

// Pool limits the parts of a cell that is not an arm's to what one person of this crowd may state
// there, and adds them up.
func (c *Crowd) Pool(parts []evidence.Part, now evidence.Instant) evidence.Sums {
	var few [4]Voice
	return pool(c.count, c.known.read(few[:0], parts, now, c.known.find))
}

// Add records that a source gave more evidence on an arm since the crowd settled, in a cell that
// counts for n in all, with this evidence. What counts stays as it was. Add reports whether that
// came so far from the rule that the crowd should be made again: there is one part in 32 more of an
// arm than the limits allow, by mass or by items, or a fourth more people, or twice as much
// evidence.
func (c *Crowd) Add(arm int, source string, mass, n float64) (drifted bool) {
	number := c.number(source)
	if number < 0 {
		return false
	}
	person, at := int(number), int(number)*c.arms+arm
	c.now -= c.counts(person)
	before := c.masses[at]
	c.masses[at] += mass
	c.now += c.counts(person)
	if c.now <= believed {
		return false
	}
	factor, items := c.factor(arm, number), &c.items
	c.over[arm] += passed(factor*before, factor*mass, c.limits[arm])
	c.grown[arm] += mass
	more := spread(factor*mass, n)
	items.over[arm] += passed(items.given[at], more, items.limits[arm])
	items.given[at] += more
	return c.over[arm] > max(floor(c.count), c.counted[arm]/32) ||
		items.over[arm] > max(items.least[arm], items.counted[arm]/32) ||
		c.now > 1.25*c.count || c.grown[arm] > max(c.counted[arm], floor(c.count))
}

// passed returns how much of what comes is over a limit.
func passed(before, more, limit float64) float64 {
	return max(before+more-limit, 0) - max(before-limit, 0)
}
