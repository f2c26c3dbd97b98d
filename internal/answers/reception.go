package answers

import (
	"cmp"
	"math"
	"slices"

	"github.com/heedhq/heed/answer"
)

// A Reception is all that is known of how a heuristic's answer was received, or the model's. It
// follows from the statements alone, so their order does not matter. It must not be used
// concurrently.
type Reception struct {
	Praise, Complaint sum // judgements and outcomes that hold
	// The implicit signals; nil if there was no such signal. Undo is the first undo by a person who
	// is not forgotten.
	Undo, Expected, Ignored, Silence *answer.Statement

	of  string             // the heuristic
	all []answer.Statement // of the answer
}

// A sum adds up judgements of one sign.
type sum struct {
	N      int
	Weight float64 // of their magnitudes
	Share  float64 // of their fractions of a full judgement: value times weight
}

// ReceptionOf collects the statements about the answer of a heuristic, or of the model for "".
func ReceptionOf(a *answer.Answer, heuristic string) (r Reception) {
	r.of, r.all = heuristic, a.Statements
	for i := range a.Statements {
		s := &a.Statements[i]
		if s.Of != heuristic {
			continue
		}
		if stated(s) {
			r.add(s)
			continue
		}
		if at := r.at(s.How); at != nil && precedes(s, *at) {
			*at = s
		}
	}
	return r
}

// precedes reports whether an implicit signal is taken before another one of its kind.
func precedes(s, o *answer.Statement) bool {
	if o == nil || s.Forgotten() != o.Forgotten() {
		return o == nil || o.Forgotten()
	}
	return s.N < o.N
}

func (r *Reception) add(s *answer.Statement) {
	to, worth := &r.Praise, s.Worth
	if worth < 0 {
		to, worth = &r.Complaint, -worth
	}
	if counts(s) {
		*to = sum{to.N + 1, to.Weight + worth, to.Share + fraction(s)}
	}
}

// at returns the place of an implicit signal, nil for any other kind of statement.
func (r *Reception) at(how answer.How) **answer.Statement {
	switch how {
	case Undo:
		return &r.Undo
	case Expected:
		return &r.Expected
	case Ignored:
		return &r.Ignored
	case Silence:
		return &r.Silence
	default:
		return nil
	}
}

// Of returns the implicit signal of a kind, or nil.
func (r *Reception) Of(how answer.How) *answer.Statement {
	if at := r.at(how); at != nil {
		return *at
	}
	return nil
}

// sign is 1 for a positive signal, -1 for a negative one, and 0 for a signal without worth or no
// signal.
func sign(s *answer.Statement) int {
	switch {
	case s == nil || s.Worth == 0:
		return 0
	case s.Worth > 0:
		return 1
	default:
		return -1
	}
}

// Sign returns the sign of the implicit signal of a kind: 1, 0 or -1.
func (r *Reception) Sign(how answer.How) int { return sign(r.Of(how)) }

// Observed reports whether something other than silence was observed.
func (r *Reception) Observed() bool {
	return r.Undo != nil || r.Expected != nil || r.Ignored != nil
}

// Known reports whether there is any statement.
func (r *Reception) Known() bool {
	return r.Observed() || r.Silence != nil || r.Praise.N+r.Complaint.N > 0
}

// Implicit returns the implicit signal that counts, or "" if no signal counts: see the table of the
// package. If independent, judgements do not displace it, because the Learning Strategy Interface
// design counts both.
func (r *Reception) Implicit(independent bool) (how answer.How) {
	praised, blamed := r.Praise.N > 0 && !independent, r.Complaint.N > 0 && !independent
	for _, h := range implicit {
		it := r.Of(h)
		switch {
		case sign(it) >= 0,
			h != Undo && praised && !blamed,
			(h == Ignored || h == Silence) && sign(r.Expected) > 0:
			continue
		case how == "" || it.Worth < r.Of(how).Worth:
			how = h
		}
	}
	if how != "" || blamed {
		return how
	}
	for _, h := range implicit[:3] {
		if sign(r.Of(h)) > 0 {
			return h
		}
	}
	if r.Silence != nil && !praised && !r.Observed() {
		return Silence
	}
	return ""
}

// Fate returns how the answer was received: 1 well, -1 badly, and 0 if that is not known or people
// disagree.
func (r *Reception) Fate(independent bool) int {
	sign := r.Sign(r.Implicit(independent))
	praised, blamed := r.Praise.N > 0, r.Complaint.N > 0
	switch {
	case sign < 0 || independent:
		return sign
	case praised && blamed:
		return 0
	case blamed:
		return -1
	case praised:
		return 1
	default:
		return sign
	}
}

// agreement returns what an answer of the model is worth for a heuristic that was compared with it
// and that the model had not seen. Negative worth speaks against the heuristic. An accepted answer
// is worth agreement for a heuristic that agrees. An accepted or rejected answer is worth
// disagreement against one that does not, because complaints about other answers must not help a
// heuristic.
func (r *Reception) agreement(agrees, independent bool, agreement, disagreement float64) float64 {
	how := r.Implicit(independent)
	implied, sign := r.Fate(independent), r.Sign(how)
	share := 1.
	if sign <= 0 { // if it is accepted, then by praise alone
		share = min(r.Praise.Share, 1)
	}
	switch {
	case !agrees && (r.Complaint.N > 0 || r.Observed()):
		return -disagreement
	case !agrees && implied > 0:
		return -disagreement * share
	case agrees && implied > 0:
		return agreement * share
	case agrees && implied < 0: // the heuristic would have given the same answer
		worth := r.Complaint.Weight
		if sign < 0 {
			worth -= r.Of(how).Worth
		}
		return -min(worth, disagreement)
	default:
		return 0
	}
}

// Decider returns the statement that decides [Reception.Fate], the first one that was made if there
// are several. It is nil if they cancel out, or if everybody who decided it is forgotten.
func (r *Reception) Decider(independent bool) *answer.Statement {
	implied, how := r.Fate(independent), r.Implicit(independent)
	for _, s := range r.inTime() {
		judges := !independent && stated(s) && counts(s)
		if implied != 0 && sign(s) == implied && (judges || s == r.Of(how)) && !s.Forgotten() {
			return s
		}
	}
	return nil
}

// inTime returns the statements about the heuristic in the order in which they were made, whatever
// the order of their arrival.
func (r *Reception) inTime() (all []*answer.Statement) {
	for i := range r.all {
		if s := &r.all[i]; s.Of == r.of {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *answer.Statement) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.By, b.By))
	})
	return all
}

// AgreementParts returns what an answer of the model is worth for a heuristic that was compared
// with it and that the model had not seen, divided among the sources whose statements make it so,
// each at most once, because it is their evidence. In the order in which they were made, statements
// have the part that they would be worth alone, until the worth is used up. The part of a forgotten
// source is left out.
func (r *Reception) AgreementParts(
	agrees, independent bool, agreement, disagreement float64,
) (parts []answer.Credit) {
	worth := r.agreement(agrees, independent, agreement, disagreement)
	if worth == 0 {
		return nil
	}
	how, full := r.Implicit(independent), disagreement
	if agrees && worth > 0 {
		full = agreement
	}
	left := math.Abs(worth)
	for _, s := range r.inTime() {
		part := min(r.alone(s, how, agrees, worth > 0, full), left)
		if part == 0 || s.Forgotten() {
			continue
		}
		left -= part
		i := slices.IndexFunc(parts, func(p answer.Credit) bool { return p.Source == s.By })
		if i < 0 {
			i, parts = len(parts), append(parts, answer.Credit{Source: s.By})
		}
		parts[i].Worth += math.Copysign(part, worth)
	}
	return parts
}

// alone returns how much a statement makes an answer worth for a heuristic that was compared with
// it, if it were the only statement. how is the implicit signal that counts.
func (r *Reception) alone(
	s *answer.Statement, how answer.How, agrees, accepted bool, full float64,
) float64 {
	judges, signal, sign := stated(s) && counts(s), s == r.Of(how), r.Sign(how)
	praises, complains := judges && s.Worth > 0, judges && s.Worth < 0
	switch observed := r.at(s.How) != nil && s.How != Silence; {
	case !agrees && (complains || observed), (!agrees || accepted) && signal && sign > 0:
		return full
	case praises && (!agrees || accepted && sign <= 0):
		return full * fraction(s)
	case agrees && !accepted && (complains || signal):
		return max(-s.Worth, 0)
	default:
		return 0
	}
}
