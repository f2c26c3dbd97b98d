package learning

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Config configures a [Module]. Store must be set; every other field has a default.
type Config struct {
	// Store keeps heuristics, answers and what was learned. A judgement can be replaced only while
	// the store holds the heuristic's history back to it, and the record of the answer. The store's
	// configuration sets how long that is.
	Store store.Store
	// Strategy interprets observations. nil means [NewBayesian] with its defaults. Set one if
	// reactions mean something else in your application.
	Strategy Strategy
	// Name distinguishes modules that share a store. The kinds of their cells and records begin with
	// it: "learning.heuristic" holds what confidences are made of. "" means "learning". Set it if one
	// store serves two applications whose heuristics must not meet.
	Name string
	// Answers is the kind of the records that hold answers. Set it if another package keeps the
	// same answers, so that both use one record of each. "" means Name followed by ".answer".
	Answers string

	// Initial is the confidence of a heuristic that does not set its own, in (0, 1). 0 means 0.3.
	// Raise it for heuristics that people have reviewed.
	Initial float64
	// Packs are the constraints of the heuristics of a pack. A heuristic's own constraints override
	// its pack's. Both override the constraints of the pack "", which apply to every heuristic. nil:
	// no constraints. Set them to lock or bound what a pack brings.
	Packs map[string]Constraints
	// Diminish is k in 1/(1 + k·n). A judgement is multiplied with that if the heuristic was judged
	// the same way n times before, however strongly and however long ago. With 0, every judgement
	// counts alike. Set it if the same judgement is repeated often without new information.
	Diminish float64
	// HalfLife is the time after which evidence counts half. 0 keeps the stored half-life; in a new
	// store evidence does not fade. A value that differs from the stored one is a
	// [*heed.SettingsError] of [New]: see [Rebuild]. Set it if right answers become wrong over time.
	HalfLife time.Duration
	// Trust limits how much each source counts: see [evidence.Trust]. The people are those
	// who have stated something about heuristics of the same domain. While there are at most two,
	// their evidence counts in full. Name in Instruments every source that is not a person, for
	// example CI. The default is no instrument. When a person comes or states more, what others have
	// stated may count for less, so a positive signal may then lower the confidence a little, or a
	// negative one raise it.
	Trust evidence.Trust

	// Expectations describe the messages that show how answers turned out. The first one that matches
	// counts. nil: no expectations. Set them if your events show results, for example that an alarm
	// ended.
	Expectations []Expectation

	// Observer is called for what is counted, for duplicates, sweeps and failures, and when a
	// heuristic does harm. nil switches it off. Set it to write metrics or logs.
	Observer heed.Observer
	// Now is the clock of calls that are given no time. nil means time.Now. It must agree with the
	// store's. Set it in tests.
	Now func() time.Time

	tuning tuning
}

// tuning has the values that a host cannot set. [SpecConfig] sets some, and tests of the package
// reach each rule alone by others.
type tuning struct {
	// Strength is how many full observations the initial confidence is worth. The default of 2 was
	// measured.
	Strength float64
	// Bounds hold every confidence that is reported, whatever the constraints, so that no heuristic
	// becomes certain: 0.05 to 0.95. The design does not bound confidences.
	Bounds bounds
	// NoAgreement switches agreement off, because the design does not have it.
	NoAgreement bool
	// Independent counts implicit signals of an answer together with judgements: silence is approval
	// even after a complaint, as in the design.
	Independent bool
	// Unlimited believes everybody, because the design has no limits on people.
	Unlimited bool
}

// SpecConfig returns the values of the Learning Strategy Interface design where heed's defaults
// differ. An implicit signal of any kind counts 1. Silence counts as well as a complaint. All
// windows are 30 s. A keyword anywhere in a text is an undo of all open answers. Agreement does not
// count, and there are no bounds and no limits on people.
func SpecConfig() Config {
	keywords := strings.Split(specKeywords, ",")
	strategy := &bayesian{spec: true, cfg: BayesianConfig{
		UndoWindow: specWindow, Weights: map[string]float64{ChannelTimeout: 1, ChannelIgnored: 1},
		IsUndo: func(text string) bool {
			text = strings.ToLower(text)
			return slices.ContainsFunc(keywords, func(k string) bool { return strings.Contains(text, k) })
		},
	}.withDefaults()}
	return Config{
		Strategy: strategy, tuning: tuning{
			Bounds: bounds{0, 1}, NoAgreement: true, Independent: true, Unlimited: true,
		}}
}

// The defaults were measured by `go run ./lab lives`.
const (
	defaultStrength = 2
	defaultSilence  = 0.4 // the magnitude: half a click
	defaultIgnore   = 0.4 // half a click
	// A judgement of 1 or -1, and an undo or an outcome.
	defaultJudgement = 0.8
	defaultDeed      = 1
	specWindow       = 30 * time.Second
)

// agreementMass is how many full observations agreement weighs at most; above it, its mean stays.
const agreementMass = 6

// An agreement is what agreement counts. With agreement, a heuristic earns trust before it answers:
// see [Fire].Compared. An answer of the model that people accept counts 0.24 for a heuristic that
// would have given the same answer. If only praise accepts the answer, it counts in proportion to
// the praise's value and weight. Any answer, accepted or not, counts 0.072 against a heuristic that
// would have answered otherwise. Disagreement takes back at most what agreement gave, so a
// heuristic in other words stays where it is. A rejected answer counts against a heuristic that
// agreed: as much as a rejected answer that the heuristic gave, and at most 0.072. Agreement weighs
// at most [agreementMass].
type agreement struct {
	agree, disagree float64
	most            float64 // in all
}

// defaultAgreement was measured by `go run ./lab lives`.
var defaultAgreement = agreement{0.24, 0.072, agreementMass}

const defaultName = "learning"

var defaultBounds = bounds{0.05, 0.95}

func (c Config) withDefaults() Config {
	if c.Strategy == nil {
		c.Strategy = &bayesian{cfg: BayesianConfig{}.withDefaults()}
	}
	c.Name = cmp.Or(c.Name, defaultName)
	c.Initial = cmp.Or(c.Initial, 0.3)
	c.tuning.Strength = cmp.Or(c.tuning.Strength, defaultStrength)
	c.tuning.Bounds = cmp.Or(c.tuning.Bounds, defaultBounds)
	c.Packs = maps.Clone(c.Packs)
	c.Trust.Instruments, c.Trust.Silence = slices.Clone(c.Trust.Instruments),
		slices.Clone(c.Trust.Silence)
	c.Expectations = slices.Clone(c.Expectations)
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that sets no clock
	}
	return c
}

// validate reports all faults of a configuration that has its defaults.
func (c *Config) validate() error {
	var found valid.Faults
	found.Check(c.Store != nil, "Store", nil, "must be set")
	found.Check(isConfidence(c.Initial), "Initial", c.Initial, "must be above 0 and below 1")
	found.Check(isMagnitude(c.Diminish), "Diminish", c.Diminish, notMagnitude)
	const maxName = evidence.MaxText - 64 // leaves room for the rest of a kind
	fits := func(s string) bool { return evidence.CheckText("", s) == nil && len(s) <= maxName }
	must := fmt.Sprintf("must be text of at most %d bytes", maxName)
	found.Check(fits(c.Name), "Name", c.Name, must)
	found.Check(fits(c.Answers), "Answers", c.Answers, must)
	for _, pack := range slices.Sorted(maps.Keys(c.Packs)) {
		found.Add("Packs["+pack+"]", c.Packs[pack].validate())
	}
	found.Check(c.policy().Validate() == nil, "HalfLife", c.HalfLife,
		"must be 0 or whole microseconds between a minute and a hundred years")
	found.Add("Trust", c.Trust.Validate())
	checkExpectations(&found, c.Expectations)
	return found.Err()
}

// isConfidence reports whether x can be an initial confidence. It keeps the shapes of a prior away
// from 0.
func isConfidence(x float64) bool { return x >= 1e-9 && x <= 1-1e-9 }

// policy is how the cells of confidences are kept.
func (c *Config) policy() evidence.Policy {
	return evidence.Policy{HalfLife: c.HalfLife, ByOrigin: true}
}

// kindOf returns what a source is.
func (c *Config) kindOf(source string) answer.SourceKind {
	return answers.KindOf(source, c.Trust.Instruments)
}
