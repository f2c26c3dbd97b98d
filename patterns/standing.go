package patterns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A Standing is a pattern with what it has earned, read at a moment. It is a plain value, to be taken as immutable.
type Standing struct {
	Pattern Pattern
	// State is the state now. Time may have changed it since the pattern was stored.
	State      State
	Multiplier float64
	Counts     Counts // observations, which do not fade
	// Helpful and Harmful are the mass of its observations, which fades, and HarmfulShare the harmful part of it, which
	// does not depend on when it is read.
	Helpful, Harmful, HarmfulShare float64
	// LastValidated is when it was last found helpful, and LastFeedback when anything was last heard of it. Zero: never.
	LastValidated, LastFeedback time.Time

	gates []Gate
}

// Rate returns the share of successes to be expected: (1 + helpful) / (2 + helpful + harmful), of faded mass.
func (s *Standing) Rate() float64 {
	return evidence.Sums{Mass: s.Helpful + s.Harmful, Reward: s.Helpful}.Posterior(evidence.Beta{Alpha: 1, Beta: 1}).Mean()
}

// Standing returns a pattern as it stands now, or an error that is [heed.ErrNotFound].
func (r *Recorder) Standing(ctx context.Context, id PatternID) (Standing, error) {
	found, err := r.find(ctx, id)
	if err != nil {
		return Standing{}, fmt.Errorf("patterns: standing: %w", err)
	}
	return r.stand(found, id, r.cfg.Now()), nil
}

// find reads a pattern that there must be.
func (r *Recorder) find(ctx context.Context, id PatternID) (*reading, error) {
	if err := checkIDs(field{"ID", string(id)}); err != nil {
		return nil, err
	}
	found, err := r.read(ctx, []PatternID{id}, "")
	if err != nil {
		return nil, err
	}
	if _, known := found.patterns[id]; !known {
		return nil, heed.ErrNotFound
	}
	return found, nil
}

// Standings returns the patterns that the query selects, in the order in which they were defined.
func (r *Recorder) Standings(ctx context.Context, q PatternQuery) ([]Standing, error) {
	found, err := r.readAll(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("patterns: standings: %w", err)
	}
	now := r.cfg.Now()
	var all []Standing
	for _, id := range found.order {
		if s := r.stand(found, id, now); q.State == "" || s.State == q.State {
			all = append(all, s)
		}
	}
	return all, nil
}

// stand works out where a pattern stands. One that was not found is the candidate that it would be.
func (r *Recorder) stand(from *reading, id PatternID, now time.Time) Standing {
	p := Pattern{ID: id, Kind: Positive, Content: string(id), State: Candidate}
	if kept, known := from.patterns[id]; known {
		p = kept.Value.clone()
	}
	tally := from.tallies[p.root()]
	t := &tally
	sums := t.At(evidence.InstantOf(now))
	s := Standing{
		Pattern: p, State: p.State, Counts: countsOf(t),
		Helpful: sums.Reward, Harmful: harmfulMass(sums), HarmfulShare: harmfulShare(t),
		LastValidated: t.Positive.Last.Time(), LastFeedback: t.Last().Time(),
		gates: r.gates(&r.cfg.Maturity, t, now),
	}
	if r.cfg.Literal {
		s.LastValidated = s.LastFeedback
	}
	current := p.clone()
	r.advance(&current, t, now)
	s.State = current.State
	s.Multiplier = r.cfg.Maturity.Multipliers.Of(s.State)
	return s
}

// compareStandings puts first what has the greater multiplier, then the greater rate, then more observations, and then the
// id.
func compareStandings(a, b Standing) int {
	return cmp.Or(cmp.Compare(b.Multiplier, a.Multiplier), cmp.Compare(b.Rate(), a.Rate()),
		cmp.Compare(b.Counts.Total(), a.Counts.Total()), strings.Compare(string(a.Pattern.ID), string(b.Pattern.ID)))
}

// A Contender is a pattern that a host could follow, with how well it suits the task by the host's own measure.
type Contender struct {
	ID   PatternID
	Base float64 // finite and not negative
}

// A Ranked is a contender with its score: Base times the multiplier of its state.
type Ranked struct {
	Standing
	Base  float64
	Score float64
}

// Rank scores the contenders, the best first; of equal scores the greater [Standing.Rate] wins, then more observations,
// then the id. Those that are deprecated or inverted are left out, and returned as warnings. A pattern that is not known
// ranks as a candidate.
func (r *Recorder) Rank(ctx context.Context, contenders []Contender) (ranked, warnings []Ranked, err error) {
	ids := make([]PatternID, len(contenders))
	for i, c := range contenders {
		err := checkIDs(field{"ID", string(c.ID)})
		if !(c.Base >= 0 && c.Base-c.Base == 0) {
			err = inputError("Base", "must be finite and not negative")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("patterns: rank: %w", inside("Contenders", i, err))
		}
		ids[i] = c.ID
	}
	found, err := r.read(ctx, ids, "")
	if err != nil {
		return nil, nil, fmt.Errorf("patterns: rank: %w", err)
	}
	now := r.cfg.Now()
	for i, c := range contenders {
		s := r.stand(found, ids[i], now)
		one := Ranked{s, c.Base, c.Base * s.Multiplier}
		if s.State == Deprecated || s.State == Inverted {
			warnings = append(warnings, one)
		} else {
			ranked = append(ranked, one)
		}
	}
	byScore := func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), compareStandings(a.Standing, b.Standing))
	}
	slices.SortFunc(ranked, byScore)
	slices.SortFunc(warnings, byScore)
	return ranked, warnings, nil
}
