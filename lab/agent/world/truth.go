package world

import (
	_ "embed" // of the tables
	"encoding/json"
	"slices"
	"time"

	"github.com/heedhq/heed/lab/agent/assistant"
	"github.com/heedhq/heed/learning"
)

// This file and its tables in truth.json are the whole truth of the simulated world. They were
// written down before the assistant was tuned, and the assistant can't see them: package assistant
// can't import this package, which imports it.
//
//	what                            numbers
//	what comes in                   Kind.Share: alerts 72, requests 15, questions 15, tasks 7 of 109
//	which answers work how often    Answer.Works; Answer.Later: one stops half-way
//	what the model says by itself   Kind.Own: it finds what works; adopts: it takes what is shown
//	mistakes, and what stops them   slips, slipsWarned, and Mistake.Fix
//	ways of using a note            Ways: how often the model then finds what works
//	decompositions of a task        Decompositions; what warnings and praise do to the model
//	what users do then              contented, discontented
//	what reviewers correct          reviewed, nagged, Mistake.Said; leads want Mistake.Wanted
const (
	pace        = 12 * time.Minute // between two events
	users       = 40
	reviewers   = 6
	adopts      = 0.50 // the model takes a shown response that fits
	slips       = 0.60 // the model makes a mistake that its prompt does not mention
	slipsWarned = 0.06 // … and one that a rule in its prompt is about
	heeds       = 0.92 // a warning of a decomposition keeps the model from it
	follows     = 4.0  // … and praise makes it so many times likelier
	reviewed    = 0.50 // of the answers to requests
	nagged      = 0.15 // of the reviewed ones, the matter of taste is brought up
	nonsense    = 0.10 // any other answer works so often
	confident   = 0.85 // the model's prediction for any answer
)

// moods are what users do after an answer; what is left to 1 is silence.
type moods struct{ undo, again, down, up float64 }

var (
	contented    = moods{undo: 0.02, again: 0.03, up: 0.12}
	discontented = moods{undo: 0.45, again: 0.25, down: 0.10}
)

// A Kind is a kind of events.
type Kind struct {
	Name   string
	Domain string
	Share  float64
	Cue    string   // is in all texts of the kind, and in no other
	Texts  []string // with {host} and {n}
	// Answers are the possible answers. The first one is the best, which the model gives if it has
	// learned what to do; the last one is the model's answer otherwise.
	Answers []Answer
	Own     float64
	Slips   []string `json:"mistakes"` // the names of the mistakes that an answer may have
	Note    *Note

	Mistakes []*Mistake `json:"-"`
}

// An Answer is known by a few words that are in its text.
type Answer struct {
	Key, Text string
	Works     float64
	Later     float64 // how often it works in the second half; 0: as before
}

// A Mistake is something that an answer lacks.
type Mistake struct {
	Name   string
	Fix    string // what an answer without the mistake has
	Fixed  string // the sentence with it
	Word   string // what a rule against it has
	Said   []string
	Wanted bool // the leads want it to be put right
}

// A Note is something that was learned once, of a sort that decides how it is best used: a short
// fact in the prompt, a manual by a subagent, and what is outdated not at all.
type Note struct {
	ID, Sort, Topic, Key, Text string
}

// A decomposition is a way to cut a task into parts.
type decomposition struct {
	Name, Text string
	Own        float64 // how often the model takes it by itself
	Works      float64
	Errors     int // on the way, where it fails
}

//go:embed truth.json
var tables []byte

// truth has the tables.
var truth = func() (t struct {
	// Ways is how often the model finds what works when it has a note of a sort in this way;
	// "deferred" is without it.
	Ways           map[string]map[string]float64
	Decompositions []decomposition
	Mistakes       []*Mistake // the matter of taste last
	// Runbooks are the heuristics that the assistant begins with. Five are good, two are not, one
	// turns bad half-way.
	Runbooks []learning.Heuristic
	Kinds    []*Kind
}) {
	if err := json.Unmarshal(tables, &t); err != nil {
		panic(err) // it is embedded
	}
	for i := range t.Runbooks {
		t.Runbooks[i].Domain = assistant.Alerts
	}
	for _, k := range t.Kinds {
		for _, m := range t.Mistakes {
			if slices.Contains(k.Slips, m.Name) {
				k.Mistakes = append(k.Mistakes, m)
			}
		}
	}
	return t
}()

// Mistakes are all there are, the matter of taste last.
func Mistakes() []*Mistake { return truth.Mistakes }

// Runbooks are the heuristics that the assistant begins with.
func Runbooks() []learning.Heuristic { return slices.Clone(truth.Runbooks) }

// Turning is the heuristic that turns bad half-way, when a broker is upgraded.
const Turning = "runbook-queue"

// Notes are the learnings that the assistant begins with.
func Notes() (notes []*Note) {
	for _, k := range truth.Kinds {
		if k.Note != nil {
			notes = append(notes, k.Note)
		}
	}
	return notes
}
