package loop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/store"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// A model that goes on failing is asked again after a second, and then after twice the time before,
// up to fifteen seconds.
func TestTheWaitForAModelIsBounded(t *testing.T) {
	h, now := &health{}, noon
	var waits []time.Duration
	for range leftOut + 6 {
		h.probe(now)
		if h.fail(now, llm.RateLimited, 0) {
			waits = append(waits, h.Wait/time.Second)
			now = h.Again
		}
	}
	assert.Equal(t, []time.Duration{1, 2, 4, 8, 15, 15, 15}, waits)
}

// A probe is of a model that is unavailable, at a time when it is to be asked. No other call of a
// model keeps other callers from it.
func TestOnlyAModelThatIsDownIsProbed(t *testing.T) {
	h := &health{}
	h.probe(noon)
	assert.Equal(t, &health{}, h, "it is up")
	for range leftOut {
		h.fail(noon, llm.RateLimited, 0)
	}
	down := *h
	h.probe(noon)
	assert.Equal(t, &down, h, "it is too early")
	h.passed = mostPassed
	h.probe(h.Again)
	assert.True(t, h.probed)
	assert.Zero(t, h.passed)
	assert.Equal(t, down.Again.Add(time.Second), h.Again, "until then it is the probe's")
	h.Wait = 4 * time.Second
	h.probe(h.Again)
	assert.Equal(t, down.Again.Add(5*time.Second), h.Again)
}

// Three failures in a row make a model unavailable. A provider may ask for a longer wait, of two
// minutes at most.
func TestWhenAModelIsLeftOut(t *testing.T) {
	for wanted, wait := range map[time.Duration]time.Duration{
		0: 927050983, 950 * time.Millisecond: 950 * time.Millisecond,
		40 * time.Second: 40 * time.Second, 2 * time.Minute: 2 * time.Minute,
		time.Hour: 2 * time.Minute,
	} {
		h := &health{Model: "m", Answers: 2, passed: 7}
		for n := 1; n <= 3; n++ {
			assert.Equal(t, n == 3, h.fail(noon, llm.RateLimited, wanted))
			assert.Equal(t, n, h.Failures)
			assert.Equal(t, n == 3, h.down(noon))
		}
		assert.Equal(t, &health{
			Model: "m", At: noon, Failures: 3, Failure: llm.RateLimited, Since: noon, Times: 1,
			Again: noon.Add(wait), Wait: time.Second,
		}, h)
	}
}

// A call that began before the model was left out may bring a later time, and doubles no wait.
func TestAFailureOfACallThatWasOnItsWay(t *testing.T) {
	h := &health{}
	for range leftOut {
		h.fail(noon, llm.ServerError, 10*time.Second)
	}
	for wanted, again := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 10 * time.Second: 10 * time.Second, 11 * time.Second: 11 * time.Second,
		time.Hour: 2 * time.Minute,
	} {
		late := *h
		assert.False(t, late.fail(noon, llm.RateLimited, wanted))
		assert.Equal(t, noon.Add(again), late.Again)
		assert.Equal(t, time.Second, late.Wait)
		assert.Equal(t, 4, late.Failures)
		assert.Equal(t, llm.RateLimited, late.Failure)
	}
}

// Failures that are not counted any more make no model unavailable, and an answer after them is no
// news.
func TestOldFailuresDoNotAddUp(t *testing.T) {
	h := &health{}
	for range leftOut - 1 {
		h.fail(noon, llm.RateLimited, 0)
	}
	assert.False(t, h.fail(noon.Add(fading+1), llm.RateLimited, 0))
	assert.Equal(t, 1, h.Failures)
	for range leftOut {
		h.fail(noon, llm.RateLimited, 0)
	}
	now := noon.Add(fading + 1)
	assert.False(t, h.answer(now))
	assert.Equal(t, &health{At: now}, h)
}

// A failure counts for five minutes, before it and after it, because clocks may be wrong.
func TestHowLongAFailureCounts(t *testing.T) {
	for after, counts := range map[time.Duration]bool{
		fading: true, fading + 1: false, -fading: true, -fading - 1: false,
	} {
		h := &health{
			Model: "m", At: noon, Failures: 4, Since: noon, Times: 2, local: local{revision: 7},
		}
		now := noon.Add(after)
		assert.Equal(t, counts, h.down(now))
		assert.Equal(t, counts, h.spared(now))
		h.fade(now)
		if counts {
			assert.Equal(t, 4, h.Failures)
		} else {
			assert.Equal(t, &health{Model: "m", At: now, local: local{revision: 7}}, h)
		}
	}
	assert.False(t, (*health)(nil).down(noon))
	assert.False(t, (&health{At: noon, Failures: 2}).down(noon))
}

// A model is not asked before its time. A time that is too far away is of a wrong clock. After
// that, others answer three events first.
func TestWhenAModelIsAskedAgain(t *testing.T) {
	for wait, left := range map[time.Duration]bool{
		-1: false, 0: false, 1: true, longestWait: true, longestWait + 1: false,
	} {
		h := &health{At: noon, Since: noon, Again: noon.Add(wait), passed: mostPassed}
		assert.Equal(t, left, h.left(noon), wait)
		assert.Equal(t, left, h.spared(noon), wait)
		h.passed = mostPassed - 1
		assert.True(t, h.spared(noon))
	}
}

// The waits for a model differ from failure to failure, from half of a wait to all of it.
func TestWaitsAreApart(t *testing.T) {
	assert.Equal(t, 809016994*time.Nanosecond, (&health{Failures: 1}).apart(time.Second))
	var sum time.Duration
	for n := range 100 {
		wait := (&health{Failures: n}).apart(time.Minute)
		assert.GreaterOrEqual(t, wait, 30*time.Second)
		assert.LessOrEqual(t, wait, time.Minute)
		sum += wait
	}
	assert.InDelta(t, 45, (sum / 100).Seconds(), 1)
}

// One answer makes a model available, and as many as it was unavailable lately, up to five.
func TestHowManyAnswersAModelNeeds(t *testing.T) {
	up := &health{At: noon, Failures: 2}
	assert.False(t, up.answer(noon.Add(time.Minute)))
	assert.Equal(t, &health{At: noon}, up, "it was available")
	for times, needs := range map[int]int{1: 1, 3: 3, 5: 5, 9: 5} {
		h := &health{At: noon, Failures: 3, Failure: llm.ServerError, Since: noon, Times: times,
			Wait: time.Second, Again: noon.Add(time.Second), probed: true}
		now := noon
		for n := 1; n <= needs; n++ {
			now = now.Add(time.Second)
			require.True(t, h.down(now))
			assert.True(t, h.answer(now))
			assert.False(t, h.spared(now), "every event may ask it now")
		}
		assert.Equal(t, &health{At: now, Times: times, Again: now, passed: mostPassed}, h)
	}
}

// downAvailability returns an availability in which the models a and b have failed so often.
func downAvailability(a, b int) *availability {
	v := &availability{of: make(map[string]*health)}
	for name, n := range map[string]int{"a": a, "b": b} {
		for range n {
			v.note(name, &attempt{called: true, err: llm.ServerError}, noon)
		}
	}
	return v
}

// Models that failed ten times in a row are dead, if all that may be asked are, and it is too early
// to ask one. The one that is asked first is named first.
func TestDeadModels(t *testing.T) {
	models := chain{{name: "a"}, {name: "b"}}
	require.NoError(t, downAvailability(10, 9).dead(models, noon))
	require.NoError(t, downAvailability(10, 0).dead(models, noon))
	require.NoError(t, downAvailability(10, 10).dead(nil, noon))
	v := downAvailability(10, 10)
	require.NoError(t, v.dead(models, noon.Add(time.Second)))
	v.of["b"].Again = v.of["a"].Again.Add(-time.Millisecond)
	err := v.dead(models, noon)
	require.ErrorIs(t, err, ErrNoModel)
	require.ErrorIs(t, err, llm.ServerError)
	assert.Regexp(t, "^no model is available; b failed 10 times.*; a failed 10 times", err.Error())
	assert.Equal(t, v.of["b"].Again.Sub(noon), llm.RetryAfter(err))
}

// An event passes over all models but the one that answers, which it probes when it is time.
func TestAnEventPassesOverModels(t *testing.T) {
	v := downAvailability(3, 3)
	later := noon.Add(time.Second)
	for n := 1; n <= 3; n++ {
		spared, left := v.begin("a", later)
		assert.True(t, spared)
		assert.False(t, left)
		assert.Equal(t, []int{n, n}, []int{v.of["a"].passed, v.of["b"].passed})
	}
	spared, left := v.begin("a", later)
	assert.False(t, spared || left)
	assert.True(t, v.of["a"].probed)
	assert.Equal(t, 4, v.of["b"].passed)
	spared, left = v.begin("a", later)
	assert.True(t, spared && left, "somebody else probes it")
	spared, left = v.begin("c", later)
	assert.False(t, spared || left)
	spared, left = v.spared("b", noon)
	assert.True(t, spared && left)
	spared, left = v.spared("c", noon)
	assert.False(t, spared || left)
}

// What an attempt shows is counted: a failure of a model that is not known makes it known, and an
// answer of no use shows that the model can be reached.
func TestWhatAnAttemptShows(t *testing.T) {
	v := downAvailability(0, 0)
	v.note("a", &attempt{called: true, text: "So."}, noon)
	v.note("a", &attempt{called: true, err: errors.New("?")}, noon)
	assert.Empty(t, v.of)
	for _, works := range []*attempt{{called: true, text: "So."}, {called: true}} {
		v = downAvailability(3, 3)
		require.Len(t, v.takeNews(), 2)
		require.Empty(t, v.takeNews(), "it is news once")
		v.note("a", &attempt{called: true, err: errors.New("?")}, noon)
		assert.True(t, v.of["a"].down(noon))
		v.note("a", works, noon)
		assert.False(t, v.of["a"].down(noon))
		news := v.takeNews()
		require.Len(t, news, 1)
		assert.Equal(t, "a", news[0].Model)
	}
}

// What another process recorded replaces what this one counted, if it is newer. What only this
// process knows stays.
func TestNewsOfAnotherProcess(t *testing.T) {
	v := downAvailability(3, 0)
	assert.True(t, v.stored("a", 5))
	assert.False(t, v.stored("a", 5))
	assert.False(t, v.stored("a", 4))
	known := v.of["a"]
	for revision, taken := range map[uint64]bool{4: false, 5: false, 6: true} {
		v.of["a"].passed = 2
		v.take(store.Row[health]{Value: health{Model: "a", Failures: 1}, Revision: revision})
		if taken {
			assert.Equal(t, 1, v.of["a"].Failures)
			assert.EqualValues(t, 6, v.of["a"].revision)
			assert.Equal(t, 2, v.of["a"].passed)
			assert.ErrorIs(t, v.of["a"].cause, llm.ServerError)
			v.of["a"] = known
			known.revision = 5
		} else {
			assert.Equal(t, 3, v.of["a"].Failures)
		}
	}
}

// Each beginning and each end of an outage is reported once, and an incident if every model that
// may be asked is unavailable, or several are.
func TestChangesOfAvailability(t *testing.T) {
	for name, test := range map[string]struct {
		a, b  int
		asked []string
		want  []string
	}{
		"none":             {2, 2, []string{"a", "b"}, nil},
		"one of two":       {3, 0, []string{"a", "b"}, []string{"a"}},
		"the only one":     {3, 0, []string{"a"}, []string{"a", "models"}},
		"both":             {3, 3, []string{"a", "b"}, []string{"a", "b", "models"}},
		"both, and others": {3, 3, []string{"a", "b", "c"}, []string{"a", "b", "models"}},
		"none is asked":    {3, 0, nil, []string{"a"}},
	} {
		v := downAvailability(test.a, test.b)
		for i := range 2 {
			var got []string
			for _, n := range v.changes(test.asked, noon) {
				got = append(got, n.what)
				assert.Zero(t, n.since)
				assert.ErrorIs(t, n.failure, llm.ServerError)
			}
			if i == 1 {
				test.want = nil
			}
			assert.Equal(t, test.want, got, name)
		}
		for _, m := range []string{"a", "b"} {
			v.note(m, &attempt{called: true, text: "So."}, noon)
		}
		for range 2 {
			for _, n := range v.changes(test.asked, noon.Add(time.Minute)) {
				assert.Equal(t, noon, n.since, name)
				assert.NoError(t, n.failure)
				test.want = append(test.want, n.what)
			}
		}
		assert.Len(t, test.want, map[string]int{"none": 0, "one of two": 1, "the only one": 2,
			"both": 3, "both, and others": 3, "none is asked": 1}[name], name)
	}
}

// An attempt that ended is counted once, as what it was, however long it took.
func TestASlowAnswerIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New(t.Context(), Config{Model: decision.LLMFunc(
			func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
				time.Sleep(20 * time.Second)
				return decision.LLMResponse{Text: "So."}, nil
			})})
		require.NoError(t, err)
		given, err := a.Answer(t.Context(), Event{Text: "Why?"})
		require.NoError(t, err)
		assert.Equal(t, "So.", given.Text)
		assert.Empty(t, a.models.of)
	})
}

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
