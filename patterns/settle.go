package patterns

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// settled is what came of settling a pattern.
type settled struct {
	pattern    Pattern
	anti       *Pattern    // its anti-pattern, where it has one
	transition *Transition // what became of it, if anything
}

// An edit changes a pattern, whose evidence it is shown. It returns the cause where that is a transition by itself, and
// errDone where nothing is to change.
type edit func(p *Pattern, t *evidence.Tally) (cause string, err error)

var errDone = errors.New("done")

// settle makes an edit to a pattern and brings it in line with its evidence, in one commit with its anti-pattern and the
// transition. Where another caller stored the pattern meanwhile, it begins anew.
func (r *Recorder) settle(ctx context.Context, id PatternID, actor string, change edit) (settled, error) {
	for range maxTries {
		s, err := r.trySettle(ctx, id, actor, change)
		if !errors.Is(err, heed.ErrConflict) {
			return s, err
		}
	}
	return settled{}, fmt.Errorf("%w: %d times over", heed.ErrConflict, maxTries)
}

// maxTries is how often others may come first. Each time one of them got on, so that only a store that is broken reaches it.
const maxTries = 10_000

func (r *Recorder) trySettle(ctx context.Context, id PatternID, actor string, change edit) (settled, error) {
	before, err := r.cfg.Store.Pattern(ctx, id)
	if err != nil {
		return settled{}, err
	}
	tallies, err := r.tallies(ctx, []evidence.Cell{r.patternCell(id)})
	if err != nil {
		return settled{}, err
	}
	tally := tallies[r.patternCell(id)]
	now := r.cfg.Now()
	p := before.Clone()
	cause, err := change(&p, &tally)
	switch {
	case errors.Is(err, errDone):
		return settled{pattern: before}, nil
	case err != nil:
		return settled{}, err
	}
	if because := r.advance(&p, &tally, now); cause == "" {
		cause = because
	} else if because != "" {
		cause += "; " + because
	}
	s := settled{pattern: p}
	changes := Changes{}
	if p.Twin != "" && p.Kind == Positive {
		anti, changed, err := r.antiOf(ctx, &p, &tally, now)
		if err != nil {
			return settled{}, err
		}
		if s.anti = &anti; changed {
			changes.Patterns = append(changes.Patterns, anti)
		}
	}
	if cause == "" && len(changes.Patterns) == 0 && reflect.DeepEqual(before, p) {
		return s, nil
	}
	p.UpdatedAt = stored(now)
	changes.Patterns = append(changes.Patterns, p)
	if cause != "" {
		s.transition = &Transition{r.cfg.NewID(), id, before.State, p.State, stored(now), actor, cause}
		changes.Transitions = []Transition{*s.transition}
	}
	if err := r.cfg.Store.Commit(ctx, changes); err != nil {
		return settled{}, err
	}
	p.Revision++
	s.pattern = p
	return s, nil
}

// advance gives a pattern the state that its evidence calls for, and returns the cause if that is another one.
func (r *Recorder) advance(p *Pattern, t *evidence.Tally, now time.Time) (cause string) {
	if p.Kind != Positive {
		return ""
	}
	from := p.State
	counts := countsOf(t)
	switch {
	case p.Override != nil:
		p.State = p.Override.State
		return ""
	case p.State == Inverted && !r.rehabilitated(p, t):
	case p.State != Inverted && r.cfg.Inversion.inverts(counts.minus(p.Base)):
		p.State, p.Inverted, p.Twin = Inverted, counts, AntiPrefix+p.ID
		return counts.minus(p.Base).reason()
	default:
		if p.State == Inverted {
			p.Base = counts
			cause = fmt.Sprintf("rehabilitated by %d successes since it was inverted: ", counts.minus(p.Inverted).Successes)
		}
		p.State = stateOf(r.gates(&r.cfg.Maturity, t, now))
	}
	if p.State == from {
		return ""
	}
	return cause + fmt.Sprintf("%d helpful, %d harmful, a harmful share of %s", counts.Successes, counts.Failures, share(harmfulShare(t)))
}

// rehabilitated reports whether an inverted pattern has shown that it works after all. The learning-systems design knows
// no way back.
func (r *Recorder) rehabilitated(p *Pattern, t *evidence.Tally) bool {
	return !r.cfg.Literal && countsOf(t).minus(p.Inverted).Successes >= uint64(r.cfg.Inversion.Rehabilitation) &&
		harmfulShare(t) <= r.cfg.Maturity.Deprecation+tolerance
}

func countsOf(t *evidence.Tally) Counts { return Counts{t.Positive.N, t.Negative.N} }

// antiOf returns the anti-pattern that belongs to a pattern as it is now, and whether it has to be stored: with the counts
// of today while the pattern is inverted, and archived when it no longer is.
func (r *Recorder) antiOf(ctx context.Context, p *Pattern, t *evidence.Tally, now time.Time) (anti Pattern, changed bool, err error) {
	before, err := r.cfg.Store.Pattern(ctx, p.Twin)
	switch {
	case errors.Is(err, heed.ErrNotFound):
		before.CreatedAt = stored(now)
	case err != nil:
		return Pattern{}, false, err
	}
	anti = before.Clone()
	switch {
	case p.State == Inverted:
		anti.ArchivedAt = time.Time{}
		r.cfg.Inversion.warn(&anti, p, countsOf(t).minus(p.Base))
	case p.State == Deprecated && p.Override != nil: // it goes on warning
	case !anti.Archived():
		anti.ArchivedAt = stored(now)
	}
	if reflect.DeepEqual(before, anti) {
		return anti, false, nil
	}
	anti.UpdatedAt = stored(now)
	return anti, true, nil
}
