package patterns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/store"
)

// Config configures a [Recorder]. Store must be set; every other field has a default.
type Config struct {
	// Store keeps patterns and outcomes, and what they earned. Recorders of several processes may share it.
	Store store.Store
	// Errors counts the errors of a task where an outcome does not. nil: such an outcome had none.
	Errors *Accumulator
	// Name tells recorders apart that share a store. It begins the kinds of their records and cells: "patterns.pattern".
	// "" means "patterns".
	Name string

	Scoring   Scoring
	Criteria  Criteria
	Maturity  Maturity
	Inversion Inversion

	// Rules are the strategies that [Recorder.Extract] finds in a text. nil means [Strategies].
	Rules []Rule
	// Similar finds past tasks that are like this one, at most limit, the most similar first. nil means those whose
	// descriptions share the most words with it, among the last 2,000 outcomes.
	Similar func(ctx context.Context, task string, limit int) ([]Precedent, error)
	// Plan bounds what [Recorder.PlanContext] returns.
	Plan PlanLimits
	// Strikes is after how many failures on end a task is struck out: at most 100. 0 means 3.
	Strikes int
	// StaleAfter is how long nothing may be heard of a pattern before [Recorder.Sweep] archives it. 0 means the half-life
	// of [Maturity].
	StaleAfter time.Duration

	// Literal keeps the arithmetic of the learning-systems design as it stands there: gates on faded mass, which a pattern
	// leaves with time alone; a harmful outcome that weighs the less the worse it was; weights of criteria without a prior
	// or a gate, and their deprecation by counts; a neutral outcome as a failure of its patterns; any feedback as a
	// validation; and no rehabilitation. Stored evidence has the arithmetic under which it was recorded.
	Literal bool

	// Now is the clock. nil means time.Now. The clock of the store has to agree with it.
	Now func() time.Time
	// NewID makes ids of what has none by nature. nil means random UUIDs.
	NewID func() string
}

// SpecConfig returns the configuration with every default of the learning-systems design where ours differ: its own
// arithmetic. Store is for the caller to set.
func SpecConfig() Config { return Config{Literal: true} }

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, defaultName)
	c.Scoring = c.Scoring.withDefaults()
	c.Criteria = c.Criteria.withDefaults()
	c.Maturity = c.Maturity.withDefaults()
	c.Inversion = c.Inversion.withDefaults()
	if c.Rules == nil {
		c.Rules = Strategies()
	}
	c.Rules = slices.Clone(c.Rules)
	for i := range c.Rules {
		c.Rules[i].Phrases = slices.Clone(c.Rules[i].Phrases)
	}
	c.Plan = c.Plan.withDefaults()
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
	found.Add("Scoring", c.Scoring.Validate())
	found.Add("Criteria", c.Criteria.validate())
	found.Add("Maturity", c.Maturity.validate())
	found.Add("Inversion", c.Inversion.validate())
	named := make(map[PatternID]string)
	for i, rule := range c.Rules {
		found.Add(fmt.Sprintf("Rules[%d]", i), rule.validate())
		id := IDOf(rule.Name)
		other, known := named[id]
		found.Check(!known || other == rule.Name || id == idPrefix, fmt.Sprintf("Rules[%d].Name", i), rule.Name, "has the id of another rule's: see IDOf")
		named[id] = rule.Name
	}
	found.Add("Plan", c.Plan.validate())
	found.Check(c.Strikes > 0 && c.Strikes <= strikesRead, "Strikes", c.Strikes, fmt.Sprintf("must be in [1, %d], or 0 for the default", strikesRead))
	found.Check(c.StaleAfter > 0, "StaleAfter", c.StaleAfter, "must not be negative")
	return found.Err()
}

const defaultName = "patterns"

// maxName leaves room for what follows the name in a kind or an id.
const maxName = 256
