package decision

import "context"

// A Strategy decides how to answer an event.
//
// An implementation must be safe for concurrent use by multiple goroutines. It must not change the request, nor keep its
// slices and maps. A request without candidates is a request like any other. Package decisiontest has the suite that says
// whether an implementation keeps this contract.
type Strategy interface {
	// Decide answers an event, or says why it does not. What goes wrong with a model is not an error but a path: see
	// [Fallback] and [Rejected]. A request that is not valid is a [*heed.InputError], and a context that is done on entry
	// gives its error. Any other error comes beside a result that a host may use to go on.
	Decide(ctx context.Context, r Request) (Result, error)
}

// A Path is the way that a decision took.
type Path string

// The paths.
const (
	Heuristic Path = "heuristic" // a heuristic that is trusted enough answers
	Model     Path = "llm"       // the model answers
	Fallback  Path = "fallback"  // the model was asked, and there is no answer
	Rejected  Path = "rejected"  // nobody was asked
)

// Valid reports whether the path is one of those above.
func (p Path) Valid() bool { return p == Heuristic || p == Model || p == Fallback || p == Rejected }

// A Reason says why there is no answer.
type Reason string

// The reasons of [Rejected], and those of [Fallback].
const (
	LLMUnavailable Reason = "llm_unavailable" // there is no model
	NotImmediate   Reason = "not_immediate"   // there is one, and the event can wait

	LLMNoResponse Reason = "llm_no_response" // it gave an empty answer
	LLMError      Reason = "llm_error"       // it gave an error, or panicked
	LLMTimeout    Reason = "llm_timeout"     // the time was up, or the caller gave up
	LLMBusy       Reason = "llm_busy"        // calls that were given up hold all places: see Config.MaxInFlight
)

// A Result is a decision.
type Result struct {
	Path Path
	// Reason says why there is no answer. It is empty where there is one.
	Reason Reason
	// Text is the answer: the heuristic's action, or what the model said.
	Text string
	// ResponseID names the answer; feedback finds its trace by it. It is empty where there is no answer, and where its
	// trace could not be kept.
	ResponseID string
	// MatchedID is the heuristic that matched the event best, whether it answered or not: on the model's path, the first
	// candidate. It is empty where there is no answer.
	MatchedID string
	// CreditID is the heuristic that earns what is said of the answer: the one that gave it. It is empty on every other
	// path than Heuristic: a heuristic that was merely considered earns neither praise nor blame.
	CreditID string
	// Success is how probable it is that the answer serves its end, and Confidence how much there was to judge that by, both
	// in [0, 1]. On the model's path they are what the model says of its answer, up to the ceiling; on the heuristic's, its
	// confidence.
	Success, Confidence float64
	// PredictionFault says what was wrong with the model's prediction, where a default stands for it.
	PredictionFault string
	// Prompt is what the model was asked, without the system prompt.
	Prompt string
	// Threshold is the confidence that a heuristic needed here, after bias, urgency and clamping.
	Threshold float64
	// Urgency is what the event's urgency was taken to be, and Tier what follows from it.
	Urgency float64
	Tier    Tier
	// ShownIDs are the heuristics that the prompt showed, in the order in which it did.
	ShownIDs []string
	// Convergence are the candidates that say what the model said, the most alike first. It moves no confidence.
	Convergence []Convergence
	// LLM is the name of the model that answered, as it told.
	LLM string
	// Usage is what the decision cost.
	Usage Usage
	// Strategy is the name of the strategy that decided, and Variant that of the variant of an [Experiment].
	Strategy, Variant string
	// Err is what went wrong with the model, for logs.
	Err error `json:"-"`
}

// Accepted reports whether the event was taken on: every path but Rejected, also where no answer came of it.
func (r Result) Accepted() bool { return r.Path != Rejected }

// Usage is what a decision cost. Tokens are as the model told them.
type Usage struct {
	Calls                     int // of the model
	InputTokens, OutputTokens int
}

// A Convergence is a candidate that says what the model said.
type Convergence struct {
	HeuristicID string
	Similarity  float64 // of its action and the model's answer, in [0, 1]
	Shown       bool    // whether the prompt showed it, so that the model may have copied it
}
