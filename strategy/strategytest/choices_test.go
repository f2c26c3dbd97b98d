package strategytest_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/strategytest"
)

// brokenChoices is a good store with some of its methods replaced. A nil function leaves the method as it is.
type brokenChoices struct {
	strategy.Choices
	mu     sync.Mutex
	seen   map[strategy.ChoiceID]*strategy.Record
	add    func(*brokenChoices, strategy.Choice) error
	get    func(*brokenChoices, strategy.Record) (strategy.Record, error)
	list   func(*brokenChoices, context.Context, strategy.ChoiceFilter) iter.Seq2[strategy.Record, error]
	settle func(*brokenChoices, strategy.ChoiceID, strategy.Result) (strategy.Stage, error)
	expire func(*brokenChoices, strategy.ChoiceID) (bool, error)
	end    func(b *brokenChoices, learner, session string) error
}

func (b *brokenChoices) Add(ctx context.Context, c strategy.Choice) error {
	if b.add == nil || ctx.Err() != nil {
		return b.Choices.Add(ctx, c)
	}
	return b.add(b, c)
}

func (b *brokenChoices) Get(ctx context.Context, id strategy.ChoiceID) (strategy.Record, error) {
	r, err := b.Choices.Get(ctx, id)
	if b.get == nil || err != nil {
		return r, err
	}
	return b.get(b, r)
}

func (b *brokenChoices) List(ctx context.Context, f strategy.ChoiceFilter) iter.Seq2[strategy.Record, error] {
	if b.list == nil {
		return b.Choices.List(ctx, f)
	}
	return b.list(b, ctx, f)
}

func (b *brokenChoices) Settle(ctx context.Context, id strategy.ChoiceID, r strategy.Result) (strategy.Stage, error) {
	if b.settle == nil || ctx.Err() != nil {
		return b.Choices.Settle(ctx, id, r)
	}
	return b.settle(b, id, r)
}

func (b *brokenChoices) Expire(ctx context.Context, id strategy.ChoiceID) (bool, error) {
	if b.expire == nil || ctx.Err() != nil {
		return b.Choices.Expire(ctx, id)
	}
	return b.expire(b, id)
}

func (b *brokenChoices) EndSession(ctx context.Context, learner, session string) error {
	if b.end == nil || ctx.Err() != nil {
		return b.Choices.EndSession(ctx, learner, session)
	}
	return b.end(b, learner, session)
}

var ctx = context.Background()

// asking breaks a store by changing each filter.
func asking(change func(*strategy.ChoiceFilter)) brokenChoices {
	return brokenChoices{list: func(b *brokenChoices, ctx context.Context, f strategy.ChoiceFilter) iter.Seq2[strategy.Record, error] {
		change(&f)
		return b.Choices.List(ctx, f)
	}}
}

// adding breaks a store by changing the JSON of each choice.
func adding(change func(map[string]any)) brokenChoices {
	return brokenChoices{add: func(b *brokenChoices, c strategy.Choice) error {
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		change(fields)
		if text, err = json.Marshal(fields); err != nil {
			return err
		}
		if err := json.Unmarshal(text, &c); err != nil {
			return err
		}
		return b.Choices.Add(ctx, c)
	}}
}

// TestChoicesSuiteBites runs the suite against stores that each break one rule, and expects it to say so.
func TestChoicesSuiteBites(t *testing.T) {
	for _, test := range []struct {
		fault    string
		store    func() brokenChoices
		caughtBy string
	}{
		{"nothing", func() brokenChoices { return brokenChoices{} }, ""},
		{"the draws are lost", func() brokenChoices {
			return adding(func(c map[string]any) { delete(c, "draws") })
		}, "a choice is kept as it was"},
		{"seconds are kept", func() brokenChoices {
			return adding(func(c map[string]any) {
				c["at"], _, _ = strings.Cut(c["at"].(string), ".")
				c["at"] = c["at"].(string) + "Z"
			})
		}, "a choice is kept as it was"},
		{"the result is not shown", func() brokenChoices {
			return brokenChoices{get: func(_ *brokenChoices, r strategy.Record) (strategy.Record, error) {
				r.Result = nil
				return r, nil
			}}
		}, "a choice is kept as it was"},
		{"quotes are dropped", func() brokenChoices {
			return asking(func(f *strategy.ChoiceFilter) { f.Item = strings.ReplaceAll(f.Item, "'", "") })
		}, "texts may be of any kind"},
		{"case does not matter", func() brokenChoices {
			return asking(func(f *strategy.ChoiceFilter) { f.Session = strings.ToLower(f.Session) })
		}, "texts may be of any kind"},
		{"what is not known is settled all the same", func() brokenChoices {
			return brokenChoices{settle: func(b *brokenChoices, id strategy.ChoiceID, r strategy.Result) (strategy.Stage, error) {
				before, err := b.Choices.Settle(ctx, id, r)
				if errors.Is(err, heed.ErrNotFound) {
					return strategy.Pending, nil
				}
				return before, err
			}}
		}, "what is not known is not found"},
		{"an end of what never began is an error", func() brokenChoices {
			return brokenChoices{end: func(b *brokenChoices, learner, session string) error {
				for range b.Choices.List(ctx, strategy.ChoiceFilter{Learner: learner, Session: session}) {
					return b.Choices.EndSession(ctx, learner, session)
				}
				return heed.ErrNotFound
			}}
		}, "what is not known is not found"},
		{"an error for what is known", func() brokenChoices {
			return brokenChoices{add: func(b *brokenChoices, c strategy.Choice) error {
				if _, err := b.Choices.Get(ctx, c.ID); err == nil {
					return heed.ErrConflict
				}
				return b.Choices.Add(ctx, c)
			}}
		}, "a choice is added once"},
		{"any property will do", func() brokenChoices {
			return asking(func(f *strategy.ChoiceFilter) {
				if f.Session != "" {
					f.Item = ""
				}
			})
		}, "a filter lets pass"},
		{"since is after", func() brokenChoices {
			return asking(func(f *strategy.ChoiceFilter) {
				if !f.Since.IsZero() {
					f.Since = f.Since.Add(1)
				}
			})
		}, "a filter lets pass"},
		{"until is not before", func() brokenChoices {
			return asking(func(f *strategy.ChoiceFilter) {
				if !f.Until.IsZero() {
					f.Until = f.Until.Add(1)
				}
			})
		}, "the newest are listed first"},
		{"the oldest are listed first", func() brokenChoices {
			return brokenChoices{list: func(b *brokenChoices, ctx context.Context, f strategy.ChoiceFilter) iter.Seq2[strategy.Record, error] {
				return func(yield func(strategy.Record, error) bool) {
					var all []strategy.Record
					for r, err := range b.Choices.List(ctx, f) {
						if err != nil {
							yield(r, err)
							return
						}
						all = append([]strategy.Record{r}, all...)
					}
					for _, r := range all {
						if !yield(r, nil) {
							return
						}
					}
				}
			}}
		}, "the newest are listed first"},
		{"there is no limit", func() brokenChoices {
			return asking(func(f *strategy.ChoiceFilter) { f.Limit = 0 })
		}, "the newest are listed first"},
		{"one is left out at the limit", func() brokenChoices {
			return asking(func(f *strategy.ChoiceFilter) { f.Limit = max(f.Limit-1, 0) })
		}, "the newest are listed first"},
		{"what has expired can't settle", func() brokenChoices {
			return brokenChoices{settle: func(b *brokenChoices, id strategy.ChoiceID, r strategy.Result) (strategy.Stage, error) {
				if record, err := b.Choices.Get(ctx, id); err == nil && record.Stage == strategy.Expired {
					return strategy.Expired, nil
				}
				return b.Choices.Settle(ctx, id, r)
			}}
		}, "a choice settles"},
		{"the stage after is told", func() brokenChoices {
			return brokenChoices{settle: func(b *brokenChoices, id strategy.ChoiceID, r strategy.Result) (strategy.Stage, error) {
				_, err := b.Choices.Settle(ctx, id, r)
				if err != nil {
					return "", err
				}
				return strategy.Observed, nil
			}}
		}, "a choice settles"},
		{"the result that comes last is kept", func() brokenChoices {
			return brokenChoices{
				settle: func(b *brokenChoices, id strategy.ChoiceID, r strategy.Result) (strategy.Stage, error) {
					b.mu.Lock()
					defer b.mu.Unlock()
					before, err := b.Choices.Settle(ctx, id, r)
					if err == nil {
						b.seen[id] = &strategy.Record{Result: &r}
					}
					return before, err
				},
				get: func(b *brokenChoices, r strategy.Record) (strategy.Record, error) {
					b.mu.Lock()
					defer b.mu.Unlock()
					if seen := b.seen[r.Choice.ID]; seen != nil {
						result := *seen.Result
						r.Result = &result
					}
					return r, nil
				},
			}
		}, "the last result is kept"},
		{"ids do not matter in one moment", func() brokenChoices {
			return brokenChoices{settle: func(b *brokenChoices, id strategy.ChoiceID, r strategy.Result) (strategy.Stage, error) {
				if record, err := b.Choices.Get(ctx, id); err == nil && record.Result != nil && record.Result.At.Equal(r.At) {
					return strategy.Observed, nil
				}
				return b.Choices.Settle(ctx, id, r)
			}}
		}, "the last result is kept"},
		{"it expires again", func() brokenChoices {
			return brokenChoices{expire: func(b *brokenChoices, id strategy.ChoiceID) (bool, error) {
				_, err := b.Choices.Expire(ctx, id)
				return err == nil, err
			}}
		}, "a choice expires once"},
		{"the session ends for all learners", func() brokenChoices {
			return brokenChoices{end: func(b *brokenChoices, _, session string) error {
				for _, learner := range []string{"l", "m"} {
					if err := b.Choices.EndSession(ctx, learner, session); err != nil {
						return err
					}
				}
				return nil
			}}
		}, "a session ends for one learner"},
		{"the session never ends", func() brokenChoices {
			return brokenChoices{end: func(*brokenChoices, string, string) error { return nil }}
		}, "a session ends for one learner"},
		{"two may see it expire", func() brokenChoices {
			return brokenChoices{expire: func(b *brokenChoices, id strategy.ChoiceID) (bool, error) {
				record, err := b.Choices.Get(ctx, id)
				if err != nil {
					return false, err
				}
				time.Sleep(3 * time.Millisecond)
				_, err = b.Choices.Expire(ctx, id)
				return record.Stage == strategy.Pending, err
			}}
		}, "concurrent calls come to one result"},
		{"what it lends is its own", func() brokenChoices {
			return brokenChoices{get: func(b *brokenChoices, r strategy.Record) (strategy.Record, error) {
				b.mu.Lock()
				defer b.mu.Unlock()
				if seen := b.seen[r.Choice.ID]; seen != nil {
					return *seen, nil
				}
				if r.Stage == strategy.Observed {
					b.seen[r.Choice.ID] = &r
				}
				return r, nil
			}}
		}, "what goes in and out is copied"},
		{"a loop goes on to its end", func() brokenChoices {
			return brokenChoices{list: func(b *brokenChoices, ctx context.Context, f strategy.ChoiceFilter) iter.Seq2[strategy.Record, error] {
				type one struct {
					r   strategy.Record
					err error
				}
				var all []one
				for r, err := range b.Choices.List(ctx, f) {
					all = append(all, one{r, err})
				}
				return func(yield func(strategy.Record, error) bool) {
					for ; len(all) > 0 && yield(all[0].r, all[0].err); all = all[1:] {
						continue
					}
				}
			}}
		}, "a loop may end early"},
		{"a list that is late is empty", func() brokenChoices {
			return brokenChoices{list: func(b *brokenChoices, ctx context.Context, f strategy.ChoiceFilter) iter.Seq2[strategy.Record, error] {
				if ctx.Err() != nil {
					return func(func(strategy.Record, error) bool) {}
				}
				return b.Choices.List(ctx, f)
			}}
		}, "a context that is done"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			err := strategytest.CheckChoices(func(now func() time.Time) (strategy.Choices, error) {
				good, err := memstore.NewChoices(memstore.ChoicesConfig{Now: now})
				store := test.store()
				return &brokenChoices{
					Choices: good, seen: make(map[strategy.ChoiceID]*strategy.Record),
					add: store.add, get: store.get, list: store.list, settle: store.settle, expire: store.expire, end: store.end,
				}, err
			})
			if test.caughtBy == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			caught := false
			for line := range strings.Lines(err.Error()) {
				caught = caught || strings.HasPrefix(line, test.caughtBy)
			}
			assert.True(t, caught, "the fault should be caught by %q, but was by:\n%s", test.caughtBy, err)
		})
	}
}

// TestChoicesThatCannotBeMade fail the suite, rule by rule.
func TestChoicesThatCannotBeMade(t *testing.T) {
	err := strategytest.CheckChoices(func(func() time.Time) (strategy.Choices, error) { return nil, errors.New("no disk") })
	assert.ErrorContains(t, err, "no disk")
}
