package answers_test

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

// An oracle computes from the whole history what the tables of the package promise. It is slow, and
// keeps everything that was stated, in the order of arrival. Bounds do not apply to it.
type oracle struct {
	heuristic string // the one that answered
	history   []answer.Statement
	forgotten map[string]bool // sources
	deaf      bool            // silence is nothing to the arm
}

// add is the arrival of a statement. It does not count the same statement twice.
func (o *oracle) add(s answer.Statement) {
	s.Named = s.By != ""
	for _, t := range o.history {
		if o.holds(t) && reflect.DeepEqual(s, t) {
			return
		}
	}
	o.history = append(o.history, s)
}

// holds reports whether a statement is the last word of its source.
func (o *oracle) holds(s answer.Statement) bool {
	return slices.ContainsFunc(o.latest(), func(t answer.Statement) bool {
		return reflect.DeepEqual(s, t)
	})
}

func stated(s answer.Statement) bool { return s.How == answers.Judged || s.How == answers.Outcome }

func overlap(a, b answer.Target) bool { return a == b || a == "" || b == "" }

func sameSource(a, b answer.Statement) bool {
	return a.How == b.How && a.By == b.By && (a.By != "") == (b.By != "") && a.Of == b.Of &&
		a.Channel == b.Channel
}

// latest returns the judgements and outcomes that nothing later of their source replaces, by
// arrival.
func (o *oracle) latest() (all []answer.Statement) {
	for i, s := range o.history {
		if !stated(s) {
			continue
		}
		replaced := false
		for j, t := range o.history {
			later := t.At.After(s.At) || t.At.Equal(s.At) && j > i
			if i != j && sameSource(s, t) && overlap(s.Target, t.Target) && later {
				replaced = true
			}
		}
		if !replaced {
			all = append(all, s)
		}
	}
	return all
}

// holding returns what holds and withdraws nothing, of sources that are not forgotten.
func (o *oracle) holding() (all []answer.Statement) {
	for _, s := range o.latest() {
		value, _ := valueOf(s)
		if !s.Withdrawn && (s.How == answers.Outcome || value != 0) && !o.forgotten[s.By] {
			all = append(all, s)
		}
	}
	return all
}

func valueOf(s answer.Statement) (value, weight float64) {
	value, weight = s.Value, s.Weight
	switch s.Scale {
	case "user":
		value = float64(s.Score - 2)
	case "dev":
		value = float64(s.Score-3) / 2
	}
	if weight == 0 {
		weight = 1
	}
	return value, weight
}

// first returns the implicit signal of a kind about a heuristic that arrived first.
func (o *oracle) first(how answer.How, of string) *answer.Statement {
	for i, s := range o.history {
		if s.How == how && s.Of == of {
			return &o.history[i]
		}
	}
	return nil
}

// A received is what the first table says of a heuristic.
type received struct {
	praises, complaints           int
	praise, complaint             float64 // magnitudes
	praiseShare, complaintShare   float64
	undo, expected, ignored, idle *answer.Statement
}

func (o *oracle) received(of string) (r received) {
	for _, s := range o.holding() {
		value, weight := valueOf(s)
		share := math.Abs(value) * weight
		switch {
		case s.Of != of:
		case s.Worth > 0:
			r.praises, r.praise, r.praiseShare = r.praises+1, r.praise+s.Worth, r.praiseShare+share
		case s.Worth < 0:
			r.complaints, r.complaint = r.complaints+1, r.complaint-s.Worth
			r.complaintShare += share
		}
	}
	r.undo, r.expected = o.undo(of), o.first(answers.Expected, of)
	if r.undo == nil { // of forgotten people alone
		r.undo = o.first(answers.Undo, of)
	}
	r.ignored, r.idle = o.first(answers.Ignored, of), o.first(answers.Silence, of)
	return r
}

func speaksAgainst(s *answer.Statement) bool { return s != nil && s.Worth < 0 }
func speaksFor(s *answer.Statement) bool     { return s != nil && s.Worth > 0 }

// implicit is the first table's second column.
func (r received) implicit(independent bool) answer.How {
	praised, blamed := r.praises > 0 && !independent, r.complaints > 0 && !independent
	success := speaksFor(r.expected)
	var against []*answer.Statement
	if speaksAgainst(r.undo) {
		against = append(against, r.undo)
	}
	if !praised || blamed {
		if speaksAgainst(r.expected) {
			against = append(against, r.expected)
		}
		if speaksAgainst(r.ignored) && !success {
			against = append(against, r.ignored)
		}
		if speaksAgainst(r.idle) && !success {
			against = append(against, r.idle)
		}
	}
	if len(against) > 0 {
		strongest := against[0]
		for _, s := range against[1:] {
			if s.Worth < strongest.Worth {
				strongest = s
			}
		}
		return strongest.How
	}
	if blamed {
		return ""
	}
	for _, s := range []*answer.Statement{r.undo, r.expected, r.ignored} {
		if speaksFor(s) {
			return s.How
		}
	}
	if r.idle != nil && !praised && r.undo == nil && r.expected == nil && r.ignored == nil {
		return answers.Silence
	}
	return ""
}

func (r received) sign(how answer.How) int {
	s := map[answer.How]*answer.Statement{
		answers.Undo: r.undo, answers.Expected: r.expected, answers.Ignored: r.ignored,
		answers.Silence: r.idle,
	}[how]
	switch {
	case speaksFor(s):
		return 1
	case speaksAgainst(s):
		return -1
	}
	return 0
}

// fate is the first table's third column.
func (r received) fate(independent bool) int {
	sign := r.sign(r.implicit(independent))
	switch {
	case sign < 0 || independent:
		return sign
	case r.praises > 0 && r.complaints > 0:
		return 0
	case r.complaints > 0:
		return -1
	case r.praises > 0:
		return 1
	}
	return sign
}

// A piece is a statement with its part of what the answer was worth.
type piece struct {
	statement           answer.Statement
	value, trust, share float64
}

// pieces is the second table.
func (o *oracle) pieces() (all []piece) {
	var judged, told []answer.Statement
	for _, s := range o.holding() {
		switch {
		case s.Of != o.heuristic:
		case s.How == answers.Judged:
			judged = append(judged, s)
		default:
			told = append(told, s)
		}
	}
	var undo *answer.Statement
	undid := make(map[string]bool)
	for i, s := range o.history {
		switch {
		case s.How != answers.Undo || s.Of != o.heuristic || o.forgotten[s.By] || undid[s.By]:
		case undo == nil && (s.By == "" || s.By == "asker"):
			undid[s.By], undo = true, &o.history[i]
		default: // it is a judgement of -1
			undid[s.By] = true
			s.Value = -1
			judged = append(judged, s)
		}
	}
	expected, ignored, idle := o.present(answers.Expected), o.present(answers.Ignored),
		o.present(answers.Silence)

	left := 1.
	take := func(part float64) float64 {
		taken := left * part
		left -= taken
		return taken
	}
	if undo != nil {
		all = append(all, piece{*undo, -1, 1, take(1)})
	}
	reserve := 1.
	if len(told) > 0 && len(judged) > 0 {
		reserve = 0.5
	}
	of := take(reserve * min(1, float64(len(judged))))
	parts := partsOf(judged)
	for i, s := range judged {
		value, _ := valueOf(s)
		all = append(all, piece{s, value, 1, of * parts[i]})
	}
	for i, s := range told { // the latest one counts
		if !slices.ContainsFunc(told[i+1:],
			func(t answer.Statement) bool { return !t.At.Before(s.At) }) &&
			!slices.ContainsFunc(told[:i],
				func(t answer.Statement) bool { return t.At.After(s.At) }) {
			all = append(all, piece{s, s.Value, 1, take(1)})
		}
	}
	if expected != nil && expected.Worth != 0 && len(told) == 0 {
		all = append(all, piece{*expected, math.Copysign(1, expected.Worth), 1, take(1)})
	}
	if ignored != nil {
		all = append(all, piece{*ignored, -0.5, 0.5, take(1)})
	}
	if speaksFor(idle) && !o.deaf {
		all = append(all, piece{*idle, 0.8, 0.3, take(1)})
	}
	return all
}

// present returns the first implicit signal of a kind about the heuristic that answered, unless its
// source is forgotten.
func (o *oracle) present(how answer.How) *answer.Statement {
	s := o.first(how, o.heuristic)
	if s == nil || o.forgotten[s.By] {
		return nil
	}
	return s
}

// undo returns the first undo of somebody who is not forgotten.
func (o *oracle) undo(of string) *answer.Statement {
	for i, s := range o.history {
		if s.How == answers.Undo && s.Of == of && !o.forgotten[s.By] {
			return &o.history[i]
		}
	}
	return nil
}

// partsOf divides judgements by people and weights. Of a person who took the answer back, only that
// has a part.
func partsOf(judged []answer.Statement) []float64 {
	greatest, sum := make(map[string]float64), make(map[string]float64)
	weights := make([]float64, len(judged))
	for i, s := range judged {
		if s.How == answers.Undo || !slices.ContainsFunc(judged, func(t answer.Statement) bool {
			return t.By == s.By && t.How == answers.Undo
		}) {
			_, weights[i] = valueOf(s)
		}
		greatest[s.By] = max(greatest[s.By], weights[i])
		sum[s.By] += weights[i]
	}
	var people float64
	for _, by := range slices.Sorted(maps.Keys(greatest)) {
		people += greatest[by]
	}
	parts := make([]float64, len(judged))
	for i, s := range judged {
		parts[i] = greatest[s.By] / people * (weights[i] / sum[s.By])
	}
	return parts
}

func (o *oracle) worth() (value float64, known bool) {
	for _, p := range o.pieces() {
		if p.share > 0 {
			value, known = value+p.share*p.value, true
		}
	}
	return value, known
}
