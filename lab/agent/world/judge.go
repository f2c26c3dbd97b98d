package world

import (
	"cmp"
	"slices"
	"strings"

	"github.com/heedhq/heed/lab/agent/assistant"
	"github.com/heedhq/heed/loop"
)

// A Verdict is how good an answer was: the truth, which is hidden from everybody in the world.
type Verdict struct {
	Good     bool
	Kind     *Kind
	Mistakes []*Mistake // that it makes, of those that one can make there
	errors   int
}

// Judge returns how good an answer is. The luck of an event is the same for every answer to it.
func (w *World) Judge(e loop.Event, answer string) Verdict {
	v := Verdict{Kind: kindOf(e.Text)}
	works := w.works(e, answer)
	for _, m := range v.Kind.Mistakes {
		if answer != "" && !strings.Contains(answer, m.Fix) {
			v.Mistakes = append(v.Mistakes, m)
		}
	}
	if d := decompositionIn(answer); d != nil {
		v.errors = d.Errors
	}
	v.Good = w.draw("luck", e.ID) < works && len(v.Mistakes) == 0
	return v
}

// works returns the probability that an answer serves its end, mistakes aside.
func (w *World) works(e loop.Event, answer string) float64 {
	k := kindOf(e.Text)
	if answer == "" {
		return 0
	}
	if k.Domain == assistant.Changes {
		if d := decompositionIn(answer); d != nil {
			return d.Works
		}
		return nonsense
	}
	for _, a := range k.Answers {
		if strings.Contains(strings.ToLower(answer), strings.ToLower(a.Key)) {
			return w.at(a, e)
		}
	}
	return nonsense
}

// at is how often an answer works at the time of an event.
func (w *World) at(a Answer, e loop.Event) float64 {
	if a.Later > 0 && e.At.After(w.turns) {
		return a.Later
	}
	return a.Works
}

// Best answers as well as it can be done.
func (w *World) Best(e loop.Event) string {
	k := kindOf(e.Text)
	if k.Domain == assistant.Changes {
		return slices.MaxFunc(truth.Decompositions, func(a, b decomposition) int {
			return cmp.Compare(a.Works, b.Works)
		}).Text
	}
	text := w.best(k, e).Text
	for _, m := range k.Mistakes {
		text += " " + m.Fixed
	}
	return text
}

// best returns the answer that works most often at the time of an event.
func (w *World) best(k *Kind, e loop.Event) Answer {
	return slices.MaxFunc(k.Answers, func(a, b Answer) int {
		return cmp.Compare(w.at(a, e), w.at(b, e))
	})
}

func decompositionIn(text string) *decomposition {
	for i := range truth.Decompositions {
		if strings.Contains(text, truth.Decompositions[i].Name) {
			return &truth.Decompositions[i]
		}
	}
	return nil
}
