// Package answer contains the record of one answer: the event, how it was answered, what was chosen
// and shown, and every statement that was made about it since. It is plain data. What follows from
// the statements is in the tables of docs/trust.md.
package answer

import (
	"time"
)

// An Answer is the record of one answer. Package loop fills all of it. A package that is used alone
// fills its part and leaves the rest empty. Slices and maps of an Answer that came from a store
// must not be changed in place; the methods of Answer replace them.
//
// An Answer must not be used concurrently.
type Answer struct {
	// ID is the event's id. Package strategy alone uses the id of the choice.
	ID string `json:"id"`
	// At is when the event happened, or when the arm was chosen.
	At time.Time `json:"at"`

	// Person asked, in Session, about something in Domain. Stream is where the next message shows
	// whether the answer was passed over.
	Person  string `json:"person,omitempty"`
	Session string `json:"session,omitempty"`
	Domain  string `json:"domain,omitempty"`
	Stream  string `json:"stream,omitempty"`

	Reply  *Reply  `json:"reply,omitempty"`
	Prompt *Prompt `json:"prompt,omitempty"`
	Choice *Choice `json:"choice,omitempty"`
	// Fires are the heuristics that answered, and the model if it did. In the loop there is one.
	Fires []Fire `json:"fires,omitempty"`
	// Undoes are the answers that the event's text took back. If there are any, this answer earns no
	// credit.
	Undoes []string `json:"undoes,omitempty"`

	// Numbers counts the statements, repeated ones included. A new statement gets it as its N.
	Numbers uint64 `json:"numbers,omitempty"`
	// Statements are all that is known about the quality of the answer, the oldest first by the
	// order of arrival.
	Statements []Statement `json:"statements,omitempty"`
}

// A Reply is the answer that was given.
type Reply struct {
	Path     string `json:"path"`               // "heuristic" or "llm"
	Response string `json:"response,omitempty"` // the id of its trace
	Text     string `json:"text,omitempty"`
	Model    string `json:"model,omitempty"` // the name that the model gave in its reply
	Cut      bool   `json:"cut,omitempty"`   // the model's text ends too early
	Arm      string `json:"arm,omitempty"`   // the chosen arm, if the answer is no evidence about it
	// Undelivered reports that the person has not seen the answer, so that silence about it is no
	// approval.
	Undelivered bool    `json:"undelivered,omitempty"`
	Spare       bool    `json:"spare,omitempty"`     // a fallback answered, and not the arm's model
	Unusable    bool    `json:"unusable,omitempty"`  // the arm's model gave an answer of no use
	Heuristic   string  `json:"heuristic,omitempty"` // that answered
	Threshold   float64 `json:"threshold,omitempty"` // the confidence that it needed to answer
	Believed    float64 `json:"believed,omitempty"`  // the confidence that it had
	Task        string  `json:"task,omitempty"`
	About       string  `json:"about,omitempty"` // the task in words
	// Reinforced is a heuristic that the model's answer agrees with, and that earns the praise of
	// it.
	Reinforced string   `json:"reinforced,omitempty"`
	Followed   []string `json:"followed,omitempty"` // the ways of working that the answer follows
	Spent      Spent    `json:"spent,omitzero"`
	Side       *Side    `json:"side,omitempty"`
}

// A Side is how an answer counts in the comparison with and without learning of package loop.
type Side struct {
	Control bool     `json:"control,omitempty"` // it was answered as without learning
	Share   float64  `json:"share,omitempty"`   // of such answers then; 0: there was no comparison
	Group   int      `json:"group,omitempty"`   // that its session was drawn into
	Counted *float64 `json:"counted,omitempty"` // its success in [0, 1], nil while it is not known
	Changes int      `json:"changes,omitempty"` // of Counted
}

// A Prompt is what the model was shown, and what was withheld from it.
type Prompt struct {
	Shown []string `json:"shown,omitempty"` // heuristics in the prompt
	// Compared are heuristics that were withheld, compared with the answer.
	Compared []Comparison `json:"compared,omitempty"`
	// Told are withheld heuristics whose advice the prompt or the conversation contains all the same.
	Told []string `json:"told,omitempty"`
	// Overruled are heuristics, each with the rule that its answer would have broken, and how.
	Overruled map[string]string `json:"overruled,omitempty"`
	Rules     []string          `json:"rules,omitempty"`
	Notes     []string          `json:"notes,omitempty"`
	Ways      []string          `json:"ways,omitempty"`     // ways of working that were recommended
	Warnings  []string          `json:"warnings,omitempty"` // ways of working that were warned of
	// LeftOut are parts that the prompt lacks: what it is, its id, and why.
	LeftOut [][3]string `json:"left_out,omitempty"`
}

// A Comparison is of a heuristic with an answer of a model that was not shown the heuristic.
type Comparison struct {
	HeuristicID string  `json:"heuristic"`            // never empty
	Similarity  float64 `json:"similarity,omitempty"` // of its action to the answer, in [0, 1]
	Agrees      bool    `json:"agrees,omitempty"`     // the two are similar enough to mean the same
}

// Spent is what an answer took.
type Spent struct {
	Cost    float64       `json:"cost,omitempty"` // in a unit of the host's
	Latency time.Duration `json:"latency,omitempty"`
	Tokens  int           `json:"tokens,omitempty"`
}

// A Fire is one heuristic that answered, or the model. Package learning keeps here what it waits
// for and what of the answer it counted.
type Fire struct {
	Heuristic string       `json:"heuristic,omitempty"` // empty if the model answered
	Domain    string       `json:"domain,omitempty"`    // of the heuristic
	Edition   uint64       `json:"edition,omitempty"`   // of the heuristic's wording
	Path      string       `json:"path,omitempty"`
	Compared  []Comparison `json:"compared,omitempty"`
	Shown     time.Time    `json:"shown,omitzero"`
	Undo      time.Time    `json:"undo,omitzero"`   // the ends of its windows, zero without
	Ignore    time.Time    `json:"ignore,omitzero"` // as for Undo
	Silence   time.Time    `json:"silence,omitzero"`
	// Phrase shows how the answer turned out, if a later text contains it.
	Phrase  string       `json:"phrase,omitempty"`
	Failure bool         `json:"failure,omitempty"`
	Due     time.Time    `json:"due,omitzero"`     // when to look at it again
	Closed  bool         `json:"closed,omitempty"` // no message can change it any more
	Lost    bool         `json:"lost,omitempty"`   // its heuristic was deleted
	Counted FireEvidence `json:"counted,omitzero"`
}

// FireEvidence is what of a fire is in the evidence, except for what its statements have in
// [Statement].Credit.
type FireEvidence struct {
	// N is how often it changed. It is part of the observations' ids.
	N        int     `json:"n,omitempty"`
	Implicit How     `json:"implicit,omitempty"` // the implicit signal that counts
	Seen     *Credit `json:"seen,omitempty"`     // that signal as it is in the confidence
	Of       How     `json:"of,omitempty"`       // which signal Seen is
	Fate     int     `json:"fate,omitempty"`
	// Ended is the id and the source of the observations of how the fire ended; nil without any.
	Ended *Credit `json:"ended,omitempty"`
	// Agreed is what it was worth for the heuristics that were compared with it, by its sources.
	Agreed map[string][]Credit `json:"agreed,omitempty"`
}

// A Credit is an observation that a statement made in the evidence of a heuristic. It is immutable
// once it is stored.
type Credit struct {
	ID      string    `json:"id"`
	Cell    string    `json:"cell"`              // the name of the cell, without the version
	Channel string    `json:"channel,omitempty"` // of the observation
	Reward  float64   `json:"reward,omitempty"`
	Weight  float64   `json:"weight,omitempty"`
	Worth   float64   `json:"worth,omitempty"` // of an agreement
	Source  string    `json:"source,omitempty"`
	Named   bool      `json:"named,omitempty"` // Source had a name, which may be forgotten since
	At      time.Time `json:"at,omitzero"`
}

// Forgotten reports whether the source was forgotten since. The observation is gone then.
func (c Credit) Forgotten() bool { return c.Named && c.Source == "" }
