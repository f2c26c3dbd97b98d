package answers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/answer"
)

// An ArmPart is a statement as far as it counts for the arm.
type ArmPart struct {
	// names the statement; two statements of one source that replace each other differ
	Of  string
	How answer.How
	// of a judgement or outcome; an implicit signal has its How, and Expected has "outcome"
	Channel string
	Source  string
	Kind    answer.SourceKind
	At      time.Time
	Value   float64 // how good the answer was, in [-1, 1]
	Trust   float64 // in the value, in (0, 1]
	// of all that the answer is worth, in [0, 1]; 0: another statement sets it aside
	Share float64
}

// What implicit signals are worth for an arm. Silence counts about a quarter of a thumb: its value
// times its trust. Outcomes with a trust below 0.3 do not count by default.
const (
	ignoredValue = -0.5
	ignoredTrust = 0.5
	silenceValue = 0.8
	silenceTrust = 0.3
)

// Parts returns the statements about the answer, each with its share in what the answer is worth.
// The table of the package contains the rules. Of several reported outcomes only the latest has a
// part. An expected outcome has no part if an outcome was reported, and a statement about a
// heuristic that did not answer has no part.
func Parts(a *answer.Answer) (all []ArmPart) {
	left := 1. // for what comes next
	add := func(s *answer.Statement, value, trust, share float64) {
		all = append(all, ArmPart{
			Of: fmt.Sprintf("%s %d", cmp.Or(s.How, "said"), s.N), How: s.How, Channel: armChannel(s),
			Source: s.By, Kind: s.Kind, At: s.At,
			Value: value, Trust: trust, Share: left * share,
		})
	}
	k := knownOf(a)
	if k.undo != nil {
		add(k.undo, -1, 1, 1)
		left = 0
	}
	parts := partsOf(k.judged)
	if len(parts) > 0 && k.outcome != nil {
		left /= 2
	}
	for i, s := range k.judged {
		add(s, Value(s), 1, parts[i])
	}
	if len(parts) > 0 && k.outcome == nil {
		left = 0
	}
	for _, s := range []*answer.Statement{k.outcome, k.expected} {
		if s != nil {
			value := s.Value
			if s.How == Expected {
				value = float64(sign(s))
			}
			add(s, value, cmp.Or(s.Sure, 1), 1)
			left = 0
		}
	}
	if k.ignored != nil {
		add(k.ignored, ignoredValue, ignoredTrust, 1)
		left = 0
	}
	if k.silence != nil {
		add(k.silence, silenceValue, silenceTrust, 1)
	}
	return all
}

// SetAside returns the statements that have no part at all, because another one has it: reported
// outcomes other than the latest. Their shares are 0.
func SetAside(a *answer.Answer) (all []ArmPart) {
	for _, s := range knownOf(a).aside {
		all = append(all, ArmPart{
			How: s.How, Channel: armChannel(s), Source: s.By, Kind: s.Kind, At: s.At, Value: s.Value,
		})
	}
	return all
}

// armChannel returns the channel by which the arm is credited: an implicit signal has one name,
// whichever strategy of package learning observed it.
func armChannel(s *answer.Statement) string {
	switch s.How {
	case Judged, Outcome:
		return s.Channel
	case Expected:
		return string(Outcome)
	default:
		return string(s.How)
	}
}

// known are the statements about the answer, as far as they are relevant to the arm.
type known struct {
	// undo is by the person who asked. Undos by others are among judged.
	undo, outcome, expected, ignored, silence *answer.Statement

	judged, aside []*answer.Statement
}

func knownOf(a *answer.Answer) (k known) {
	of := HeuristicOf(a)
	for i := range a.Statements {
		s := &a.Statements[i]
		if s.Of != of || s.Forgotten() {
			continue
		}
		switch s.How {
		case Judged:
			if countsForArm(s) {
				k.judged = append(k.judged, s)
			}
		case Outcome:
			switch {
			case !countsForArm(s):
			case k.outcome == nil:
				k.outcome = s
			case s.At.Before(k.outcome.At):
				k.aside = append(k.aside, s)
			default:
				k.aside, k.outcome = append(k.aside, k.outcome), s
			}
		case Undo:
			// If it is not known who asked, it may be anyone.
			if k.undo == nil && (a.Person == "" || s.By == "" || s.By == a.Person) {
				k.undo = s
			} else {
				k.judged = append(k.judged, s)
			}
		case Expected:
			if s.Worth != 0 {
				k.expected = s
			}
		case Ignored:
			k.ignored = s
		case Silence:
			if s.Worth > 0 && (a.Choice == nil || !a.Choice.IgnoreSilence) {
				k.silence = s
			}
		}
	}
	if k.outcome != nil { // a reported outcome goes before an expected one
		k.expected = nil
	}
	return k
}

// OutcomeOf returns the reported outcome that counts for the arm: the latest one that is neither
// withdrawn nor by a forgotten source. It is nil if no outcome counts.
func OutcomeOf(a *answer.Answer) *answer.Statement { return knownOf(a).outcome }

// partsOf returns the part of each judgement in all judgements. A person has a part by the greatest
// weight of their judgements, which share it by their weights. An undo takes the whole part.
func partsOf(judged []*answer.Statement) []float64 {
	undid := make(map[string]bool)
	for _, s := range judged {
		undid[s.By] = undid[s.By] || s.How == Undo
	}
	weight := func(s *answer.Statement) float64 {
		if undid[s.By] && s.How != Undo {
			return 0
		}
		return Weight(s)
	}
	type sum struct{ most, all float64 }
	people := make(map[string]sum)
	for _, s := range judged {
		p := people[s.By]
		people[s.By] = sum{max(p.most, weight(s)), p.all + weight(s)}
	}
	var all float64
	// in one order, so that the sum is the same again
	for _, name := range slices.Sorted(maps.Keys(people)) {
		all += people[name].most
	}
	parts := make([]float64, len(judged))
	for i, s := range judged {
		p := people[s.By]
		parts[i] = p.most / all * (weight(s) / p.all)
	}
	return parts
}

// WorthOf returns what the answer was worth, in [-1, 1], the channel that showed it, and whether
// any statement counts. The channel is the one with the greatest part. Several with equal parts are
// in the order of their names, joined by commas. An answer that took another one back is worth 0.
func WorthOf(a *answer.Answer) (value float64, channel string, known bool) {
	if len(a.Undoes) > 0 {
		return 0, "", false
	}
	parts := make(map[string]float64)
	var most float64
	for _, p := range Parts(a) {
		if p.Share > 0 {
			value, known = value+p.Share*p.Value, true
			parts[p.Channel] += p.Share
			most = max(most, parts[p.Channel])
		}
	}
	var channels []string
	for _, c := range slices.Sorted(maps.Keys(parts)) {
		if parts[c] > most-1e-9 {
			channels = append(channels, c)
		}
	}
	// The shares are rounded, so their sum may differ from 1 by a few units in the last place.
	return min(max(value, -1), 1), strings.Join(channels, ", "), known
}

// ForArm returns what counts for the arm: the parts with a share. If a fallback answered, no
// statement about its answer counts for the arm. If that was because the arm's model gave an
// unusable answer, this failure counts. If the model was unavailable, no statement counts.
func ForArm(a *answer.Answer) []ArmPart {
	switch {
	case a.Choice == nil || len(a.Undoes) > 0:
		return nil
	case a.Reply != nil && a.Reply.Spare && !a.Reply.Unusable:
		return nil
	case a.Reply != nil && a.Reply.Spare:
		return []ArmPart{{Of: "failed", Channel: "error", At: a.At, Value: -1, Trust: 1, Share: 1}}
	}
	return slices.DeleteFunc(Parts(a), func(p ArmPart) bool { return p.Share <= 0 })
}

// Changer returns the source of the last statement that counts for the arm, or that took one back.
// It is "" if that source is not known. Of statements of the same moment, the order of arrival may
// decide.
func Changer(a *answer.Answer) (person string) {
	var last time.Time
	note := func(by string, at time.Time) {
		if !at.Before(last) {
			person, last = by, at
		}
	}
	for _, p := range Parts(a) {
		if p.Share > 0 {
			note(p.Source, p.At)
		}
	}
	of := HeuristicOf(a)
	for i := range a.Statements {
		s := &a.Statements[i]
		if s.Of == of && stated(s) && withdraws(s) && !s.Forgotten() {
			note(s.By, s.At)
		}
	}
	return person
}
