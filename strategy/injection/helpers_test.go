package injection_test

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

var ctx = context.Background()

// newLearner returns a learner of four arms that stand still in time, if the configuration does not
// say otherwise.
func newLearner(t testing.TB, cfg strategy.Config) *strategy.Learner {
	cfg.Now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	st, err := memstore.New(memstore.Config{Now: cfg.Now})
	require.NoError(t, err)
	cfg.Store = st
	if cfg.Seed == nil {
		cfg.Seed = rand.NewPCG(1, 2)
	}
	l, err := strategy.New(ctx, cfg)
	require.NoError(t, err)
	return l
}

func choose(t testing.TB, l *strategy.Learner, q strategy.Query) strategy.Choice {
	c, err := l.Select(ctx, q)
	require.NoError(t, err)
	return c
}

// credit observes an outcome of full confidence.
func credit(t testing.TB, l *strategy.Learner, c strategy.Choice, value float64) {
	_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1})
	require.NoError(t, err)
}

// throughJSON returns the choice as another process would read it.
func throughJSON(t testing.TB, c strategy.Choice) (read strategy.Choice) {
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &read))
	return read
}

// assertShare checks a share of n draws against a probability, within a number of standard errors.
func assertShare(t testing.TB, want, got float64, n int, errors float64, about ...any) {
	t.Helper()
	assert.InDelta(t, want, got, errors*math.Sqrt(want*(1-want)/float64(n)), about...)
}

func assertInputError(t testing.TB, err error, field string) {
	t.Helper()
	var fault *heed.InputError
	if assert.ErrorAs(t, err, &fault) {
		assert.Equal(t, field, fault.Field)
	}
}

// one returns a parameter.
func one(name string, values ...string) strategy.Parameter {
	return strategy.Parameter{Name: name, Values: values}
}
