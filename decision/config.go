package decision

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/store"
)

// Config configures [HeuristicFirst] and [AlwaysLLM]. Every field has a default.
type Config struct {
	// LLM answers where no heuristic does. nil: there is no model.
	LLM LLM
	// Store keeps how each answer came about (a [Trace], in a record of the kind "decision.trace"), for a day and 100,000
	// answers unless it is configured otherwise, so that feedback finds it. nil: nothing is kept.
	Store store.Store
	// HashTexts keeps, of what happened and what was answered, a hash in place of the text.
	HashTexts bool

	// Threshold is the confidence that a heuristic needs to answer, in (0, 1], before bias and urgency, and within
	// [MinThreshold, MaxThreshold] whatever it says. 0 means 0.7. AlwaysLLM has no use for it.
	Threshold float64
	// Urgency says what the urgency of an event changes.
	Urgency Urgency

	// MaxCandidates is how many candidates the prompt shows, the first ones in random order, at most [MaxCandidates].
	// 0 means 3. NoCandidates shows none.
	MaxCandidates int
	NoCandidates  bool
	// Goals are what users want, by domain. Those of the domain "" hold in every domain, before its own. A request that
	// brings goals has no others.
	Goals map[string][]string
	// Prompts are the texts around what is shown to the model.
	Prompts Prompts
	// MaxText is how many characters of what happened, and of an answer, a prompt shows. 0 means 2,000. Other texts have
	// up to [prompt.DefaultMax].
	MaxText int

	// Ceiling is the most that is believed of what the model predicts of its own answer, in (0, 1]. 0 means 0.8.
	Ceiling float64
	// ClampPrediction brings predicted numbers that are not in [0, 1] to its nearer end, where otherwise a ½ stands for
	// them.
	ClampPrediction bool

	// Timeout bounds what a decision waits for the model: for its answer and its prediction together. 0 means 30 seconds.
	Timeout time.Duration
	// MaxInFlight is how many calls of the model run at a time; further ones wait. A call that does not return when its
	// context is done is given up, and keeps its place until it returns. While such calls hold all places, the model is
	// not called. 0 means 4.
	MaxInFlight int
	// MaxTokens bounds an answer of the model. 0 means 1,024.
	MaxTokens int
	// Temperature is how freely the model draws its answers, in [0, 2]. nil leaves it to the model.
	Temperature *float64

	// Converge says how it is found out that the model said what a candidate says.
	Converge Converge

	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Source gives the key from which the order of candidates is derived, and the draws of [Soon]; it is used once, when
	// the strategy is made. With the same key, a request is always decided alike. nil means a random key.
	Source rand.Source
	// NewID makes the ids of answers. nil means random UUIDs. It is called by many goroutines at the same time.
	NewID func() string
}

// Converge compares what the model said with what the candidates say.
type Converge struct {
	// Similarity compares. nil: nothing is compared.
	Similarity heed.Similarity
	// Threshold is from what similarity on two texts say the same, in (0, 1]. 0 means 0.75. What it should be depends on
	// what compares.
	Threshold float64
	// Timeout is how long a decision waits for the comparison, at most. 0 means a second.
	Timeout time.Duration
}

// Prompts are the texts of the prompts. "" means the default of a field.
//
// What the model is asked has this form, with the candidates' part only where candidates are shown:
//
//	<Event> [<source>]: <what happened>
//
//	<Candidates>
//	1. Situation: "<condition>" → Response: "<action>"
//
//	<Question>
type Prompts struct {
	// System is the system prompt. Goals follow it, under GoalsHeading.
	System       string
	GoalsHeading string
	Event        string
	Candidates   string
	Question     string
	// Prediction asks what is to be expected of an answer. Its {situation} and {response} are replaced by JSON strings, and
	// must be there. Goals follow it, under SuccessHeading.
	Prediction     string
	SuccessHeading string
}

// DefaultPrompts returns the prompts that stand where a configuration has none.
func DefaultPrompts() Prompts {
	return Prompts{
		System: "You are an assistant that watches what happens around its user. Answer each event in one or two sentences: say " +
			"that you have seen it, and what to do if there is something useful to do. Threats come first; be brief about what is routine.",
		GoalsHeading: "Current user goals:",
		Event:        "URGENT event:",
		Candidates:   "Previous responses to similar situations (for context — you may ignore these):",
		Question:     "How should I respond?",
		Prediction: "Situation: {situation}\nResponse: {response}\n\n" +
			"What could go wrong with this response? Then say how probable it is that it succeeds, and how much information you have " +
			"to judge that by, both from 0 to 1. Answer with JSON only: {\"success\": <number>, \"confidence\": <number>}",
		SuccessHeading: "Success means to reach these goals:",
	}
}

// SpecConfig returns the defaults of the Decision Strategy Interface design where ours differ. They do not: it is the zero
// Config.
func SpecConfig() Config { return Config{} }

func (p Prompts) withDefaults() Prompts {
	d := DefaultPrompts()
	return Prompts{
		System: cmp.Or(p.System, d.System), GoalsHeading: cmp.Or(p.GoalsHeading, d.GoalsHeading),
		Event: cmp.Or(p.Event, d.Event), Candidates: cmp.Or(p.Candidates, d.Candidates), Question: cmp.Or(p.Question, d.Question),
		Prediction: cmp.Or(p.Prediction, d.Prediction), SuccessHeading: cmp.Or(p.SuccessHeading, d.SuccessHeading),
	}
}

func (c Config) withDefaults() Config {
	c.Threshold = cmp.Or(c.Threshold, 0.7)
	c.Urgency = c.Urgency.withDefaults()
	c.Urgency.Salience = slices.Clone(c.Urgency.Salience)
	c.MaxCandidates = cmp.Or(c.MaxCandidates, 3)
	c.Goals = maps.Clone(c.Goals)
	for domain, goals := range c.Goals {
		c.Goals[domain] = slices.Clone(goals)
	}
	c.Prompts = c.Prompts.withDefaults()
	c.MaxText = cmp.Or(c.MaxText, 2000)
	c.Ceiling = cmp.Or(c.Ceiling, 0.8)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 4)
	c.MaxTokens = cmp.Or(c.MaxTokens, 1024)
	if c.Temperature != nil {
		t := *c.Temperature
		c.Temperature = &t
	}
	c.Converge.Threshold = cmp.Or(c.Converge.Threshold, 0.75)
	c.Converge.Timeout = cmp.Or(c.Converge.Timeout, time.Second)
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
	found.Check(c.Threshold > 0 && c.Threshold <= 1, "Threshold", c.Threshold, "must be in (0, 1], or 0 for the default")
	found.Add("Urgency", c.Urgency.validate())
	found.Check(c.MaxCandidates > 0 && c.MaxCandidates <= MaxCandidates, "MaxCandidates", c.MaxCandidates, fmt.Sprintf("must be 1 to %d, or 0 for the default", MaxCandidates))
	found.Check(strings.Contains(c.Prompts.Prediction, "{situation}") && strings.Contains(c.Prompts.Prediction, "{response}"), "Prompts.Prediction", c.Prompts.Prediction, "must have {situation} and {response}")
	found.Check(c.MaxText > 0, "MaxText", c.MaxText, "must not be negative")
	found.Check(c.Ceiling > 0 && c.Ceiling <= 1, "Ceiling", c.Ceiling, "must be in (0, 1], or 0 for the default")
	found.Check(c.Timeout > 0, "Timeout", c.Timeout, "must not be negative")
	found.Check(c.MaxInFlight > 0, "MaxInFlight", c.MaxInFlight, "must not be negative")
	found.Check(c.MaxTokens > 0, "MaxTokens", c.MaxTokens, "must not be negative")
	found.Check(c.Temperature == nil || *c.Temperature >= 0 && *c.Temperature <= 2, "Temperature", c.Temperature, "must be in [0, 2]")
	found.Check(c.Converge.Threshold > 0 && c.Converge.Threshold <= 1, "Converge.Threshold", c.Converge.Threshold, "must be in (0, 1], or 0 for the default")
	found.Check(c.Converge.Timeout > 0, "Converge.Timeout", c.Converge.Timeout, "must not be negative")
	return found.Err()
}

// goals returns the goals that hold for a request.
func (c *Config) goals(r *Request) []string {
	switch {
	case len(r.Goals) > 0:
		return r.Goals
	case r.Domain == "":
		return c.Goals[""]
	default:
		return slices.Concat(c.Goals[""], c.Goals[r.Domain])
	}
}
