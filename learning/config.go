package learning

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/store"
)

// Config configures a [Module]. Store must be set; every other field has a default.
type Config struct {
	// Store keeps heuristics, what waits, and what was learned. To replace a click, it has to hold the heuristic's history
	// back to it, and the record of the click: how long is for the store's configuration to say.
	Store store.Store
	// Strategy interprets what is seen. nil means a [Bayesian] with its defaults.
	Strategy Strategy
	// Name tells modules apart that share a store. It begins the kinds of their cells and records: "learning.heuristic". ""
	// means "learning".
	Name string

	// Initial is the confidence of a heuristic that has no initial one of its own, in (0, 1). 0 means 0.3.
	Initial float64
	// Strength is how many full observations the initial confidence is worth, in [1e-3, 1e6]. 0 means 2.
	Strength float64
	// Bounds are where every confidence is reported to be, whatever constraints say. The zero Range means 0.05 to 0.95.
	Bounds Range
	// System are the constraints where neither the heuristic nor its pack says anything, and Packs those of packs.
	System Constraints
	Packs  map[string]Constraints
	// Diminish is k in 1/(1 + k·n), what explicit feedback is multiplied with when a heuristic was judged the same way n
	// times before. 0: every judgement counts alike.
	Diminish float64
	// HalfLife is the time after which evidence counts half. 0: the one that the store has kept for this module, if any; else
	// it counts for ever. Another one than the store's is a [*heed.SettingsError]: see [Rebuild].
	HalfLife time.Duration
	// Caps limit single persons and silence: see [Guarded]. They make the store keep sources apart. With several limits at
	// once, or a share, one signal can move what others count for, and with it the confidence the other way.
	Caps evidence.Caps
	// BySource makes the store keep sources apart without any cap, so that a person can be expunged at any time, and
	// [Module.Explain] tells channels apart. Like the half-life, it changes what is stored.
	BySource bool

	// Patterns say by which events it shows how answers turned out, the first that fits.
	Expectations []Expectation
	// UndoWithinSession lets an undo take back only what was shown in its session or to its person. Without it, an event
	// whose text is an undo has to read all that waits.
	UndoWithinSession bool
	// ComplaintRetractsSilence lets negative feedback take back the silence of the same answer, or keep it from counting.
	// By default both count, as channels of their own.
	ComplaintRetractsSilence bool
	// DryRun interprets signals and says what they would change, and counts nothing. What waits is kept apart from that of a
	// module that does.
	DryRun bool

	// Now is the clock of calls that are given no time. nil means time.Now. It has to agree with that of the store.
	Now func() time.Time
}

// SpecConfig returns the defaults of the Learning Strategy Interface design where ours differ: it knows no bounds.
func SpecConfig() Config { return Config{Bounds: Range{0, 1}} }

// Guarded returns caps under which no person weighs more than one full observation on a heuristic, and silence no more
// than one and all other approval.
func Guarded() evidence.Caps {
	return evidence.Caps{SourceMass: 1, Silence: []string{ChannelTimeout}, SilenceMass: 1}
}

func (c Config) withDefaults() Config {
	if c.Strategy == nil {
		c.Strategy = &Bayesian{BayesianConfig{}.withDefaults()}
	}
	c.Name = cmp.Or(c.Name, defaultName)
	c.Initial = cmp.Or(c.Initial, 0.3)
	c.Strength = cmp.Or(c.Strength, 2)
	c.Bounds = cmp.Or(c.Bounds, Range{0.05, 0.95})
	c.Packs = maps.Clone(c.Packs)
	c.Caps.Silence = slices.Clone(c.Caps.Silence)
	c.Expectations = slices.Clone(c.Expectations)
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	return c
}

// validate reports all faults of a configuration that has its defaults.
func (c *Config) validate() error {
	var found faults.List
	found.Check(c.Store != nil, "Store", nil, "must be set")
	found.Join(c.validateNumbers())
	found.Check(evidence.CheckText("", c.Name) == nil && len(c.Name) <= maxName, "Name", c.Name, fmt.Sprintf("must be text of at most %d bytes", maxName))
	found.Add("System", c.System.Validate())
	for _, pack := range slices.Sorted(maps.Keys(c.Packs)) {
		found.Add("Packs["+pack+"]", c.Packs[pack].Validate())
	}
	found.Check(c.policy().Validate() == nil, "HalfLife", c.HalfLife, "must be 0 or whole microseconds between a minute and a hundred years")
	found.Add("Caps", c.Caps.Validate())
	checkExpectations(&found, c.Expectations)
	return found.Err()
}

func (c *Config) validateNumbers() error {
	var found faults.List
	found.Check(isConfidence(c.Initial), "Initial", c.Initial, "must be above 0 and below 1")
	found.Check(c.Strength >= 1e-3 && c.Strength <= 1e6, "Strength", c.Strength, "must be in [1e-3, 1e6]")
	found.Check(c.Bounds.valid(), "Bounds", c.Bounds, "must be 0 ≤ Floor ≤ Ceiling ≤ 1")
	found.Check(c.Diminish >= 0 && c.Diminish <= 1e6, "Diminish", c.Diminish, "must be in [0, 1e6]")
	return found.Err()
}

const defaultName = "learning"

// maxName leaves room for what follows the name in a kind.
const maxName = evidence.MaxText - 64

// policy is how the cells of confidences are kept.
func (c *Config) policy() evidence.Policy {
	byOrigin := c.BySource || c.Caps.SourceMass > 0 || c.Caps.SourceShare > 0 || len(c.Caps.Silence) > 0
	return evidence.Policy{HalfLife: c.HalfLife, ByOrigin: byOrigin}
}
