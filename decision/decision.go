package decision

import (
	"context"
	"errors"

	"github.com/heedhq/heed/answer"
)

// A Strategy decides how to answer an event.
//
// An implementation must be safe for concurrent use by multiple goroutines. It must not change the
// request or keep its slices and maps. It must accept a request without candidates. Package
// decisiontest has the suite for this contract.
type Strategy interface {
	// Decide answers an event, or returns the reason why it does not. The fields of the result are
	// as [Result] describes them, and no two answers have the same ResponseID. A failing model is no
	// error, nor is one that panics: see [Fallback] and [Rejected]. A text that is blank, or of
	// thoughts in tags such as <think> alone, is no answer, and other answers are without them. An
	// invalid request is a [*heed.InputError]: see [Request.Validate]. If the context is done on
	// entry, its error is returned; if it ends later, Decide returns soon. Any other error, for
	// example of a store, comes with a result that the host may use.
	Decide(ctx context.Context, r Request) (Result, error)
}

// A Path is the way that a decision took.
type Path string

// The paths.
const (
	Heuristic Path = "heuristic" // a trusted heuristic answered
	Model     Path = "llm"       // the model answered
	Fallback  Path = "fallback"  // the model was asked and gave no answer
	Rejected  Path = "rejected"  // no model was asked
)

// The reasons of a missing answer: see [Result].Reason.
const (
	noModel      = "llm_unavailable"
	notImmediate = "not_immediate"
	busy         = "llm_busy"
	noResponse   = "llm_no_response"
	modelError   = "llm_error"
	timedOut     = "llm_timeout"
	stopped      = "llm_stopped"
)

// ErrBusy reports that a model was not asked, because all [Config].MaxInFlight places stayed taken
// for [Config].Timeout, or before the caller's context ended. Ask again later, raise MaxInFlight,
// or add a process. It is not a failure of the model. It is also the error if calls that were given
// up hold all places.
var ErrBusy = errors.New("the model was not asked, because no place of MaxInFlight became free")

// A Result is a decision.
type Result struct {
	Path Path
	// Reason is why there is no answer, and "" if there is one:
	//
	//   - "llm_unavailable": there is no model, or it does not work at present.
	//   - "not_immediate": the event can wait ([Request].CanWait).
	//   - "llm_busy": no place became free: see [ErrBusy].
	//   - "llm_no_response": the answer was empty.
	//   - "llm_error": the model returned an error, or panicked.
	//   - "llm_timeout": [Config].Timeout was over.
	//   - "llm_stopped": the caller cancelled the context.
	//
	// The first two come with [Rejected], the busy, stopped and timed-out ones also, if the model was
	// not called, and the others with [Fallback]. A strategy of the host's may have its own reasons.
	Reason string
	// Text is the answer: the heuristic's action, or the model's text.
	Text string
	// Cut reports that the model's text ends too early, at [Config].MaxTokens or where the model can
	// hold no more. The text is an answer all the same, but it is compared with no candidate.
	Cut bool
	// ResponseID names the answer; [Decider.Feedback] finds it by that. It is empty without an
	// answer, and for an answer whose trace could not be stored.
	ResponseID string
	// MatchedID is the heuristic that matched the event best, whether it answered or not. On the
	// model's path it is the first candidate. It is empty without an answer.
	MatchedID string
	// CreditID is the heuristic that answered, and so earns the reactions. It is empty on every
	// path but [Heuristic]: a heuristic that was only considered earns neither praise nor blame.
	CreditID string
	// Prediction is what is expected of the answer. Both numbers are the heuristic's confidence
	// where a heuristic answered. It is nil where the model answered and was not asked for a
	// prediction: see [Config].Prediction.
	Prediction *Prediction
	// PredictionFault describes what was wrong with the model's prediction, for example a number
	// outside of [0, 1].
	PredictionFault string
	// Thoughts is the thinking that the model returned with its answer. No other field, trace or
	// comparison contains it.
	Thoughts string
	// System and Prompt are the whole prompt as it was sent for the answer. They are empty where no
	// model was asked. A conversation that the host puts before it is not in it. Only package
	// loop's Answer sets Prompt with Event.History.
	System, Prompt string
	// Threshold is the confidence that a heuristic needed, after bias, urgency and clamping.
	Threshold float64
	// Urgency is the urgency of the event, and Tier its tier with [Config].UrgencyTiers: "immediate"
	// from 0.8 on, "soon" from 0.4 on, else "not_urgent".
	Urgency float64
	Tier    string
	// ShownIDs are the heuristics in the prompt, in the prompt's order.
	ShownIDs []string
	// Convergence lists the candidates whose text is similar to the model's answer, the most similar
	// first, shown or not. They earn no credit by it.
	Convergence []answer.Comparison
	// Compared are the candidates that were withheld from the prompt, in the request's order,
	// compared with the model's answer. Agreement is evidence, because the model had not seen them:
	// pass them on to package learning. A candidate agrees if its similarity is at least
	// 0.75. See [Config].Withhold.
	Compared []answer.Comparison
	// Told are the candidates that were withheld, but whose text the prompt or [Request].Told
	// contains all the same. They are not in Compared, because their agreement would not be evidence.
	Told []string
	// LLM is the name of the model, as the provider returned it.
	LLM string
	// Calls is how many calls of the model the decision took, including calls of [SameMeaning].
	// Tokens are as the model counts them.
	Calls, InputTokens, OutputTokens int
	// Strategy is the name of the strategy that decided, and Variant the variant of an
	// [Experiment].
	Strategy, Variant string
	// Err is what went wrong with the model, for logs.
	Err error `json:"-"`

	failures []failure // for the observer
}

// A Prediction is what is expected of an answer.
type Prediction struct {
	Success    float64 // the probability that the answer succeeds, in [0, 1]
	Confidence float64 // how much there was to judge it by, in [0, 1]
}

// An LLM is a language model.
//
// Generate must be safe for concurrent use by multiple goroutines, and should return soon after its
// context is done. It returns an error if there is no answer; an empty text counts as no answer.
// Package llmtest provides the suite for this contract, and a scripted model for tests.
type LLM interface {
	Generate(ctx context.Context, r LLMRequest) (LLMResponse, error)
}

// LLMFunc makes an LLM of a function, such as a closure over the client that a host has.
type LLMFunc func(ctx context.Context, r LLMRequest) (LLMResponse, error)

// Generate calls the function.
func (f LLMFunc) Generate(ctx context.Context, r LLMRequest) (LLMResponse, error) {
	return f(ctx, r)
}

// An LLMRequest is one prompt.
type LLMRequest struct {
	System string // the system prompt; may be empty
	Prompt string
	// JSON asks for JSON. It is a hint: answers are read the same way without it.
	JSON bool
	// MaxTokens bounds the answer. It is never 0.
	MaxTokens int
	// Temperature is how freely the model draws. nil leaves it to the model.
	Temperature *float64
}

// An LLMResponse is an answer.
type LLMResponse struct {
	Text string
	// Thoughts is the model's thinking, if the provider returns it apart from the answer. Thoughts
	// within Text, in tags as <think>, need not be separated, because the caller of the model does
	// that.
	Thoughts string
	Model    string // the model that answered
	// Cut reports that Text ends too early: at the request's MaxTokens, or because the model can hold
	// no more. If the request asked for JSON, a cut text is not an answer.
	Cut bool
	// Tokens as counted by the provider. 0 if the provider does not report them.
	InputTokens, OutputTokens int
}
