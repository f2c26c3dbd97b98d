package patterns

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A Standing is a pattern with what it earned, read at a moment. It is a plain value, and
// immutable.
type Standing struct {
	// Pattern is the pattern as it is stored, but with the Twin that it has now. The anti-pattern of
	// an inverted pattern is made of that pattern.
	Pattern Pattern
	// State is the state now. Time may have changed it since the pattern was stored.
	State string
	// Multiplier is the factor of the state: 0.5 for a candidate, 1 for an established pattern, 1.5
	// for a proven one, else 0.
	Multiplier float64
	Score      float64      // by which [Recorder.Rank] ranked it; else 0
	Counts     Observations // which do not fade
	// Helpful and Harmful are the masses of its observations, which fade. HarmfulShare is the harmful
	// part of both, which does not depend on the time.
	Helpful, Harmful, HarmfulShare float64
	// Rate is the share of successes to expect: (1 + Helpful) / (2 + Helpful + Harmful).
	Rate float64
	// LastValidated is when it was last found helpful. LastFeedback is the time of its last evidence.
	// Zero: never.
	LastValidated, LastFeedback time.Time
	// Conditions lists what each state requires and what the pattern has. The conditions of an
	// anti-pattern are taken from the pattern that it was made of. If it was not made of a pattern,
	// it has no conditions.
	Conditions []Condition
}

// Standing returns the present standing of a pattern, or [heed.ErrNotFound].
func (r *Recorder) Standing(ctx context.Context, id PatternID) (Standing, error) {
	if err := valid.Names(maxID, "ID", string(id)); err != nil {
		return Standing{}, failed("standing", err)
	}
	found, err := r.read(ctx, []PatternID{id})
	if err != nil {
		return Standing{}, failed("standing", err)
	}
	_, known := found.patterns[id]
	if _, warned := r.warned(found, id, r.cfg.Now()); !known && !warned {
		return Standing{}, failed("standing", heed.ErrNotFound)
	}
	return r.stand(found, id, r.cfg.Now()), nil
}

// A PatternQuery selects the patterns that meet all of its conditions. The zero query selects every
// pattern.
type PatternQuery struct {
	// Positive leaves out anti-patterns, and Anti all others. Both together select no pattern.
	Positive, Anti bool
	// State is the state that it has now, which may be another one than was stored.
	State string
	// Tag is one of the pattern's tags, exactly.
	Tag string
	// Content is a part of its content. Case does not matter.
	Content string
	// Limit is how many patterns are looked at: those that changed last. 0 means all.
	Limit int
}

// selects reports whether the query selects the pattern. It ignores the state.
func (q PatternQuery) selects(p *Pattern) bool {
	return !(q.Positive && p.Anti) && !(q.Anti && !p.Anti) &&
		(q.Tag == "" || slices.Contains(p.Tags, q.Tag)) &&
		strings.Contains(strings.ToLower(p.Content), strings.ToLower(q.Content))
}

// Standings returns the patterns that the query selects, in the order in which they were defined.
// If records are damaged, it returns the others with a [heed.ErrDamaged].
func (r *Recorder) Standings(ctx context.Context, q PatternQuery) ([]Standing, error) {
	found, err := r.readAll(store.Reading(ctx, r.cfg.Store), q)
	now := r.cfg.Now()
	var all []Standing
	for _, id := range found.order {
		if s := r.stand(found, id, now); q.State == "" || s.State == q.State {
			all = append(all, s)
		}
	}
	return all, failed("standings", err)
}

// stand computes the standing of a pattern. A pattern that was not found is the candidate that it
// would be. It advances a copy, so a read never stores what time has changed: [Recorder.Sweep]
// does.
func (r *Recorder) stand(from *reading, id PatternID, now time.Time) Standing {
	root, warned := r.warned(from, id, now) // whose evidence it is
	if kept, known := from.patterns[id]; known {
		root = kept.Value
	} else if !warned {
		root = Pattern{ID: id, Content: r.contentOf(id), State: candidate}
	}
	tally, p := from.tallies[root.ID], root.clone()
	t := &tally
	if warned {
		p = root.warning(countsOf(t))
	}
	sums := t.At(evidence.InstantOf(now))
	s := Standing{
		Pattern: p, State: p.State, Counts: countsOf(t),
		Helpful: sums.Reward, Harmful: harmfulMass(sums), HarmfulShare: harmfulShare(t),
		Rate:          sums.Posterior(evenPrior).Mean(),
		LastValidated: t.Positive.Last.Time(), LastFeedback: t.Last().Time(),
	}
	if r.cfg.literal {
		s.LastValidated = s.LastFeedback
	}
	if !root.Anti {
		current := root
		r.advance(&current, t, now)
		if !p.Anti {
			s.State, s.Pattern.Twin = current.State, current.Twin
		}
		s.Conditions = inversionConditions(r.cfg.conditions(t, now), &current, &s)
		if inUse(s.State) && p.Override == "" {
			s.Conditions = append(s.Conditions, r.isRecent(&s, now))
		}
	}
	s.Multiplier = multipliers[s.State]
	return s
}

// isRecent is the condition that a plan puts on a pattern that was not promoted by hand.
func (r *Recorder) isRecent(s *Standing, now time.Time) Condition {
	return newCondition(inPlans, "days since its last evidence", days(now.Sub(s.LastFeedback)),
		"at most", days(r.cfg.HalfLife))
}

// inversionConditions adds the conditions under which a pattern is inverted, and under which an
// inverted one is rehabilitated.
func inversionConditions(all []Condition, p *Pattern, s *Standing) []Condition {
	counts := s.Counts.minus(p.Base)
	ratio := float64(counts.Failures) / float64(max(counts.total(), 1))
	all = append(all,
		newCondition(inverted, "observations", float64(counts.total()), "at least", minInverting),
		newCondition(inverted, "a failure rate", ratio, "at least", failureRate))
	if p.State != inverted {
		return all
	}
	return append(all,
		newCondition(rehabilitated, "successes since the inversion",
			float64(s.Counts.minus(p.Inverted).Successes), "at least", minInverting),
		newCondition(rehabilitated, "a harmful share", s.HarmfulShare, "at most", harmfulFrom))
}

// String explains the standing: what the pattern earned, and each condition.
func (s Standing) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q is %s, with a multiplier of %g\n", s.Pattern.ID, s.State, s.Multiplier)
	if p := &s.Pattern; p.Override != "" {
		fmt.Fprintf(&b, "by hand: %s wanted it %s, %q\n", p.By.Actor, p.Override, p.By.Reason)
	}
	fmt.Fprintf(&b, "%d helpful and %d harmful observations, with masses of %.3f and %.3f now\n",
		s.Counts.Successes, s.Counts.Failures, s.Helpful, s.Harmful)
	fmt.Fprintf(&b, "last validated %s, last feedback %s\n", moment(s.LastValidated),
		moment(s.LastFeedback))
	for _, c := range s.Conditions {
		fmt.Fprintln(&b, c)
	}
	return b.String()
}

// moment writes a time for people.
func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(timeLayout)
}

// compareStandings puts the greater multiplier first, then the greater rate, then more
// observations, then the lesser id.
func compareStandings(a, b Standing) int {
	return cmp.Or(cmp.Compare(b.Multiplier, a.Multiplier), cmp.Compare(b.Rate, a.Rate),
		cmp.Compare(b.Counts.total(), a.Counts.total()),
		strings.Compare(string(a.Pattern.ID), string(b.Pattern.ID)))
}

// Rank scores patterns that a host could follow, the best first. base is how well each suits the
// task by the host's own measure; it is finite and not negative. The score is base times the
// multiplier of the state. Of equal scores the greater rate wins. Deprecated and inverted patterns
// are returned as warnings. An unknown pattern ranks like a candidate.
func (r *Recorder) Rank(
	ctx context.Context, base map[PatternID]float64,
) (ranked, warnings []Standing, err error) {
	ids := slices.Sorted(maps.Keys(base))
	for _, id := range ids {
		err := valid.Names(maxID, "ID", string(id))
		if x := base[id]; !(x >= 0 && x-x == 0) {
			err = valid.Input("Base", "of %q is %v, must be finite and not negative", id, x)
		}
		if err != nil {
			return nil, nil, failed("rank", err)
		}
	}
	found, err := r.read(ctx, ids)
	if err != nil {
		return nil, nil, failed("rank", err)
	}
	now := r.cfg.Now()
	for _, id := range ids {
		s := r.stand(found, id, now)
		s.Score = base[id] * s.Multiplier
		if s.State == deprecated || s.State == inverted {
			warnings = append(warnings, s)
		} else {
			ranked = append(ranked, s)
		}
	}
	byScore := func(a, b Standing) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), compareStandings(a, b))
	}
	slices.SortFunc(ranked, byScore)
	slices.SortFunc(warnings, byScore)
	return ranked, warnings, nil
}
