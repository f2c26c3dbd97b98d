package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/store"
)

// What a call of a model is evidence about follows from what happened.
func TestWhoseAFailureIs(t *testing.T) {
	failed := func(f llm.Failure) error { return &llm.Error{Failure: f} }
	other := errors.New("no")
	for name, test := range map[string]struct {
		of           attempt
		want         subject
		unrecognised bool
	}{
		"it was not called":        {attempt{err: failed(llm.ServerError)}, nothing, false},
		"not called, and unknown":  {attempt{err: other}, nothing, false},
		"the host failed":          {attempt{called: true, host: true, err: other}, nothing, false},
		"the host failed, no text": {attempt{called: true, host: true}, nothing, false},
		"it answered":              {attempt{called: true, text: "So."}, nothing, false},
		"it answered with a text and an error": {
			attempt{called: true, text: "So.", err: failed(llm.ServerError)}, aModel, false,
		},
		"no text":      {attempt{called: true}, someArm, false},
		"thoughts":     {attempt{called: true, text: "<think>hm</think>"}, someArm, false},
		"unusable":     {attempt{called: true, err: failed(llm.Unusable)}, someArm, false},
		"unreachable":  {attempt{called: true, err: failed(llm.Unreachable)}, aModel, false},
		"rate limited": {attempt{called: true, err: failed(llm.RateLimited)}, aModel, false},
		"server error": {attempt{called: true, err: failed(llm.ServerError)}, aModel, false},
		"timed out":    {attempt{called: true, err: failed(llm.TimedOut)}, aModel, false},
		"not known":    {attempt{called: true, err: other}, nothing, true},
		"the caller left": {
			attempt{called: true, err: failed(llm.ServerError), ended: context.Canceled}, nothing, false,
		},
		"too little time": {
			attempt{called: true, err: other, ended: context.DeadlineExceeded}, nothing, false,
		},
		"a fair part of its time": {
			attempt{called: true, err: other, ended: context.DeadlineExceeded, patient: true},
			aModel, false,
		},
	} {
		assert.Equal(t, test.want, test.of.whose(), name)
		assert.Equal(t, test.unrecognised, test.of.unrecognised(), name)
	}
}

// What an agent keeps beside answers is bounded, or kept for good.
func TestWhatIsKeptForHowLong(t *testing.T) {
	taught := store.Limits{Most: 100_000, Refuse: true}
	for name, test := range map[string]struct {
		is, want store.Limits
	}{
		"notes":        {notesOf("n").Limits, taught},
		"lessons":      {lessonsOf("n").Limits, taught},
		"availability": {healthOf("n").Limits, store.Limits{For: time.Hour, Most: 1000}},
		"plans":        {plansOf("n").Limits, store.Limits{For: time.Hour, Most: 10_000}},
		"imports":      {importsOf("n").Limits, store.Limits{}},
		"tenants":      {tenantsOf("n").Limits, store.Limits{}},
	} {
		assert.Equal(t, test.want, test.is, name)
	}
	assert.True(t, notesOf("n").Versioned)
}

// The heuristic with the most similar advice is found however little it has in common, and each
// failure of the similarity is returned.
func TestTheNearestAdvice(t *testing.T) {
	h := learning.Heuristic{ID: "rotate", Condition: "the disk is full", Action: "Rotate the logs."}
	a, err := New(t.Context(), Config{Lessons: Lessons{Heuristics: []learning.Heuristic{h}}})
	require.NoError(t, err)
	id, similarity, err := a.nearest(t.Context(), "", "the disk is full", "Rotate all logs now.")
	require.NoError(t, err)
	assert.Equal(t, "rotate", id)
	assert.Greater(t, similarity, 0.2)
	assert.Less(t, similarity, 1.)
	for n := range 2 {
		calls := 0
		a.cfg.Tuning.Similarity = similar(func() error {
			if calls++; calls > n {
				return fmt.Errorf("call %d", n)
			}
			return nil
		})
		a.similar = a.cfg.Tuning.Similarity
		a.library.Store(nil)
		id, _, err = a.nearest(t.Context(), "", "the disk is full", "Rotate all logs now.")
		require.EqualError(t, err, fmt.Sprintf("call %d", n))
		assert.Empty(t, id)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	var x index[string]
	x.add("a", "the disk is full", true)
	_, err = x.similar(done, heed.Trigrams{}, "the disk")
	require.ErrorIs(t, err, context.Canceled)
}

// A similar similarity finds all texts equal, or fails.
type similar func() error

func (f similar) Similar(_ context.Context, _ string, others []string) ([]float64, error) {
	numbers := make([]float64, len(others))
	for i := range numbers {
		numbers[i] = 1
	}
	return numbers, f()
}

// What was never kept is not known later either, however often it is asked for.
func TestWhatWasNotKeptIsNotKnown(t *testing.T) {
	var r recent[string, int]
	r.put("a", 1, 1)
	for range 3 {
		_, known := r.get("b")
		assert.False(t, known)
		value, known := r.get("a")
		assert.True(t, known)
		assert.Equal(t, 1, value)
	}
	assert.Len(t, r.now, 1)
}
