package learning

import "time"

// A Strategy interprets observations as signals: it decides what an observation means, and how
// much. It does not count and sets no limits, as the [Module] does that. To change one rule of the
// default, embed what [NewBayesian] returns.
//
// A Strategy must be safe for concurrent use by multiple goroutines. It must give the same answer
// to the same request, and must not change a request. A signal names the heuristic that was asked
// about. What has no meaning is a signal that is worth 0. If it returns an error, the module does
// not count the observation. Package learningtest tests all of this.
type Strategy interface {
	// InterpretJudgement interprets a person's judgement of an answer. It returns an error for a
	// judgement that is not valid ([Judgement.Validate]), and handles every kind of judgement. The
	// module multiplies what the signal is worth by the judgement's weight.
	InterpretJudgement(Judgement) (Signal, error)
	// InterpretTimeout interprets the silence of an answer, when its silence window ends.
	InterpretTimeout(Answer) (Signal, error)
	// InterpretUndo returns a signal for each answer that a message takes back, in the order of the
	// answers, which has the oldest first. It returns no signals if the text is not an undo. An empty
	// text is [Module.Undo], a command without words: it must return signals for some of the answers,
	// because the user pressed a button and expects that something is taken back.
	InterpretUndo(text string, answers []Answer) ([]Signal, error)
	// IsUndo reports whether InterpretUndo can return signals for a message. If it can't, no open
	// answers are read.
	IsUndo(text string) bool
	// IsThanks reports whether a message thanks for an answer, or praises it. Such a message does not
	// ignore the answer. If it also doubts the answer ("thanks, wrong again"), silence does not
	// approve the answer either.
	IsThanks(text string) (thanks, doubt bool)
	// InterpretIgnore interprets that the user went on without a word. Answer.Consecutive is set.
	InterpretIgnore(Answer) (Signal, error)
	// InterpretOutcome interprets that the outcome of an [Expectation] came. Answer.Success is set.
	InterpretOutcome(Answer) (Signal, error)
	// Windows returns how long an answer of a domain can be taken back or ignored, and when its
	// silence counts.
	Windows(domain string) Windows
	// Config returns the strategy's name, as "strategy", and its settings, for logs. The caller owns
	// the map.
	Config() map[string]string
}

// Windows are the clocks of an answer, all from the moment at which it was shown. The end of a
// window belongs to it. 0 or less means that there is no such window.
type Windows struct {
	// Undo is the window for an undo by a message.
	Undo time.Duration
	// Ignore is the window for being ignored. It ends with the silence window, too.
	Ignore time.Duration
	// Silence is the time after which silence is interpreted. A later undo takes its place.
	Silence time.Duration
}

// An Answer is one heuristic on one event, in the form in which a [Strategy] receives it.
type Answer struct {
	// HeuristicID is empty if the model answered. Domain is the heuristic's, or else the event's.
	HeuristicID, EventID, Domain string
	// Age is the time since the answer was shown.
	Age time.Duration
	// Consecutive is how many times in a row the heuristic was ignored, this time included. It starts
	// again after an ignore that counted, praise, a success, or silence that counted.
	Consecutive int
	// Success is whether the outcome of the expectation was a success.
	Success bool
}
