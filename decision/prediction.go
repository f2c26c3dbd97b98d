package decision

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// unknown is what is predicted where the model does not say.
const unknown = 0.5

// A Prediction is what a model expects of an answer.
type Prediction struct {
	Success    float64 // the probability that it serves its end, in [0, 1]
	Confidence float64 // how much there was to judge by, in [0, 1]
}

// ParsePrediction reads the model's reply to a prediction prompt: a JSON object with the numbers "success" and "confidence",
// with whatever stands around it: prose, code fences, other objects, thoughts in their tags. It forgives what models do to
// JSON, and takes a number in quotes for a number.
//
// It refuses what it would have to guess: a number outside of [0, 1], also as a percentage; a field that is there twice;
// objects that say different things, or are malformed; a number with which the reply breaks off. The prediction then has ½
// in place of each value that is missing or refused, and the error names the reason. A reply that says nothing of either is
// ½ twice and an error.
func ParsePrediction(reply string) (Prediction, error) { return parsePrediction(reply, false) }

// parsePrediction does the same, and brings numbers into [0, 1] if clamp is set.
func parsePrediction(reply string, clamp bool) (Prediction, error) {
	none := Prediction{unknown, unknown}
	found, malformed := findObjects(reply, "success", "confidence")
	if malformed {
		return none, errors.New("the reply is malformed or too long")
	}
	prediction, fault, usable := none, errors.New("the reply has no prediction"), false
	for _, o := range found {
		for _, name := range []string{"success", "confidence"} {
			if _, n := o.field(name); n > 1 {
				return none, fmt.Errorf("%s is there twice", name)
			}
		}
		success, err := o.rate("success", clamp)
		confidence, err2 := o.rate("confidence", clamp)
		p, ok := Prediction{success, confidence}, err == nil || err2 == nil
		switch {
		case ok && usable && p != prediction:
			return none, errors.New("the reply has several predictions")
		case ok || !usable:
			prediction, fault, usable = p, errors.Join(err, err2), ok
		}
	}
	return prediction, fault
}

// rate returns a field that is a number in [0, 1], and ½ where it is not.
func (o *object) rate(name string, clamp bool) (float64, error) {
	f, n := o.field(name)
	if n == 0 {
		return unknown, fmt.Errorf("%s is missing", name)
	}
	x, ok := f.number, f.kind == numberKind
	if f.kind == textKind {
		x, ok = parseNumber(strings.TrimSpace(f.text))
	}
	switch {
	case !ok || math.IsInf(x, 0):
		return unknown, fmt.Errorf("%s is no finite number", name)
	case clamp:
		x = min(max(x, 0), 1)
	case !(x >= 0 && x <= 1):
		return unknown, fmt.Errorf("%s is not in [0, 1]", name)
	}
	return math.Abs(x), nil // -0 is 0
}
