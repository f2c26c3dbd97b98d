package strategy

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Config configures a [Learner]. Store and Arms must be set. Every other field has a default.
type Config struct {
	// Store keeps what is learned, and the records of choices. Learners of several processes may
	// share one.
	Store store.Store
	// Arms are what is chosen among, in the order in which they are drawn. Of equal draws the
	// earlier arm wins.
	Arms []Arm
	// Name distinguishes learners that share a store. The kinds of their cells begin with it:
	// "strategy.arm". "" means "strategy".
	Name string
	// Answers is the kind of the records that have the learner's choices, an [answer.Answer] each.
	// Package loop sets it to the kind of the agent's answers. "" means Name with ".answer". With
	// another kind, choices do not expire, because the host decides what silence about its answers is
	// worth.
	Answers string
	// Pooling sets how much the items of a segment share. nil means TwoLevel{}. Set Alone{} if items
	// have little in common.
	Pooling Pooling
	// Prior is the belief about an arm of average weight before any evidence: see [Arm]. Shares of
	// first choices are exactly the weights if Prior.Beta is 1. Both shapes are in [1e-3, 1e6]. The
	// zero Prior means Beta(1, 1). Set a pessimistic one if false accounts are likely.
	Prior evidence.Beta
	// Exploration adds to the draws of arms with few outcomes. The zero value means no bonus. Set it
	// if early outcomes may be false.
	Exploration Exploration
	// HalfLife is the time after which an outcome counts half. 0 keeps the stored half-life; in a new
	// store outcomes do not fade. A value that differs from the stored one is a [*heed.SettingsError]
	// of [New]: see [Rebuild]. Set it if arms become better or worse slowly.
	HalfLife time.Duration
	// Trust limits how much each source counts: see [evidence.Trust]. By default no source is an
	// instrument, and no person decides where others speak. The store keeps sources apart, so that
	// each can be expunged at any time. If the pooling is a [Copy], the sessions of an item
	// are counted without a source, and so they stay.
	Trust evidence.Trust
	// MinConfidence is the least confidence of an outcome that counts, in (0, 1]. 0 means 0.3. Lower
	// it to count weaker signals.
	MinConfidence float64
	// Reward makes of an outcome the value that is learned, in [-1, 1]: for example from its Value,
	// Cost and Latency. Records keep the Value. nil means the Value. It must be safe for concurrent
	// use. Package money has one with prices.
	Reward func(Outcome) float64
	// Disabled chooses the default arm always, and does not learn: outcomes are [Dropped]. Set it to
	// compare with no learning. The default is false.
	Disabled bool
	// Default is the arm that is chosen if no arm can be drawn, because the store can't be read or
	// the learner is disabled. "" means the arm with the greatest weight, and of equals the earliest.
	// Set it to the arm that is safe.
	Default ArmID
	// Cache is how choices are remembered within a session.
	Cache Cache
	// Unrecorded keeps no records of choices. By default each choice is recorded. Then an outcome in
	// another process or after a restart finds it ([Learner.Find]), a session's choice holds across
	// restarts and processes, and choices are listed with what came of them ([Learner.History]). A
	// record costs a commit at each [Learner.Select] that makes a new choice, and about a kilobyte
	// for 30 days, unless the store is configured otherwise for the kind Answers. Set it if outcomes
	// come at once and a commit for each choice is too slow.
	Unrecorded bool
	// Silence sets what becomes of choices whose outcome never comes. It needs records of the default
	// kind, and calls of [Learner.Sweep]. Set it if most outcomes never come.
	Silence Silence
	// Shared has the learners of all tenants of a store begin a segment with what its arms have shown
	// for the other tenants, as soon as five have evidence of an arm. How far a tenant goes its own
	// way is learned. A tenant adds the sums of its arms, and no text: see [store.Tenant]. Set it if
	// tenants have similar tasks and may learn from each other's sums. A Store that wraps the view of
	// a tenant needs the view's method Root() (store.Store, string).
	Shared bool
	// IgnoreChanges keeps all evidence when an arm's rewards have changed. By default what came
	// before a change no longer counts for any arm of the item, or of the segment if several items
	// changed, so all arms are tried again. The store's audit has the change. A change must show
	// without each single person, within Trust, and needs the store's history. A process tests its
	// own last 1,024 outcomes of a segment. It finds changes of arms that are in use: see HalfLife
	// for others. Set it if all arms become better and worse together, for example by the time of
	// day.
	IgnoreChanges bool
	// Topic, if it is not empty, puts every [LearnerEvent] into the store's outbox under this topic,
	// in the same commit as the change. "heed.strategy" is a good topic. [stream.Relay] sends them.
	// With Unrecorded, a choice of [Learner.Select] has none, because it has no commit.
	Topic string
	// Refresh is after how long a segment in memory is read again from the store. Until then
	// outcomes, resets and ends of sessions in other processes may not be seen. An item's own
	// outcomes are always seen at once. 0 means 10 minutes, or a sixteenth of the half-life if that
	// is less. Of a large segment a sample of the items is read. Lower it if processes must see each
	// other's outcomes sooner. Each reading of a segment costs a query.
	Refresh time.Duration

	// Observer is called for choices, outcomes, sweeps, restarts and hidden failures. nil switches it
	// off.
	Observer heed.Observer
	// Now is the clock. nil means time.Now. The store's clock must agree with it: a store refuses
	// outcomes that lie ahead of the store's clock. Set it in tests.
	Now func() time.Time
	// Seed gives the key for the randomness of choices. Only New uses it. With the same key, a
	// session's choice for an item is the same whatever else was chosen before, on any goroutine. nil
	// means a random key. Set it in tests.
	Seed rand.Source
	// NewID makes the ids of choices. nil means random UUIDs. Many goroutines call it at the same
	// time.
	NewID func() ChoiceID

	change changeTest // tests have a more eager one
}

// Exploration is a bonus for arms with few outcomes. Thompson sampling explores by itself, so the
// default is none.
type Exploration struct {
	// Bonus is added to the draw of an arm with few outcomes, in [0, 1]. The default is 0. Set it if
	// early outcomes may be false.
	Bonus float64
	// MinSamples is how many outcomes, within Config.Trust, end the bonus of an arm in its segment. 0
	// means 5 if there is a bonus.
	MinSamples int
}

// Cache bounds the memory of choices. A choice is remembered until its session ends, its time is
// over, or the cache is full of choices that were used since.
type Cache struct {
	// TTL is how long a session keeps its choice. 0 means an hour. Raise it for longer conversations.
	TTL time.Duration
	// Size is how many choices are kept. 0 means 10,000. Raise it if more sessions are open at a
	// time.
	Size int
}

// Silence sets what becomes of choices whose outcome never comes. By default they expire after a
// day and do not count. As evidence against the arm and its parameters' values, silence keeps an
// arm that never earns an outcome from looking as good as on its first day. A late outcome takes
// the place of the silence, as long as the store's history still has the silence.
type Silence struct {
	// After is how long a choice waits for its outcome before it expires. 0 means 24 hours. Set it
	// above the usual delay.
	After time.Duration
	// Confidence is the confidence of silence as an outcome of the value -1, in (0, 1]. It may be
	// below MinConfidence. 0: silence does not count. Set it if an arm that fails makes no report.
	Confidence float64
}

// SpecConfig returns the defaults of the Adaptive Strategies design where heed's differ: its
// pooling and its exploration bonus. The caller sets Store and Arms.
func SpecConfig() Config {
	return Config{
		Pooling:     Copy{Sessions: 20, MinConfidence: 0.6},
		Exploration: Exploration{Bonus: 0.1, MinSamples: 5},
	}
}

func (c Config) withDefaults() Config {
	c.Arms = slices.Clone(c.Arms)
	for i := range c.Arms {
		c.Arms[i].Parameters = slices.Clone(c.Arms[i].Parameters)
		for j := range c.Arms[i].Parameters {
			c.Arms[i].Parameters[j].Values = slices.Clone(c.Arms[i].Parameters[j].Values)
		}
	}
	c.Name = cmp.Or(c.Name, defaultName)
	c.Answers = cmp.Or(c.Answers, answersKind(c.Name))
	if c.Pooling == nil {
		c.Pooling = TwoLevel{}
	}
	c.Prior = cmp.Or(c.Prior, evidence.Beta{Alpha: 1, Beta: 1})
	if c.Exploration.Bonus > 0 {
		c.Exploration.MinSamples = cmp.Or(c.Exploration.MinSamples, 5)
	}
	c.Trust.Instruments, c.Trust.Silence = slices.Clone(c.Trust.Instruments),
		slices.Clone(c.Trust.Silence)
	c.MinConfidence = cmp.Or(c.MinConfidence, 0.3)
	if c.Default == "" {
		var most float64
		for _, arm := range c.Arms {
			if c.Default == "" || arm.Weight > most {
				c.Default, most = arm.ID, arm.Weight
			}
		}
	}
	c.Cache.TTL = cmp.Or(c.Cache.TTL, time.Hour)
	c.Cache.Size = cmp.Or(c.Cache.Size, 10_000)
	if c.expires() {
		c.Silence.After = cmp.Or(c.Silence.After, waits)
	}
	c.change = c.change.withDefaults()
	c.Refresh = cmp.Or(c.Refresh, c.refresh())
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that sets no clock
	}
	if c.NewID == nil {
		c.NewID = uuid.New
	}
	return c
}

// waits is how long a choice waits for its outcome by default.
const waits = 24 * time.Hour

// expires reports whether choices expire. A host that records them in answers decides by itself.
func (c *Config) expires() bool { return !c.Unrecorded && c.Answers == answersKind(c.Name) }

func (c *Config) refresh() time.Duration {
	if c.HalfLife > 0 {
		return min(10*time.Minute, c.HalfLife/16)
	}
	return 10 * time.Minute
}

// validate reports all faults of a configuration that has its defaults.
func (c Config) validate() error {
	var found valid.Faults
	found.Check(c.Store != nil, "Store", nil, "must be set")
	found.Check(evidence.CheckText("", c.Name) == nil && len(c.Name) <= maxName, "Name", c.Name,
		fmt.Sprintf("must be text of at most %d bytes", maxName))
	found.Check(c.Answers == answersKind(c.Name) || evidence.CheckText("", c.Answers) == nil,
		"Answers", c.Answers, "must be text that a store can keep")
	found.Check(c.Prior.Alpha >= 1e-3 && c.Prior.Alpha <= 1e6 && c.Prior.Beta >= 1e-3 &&
		c.Prior.Beta <= 1e6, "Prior", c.Prior, "must have shapes in [1e-3, 1e6]")
	found.Check(c.Exploration.Bonus >= 0 && c.Exploration.Bonus <= 1, "Exploration.Bonus",
		c.Exploration.Bonus, "must be in [0, 1]")
	found.Check(c.Exploration.MinSamples >= 0, "Exploration.MinSamples", c.Exploration.MinSamples,
		"must not be negative")
	found.Check(c.Exploration.Bonus > 0 || c.Exploration.MinSamples == 0, "Exploration.MinSamples",
		c.Exploration.MinSamples, "needs a bonus")
	found.Check(c.policy().Validate() == nil, "HalfLife", c.HalfLife,
		"must be 0 or whole microseconds between a minute and a hundred years")
	found.Add("Trust", c.Trust.Validate())
	found.Check(c.MinConfidence > 0 && c.MinConfidence <= 1, "MinConfidence", c.MinConfidence,
		"must be in (0, 1], or 0 for the default")
	found.Check(len(c.Arms) == 0 || slices.ContainsFunc(c.Arms,
		func(a Arm) bool { return a.ID == c.Default }), "Default", c.Default, "must be one of the arms")
	found.Check(c.Cache.TTL > 0, "Cache.TTL", c.Cache.TTL, "must not be negative")
	found.Check(c.Cache.Size > 0, "Cache.Size", c.Cache.Size, "must not be negative")
	found.Check(c.expires() || c.Silence == Silence{}, "Silence", c.Silence,
		"needs choices to be recorded, in the default kind of answers")
	found.Check(c.Silence.After >= 0, "Silence.After", c.Silence.After, "must not be negative")
	found.Check(c.Silence.Confidence >= 0 && c.Silence.Confidence <= 1, "Silence.Confidence",
		c.Silence.Confidence, "must be in (0, 1], or 0 for no evidence")
	found.Check(evidence.CheckText("", c.Topic) == nil, "Topic", c.Topic,
		"must be text that a store can keep")
	found.Check(c.Refresh > 0, "Refresh", c.Refresh, "must not be negative")
	if p, ok := c.Pooling.(Copy); ok {
		found.Add("Pooling", p.validate())
	}
	found.Join(validateArms(c.Arms))
	return found.Err()
}

const defaultName = "strategy"

// maxName leaves room for what follows the name in a kind.
const maxName = evidence.MaxText - 64

// kept returns the policies by which the learner's cells are kept, by kind.
func (c *Config) kept(kinds kinds) map[string]evidence.Policy {
	return map[string]evidence.Policy{
		kinds.arm: c.policy(), kinds.parameter: c.policy(), kinds.given: {HalfLife: c.HalfLife},
	}
}

// policy is how the learner's cells are kept.
func (c *Config) policy() evidence.Policy {
	return evidence.Policy{HalfLife: c.HalfLife, ByOrigin: true}
}
