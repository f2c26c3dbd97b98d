package agent

import (
	"slices"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/lab/agent/world"
)

// A score sums up a part of a life.
type score struct {
	Events     int
	Success    float64 // the share of events that were answered well
	Heuristics float64 // the share that heuristics answered
	Model      float64 // the share that the model answered
	Calls      float64 // of the model, for an event
	Tokens     float64 // in and out, for an event
}

func scoreOf(answers []answered) score {
	s := score{Events: len(answers)}
	for _, a := range answers {
		if a.Good {
			s.Success++
		}
		if a.Result.Path == decision.Heuristic {
			s.Heuristics++
		}
		if a.Result.Path == decision.Model {
			s.Model++
		}
		s.Calls += float64(a.Calls)
		s.Tokens += float64(a.Tokens)
	}
	n := float64(max(s.Events, 1))
	s.Success, s.Heuristics, s.Model, s.Calls, s.Tokens = s.Success/n, s.Heuristics/n, s.Model/n, s.Calls/n, s.Tokens/n
	return s
}

// part returns part i of a life that is cut into equal parts.
func (l *life) part(i, of int) []answered {
	n := len(l.Answers)
	return l.Answers[i*n/of : (i+1)*n/of]
}

// last returns the last quarter.
func (l *life) last() []answered { return l.part(3, 4) }

// fires returns how many events a heuristic answered.
func fires(answers []answered, heuristic string) (n int) {
	for _, a := range answers {
		if a.Result.CreditID == heuristic {
			n++
		}
	}
	return n
}

// A rate is how many of a number.
type rate struct {
	Hits int
	Of   int
}

func (r rate) share() float64 { return float64(r.Hits) / float64(max(r.Of, 1)) }

// mistakes returns how often a mistake was made where it can be made, before and after a moment.
func (l *life) mistakes(m *world.Mistake, since time.Time) (before, after rate) {
	for _, a := range l.Answers {
		if !slices.Contains(a.Kind.Mistakes, m) {
			continue
		}
		r := &before
		if !a.Event.At.Before(since) {
			r = &after
		}
		r.Of++
		if slices.Contains(a.Verdict.Mistakes, m) {
			r.Hits++
		}
	}
	return before, after
}
