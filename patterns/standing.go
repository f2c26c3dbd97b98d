package patterns

import (
	"cmp"
	"context"
	"errors"
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
	p, err := r.cfg.Store.Pattern(ctx, id)
	if err != nil {
		return Standing{}, fmt.Errorf("patterns: standing: %w", err)
	}
	all, err := r.standings(ctx, []Pattern{p})
	if err != nil {
		return Standing{}, fmt.Errorf("patterns: standing: %w", err)
	}
	return all[0], nil
}

// Standings returns the patterns that the query selects, in the order in which they were defined. The query's state is the
// state now.
func (r *Recorder) Standings(ctx context.Context, q PatternQuery) ([]Standing, error) {
	state := q.State
	q.State = ""
	var stored []Pattern
	for p, err := range r.cfg.Store.Patterns(ctx, q) {
		if err != nil {
			return nil, fmt.Errorf("patterns: standings: %w", err)
		}
		stored = append(stored, p)
	}
	all, err := r.standings(ctx, stored)
	if err != nil {
		return nil, fmt.Errorf("patterns: standings: %w", err)
	}
	if state != "" {
		all = slices.DeleteFunc(all, func(s Standing) bool { return s.State != state })
	}
	return all, nil
}

func (r *Recorder) standings(ctx context.Context, of []Pattern) ([]Standing, error) {
	if len(of) == 0 {
		return nil, nil
	}
	cells := make([]evidence.Cell, len(of))
	for i := range of {
		cells[i] = r.patternCell(of[i].root())
	}
	tallies, err := r.tallies(ctx, cells)
	if err != nil {
		return nil, err
	}
	now := r.cfg.Now()
	all := make([]Standing, len(of))
	for i := range of {
		t := tallies[cells[i]]
		all[i] = r.stand(of[i], &t, now)
	}
	return all, nil
}

func (r *Recorder) stand(p Pattern, t *evidence.Tally, now time.Time) Standing {
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
	current := p.Clone()
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
	stored := make([]Pattern, len(contenders))
	for i, c := range contenders {
		if !(c.Base >= 0 && c.Base-c.Base == 0) {
			return nil, nil, fmt.Errorf("patterns: rank: %w", inputError(fmt.Sprintf("Contenders[%d].Base", i), "must be finite and not negative"))
		}
		if stored[i], err = r.known(ctx, c.ID); err != nil {
			return nil, nil, fmt.Errorf("patterns: rank: %w", inside("Contenders", i, err))
		}
	}
	standings, err := r.standings(ctx, stored)
	if err != nil {
		return nil, nil, fmt.Errorf("patterns: rank: %w", err)
	}
	for i, s := range standings {
		one := Ranked{s, contenders[i].Base, contenders[i].Base * s.Multiplier}
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

// known returns a pattern, or the candidate that it would be.
func (r *Recorder) known(ctx context.Context, id PatternID) (Pattern, error) {
	if err := checkIDs(field{"ID", string(id)}); err != nil {
		return Pattern{}, err
	}
	p, err := r.cfg.Store.Pattern(ctx, id)
	if errors.Is(err, heed.ErrNotFound) {
		return Pattern{ID: id, Kind: Positive, Content: string(id), State: Candidate}, nil
	}
	return p, err
}
