package answer

// A Reception is all that is known of how a heuristic's answer was received, or the model's. It
// follows from the statements alone, so their order does not matter. It must not be used
// concurrently.
type Reception struct {
	Praise, Complaint Sum // judgements and outcomes that hold
	// The implicit signals; nil if there was none. Undo is the first one.
	Undo, Expected, Ignored, Silence *Statement
}

// A Sum adds up judgements of one sign.
type Sum struct {
	N      int
	Weight float64 // of their magnitudes
	Share  float64 // of their fractions of a full judgement: value times weight
}

// Reception collects the statements about the answer of a heuristic, or of the model for "".
func (a *Answer) Reception(heuristic string) (r Reception) {
	for i := range a.Statements {
		s := &a.Statements[i]
		if s.Of != heuristic {
			continue
		}
		if s.stated() {
			r.add(s)
			continue
		}
		if at := r.at(s.How); at != nil && (*at == nil || s.N < (*at).N) {
			*at = s
		}
	}
	return r
}

func (r *Reception) add(s *Statement) {
	to, worth := &r.Praise, s.Worth
	if worth < 0 {
		to, worth = &r.Complaint, -worth
	}
	if s.counts() {
		*to = Sum{to.N + 1, to.Weight + worth, to.Share + s.fraction()}
	}
}

// at returns the place of an implicit signal, nil for any other kind of statement.
func (r *Reception) at(how How) **Statement {
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

// Of returns the implicit signal of a kind, nil if there is none.
func (r *Reception) Of(how How) *Statement {
	if at := r.at(how); at != nil {
		return *at
	}
	return nil
}

// sign is 1 for a positive signal, -1 for a negative one, and 0 for one that is worth nothing, or
// if there is none.
func (s *Statement) sign() int {
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
func (r *Reception) Sign(how How) int { return r.Of(how).sign() }

// Observed reports whether something other than silence was observed.
func (r *Reception) Observed() bool {
	return r.Undo != nil || r.Expected != nil || r.Ignored != nil
}

// Known reports whether there is any statement.
func (r *Reception) Known() bool {
	return r.Observed() || r.Silence != nil || r.Praise.N+r.Complaint.N > 0
}

// Implicit returns the implicit signal that counts, "" if none does: see the table of the package.
// If independent, judgements change nothing, as the Learning Strategy Interface design has it.
func (r *Reception) Implicit(independent bool) (how How) {
	praised, blamed := r.Praise.N > 0 && !independent, r.Complaint.N > 0 && !independent
	for _, h := range implicit {
		it := r.Of(h)
		switch {
		case it.sign() >= 0,
			h != Undo && praised && !blamed,
			(h == Ignored || h == Silence) && r.Expected.sign() > 0:
			continue
		case how == "" || it.Worth < r.Of(how).Worth:
			how = h
		}
	}
	if how != "" || blamed {
		return how
	}
	for _, h := range implicit[:3] {
		if r.Of(h).sign() > 0 {
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

// Agreement returns what an answer of the model is worth for a heuristic that was compared with it
// and that the model had not seen. Negative worth speaks against the heuristic. An accepted answer
// is worth agreement for a heuristic that agrees. An accepted or rejected answer is worth
// disagreement against one that does not, because complaints about what others say must not help a
// heuristic.
func (r *Reception) Agreement(agrees, independent bool, agreement, disagreement float64) float64 {
	how := r.Implicit(independent)
	fate, sign := r.Fate(independent), r.Sign(how)
	share := 1.
	if sign <= 0 && r.Praise.N > 0 { // it is accepted by praise alone
		share = min(r.Praise.Share, 1)
	}
	switch {
	case !agrees && (r.Complaint.N > 0 || r.Observed() || sign > 0):
		return -disagreement
	case !agrees && fate > 0:
		return -disagreement * share
	case agrees && fate > 0:
		return agreement * share
	case agrees && fate < 0: // the heuristic would have said the same
		worth := r.Complaint.Weight
		if sign < 0 {
			worth -= r.Of(how).Worth
		}
		return -min(worth, disagreement)
	default:
		return 0
	}
}
