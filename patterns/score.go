package patterns

import (
	"fmt"
	"time"

	"github.com/heedhq/heed/internal/faults"
)

// A Class is what an outcome, or someone's feedback, says of what was followed.
type Class string

// The classes.
const (
	Helpful Class = "helpful"
	Neutral Class = "neutral" // it says nothing
	Harmful Class = "harmful"
)

// A Band is where a signal lies: that of a duration is [Fast], [Medium], [Slow] or [Unknown], that of a count [None], [Some]
// or [Many].
type Band string

// The bands.
const (
	Fast    Band = "fast"
	Medium  Band = "medium"
	Slow    Band = "slow"
	Unknown Band = "unknown"
	None    Band = "none"
	Some    Band = "some"
	Many    Band = "many"
)

// A Score says how good an outcome was. It is made with integers alone, and so the same on every machine.
type Score struct {
	Value    int    `json:"value"` // in hundredths, 0 to 100
	Class    Class  `json:"class"`
	Duration Band   `json:"duration"`
	Errors   Band   `json:"errors"`
	Retries  Band   `json:"retries"`
	Reason   string `json:"reason"` // for people
}

// Scoring says how an outcome is scored: each signal lies in a band, each band has a level, and the score is the mean of
// the levels by the weights of their signals, rounded half up to hundredths:
//
//	score = (success·Weights.Success + duration·Weights.Duration + errors·Weights.Errors + retries·Weights.Retries) / 100
//
// where success is 100 or 0. Where the duration is not known, the other three share its weight. The bands and their
// numbers are those of the learning-systems design. The zero value of each field means its default.
type Scoring struct {
	Weights  Weights       // zero means 40, 20, 20, 20
	Duration DurationBands // zero means 5 minutes, 30 minutes
	Errors   CountBands    // zero means up to 2, with levels 100, 60, 20
	Retries  CountBands    // zero means up to 1, with levels 100, 70, 30
	Classes  Classes       // zero means 70, 40
}

// Weights say how much each signal counts, in hundredths that add up to 100.
type Weights struct{ Success, Duration, Errors, Retries int }

// Levels say how good it is to be in the first, second and third band of a signal, in hundredths that do not rise.
type Levels struct{ Good, Fair, Poor int }

// DurationBands divides durations: less than Fast is fast, more than Slow is slow, and what lies between, both ends
// included, is medium.
type DurationBands struct {
	Fast, Slow time.Duration // 0 means 5 minutes, and 30 minutes
	Levels     Levels        // zero means 100, 60, 20
}

// CountBands divides counts: 0 is none, up to Some is some, more is many.
type CountBands struct {
	Some   int // 0, where Levels are given: any at all is many
	Levels Levels
}

// Classes divides scores, in hundredths: from Helpful on an outcome is helpful, up to Harmful it is harmful.
type Classes struct{ Helpful, Harmful int }

func (s Scoring) withDefaults() Scoring {
	if s.Weights == (Weights{}) {
		s.Weights = Weights{40, 20, 20, 20}
	}
	if s.Duration.Fast == 0 {
		s.Duration.Fast = 5 * time.Minute
	}
	if s.Duration.Slow == 0 {
		s.Duration.Slow = 30 * time.Minute
	}
	if s.Duration.Levels == (Levels{}) {
		s.Duration.Levels = Levels{100, 60, 20}
	}
	s.Errors = s.Errors.withDefaults(CountBands{2, Levels{100, 60, 20}})
	s.Retries = s.Retries.withDefaults(CountBands{1, Levels{100, 70, 30}})
	if s.Classes == (Classes{}) {
		s.Classes = Classes{70, 40}
	}
	return s
}

func (b CountBands) withDefaults(defaults CountBands) CountBands {
	switch {
	case b == CountBands{}:
		return defaults
	case b.Levels == Levels{}:
		b.Levels = defaults.Levels
	}
	return b
}

// Validate reports all faults, joined. Bands and classes have to fit each other: no success may be harmful, and no failure
// helpful.
func (s Scoring) Validate() error {
	s = s.withDefaults()
	var found faults.List
	w := s.Weights
	found.Check(w.Success >= 0 && w.Duration >= 0 && w.Errors >= 0 && w.Retries >= 0 &&
		w.Success+w.Duration+w.Errors+w.Retries == 100 && w.Duration < 100, "Weights", w,
		"must not be negative, must add up to 100, and not all of it be on the duration")
	found.Check(s.Duration.Fast > 0 && s.Duration.Fast < s.Duration.Slow, "Duration", s.Duration, "must have 0 < Fast < Slow")
	found.Check(s.Duration.Levels.fall(), "Duration.Levels", s.Duration.Levels, fallingLevels)
	found.Check(s.Errors.Some >= 0, "Errors.Some", s.Errors.Some, "must not be negative")
	found.Check(s.Errors.Levels.fall(), "Errors.Levels", s.Errors.Levels, fallingLevels)
	found.Check(s.Retries.Some >= 0, "Retries.Some", s.Retries.Some, "must not be negative")
	found.Check(s.Retries.Levels.fall(), "Retries.Levels", s.Retries.Levels, fallingLevels)
	found.Check(s.Classes.Harmful >= 0 && s.Classes.Harmful < s.Classes.Helpful && s.Classes.Helpful <= 100, "Classes", s.Classes,
		"must have 0 <= Harmful < Helpful <= 100")
	if err := found.Err(); err != nil {
		return err
	}
	worst := min(s.value(true, s.Duration.Levels.Poor, s.Errors.Levels.Poor, s.Retries.Levels.Poor),
		s.value(true, unknownLevel, s.Errors.Levels.Poor, s.Retries.Levels.Poor))
	best := max(s.value(false, s.Duration.Levels.Good, s.Errors.Levels.Good, s.Retries.Levels.Good),
		s.value(false, unknownLevel, s.Errors.Levels.Good, s.Retries.Levels.Good))
	found.Check(worst > s.Classes.Harmful, "Classes.Harmful", s.Classes.Harmful,
		fmt.Sprintf("must be less than %d, the score of the worst success", worst))
	found.Check(best < s.Classes.Helpful, "Classes.Helpful", s.Classes.Helpful,
		fmt.Sprintf("must be more than %d, the score of the best failure", best))
	return found.Err()
}

const fallingLevels = "must be in [0, 100] and not rise from good to poor"

func (l Levels) fall() bool {
	return l.Good <= 100 && l.Good >= l.Fair && l.Fair >= l.Poor && l.Poor >= 0
}

// unknownLevel stands for the level of a duration that is not known.
const unknownLevel = -1

// value returns the score of some levels, rounded half up.
func (s *Scoring) value(success bool, duration, errors, retries int) int {
	sum, weights := errors*s.Weights.Errors+retries*s.Weights.Retries, 100
	if success {
		sum += 100 * s.Weights.Success
	}
	if duration == unknownLevel {
		weights -= s.Weights.Duration
	} else {
		sum += duration * s.Weights.Duration
	}
	return (2*sum + weights) / (2 * weights)
}

// Score scores an outcome. Its count of errors is taken as it is. Only a Scoring that is valid gives sensible scores.
func (s Scoring) Score(o Outcome) Score {
	s = s.withDefaults()
	var score Score
	var duration, errors, retries int
	score.Duration, duration = s.Duration.band(o.Duration)
	score.Errors, errors = s.Errors.band(o.Errors)
	score.Retries, retries = s.Retries.band(o.Retries)
	score.Value = s.value(o.Success, duration, errors, retries)
	switch {
	case score.Value >= s.Classes.Helpful:
		score.Class = Helpful
	case score.Value <= s.Classes.Harmful:
		score.Class = Harmful
	default:
		score.Class = Neutral
	}
	score.Reason = score.reason(&o)
	return score
}

func (b DurationBands) band(d time.Duration) (Band, int) {
	switch {
	case d == 0:
		return Unknown, unknownLevel
	case d < b.Fast:
		return Fast, b.Levels.Good
	case d > b.Slow:
		return Slow, b.Levels.Poor
	default:
		return Medium, b.Levels.Fair
	}
}

func (b CountBands) band(n int) (Band, int) {
	switch {
	case n == 0:
		return None, b.Levels.Good
	case n <= b.Some:
		return Some, b.Levels.Fair
	default:
		return Many, b.Levels.Poor
	}
}

// reason tells the score from the bands that it was made of.
func (s *Score) reason(o *Outcome) string {
	result, duration := "failure", "duration unknown"
	if o.Success {
		result = "success"
	}
	if s.Duration != Unknown {
		duration = fmt.Sprintf("%s (%v)", s.Duration, o.Duration.Round(time.Millisecond))
	}
	return fmt.Sprintf("%s at %d: %s, %s, %s, %s", s.Class, s.Value, result, duration,
		counted(s.Errors, o.Errors, "error", "errors"), counted(s.Retries, o.Retries, "retry", "retries"))
}

func counted(band Band, n int, one, more string) string {
	text := plural(n, one, more)
	if band == Many {
		text += " (many)"
	}
	return text
}

func plural[N int | uint64](n N, one, more string) string {
	switch n {
	case 0:
		return "no " + more
	case 1:
		return "1 " + one
	default:
		return fmt.Sprint(n, " ", more)
	}
}
