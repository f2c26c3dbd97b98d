package feedback

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
)

// Feedback is a reviewer's decision about what an agent made, with what heed made of it. Its ID
// names the decision: the same decision counts once, however often it is recorded.
//
// Ids, names and tags are valid UTF-8 without NUL, of at most [evidence.MaxText] bytes. A list has
// at most 100 elements.
type Feedback struct {
	// ID names the decision. It is never empty. Derive it from the review, so that a retry counts
	// once.
	ID string `json:"decision_id"`
	// Gate is where it was made, such as "HITL-1". It is never empty. Only corrections of one gate
	// can contradict each other.
	Gate string `json:"gate_id"`
	// Agent is whose output was reviewed. It is never empty. A cluster belongs to one agent.
	Agent string `json:"agent"`
	// Epic is what the output was made for, and Task the same, more closely. Both may be empty.
	Epic string `json:"epic_id,omitempty"`
	Task string `json:"task_id,omitempty"`
	// Decision is what was decided about the output as a whole.
	Decision Decision `json:"decision"`
	// Reviewer is a person. The ids of people are compared in one form, which folds their case and
	// spellings that are the same to Unicode. Printable ASCII, and letters of the scripts in everyday
	// use, are accepted. An id is refused if it is empty, is padded with blanks or has two in a
	// row, mixes scripts in a word, looks like another one in ASCII, or has any other character.
	// Look-alikes of one script are two people.
	Reviewer string `json:"reviewer_id"`
	// At is when it was decided, from 1970 on and not more than [evidence.MaxSkew] ahead of the
	// clock. Microseconds are kept.
	At time.Time `json:"timestamp"`
	// Duration is how long the review took, in nanoseconds. It is never negative. 0 means not known.
	Duration time.Duration `json:"review_duration,omitempty"`
	// OutputSHA is the hash of what the agent made, and ApprovedSHA of what was approved. A rejection
	// has no ApprovedSHA.
	OutputSHA   string `json:"agent_output_sha,omitempty"`
	ApprovedSHA string `json:"approved_output_sha,omitempty"`
	// DiffPath is where the host keeps the correction. heed does not read it.
	DiffPath string `json:"correction_diff_path,omitempty"`
	// Summary states in a sentence what was wrong or, in an approval, what was right and should be
	// repeated: at most 500 characters. Comment is any further text, at most 10,000 characters.
	Summary string `json:"correction_summary,omitempty"`
	Comment string `json:"reviewer_comment,omitempty"`
	// Severity is how bad what was corrected is: "low" for taste, "medium" by default, "high" for
	// what must not happen often, or "critical" for what must not happen: it makes a rule a
	// "CONSTRAINT".
	Severity string `json:"severity,omitempty"`
	// Tags are any words. The known ones are "quality", "completeness", "scope", "style" and "other".
	Tags []string `json:"tags,omitempty"`
	// Private keeps the feedback out of learning. It is stored and counted in rates, and never
	// classified.
	Private bool `json:"private,omitempty"`
	// Rules are the ids of the learned rules in the agent's prompt: see [Injection].
	Rules []string `json:"injected_rules,omitempty"`

	// Evaluation and all below are for heed to set. [Service.Record] ignores them.
	Evaluation
	// Recorded is when it was first kept. What came after a rejection counts by it, and not by At.
	Recorded time.Time `json:"recorded,omitzero"`
	// Erased is when its content was deleted. The id is left, so that it does not come back.
	Erased   time.Time `json:"erased,omitzero"`
	Revision uint64    `json:"-"` // the store's; not in files
}

// The limits of texts, in characters (runes), and of lists.
const (
	maxSummary = 500
	maxComment = 10_000
	maxText    = 500 // of a rule
	maxList    = 100
)

// severities are all values of Feedback.Severity.
var severities = []string{"low", defaultSeverity, "high", critical}

const (
	defaultSeverity = "medium"
	critical        = "critical"
)

// A Decision is what a reviewer decided.
type Decision string

// The decisions.
const (
	// Approved means that the output was good as it was. Its text is what should be repeated.
	Approved Decision = "APPROVED"
	// Rejected means that the output was not used.
	Rejected Decision = "REJECTED"
	// ApprovedWithChanges means that a person corrected the output and used it.
	ApprovedWithChanges Decision = "APPROVED_WITH_CHANGES"
)

// kept reports whether it was not erased.
func (f *Feedback) kept() bool { return f.Erased.IsZero() }

// corrects reports whether the output was not good as it was.
func (f *Feedback) corrects() bool { return f.Decision != Approved }

// content returns the text that is compared: the summary and the comment, without what they
// quote of the learned rules.
func (f *Feedback) content() string {
	return strings.TrimSpace(unforged(f.Summary) + "\n" + unforged(f.Comment))
}

// normalize brings a feedback into the form in which it is kept and compared.
func (f *Feedback) normalize() {
	f.At = f.At.UTC().Truncate(time.Microsecond)
	f.Summary = strings.TrimSpace(f.Summary)
	if f.Severity == "" {
		f.Severity = defaultSeverity
	}
	f.Tags, f.Rules = text.Distinct(f.Tags), text.Distinct(f.Rules)
}

// validate reports the first fault of a normalized feedback. A decision that contradicts its own
// hashes is refused, because the producer has mixed something up.
func (f *Feedback) validate(now time.Time) error {
	err := cmp.Or(valid.Names(evidence.MaxText, "ID", f.ID, "Gate", f.Gate, "Agent", f.Agent),
		valid.Texts(evidence.MaxText, "Epic", f.Epic, "Task", f.Task, "OutputSHA", f.OutputSHA,
			"ApprovedSHA", f.ApprovedSHA, "DiffPath", f.DiffPath))
	if err != nil {
		return err
	}
	switch {
	case !slices.Contains([]Decision{Approved, Rejected, ApprovedWithChanges}, f.Decision):
		return valid.Input("Decision", "must be APPROVED, REJECTED or APPROVED_WITH_CHANGES")
	case !slices.Contains(severities, f.Severity):
		return valid.Input("Severity", "must be low, medium, high or critical")
	case f.Duration < 0:
		return valid.Input("Duration", "must not be negative")
	case f.Decision == Rejected && f.ApprovedSHA != "":
		return valid.Input("ApprovedSHA", "must be empty, because the output was rejected")
	case f.Decision == Approved && f.changed():
		return valid.Input("Decision", "is APPROVED, but what was approved is not what the agent made")
	}
	return cmp.Or(valid.Time("At", f.At, now), checkProse("Summary", f.Summary, maxSummary),
		checkProse("Comment", f.Comment, maxComment), checkList("Tags", f.Tags),
		checkList("Rules", f.Rules))
}

// changed reports whether the approved output differs from what the agent made.
func (f *Feedback) changed() bool {
	return f.DiffPath != "" || f.ApprovedSHA != "" && f.OutputSHA != "" &&
		f.ApprovedSHA != f.OutputSHA
}

// at returns an independent copy with a revision, because what a store returns is shared.
func (f Feedback) at(revision uint64) Feedback {
	f.Revision = revision
	f.Tags, f.Rules, f.Similar = slices.Clone(f.Tags), slices.Clone(f.Rules), slices.Clone(f.Similar)
	f.Apart, f.Contradicts = slices.Clone(f.Apart), slices.Clone(f.Contradicts)
	f.Near = slices.Clone(f.Near)
	return f
}
func (f Feedback) revision() uint64 { return f.Revision }

// same reports whether another one is the stored decision with the same content. Both are
// normalized. The reviewer may have been forgotten since. Times are compared by themselves, because
// equal times may differ in their locations.
func (f *Feedback) same(o *Feedback, key text.PseudonymKey) bool {
	a, b := *f, *o
	a.Reviewer, b.Reviewer = key.Of(a.Reviewer), key.Of(b.Reviewer)
	for _, x := range []*Feedback{&a, &b} {
		x.At, x.Evaluation, x.Recorded, x.Erased, x.Revision = time.Time{}, Evaluation{}, time.Time{},
			time.Time{}, 0
	}
	return f.At.Equal(o.At) && reflect.DeepEqual(a, b)
}

// checkList reports a list that is too long, or its first element that cannot name something.
func checkList(field string, names []string) error {
	return valid.List(field, names, maxList, evidence.MaxText)
}

// checkProse reports a text of more characters than the limit, or one that a store cannot keep.
func checkProse(field, value string, limit int) error {
	switch n := utf8.RuneCountInString(value); {
	case n > limit:
		return valid.Input(field, "has %d characters, may have %d", n, limit)
	case strings.IndexByte(value, 0) >= 0 || !utf8.ValidString(value):
		return valid.Input(field, "must be valid UTF-8 without NUL")
	}
	return nil
}
