package patterns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/store"
)

// Config configures a [Recorder]. Store must be set. Every other field has a default.
type Config struct {
	// Store keeps patterns, outcomes and errors, and what they earned. Recorders of several processes may share it.
	Store store.Store
	// Name tells recorders apart that share a store. The kinds of their records and cells begin with it, as
	// "patterns.pattern". "" means "patterns".
	Name string

	Scoring   Scoring
	Criteria  Criteria
	Maturity  Maturity
	Inversion Inversion

	// Approaches are found in texts by [Recorder.Extract]. nil means [Approaches].
	Approaches []Approach
	// Similar finds at most limit past tasks like this one, the most similar first. nil means those whose descriptions share
	// the most words with it, among the last 2,000 outcomes.
	Similar func(ctx context.Context, task string, limit int) ([]Precedent, error)
	// MaxSimilar is how many past tasks a plan has. 0 means 5.
	MaxSimilar int
	// Size bounds each section of patterns in a plan. 0 means 10 items and 3,000 characters.
	Size SectionSize
	// Warnings adds a section to plans that warns of deprecated patterns.
	Warnings bool
	// Strikes is how many failures in a row strike a task out, at most 100. 0 means 3.
	Strikes int
	// StaleAfter is how long a pattern may have no evidence before [Recorder.Sweep] archives it. 0 means the half-life of
	// [Maturity].
	StaleAfter time.Duration

	// Literal keeps the arithmetic of the learning-systems design as it stands there. Gates are on faded mass, so that a
	// pattern leaves its state with time alone. A harmful outcome weighs less the worse it was. Weights of criteria have
	// neither a prior nor a gate, and counts deprecate a criterion. A neutral outcome is a failure of its patterns. Any
	// feedback validates. There is no rehabilitation. Evidence that is stored already keeps the arithmetic under which it
	// was recorded.
	Literal bool

	// Observer is told what happens. See [heed.Observer].
	Observer heed.Observer
	// Now is the clock, which must agree with that of the store. nil means time.Now.
	Now func() time.Time
	// NewID makes ids. nil means random UUIDs.
	NewID func() string
}

// SpecConfig returns the configuration of the learning-systems design: its own arithmetic. The caller sets Store.
func SpecConfig() Config { return Config{Literal: true} }

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, defaultName)
	c.Scoring = c.Scoring.withDefaults()
	c.Criteria = c.Criteria.withDefaults()
	c.Maturity = c.Maturity.withDefaults()
	c.Inversion = c.Inversion.withDefaults()
	if c.Approaches == nil {
		c.Approaches = Approaches()
	}
	c.Approaches = slices.Clone(c.Approaches)
	for i := range c.Approaches {
		c.Approaches[i].Phrases = slices.Clone(c.Approaches[i].Phrases)
	}
	c.MaxSimilar = cmp.Or(c.MaxSimilar, 5)
	c.Size = c.Size.or(planSize)
	c.Strikes = cmp.Or(c.Strikes, 3)
	c.StaleAfter = cmp.Or(c.StaleAfter, c.Maturity.HalfLife)
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	return c
}

// validate reports all faults of a configuration that has its defaults.
func (c *Config) validate() error {
	var found faults.List
	found.Check(c.Store != nil, "Store", nil, "must be set")
	found.Check(checkText("", c.Name, maxName) == nil, "Name", c.Name, fmt.Sprintf("must be text of at most %d bytes", maxName))
	found.Add("Scoring", c.Scoring.validate())
	found.Add("Criteria", c.Criteria.validate())
	found.Add("Maturity", c.Maturity.validate())
	found.Add("Inversion", c.Inversion.validate())
	named := make(map[PatternID]string)
	for i, a := range c.Approaches {
		found.Add(fmt.Sprintf("Approaches[%d]", i), a.validate())
		id := IDOf(a.Name)
		other, known := named[id]
		found.Check(!known || other == a.Name || id == idPrefix, fmt.Sprintf("Approaches[%d].Name", i), a.Name, "has the id of another one's name: see IDOf")
		named[id] = a.Name
	}
	found.Check(c.MaxSimilar > 0, "MaxSimilar", c.MaxSimilar, "must not be negative")
	found.Check(c.Size.Items > 0, "Size.Items", c.Size.Items, "must not be negative")
	found.Check(c.Size.Chars > 0, "Size.Chars", c.Size.Chars, "must not be negative")
	found.Check(c.Strikes > 0 && c.Strikes <= strikesRead, "Strikes", c.Strikes, fmt.Sprintf("must be in [1, %d], or 0 for the default", strikesRead))
	found.Check(c.StaleAfter > 0, "StaleAfter", c.StaleAfter, "must not be negative")
	return found.Err()
}

const defaultName = "patterns"

// maxName leaves room for the rest of a kind or an id.
const maxName = 256
