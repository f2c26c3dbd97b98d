package patterns

import (
	"fmt"
	"time"
)

// The classes of an outcome or a rating: see [Score].Class.
const (
	helpful = "helpful"
	neutral = "neutral"
	harmful = "harmful"
)

// A Score is how good an outcome was. It is the same on every machine, because it is computed with
// integers.
type Score struct {
	// Value is in hundredths, 0 to 100.
	Value int `json:"value"`
	// Class is the judgement on what was followed. It follows from the value: from 70 on it is
	// "helpful", a success of a pattern. Up to 40 it is "harmful", a failure. Between, it is
	// "neutral", which is no evidence, for example of a task that succeeded slowly and with errors.
	Class string `json:"class"`
	// Reason lists for people the bands that gave the value, for example "success, fast (1m0s)".
	Reason string `json:"reason"`
}

// The weights of the signals of an outcome, in hundredths. They, the bands and the bounds of the
// classes are the learning-systems design's.
const (
	weightSuccess, weightDuration = 40, 20
	weightErrors, weightRetries   = 20, 20

	fast, slow              = 5 * time.Minute, 30 * time.Minute // below, and above
	someErrors, someRetries = 2, 1                              // more are many
	helpfulFrom, harmfulTo  = 70, 40
)

// unknownLevel is the level of a duration that is not known.
const unknownLevel = -1

// scoreOf returns the score of some levels, rounded half up. An unknown duration leaves the sum and
// the weights, so the others share its part.
func scoreOf(success bool, duration, errors, retries int) int {
	sum, weights := errors*weightErrors+retries*weightRetries, 100
	if success {
		sum += 100 * weightSuccess
	}
	if duration == unknownLevel {
		weights -= weightDuration
	} else {
		sum += duration * weightDuration
	}
	return (2*sum + weights) / (2 * weights)
}

// Score returns how good the outcome was. Each signal has a level in hundredths, and the score is
// the mean of the levels by the weights of their signals, rounded half up:
//
//	score = (40·success + 20·duration + 20·errors + 20·retries) / 100
//
//	success    100, a failure 0
//	duration   below 5 minutes 100, above 30 minutes 20, else 60. If it is not known, the others
//	           share its weight
//	errors     zero 100, one or two 60, more 20
//	retries    zero 100, one 70, more 30
//
// An outcome is helpful from 70 on, and harmful up to 40. No success scores as harmful, and no
// failure as helpful.
func (o Outcome) Score() Score {
	var took string
	var duration int
	switch {
	case o.Duration == 0:
		took, duration = "duration unknown", unknownLevel
	case o.Duration < fast:
		took, duration = "fast", 100
	case o.Duration > slow:
		took, duration = "slow", 20
	default:
		took, duration = "medium", 60
	}
	if o.Duration != 0 {
		took += fmt.Sprintf(" (%v)", o.Duration.Round(time.Millisecond))
	}
	result := "failure"
	if o.Success {
		result = "success"
	}
	errors, errorLevel := countBand(o.Errors, someErrors, "error", "errors", 60, 20)
	retries, retryLevel := countBand(o.Retries, someRetries, "retry", "retries", 70, 30)
	score := Score{Value: scoreOf(o.Success, duration, errorLevel, retryLevel)}
	switch {
	case score.Value >= helpfulFrom:
		score.Class = helpful
	case score.Value <= harmfulTo:
		score.Class = harmful
	default:
		score.Class = neutral
	}
	score.Reason = fmt.Sprintf("%s at %d: %s, %s, %s, %s", score.Class, score.Value, result, took,
		errors, retries)
	return score
}

// countBand returns a count in words, and the level of its band.
func countBand(n, upToSome int, one, more string, some, many int) (text string, level int) {
	text = plural(n, one, more)
	switch {
	case n == 0:
		return text, 100
	case n <= upToSome:
		return text, some
	default:
		return text + " (many)", many
	}
}

// plural writes a count with its noun.
func plural(n int, one, more string) string {
	switch n {
	case 0:
		return "no " + more
	case 1:
		return "1 " + one
	default:
		return fmt.Sprint(n, " ", more)
	}
}
