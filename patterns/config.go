package patterns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Config configures a [Recorder]. Store must be set. Every other field has a default.
type Config struct {
	// Store keeps patterns, outcomes and errors, and what they earned. Recorders of several processes
	// may share it. Use the store of the rest of heed, because then an outcome and what the loop
	// makes of it are one commit.
	Store store.Store
	// Name distinguishes recorders that share a store. The kinds of their records and cells begin
	// with it, for example "patterns.pattern". "" means "patterns". Set it if agents that share a
	// store work on different subjects.
	Name string

	// HalfLife is the time after which an observation of a pattern counts half, at least a minute. 0
	// keeps the stored half-life; in a new store it is 90 days. Set it lower where ways of working
	// change quickly. A value that differs from the stored one is a [*heed.SettingsError] of [New]:
	// see [Rebuild].
	HalfLife time.Duration

	// Approaches are found in texts by [Recorder.Extract]. nil means [Approaches]. Set them for work
	// other than programming.
	Approaches []Approach
	// Extract, if set, has the last word in [Recorder.Extract], for instance with a model. found are
	// the patterns that the phrases of Approaches have found. It returns the patterns that the text
	// follows: those, fewer, or others. Set it if texts are free, because phrases find little more
	// than half of what people write. nil: the phrases alone decide.
	Extract func(ctx context.Context, text string, found []PatternID) ([]PatternID, error)
	// Similar finds at most limit past tasks like this one, the most similar first. nil means those
	// of the last 500 outcomes whose descriptions share words with it: rare words count more, and
	// words that join others, such as "the", do not count. Set it to search by meaning, or to search
	// tasks that the recorder never saw.
	Similar func(ctx context.Context, task string, limit int) ([]Precedent, error)

	// Instruments are sources of outcomes and ratings that are believed as they are, such as CI. Of
	// more than two people each counts for at most twice a fair share of what a pattern or a
	// criterion has: see [evidence.Trust]. The default is empty. Name only what no user can pose as.
	Instruments []string

	// Observer is called for what happens, for example when a pattern is inverted. nil switches it
	// off. Set it to be told of ways that stopped working. See [heed.Observer].
	Observer heed.Observer
	// Now is the clock, which must agree with the store's clock. nil means time.Now. Set it in tests.
	Now func() time.Time
	// NewID makes the ids of transitions, errors and audit entries. nil means random UUIDs. Set it in
	// tests that compare ids.
	NewID func() string

	// literal keeps the arithmetic of the learning-systems design as the design has it, and plans
	// warn of deprecated patterns. By default they do not, because a pattern that keeps failing is
	// inverted, and its anti-pattern warns anyway. Evidence that is stored already keeps the
	// arithmetic under which it was recorded.
	literal bool
}

// maxSimilar is how many past tasks a plan has: the design's limit.
const maxSimilar = 5

// SpecConfig returns the configuration of the learning-systems design, with the design's own
// arithmetic; docs/specs.md has the differences. The caller sets Store.
func SpecConfig() Config { return Config{literal: true} }

// withDefaults returns the configuration with its defaults.
func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "patterns")
	c.HalfLife = cmp.Or(c.HalfLife, quarter)
	if c.Approaches == nil {
		c.Approaches = Approaches()
	}
	c.Instruments = slices.Clone(c.Instruments)
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that sets no clock
	}
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	return c
}

// validate reports all faults of a configuration that has its defaults, but not of its approaches:
// see compile.
func (c *Config) validate() error {
	var found valid.Faults
	found.Check(c.Store != nil, "Store", nil, "must be set")
	found.Check(valid.Texts(256, "", c.Name) == nil, "Name", c.Name,
		"must be text of at most 256 bytes")
	found.Join(evidence.Policy{HalfLife: c.HalfLife}.Validate())
	found.Join(evidence.Trust{Instruments: c.Instruments}.Validate())
	return found.Err()
}

// componentOf begins the name of a recorder's settings.
const componentOf = "patterns/"

// component returns the settings that the store keeps, and fills in the default of the half-life. A
// half-life is fixed, because the stored masses were faded with it. The other settings may change
// at any time.
func (c *Config) component() settings.Component {
	own := settings.Component{Name: componentOf + c.Name, Fields: []settings.Field{
		{Name: "maturity.half_life", Value: &c.HalfLife, Set: c.HalfLife != 0, Fixed: true},
		{Name: "instruments", Value: &c.Instruments},
		{Name: "literal", Value: &c.literal},
	}}
	c.HalfLife = cmp.Or(c.HalfLife, quarter)
	return own
}

// Rebuild changes the half-lives of a recorder to the ones in cfg and returns the recorder. It
// makes all evidence again from its history and stores the new settings, in one commit. A half-life
// that cfg leaves open stays. Afterwards [New] takes cfg. A recorder that is open elsewhere must be
// opened again. Actor and reason are for the audit and must be set.
//
// If the store no longer has the whole history, Rebuild returns [evidence.ErrForgotten] and leaves
// the store unchanged. Then [Open] the recorder, [Recorder.Reset] its patterns and criteria, and
// call Rebuild after that.
func Rebuild(ctx context.Context, cfg Config, actor, reason string) (*Recorder, error) {
	by := By{actor, reason}
	if err := by.validate(); err != nil {
		return nil, failed("rebuild", err)
	}
	var own settings.Component
	r, err := open(ctx, cfg, func(st store.Store, _ time.Time, c settings.Component) error {
		own = c
		halfLife := settings.Component{Name: c.Name, Fields: c.Fields[:1]}
		if cfg.HalfLife != 0 {
			return nil
		}
		if err := settings.Adopt(ctx, st, halfLife); !errors.Is(err, heed.ErrNotFound) {
			return err
		}
		return nil // a new store has no settings
	})
	if err == nil {
		err = own.Rebuild(ctx, r.cfg.Store, store.AuditEntry{
			At: r.cfg.Now(), Actor: actor, Action: r.cfg.Name + ".rebuild", Subject: r.cfg.Name,
			Reason: reason, Details: map[string]string{"maturity.half_life": r.cfg.HalfLife.String()},
		}, r.policies)
	}
	if err != nil {
		return nil, failed("rebuild", err)
	}
	return New(ctx, cfg)
}
