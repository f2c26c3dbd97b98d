package answer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
)

// A Target is the part of an answer that a statement is about. "" means the whole answer.
type Target string

// The targets.
const (
	TargetRule     Target = "rule"     // that there was this answer in this situation
	TargetResponse Target = "response" // the words of the answer
)

// Valid reports whether the target is one of the above or "".
func (t Target) Valid() bool { return t == "" || t == TargetRule || t == TargetResponse }

// overlaps reports whether a statement about one target replaces a statement about the other.
func (t Target) overlaps(o Target) bool { return t == o || t == "" || o == "" }

// A SourceKind is the kind of source that makes a statement: "person" for somebody who uses,
// reviews or operates the agent, "instrument" for a machine that the host names, such as CI, a test
// suite or a payment, and "" if the host did not set it.
type SourceKind string

const (
	unknown    SourceKind = ""
	person     SourceKind = "person"
	instrument SourceKind = "instrument"
)

// KindOf returns what a source is if a host names its instruments: one of them is an instrument, ""
// is not known, and every other source is a person.
func KindOf(source string, instruments []string) SourceKind {
	switch {
	case source == "":
		return unknown
	case slices.Contains(instruments, source):
		return instrument
	default:
		return person
	}
}

// valid reports whether the kind is one of the above.
func (k SourceKind) valid() bool { return k == unknown || k == person || k == instrument }

// A How is the way in which a statement came about, for example by silence.
type How string

// The ways in which statements come about. A judgement and an outcome are stated; the others are
// observed, and are called implicit signals.
const (
	Judged   How = ""         // a person judged the answer
	Outcome  How = "outcome"  // a source reported what came of the answer
	Undo     How = "undo"     // a command took the answer back
	Expected How = "expected" // a message showed an outcome that was waited for
	Ignored  How = "ignored"  // the user went on without a word
	Silence  How = "silence"  // no reaction came in time
)

// implicit are the implicit signals. Of equally strong ones the first counts.
var implicit = [...]How{Undo, Expected, Ignored, Silence}

// A Statement is one fact about the quality of an answer. It must not be used concurrently.
type Statement struct {
	N       uint64     `json:"n"` // names the statement within the answer
	How     How        `json:"how,omitempty"`
	By      string     `json:"by,omitempty"` // who stated it, or did it
	Kind    SourceKind `json:"kind,omitempty"`
	Named   bool       `json:"named,omitempty"`   // By had a name, which may be forgotten since
	Session string     `json:"session,omitempty"` // where it was stated, if not in the answer's
	Channel string     `json:"channel,omitempty"`
	Target  Target     `json:"target,omitempty"`
	// Of is the heuristic that it is about. "" means the model's answer.
	Of string `json:"of,omitempty"`
	// Value is how good the answer was, in [-1, 1], and Weight multiplies what it counts, in [0,
	// 1e6]; 0 means 1. Value 0 withdraws a judgement.
	Value  float64 `json:"value,omitempty"`
	Weight float64 `json:"weight,omitempty"`
	// Scale and Score are set in place of Value where a judgement is a mark.
	Scale string `json:"scale,omitempty"`
	Score int    `json:"score,omitempty"`
	// Withdrawn reports that the source took its outcome back.
	Withdrawn bool      `json:"withdrawn,omitempty"`
	At        time.Time `json:"at"`
	Message   string    `json:"message,omitempty"` // the id of the message that took the answer back
	// Success reports whether the task of an outcome succeeded; nil if the outcome does not report
	// it.
	Success *bool  `json:"success,omitempty"`
	Spent   *Spent `json:"spent,omitempty"` // of an outcome

	// Worth is what the strategy of package learning makes of it: the magnitude, negative if it
	// speaks against the heuristic.
	Worth float64 `json:"worth,omitempty"`
	// About is the target of the strategy's signal, if it differs from Target.
	About Target `json:"about,omitempty"`
	// Credit is the observation that it made in the heuristic's evidence. nil: no observation.
	Credit *Credit `json:"credit,omitempty"`
	// Kept are the observations of statements that this one replaced while the heuristic was
	// locked, or had another wording. They still count, until the source states something else.
	Kept []Credit `json:"kept,omitempty"`

	// ID is set by package strategy for an outcome, and by package learning for a signal that the
	// host made. Statements with different IDs do not replace each other. Sure is the confidence of
	// an outcome, times its share if package strategy received it directly, in (0, 1]; 0 means 1.
	ID   string  `json:"id,omitempty"`
	Sure float64 `json:"sure,omitempty"`
}

// Forgotten reports whether the source was forgotten since. Such a statement does not count.
func (s *Statement) Forgotten() bool { return s.Named && s.By == "" }

// weight returns the weight, or 1 if it is not set.
func (s *Statement) weight() float64 { return cmp.Or(s.Weight, 1) }

// Scored returns the value of a mark on a scale of as many points, evenly spaced over [-1, 1]: of
// five marks, 1 is -1, 3 is 0 and 5 is 1.
func Scored(mark, points int) float64 { return 2*float64(mark-1)/float64(points-1) - 1 }

// points returns the highest mark of a scale, 0 for no scale.
func points(scale string) int {
	switch scale {
	case "user":
		return 3
	case "dev":
		return 5
	default:
		return 0
	}
}

// value returns how good the answer was, of a mark too.
func (s *Statement) value() float64 {
	if most := points(s.Scale); most > 0 {
		return Scored(s.Score, most)
	}
	return s.Value
}

// fraction returns how much of a full judgement this is: 1 for a thumb and for the highest and
// lowest mark.
func (s *Statement) fraction() float64 {
	x := s.value()
	return max(x, -x) * s.weight()
}

// counts reports whether a judgement or an outcome counts.
func (s *Statement) counts() bool {
	return !s.Withdrawn && s.Worth != 0 && !s.Forgotten()
}

// withdraws reports whether the source took back what it had judged or reported. An outcome of
// value 0 is no withdrawal: it was neither good nor bad.
func (s *Statement) withdraws() bool { return s.Withdrawn || s.How == Judged && s.value() == 0 }

// stated reports whether this is a judgement or an outcome, and no implicit signal.
func (s *Statement) stated() bool { return s.How == Judged || s.How == Outcome }

// countsForArm reports whether a judgement or an outcome counts for the arm.
func (s *Statement) countsForArm() bool { return !s.withdraws() && !s.Forgotten() }

// Validate reports the first fault as a [*heed.InputError].
func (s *Statement) Validate() error {
	if err := valid.Texts(evidence.MaxText, "Person", s.By, "Session", s.Session,
		"Channel", s.Channel, "HeuristicID", s.Of); err != nil {
		return err
	}
	switch most := points(s.Scale); {
	case !s.Target.Valid():
		return valid.Input("Target", "must be rule, response or empty")
	case !s.Kind.valid():
		return valid.Input("Kind", "must be person, instrument or empty")
	case !(s.Value >= -1 && s.Value <= 1):
		return valid.Input("Value", fmt.Sprintf("is %v, must be in [-1, 1]", s.Value))
	case !(s.Weight >= 0 && s.Weight <= evidence.MaxWeight):
		return valid.Input("Weight", fmt.Sprintf("is %v, must be in [0, 1e6]", s.Weight))
	case s.Scale != "" && most == 0:
		return valid.Input("Scale", "must be user, dev or empty")
	case s.Scale != "" && (s.Score < 1 || s.Score > most):
		return valid.Input("Score", fmt.Sprintf("is %d, must be 1 to %d", s.Score, most))
	case s.Scale == "" && s.Score != 0:
		return valid.Input("Score", "needs a scale")
	case s.Scale != "" && s.Value != 0:
		return valid.Input("Value", "must be 0 if there is a score")
	}
	return nil
}

// Bounds of the statements of one answer.
const (
	maxStated = 100 // judgements and outcomes
	MaxUndos  = 41  // undos of different people
)

// A Disposition is what [Answer.Say] did with a statement.
type Disposition string

// The dispositions.
const (
	Holds    Disposition = "holds"    // it is on the record
	Repeated Disposition = "repeated" // it was on the record already
	Outdated Disposition = "outdated" // its source stated something later
	Refused  Disposition = "refused"  // there is no room, or the answer was taken back already
)

// Say adds a statement, and returns the recorded statement: a new one, or for Repeated the one that
// is there. It also returns the removed statements: those that this one replaces, and one that made
// room. The caller takes back what they had counted.
func (a *Answer) Say(s Statement) (on Statement, gone []Statement, effect Disposition) {
	s.Named = s.By != ""
	for i := range a.Statements {
		o := &a.Statements[i]
		switch same, replaces := s.same(o), s.Replaces(o); {
		case replaces && same:
			return *o, nil, Repeated
		case replaces && o.At.After(s.At):
			return s, nil, Outdated
		case replaces && !s.stated(): // what was observed first holds
			return s, nil, Refused
		}
	}
	kept := make([]Statement, 0, len(a.Statements)+1)
	for _, o := range a.Statements {
		if s.Replaces(&o) {
			gone = append(gone, o)
			continue
		}
		kept = append(kept, o)
	}
	out, ok := room(kept, &s)
	if !ok {
		return s, nil, Refused
	}
	if out >= 0 {
		gone = append(gone, kept[out])
		kept = slices.Delete(kept, out, out+1)
	}
	a.Numbers++
	s.N = a.Numbers
	kept = append(kept, s)
	a.Statements = kept
	return s, gone, Holds
}

// Replaces reports whether a statement takes the place of another one, unless that is later.
func (s *Statement) Replaces(o *Statement) bool {
	if s.How != o.How || s.Of != o.Of || s.ID != o.ID {
		return false
	}
	switch s.How {
	case Judged:
		return s.from(o) && s.Channel == o.Channel && s.about().overlaps(o.about())
	case Outcome:
		return s.from(o) && s.Channel == o.Channel
	case Undo:
		return s.from(o)
	default:
		return true
	}
}

// about returns the target that counts.
func (s *Statement) about() Target { return cmp.Or(s.About, s.Target) }

// from reports whether both statements are of one source.
func (s *Statement) from(o *Statement) bool { return s.By == o.By && s.Named == o.Named }

// same reports whether a statement repeats another one.
func (s *Statement) same(o *Statement) bool {
	return s.At.Equal(o.At) && s.Session == o.Session && s.Target == o.Target &&
		s.value() == o.value() && s.Scale == o.Scale &&
		s.weight() == o.weight() && s.Withdrawn == o.Withdrawn &&
		equal(s.Success, o.Success) && equal(s.Spent, o.Spent)
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// room returns the place of the statement that must go to make room for another one, -1 if there is
// room, and false if no statement may go. A withdrawn statement goes first, and then the oldest one
// of the source with the most statements, so that no source takes the places of others. A statement
// that counts is never removed for one that takes no statement back.
func room(all []Statement, s *Statement) (place int, ok bool) {
	if s.How == Undo {
		n := 0
		for i := range all {
			if all[i].How == Undo && all[i].Of == s.Of {
				n++
			}
		}
		return -1, n < MaxUndos
	}
	many, n, who := make(map[string]int), 0, s.By
	for i := range all {
		if all[i].stated() {
			many[all[i].By]++
			n++
		}
	}
	if !s.stated() || n < maxStated {
		return -1, true
	}
	for i := range all {
		if o := &all[i]; o.stated() && !o.countsForArm() {
			return i, true
		}
	}
	if s.withdraws() {
		return -1, false
	}
	for i := range all {
		if o := &all[i]; o.stated() && many[o.By] > many[who] {
			who = o.By
		}
	}
	if many[who] < 2 && who != s.By {
		return -1, false
	}
	place = -1
	for i := range all {
		if o := &all[i]; o.stated() && o.By == who && (place < 0 || o.At.Before(all[place].At)) {
			place = i
		}
	}
	return place, true
}

// Edit changes the statement of a number. It has no effect if the statement was removed.
func (a *Answer) Edit(n uint64, change func(*Statement)) {
	if i := slices.IndexFunc(a.Statements, func(s Statement) bool { return s.N == n }); i >= 0 {
		a.Statements = slices.Clone(a.Statements)
		change(&a.Statements[i])
	}
}

// UndoneBy reports whether a person took the answer of a heuristic back.
func (a *Answer) UndoneBy(heuristic, person string) bool {
	return slices.ContainsFunc(a.Statements, func(s Statement) bool {
		return s.How == Undo && s.Of == heuristic && s.By == person && !s.Forgotten()
	})
}
