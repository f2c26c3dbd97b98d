package loop

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/patterns"
)

// An Event wants an answer.
type Event struct {
	// ID names the event, and its answer. An event that was answered before gets the same answer. ""
	// means a new one. Deliveries of one event that run at the same time each ask the model, and
	// those that it answers get the answer that is stored first. It has at most 900 bytes, and fewer
	// where the agent's name is longer than 60.
	ID string
	// Text is what happened or was asked. The model gets it with its lines, up to 32,000 characters.
	// Plan.LeftOut reports a longer text. Its first 8 KiB are compared with heuristics, notes and
	// tasks. [Agent.Answer] refuses a blank text. [Agent.Prepare] does not, because a framework may
	// send the model more than a text, for example a picture.
	Text string
	// Session is the conversation, Person who is answered, and Stream the place where the next
	// message shows whether the answer was passed over. All may be empty.
	Session, Person, Stream string
	// Domain is what the event is about. Heuristics and notes of other domains are not looked at.
	Domain string
	// Task names a task that the answer plans or carries out, for [Agent.Outcome]. The prompt then
	// lists what went well and badly in tasks like it, and which errors tools gave in this one. ""
	// means no task. It has at most 512 bytes.
	Task string
	// Item is what an arm is chosen for, such as a customer or a kind of ticket. "" means the text's
	// cell if [Choosing].ByText is set, and else the note that fits best. Context is the kind
	// of situation, such as "interactive".
	Item, Context string
	// Vector is what the event is like, for example an embedding of its text, for the choice of an
	// arm: see [strategy.Query].Vector. Set it if the best arm differs among events of one Item, or
	// if there is no Item. nil: arms are chosen without it.
	Vector []float32 `json:"-"`
	// History is the conversation so far, the oldest first. [Agent.Answer] puts it before the event's
	// text. A turn has at most 32,000 characters.
	History []Turn
	// OnChunk is called by [Agent.Answer] with each piece of the answer as it comes, if the model is
	// a [Streamer], and else with the whole. Thoughts are not in the pieces. restart reports that the
	// pieces before are no part of the answer, which begins with this one: they were thoughts, or
	// their model broke off and a fallback answers, or another delivery of the event got the answer
	// first. If every model broke off, the pieces were no answer: then Answer.Text is empty. OnChunk
	// is called before Answer returns, and by one goroutine at a time. Answer waits for it, so it
	// must return when its context ends, at the latest after Tuning.Decision.Timeout. One that does
	// not holds Answer.
	OnChunk func(ctx context.Context, text string, restart bool) `json:"-"`
	// AskModel lets the model answer, and no heuristic, for example because the answer must be JSON.
	// The prompt shows the heuristics that fit, and does not compare them with the answer.
	AskModel bool
	// At is when it happened. The zero time means now.
	At time.Time
}

// A Turn is one message of a conversation.
type Turn struct {
	// Role is "user" or "assistant".
	Role string `json:"role"`
	Text string `json:"text"`
}

// An Answer is what the agent answered.
type Answer struct {
	// ID is the event's. Statements name an answer by it. An answer without a text is not recorded,
	// so that its id is [ErrNoAnswer].
	ID string
	// Text is empty if there is no answer: see Result.Reason.
	Text string
	// Plan is how the event was answered, for example its arm and what the prompt contained.
	Plan Plan
	// Violations are the rules that the answer breaks, or that could not be checked: see
	// [feedback.Check]. The answer is kept all the same. The caller decides whether to show it.
	Violations []feedback.Violation
	// Result describes how the decision came about.
	Result decision.Result
	// Degraded is what the answer lacks because the store could not be reached. nil if it lacks no
	// part.
	Degraded *Degraded
}

// A Reaction is what a person makes of an answer. Of the reactions of one person, channel and
// target the latest holds.
type Reaction struct {
	// Person is who reacts. All reactions without a name are one person's.
	Person string
	// Channel is how the reaction is known. "" means "user_explicit". Use another name for what is
	// less sure than a thumb, for example "copied", because channels can be weighed. The names
	// "outcome", "agreement", "silence" and those with "implicit_" are heed's. Use few names, because
	// an arm of an item keeps 16 channels of a person apart. Later channels count together, as
	// "heed:others".
	Channel string
	// Target is the part of the answer that is meant. "" means all of it.
	Target answer.Target
	// Value is how good the answer was, in [-1, 1]. 0 withdraws the reaction.
	Value float64
	// Weight multiplies what the reaction counts, in [0, 10]. 0 means 1. People share what an answer
	// is worth for its arm by their weights. Set it by what the host knows of a person or a channel,
	// and never by what a user sends.
	Weight float64
	// At is when the person reacted. The zero time means now, or up to [evidence.MaxSkew] later if
	// the record of the answer has a later statement: the last reaction to arrive holds, although
	// clocks differ.
	At time.Time
}

// A ToolResult is a tool's call, or its result, while an event was answered.
type ToolResult struct {
	// ID names the call. A result that is reported again under one id counts once. "" derives the id
	// from the content.
	ID string
	// Name is the tool's.
	Name string
	// Before reports that the tool was not called yet: Name and Input are checked against the rules,
	// and the other fields do not count.
	Before bool
	// Input is the arguments, for rules that check them.
	Input string
	// Text is what the tool returned. It is not kept.
	Text string
	// Err is why the tool failed. nil if it did not.
	Err error
	// Task is the event's, for a result that comes before the answer: see Plan.Event. "" means the
	// task of the answer, and without an answer the event.
	Task string
	At   time.Time
}

// An Outcome is how an answer turned out, in numbers. For arms the latest one of an answer holds,
// and for trust the latest one of each source.
type Outcome struct {
	// Success reports whether it worked, and Reward how good it was, in [-1, 1]. One of them must be
	// set, or Withdraw. A Reward of nil means 1 for a success and -1 for a failure. With both, ways
	// of working learn from Success alone, and arms and trust from Reward alone: for example, a
	// change that worked and was not wanted is a success with a Reward of -1.
	Success *bool
	Reward  *float64
	// Withdraw takes back the outcome that this Source reported before, for example because a ticket
	// is opened again. Success, Reward and Cost must not be set then. Ways of working keep it. An
	// outcome that is older by At does not come back.
	Withdraw bool
	// Errors and Retries are how many there were, and Duration how long it took. Failure names in a
	// word how it failed.
	Errors, Retries int
	Duration        time.Duration
	Failure         string
	// Ways are the ways of working that were followed: see [patterns.IDOf]. nil means an
	// earlier outcome's, or else those that the text mentions. They count if the event has a Task.
	Ways []patterns.PatternID
	// Cost is what it cost, in a unit of the host's. The Reward of Tuning.Strategy may
	// weigh it.
	Cost float64
	// Source is who reports it: one of [Config].Instruments, or a person. "" is not known, and all
	// outcomes without a source are one person's.
	Source string
	// Confidence is how sure the value is, in (0, 1]. 0 means 1. An outcome of less counts less.
	Confidence float64
	At         time.Time // the zero time means now, like in [Reaction].At
}

// value returns how good it was, and whether that is known.
func (o *Outcome) value() (float64, bool) {
	switch {
	case o.Reward != nil:
		return *o.Reward, true
	case o.Success == nil:
		return 0, false
	case *o.Success:
		return 1, true
	default:
		return -1, true
	}
}

// validate returns the first fault.
func (o *Outcome) validate() error {
	switch {
	case o.Withdraw && (o.Success != nil || o.Reward != nil || o.Cost != 0):
		return valid.Input("Withdraw", "must not be set with a success, a reward or a cost")
	case !o.Withdraw && o.Success == nil && o.Reward == nil:
		return valid.Input("Success", "must be set, or a reward, or the withdrawal of one")
	case o.Reward != nil && !(*o.Reward >= -1 && *o.Reward <= 1):
		return valid.Input("Reward", "must be in [-1, 1]")
	case o.Errors < 0:
		return valid.Input("Errors", "must not be negative")
	case o.Retries < 0:
		return valid.Input("Retries", "must not be negative")
	case o.Duration < 0:
		return valid.Input("Duration", "must not be negative")
	case !(o.Cost >= 0 && o.Cost <= evidence.MaxWeight):
		return valid.Input("Cost", "must be in [0, 1e6]")
	case !(o.Confidence >= 0 && o.Confidence <= 1):
		return valid.Input("Confidence", "must be in (0, 1], or 0 for 1")
	}
	return evidence.CheckText("Source", o.Source)
}

const maxBeginning = 8 << 10

const (
	maxTask    = 512 // bytes of a task, the limit of package patterns
	maxEventID = 900 // bytes of an event's id
)

// validate returns the first fault of an event's names. The ids of the arm's observations contain
// the event's, the learner's name and the choice's id, so a long name leaves less for the event's.
func (a *Agent) validate(e *Event) error {
	mostID := maxEventID
	if learner := a.learner; learner != nil {
		mostID = min(mostID, evidence.MaxText-len(learner.Config().Name)-len("::/")-36-20)
	}
	return cmp.Or(
		valid.Texts(mostID, "ID", e.ID),
		valid.Texts(evidence.MaxText, "Session", e.Session, "Person", e.Person, "Stream", e.Stream,
			"Domain", e.Domain, "Item", e.Item, "Context", e.Context),
		valid.Texts(maxTask, "Task", e.Task))
}

// complete gives an event an ID and a time, if they are missing, and a copy of its history. It
// returns the first fault of the event.
func (a *Agent) complete(e *Event) error {
	now := a.cfg.Testing.Now()
	e.ID = cmp.Or(e.ID, a.cfg.Testing.NewID())
	if e.At.IsZero() {
		e.At = now
	}
	e.History = slices.Clone(e.History)
	return cmp.Or(a.validate(e), a.cfg.person("Person", e.Person), valid.Time("At", e.At, now))
}
