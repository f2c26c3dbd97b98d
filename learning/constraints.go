package learning

import (
	"cmp"

	"github.com/heedhq/heed/internal/faults"
)

// Constraints limit what signals can do to a heuristic. They are layered: what the heuristic itself says goes before what
// its pack says, and that before [Config].System. A zero field says nothing, and leaves it to the next layer.
type Constraints struct {
	Lock  Lock
	Range Range // a floor and a ceiling for the confidence, within [Config].Bounds
	// FeedbackWeight multiplies the magnitude of every signal, in [0.25, 2]. 1 where no layer says anything.
	FeedbackWeight float64
}

// A Lock says whether signals count.
type Lock string

// The states of a lock. A locked heuristic takes no signal from any source; what came meanwhile is not made up for when it
// is unlocked. Under a half-life, the evidence it has goes on fading.
const (
	Inherit  Lock = ""
	Locked   Lock = "locked"
	Unlocked Lock = "unlocked"
)

// Valid reports whether the state is one of those above.
func (l Lock) Valid() bool { return l == Inherit || l == Locked || l == Unlocked }

// A Range is where a confidence stays, 0 ≤ Floor ≤ Ceiling ≤ 1. The zero Range says nothing; Range{0, 1} says that there
// are no limits.
type Range struct{ Floor, Ceiling float64 }

func (r Range) valid() bool { return r.Floor >= 0 && r.Floor <= r.Ceiling && r.Ceiling <= 1 }

func (r Range) clamp(x float64) float64 { return min(max(x, r.Floor), r.Ceiling) }

// The bounds of a feedback weight.
const (
	MinFeedbackWeight = 0.25
	MaxFeedbackWeight = 2
)

// Validate reports all faults, joined, each a [*heed.ConfigError].
func (c Constraints) Validate() error {
	var found faults.List
	found.Check(c.Lock.Valid(), "Lock", c.Lock, "must be locked, unlocked or empty")
	found.Check(c.Range.valid(), "Range", c.Range, "must be 0 ≤ Floor ≤ Ceiling ≤ 1")
	found.Check(c.FeedbackWeight == 0 || c.FeedbackWeight >= MinFeedbackWeight && c.FeedbackWeight <= MaxFeedbackWeight,
		"FeedbackWeight", c.FeedbackWeight, "must be in [0.25, 2], or 0 to inherit")
	return found.Err()
}

// over returns the constraints with what they leave open filled in from the next layer.
func (c Constraints) over(next Constraints) Constraints {
	return Constraints{
		Lock:           cmp.Or(c.Lock, next.Lock),
		Range:          cmp.Or(c.Range, next.Range),
		FeedbackWeight: cmp.Or(c.FeedbackWeight, next.FeedbackWeight),
	}
}
