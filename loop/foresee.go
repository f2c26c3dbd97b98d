package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/ahead"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
	"github.com/heedhq/heed/strategy/money"
)

// A fitting is what fits an event among the books, for text that has to be compared with them only once.
type fitting struct {
	books      *books
	heuristics []match[learning.Heuristic]
	notes      []match[Note]
	item       string        // the cell of the event's text, where arms go by it
	late       [3]error      // of the two comparisons and of the item
	took       time.Duration // for comparing
}

// fit compares an event with the books.
func (a *Agent) fit(ctx context.Context, b *books, e *Event) (f fitting) {
	if f.books = b; b == nil {
		return f
	}
	began := time.Now() //nolint:forbidigo // the budget is of real time, as context has it
	if a.learning != nil {
		f.heuristics, f.late[0] = inDomain(ctx, a, b.heuristics, e.Domain, beginning(e.Text), a.cfg.Fit, considered)
	}
	if !a.cfg.Shadow {
		f.notes, f.late[1] = inDomain(ctx, a, b.notes, e.Domain, beginning(e.Text), a.cfg.NoteFit, a.cfg.Budget.Notes)
	}
	f.took = time.Since(began) //nolint:forbidigo // likewise
	return f
}

// refit compares an event with newer books.
func (a *Agent) refit(ctx context.Context, old *fitting, b *books, e *Event) fitting {
	f := a.fit(ctx, b, e)
	f.item, f.late[2] = old.item, old.late[2]
	return f
}

func (f *fitting) noted() (notes []Note) {
	for _, m := range f.notes {
		notes = append(notes, *m.it)
	}
	return notes
}

// rehearses reports whether the chooser is one of heed's, so that it waits for nothing but the store.
func (a *Agent) rehearses() bool {
	a.strategy.RLock()
	defer a.strategy.RUnlock()
	switch a.strategy.chooser.(type) {
	case *strategy.Learner, *best.Race, *money.Frugal:
		return true
	}
	return false
}

// itemOf returns the cell of an event's text, or "" where arms do not go by it.
func (a *Agent) itemOf(ctx context.Context, e *Event) (item string, err error) {
	a.strategy.RLock()
	learner, arms := a.strategy.learner, a.strategy.arms
	a.strategy.RUnlock()
	if a.partition == nil || e.Item != "" || learner == nil || aboutNotes(arms) {
		return "", nil
	}
	item, err = a.partition.Item(ctx, beginning(e.Text))
	return item, overdue(ctx, err)
}

// overdue says that the time was over where a function of the host's has failed after its end, in words of its own.
func overdue(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// maxCalls is how many calls of a function of the host's run at a time. Calls that were given up are among them until they return.
const maxCalls = 64

// pass calls a function of the host's, and gives it up when the context ends.
func pass[T any](ctx context.Context, a *Agent, who string, f func(context.Context) (T, error)) (T, error) {
	return host.Pass(ctx, a.gate(who, maxCalls), who, f)
}

// A bounded similarity gives up a call of the host's when the context ends.
type bounded struct {
	*Agent
	of heed.Similarity
}

// Similar implements [heed.Similarity].
func (b bounded) Similar(ctx context.Context, text string, others []string) ([]float64, error) {
	return pass(ctx, b.Agent, "the similarity", func(ctx context.Context) ([]float64, error) { return b.of.Similar(ctx, text, others) })
}

// embeds returns an embedder that gives up a call of the host's when the context ends.
func (a *Agent) embeds(e heed.Embedder) heed.Embedder {
	return func(ctx context.Context, texts []string) ([][]float32, error) {
		return pass(ctx, a, "the embedder", func(ctx context.Context) ([][]float32, error) { return e(ctx, texts) })
	}
}

// foreseen has what Prepare reads for an event read in one round trip. The host's similarity and embedder have half of the budget of time for
// that, so that the other half stays for rules and the rest.
func (a *Agent) foreseen(ctx context.Context, e *Event) fitting {
	limited, cancel := context.WithTimeout(ctx, a.cfg.Budget.Time/2)
	defer cancel()
	return a.foresee(ctx, limited, e)
}

// foresee rehearses what Prepare reads for an event, so that it is read in one round trip. It goes by the books that the agent
// has. If they turn out to be old, or a message changes what was learned, the rest is read again.
func (a *Agent) foresee(ctx, limited context.Context, e *Event) (f fitting) {
	f = a.fit(limited, a.shelf.get(), e)
	ids := make([]string, len(f.heuristics))
	for i, m := range f.heuristics {
		ids[i] = m.it.ID
	}
	began := time.Now() //nolint:forbidigo // the budget is of real time, as context has it
	f.item, f.late[2] = a.itemOf(limited, e)
	f.took += time.Since(began) //nolint:forbidigo // likewise
	p := Plan{Event: *e, item: f.item}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { _, _, _, err := a.begin(ctx, e.ID); return err },
		func(ctx context.Context) error {
			if e.Stream == "" { // it reads nothing, or something that it changes
				return nil
			}
			_, err := a.hear(ctx, e)
			return err
		},
		func(ctx context.Context) error { _, err := a.holds(ctx, f.books); return err },
		func(ctx context.Context) error {
			if len(ids) == 0 {
				return nil
			}
			_, err := a.learning.Standings(ctx, ids...)
			return err
		},
		func(ctx context.Context) error {
			switch {
			case a.cfg.Strategy.Unrecorded, !a.rehearses(): // it counts its choices, or waits for something else than the store
				return nil
			case a.cfg.Shadow:
				return a.asAlways(ctx, &p)
			}
			return a.choose(ctx, &p, f.noted())
		},
		func(ctx context.Context) error {
			if a.cfg.Shadow {
				return nil
			}
			return a.addRules(ctx, &p)
		},
		func(ctx context.Context) error {
			if a.cfg.Shadow {
				return nil
			}
			return a.addPatterns(ctx, &p)
		},
		func(ctx context.Context) error {
			if a.cfg.Shadow {
				return nil
			}
			return a.addErrors(ctx, &p)
		},
	} {
		ahead.Rehearse(ctx, step)
	}
	return f
}
