package learning

import "time"

// Strategy interprets what was seen as signals. It decides what something means and how much, and neither keeps count nor
// enforces limits: that is the [Module]'s.
//
// An implementation must be safe for concurrent use by multiple goroutines, must give the same answer to the same request,
// and must leave requests as they are. The magnitudes of its signals are finite and not negative; a signal names the
// heuristic that was asked about. An error keeps the module from counting anything. Package learningtest has the suite
// that says whether an implementation keeps this contract.
type Strategy interface {
	// InterpretJudgement interprets what somebody said of an answer.
	InterpretJudgement(Judgement) (Signal, error)
	// InterpretTimeout interprets that nothing was heard of an answer while its silence window lasted.
	InterpretTimeout(Timeout) (Signal, error)
	// InterpretUndo says which of the recent fires the text of an event takes back: a signal for each of them, in their
	// order, and none where the text is no undo.
	InterpretUndo(Undo) ([]Signal, error)
	// InterpretIgnore interprets that the user went on without a word, so many times in a row.
	InterpretIgnore(Ignore) (Signal, error)
	// Windows returns how long answers of a domain can be taken back, and how long silence has to last.
	Windows(domain string) Windows
	// Config returns the strategy's name, as "strategy", and its settings, for logs. The map is the caller's.
	Config() map[string]string
}

// OutcomeInterpreter is what a [Strategy] may implement beside. The module counts a matched [Expectation] of a strategy without
// it at magnitude 1.
type OutcomeInterpreter interface {
	// InterpretOutcome interprets that a pattern's outcome was seen.
	InterpretOutcome(Outcome) (Signal, error)
}

// UndoRecognizer is what a [Strategy] may implement beside. An event then costs no look-up of what it could take back, unless
// its text may take something back.
type UndoRecognizer interface {
	// IsUndo reports whether InterpretUndo can have signals for this text.
	IsUndo(text string) bool
}

// Windows are the two clocks of an answer, counted from when it was shown. A time exactly at the end of a window is still
// inside. 0 or less: there is none.
type Windows struct {
	// Undo is how long an answer can be taken back by an undo, or count as ignored.
	Undo time.Duration
	// Silence is after how long without any outcome silence is interpreted. With none, silence is no signal.
	Silence time.Duration
}

// Timeout asks what silence means.
type Timeout struct {
	HeuristicID, EventID, Domain string
	Elapsed                      time.Duration // since the answer was shown, by the clock of the sweep
}

// Undo asks whether the text of an event takes back what was shown before.
type Undo struct {
	Text  string
	Fires []RecentFire // those within their undo window, the oldest first
}

// A RecentFire is an answer that can still be taken back.
type RecentFire struct {
	HeuristicID, EventID, Domain string
	Age                          time.Duration
}

// Ignore asks what it means that the user went on without a word.
type Ignore struct {
	HeuristicID, EventID, Domain string
	// Consecutive is how often in a row the heuristic was ignored, this time included. It begins anew after any other
	// ending of one of its fires, after explicit feedback, and after an ignore that was no neutral signal.
	Consecutive int
}

// Outcome asks what it means that a pattern's outcome was seen.
type Outcome struct {
	HeuristicID, EventID, Domain string
	Success                      bool
}
