package decision

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// The strategies of this package: see [Config].Strategy.
const (
	heuristicFirst = "heuristic_first"
	alwaysLLM      = "always_llm"
)

// Config configures a [Decider]. Every field has a default.
type Config struct {
	// Strategy is the name of the strategy. With "heuristic_first" a heuristic that is trusted
	// enough answers, else the model. With "always_llm" heuristics are shown to the model and never
	// answer. "" means "heuristic_first".
	Strategy string

	// LLM answers where no heuristic does. nil: there is no model. Set it unless heuristics alone are
	// to answer.
	LLM LLM
	// Store keeps a [Trace] of each answer, in a record of the kind "decision.trace". The default
	// limits of the kind are a day and 100,000 answers. nil: no traces, so [Decider.Feedback] finds
	// no answer.
	Store store.Store
	// Redact changes each text of a trace before it is stored, to leave out what must not be kept. It
	// must be safe for concurrent use. nil leaves texts as they are. What the model is sent and the
	// result stay unchanged. [Decider.Extract] works with the changed texts.
	Redact func(string) string

	// Threshold is the confidence that a heuristic needs to answer, in (0, 1], before bias and
	// urgency. 0 means 0.7. The threshold in force is always in [0.30, 0.95]. Raise it if a wrong
	// answer is expensive, lower it to call the model less.
	Threshold float64
	// UrgencyReduction lowers the threshold of the most urgent event by this much, in [0, 1]. A
	// heuristic needs a confidence of clamp(threshold + bias - urgency·UrgencyReduction, 0.30, 0.95).
	// Set it if urgent events may get a less certain answer.
	UrgencyReduction float64
	// UrgencyTiers decides by the tier of an event ([Result].Tier). The default is false: only the
	// first candidate is looked at. Set it if an urgent event needs any answer, and others have time
	// for the model.
	UrgencyTiers bool

	// Goals are what users want, by domain. The goals of the domain "" hold in every domain, before
	// its own. Goals of a request replace them. nil: no goals. Set them if an answer can be right and
	// still not help.
	Goals map[string][]string
	// System is who the model is and what it must do, at the start of the system prompt. The briefing
	// and the goals follow. "" means an assistant that answers in one or two sentences. Set it to
	// what your model is for.
	System string
	// Bare makes what happened the whole prompt: without heed's words around it, without its source,
	// and with room for 32,000 characters of it. Its lines stay, in a fence if candidates follow or
	// if it reads like their heading. Set it if the event is a prompt already. With the default of
	// false, a prompt has this form. The part of the candidates is there only if some are shown, and
	// the source only if there is one:
	//
	//	Event [<source>]: <2,000 characters of what happened>
	//
	//	Previous responses to similar situations (for context — you may ignore these):
	//	1. Situation: "<condition>" → Response: "<action>"
	//
	//	How should I respond?
	Bare bool

	// Withhold is the probability that a prompt withholds the candidates below the threshold, in [0,
	// 1]. It is drawn for each event, from Seed and the EventID. The model's answer is then compared
	// with them: see [Result].Compared. This is how a heuristic earns its first trust. nil means 1.
	// At 0, all candidates are shown and their agreement is not measured. Lower it if the model needs
	// the candidates to answer well.
	Withhold *float64

	// Prediction asks the model in a second call how probable it is that its answer succeeds: see
	// [Result].Prediction. The default is false. Set it to compare what the model expects with what
	// happens.
	Prediction bool
	// Timeout bounds the wait for the model: answer and prediction together. 0 means 30 seconds.
	// Waiting for a place of MaxInFlight does not count. Lower it if users do not wait that long.
	Timeout time.Duration
	// MaxInFlight is how many calls of the model run at a time. Set it if the provider allows only
	// so many. Further calls wait, each for at most Timeout, and then fail with [ErrBusy]. 0 means
	// no limit. A call that does not return when its context is done is given up, and keeps its
	// place until it returns. While such calls hold all places, or 1,000 without a limit, the model
	// is not called.
	MaxInFlight int

	// MaxTokens bounds an answer of the model. 0 means 1,024. Raise it for a model that thinks aloud
	// or writes long answers.
	MaxTokens int

	// Similarity compares the model's answer with the candidates' actions: see [Result].Compared
	// and Convergence. Texts with a similarity of 0.75 or more count as the same. nil means
	// [heed.Trigrams], which suits short, fixed texts. For free text set a [heed.Embedder] whose
	// cosines fit that, or [SameMeaning].
	Similarity heed.Similarity

	// Now is the clock. nil means time.Now. Set it in tests.
	Now func() time.Time
	// Seed gives the key of the order of candidates and of the draws for events that are due soon. It
	// is used once, by [New]. With the same key a request is always decided alike. nil means a random
	// key. Set it in tests.
	Seed rand.Source
	// NewID makes the ids of answers, and must be safe for concurrent use. nil means random UUIDs.
	NewID func() string
	// Observer is called for each decision ([heed.Decided]) and each failure of a model or a
	// similarity ([heed.Failed]). nil switches it off.
	Observer heed.Observer

	tuning tuning
}

// tuning has the values that a host cannot set. [SpecConfig] sets some, and tests of the package
// reach each rule alone by others.
type tuning struct {
	// MaxCandidates is how many candidates a prompt shows: the first ones, in random order. The
	// default is the design's 3.
	MaxCandidates int
	// NoSimilarity compares no answers, because the design does not.
	NoSimilarity bool
	// Event is the word before what happened: "Event".
	Event string
}

// ceiling bounds what the model predicts about its answer: the design's value. A predicted number
// outside of [0, 1] is taken as ½.
const ceiling = 0.8

// same is the least similarity of two texts that count as the same.
const same = 0.75

const (
	defaultSystem = "You are an assistant.\n\n" +
		"Answer the event in one or two sentences. Say what to do, or that there is nothing to do."
	defaultEvent = "Event"
	question     = "How should I respond?" // ends a prompt
	// predicting asks how probable it is that an answer succeeds. The goals follow it.
	predicting = "Situation: {situation}\nResponse: {response}\n\n" +
		"How probable is it that this response succeeds, and how much information do you have to " +
		"judge that by? Give both as " +
		"numbers from 0 to 1. Answer with JSON only: {\"success\": <number>, \"confidence\": <number>}"
)

// How many characters a prompt shows of what happened, and of an answer. Other texts are cut at
// [prompt.DefaultMax].
const (
	mostText = 2_000
	mostBare = 32_000
)

// The headings of prompts, which are the same for every host. The first and the last are the
// design's.
const (
	goalsHeading   = "Current user goals:"
	successHeading = "Success means to reach these goals:" // where a prompt asks for the probability
	seenHeading    = "Previous responses to similar situations (for context — you may ignore these):"
)

const (
	defaultWithhold = 1.
	defaultTimeout  = 30 * time.Second
	defaultTokens   = 1024
)

// SpecConfig returns the configuration of the Decision Strategy Interface design: a second call for
// the prediction, the design's words around an event, all candidates shown, and no comparison. The
// design does not give the texts of the system prompt and of the prediction; those are heed's.
func SpecConfig() Config {
	return Config{
		Threshold: 0.7, Prediction: true, Withhold: new(float64),
		tuning: tuning{MaxCandidates: 3, NoSimilarity: true, Event: "URGENT event:"}}
}

func (c Config) withDefaults() Config {
	c.Strategy = cmp.Or(c.Strategy, heuristicFirst)
	c.Threshold = cmp.Or(c.Threshold, 0.7)
	c.tuning.MaxCandidates = cmp.Or(c.tuning.MaxCandidates, 3)
	c.tuning.Event = cmp.Or(c.tuning.Event, defaultEvent)
	c.Goals = maps.Clone(c.Goals)
	for domain, goals := range c.Goals {
		c.Goals[domain] = slices.Clone(goals)
	}
	c.System = cmp.Or(c.System, defaultSystem)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.MaxTokens = cmp.Or(c.MaxTokens, defaultTokens)
	withhold := defaultWithhold
	if c.Withhold != nil {
		withhold = *c.Withhold
	}
	c.Withhold = &withhold
	if c.Similarity == nil {
		c.Similarity = heed.Trigrams{}
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock
	}
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	return c
}

// validate reports all faults of a configuration that has its defaults.
func (c Config) validate() error {
	var found valid.Faults
	found.Check(c.Strategy == heuristicFirst || c.Strategy == alwaysLLM, "Strategy", c.Strategy,
		"must be heuristic_first or always_llm")
	found.Check(c.Threshold > 0 && c.Threshold <= 1, "Threshold", c.Threshold,
		"must be in (0, 1], or 0 for the default")
	found.Check(c.UrgencyReduction >= 0 && c.UrgencyReduction <= 1, "UrgencyReduction",
		c.UrgencyReduction, "must be in [0, 1]")
	found.Check(*c.Withhold >= 0 && *c.Withhold <= 1, "Withhold", *c.Withhold, "must be in [0, 1]")
	found.Check(c.Timeout > 0, "Timeout", c.Timeout, "must not be negative")
	found.Check(c.MaxInFlight >= 0, "MaxInFlight", c.MaxInFlight, "must not be negative")
	found.Check(c.MaxTokens > 0, "MaxTokens", c.MaxTokens, "must not be negative")
	s, asks := c.Similarity.(*sameMeaning)
	found.Check(!asks || s.llm != nil, "Similarity", nil, "SameMeaning needs a model")
	return found.Err()
}

// mostText returns how many characters a prompt shows of what happened.
func (c *Config) mostText() int {
	if c.Bare {
		return mostBare
	}
	return mostText
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
