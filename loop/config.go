package loop

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// Config configures an [Agent]. Every field has a default.
type Config struct {
	// DB is a database of SQLite or PostgreSQL in which [New] keeps everything, through
	// [sqlstore.Open]. The handle stays the caller's, who closes it after the last use of the agent.
	DB *sql.DB
	// Keep is how long statements about an answer are accepted. 0 means 30 days. A Store of yours
	// needs a HistoryFor that is as long, or else an arm's credit can't be replaced after that: see
	// [Agent.React]. Limits that it was opened with win over Keep. Raise it if outcomes arrive later.
	Keep time.Duration
	// Store keeps everything in the place of DB. Without both, it is a store in memory, whose content
	// ends with the process.
	Store store.Store
	// RequireStore makes Answer, Prepare and Answered return an error if the store can't be reached.
	// By default they answer by what this process read last: see [Degraded]. Set it if an answer that
	// is not recorded is worse than no answer.
	RequireStore bool
	// Name distinguishes agents that share a store, and names the agent to reviewers. Agents of one
	// name share all that they learn. "" means "loop".
	Name string
	// Instruments names the sources that are no people: CI, a test suite, payments. Their evidence
	// counts in full. All other sources are people. If there are several people, a single one does
	// not decide alone, and all statements without a source count as one person's: see
	// [evidence.Trust]. Name a source here if it reports outcomes that are checked, for example "ci",
	// and choose names that no user can take. Reactions, undos and corrections come from people, so
	// one in the name of an instrument is an error.
	Instruments []string

	// Model answers where no heuristic does and the arm has no model. nil: then Fallbacks
	// answer, or the framework through [Agent.Prepare].
	Model decision.LLM
	// Fallbacks are asked in their order if a model fails. A model with fallbacks after it has half
	// of what is left of Tuning.Decision.Timeout: until its answer, or until the first piece of a
	// streamed answer. Of 30 seconds, 15 stay for the fallbacks.
	Fallbacks []decision.LLM
	// Models are further models by name, for all arms: see [Arm].ModelName. Set them if [Lessons]
	// have arms, because a file can only name a model. An agent without any model, also of an arm,
	// takes any name, because the framework asks its own models.
	Models map[string]decision.LLM
	// System is the system prompt of every request: who the model is, and how it answers. heed adds
	// only what it learned. "" means decision's default, unless the arm sets a text.
	System string
	// Arms are the ways of answering that are learned about: models, prompts, tools, ways of using
	// notes. Without arms, the loop does not choose.
	Arms []Arm
	// Choosing sets how arms are chosen.
	Choosing Choosing
	// Lessons are taught by [New], and again for each new tenant, as by [Agent.Teach]. Their arms are
	// added to Arms, or replace the ones with the same ids. Set them if you know good answers before
	// the first event, for example by [ReadLessons].
	Lessons Lessons

	// Control is the fraction of sessions, in [0, 1], that are answered as without learning: by the
	// default arm of Tuning.Strategy, without heuristics, ways of working and earlier errors. Rules
	// that people approved hold. Without a session, a person's events are drawn together. The arm is
	// not credited with these answers, because the others' prompts have more. Set it, for example to
	// 0.05, to know what learning gains: see [Gain]. Set it to 1 before production, because then heed
	// learns without changing an answer: Plan.Would names the heuristic that would have answered. 0:
	// all answers use what was learned.
	Control float64
	// Budget bounds what [Agent.Prepare] adds to a prompt, and how long that takes.
	Budget Budget

	// Tuning configures the parts.
	Tuning Tuning

	// Redact changes each text before it is stored, to leave out what must not be kept: of events,
	// answers, prompts, tools' errors, outcomes and corrections. It changes neither what the model is
	// sent nor what Answer returns, but an event that is delivered again gets its answer as it was
	// stored. It must be safe for concurrent use. Set it if texts may have secrets. nil changes no
	// text.
	Redact func(string) string
	// Observer is called for what happens in all parts. nil switches it off.
	Observer heed.Observer
	// Testing makes an agent deterministic.
	Testing Testing
}

// Choosing sets how an [Agent] chooses among its arms.
type Choosing struct {
	// Choose returns who chooses among the arms of the learner that heed made, such as a race for the
	// best arm:
	//
	//	func(ctx context.Context, l *strategy.Learner) (loop.Chooser, error) {
	//		return best.New(ctx, best.Config{Learner: l})
	//	}
	//
	// It is called by [New], and for each tenant. nil: the learner draws. The context of a Chooser
	// ends with Budget.Time. Then, and if its error has an llm.Failure of a provider,
	// Tuning.Strategy.Default answers, or Model, and Plan.LeftOut has the arm. A Chooser that returns
	// later is ignored. While 64 such calls have not returned, it is not called. The same limit holds
	// for Similarity and [Arm].Brief.
	Choose func(context.Context, *strategy.Learner) (Chooser, error)
	// ByText has the arm of an event without an Item chosen by what its text is like: the item is the
	// text's cell, which [Agent.Sweep] makes of the events that come. Texts are compared by
	// Tuning.Similarity if that is a [heed.Embedder], and else by their form: see package
	// partition. An embedder that takes more than half of Budget.Time is given up: then the arm is
	// chosen without a cell, and Plan.LeftOut has the item. The same holds if it returns an
	// llm.Failure of a provider, such as llm.Unreachable, which the observer receives. Answer and
	// Prepare return any other error of the embedder. Set it if requests differ in what they are
	// about, and have no Item. The default is false.
	ByText bool
	// ArmsIgnoreSilence stops silence from counting as approval of an arm. Set it if outcomes arrive
	// days later, because by then silence would have counted. By default an answer without any
	// reaction for 30 seconds, or Tuning.Learning's window if that is longer, is an outcome of +0.8
	// with confidence 0.3 for its arm, until something else becomes known. Compared with thumbs, that
	// is a quarter of a thumb. If there are no other reactions, each silence counts as one outcome:
	// see [strategy.Outcome].Confidence. If silence does not count for Tuning.Learning.Strategy, for
	// example because of [learning.BayesianConfig].Weights, it does not count for arms either.
	ArmsIgnoreSilence bool
}

// Tuning configures the parts of an [Agent].
type Tuning struct {
	// Similarity compares an event with heuristics and notes. nil means [heed.Trigrams]. Fit is the
	// least similarity of a heuristic that fits, in (0, 1], and with another Similarity than trigrams
	// of a note, too. 0 means 0.22 for trigrams, and 0.6 for others. Set it for an embedder, because
	// the cosines of related texts differ from one embedder to the next. While its service fails, an
	// event is answered without heuristics and notes: see Choosing.ByText.
	Similarity heed.Similarity
	Fit        float64
	// AnswerFit is the least similarity of a heuristic that answers by itself, in [Fit, 1]. The model
	// is shown a trusted one that is less similar. 0 means Fit. Raise it if a wrong answer is
	// expensive.
	AnswerFit float64
	// Extract are the domains in which the model writes a heuristic from its own answer that was
	// praised, which costs one more call of the model. "*" means all domains, and nil means no
	// domain. Leave out domains in which an answer must follow rules that may change, because a
	// heuristic keeps its text whatever the rules are by then. It needs [Config].Model.
	Extract []string

	// Learning, Decision, Strategy and Feedback are the configurations of the parts, which say when
	// to set a field. Their Store, Now, Observer, Redact, Arms, System, Bare and Trust.Instruments
	// have no effect: they are the agent's. So are the model, the seed and the name if they are not
	// set here. Strategy.Silence must be zero, because the agent counts silence: see
	// Choosing.ArmsIgnoreSilence.
	//
	// Decision.Similarity compares answers with heuristics: see [decision.SameMeaning] for answers in
	// free text. nil means Similarity.
	Learning learning.Config
	Decision decision.Config
	Strategy strategy.Config
	Feedback feedback.Config
	// Approaches are the ways of working that are found in answers to tasks. nil means
	// [patterns.Approaches]. Set it if your tasks need other approaches.
	Approaches []patterns.Approach
}

// Testing makes an [Agent] deterministic. The zero value is for production.
type Testing struct {
	// Now is the clock. nil means time.Now. Set it in tests.
	Now func() time.Time
	// Seed gives the keys of all that is drawn. It is used once, by [New]. nil means random keys. Set
	// it to get the same choices in each run.
	Seed rand.Source
	// NewID makes the ids of events without an ID, and must be safe for concurrent use. nil means
	// random UUIDs.
	NewID func() string
}

// A Budget bounds what [Agent.Prepare] does. The zero value of each field means its default.
type Budget struct {
	// Time is how long [Agent.Prepare] waits for the parts. A part that is not ready is left out. 0
	// means a second. Raise it if a Similarity asks a service.
	Time time.Duration
	// Notes is how many notes a prompt shows. 0 means 3. Raise it if notes are short.
	Notes int

	// runes is how many characters are added to the system prompt: 12,000.
	runes int
}

// An Arm is one way of answering. Tuning.Strategy learns which one works.
type Arm struct {
	// ID names the arm in the store and in reports. Evidence belongs to it, so an arm that means
	// something else needs another ID.
	ID string
	// Weight is its share before anything is learned, relative to the other arms'. All 0 mean equal
	// shares.
	Weight float64
	// Model answers. nil means the model of ModelName in [Config].Models, or [Config].Model where
	// that is empty.
	Model     decision.LLM `json:"-"`
	ModelName string       `json:"model"`
	// System is added to the system prompt. It may be "".
	System string
	// Tools are the names of the tools that may be used, for the framework. nil does not limit tools.
	Tools []string
	// Brief writes the notes that fit into the prompt. nil lists them. An arm without notes returns
	// "". If the error has an llm.Failure of a provider, the event is answered without notes.
	Brief func(ctx context.Context, e Event, notes []Note) (string, error) `json:"-"`
	// ForNotes means that the arm is about notes alone. If all arms are, one is chosen only for an
	// event that a note fits. The default is false.
	ForNotes bool
	// InputPrice and OutputPrice are what a million tokens of the model cost, in the unit of
	// [Outcome].Cost. The arm's outcomes keep an answer's cost, time and tokens: see package
	// strategy/money. Set them if choices should weigh cost. 0: no cost is recorded.
	InputPrice, OutputPrice float64

	asks string // the name of its model: see Agent.nameModels
}

const (
	defaultName  = "loop"
	defaultFit   = 0.22
	lexicalNote  = 0.15 // the least similarity of a note by trigrams: a note may be worded otherwise
	embeddedFit  = 0.6
	defaultRunes = 12_000
	maxText      = 32_000 // characters that the model gets of an event, and of a turn
	defaultNotes = 3
)

// fault returns the first fault of an arm that package strategy does not find, or no field. knows
// reports whether a model of this name is configured; nil accepts any name.
func (a *Arm) fault(knows func(model string) bool) (field string, value any, reason string) {
	priced := func(price float64) bool { return price >= 0 && price <= evidence.MaxWeight }
	switch {
	case !priced(a.InputPrice):
		return "InputPrice", a.InputPrice, "must be in [0, 1e6]"
	case !priced(a.OutputPrice):
		return "OutputPrice", a.OutputPrice, "must be in [0, 1e6]"
	case a.ModelName != "" && a.Model == nil && knows != nil && !knows(a.ModelName):
		return "ModelName", a.ModelName, "must be in Config.Models"
	}
	return "", nil, ""
}

// knows reports whether a model of this name is configured. Without any model, names are the
// framework's.
func (c *Config) knows(model string) bool {
	asks := c.Model != nil || len(c.Models)+len(c.Fallbacks) > 0 ||
		slices.ContainsFunc(slices.Concat(c.Arms, c.Lessons.Arms),
			func(arm Arm) bool { return arm.Model != nil })
	return !asks || c.Models[model] != nil
}

// lexical reports whether the similarity compares words and not meanings.
func (c *Config) lexical() bool {
	_, ok := c.Tuning.Similarity.(heed.Trigrams)
	return ok
}

// noteFit returns the least similarity of a note that fits an event.
func (c *Config) noteFit() float64 {
	if c.lexical() {
		return lexicalNote
	}
	return c.Tuning.Fit
}

// withDefaults returns the configuration with the defaults of fields that are not set. Slices are
// copied, because the host may change its own later.
func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, defaultName)
	if c.Testing.Now == nil {
		c.Testing.Now = time.Now //nolint:forbidigo // the default clock
	}
	if c.Testing.NewID == nil {
		c.Testing.NewID = uuid.NewString
	}
	if c.Tuning.Similarity == nil {
		c.Tuning.Similarity = heed.Trigrams{}
	}
	fit := embeddedFit
	if c.lexical() {
		fit = defaultFit
	}
	c.Tuning.Fit = cmp.Or(c.Tuning.Fit, fit)
	c.Tuning.AnswerFit = cmp.Or(c.Tuning.AnswerFit, c.Tuning.Fit)
	c.Budget.Time = cmp.Or(c.Budget.Time, time.Second)
	c.Budget.runes, c.Budget.Notes = cmp.Or(c.Budget.runes, defaultRunes),
		cmp.Or(c.Budget.Notes, defaultNotes)
	c.Arms, c.Fallbacks = slices.Clone(c.Arms), slices.Clone(c.Fallbacks)
	c.Instruments = slices.Clone(c.Instruments)
	return c
}

// person reports a name that must be a person's and is an instrument's.
func (c *Config) person(field, name string) error {
	if !slices.Contains(c.Instruments, name) {
		return nil
	}
	return &heed.InputError{Field: field, Reason: fmt.Sprintf(
		"must be a person, and %q is an instrument of loop.Config: "+
			"report what it found by Outcome, or choose another name", name)}
}

// kindOf returns what a source is.
func (c *Config) kindOf(source string) answer.SourceKind {
	return answers.KindOf(source, c.Instruments)
}

// validate returns all faults at once, each with its field, so that a host can show them together.
func (c *Config) validate() error {
	var found valid.Faults
	found.Check(evidence.CheckText("", c.Name) == nil, "Name", c.Name,
		"must be valid UTF-8 without NUL, of at most 1024 bytes")
	found.Join(evidence.Trust{Instruments: c.Instruments}.Validate())
	found.Check(c.DB == nil || c.Store == nil, "DB", "set", "must not be set with Store")
	found.Check(c.Keep >= 0, "Keep", c.Keep, "must not be negative")
	fit, answers := c.Tuning.Fit, c.Tuning.AnswerFit
	found.Check(fit > 0 && fit <= 1, "Tuning.Fit", fit, "must be in (0, 1]")
	found.Check(answers >= fit && (answers <= 1 || answers == fit),
		"Tuning.AnswerFit", answers, "must be in [Fit, 1]")
	found.Check(c.Budget.Time > 0, "Budget.Time", c.Budget.Time, "must not be negative")
	found.Check(c.Budget.Notes > 0, "Budget.Notes", c.Budget.Notes, "must not be negative")
	domains := c.Tuning.Extract
	found.Check(len(domains) == 0 || c.Model != nil, "Tuning.Extract", domains,
		"needs Model, which writes the heuristics")
	found.Check(c.Control >= 0 && c.Control <= 1, "Control", c.Control, "must be in [0, 1]")
	for i := range c.Arms {
		field, value, reason := c.Arms[i].fault(c.knows)
		found.Check(field == "", fmt.Sprintf("Arms[%d].%s", i, field), value, reason)
	}
	for i, m := range c.Fallbacks {
		found.Check(m != nil, fmt.Sprintf("Fallbacks[%d]", i), nil, "must not be nil")
	}
	for _, err := range c.Lessons.faults(c.knows) {
		found.Join(named("Lessons", err))
	}
	return found.Err()
}
