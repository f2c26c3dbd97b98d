package decision

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// unknown replaces a number that the model does not give.
const unknown = 0.5

// parsePrediction reads the model's reply to a prediction prompt: a JSON object with the numbers
// "success" and "confidence". Prose, code fences, thoughts and other objects may surround it. A
// number may be in quotes.
//
// It refuses everything that it would have to guess: a number outside of [0, 1], also as a
// percentage; a field that is there twice; objects that differ or are no JSON. ½ then replaces each
// missing or refused number, and the error names the reason.
func parsePrediction(reply string) (Prediction, error) {
	none := Prediction{unknown, unknown}
	best, fault, usable := none, errors.New("the reply has no prediction"), false
	for _, o := range findObjects(reply, "success", "confidence") {
		for _, name := range []string{"success", "confidence"} {
			if len(o[name]) > 1 {
				return none, fmt.Errorf("%s is there twice", name)
			}
		}
		success, err := o.rate("success")
		confidence, err2 := o.rate("confidence")
		p, ok := Prediction{success, confidence}, err == nil || err2 == nil
		switch {
		case ok && usable && p != best:
			return none, errors.New("the reply has several predictions")
		case ok || !usable:
			best, fault, usable = p, errors.Join(err, err2), ok
		}
	}
	return best, fault
}

// rate returns a field that is a number in [0, 1], and ½ where it is not.
func (o object) rate(name string) (float64, error) {
	if len(o[name]) == 0 {
		return unknown, fmt.Errorf("%s is missing", name)
	}
	var number json.Number
	switch v := o[name][0].(type) {
	case json.Number:
		number = v
	case string: // must be a number of JSON, too
		_ = json.Unmarshal([]byte(v), &number)
	}
	x, err := number.Float64()
	switch {
	case err != nil:
		return unknown, fmt.Errorf("%s is no finite number", name)
	case !(x >= 0 && x <= 1):
		return unknown, fmt.Errorf("%s is not in [0, 1]", name)
	}
	return math.Abs(x), nil // -0 is 0
}
