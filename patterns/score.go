package patterns

import (
	"cmp"
	"fmt"
	"time"

	"github.com/heedhq/heed/internal/valid"
)

// A Class is what an outcome, or somebody's rating, says of what was followed.
type Class string

// The classes.
const (
	Helpful Class = "helpful"
	Neutral Class = "neutral" // it says nothing
	Harmful Class = "harmful"
)

// A Score says how good an outcome was. Integers alone make it, so it is the same on every machine.
type Score struct {
	Value  int    `json:"value"` // in hundredths, 0 to 100
	Class  Class  `json:"class"`
	Reason string `json:"reason"` // for people: the bands that gave the value
}

// Scoring says how an outcome is scored. Each signal has a level in hundredths, and the score is the mean of the levels by the
// weights of their signals, rounded half up:
//
//	score = (success·Success + duration·Duration + errors·Errors + retries·Retries) / 100
//
//	success    100, a failure 0
//	duration   fast 100, medium 60, slow 20. If it is not known, the others share its weight
//	errors     none 100, some 60, many 20
//	retries    none 100, some 70, many 30
//
// No success may score as harmful, and no failure as helpful.
type Scoring struct {
	// Success, Duration, Errors and Retries are the weights of the signals, in hundredths that add up to 100. All zero means
	// 40, 20, 20 and 20.
	Success, Duration, Errors, Retries int
	// A duration below Fast is fast, and above Slow it is slow. 0 means 5 minutes, and 30 minutes.
	Fast, Slow time.Duration
	// Up to SomeErrors errors and SomeRetries retries are some, and more are many. 0 means 2 errors, and 1 retry.
	SomeErrors, SomeRetries int
	// An outcome is helpful from the score Helpful on, and harmful up to the score Harmful. Both zero means 70 and 40.
	Helpful, Harmful int
}

func (s Scoring) withDefaults() Scoring {
	if s.Success == 0 && s.Duration == 0 && s.Errors == 0 && s.Retries == 0 {
		s.Success, s.Duration, s.Errors, s.Retries = 40, 20, 20, 20
	}
	s.Fast, s.Slow = cmp.Or(s.Fast, 5*time.Minute), cmp.Or(s.Slow, 30*time.Minute)
	s.SomeErrors, s.SomeRetries = cmp.Or(s.SomeErrors, 2), cmp.Or(s.SomeRetries, 1)
	if s.Helpful == 0 && s.Harmful == 0 {
		s.Helpful, s.Harmful = 70, 40
	}
	return s
}

// validate reports all faults of a scoring that has its defaults.
func (s Scoring) validate() error {
	var found valid.Faults
	found.Check(min(s.Success, s.Duration, s.Errors, s.Retries) >= 0 && s.Success+s.Duration+s.Errors+s.Retries == 100 && s.Duration < 100,
		"Success", [4]int{s.Success, s.Duration, s.Errors, s.Retries},
		"must not be negative, must add up to 100 with Duration, Errors and Retries, and the duration must not have all of it")
	found.Check(s.Fast > 0 && s.Fast < s.Slow, "Fast", s.Fast, "must be positive and less than Slow")
	found.Check(s.SomeErrors >= 0, "SomeErrors", s.SomeErrors, "must not be negative")
	found.Check(s.SomeRetries >= 0, "SomeRetries", s.SomeRetries, "must not be negative")
	found.Check(s.Harmful >= 0 && s.Harmful < s.Helpful && s.Helpful <= 100, "Helpful", s.Helpful, "must be more than Harmful and at most 100")
	if err := found.Err(); err != nil {
		return err
	}
	worst, best := s.value(true, 20, 20, 30), max(s.value(false, 100, 100, 100), s.value(false, unknownLevel, 100, 100))
	worst = min(worst, s.value(true, unknownLevel, 20, 30))
	found.Check(worst > s.Harmful, "Harmful", s.Harmful, fmt.Sprintf("must be less than %d, the score of the worst success", worst))
	found.Check(best < s.Helpful, "Helpful", s.Helpful, fmt.Sprintf("must be more than %d, the score of the best failure", best))
	return found.Err()
}

// unknownLevel stands for the level of a duration that is not known.
const unknownLevel = -1

// value returns the score of some levels, rounded half up.
func (s *Scoring) value(success bool, duration, errors, retries int) int {
	sum, weights := errors*s.Errors+retries*s.Retries, 100
	if success {
		sum += 100 * s.Success
	}
	if duration == unknownLevel {
		weights -= s.Duration
	} else {
		sum += duration * s.Duration
	}
	return (2*sum + weights) / (2 * weights)
}

// Score scores an outcome with the count of errors that it has. It needs a scoring that [New] takes.
func (s Scoring) Score(o Outcome) Score {
	s = s.withDefaults()
	var took string
	var duration int
	switch {
	case o.Duration == 0:
		took, duration = "duration unknown", unknownLevel
	case o.Duration < s.Fast:
		took, duration = "fast", 100
	case o.Duration > s.Slow:
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
	errors, errorLevel := countBand(o.Errors, s.SomeErrors, "error", "errors", 60, 20)
	retries, retryLevel := countBand(o.Retries, s.SomeRetries, "retry", "retries", 70, 30)
	score := Score{Value: s.value(o.Success, duration, errorLevel, retryLevel)}
	switch {
	case score.Value >= s.Helpful:
		score.Class = Helpful
	case score.Value <= s.Harmful:
		score.Class = Harmful
	default:
		score.Class = Neutral
	}
	score.Reason = fmt.Sprintf("%s at %d: %s, %s, %s, %s", score.Class, score.Value, result, took, errors, retries)
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
