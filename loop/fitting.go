package loop

import (
	"context"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
)

// A fitting is what fits an event among the heuristics and notes, for text that must be compared
// with them only once. It is made before the step, because comparing may call the host and take
// long, and a step may run twice.
type fitting struct {
	library    *library
	heuristics []match[learning.Heuristic]
	notes      []match[Note]
	item       string        // the cell of the event's text, where arms go by it
	late       [3]error      // of the two comparisons and of the item
	took       time.Duration // for comparing
}

// fitting compares an event with the heuristics and notes that this process holds, before anything
// is read. The host's similarity and embedder have half of the budget of time for that, so that the
// other half stays for rules and the rest.
func (a *Agent) fitting(ctx context.Context, e *Event) fitting {
	limited, cancel := context.WithTimeout(ctx, a.cfg.Budget.Time/2)
	defer cancel()
	f := a.fit(limited, a.library.Load(), e)
	began := time.Now() //nolint:forbidigo // the budget is of real time
	f.item, f.late[2] = a.itemOf(limited, e)
	f.took += time.Since(began) //nolint:forbidigo // it is of real time, too
	return f
}

// fit compares an event with heuristics and notes. Without a library, which the first event of a
// process does not have, it is empty, and planIn compares.
func (a *Agent) fit(ctx context.Context, b *library, e *Event) (f fitting) {
	if f.library = b; b == nil {
		return f
	}
	began := time.Now() //nolint:forbidigo // the budget is of real time
	f.heuristics, f.late[0] = inDomain(ctx, a, b.heuristics, e.Domain, beginning(e.Text),
		a.cfg.Tuning.Fit, considered)
	f.notes, f.late[1] = inDomain(ctx, a, b.notes, e.Domain, beginning(e.Text), a.cfg.noteFit(),
		a.cfg.Budget.Notes)
	f.took = time.Since(began) //nolint:forbidigo // it is of real time, too
	return f
}

// refit compares an event again, because the heuristics or notes have changed.
func (a *Agent) refit(ctx context.Context, old *fitting, b *library, e *Event) fitting {
	f := a.fit(ctx, b, e)
	f.item, f.late[2] = old.item, old.late[2]
	return f
}

// noted returns the notes that fit, the best first.
func (f *fitting) noted() (notes []Note) {
	for _, m := range f.notes {
		notes = append(notes, *m.it)
	}
	return notes
}

// itemOf returns the cell of an event's text, or "" where arms do not go by it.
func (a *Agent) itemOf(ctx context.Context, e *Event) (item string, err error) {
	if a.partition == nil || e.Item != "" || a.learner == nil || aboutNotes(a.arms) {
		return "", nil
	}
	item, _, err = a.partition.Item(ctx, beginning(e.Text))
	return item, overdue(ctx, err)
}

// A bounded similarity gives up a call of the host's when the context ends.
type bounded struct {
	*Agent
	of heed.Similarity
}

// Similar implements [heed.Similarity].
func (b bounded) Similar(ctx context.Context, text string, others []string) ([]float64, error) {
	return pass(ctx, b.Agent, "the similarity", func(ctx context.Context) ([]float64, error) {
		return b.of.Similar(ctx, text, others)
	})
}

// embeds returns an embedder that gives up a call of the host's when the context ends.
func (a *Agent) embeds(e heed.Embedder) heed.Embedder {
	return func(ctx context.Context, texts []string) ([][]float32, error) {
		return pass(ctx, a, "the embedder", func(ctx context.Context) ([][]float32, error) {
			return e(ctx, texts)
		})
	}
}

// inDomain returns what is like a text among the things of a domain and the things without one. Of
// equals, things of the domain come first.
func inDomain[T any](
	ctx context.Context, a *Agent, by map[string]*index[T], domain, one string, least float64,
	most int,
) ([]match[T], error) {
	found, err := by[domain].like(ctx, a.similar, one, least, most)
	if err != nil || domain == "" {
		return found, err
	}
	general, err := by[""].like(ctx, a.similar, one, least, most)
	return mostSimilar(append(found, general...), most), err
}

// beginning returns the part of a text that is compared with others.
func beginning(text string) string {
	if len(text) <= maxBeginning {
		return text
	}
	return strings.ToValidUTF8(text[:maxBeginning], "")
}
