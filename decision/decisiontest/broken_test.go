package decisiontest_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/decisiontest"
	"github.com/heedhq/heed/memstore"
)

// brokenStrategy is HeuristicFirst with something wrong about it.
type brokenStrategy struct {
	decision.Strategy
	before func(context.Context, *decision.Request) (context.Context, error)
	after  func(*decision.Result, *error)
}

func (b brokenStrategy) Decide(ctx context.Context, r decision.Request) (decision.Result, error) {
	if b.before != nil {
		var err error
		if ctx, err = b.before(ctx, &r); err != nil {
			return decision.Result{}, err
		}
	}
	res, err := b.Strategy.Decide(ctx, r)
	if b.after != nil {
		b.after(&res, &err)
	}
	return res, err
}

func TestStrategySuiteCatchesBrokenOnes(t *testing.T) {
	candidates := func(r *decision.Request) bool { return len(r.Candidates) > 0 }
	broken := map[string]struct {
		strategy brokenStrategy
		llm      func(decision.LLM) decision.LLM
		rule     string
	}{
		"no path":             {brokenStrategy{after: func(r *decision.Result, _ *error) { r.Path = "maybe" }}, nil, "a result is whole"},
		"no reason":           {brokenStrategy{after: func(r *decision.Result, _ *error) { r.Reason = "" }}, nil, "a result is whole"},
		"blames what it saw":  {brokenStrategy{after: func(r *decision.Result, _ *error) { r.CreditID = r.MatchedID }}, nil, "a result is whole"},
		"believes too much":   {brokenStrategy{after: func(r *decision.Result, _ *error) { r.Success *= 2 }}, nil, "a result is whole"},
		"one id for all":      {brokenStrategy{after: func(r *decision.Result, _ *error) { r.ResponseID = "id" }}, nil, "a result is whole"},
		"an id of no answer":  {brokenStrategy{after: func(r *decision.Result, _ *error) { r.MatchedID = "h1" }}, nil, "a result is whole"},
		"answers without one": {brokenStrategy{after: func(r *decision.Result, _ *error) { r.Path, r.Reason, r.ResponseID = decision.Model, "", "x" }}, nil, "no candidates and no model"},
		"sorts the candidates": {brokenStrategy{before: func(ctx context.Context, r *decision.Request) (context.Context, error) {
			if candidates(r) {
				r.Candidates[0].Confidence = 0
			}
			return ctx, nil
		}}, nil, "a request stays"},
		"adds a bias": {brokenStrategy{before: func(ctx context.Context, r *decision.Request) (context.Context, error) {
			if r.Biases != nil {
				maps.Copy(r.Biases, map[string]float64{"new": 1})
			}
			return ctx, nil
		}}, nil, "a request stays"},
		"takes what is wrong": {brokenStrategy{before: func(ctx context.Context, r *decision.Request) (context.Context, error) {
			if r.Validate() != nil {
				*r = decision.Request{}
			}
			return ctx, nil
		}}, nil, "a request that is not valid"},
		"has no ear for its context": {brokenStrategy{before: func(ctx context.Context, _ *decision.Request) (context.Context, error) {
			return context.WithoutCancel(ctx), nil
		}}, nil, "a context that is done"},
		"gives the model's error": {brokenStrategy{after: func(r *decision.Result, err *error) { *err = errors.Join(*err, r.Err) }}, nil, "what goes wrong with a model"},
		"takes errors for answers": {brokenStrategy{}, func(llm decision.LLM) decision.LLM {
			return decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
				reply, err := llm.Generate(ctx, r)
				if err != nil {
					reply.Text = err.Error()
				}
				return reply, nil
			})
		}, "what goes wrong with a model"},
	}
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := decisiontest.CheckStrategy(func(llm decision.LLM) (decision.Strategy, error) {
				if b.llm != nil && llm != nil {
					llm = b.llm(llm)
				}
				h, err := decision.NewHeuristicFirst(decision.Config{LLM: llm, Timeout: 10 * time.Second})
				b.strategy.Strategy = h
				return b.strategy, err
			})
			assert.ErrorContains(t, err, b.rule)
		})
	}
	t.Run("hangs", func(t *testing.T) {
		t.Parallel()
		err := decisiontest.CheckStrategy(func(llm decision.LLM) (decision.Strategy, error) {
			h, err := decision.NewHeuristicFirst(decision.Config{LLM: llm})
			return brokenStrategy{Strategy: h, before: func(ctx context.Context, r *decision.Request) (context.Context, error) {
				if _, ok := ctx.Deadline(); ok {
					time.Sleep(6 * time.Second)
				}
				return ctx, nil
			}}, err
		})
		assert.ErrorContains(t, err, "a model that hangs is left")
	})
	t.Run("can't be made", func(t *testing.T) {
		err := decisiontest.CheckStrategy(func(decision.LLM) (decision.Strategy, error) { return nil, errors.New("x") })
		assert.ErrorContains(t, err, "new: x")
	})
}

// brokenTraces is a store with something wrong about it.
type brokenTraces struct {
	decision.TraceStore
	put   func(context.Context, decision.TraceStore, decision.Trace) error
	get   func(context.Context, decision.TraceStore, string) (decision.Trace, error)
	react func(context.Context, decision.TraceStore, string, decision.Verdict) (decision.Trace, decision.Standing, error)
	del   func(context.Context, decision.TraceStore, string) error
}

func (b brokenTraces) Put(ctx context.Context, t decision.Trace) error {
	if b.put != nil {
		return b.put(ctx, b.TraceStore, t)
	}
	return b.TraceStore.Put(ctx, t)
}

func (b brokenTraces) Get(ctx context.Context, id string) (decision.Trace, error) {
	if b.get != nil {
		return b.get(ctx, b.TraceStore, id)
	}
	return b.TraceStore.Get(ctx, id)
}

func (b brokenTraces) Delete(ctx context.Context, id string) error {
	if b.del != nil {
		return b.del(ctx, b.TraceStore, id)
	}
	return b.TraceStore.Delete(ctx, id)
}

func (b brokenTraces) React(ctx context.Context, id string, v decision.Verdict) (decision.Trace, decision.Standing, error) {
	if b.react != nil {
		return b.react(ctx, b.TraceStore, id, v)
	}
	return b.TraceStore.React(ctx, id, v)
}

func TestTraceSuiteCatchesBrokenOnes(t *testing.T) {
	type standing = decision.Standing
	for name, tt := range map[string]struct {
		store brokenTraces
		rule  string
	}{
		"loses the domain": {brokenTraces{put: func(ctx context.Context, s decision.TraceStore, t decision.Trace) error {
			t.Domain = ""
			return s.Put(ctx, t)
		}}, "read back as it was put"},
		"writes over": {brokenTraces{put: func(ctx context.Context, s decision.TraceStore, t decision.Trace) error {
			_ = s.Delete(ctx, t.ResponseID)
			return s.Put(ctx, t)
		}}, "a trace is put once"},
		"takes no id": {brokenTraces{put: func(ctx context.Context, s decision.TraceStore, t decision.Trace) error {
			if t.ResponseID == "" {
				return nil
			}
			return s.Put(ctx, t)
		}}, "without an id is refused"},
		"folds case": {brokenTraces{get: func(ctx context.Context, s decision.TraceStore, id string) (decision.Trace, error) {
			t, err := s.Get(ctx, id)
			if err != nil {
				return s.Get(ctx, strings.ToLower(id))
			}
			return t, err
		}}, "ErrNotFound"},
		"has errors of its own": {brokenTraces{get: func(ctx context.Context, s decision.TraceStore, id string) (decision.Trace, error) {
			t, err := s.Get(ctx, id)
			if errors.Is(err, heed.ErrNotFound) {
				err = errors.New("no such trace")
			}
			return t, err
		}}, "ErrNotFound"},
		"deletes nothing": {brokenTraces{del: func(ctx context.Context, s decision.TraceStore, id string) error {
			_, err := s.Get(ctx, id)
			return err
		}}, "what is deleted is gone"},
		"keeps one": {brokenTraces{get: func(ctx context.Context, s decision.TraceStore, id string) (decision.Trace, error) {
			if strings.HasSuffix(id, "7") {
				return decision.Trace{}, heed.ErrNotFound
			}
			return s.Get(ctx, id)
		}}, "kept apart"},
		"has no ear for its context": {brokenTraces{put: func(_ context.Context, s decision.TraceStore, t decision.Trace) error {
			return s.Put(context.Background(), t)
		}}, "a context that is done"},
		"the last to come holds": {brokenTraces{react: func(ctx context.Context, s decision.TraceStore, id string, v decision.Verdict) (decision.Trace, standing, error) {
			v.At = time.Time{}
			return s.React(ctx, id, v)
		}}, "the latest verdict holds"},
		"the first at one time holds": {brokenTraces{react: func(ctx context.Context, s decision.TraceStore, id string, v decision.Verdict) (decision.Trace, standing, error) {
			t, st, err := s.React(ctx, id, v)
			if st.Before.At.Equal(st.Now.At) && st.Now.Value == -1 {
				st.Now, st.Before = st.Before, decision.Verdict{}
			}
			return t, st, err
		}}, "of two verdicts at one time"},
		"the same replaces itself": {brokenTraces{react: func(ctx context.Context, s decision.TraceStore, id string, v decision.Verdict) (decision.Trace, standing, error) {
			t, st, err := s.React(ctx, id, v)
			if st.Now == v && st.Before != (decision.Verdict{}) && v.Value == -1 && v.At.Minute()%2 == 0 {
				st.Before = v
			}
			return t, st, err
		}}, "the same verdict again"},
		"one person for all": {brokenTraces{react: func(ctx context.Context, s decision.TraceStore, id string, v decision.Verdict) (decision.Trace, standing, error) {
			v.Person = ""
			return s.React(ctx, id, v)
		}}, "verdicts of others"},
		"reads, then writes": {brokenTraces{react: func(ctx context.Context, s decision.TraceStore, id string, v decision.Verdict) (decision.Trace, standing, error) {
			t, st, err := s.React(ctx, id, v)
			if v.Value > 0 && v.Value < 0.25 {
				st.Before.Value = 0.123
			}
			return t, st, err
		}}, "one by one"},
	} {
		t.Run(name, func(t *testing.T) {
			err := decisiontest.CheckTraces(func(now func() time.Time) (decision.TraceStore, error) {
				store, err := memstore.NewTraces(memstore.TracesConfig{Now: now})
				tt.store.TraceStore = store
				return tt.store, err
			})
			assert.ErrorContains(t, err, tt.rule)
		})
	}
}
