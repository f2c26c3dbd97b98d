package feedback

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/store"
)

// Config configures a [Service]. Store must be set; every other field has a default.
type Config struct {
	// Store keeps everything. Services of several processes may share one: they share feedback, rules, and the settings that
	// are numbers. Where those differ from the store's, New takes over its own and tells the audit log, of a lowered quorum too.
	Store store.Store
	// Similarity says which corrections are alike. nil means [heed.Trigrams]. Of a [heed.Embedder] the latest 10,000 vectors are
	// remembered; it is called for at most 100 texts at once.
	Similarity heed.Similarity
	// Threshold is the similarity from which on texts are alike, in (0, 1]. 0 means 0.4 for [heed.Trigrams] and 0.8 for others.
	// It belongs to Similarity, so the store does not keep it.
	Threshold float64
	// Ceiling is the most that a confidence may be that rests on Similarity, in (0, 1]. 0 means 0.7 for [heed.Trigrams], which
	// compares words only, and 1 for others.
	Ceiling float64
	// Evaluator classifies. nil means Counting{}.
	Evaluator Evaluator
	// Drafter words rules. nil means Representative{}.
	Drafter Drafter

	// High says what it takes to be [GeneralizableHigh].
	High Thresholds
	// Window is how many of an agent's latest decisions a new one is compared with. 0 means 1,000.
	Window int
	// Expedite is the confidence in (0, 1] from which on what is GeneralizableHigh is proposed at once, and not with the next
	// batch. 0 means 0.7, the ceiling of [heed.Trigrams].
	Expedite float64
	// Fresh is how many more corrections it takes to propose again what was rejected or retired; each further rejection
	// doubles it. 0 means 3.
	Fresh int
	// OncePerTask counts what one reviewer says of one task as one occurrence.
	OncePerTask bool
	// TakeChanged takes an approval whose output was changed for an approval with changes. Otherwise it is refused.
	TakeChanged bool
	// Agents are all agents that there are. Empty: any name is an agent.
	Agents []string

	Gate      Gate
	Injecting Injecting
	Measuring Measuring

	// Canonical brings a person's id into the one form in which it is compared, so that two spellings are not two people, or
	// refuses it. It must be deterministic. nil means [CanonicalID].
	Canonical func(id string) (string, error)
	// Authorizer says who may do what. nil lets everybody.
	Authorizer Authorizer
	// Redact is given each summary and comment before anything else is done with them, and returns what may be kept. nil
	// keeps all.
	Redact func(text string) string
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// NewID makes the ids of proposals and audit entries. nil means random UUIDs. It is called by many goroutines at the same
	// time.
	NewID func() string
}

// Gate says what it takes to become a rule.
type Gate struct {
	// Quorum is how many distinct people must approve, none of whom proposed or edited it; from 1 to 10. 0 means 2.
	Quorum int
	// Outsiders is how many of them must not be reviewers of the evidence; from 1 to Quorum. 0 means 1. Where it is Quorum,
	// reviewers of the evidence may not approve at all.
	Outsiders int
	// TTL is how long a proposal waits. 0 means 7 days.
	TTL time.Duration
	// PerProposer, PerAgent and Pending limit how many proposals wait at the same time: of one person (and of the evaluator,
	// as if it were one), for one agent, and in all. 0 means 10, 20 and 200.
	PerProposer, PerAgent, Pending int
}

// Injecting limits what is put into a prompt.
type Injecting struct {
	Rules      int // rules. 0 means 20
	Characters int // characters (runes) of the section, headings and all; at least 200. 0 means 4,000
}

// Measuring says how the effect of rules is measured.
type Measuring struct {
	Before      time.Duration // how far before a rule came into effect the time before reaches. 0 means 30 days
	Stabilise   time.Duration // how long after it nothing is counted. 0 means 7 days
	Review      time.Duration // after how long a rule without an effect is ineffective. 0 means 30 days
	Improvement float64       // the relative drop of the rate, in (0, 1], from which on it is effective. 0 means 0.1
	Floor       int           // how many decisions there must be before and after. 0 means 8
	PerSweep    int           // how many retirements a sweep proposes. 0 means 3
	// Retire makes a sweep retire the rules itself whose retirement it would propose.
	Retire bool
}

// SpecConfig returns the defaults of the Adaptive Feedback Learning design where ours differ: it takes texts to be alike
// from 0.8 on, whatever measures them. Store is for the caller to set.
func SpecConfig() Config { return Config{Threshold: 0.8} }

// component is the name of the settings in a store, and in the audit log where they change.
const component = "feedback"

// component has the settings that are kept in the store: each of a configuration with its defaults, and whether the host has
// given it.
func (c *Config) component(given *Config) settings.Component {
	g, i, m := &c.Gate, &c.Injecting, &c.Measuring
	return settings.Component{Name: component, Fields: []settings.Field{
		setting("gate.quorum", &g.Quorum, given.Gate.Quorum), setting("gate.outsiders", &g.Outsiders, given.Gate.Outsiders),
		setting("gate.ttl", &g.TTL, given.Gate.TTL), setting("gate.per_proposer", &g.PerProposer, given.Gate.PerProposer),
		setting("gate.per_agent", &g.PerAgent, given.Gate.PerAgent), setting("gate.pending", &g.Pending, given.Gate.Pending),
		setting("high.occurrences", &c.High.Occurrences, given.High.Occurrences),
		setting("high.reviewers", &c.High.Reviewers, given.High.Reviewers), setting("window", &c.Window, given.Window),
		setting("expedite", &c.Expedite, given.Expedite), setting("fresh", &c.Fresh, given.Fresh),
		setting("once_per_task", &c.OncePerTask, given.OncePerTask), setting("take_changed", &c.TakeChanged, given.TakeChanged),
		setting("injecting.rules", &i.Rules, given.Injecting.Rules),
		setting("injecting.characters", &i.Characters, given.Injecting.Characters),
		setting("measuring.before", &m.Before, given.Measuring.Before),
		setting("measuring.stabilise", &m.Stabilise, given.Measuring.Stabilise),
		setting("measuring.review", &m.Review, given.Measuring.Review),
		setting("measuring.improvement", &m.Improvement, given.Measuring.Improvement),
		setting("measuring.floor", &m.Floor, given.Measuring.Floor),
		setting("measuring.per_sweep", &m.PerSweep, given.Measuring.PerSweep),
		setting("measuring.retire", &m.Retire, given.Measuring.Retire),
	}}
}

func setting[T int | float64 | bool | time.Duration](name string, value *T, given T) settings.Field {
	var none T
	return settings.Field{Name: name, Value: value, Set: given != none}
}

func (c Config) withDefaults() Config {
	const day = 24 * time.Hour
	if c.Similarity == nil {
		c.Similarity = heed.Trigrams{}
	}
	threshold, ceiling := 0.8, 1.
	if wording(c.Similarity) {
		threshold, ceiling = 0.4, 0.7
	}
	c.Threshold, c.Ceiling = cmp.Or(c.Threshold, threshold), cmp.Or(c.Ceiling, ceiling)
	if c.Evaluator == nil {
		c.Evaluator = Counting{}
	}
	if c.Drafter == nil {
		c.Drafter = Representative{}
	}
	c.High.Occurrences = cmp.Or(c.High.Occurrences, 3)
	c.High.Reviewers = cmp.Or(c.High.Reviewers, 2)
	c.Window = cmp.Or(c.Window, 1000)
	c.Expedite = cmp.Or(c.Expedite, 0.7)
	c.Fresh = cmp.Or(c.Fresh, 3)
	c.Agents = slices.Clone(c.Agents)
	c.Gate.Quorum = cmp.Or(c.Gate.Quorum, 2)
	c.Gate.Outsiders = cmp.Or(c.Gate.Outsiders, 1)
	c.Gate.TTL = cmp.Or(c.Gate.TTL, 7*day)
	c.Gate.PerProposer = cmp.Or(c.Gate.PerProposer, 10)
	c.Gate.PerAgent = cmp.Or(c.Gate.PerAgent, 20)
	c.Gate.Pending = cmp.Or(c.Gate.Pending, 200)
	c.Injecting.Rules = cmp.Or(c.Injecting.Rules, 20)
	c.Injecting.Characters = cmp.Or(c.Injecting.Characters, 4000)
	c.Measuring.Before = cmp.Or(c.Measuring.Before, 30*day)
	c.Measuring.Stabilise = cmp.Or(c.Measuring.Stabilise, 7*day)
	c.Measuring.Review = cmp.Or(c.Measuring.Review, 30*day)
	c.Measuring.Improvement = cmp.Or(c.Measuring.Improvement, 0.1)
	c.Measuring.Floor = cmp.Or(c.Measuring.Floor, 8)
	c.Measuring.PerSweep = cmp.Or(c.Measuring.PerSweep, 3)
	if c.Canonical == nil {
		c.Canonical = CanonicalID
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	return c
}

// validate reports all faults of a configuration that has its defaults.
func (c Config) validate() error {
	var found faults.List
	found.Check(c.Store != nil, "Store", nil, "must be set")
	found.Check(c.Threshold > 0 && c.Threshold <= 1, "Threshold", c.Threshold, "must be in (0, 1], or 0 for the default")
	found.Check(c.Ceiling > 0 && c.Ceiling <= 1, "Ceiling", c.Ceiling, "must be in (0, 1], or 0 for the default")
	found.Check(c.Expedite > 0 && c.Expedite <= 1, "Expedite", c.Expedite, "must be in (0, 1], or 0 for the default")
	for i, agent := range c.Agents {
		found.Check(agent != "" && evidence.CheckText("", agent) == nil, fmt.Sprintf("Agents[%d]", i), agent, "must be text that a store can keep, not empty")
	}
	g := c.Gate
	found.Check(g.Quorum >= 1 && g.Quorum <= 10, "Gate.Quorum", g.Quorum, "must be from 1 to 10, or 0 for the default")
	found.Check(g.Outsiders >= 1 && g.Outsiders <= g.Quorum, "Gate.Outsiders", g.Outsiders, "must be from 1 to Quorum, or 0 for the default")
	found.Check(g.TTL > 0, "Gate.TTL", g.TTL, "must not be negative")
	m := c.Measuring
	for _, n := range []struct {
		field string
		value int
	}{
		{"High.Occurrences", c.High.Occurrences}, {"High.Reviewers", c.High.Reviewers}, {"Window", c.Window}, {"Fresh", c.Fresh},
		{"Gate.PerProposer", g.PerProposer}, {"Gate.PerAgent", g.PerAgent}, {"Gate.Pending", g.Pending},
		{"Injecting.Rules", c.Injecting.Rules}, {"Measuring.Floor", m.Floor}, {"Measuring.PerSweep", m.PerSweep},
	} {
		found.Check(n.value > 0, n.field, n.value, "must not be negative")
	}
	found.Check(c.Injecting.Characters >= 200, "Injecting.Characters", c.Injecting.Characters, "must be at least 200, or 0 for the default")
	found.Check(m.Before > 0, "Measuring.Before", m.Before, "must not be negative")
	found.Check(m.Stabilise > 0, "Measuring.Stabilise", m.Stabilise, "must not be negative")
	found.Check(m.Review >= m.Stabilise, "Measuring.Review", m.Review, "must not be shorter than Stabilise")
	found.Check(m.Improvement > 0 && m.Improvement <= 1, "Measuring.Improvement", m.Improvement, "must be in (0, 1], or 0 for the default")
	return found.Err()
}

// CanonicalID is the default of Config.Canonical: it folds the case of ids of printable ASCII, and refuses those that are
// empty, padded with blanks, longer than [evidence.MaxText] bytes, or have any other character, of which many look alike.
func CanonicalID(id string) (string, error) {
	switch {
	case id == "":
		return "", fmt.Errorf("must not be empty")
	case len(id) > evidence.MaxText:
		return "", fmt.Errorf("is %d bytes long, may be %d", len(id), evidence.MaxText)
	case strings.TrimSpace(id) != id:
		return "", fmt.Errorf("must not begin or end with a blank")
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", fmt.Errorf("must be printable ASCII")
	}
	return strings.ToLower(id), nil
}

// person returns the canonical form of an id, or what speaks against it.
func (s *Service) person(field, id string) (canonical string, err error) {
	err = host.Call("Config.Canonical", func() error {
		canonical, err = s.cfg.Canonical(id)
		return err
	})
	switch {
	case errors.As(err, new(*heed.PanicError)):
		return "", err
	case err != nil:
		return "", invalid(field, err.Error())
	}
	return canonical, checkName(field, canonical)
}
