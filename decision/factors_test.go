package decision_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/answers"
)

func TestFactors(t *testing.T) {
	given := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(d time.Duration) answer.Statement {
		return answer.Statement{Value: 1, At: given.Add(d)}
	}
	by := func(channel string) answer.Statement {
		return answer.Statement{Channel: channel, Value: 1, At: given}
	}
	channels := decision.Factors{Channels: map[string]float64{"dev": 0.4, "noise": 0}}
	paths := decision.Factors{Paths: map[string]float64{"llm": 0.5}}
	hour := decision.Factors{HalfLife: time.Hour}
	all := decision.Factors{
		Channels: map[string]float64{"dev": 0.4}, Paths: map[string]float64{"heuristic": 2},
		HalfLife: time.Hour,
	}
	for name, tt := range map[string]struct {
		f    decision.Factors
		s    answer.Statement
		path string
		want float64
	}{
		"none": {decision.Factors{}, after(time.Hour), "heuristic", 1},
		"its own weight": {
			channels, answer.Statement{Channel: "dev", Value: 1, Weight: 0.5, At: given}, "llm", 0.2,
		},
		"at most the greatest": {decision.Factors{Paths: map[string]float64{"llm": 10}},
			answer.Statement{Weight: 9}, "llm", 10},
		"by channel":             {channels, by("dev"), "heuristic", 0.4},
		"another channel":        {channels, by("user_explicit"), "heuristic", 1},
		"a channel that is mute": {channels, by("noise"), "heuristic", 0},
		"by path":                {paths, by(""), "llm", 0.5},
		"another path":           {paths, by(""), "heuristic", 1},
		"at once":                {hour, after(0), "heuristic", 1},
		"after a half-life":      {hour, after(time.Hour), "heuristic", 0.5},
		"after three":            {hour, after(3 * time.Hour), "heuristic", 0.125},
		"before the answer":      {hour, after(-9 * time.Hour), "heuristic", 1},
		"all together": {
			all, answer.Statement{Channel: "dev", Value: 1, At: given.Add(time.Hour)}, "heuristic", 0.4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.InDelta(t, tt.want, tt.f.Weight(tt.s, tt.path, given, 0, 0), 1e-12)
		})
	}
}

// rates has a person judge many answers and returns the mean weights of praise and of blame, over
// the second half.
func rates(share, strength float64) (praise, blame float64) {
	f := decision.Factors{Calibration: strength}
	rng := rand.New(rand.NewPCG(3, 4))
	var n, had [2]float64
	for i := range 600 {
		s := answer.Statement{Value: -1}
		if rng.Float64() < share {
			s.Value = 1
		}
		weight := f.Weight(s, "llm", time.Time{}, int(had[0]), int(had[1]))
		switch {
		case s.Value > 0:
			had[0]++
			if i >= 300 {
				praise, n[0] = praise+weight, n[0]+1
			}
		default:
			had[1]++
			if i >= 300 {
				blame, n[1] = blame+weight, n[1]+1
			}
		}
	}
	return praise / n[0], blame / n[1]
}

func TestCalibration(t *testing.T) {
	praise, blame := rates(0.5, 10)
	assert.InDelta(t, 1, praise, 0.1, "a person who praises and blames alike")
	assert.InDelta(t, 1, blame, 0.1)
	praise, blame = rates(0.3, 10) // ½/0.3 and ½/0.7
	assert.InDelta(t, 1.67, praise, 0.15, "praise of a harsh person weighs more")
	assert.InDelta(t, 0.71, blame, 0.05)
	praise, blame = rates(0.9, 10) // ½/0.9, and ½/0.1 is bounded
	assert.InDelta(t, 0.56, praise, 0.05)
	assert.InDelta(t, 2, blame, 1e-9)
	praise, _ = rates(0.3, 1e6)
	assert.InDelta(t, 1, praise, 0.01, "a great strength does not move so soon")

	f := decision.Factors{Calibration: 10}
	weight := func(s answer.Statement, positive, negative int) float64 {
		return f.Weight(s, "llm", time.Time{}, positive, negative)
	}
	assert.Equal(t, 1., weight(answer.Statement{Value: -1}, 0, 0), "nothing is known of the person")
	assert.InDelta(t, 0.5/(6./11), weight(answer.Statement{Value: -1}, 0, 1), 1e-12,
		"one complaint before")
	assert.InDelta(t, 0.5/(5./11), weight(answer.Statement{Value: 1}, 0, 1), 1e-12)
	assert.InDelta(t, 0.5/(5./11), weight(answer.Statement{Value: 0.25}, 0, 1), 1e-12)
	assert.Equal(t, 1., weight(answer.Statement{Value: 0}, 0, 9), "neither praise nor blame")
	one := answer.Statement{Scale: "dev", Score: 1}
	assert.Equal(t, weight(answer.Statement{Value: -1}, 3, 5), weight(one, 3, 5),
		"a mark counts by its value")
}

// A factor out of its range counts as the nearer end, and others out of theirs do not count.
func TestFactorsOutOfRange(t *testing.T) {
	f := decision.Factors{
		Channels: map[string]float64{"low": -1, "high": 11}, Paths: map[string]float64{"llm": 99},
		HalfLife: -1, Calibration: -1,
	}
	at := time.Unix(0, 0)
	for channel, want := range map[string]float64{"low": 0, "high": 5, "other": 0.5} {
		s := answer.Statement{Channel: channel, Value: 1, Weight: 0.05, At: at.Add(time.Hour)}
		assert.InDelta(t, want, f.Weight(s, "llm", at, 3, 1), 1e-12, channel)
		s.Weight = 0 // all factors together may be more than a statement may weigh
		s.Weight = f.Weight(s, "llm", at, 3, 1)
		assert.NoError(t, answers.Validate(&s), channel)
	}
}
