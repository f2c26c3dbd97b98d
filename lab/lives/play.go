package lives

import "math/rand/v2"

// A mind is what is known of one heuristic.
type mind interface {
	// answers decides who answers an event: the heuristic, or the model.
	answers(e *event) (heuristic bool, err error)
	// hears counts the reaction of the event's person to the answer: 1, -1, or 0 for silence.
	hears(e *event, said float64) error
}

// A life is what became of one heuristic.
type life struct {
	began int // how many events came before its first answer; -1: it never answered
	later int // its answers in the second half of the events
}

// late returns the share of the events in the second half that the heuristic answered.
func (l *life) late(events int) float64 { return float64(l.later) / (float64(events) / 2) }

// play lets a heuristic live.
func play(m mind, c *crowd, s *subject, events int, seed uint64) (life, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	model := 0.7 + 0.25*rng.Float64()
	if s.model > 0 {
		model = s.model
	}
	l := life{began: -1}
	for i := range events {
		e := draw(c, s.rate(i, events, l.began >= 0), model, rng)
		own, err := m.answers(&e)
		if err != nil {
			return l, err
		}
		right := e.model
		if own {
			right = e.heuristic
			if l.began < 0 {
				l.began = i
			}
			if i >= events/2 {
				l.later++
			}
		}
		if err := m.hears(&e, c.says(&e, right)); err != nil {
			return l, err
		}
	}
	return l, nil
}
