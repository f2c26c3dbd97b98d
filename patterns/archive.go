package patterns

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
)

// Sweep stores what time alone has made of the patterns (those proven that nothing has confirmed for long are established
// again), archives those that nothing was heard of for Config.StaleAfter (since they were defined, if nothing ever was), and returns the transitions. It is for the host
// to call now and then; what is read is right without it.
//
// Archived patterns keep their evidence and their state, are in no prompt, and come back with the next thing that is heard
// of them. Inverted patterns are never archived, as nobody tries what the prompt warns of, and neither are those that
// someone decided on by hand.
func (r *Recorder) Sweep(ctx context.Context) ([]Transition, error) {
	var ids []PatternID
	for p, err := range r.cfg.Store.Patterns(ctx, PatternQuery{Kind: Positive}) {
		if err != nil {
			return nil, fmt.Errorf("patterns: sweep: %w", err)
		}
		ids = append(ids, p.ID)
	}
	var all []Transition
	for _, id := range ids {
		s, err := r.settle(ctx, id, "", r.archive)
		if err != nil {
			return all, fmt.Errorf("patterns: sweep: %w", err)
		}
		if s.transition != nil {
			all = append(all, *s.transition)
		}
	}
	return all, nil
}

// archive is an edit.
func (r *Recorder) archive(p *Pattern, t *evidence.Tally) (cause string, err error) {
	heard, stale := r.stale(p, t)
	if !stale || p.Archived() || p.Override != nil || p.State == Inverted {
		return "", nil
	}
	p.ArchivedAt = stored(r.cfg.Now())
	return "archived, as nothing was heard of it since " + heard.UTC().Format(time.DateOnly), nil
}

// unarchive is an edit.
func (r *Recorder) unarchive(p *Pattern, t *evidence.Tally) (cause string, err error) {
	if _, stale := r.stale(p, t); stale || !p.Archived() {
		return "", nil
	}
	p.ArchivedAt = time.Time{}
	return "back from the archive, as something was heard of it", nil
}

// stale returns when anything was last heard of a pattern, and whether that is too long ago.
func (r *Recorder) stale(p *Pattern, t *evidence.Tally) (heard time.Time, stale bool) {
	heard = t.Last().Time()
	if heard.IsZero() {
		heard = p.CreatedAt
	}
	return heard, r.cfg.Now().Sub(heard) > r.cfg.StaleAfter
}
