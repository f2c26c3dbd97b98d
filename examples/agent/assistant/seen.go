package assistant

import "time"

// An Event is something that wants an answer: an alert, a request, a task to plan.
type Event struct {
	ID     string
	Domain string
	Stream string // the chat that it came through
	Person string // who watches that chat
	Text   string
	At     time.Time
}

// The domains of events.
const (
	Alerts   = "alerts"   // the runbook is about them
	Requests = "requests" // and the notes about these: what is asked for is not answered off a shelf
	Changes  = "changes"  // tasks that have to be planned, and of which it is known later how they went
)

// A Message is what a person writes in a chat after an answer.
type Message struct {
	Event  string
	Stream string
	Person string
	Text   string
	At     time.Time
}

// A Thumb is a click beside an answer.
type Thumb struct {
	Event  string
	Person string
	Up     bool
	At     time.Time
}

// A Closed conversation is one in which nothing more is said.
type Closed struct {
	Event string
	At    time.Time
}

// A Done task is one that came to an end.
type Done struct {
	Event    string
	Success  bool
	Duration time.Duration
	Errors   int
	Retries  int
	Failure  string // in a word; empty where it did not fail
	At       time.Time
}

// A Morning is the hour at which a host does what is to be done once a day.
type Morning struct{ At time.Time }
