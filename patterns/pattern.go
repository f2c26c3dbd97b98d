package patterns

import (
	"slices"
	"strings"
	"time"
)

// A PatternID names a pattern: a way of doing things that outcomes are credited to. It is text that a store can keep:
// not empty, valid UTF-8 without NUL, of at most [MaxID] bytes.
type PatternID string

// MaxID is how many bytes the id of a pattern, a task, an outcome or an error may have, and the name of a criterion.
const MaxID = 512

// AntiPrefix begins the id of an anti-pattern that was made of a pattern; the pattern's own id follows.
const AntiPrefix = "anti-"

// A Kind says whether a pattern is one to follow or one to avoid. Unknown kinds survive.
type Kind string

// The kinds of patterns.
const (
	Positive Kind = "pattern"
	Anti     Kind = "anti_pattern"
)

// A State is where a pattern stands in its life. Unknown states survive.
type State string

// The states of a pattern.
const (
	Candidate   State = "candidate"   // too little is known
	Established State = "established" // it has a record
	Proven      State = "proven"      // it has a good record, and recently so
	Deprecated  State = "deprecated"  // it does harm too often
	Inverted    State = "inverted"    // it failed so often that its anti-pattern warns of it
)

// Valid reports whether the state is one of those above.
func (s State) Valid() bool {
	switch s {
	case Candidate, Established, Proven, Deprecated, Inverted:
		return true
	default:
		return false
	}
}

// A Pattern is what a store keeps of a way of doing things. What it earned is kept as evidence; [Recorder.Standing] reads
// both together. A Pattern is a plain value, to be taken as immutable.
type Pattern struct {
	ID      PatternID `json:"id"`
	Kind    Kind      `json:"kind"`
	Content string    `json:"content"` // what it says: at most [MaxContent] bytes
	Tags    []string  `json:"tags,omitempty"`
	// Examples are the tasks that it was last credited with, the last one last: at most [MaxExamples].
	Examples []string `json:"examples,omitempty"`
	// Reason is why an anti-pattern is one.
	Reason string `json:"reason,omitempty"`
	// Twin is the anti-pattern that was made of this pattern, and the pattern that this anti-pattern was made of. It stays
	// when the pattern is rehabilitated.
	Twin PatternID `json:"twin,omitempty"`

	// State is where it stood when it was last stored. That of an anti-pattern is [Inverted].
	State State `json:"state"`
	// Override is the state that someone gave it by hand. It holds until [Recorder.Reset].
	Override *Override `json:"override,omitempty"`
	// Base are the observations it had when it was last rehabilitated, which no longer count towards an inversion.
	Base Counts `json:"base"`
	// Inverted are the observations it had when it was last inverted.
	Inverted Counts `json:"inverted"`
	// ArchivedAt is when it was archived; the zero time where it is not. What is archived is in no prompt.
	ArchivedAt time.Time `json:"archived_at"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// The limits of a pattern.
const (
	MaxContent  = 4096 // bytes
	MaxExamples = 10
	maxTags     = 100
)

// Counts are observations of a pattern. They do not fade.
type Counts struct {
	Successes uint64 `json:"successes"`
	Failures  uint64 `json:"failures"`
}

// Total returns how many there are.
func (c Counts) Total() uint64 { return c.Successes + c.Failures }

// minus returns the counts that came on top of earlier ones. Where evidence was taken back since, it is none.
func (c Counts) minus(earlier Counts) Counts {
	return Counts{c.Successes - min(c.Successes, earlier.Successes), c.Failures - min(c.Failures, earlier.Failures)}
}

// An Override is a state that was given by hand: [Proven] or [Deprecated].
type Override struct {
	State    State     `json:"state"`
	Decision Decision  `json:"decision"`
	At       time.Time `json:"at"`
}

// A Decision is what someone wants done, and why. Neither may be empty.
type Decision struct {
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
}

// A Transition says what became of a pattern.
type Transition struct {
	ID      string    `json:"id"` // counts once
	Pattern PatternID `json:"pattern"`
	From    State     `json:"from"`
	To      State     `json:"to"` // the same as From where the pattern was archived, or brought back from the archive
	At      time.Time `json:"at"`
	Actor   string    `json:"actor,omitempty"` // who wanted it; empty where the evidence did
	Cause   string    `json:"cause"`
}

// clone returns a copy that shares nothing with the pattern.
func (p Pattern) clone() Pattern {
	c := p
	c.Tags, c.Examples = slices.Clone(p.Tags), slices.Clone(p.Examples)
	if p.Override != nil {
		o := *p.Override
		c.Override = &o
	}
	return c
}

// Archived reports whether the pattern is archived.
func (p *Pattern) Archived() bool { return !p.ArchivedAt.IsZero() }

func (p *Pattern) hasTag(tag string) bool { return slices.Contains(p.Tags, tag) }

// addExample adds a task that is not there yet.
func (p *Pattern) addExample(task string) {
	if !slices.Contains(p.Examples, task) {
		p.Examples = append(p.Examples, task)
		p.Examples = p.Examples[max(len(p.Examples)-MaxExamples, 0):]
	}
}

func (p *Pattern) validate() error {
	if err := checkIDs(field{"ID", string(p.ID)}); err != nil {
		return err
	}
	switch {
	case p.Kind == "":
		return inputError("Kind", "must not be empty")
	case p.State == "":
		return inputError("State", "must not be empty")
	case p.Content == "":
		return inputError("Content", "must not be empty")
	case len(p.Tags) > maxTags:
		return inputError("Tags", "are too many")
	case len(p.Examples) > MaxExamples:
		return inputError("Examples", "are too many")
	}
	for _, tag := range p.Tags {
		if err := checkText("Tags", tag, MaxID); err != nil {
			return err
		}
	}
	return firstError(checkText("Content", p.Content, MaxContent), checkText("Reason", p.Reason, MaxContent))
}

func (d Decision) validate() error {
	return checkIDs(field{"Decision.Actor", d.Actor}, field{"Decision.Reason", d.Reason})
}

func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
