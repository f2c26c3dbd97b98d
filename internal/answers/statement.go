package answers

import (
	"cmp"
	"slices"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
)

// ValidTarget reports whether the target is one of the above or "".
func ValidTarget(t answer.Target) bool {
	return t == "" || t == answer.TargetRule || t == answer.TargetResponse
}

// overlaps reports whether a statement about one target replaces a statement about the other.
func overlaps(t answer.Target, o answer.Target) bool { return t == o || t == "" || o == "" }

const (
	unknown    answer.SourceKind = ""
	person     answer.SourceKind = "person"
	instrument answer.SourceKind = "instrument"
)

// KindOf returns what a source is if a host names its instruments: one of them is an instrument, ""
// is not known, and every other source is a person.
func KindOf(source string, instruments []string) answer.SourceKind {
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
func validKind(k answer.SourceKind) bool { return k == unknown || k == person || k == instrument }

// The ways in which statements come about. A judgement and an outcome are stated; the others are
// observed, and are called implicit signals.
const (
	Judged   answer.How = ""         // a person judged the answer
	Outcome  answer.How = "outcome"  // a source reported what came of the answer
	Undo     answer.How = "undo"     // a command took the answer back
	Expected answer.How = "expected" // a message showed an outcome that was waited for
	Ignored  answer.How = "ignored"  // the user went on without a word
	Silence  answer.How = "silence"  // no reaction came in time
)

// implicit are the implicit signals. Of equally strong ones the first counts.
var implicit = [...]answer.How{Undo, Expected, Ignored, Silence}

// Weight returns the weight, or 1 if it is not set.
func Weight(s *answer.Statement) float64 { return cmp.Or(s.Weight, 1) }

// Scored returns the value of a mark on a scale of as many points, evenly spaced over [-1, 1]: of
// five marks, 1 is -1, 3 is 0 and 5 is 1.
func Scored(mark, points int) float64 { return 2*float64(mark-1)/float64(points-1) - 1 }

// points are the highest marks of scales.
var points = map[string]int{"user": 3, "dev": 5}

// Value returns how good the answer was, of a mark and of an undo too.
func Value(s *answer.Statement) float64 {
	if s.How == Undo {
		return -1
	}
	if most := points[s.Scale]; most > 0 {
		return Scored(s.Score, most)
	}
	return s.Value
}

// fraction returns how much of a full judgement this is: 1 for a thumb and for the highest and
// lowest mark.
func fraction(s *answer.Statement) float64 {
	x := Value(s)
	return max(x, -x) * Weight(s)
}

// counts reports whether a judgement or an outcome counts.
func counts(s *answer.Statement) bool {
	return !s.Withdrawn && s.Worth != 0 && !s.Forgotten()
}

// withdraws reports whether the source took back what it had judged or reported. An outcome of
// value 0 is no withdrawal: it was neither good nor bad.
func withdraws(s *answer.Statement) bool { return s.Withdrawn || s.How == Judged && Value(s) == 0 }

// stated reports whether this is a judgement or an outcome, and no implicit signal.
func stated(s *answer.Statement) bool { return s.How == Judged || s.How == Outcome }

// countsForArm reports whether a judgement or an outcome counts for the arm.
func countsForArm(s *answer.Statement) bool { return !withdraws(s) && !s.Forgotten() }

// MaxWeight is the greatest weight of a statement. People share what an answer is worth for its arm
// by their weights, so with a greater one little is left of what others have stated, and the limits
// on people no longer hold.
const MaxWeight = 10

// Validate reports the first fault as a [*heed.InputError].
func Validate(s *answer.Statement) error {
	if err := valid.Texts(evidence.MaxText, "Person", s.By, "Session", s.Session,
		"Channel", s.Channel, "HeuristicID", s.Of); err != nil {
		return err
	}
	switch most := points[s.Scale]; {
	case !ValidTarget(s.Target):
		return valid.Input("Target", "must be rule, response or empty")
	case !validKind(s.Kind):
		return valid.Input("Kind", "must be person, instrument or empty")
	case !(s.Value >= -1 && s.Value <= 1):
		return valid.Input("Value", "is %v, must be in [-1, 1]", s.Value)
	case !(s.Weight >= 0 && s.Weight <= MaxWeight):
		return valid.Input("Weight", "is %v, must be in [0, 10]", s.Weight)
	case s.Scale != "" && most == 0:
		return valid.Input("Scale", "must be user, dev or empty")
	case s.Scale != "" && (s.Score < 1 || s.Score > most):
		return valid.Input("Score", "is %d, must be 1 to %d", s.Score, most)
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

// A Disposition is what [Say] did with a statement.
type Disposition string

// The dispositions.
const (
	Holds    Disposition = "holds"    // it is on the record
	Repeated Disposition = "repeated" // it was on the record already
	Outdated Disposition = "outdated" // its source stated something later
	Refused  Disposition = "refused"  // there is no room, or the answer was taken back already
)

// Say adds a statement, and returns the recorded statement: the new one, or for Repeated the
// earlier one. If a source repeats a statement later, its moment moves, and its number and credit
// stay. Say also returns the removed statements: replaced ones, and an old one if there were too
// many. The caller takes back what they had counted.
func Say(a *answer.Answer, s answer.Statement) (
	on answer.Statement, gone []answer.Statement, effect Disposition,
) {
	s.Named = s.By != ""
	for i := range a.Statements {
		o := &a.Statements[i]
		switch same, replaces := same(&s, o), Replaces(&s, o); {
		case !replaces:
		case same && s.At.Equal(o.At):
			return *o, nil, Repeated
		case o.At.After(s.At):
			return s, nil, Outdated
		case !stated(&s): // what was observed first holds
			return s, nil, Refused
		case same && s.Worth == o.Worth && s.Kind == o.Kind && about(&s) == about(o):
			a.Statements = slices.Clone(a.Statements)
			a.Statements[i].At = s.At
			a.Numbers++ // so that the record shows a change
			return a.Statements[i], nil, Repeated
		}
	}
	kept := make([]answer.Statement, 0, len(a.Statements)+1)
	for _, o := range a.Statements {
		if Replaces(&s, &o) {
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
func Replaces(s, o *answer.Statement) bool {
	if s.How != o.How || s.Of != o.Of || s.ID != o.ID {
		return false
	}
	switch s.How {
	case Judged:
		return from(s, o) && s.Channel == o.Channel && overlaps(about(s), about(o))
	case Outcome:
		return from(s, o) && s.Channel == o.Channel
	case Undo:
		return from(s, o)
	default:
		return true
	}
}

// BehindFuture reports whether a statement that is made now would replace another one, if that were
// not ahead of the clock by more than clocks differ. It reports false for what the source repeats.
func BehindFuture(a *answer.Answer, s answer.Statement, now time.Time) bool {
	s.Named = s.By != ""
	isAhead := func(o answer.Statement) bool {
		return o.At.After(now.Add(evidence.MaxSkew)) && Replaces(&s, &o) && !same(&s, &o)
	}
	return s.At.After(now.Add(-evidence.MaxSkew)) && slices.ContainsFunc(a.Statements, isAhead)
}

// about returns the target that counts.
func about(s *answer.Statement) answer.Target { return cmp.Or(s.About, s.Target) }

// from reports whether both statements are of one source.
func from(s, o *answer.Statement) bool { return s.By == o.By && s.Named == o.Named }

// same reports whether a statement repeats another one, at whatever moment.
func same(s, o *answer.Statement) bool {
	return s.Session == o.Session && s.Target == o.Target &&
		Value(s) == Value(o) && s.Scale == o.Scale &&
		Weight(s) == Weight(o) && s.Withdrawn == o.Withdrawn &&
		equal(s.Success, o.Success) && equal(s.Spent, o.Spent)
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// room returns the place of the statement that must go to make room for another one, -1 if there is
// room, and false if no statement may go. A withdrawn statement goes first, and then the oldest one
// of the source with the most statements, so that no source takes the places of others. A statement
// that counts is never removed for one that takes no statement back.
func room(all []answer.Statement, s *answer.Statement) (place int, ok bool) {
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
		if stated(&all[i]) {
			many[all[i].By]++
			n++
		}
	}
	if !stated(s) || n < maxStated {
		return -1, true
	}
	for i := range all {
		if o := &all[i]; stated(o) && !countsForArm(o) {
			return i, true
		}
	}
	if withdraws(s) {
		return -1, false
	}
	for i := range all {
		if o := &all[i]; stated(o) && many[o.By] > many[who] {
			who = o.By
		}
	}
	if many[who] < 2 && who != s.By {
		return -1, false
	}
	place = -1
	for i := range all {
		if o := &all[i]; stated(o) && o.By == who && (place < 0 || o.At.Before(all[place].At)) {
			place = i
		}
	}
	return place, true
}

// Edit changes the statement of a number. It has no effect if the statement was removed.
func Edit(a *answer.Answer, n uint64, change func(*answer.Statement)) {
	if i := slices.IndexFunc(a.Statements, func(s answer.Statement) bool {
		return s.N == n
	}); i >= 0 {
		a.Statements = slices.Clone(a.Statements)
		change(&a.Statements[i])
	}
}

// TookBack reports whether a person took the answer of a heuristic back.
func TookBack(a *answer.Answer, heuristic, person string) bool {
	return slices.ContainsFunc(a.Statements, func(s answer.Statement) bool {
		return s.How == Undo && s.Of == heuristic && s.By == person && !s.Forgotten()
	})
}
