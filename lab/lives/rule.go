package lives

import (
	"math"
	"slices"
)

// A rule sets what signals are worth.
type rule struct {
	strength                float64 // of the initial confidence
	silence                 float64
	unlimited               bool    // everybody is believed
	agreement, disagreement float64 // with an answer that was accepted
	rejected                float64 // agreement with an answer that was rejected
	mass                    float64 // what agreement counts for at most
	withhold                float64
}

const (
	initial   = 0.3
	threshold = 0.7
	click     = 0.8
)

// A sum is evidence for a heuristic, and against it.
type sum struct{ good, bad float64 }

func (s sum) mass() float64 { return s.good + s.bad }

func (s sum) plus(o sum) sum { return sum{s.good + o.good, s.bad + o.bad} }

// atMost scales the sum down to a mass. 0 is no limit.
func (s sum) atMost(mass float64) sum {
	if all := s.mass(); mass > 0 && all > mass {
		return sum{s.good * mass / all, s.bad * mass / all}
	}
	return s
}

// A book is one heuristic's confidence by hand: the arithmetic of package learning without its
// store.
type book struct {
	rule   *rule
	people []account
	known  float64 // the confidence; 0: to be worked out
}

type account struct {
	said   sum
	silent float64
	agreed sum
	unlike float64 // disagreement
}

func (r *rule) open(people int) *book { return &book{rule: r, people: make([]account, people)} }

func (b *book) answers(*event) (bool, error) { return b.confidence() >= threshold, nil }

func (b *book) hears(e *event, said float64) error {
	own := b.confidence() >= threshold
	b.known = 0
	if own {
		b.people[e.person].hears(said, b.rule.silence)
		return nil
	}
	if e.hidden >= b.rule.withhold {
		return nil
	}
	asked := &b.people[e.person]
	switch agrees := e.agrees(); {
	case said < 0 && agrees:
		asked.agreed.bad += b.rule.rejected
	case agrees:
		asked.agreed.good += b.rule.agreement
	default:
		asked.unlike += b.rule.disagreement
	}
	return nil
}

func (a *account) hears(said, silence float64) {
	switch {
	case said > 0:
		a.said.good += click
	case said < 0:
		a.said.bad += click
	default:
		a.silent += silence
	}
}

func (b *book) confidence() float64 {
	if b.known > 0 {
		return b.known
	}
	var own, agreed, compared sum
	for _, p := range b.limited() {
		own = own.plus(p.said).plus(sum{good: p.silent})
		agreed = agreed.plus(p.agreed)
		compared = compared.plus(sum{p.agreed.good, p.agreed.bad + p.unlike})
	}
	good, bad := initial*b.rule.strength+own.good, (1-initial)*b.rule.strength+own.bad
	with := func(agreed sum) float64 {
		agreed = agreed.atMost(b.rule.mass)
		return (good + agreed.good) / (good + agreed.good + bad + agreed.bad)
	}
	least := min(with(agreed), with(sum{})) // disagreement takes back at most what agreement gave
	b.known = min(max(with(compared), least, 0.05), 0.95)
	return b.known
}

func (a *account) mass() float64 { return a.said.mass() + a.silent + a.agreed.mass() + a.unlike }

// limited returns what the people count for.
func (b *book) limited() []account {
	n := 0.
	for i := range b.people {
		if b.people[i].mass() > 0 {
			n++
		}
	}
	if n <= 2 || b.rule.unlimited {
		return b.people
	}
	all, masses := slices.Clone(b.people), make([]float64, len(b.people))
	for i := range all {
		masses[i] = all[i].agreed.bad
	}
	for i, most := 0, fair(n, 0, masses); i < len(all); i++ {
		all[i].agreed.bad = min(masses[i], most)
	}
	for i := range all {
		masses[i] = all[i].mass()
	}
	most := fair(n, max(1, 20/(n-1)), masses)
	for i := range all {
		if p := &all[i]; masses[i] > most {
			by := most / masses[i]
			p.said, p.agreed = p.said.atMost(p.said.mass()*by), p.agreed.atMost(p.agreed.mass()*by)
			p.silent, p.unlike = p.silent*by, p.unlike*by
		}
	}
	return all
}

// fair returns twice a fair share of masses for each of n people, or the least.
func fair(n, least float64, masses []float64) float64 {
	x := math.Inf(1)
	for {
		over, rest := 0., 0.
		for _, m := range masses {
			if m > x {
				over++
			} else {
				rest += m
			}
		}
		slope := 1 - 2*over/n
		next := 2 * rest / n / slope
		switch {
		case slope < 1e-12 || next >= x:
			return max(x, least)
		case next <= least:
			return least
		}
		x = next
	}
}
