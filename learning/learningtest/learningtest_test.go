package learningtest_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/learning/learningtest"
	"github.com/heedhq/heed/memstore"
)

type (
	heuristic = learning.Heuristic
	signal    = learning.Signal
)

func TestStrategies(t *testing.T) {
	for name, cfg := range map[string]learning.BayesianConfig{
		"defaults": {},
		"words":    {WholeWords: true, SilenceIsNeutral: true},
		"domains":  {Domains: map[string]learning.Domain{"home": {UndoWindow: time.Minute, Weights: map[string]float64{learning.SourceUndo: 0}}}},
		"quiet":    {Keywords: []string{}, Scores: learning.Scores{User: [3]float64{-1, 0, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := learning.NewBayesian(cfg)
			require.NoError(t, err)
			learningtest.RunStrategy(t, b)
		})
	}
}

// brokenStore is a good store with something spoilt. A nil function leaves the method as it is.
type brokenStore struct {
	learning.Store
	get    func(good learning.Store, id string) (heuristic, error)
	put    func(good learning.Store, h heuristic) (heuristic, error)
	remove func(good learning.Store, id string) error
	all    func(good learning.Store, ctx context.Context) iter.Seq2[heuristic, error]
}

func (b *brokenStore) Get(ctx context.Context, id string) (heuristic, error) {
	if b.get == nil || ctx.Err() != nil {
		return b.Store.Get(ctx, id)
	}
	return b.get(b.Store, id)
}

func (b *brokenStore) Put(ctx context.Context, h heuristic) (heuristic, error) {
	if b.put == nil {
		return b.Store.Put(ctx, h)
	}
	return b.put(b.Store, h)
}

func (b *brokenStore) Delete(ctx context.Context, id string) error {
	if b.remove == nil || ctx.Err() != nil {
		return b.Store.Delete(ctx, id)
	}
	return b.remove(b.Store, id)
}

func (b *brokenStore) All(ctx context.Context) iter.Seq2[heuristic, error] {
	if b.all == nil {
		return b.Store.All(ctx)
	}
	return b.all(b.Store, ctx)
}

var background = context.Background()

// TestStoreSuiteBites runs the suite against stores that each break one rule, and expects it to say so.
func TestStoreSuiteBites(t *testing.T) {
	for _, test := range []struct {
		fault    string
		broken   brokenStore
		caughtBy string
	}{
		{"it drops the domain", brokenStore{put: func(good learning.Store, h heuristic) (heuristic, error) {
			h.Domain = ""
			return good.Put(background, h)
		}}, "what is put is got"},
		{"it keeps local time", brokenStore{get: func(good learning.Store, id string) (heuristic, error) {
			h, err := good.Get(background, id)
			h.CreatedAt = h.CreatedAt.In(time.FixedZone("", 3600))
			return h, err
		}}, "what is put is got"},
		{"it knows everything", brokenStore{get: func(good learning.Store, id string) (heuristic, error) {
			if h, err := good.Get(background, id); err == nil {
				return h, nil
			}
			return heuristic{ID: id}, nil
		}}, "what is unknown is ErrNotFound"},
		{"it folds case", brokenStore{get: func(good learning.Store, id string) (heuristic, error) {
			return good.Get(background, strings.ToLower(id))
		}}, "what is unknown is ErrNotFound"},
		{"the last one wins", brokenStore{put: func(good learning.Store, h heuristic) (heuristic, error) {
			if old, err := good.Get(background, h.ID); err == nil {
				h.Revision = old.Revision
			}
			return good.Put(background, h)
		}}, "a revision is put once"},
		{"it looks and then puts", brokenStore{put: func(good learning.Store, h heuristic) (heuristic, error) {
			old, err := good.Get(background, h.ID)
			if err == nil && old.Revision != h.Revision {
				return heuristic{}, heed.ErrConflict
			}
			time.Sleep(time.Millisecond)
			for range 100 {
				if stored, err := good.Put(background, h); err == nil {
					return stored, nil
				}
				now, _ := good.Get(background, h.ID)
				h.Revision = now.Revision
			}
			return heuristic{}, heed.ErrConflict
		}}, "of concurrent changes one wins"},
		{"it does not look at what it is given", brokenStore{put: func(good learning.Store, h heuristic) (heuristic, error) {
			h.Initial = 0.5
			return good.Put(background, h)
		}}, "what is not valid is refused"},
		{"it forgets to delete", brokenStore{remove: func(good learning.Store, id string) error {
			_, err := good.Get(background, id)
			return err
		}}, "what is deleted is gone"},
		{"it lists in any order", brokenStore{all: func(good learning.Store, ctx context.Context) iter.Seq2[heuristic, error] {
			return func(yield func(heuristic, error) bool) {
				all := map[heuristic]error{}
				for h, err := range good.All(ctx) {
					all[h] = err
				}
				sorted := slices.SortedFunc(maps.Keys(all), func(a, b heuristic) int { return strings.Compare(b.ID, a.ID) })
				for _, h := range sorted {
					if !yield(h, all[h]) {
						return
					}
				}
			}
		}}, "all are listed by id"},
		{"it lists no more than two", brokenStore{all: func(good learning.Store, ctx context.Context) iter.Seq2[heuristic, error] {
			return func(yield func(heuristic, error) bool) {
				n := 0
				for h, err := range good.All(ctx) {
					if n++; n > 2 || !yield(h, err) {
						return
					}
				}
			}
		}}, "a loop may call the store and end early"},
		{"it ignores the context", brokenStore{put: func(good learning.Store, h heuristic) (heuristic, error) {
			return good.Put(background, h)
		}}, "a context that is done changes nothing"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			assertCaught(t, test.caughtBy, learningtest.CheckStore(func() (learning.Store, error) {
				broken := test.broken
				broken.Store = &memstore.Heuristics{}
				return &broken, nil
			}))
		})
	}
}

func assertCaught(t *testing.T, by string, err error) {
	t.Helper()
	require.Error(t, err)
	caught := false
	for line := range strings.Lines(err.Error()) {
		caught = caught || strings.HasPrefix(line, by)
	}
	assert.True(t, caught, "the fault should be caught by %q, but was by:\n%s", by, err)
}

// brokenStrategy is a good strategy with something spoilt.
type brokenStrategy struct {
	*learning.Bayesian
	feedback func(good *learning.Bayesian, f learning.Feedback) (signal, error)
	timeout  func(good *learning.Bayesian, t learning.Timeout) (signal, error)
	undo     func(good *learning.Bayesian, u learning.Undo) ([]signal, error)
	windows  func(domain string) learning.Windows
	config   func() map[string]string
}

func (b *brokenStrategy) InterpretFeedback(f learning.Feedback) (signal, error) {
	if b.feedback == nil {
		return b.Bayesian.InterpretFeedback(f)
	}
	return b.feedback(b.Bayesian, f)
}

func (b *brokenStrategy) InterpretTimeout(t learning.Timeout) (signal, error) {
	if b.timeout == nil {
		return b.Bayesian.InterpretTimeout(t)
	}
	return b.timeout(b.Bayesian, t)
}

func (b *brokenStrategy) InterpretUndo(u learning.Undo) ([]signal, error) {
	if b.undo == nil {
		return b.Bayesian.InterpretUndo(u)
	}
	return b.undo(b.Bayesian, u)
}

func (b *brokenStrategy) Windows(domain string) learning.Windows {
	if b.windows == nil {
		return b.Bayesian.Windows(domain)
	}
	return b.windows(domain)
}

func (b *brokenStrategy) Config() map[string]string {
	if b.config == nil {
		return b.Bayesian.Config()
	}
	return b.config()
}

// TestStrategySuiteBites runs the suite against strategies that each break one rule, and expects it to say so.
func TestStrategySuiteBites(t *testing.T) {
	var asked atomic.Int64
	shared := map[string]string{"strategy": "shared"}
	metadata := map[string]string{"elapsed": "x"}
	for _, test := range []struct {
		fault    string
		broken   brokenStrategy
		caughtBy string
	}{
		{"its magnitudes are negative", brokenStrategy{timeout: func(good *learning.Bayesian, t learning.Timeout) (signal, error) {
			s, err := good.InterpretTimeout(t)
			s.Magnitude = -s.Magnitude
			return s, err
		}}, "signals can be counted"},
		{"it speaks of nobody", brokenStrategy{timeout: func(good *learning.Bayesian, t learning.Timeout) (signal, error) {
			s, err := good.InterpretTimeout(t)
			s.HeuristicID = ""
			return s, err
		}}, "signals can be counted"},
		{"it turns thumbs round", brokenStrategy{feedback: func(good *learning.Bayesian, f learning.Feedback) (signal, error) {
			f.Positive = !f.Positive
			return good.InterpretFeedback(f)
		}}, "praise is no complaint"},
		{"it takes every score", brokenStrategy{feedback: func(good *learning.Bayesian, f learning.Feedback) (signal, error) {
			f.Score = min(max(f.Score, 1), max(f.Scale.Points(), 1))
			return good.InterpretFeedback(f)
		}}, "feedback that is not valid is an error"},
		{"it undoes everything twice", brokenStrategy{undo: func(good *learning.Bayesian, u learning.Undo) ([]signal, error) {
			signals, err := good.InterpretUndo(u)
			return append(signals, signals...), err
		}}, "an undo speaks of what was shown"},
		{"it undoes the last first", brokenStrategy{undo: func(good *learning.Bayesian, u learning.Undo) ([]signal, error) {
			signals, err := good.InterpretUndo(u)
			slices.Reverse(signals)
			return signals, err
		}}, "an undo speaks of what was shown"},
		{"it undoes what was not shown", brokenStrategy{undo: func(good *learning.Bayesian, u learning.Undo) ([]signal, error) {
			signals, err := good.InterpretUndo(u)
			return append(signals, learning.NewSignal(learning.Negative, "h9", "e9", "x")), err
		}}, "without fires nothing is undone"},
		{"it has moods", brokenStrategy{timeout: func(good *learning.Bayesian, t learning.Timeout) (signal, error) {
			s, err := good.InterpretTimeout(t)
			s.Magnitude = float64(asked.Add(1) % 7)
			return s, err
		}}, "the same request has the same answer"},
		{"it sorts what it is given", brokenStrategy{undo: func(good *learning.Bayesian, u learning.Undo) ([]signal, error) {
			signals, err := good.InterpretUndo(u)
			slices.Reverse(u.Fires)
			return signals, err
		}}, "requests stay as they are"},
		{"its answers share a map", brokenStrategy{timeout: func(good *learning.Bayesian, t learning.Timeout) (signal, error) {
			s, err := good.InterpretTimeout(t)
			s.Metadata = metadata
			return s, err
		}}, "what one caller does to an answer"},
		{"it hands out its configuration", brokenStrategy{config: func() map[string]string { return shared }}, "the configuration names the strategy"},
		{"it has no name", brokenStrategy{config: func() map[string]string { return nil }}, "the configuration names the strategy"},
		{"its windows are negative", brokenStrategy{windows: func(string) learning.Windows { return learning.Windows{Undo: -1} }}, "windows are not negative"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			good, err := learning.NewBayesian(learning.BayesianConfig{})
			require.NoError(t, err)
			test.broken.Bayesian = good
			assertCaught(t, test.caughtBy, learningtest.CheckStrategy(&test.broken))
		})
	}
}
