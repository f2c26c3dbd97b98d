package decision_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// answered returns reactions to an answer "r1" of a heuristic, and one "r2" of the model that was shown it.
func answered(t testing.TB, c *clock, cfg decision.ReactionsConfig) *decision.Reactions {
	t.Helper()
	st := newStore(c.Now)
	h := newHeuristicFirst(t, decision.Config{Prediction: decision.SecondCall, LLM: model("Do it.", `{"success": 0.6, "confidence": 0.4}`), Store: st, Now: c.Now})
	for _, confidence := range []float64{0.9, 0.5} {
		_, err := h.Decide(ctx, decision.Request{EventID: "e", Domain: "home", Candidates: candidates(confidence, 0.4)})
		require.NoError(t, err)
	}
	cfg.Store, cfg.Now = st, c.Now
	f, err := decision.NewReactions(ctx, cfg)
	require.NoError(t, err)
	return f
}

func feedback(t testing.TB, f *decision.Reactions, r decision.Reaction) decision.Credit {
	t.Helper()
	credit, err := f.Feedback(ctx, r)
	require.NoError(t, err)
	return credit
}

func TestFeedback(t *testing.T) {
	c := &clock{}
	f := answered(t, c, decision.ReactionsConfig{})
	c.Advance(time.Minute)
	credit := feedback(t, f, decision.Reaction{
		ResponseID: "r1", Person: "Ann", Session: "s", Channel: "user_explicit", Target: heed.TargetRule, Value: -0.5, Weight: 0.25,
	})
	assert.NotEmpty(t, credit.ID)
	credit.ID = ""
	assert.Equal(t, decision.Credit{
		Verdict: heed.Verdict{
			HeuristicID: "h1", EventID: "e", Person: "Ann", Session: "s", Channel: "user_explicit", Target: heed.TargetRule,
			Value: -0.5, Weight: 0.25, At: start.Add(time.Minute),
		},
		ResponseID: "r1", Domain: "home", Path: decision.Heuristic, Prediction: &decision.Prediction{Success: 0.9, Confidence: 0.9},
	}, credit)
	require.NoError(t, credit.Verdict.Validate(), "it can go to learning as it is")
}

// A host's weight multiplies the factors of the configuration. The same reaction with another weight is another one.
func TestReactionsCarryTheirWeight(t *testing.T) {
	f := answered(t, &clock{}, decision.ReactionsConfig{Channels: map[string]float64{"loud": 0.5, "noise": 0}})
	r := decision.Reaction{ResponseID: "r1", Person: "Ann", Channel: "loud", Value: 1}
	first := feedback(t, f, r)
	assert.InDelta(t, 0.5, first.Weight, 1e-12)
	r.Weight = 1
	assert.Equal(t, first.ID, feedback(t, f, r).ID, "no weight is 1")
	r.Weight = 0.5
	second := feedback(t, f, r)
	assert.InDelta(t, 0.25, second.Weight, 1e-12)
	assert.Equal(t, first.ID, second.Replaces)
	r.Weight = 1e6
	assert.InDelta(t, 5e5, feedback(t, f, r).Weight, 1e-6)

	r.Channel = "noise"
	silent := feedback(t, f, r)
	assert.Zero(t, silent.Value, "a weight of 0 means 1, so a reaction that counts for nothing has no value")
	require.NoError(t, silent.Verdict.Validate())
}

// A bad answer of the model blames no heuristic: neither those that it was shown, nor the best match.
func TestWhatWasMerelyConsideredIsNeverBlamed(t *testing.T) {
	f := answered(t, &clock{}, decision.ReactionsConfig{})
	for _, value := range []float64{-1, 1, 0.3} {
		credit := feedback(t, f, decision.Reaction{ResponseID: "r2", Person: fmt.Sprint(value), Value: value})
		assert.Empty(t, credit.HeuristicID)
		assert.Equal(t, decision.Model, credit.Path)
		assert.Equal(t, &decision.Prediction{Success: 0.6, Confidence: 0.4}, credit.Prediction)
	}
}

func TestTheLastReactionHolds(t *testing.T) {
	c := &clock{}
	f := answered(t, c, decision.ReactionsConfig{})
	c.Advance(time.Hour)
	says := func(value float64, minute int) decision.Credit {
		return feedback(t, f, decision.Reaction{ResponseID: "r1", Person: "Ann", Channel: "user_explicit", Value: value, At: start.Add(time.Duration(minute) * time.Minute)})
	}
	first := says(1, 1)
	assert.Empty(t, first.Replaces)
	assert.Equal(t, first, says(1, 1), "the same again is the same")
	second := says(-1, 3)
	assert.Equal(t, first.ID, second.Replaces)
	assert.NotEqual(t, first.ID, second.ID)
	late := says(0.5, 2)
	assert.True(t, late.Superseded, "it came late, and was said before the second")
	assert.Zero(t, late.Weight)
	assert.Equal(t, second, says(-1, 3), "and the second is what it was")
	third := says(1, 4)
	assert.Equal(t, second.ID, third.Replaces)
	assert.Empty(t, feedback(t, f, decision.Reaction{ResponseID: "r1", Person: "Bob", Channel: "user_explicit", Value: 1}).Replaces, "others are others")
	assert.Empty(t, feedback(t, f, decision.Reaction{ResponseID: "r1", Person: "Ann", Channel: "dev", Value: 1}).Replaces, "so are channels")
	assert.Empty(t, feedback(t, f, decision.Reaction{ResponseID: "r1", Person: "Ann", Channel: "user_explicit", Target: "rule"}).Replaces, "so are targets")
}

// The last reaction of each person stands, in any order of arrival and however often they arrive.
func TestReactionsInAnyOrder(t *testing.T) {
	type said struct {
		person string
		value  float64
		minute int
	}
	var all []said
	for i := range 12 {
		all = append(all, said{fmt.Sprint("p", i%3), float64(i%5)/2 - 1, i})
	}
	sum := func(order []int) (sum float64) {
		c := &clock{}
		f := answered(t, c, decision.ReactionsConfig{})
		c.Advance(time.Hour)
		standing := make(map[string]float64) // by credit, as a host would count
		for _, i := range order {
			s := all[i%len(all)]
			credit := feedback(t, f, decision.Reaction{ResponseID: "r1", Person: s.person, Value: s.value, At: start.Add(time.Duration(s.minute) * time.Minute)})
			if !credit.Superseded {
				delete(standing, credit.Replaces)
				standing[credit.ID] = credit.Value
			}
		}
		assert.Len(t, standing, 3)
		for _, value := range standing {
			sum += value
		}
		return sum
	}
	want := all[9].value + all[10].value + all[11].value
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		assert.InDelta(t, want, sum(rng.Perm(3*len(all))), 1e-12)
	}
}

func TestConcurrentReactions(t *testing.T) {
	f := answered(t, &clock{}, decision.ReactionsConfig{})
	var all sync.WaitGroup
	ids := make([]string, 64)
	for i := range ids {
		all.Go(func() {
			credit, err := f.Feedback(ctx, decision.Reaction{ResponseID: "r1", Person: "Ann", Value: 1})
			assert.NoError(t, err)
			ids[i] = credit.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		assert.Equal(t, ids[0], id, "a click that comes many times is one")
	}
}

func TestFeedbackIsRefused(t *testing.T) {
	f := answered(t, &clock{}, decision.ReactionsConfig{})
	for field, r := range map[string]decision.Reaction{
		"ResponseID": {Value: 1},
		"Value":      {ResponseID: "r1", Value: math.NaN()},
		"Person":     {ResponseID: "r1", Person: "\xff"},
		"Channel":    {ResponseID: "r1", Channel: "a\x00"},
		"Target":     {ResponseID: "r1", Target: "author"},
		"Session":    {ResponseID: "r1", Session: "\xff"},
		"Weight":     {ResponseID: "r1", Weight: -1},
		"At":         {ResponseID: "r1", At: start.Add(time.Hour)},
	} {
		_, err := f.Feedback(ctx, r)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
	}
	_, err := f.Feedback(ctx, decision.Reaction{ResponseID: "r1", At: time.Unix(-1, 0)})
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "At", fault.Field)
	_, err = f.Feedback(ctx, decision.Reaction{ResponseID: "r3", Value: -1})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.Empty(t, feedback(t, f, decision.Reaction{ResponseID: "r1", Value: 1}).Replaces, "what is refused changes nothing")
}

func TestScore(t *testing.T) {
	for _, tt := range []struct {
		mark, points int
		want         float64
	}{{1, 2, -1}, {2, 2, 1}, {1, 3, -1}, {2, 3, 0}, {3, 3, 1}, {2, 5, -0.5}, {4, 5, 0.5}} {
		assert.Equal(t, tt.want, decision.Score(tt.mark, tt.points))
	}
	for _, bad := range [][2]int{{0, 5}, {6, 5}, {1, 1}, {0, 0}, {-1, -1}} {
		assert.True(t, math.IsNaN(decision.Score(bad[0], bad[1])))
	}
}

func TestWeights(t *testing.T) {
	for name, tt := range map[string]struct {
		weights  decision.ReactionsConfig
		reaction decision.Reaction
		want     float64
	}{
		"none":               {decision.ReactionsConfig{}, decision.Reaction{ResponseID: "r1", Value: 1}, 1},
		"by source":          {decision.ReactionsConfig{Channels: map[string]float64{"dev": 0.4}}, decision.Reaction{ResponseID: "r1", Channel: "dev", Value: 1}, 0.4},
		"another source":     {decision.ReactionsConfig{Channels: map[string]float64{"dev": 0.4}}, decision.Reaction{ResponseID: "r1", Channel: "user_explicit", Value: 1}, 1},
		"nothing is nothing": {decision.ReactionsConfig{Channels: map[string]float64{"dev": 0}}, decision.Reaction{ResponseID: "r1", Channel: "dev", Value: 1}, 0},
		"by path":            {decision.ReactionsConfig{Paths: map[decision.Path]float64{decision.Model: 0.5}}, decision.Reaction{ResponseID: "r2", Value: 1}, 0.5},
		"another path":       {decision.ReactionsConfig{Paths: map[decision.Path]float64{decision.Model: 0.5}}, decision.Reaction{ResponseID: "r1", Value: 1}, 1},
		"at once":            {decision.ReactionsConfig{HalfLife: time.Hour}, decision.Reaction{ResponseID: "r1", Value: 1, At: start}, 1},
		"after a half-life":  {decision.ReactionsConfig{HalfLife: time.Hour}, decision.Reaction{ResponseID: "r1", Value: 1, At: start.Add(time.Hour)}, 0.5},
		"after three":        {decision.ReactionsConfig{HalfLife: time.Hour}, decision.Reaction{ResponseID: "r1", Value: 1, At: start.Add(3 * time.Hour)}, 0.125},
		"before the answer":  {decision.ReactionsConfig{HalfLife: time.Hour}, decision.Reaction{ResponseID: "r1", Value: 1, At: start.Add(-9 * time.Hour)}, 1},
		"all together": {decision.ReactionsConfig{Channels: map[string]float64{"dev": 0.4}, Paths: map[decision.Path]float64{decision.Heuristic: 2}, HalfLife: time.Hour},
			decision.Reaction{ResponseID: "r1", Channel: "dev", Value: 1, At: start.Add(time.Hour)}, 0.4},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock{}
			f := answered(t, c, tt.weights)
			c.Advance(12 * time.Hour)
			assert.InDelta(t, tt.want, feedback(t, f, tt.reaction).Weight, 1e-12)
		})
	}
}

// rates has a person react to many answers and returns the mean weights of praise and of blame, over the second half.
func rates(t *testing.T, share, strength float64) (praise, blame float64) {
	c := &clock{}
	st := newStore(c.Now)
	f, err := decision.NewReactions(ctx, decision.ReactionsConfig{
		Store: st, Now: c.Now, Calibration: strength,
	})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	var n [2]float64
	for i := range 600 {
		require.NoError(t, decision.PutTrace(ctx, st, decision.Trace{ResponseID: fmt.Sprint(i), At: c.Now()}))
		value := -1.
		if rng.Float64() < share {
			value = 1
		}
		weight := feedback(t, f, decision.Reaction{ResponseID: fmt.Sprint(i), Person: "Ann", Value: value}).Weight
		switch {
		case i < 300:
		case value > 0:
			praise, n[0] = praise+weight, n[0]+1
		default:
			blame, n[1] = blame+weight, n[1]+1
		}
	}
	return praise / n[0], blame / n[1]
}

func TestCalibration(t *testing.T) {
	praise, blame := rates(t, 0.5, 10)
	assert.InDelta(t, 1, praise, 0.1, "who praises and blames alike is taken at their word")
	assert.InDelta(t, 1, blame, 0.1)
	praise, blame = rates(t, 0.3, 10) // ½/0.3 and ½/0.7
	assert.InDelta(t, 1.67, praise, 0.15, "who is harsh means it when they praise")
	assert.InDelta(t, 0.71, blame, 0.05)
	praise, blame = rates(t, 0.9, 10) // ½/0.9, and ½/0.1 is bounded
	assert.InDelta(t, 0.56, praise, 0.05)
	assert.InDelta(t, 2, blame, 1e-9)
	praise, _ = rates(t, 0.3, 1e6)
	assert.InDelta(t, 1, praise, 0.01, "a great strength is not moved so soon")
}

func TestCalibrationCountsOnce(t *testing.T) {
	c := &clock{}
	f := answered(t, c, decision.ReactionsConfig{Calibration: 10})
	counts := func() (counts [2]int) {
		for r, err := range decision.StoreOf(f).Find(ctx, store.Query{Kind: "decision.person", Keys: []string{store.PersonKey("Ann")}}) {
			require.NoError(t, err)
			person, err := store.Decode[decision.PersonRow](r.Body)
			require.NoError(t, err)
			counts[0] += person.Positive
			counts[1] += person.Negative
		}
		return counts
	}
	says := func(value float64) decision.Credit {
		return feedback(t, f, decision.Reaction{ResponseID: "r1", Person: "Ann", Value: value})
	}
	first := says(-1)
	assert.Equal(t, 1., first.Weight, "nothing is known of her")
	assert.Equal(t, first, says(-1), "what comes again has the same weight")
	assert.Equal(t, [2]int{0, 1}, counts(), "what comes again counts once")
	second := feedback(t, f, decision.Reaction{ResponseID: "r2", Person: "Ann", Value: -1})
	assert.InDelta(t, 0.5/(6./11), second.Weight, 1e-12, "she has blamed before")
	assert.Equal(t, first, says(-1), "what comes again has the same weight, whatever she said since")
	c.Advance(time.Second)
	assert.InDelta(t, 0.5/(5./11), says(1).Weight, 1e-12, "what it replaces tells nothing of her")
	assert.Equal(t, [2]int{1, 1}, counts(), "what is replaced does not count")
	c.Advance(time.Second)
	assert.Equal(t, 1., says(0).Weight, "neither praise nor blame")
	assert.Equal(t, [2]int{0, 1}, counts())
}

func TestAnswersHaveRoomForManyReactions(t *testing.T) {
	f := answered(t, &clock{}, decision.ReactionsConfig{})
	for i := range 1000 {
		feedback(t, f, decision.Reaction{ResponseID: "r1", Person: fmt.Sprint("p", i), Value: 1, At: start})
	}
	_, err := f.Feedback(ctx, decision.Reaction{ResponseID: "r1", Person: "one more", Value: 1})
	require.ErrorIs(t, err, evidence.ErrFull)
	assert.NotEmpty(t, feedback(t, f, decision.Reaction{ResponseID: "r1", Person: "p7", Value: -1, At: start}).Replaces, "of two at one time the later to come holds")
	assert.Empty(t, feedback(t, f, decision.Reaction{ResponseID: "r2", Person: "one more", Value: 1}).Replaces, "other answers have room")
}

// Many people react at the same moment. Each reaction replaces one other, and each new person is counted.
func TestReactionsAtTheSameMoment(t *testing.T) {
	f := answered(t, &clock{}, decision.ReactionsConfig{Calibration: 10})
	const n = 48
	credits := make([]decision.Credit, 2*n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { // Ann changes her mind
			var err error
			credits[i], err = f.Feedback(ctx, decision.Reaction{ResponseID: "r1", Person: "Ann", Value: 1 - float64(i)/n, At: start})
			assert.NoError(t, err)
		})
		all.Go(func() { // and all others speak up
			var err error
			credits[n+i], err = f.Feedback(ctx, decision.Reaction{ResponseID: "r1", Person: fmt.Sprint("p", i), Value: 1, At: start})
			assert.NoError(t, err)
		})
	}
	all.Wait()
	replaced := make(map[string]int)
	for _, c := range credits[:n] {
		replaced[c.Replaces]++
	}
	assert.Len(t, replaced, n)
	for _, c := range credits[n:] {
		assert.Empty(t, c.Replaces)
	}
	for i := range 1000 - n - 1 {
		feedback(t, f, decision.Reaction{ResponseID: "r1", Person: fmt.Sprint("another ", i), Value: 1})
	}
	_, err := f.Feedback(ctx, decision.Reaction{ResponseID: "r1", Person: "one more", Value: 1})
	require.ErrorIs(t, err, evidence.ErrFull, "nobody was left out of the count")
}
