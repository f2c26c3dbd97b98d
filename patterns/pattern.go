package patterns

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
)

// A PatternID names a pattern: a way of doing things that outcomes are credited to. It is valid
// UTF-8 without NUL, not empty, and at most 507 bytes long. "anti-" and the id of a pattern name
// the anti-pattern that warns of it while it is inverted. Evidence on that is evidence on the
// pattern if the pattern is known, and does not add it.
type PatternID string

// antiPrefix begins the id of an anti-pattern. The id of the pattern that it warns of follows.
const antiPrefix = "anti-"

// The states of a pattern: see [Pattern].State.
const (
	candidate   = "candidate"
	established = "established"
	proven      = "proven"
	deprecated  = "deprecated"
	inverted    = "inverted"
)

// A Pattern is what a store keeps of a way of doing things. [Recorder.Standing] adds what it has
// earned. A Pattern is a plain value.
type Pattern struct {
	// ID names the pattern for good. [IDOf] makes one of a strategy's name.
	ID PatternID `json:"id"`
	// Anti marks an anti-pattern: what plans warn of, and not what they recommend. A host may define
	// one under any id that does not begin with "anti-".
	Anti bool `json:"anti,omitempty"`
	// Content is the advice that prompts contain, in at most 4,096 bytes.
	Content string `json:"content"`
	// Tags are any words by which [PatternQuery] finds it, at most 100.
	Tags []string `json:"tags,omitempty"`
	// Examples are the tasks that were credited to it last, at most 10. The newest is the last.
	Examples []string `json:"examples,omitempty"`
	// Reason is why an anti-pattern is one.
	Reason string `json:"reason,omitempty"`
	// Twin is the anti-pattern that warns of this pattern because it was inverted; or the pattern
	// that this anti-pattern warns of. Empty: it has no twin.
	Twin PatternID `json:"twin,omitempty"`

	// State is its state when it was last stored. Unknown states survive.
	//
	//   - "candidate": there are fewer than three observations. No plan has it.
	//   - "established": it has a record, and plans recommend it.
	//   - "proven": it has a good record, and recently so. Plans recommend it first.
	//   - "deprecated": it did harm too often.
	//   - "inverted": it failed so often that its anti-pattern warns of it. Each anti-pattern is
	//     "inverted", too.
	State string `json:"state"`
	// Override is the state that somebody gave it by hand, "proven" or "deprecated", and By is who
	// did. It holds until [Recorder.Reset]. Empty: it was not.
	Override string `json:"override,omitempty"`
	By       By     `json:"by,omitzero"`
	// Base are the observations that it had when it was last rehabilitated. They no longer count
	// towards an inversion.
	Base Observations `json:"base"`
	// Inverted are the observations that it had when it was last inverted.
	Inverted Observations `json:"inverted"`

	// CreatedAt is when it was defined or first credited, and UpdatedAt when it last changed or had
	// evidence.
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// The limits of texts and lists, in bytes unless noted.
const (
	maxID       = 512
	maxContent  = 4096
	maxExamples = 10
	maxTags     = 100
)

// Observations count the successes and failures of a pattern. They do not fade.
type Observations struct {
	// Successes are helpful outcomes and ratings, Failures harmful ones. Neutral ones do not count.
	Successes uint64 `json:"successes"`
	Failures  uint64 `json:"failures"`
}

// total returns how many observations there are.
func (c Observations) total() uint64 { return c.Successes + c.Failures }

// minus returns the counts that came after earlier ones. It returns zero counts if evidence was
// taken back since.
func (c Observations) minus(earlier Observations) Observations {
	return Observations{c.Successes - min(c.Successes, earlier.Successes),
		c.Failures - min(c.Failures, earlier.Failures)}
}

// atMost returns the lesser of both counts. Earlier counts shrink like the present ones, because
// with more people one of them counts for less.
func (c Observations) atMost(o Observations) Observations {
	return Observations{min(c.Successes, o.Successes), min(c.Failures, o.Failures)}
}

// A By is who wants a change, and why. Neither may be empty. The store's audit keeps both.
type By struct {
	// Actor is a person's id. A store finds and forgets the person by it.
	Actor string `json:"actor"`
	// Reason is in the person's words. It may name other people, so it is in no prompt.
	Reason string `json:"reason"`
}

// A Transition is a change of a pattern's state.
type Transition struct {
	// ID names the transition. It is stored once, however often its step runs.
	ID string `json:"id"`
	// Pattern is the pattern whose state changed.
	Pattern PatternID `json:"pattern"`
	// From and To are its states before and after. They are the same if a person confirmed its state.
	From string `json:"from"`
	To   string `json:"to"`
	// At is when it happened, by the recorder's clock.
	At time.Time `json:"at"`
	// Actor is the person who wanted it, and empty if the evidence caused it.
	Actor string `json:"actor,omitempty"`
	// Cause describes it for people, for example "Failed 3/3 times (100% failure rate)".
	Cause string `json:"cause"`
}

// clone returns an independent copy of the pattern.
func (p Pattern) clone() Pattern {
	p.Tags, p.Examples = slices.Clone(p.Tags), slices.Clone(p.Examples)
	return p
}

// addExample adds a task that is not there yet.
func (p *Pattern) addExample(task string) {
	if !slices.Contains(p.Examples, task) {
		p.Examples = append(p.Examples, task)
		p.Examples = p.Examples[max(len(p.Examples)-maxExamples, 0):]
	}
}

// validate reports the first fault of a pattern.
func (p *Pattern) validate() error {
	return cmp.Or(checkID("ID", p.ID), valid.Names(maxID, "ID", string(p.ID), "State", p.State),
		valid.Names(maxContent, "Content", p.Content), valid.Texts(maxContent, "Reason", p.Reason),
		valid.List("Tags", p.Tags, maxTags, maxID))
}

// checkID reports that no pattern may have this id. An id leaves room for the prefix of its
// anti-pattern.
func checkID(field string, id PatternID) error {
	switch {
	case isAnti(id):
		return valid.Input(field, `names the pattern %q, but no pattern's id begins with "anti-"`, id)
	case len(id)+len(antiPrefix) > maxID:
		return valid.Input(field, `must leave room for "anti-"`)
	}
	return nil
}

// checkIDs reports the first fault of the patterns that evidence names. It may name anti-patterns.
func checkIDs(ids []PatternID) error {
	err := valid.List("Patterns", ids, maxNames, maxID)
	for i, id := range ids {
		err = cmp.Or(err, checkID(fmt.Sprintf("Patterns[%d]", i), rootOf(id)))
	}
	return err
}

// isAnti reports whether an id has the prefix of the anti-patterns of inverted patterns.
func isAnti(id PatternID) bool { return strings.HasPrefix(string(id), antiPrefix) }

// rootOf returns the id of the pattern that an anti-pattern of this id warns of. Other ids stay.
func rootOf(id PatternID) PatternID {
	if root, anti := strings.CutPrefix(string(id), antiPrefix); anti && root != "" {
		return PatternID(root)
	}
	return id
}

// validate reports a name or a reason that is missing, because the audit must have both.
func (b By) validate() error {
	return valid.Names(maxID, "By.Actor", b.Actor, "By.Reason", b.Reason)
}

// maxDetail is how many runes of a detail, of a description and of the texts of an error are kept.
const maxDetail = 2000

// tame makes text fit for every store: valid UTF-8 without NUL, of at most maxDetail runes. The
// last rune of a text that was cut is "…".
func tame(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if utf8.RuneCountInString(text) > maxDetail {
		return string([]rune(text)[:maxDetail-1]) + "…"
	}
	return text
}

// fillTime makes a time that is not set now.
func fillTime(at *time.Time, now time.Time) {
	if at.IsZero() {
		*at = now
	}
}

// stored is a time as stores keep it.
func stored(t time.Time) time.Time { return evidence.InstantOf(t).Time() }
