package patterns

import (
	"cmp"
	"fmt"
	"time"

	"github.com/heedhq/heed/internal/faults"
)

// A Class is what an outcome, or somebody's rating, says of what was followed.
type Class string

// The classes.
const (
	Helpful Class = "helpful"
	Neutral Class = "neutral" // it says nothing
	Harmful Class = "harmful"
)

// The bands: where a signal lies.
const (
	fast    = "fast"
	medium  = "medium"
	slow    = "slow"
	unknown = "unknown"
	none    = "none"
	some    = "some"
	many    = "many"
)

// A Score says how good an outcome was. Integers alone make it, so it is the same on every machine.
type Score struct {
	Value    int    `json:"value"` // in hundredths, 0 to 100
	Class    Class  `json:"class"`
	Duration string `json:"duration"` // fast, medium, slow or unknown
	Errors   string `json:"errors"`   // none, some or many
	Retries  string `json:"retries"`  // none, some or many
	Reason   string `json:"reason"`   // for people
}

// Scoring says how an outcome is scored. Each signal lies in one of three bands, and each band has a level. The score is the
// mean of the levels by the weights of their signals, rounded half up to hundredths:
//
//	score = (success·Success + duration·Duration + errors·Errors + retries·Retries) / 100
//
// where success is 100 or 0. If the duration is not known, the other three share its weight. The defaults are those of the
// learning-systems design. No success may score as harmful, and no failure as helpful.
type Scoring struct {
	// Success, Duration, Errors and Retries are the weights of the signals, in hundredths that add up to 100. All zero means
	// 40, 20, 20 and 20.
	Success, Duration, Errors, Retries int
	// A duration below Fast is fast, and above Slow it is slow. 0 means 5 minutes, and 30 minutes.
	Fast, Slow time.Duration
	// Up to SomeErrors errors and SomeRetries retries are some, and more are many. 0 means 2 errors, and 1 retry.
	SomeErrors, SomeRetries int
	// The levels say how good it is to be in the first, second and third band, in hundredths that do not rise. Zero means
	// 100, 60, 20; for retries 100, 70, 30.
	DurationLevels, ErrorLevels, RetryLevels [3]int
	// An outcome is helpful from the score Helpful on, and harmful up to the score Harmful. Both zero means 70 and 40.
	Helpful, Harmful int
}

func (s Scoring) withDefaults() Scoring {
	if s.Success == 0 && s.Duration == 0 && s.Errors == 0 && s.Retries == 0 {
		s.Success, s.Duration, s.Errors, s.Retries = 40, 20, 20, 20
	}
	s.Fast, s.Slow = cmp.Or(s.Fast, 5*time.Minute), cmp.Or(s.Slow, 30*time.Minute)
	s.SomeErrors, s.SomeRetries = cmp.Or(s.SomeErrors, 2), cmp.Or(s.SomeRetries, 1)
	s.DurationLevels = cmp.Or(s.DurationLevels, [3]int{100, 60, 20})
	s.ErrorLevels = cmp.Or(s.ErrorLevels, [3]int{100, 60, 20})
	s.RetryLevels = cmp.Or(s.RetryLevels, [3]int{100, 70, 30})
	if s.Helpful == 0 && s.Harmful == 0 {
		s.Helpful, s.Harmful = 70, 40
	}
	return s
}

// validate reports all faults of a scoring that has its defaults.
func (s Scoring) validate() error {
	var found faults.List
	found.Check(min(s.Success, s.Duration, s.Errors, s.Retries) >= 0 && s.Success+s.Duration+s.Errors+s.Retries == 100 && s.Duration < 100,
		"Success", [4]int{s.Success, s.Duration, s.Errors, s.Retries},
		"must not be negative, must add up to 100 with Duration, Errors and Retries, and the duration must not have all of it")
	found.Check(s.Fast > 0 && s.Fast < s.Slow, "Fast", s.Fast, "must be positive and less than Slow")
	found.Check(s.SomeErrors >= 0, "SomeErrors", s.SomeErrors, "must not be negative")
	found.Check(s.SomeRetries >= 0, "SomeRetries", s.SomeRetries, "must not be negative")
	for _, levels := range []struct {
		field string
		is    [3]int
	}{{"DurationLevels", s.DurationLevels}, {"ErrorLevels", s.ErrorLevels}, {"RetryLevels", s.RetryLevels}} {
		l := levels.is
		found.Check(l[0] <= 100 && l[0] >= l[1] && l[1] >= l[2] && l[2] >= 0, levels.field, l, "must be in [0, 100] and not rise")
	}
	found.Check(s.Harmful >= 0 && s.Harmful < s.Helpful && s.Helpful <= 100, "Helpful", s.Helpful, "must be more than Harmful and at most 100")
	if err := found.Err(); err != nil {
		return err
	}
	worst := min(s.value(true, s.DurationLevels[2], s.ErrorLevels[2], s.RetryLevels[2]), s.value(true, unknownLevel, s.ErrorLevels[2], s.RetryLevels[2]))
	best := max(s.value(false, s.DurationLevels[0], s.ErrorLevels[0], s.RetryLevels[0]), s.value(false, unknownLevel, s.ErrorLevels[0], s.RetryLevels[0]))
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
	var score Score
	var duration, errors, retries int
	switch l := s.DurationLevels; {
	case o.Duration == 0:
		score.Duration, duration = unknown, unknownLevel
	case o.Duration < s.Fast:
		score.Duration, duration = fast, l[0]
	case o.Duration > s.Slow:
		score.Duration, duration = slow, l[2]
	default:
		score.Duration, duration = medium, l[1]
	}
	score.Errors, errors = countBand(o.Errors, s.SomeErrors, s.ErrorLevels)
	score.Retries, retries = countBand(o.Retries, s.SomeRetries, s.RetryLevels)
	score.Value = s.value(o.Success, duration, errors, retries)
	switch {
	case score.Value >= s.Helpful:
		score.Class = Helpful
	case score.Value <= s.Harmful:
		score.Class = Harmful
	default:
		score.Class = Neutral
	}
	score.Reason = score.reason(&o)
	return score
}

func countBand(n, upToSome int, levels [3]int) (string, int) {
	switch {
	case n == 0:
		return none, levels[0]
	case n <= upToSome:
		return some, levels[1]
	default:
		return many, levels[2]
	}
}

// reason explains the score by the bands.
func (s *Score) reason(o *Outcome) string {
	result, duration := "failure", "duration unknown"
	if o.Success {
		result = "success"
	}
	if s.Duration != unknown {
		duration = fmt.Sprintf("%s (%v)", s.Duration, o.Duration.Round(time.Millisecond))
	}
	return fmt.Sprintf("%s at %d: %s, %s, %s, %s", s.Class, s.Value, result, duration,
		counted(s.Errors, o.Errors, "error", "errors"), counted(s.Retries, o.Retries, "retry", "retries"))
}

func counted(band string, n int, one, more string) string {
	text := plural(n, one, more)
	if band == many {
		text += " (many)"
	}
	return text
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
