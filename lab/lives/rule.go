package lives

import "math"

// A rule says what signals are worth.
type rule struct {
	strength                float64 // of the initial confidence
	silence                 float64
	person                  float64 // what one person counts for at most, with the agreement on their events; 0: no limit
	silences                float64 // what silence counts for at most, beyond other approval; 0: no limit
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

// A book is one heuristic's confidence by hand: the arithmetic of package learning without its store.
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
	var said, agreed, compared sum
	silent := 0.
	masses, silences := make([]float64, len(b.people)), make([]float64, len(b.people)) // of each person
	for i, p := range b.people {
		all := sum{p.said.good + p.silent, p.said.bad}
		kept := all.atMost(b.rule.person)
		if kept != all {
			by := kept.mass() / all.mass()
			p.silent, p.said.good = p.silent*by, p.said.good*by
		}
		said.good, said.bad = said.good+p.said.good, said.bad+kept.bad
		silent += p.silent
		masses[i], silences[i] = kept.mass(), p.silent
	}
	over := 0. // the share of silence that does not count
	if limit := b.rule.silences + said.good; b.rule.silences > 0 && silent > limit {
		silent, over = limit, 1-limit/silent
	}
	for i, p := range b.people {
		both := sum{p.agreed.good, p.agreed.bad + p.unlike}
		if b.rule.person > 0 { // what they said leaves the rest to agreement
			room := max(b.rule.person-masses[i]+over*silences[i], math.SmallestNonzeroFloat64)
			p.agreed, both = p.agreed.atMost(room), both.atMost(room)
		}
		agreed, compared = agreed.plus(p.agreed), compared.plus(both)
	}
	good, bad := initial*b.rule.strength+said.good+silent, (1-initial)*b.rule.strength+said.bad
	with := func(agreed sum) float64 {
		agreed = agreed.atMost(b.rule.mass)
		return (good + agreed.good) / (good + agreed.good + bad + agreed.bad)
	}
	least := min(with(agreed), with(sum{})) // disagreement takes back at most what agreement gave
	b.known = min(max(with(compared), least, 0.05), 0.95)
	return b.known
}
