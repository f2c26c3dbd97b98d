package patterns

import (
	"context"

	"github.com/heedhq/heed"
)

// tell tells the observer what a draft has changed.
func (r *Recorder) tell(ctx context.Context, d *draft) {
	if r.watch == nil {
		return
	}
	if d.duplicate {
		r.watch.Tell(ctx, heed.Duplicate{Component: r.watch.Name(), At: d.now, What: d.what, ID: d.id})
		return
	}
	for _, o := range d.batch.Observations {
		if o.Weight > 0 {
			r.watch.Tell(ctx, heed.Counted{
				Component: r.watch.Name(), At: d.now, Subject: o.Cell.Item, Channel: d.what, Reward: o.Reward, Weight: o.Weight,
			})
		}
	}
	for _, t := range d.transitions {
		reason := t.Cause
		if t.Actor != "" {
			reason = "decided by hand" // and not in that person's words
		}
		p, _ := d.pattern(t.Pattern)
		before := d.patterns[t.Pattern].Value
		name, id := r.watch.Name(), string(t.Pattern)
		was, is := inUse(&before, t.From), inUse(&p, t.To)
		if t.To == Inverted && t.From != Inverted {
			r.watch.Tell(ctx, heed.Harmful{Component: name, At: d.now, Subject: id, Reason: reason})
		}
		switch {
		case t.To == Inverted && was:
			r.watch.Tell(ctx, heed.Inverted{Component: name, At: d.now, Subject: id, Reason: reason})
		case is && !was:
			r.watch.Tell(ctx, heed.Activated{Component: name, At: d.now, Subject: id})
		case was && !is, t.To == Deprecated && t.From != Deprecated:
			r.watch.Tell(ctx, heed.Retired{Component: name, At: d.now, Subject: id, Reason: reason})
		}
	}
}

// inUse reports whether plans recommend a pattern that is in this state.
func inUse(p *Pattern, s State) bool { return (s == Established || s == Proven) && !p.archived() }
