package learning_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
)

// TestConfidenceVectors runs the signals of testdata/confidence.json one after the other.
func TestConfidenceVectors(t *testing.T) {
	var vectors []struct {
		Name              string
		Initial, Diminish float64
		Explicit          bool
		Signals, Want     []float64
	}
	readJSON(t, "confidence.json", &vectors)
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			f := newFixture(t, learning.Config{Diminish: v.Diminish})
			f.put(learning.Heuristic{ID: "h", Initial: v.Initial})
			assert.InDelta(t, v.Initial, f.confidence("h"), 1e-12)
			for i, weight := range v.Signals {
				before := f.confidence("h")
				var c learning.Change
				if v.Explicit {
					c = f.say(thumb("h", fmt.Sprint(i), weight > 0))
				} else {
					c = f.apply(fmt.Sprint(i), "h", weight)
				}
				assert.InDelta(t, v.Want[i], f.confidence("h"), 1e-6)
				assert.InDelta(t, before, c.Old, 1e-12)
				assert.InDelta(t, f.confidence("h"), c.New, 1e-12)
				assert.InDelta(t, c.New-c.Old, c.Delta, 1e-15)
			}
		})
	}
}

func TestLearnedHeuristicStartsAtThreeTenths(t *testing.T) {
	f := newFixture(t, learning.Config{})
	f.put(learning.Heuristic{ID: "h"})
	assert.InDelta(t, 0.3, f.confidence("h"), 1e-12)
	c := f.apply("1", "h", -0.8)
	assert.InDelta(t, 0.214286, c.New, 1e-6, "what is disliked falls")
	stronger := newFixture(t, learning.Tuned(learning.Config{Initial: 0.4},
		learning.Tuning{Strength: 10}))
	stronger.put(learning.Heuristic{ID: "h"})
	assert.InDelta(t, 5./11, stronger.apply("1", "h", 1).New, 1e-12)
}

func TestNeutralSignalsAskNothingOfTheStore(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for _, s := range []learning.Signal{
		learning.Signal{HeuristicID: "h", EventID: "e", Channel: learning.ChannelIgnored},
		{HeuristicID: "h", EventID: "e", Channel: learning.ChannelExplicit},
	} {
		c, err := f.Apply(ctx, s, learning.Origin{ID: "1"})
		require.NoError(t, err)
		assert.Equal(t, learning.Change{Signal: s, Limits: []string{learning.LimitNeutral}}, c)
	}
	assert.Empty(t, f.store.commits)
	assert.Zero(t, f.store.reads)
	assert.InDelta(t, 0.5, f.confidence("h"), 1e-12)
}

func TestApplyCountsAnIDOnce(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	first := f.apply("1", "h", 1)
	assert.Empty(t, first.Limits)
	again := f.apply("1", "h", 1)
	assert.Equal(t, []string{learning.LimitDuplicate}, again.Limits)
	assert.Equal(t, first.New, again.Old)
	assert.Equal(t, first.New, again.New)
	assert.Zero(t, again.Delta)
}

func TestApplyRefuses(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	good := learning.Signal{HeuristicID: "h", EventID: "e", Channel: "host", Worth: 1}
	for field, spoil := range map[string]func(*learning.Signal, *learning.Origin){
		"Worth":       func(s *learning.Signal, _ *learning.Origin) { s.Worth = math.NaN() },
		"Target":      func(s *learning.Signal, _ *learning.Origin) { s.Target = "author" },
		"HeuristicID": func(s *learning.Signal, _ *learning.Origin) { s.HeuristicID = "\x00" },
		"Channel":     func(s *learning.Signal, _ *learning.Origin) { s.Channel = "\xff" },
		"ID":          func(_ *learning.Signal, o *learning.Origin) { o.ID = "" },
		"Person": func(_ *learning.Signal, o *learning.Origin) {
			o.Person = strings.Repeat("x",
				1025)
		},
	} {
		s, o := good, learning.Origin{ID: "1"}
		spoil(&s, &o)
		_, err := f.Apply(ctx, s, o)
		assertInputError(t, err, field)
	}
	for _, worth := range []float64{-2e6, math.Inf(1), 2e6} {
		s := good
		s.Worth = worth
		_, err := f.Apply(ctx, s, learning.Origin{ID: "1"})
		assertInputError(t, err, "Worth")
	}
	_, err := f.Apply(ctx, learning.Signal{HeuristicID: "no such", EventID: "e",
		Channel: "host", Worth: 1},
		learning.Origin{ID: "1"})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	_, err = f.Apply(ctx, good, learning.Origin{ID: "1", At: start.Add(time.Hour)})
	assert.Error(t, err, "the future is refused")
	assert.InDelta(t, 0.5, f.confidence("h"), 1e-12)
}

// TestEndsOfFires drives fires to each of their ends and says what is then in the evidence. Steps
// are a second apart:
//
//	h@e:s      h fires for the event e from the source s
//	s: text    an event from the source s
//	+h@e -h@e  thumbs; 0h@e withdraws
//	30s        half a minute goes by, and a sweep
func TestEndsOfFires(t *testing.T) {
	for _, test := range []struct {
		name  string
		cfg   learning.Config
		steps string
		want  map[string][]float64 // of h1
		rate  string               // successes, failures of h1
	}{
		{name: "silence", steps: "h1@e:s | 30s", want: map[string][]float64{"implicit_timeout": {1}},
			rate: "1, 0"},
		{name: "no silence yet", steps: "h1@e:s | 28s", want: map[string][]float64{}, rate: "0, 0"},
		{name: "ignored twice", steps: "h1@e:s | s: a | h1@f:s | s: b | 31s",
			want: map[string][]float64{}, rate: "0, 0"},
		{name: "ignored three times", steps: "h1@e:s | s: a | h1@f:s | s: b | h1@g:s | s: c | 31s",
			want: map[string][]float64{"implicit_ignored": {-1}}, rate: "0, 1"},
		{name: "ignored six times", steps: "h1@1:s | h1@2:s | h1@3:s | h1@4:s | h1@5:s | h1@6:s | s: a",
			want: map[string][]float64{"implicit_ignored": {-1, -1}}, rate: "0, 2"},
		{name: "one answer is ignored once", steps: "h1@e:s | s: a | h1@e:s | s: b | h1@e:s | s: c",
			want: map[string][]float64{}, rate: "0, 0"},
		{name: "praise breaks a row of ignores",
			steps: "h1@1:s | h1@2:s | s: a | +h1@0 | h1@3:s | h1@4:s | s: b",
			want:  map[string][]float64{"user_explicit": {0.8}}, rate: "0, 0"},
		{name: "a complaint does not", steps: "h1@1:s | h1@2:s | s: a | -h1@0 | h1@3:s | s: b",
			want: map[string][]float64{"user_explicit": {-0.8}, "implicit_ignored": {-1}}, rate: "0, 1"},
		{name: "silence breaks it", steps: "h1@1:s | h1@2:s | s: a | h1@3: | 31s | h1@4:s | s: b",
			want: map[string][]float64{"implicit_timeout": {1}}, rate: "1, 0"},
		{name: "thanks ignore nothing",
			steps: "h1@1:s | s: thanks, perfect! | h1@2:s | s: thanks, perfect! | h1@3:s | s: thanks, " +
				"perfect! | 31s", want: map[string][]float64{"implicit_timeout": {1, 1, 1}}, rate: "3, 0"},
		{name: "thanks with a word of failure count for nothing",
			steps: "h1@1:s | s: thanks, wrong again | h1@2:s | s: thanks, wrong again | h1@3:s | " +
				"s: thanks, wrong again | s: next | 31s", want: map[string][]float64{}, rate: "0, 0"},
		{name: "and can be taken back", steps: "h1@1:s | s: thanks, wrong again | 31s | s: undo",
			want: map[string][]float64{"implicit_undo": {-1}}, rate: "0, 1"},
		{name: "an event from elsewhere ignores nothing", steps: "h1@e:s | x: a | 31s",
			want: map[string][]float64{"implicit_timeout": {1}}, rate: "1, 0"},
		{name: "without a source nothing is ignored", steps: "h1@1: | h1@2: | h1@3: | : a",
			want: map[string][]float64{}, rate: "0, 0"},
		{name: "what was praised is not part of a row",
			steps: "h1@1:s | h1@2:s | +h1@2 | h1@3:s | s: a",
			want:  map[string][]float64{"user_explicit": {0.8}}, rate: "1, 0"},
		{name: "feedback on one heuristic does not answer for the other",
			steps: "h1@1:s | h2@1:s | +h2@1 | s: a | h1@2:s | s: b | h1@3:s | s: c",
			want:  map[string][]float64{"implicit_ignored": {-1}}, rate: "0, 1"},
		{name: "undo", steps: "h1@e:s | x: undo", want: map[string][]float64{"implicit_undo": {-1}},
			rate: "0, 1"},
		{name: "undo from the same source is no ignore as well",
			steps: "h1@1:s | s: undo | h1@2:s | s: a", want: map[string][]float64{"implicit_undo": {-1}},
			rate: "0, 1"},
		{name: "an undone answer stays in the row",
			steps: "h1@1:s | s: undo | h1@2:s | s: a | h1@3:s | s: b",
			want:  map[string][]float64{"implicit_undo": {-1}, "implicit_ignored": {-1}}, rate: "0, 2"},
		{name: "an undone answer does not end the row",
			steps: "h1@1:s | h1@2:s | h1@3:s | s: undo | s: a | h1@4:s | s: b",
			want:  map[string][]float64{"implicit_undo": {-1}, "implicit_ignored": {-1}}, rate: "0, 2"},
		{name: "a complaint about the second of three ignored answers",
			steps: "h1@1:s | s: a | h1@2:s | -h1@2 | s: b | h1@3:s | s: c",
			want:  map[string][]float64{"user_explicit": {-0.8}, "implicit_ignored": {-1}}, rate: "0, 2"},
		{name: "a complaint that is withdrawn stays in the row",
			steps: "h1@1:s | s: a | h1@2:s | -h1@2 | s: b | 0h1@2 | h1@3:s | s: c",
			want:  map[string][]float64{"user_explicit": {0}, "implicit_ignored": {-1}}, rate: "0, 1"},
		{name: "silence that a withdrawn complaint lets count does not end the row",
			steps: "h1@1:s | -h1@1 | 31s | h1@2:s | h1@3:s | s: a | 0h1@1 | h1@4:s | s: b",
			want: map[string][]float64{"user_explicit": {0}, "implicit_timeout": {1},
				"implicit_ignored": {-1}}, rate: "1, 1"},
		{name: "an undo consumes its fires", steps: "h1@e:s | x: undo | x: undo | x: undo",
			want: map[string][]float64{"implicit_undo": {-1}}, rate: "0, 1"},
		{name: "an undo cancels the silence", steps: "h1@e:s | x: undo | 31s",
			want: map[string][]float64{"implicit_undo": {-1}}, rate: "0, 1"},
		{name: "an undo at the end of the window", steps: "h1@e:s | wait 599s | x: undo",
			want: map[string][]float64{"implicit_undo": {-1}}, rate: "0, 1"},
		{name: "an undo too late", steps: "h1@e:s | wait 600s | x: undo", want: map[string][]float64{},
			rate: "0, 0"},
		{name: "an ignored answer can be taken back", steps: "h1@e:s | s: a | x: undo | 31s",
			want: map[string][]float64{"implicit_undo": {-1}}, rate: "0, 1"},
		{name: "a complaint and then silence", steps: "h1@e:s | -h1@e | 31s",
			want: map[string][]float64{"user_explicit": {-0.8}}, rate: "0, 1"},
		{name: "silence and then a complaint", steps: "h1@e:s | 31s | -h1@e",
			want: map[string][]float64{"user_explicit": {-0.8}}, rate: "0, 1"},
		{name: "a complaint that is withdrawn", steps: "h1@e:s | -h1@e | 31s | 0h1@e",
			want: map[string][]float64{"user_explicit": {0}, "implicit_timeout": {1}}, rate: "1, 0"},
		{name: "a complaint before the answer is fired", steps: "-h1@e | h1@e:s | 31s",
			want: map[string][]float64{"user_explicit": {-0.8}}, rate: "0, 1"},
		{name: "praise and then silence", steps: "h1@e:s | +h1@e | 31s",
			want: map[string][]float64{"user_explicit": {0.8}}, rate: "1, 0"},
		{name: "silence and then praise", steps: "h1@e:s | 31s | +h1@e",
			want: map[string][]float64{"user_explicit": {0.8}}, rate: "1, 0"},
		{name: "praise and then undo", steps: "h1@e:s | +h1@e | x: undo",
			want: map[string][]float64{"user_explicit": {0.8}, "implicit_undo": {-1}}, rate: "0, 1"},
		{name: "a complaint leaves an undo", steps: "h1@e:s | x: undo | -h1@e",
			want: map[string][]float64{"user_explicit": {-0.8}, "implicit_undo": {-1}}, rate: "0, 1"},
		{name: "independent channels", cfg: learning.Tuned(learning.Config{},
			learning.Tuning{Independent: true}), steps: "h1@e:s | -h1@e | 31s",
			want: map[string][]float64{"user_explicit": {-0.8}, "implicit_timeout": {1}}, rate: "1, 0"},
		{name: "fired twice for one event", steps: "h1@e:s | h1@e:s | 31s",
			want: map[string][]float64{"implicit_timeout": {1}}, rate: "1, 0"},
		{name: "fired again after its end", cfg: windows(30, 30),
			steps: "h1@e:s | 31s | h1@e:s | 31s | h1@e:s | x: undo",
			want:  map[string][]float64{"implicit_timeout": {1}}, rate: "1, 0"},
		{name: "an undo after the silence takes its place", cfg: windows(60, 30),
			steps: "h1@e:s | 31s | x: undo | 60s", want: map[string][]float64{"implicit_undo": {-1}},
			rate: "0, 1"},
		{name: "an undo minutes after the silence", steps: "h1@e:s | 31s | wait 300s | x: undo",
			want: map[string][]float64{"implicit_undo": {-1}}, rate: "0, 1"},
		{name: "after the silence nothing is ignored", cfg: impatient,
			steps: "h1@1:s | h1@2:s | 31s | s: a", want: map[string][]float64{"implicit_timeout": {1, 1}},
			rate: "2, 0"},
		{name: "silence takes longer than undo", cfg: windows(30, 120),
			steps: "h1@e:s | 60s | x: undo | 31s | 31s",
			want:  map[string][]float64{"implicit_timeout": {1}}, rate: "1, 0"},
		{name: "silence says nothing", cfg: learning.Config{Strategy: silenceIsNeutral},
			steps: "h1@e:s | 31s", want: map[string][]float64{}, rate: "0, 0"},
		{name: "silence worth nothing", cfg: learning.Config{Strategy: silenceIsWorthless},
			steps: "h1@e:s | 31s", want: map[string][]float64{}, rate: "0, 0"},
		{name: "an undo after a silence that said nothing",
			cfg:   learning.Config{Strategy: neutralSilence{windows(60, 30).Strategy}},
			steps: "h1@e:s | 31s | x: undo", want: map[string][]float64{"implicit_undo": {-1}},
			rate: "0, 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.cfg, "h1", "h2")
			for step := range strings.SplitSeq(test.steps, " | ") {
				f.clock.Advance(time.Second)
				f.step(step)
			}
			assert.Equal(t, test.want, f.counted("h1"))
			s := f.standing("h1")
			assert.Equal(t, test.rate, fmt.Sprintf("%d, %d", s.Successes, s.Failures))
		})
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func windows(undo, silence time.Duration) learning.Config {
	return learning.Config{Strategy: must(learning.NewBayesian(learning.BayesianConfig{
		Weights: allAlike, UndoWindow: undo * time.Second, SilenceWindow: silence * time.Second,
	}))}
}

// impatient takes the first ignore for a rejection, and has long windows.
var impatient = learning.Config{Strategy: must(learning.NewBayesian(learning.BayesianConfig{
	Weights: allAlike, IgnoreThreshold: 1, UndoWindow: time.Minute,
	SilenceWindow: 30 * time.Second,
}))}

var silenceIsWorthless = must(learning.NewBayesian(
	learning.BayesianConfig{Weights: map[string]float64{learning.ChannelTimeout: 0}}))

var silenceIsNeutral = neutralSilence{must(learning.NewBayesian(learning.BayesianConfig{}))}

// neutralSilence is a strategy to which silence says nothing.
type neutralSilence struct{ learning.Strategy }

func (n neutralSilence) InterpretTimeout(a learning.Answer) (learning.Signal, error) {
	s, err := n.Strategy.InterpretTimeout(a)
	s.Worth = 0
	return s, err
}

// step does one step of TestEndsOfFires.
func (f *fixture) step(step string) {
	f.Helper()
	if wait, ok := strings.CutPrefix(step, "wait "); ok {
		f.clock.Advance(must(time.ParseDuration(wait)) - time.Second)
		return
	}
	if d, err := time.ParseDuration(step); err == nil {
		f.clock.Advance(d)
		f.sweep()
		return
	}
	if heuristic, rest, ok := strings.Cut(step, "@"); ok {
		if sign := heuristic[0]; sign == '+' || sign == '-' || sign == '0' {
			j := thumb(heuristic[1:], rest, sign == '+')
			if sign == '0' {
				j.Value = 0
			}
			f.say(j)
			return
		}
		event, source, _ := strings.Cut(rest, ":")
		f.fire(heuristic, event, source)
		return
	}
	source, text, _ := strings.Cut(step, ": ")
	f.event(source, text)
}

func TestUndoListsWhatItTookBack(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h1", "h2", "h3")
	f.fire("h2", "e1", "s")
	f.clock.Advance(time.Second)
	f.fire("h1", "e2", "s")
	f.fire("h3", "e2", "s")
	assert.ElementsMatch(t, []string{"negative h1", "negative h3"},
		types(f.event("elsewhere", "no, undo that")), "all answers to the newest event")
	assert.Equal(t, []string{"negative h2"}, types(f.event("elsewhere", "undo")),
		"and then those to the one before")
	assert.Empty(t, f.event("elsewhere", "undo"))
}

// In the design an undo takes back all that is open.
func TestUndoAll(t *testing.T) {
	f := newFixture(t, learning.Config{Strategy: learning.SpecConfig().Strategy}, "h1", "h2")
	f.fire("h2", "e1", "s")
	f.clock.Advance(time.Second)
	f.fire("h1", "e2", "s")
	assert.Equal(t, []string{"negative h2", "negative h1"}, types(f.event("elsewhere", "undo")))
}

// TestAnUndoThatIsHeardAgain takes no other answer back.
func TestAnUndoThatIsHeardAgain(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for _, event := range []string{"e1", "e2"} {
		f.fire("h", event, "")
		f.clock.Advance(time.Second)
	}
	for _, want := range []int{1, 0, 0} {
		assert.Len(t, f.hear(learning.Message{ID: "m", Session: "room", Text: "undo that"}), want)
	}
	assert.Len(t, f.hear(learning.Message{ID: "another", Session: "room", Text: "undo that"}), 1)
}

func TestAnEventDoesNotJudgeItsOwnAnswers(t *testing.T) {
	f := newFixture(t, learning.Config{Expectations: []learning.Expectation{{Trigger: "any",
		Outcome: "undo"}}}, "h")
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Stream: "s",
		Session: "s", Condition: "anything"}))
	changes, err := f.Hear(ctx, learning.Message{ID: "e", Stream: "s", Session: "s", Text: "undo"})
	require.NoError(t, err)
	assert.Empty(t, changes)
}

func TestFiresAndSuccessRate(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	s := f.standing("h")
	assert.Zero(t, s.Successes+s.Failures)
	for i := range 4 {
		f.fire("h", fmt.Sprint(i), "")
		if i == 0 {
			f.event("", "undo")
		}
	}
	f.clock.Advance(time.Minute)
	f.sweep()
	f.fire("h", "waiting", "")
	s = f.standing("h")
	assert.EqualValues(t, 5, s.Fires)
	assert.Equal(t, 0.75, rate(s))
	assert.InDelta(t, 4./6, s.Confidence, 1e-12, "which is something else than the confidence")
}

func TestFireRefuses(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for field, fire := range map[string]learning.Fire{
		"EventID": {HeuristicID: "h"},
		"Path":    {HeuristicID: "h", EventID: "e", Path: "\xff"},
		"Person":  {HeuristicID: "h", EventID: "e", Person: "\xff"},
	} {
		assertInputError(t, f.Fire(ctx, fire), field)
	}
	for _, at := range []time.Time{start.Add(time.Hour), time.Unix(-1, 0)} {
		assertInputError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", At: at,
			Session: "room"}), "At")
	}
	assert.NoError(t, f.Sweep(ctx, start.Add(24*time.Hour)),
		"it is not waited for, and fails no sweep")
	err := f.Fire(ctx, learning.Fire{HeuristicID: "no such", EventID: "e"})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.EqualError(t, err,
		"learning: fire: HeuristicID: no such heuristic, call Put first: not found")
	done, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, f.Fire(done, learning.Fire{HeuristicID: "h", EventID: "e", Session: "room"}),
		context.Canceled)
	_, err = f.Hear(done, learning.Message{})
	assert.ErrorIs(t, err, context.Canceled)
	_, err = f.Judge(done, thumb("h", "e", true))
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, f.Sweep(done, start), context.Canceled)
	_, err = f.Standings(done, "h")
	assert.ErrorIs(t, err, context.Canceled)
	_, err = f.Hear(ctx, learning.Message{Session: "\xff"})
	assertInputError(t, err, "Session")
	assert.Empty(t, f.event("", "undo"))
}

// A fire that can't be stored is an error, and can be told again. A signal that can't be counted
// comes up again.
func TestStoreFailures(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	fire := learning.Fire{HeuristicID: "h", EventID: "e", Stream: "s", Session: "room"}
	f.store.fail(errDown)
	assert.ErrorIs(t, f.Fire(ctx, fire), errDown)
	f.store.fail(nil)
	assert.Zero(t, f.waiting())
	require.NoError(t, f.Fire(ctx, fire))
	f.store.fail(errDown)
	_, err := f.Hear(ctx, learning.Message{Stream: "x", Text: "undo", Session: "room"})
	assert.ErrorIs(t, err, errDown)
	_, err = f.Judge(ctx, thumb("h", "e", false))
	assert.ErrorIs(t, err, errDown)
	f.clock.Advance(time.Minute)
	assert.ErrorIs(t, f.Sweep(ctx, f.clock.Now()), errDown)
	f.store.fail(nil)
	assert.Equal(t, []string{"positive h"}, types(f.sweep()))
	assert.Equal(t, map[string][]float64{"implicit_timeout": {1}}, f.counted("h"))
	assert.EqualValues(t, 1, f.standing("h").Fires)
}

// If the store can't be read, nothing is counted.
func TestStoreThatCannotBeRead(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.store.blind = errDown
	_, err := f.Standing(ctx, "h")
	assert.ErrorIs(t, err, errDown)
	_, err = f.Explain(ctx, "h")
	assert.ErrorIs(t, err, errDown)
	_, err = f.Judge(ctx, thumb("h", "e", true))
	assert.ErrorIs(t, err, errDown)
	_, err = f.Apply(ctx, learning.Signal{HeuristicID: "h", EventID: "e", Channel: "host", Worth: 1},
		learning.Origin{ID: "1"})
	assert.ErrorIs(t, err, errDown)
	assert.Empty(t, f.store.commits)
}

// An answer is acknowledged only once the feedback is counted.
func TestFeedbackThatFailsIsNotHeard(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "1", "s")
	f.store.fail(errDown)
	_, err := f.Judge(ctx, thumb("h", "1", true))
	assert.ErrorIs(t, err, errDown)
	f.store.fail(nil)
	changes := f.event("s", "a")
	require.Len(t, changes, 1)
	assert.Equal(t, "1", changes[0].Signal.Metadata["consecutive_count"])
	assert.Equal(t, []string{learning.LimitNeutral}, changes[0].Limits)
	assert.Zero(t, changes[0].Old+changes[0].New+changes[0].Delta)
	assert.Zero(t, f.waiting())
	f.fire("h", "2", "s")
	f.say(thumb("h", "2", true))
	changes = f.event("s", "b")
	require.Len(t, changes, 1)
	assert.Equal(t, "1", changes[0].Signal.Metadata["consecutive_count"], "praise has ended the row")
}

// Where the outcome or the undo that an event shows can't be counted, the event does not count as
// an ignore instead.
func TestOneEventJudgesOnce(t *testing.T) {
	f := newFixture(t, learning.Config{Expectations: []learning.Expectation{{Trigger: "oven",
		Outcome: "off"}}})
	f.put(learning.Heuristic{ID: "h", Condition: "oven"})
	for i, text := range []string{"off", "undo", "off", "undo"} {
		f.clock.Advance(time.Minute)
		f.fire("h", fmt.Sprint(i), "s")
		f.store.failOnce = errDown
		changes, err := f.Hear(ctx, learning.Message{Stream: "s", Text: text, Session: "room"})
		assert.ErrorIs(t, err, errDown)
		assert.Empty(t, changes)
		assert.Equal(t, 1, f.waiting())
		assert.Len(t, f.event("s", text), 1, "it comes again")
	}
	assert.Equal(t, map[string][]float64{"implicit_outcome": {1, 1}, "implicit_undo": {-1, -1}},
		f.counted("h"))
}

// An undo may still come.
func TestANeutralSilenceIsNotTheOneSignal(t *testing.T) {
	neutral := neutralSilence{windows(60, 30).Strategy}
	f := newFixture(t, learning.Config{Strategy: neutral}, "h")
	f.fire("h", "e", "s")
	f.clock.Advance(31 * time.Second)
	f.sweep()
	assert.EqualValues(t, 1, f.standing("h").Fires)
	f.event("x", "undo")
	assert.Equal(t, []float64{-1}, f.counted("h")["implicit_undo"])
	assert.InDelta(t, 1./3, f.confidence("h"), 1e-12)
}

// The row of ignores is as it was.
func TestAnIgnoreThatFailsIsNotCountedTwice(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "1", "s")
	f.event("s", "a")
	f.fire("h", "2", "s")
	f.event("s", "b")
	f.fire("h", "3", "s")
	f.store.fail(errDown)
	for range 3 {
		_, err := f.Hear(ctx, learning.Message{Stream: "s", Text: "c", Session: "room"})
		assert.ErrorIs(t, err, errDown)
	}
	f.store.fail(nil)
	changes := f.event("s", "d")
	assert.Equal(t, []string{"negative h"}, types(changes))
	assert.Equal(t, "3", changes[0].Signal.Metadata["consecutive_count"])
}

// The store has counted, and the module does not know.
func TestALostReplyCountsOnce(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	f.clock.Advance(time.Minute)
	before := len(f.store.commits)
	f.store.fail(errDown)
	assert.ErrorIs(t, f.Sweep(ctx, f.clock.Now()), errDown)
	f.store.fail(nil)
	_, err := f.store.Commit(ctx, f.store.commits[before])
	require.NoError(t, err)
	assert.Empty(t, f.sweep())
	assert.Equal(t, map[string][]float64{"implicit_timeout": {1}}, f.counted("h"))
}

// Its fires are given up, with an error once.
func TestDeletedHeuristic(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	require.NoError(t, f.Delete(ctx, "h"))
	f.clock.Advance(time.Minute)
	err := f.Sweep(ctx, f.clock.Now())
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.Empty(t, f.sweep())
	assert.Zero(t, f.waiting())
}

// A module does not keep a deleted heuristic in memory, also if another process deleted it.
func TestADeletedHeuristicIsNotRemembered(t *testing.T) {
	f := newFixture(t, learning.Config{}, "here", "there", "kept")
	other, err := learning.New(ctx, plain(learning.Config{Store: f.store, Now: f.clock.Now}))
	require.NoError(t, err)
	for n, change := range []func() error{
		func() error { return nil },
		func() error { return f.Delete(ctx, "here") },
		func() error { return other.Delete(ctx, "there") },
	} {
		require.NoError(t, change())
		for _, err := range f.Heuristics(ctx) {
			require.NoError(t, err)
		}
		assert.Equal(t, 3-n, learning.Remembered(f.Module))
	}
}

// The module waits for the same signals as before.
func TestAStorePanics(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	f.clock.Advance(time.Minute)
	good := f.store.Store
	f.store.Store = nil
	assert.Panics(t, func() { _ = f.Sweep(ctx, f.clock.Now()) })
	f.store.Store = good
	assert.Equal(t, []string{"positive h"}, types(f.sweep()))
}

// The answer is waited for as before.
func TestANeutralUndoIsNone(t *testing.T) {
	f := newFixture(t, learning.Config{Strategy: moody{Strategy: silenceIsNeutral,
		undo: func(answers []learning.Answer) (all []learning.Signal, err error) {
			for _, r := range answers {
				all = append(all, learning.Signal{HeuristicID: r.HeuristicID, EventID: r.EventID,
					Channel: learning.ChannelUndo})
			}
			return all, nil
		}}}, "h")
	f.fire("h", "e", "s")
	assert.Empty(t, f.event("x", "undo"))
	assert.Equal(t, 1, f.waiting())
}

// moody is a strategy whose answers a test makes.
type moody struct {
	learning.Strategy
	feedback func(learning.Judgement) (learning.Signal, error)
	timeout  func(learning.Answer) (learning.Signal, error)
	undo     func([]learning.Answer) ([]learning.Signal, error)
	windows  func() learning.Windows
}

func (m moody) InterpretJudgement(f learning.Judgement) (learning.Signal, error) {
	if m.feedback == nil {
		return m.Strategy.InterpretJudgement(f)
	}
	return m.feedback(f)
}

func (m moody) InterpretTimeout(t learning.Answer) (learning.Signal, error) {
	if m.timeout == nil {
		return m.Strategy.InterpretTimeout(t)
	}
	return m.timeout(t)
}

func (m moody) InterpretUndo(text string, answers []learning.Answer) ([]learning.Signal, error) {
	if m.undo == nil {
		return m.Strategy.InterpretUndo(text, answers)
	}
	return m.undo(answers)
}

func (m moody) Windows(domain string) learning.Windows {
	if m.windows == nil {
		return m.Strategy.Windows(domain)
	}
	return m.windows()
}

func TestStrategyDecides(t *testing.T) {
	f := newFixture(t, learning.Config{Strategy: moody{Strategy: silenceIsNeutral,
		feedback: func(f learning.Judgement) (learning.Signal, error) {
			return learning.Signal{HeuristicID: f.HeuristicID,
				EventID: f.EventID, Channel: "user", Worth: 0.8, Target: answer.TargetRule}, nil
		}}}, "h")
	f.say(thumb("h", "e", false))
	assert.Equal(t, map[string][]float64{"user": {0.8}}, f.counted("h"))
	assert.Equal(t, answer.TargetRule, f.answer("e").Statements[0].About)
}

// A strategy is asked about an undo only if there is an answer to take back.
func TestNoAnswerIsTakenBack(t *testing.T) {
	f := newFixture(t, learning.Config{Strategy: moody{Strategy: loud,
		undo: func([]learning.Answer) ([]learning.Signal, error) { panic("it was asked") }}}, "h")
	assert.Empty(t, f.event("x", "undo"))
}

// A strategy may panic, hang or lie. The call returns an error, and nothing is counted or lost.
func TestStrategyMisbehaves(t *testing.T) {
	errMood := errors.New("not today")
	for name, strategy := range map[string]moody{
		"panics": {feedback: func(learning.Judgement) (learning.Signal, error) { panic("feedback") },
			timeout: func(learning.Answer) (learning.Signal, error) { panic("timeout") },
			undo:    func([]learning.Answer) ([]learning.Signal, error) { panic("undo") }},
		"fails": {feedback: func(learning.Judgement) (learning.Signal,
			error) {
			return learning.Signal{}, errMood
		},
			timeout: func(learning.Answer) (learning.Signal, error) { return learning.Signal{}, errMood },
			undo:    func([]learning.Answer) ([]learning.Signal, error) { return nil, errMood }},
		"answers for others": {feedback: func(learning.Judgement) (learning.Signal, error) {
			return learning.Signal{HeuristicID: "h2", EventID: "e", Channel: "x", Worth: 1}, nil
		},
			timeout: func(learning.Answer) (learning.Signal, error) {
				return learning.Signal{HeuristicID: "h", EventID: "f", Channel: "x", Worth: 1}, nil
			},
			undo: func([]learning.Answer) ([]learning.Signal, error) {
				return []learning.Signal{{HeuristicID: "h2", EventID: "e", Channel: "x", Worth: 1}}, nil
			}},
		"answers for another event": {feedback: func(learning.Judgement) (learning.Signal, error) {
			return learning.Signal{HeuristicID: "h", EventID: "f", Channel: "x", Worth: 1}, nil
		},
			timeout: func(learning.Answer) (learning.Signal, error) {
				return learning.Signal{HeuristicID: "h", EventID: "f", Channel: "x", Worth: 1}, nil
			},
			undo: func([]learning.Answer) ([]learning.Signal, error) {
				return []learning.Signal{{HeuristicID: "h", EventID: "f", Channel: "x", Worth: 1}}, nil
			}},
		"is not finite": {feedback: func(learning.Judgement) (learning.Signal, error) {
			return learning.Signal{HeuristicID: "h", EventID: "e", Worth: math.Inf(1)}, nil
		},
			timeout: func(learning.Answer) (learning.Signal, error) {
				return learning.Signal{HeuristicID: "h", EventID: "e", Worth: math.NaN()}, nil
			},
			undo: func([]learning.Answer) ([]learning.Signal, error) {
				return []learning.Signal{{HeuristicID: "h", EventID: "e", Worth: math.Inf(-1)}}, nil
			}},
	} {
		t.Run(name, func(t *testing.T) {
			strategy.Strategy = silenceIsNeutral
			f := newFixture(t, learning.Config{Strategy: strategy}, "h", "h2")
			f.fire("h", "e", "s")
			_, err := f.Judge(ctx, thumb("h", "e", true))
			assert.Error(t, err)
			_, err = f.Hear(ctx, learning.Message{Stream: "x", Text: "undo", Session: "room"})
			assert.Error(t, err)
			f.clock.Advance(time.Minute)
			err = f.Sweep(ctx, f.clock.Now())
			assert.Error(t, err)
			assert.Empty(t, f.counted("h"))
			assert.Empty(t, f.counted("h2"))
			assert.Equal(t, 1, f.waiting(), "it is waited for as before")
		})
	}
	f := newFixture(t, learning.Config{Strategy: moody{
		windows: func() learning.Windows { panic("windows") }}}, "h")
	var panicked *heed.PanicError
	require.ErrorAs(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Session: "room"}),
		&panicked)
	assert.Equal(t, []any{"the strategy", "windows"}, []any{panicked.Who, panicked.Value})
	f = newFixture(t, learning.Config{Strategy: moody{
		windows: func() learning.Windows { return learning.Windows{} }}}, "h")
	f.fire("h", "e", "s")
	f.clock.Advance(time.Second)
	assert.Empty(t, f.sweep(), "without windows there is nothing to wait for")
	assert.Zero(t, f.waiting())
}

// A puzzled strategy can't say whether a message takes something back.
type puzzled struct{ learning.Strategy }

func (puzzled) IsUndo(string) bool { panic("undo") }

// A strategy that fails at a message is reported, and the rest of the message counts.
func TestTheRestOfAMessageCounts(t *testing.T) {
	f := newFixture(t, learning.Config{Strategy: puzzled{silenceIsNeutral},
		Expectations: []learning.Expectation{{Trigger: "oven", Outcome: "off"}}}, "h")
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e",
		Condition: "the oven is on", Session: "room"}))
	_, err := f.Hear(ctx, learning.Message{Stream: "s", Text: "it is off", Session: "room"})
	var panicked *heed.PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Equal(t, "undo", panicked.Value)
	assert.Len(t, f.counted("h"), 1)
}

// TestOutcomes counts outcomes for and against, at the strategy's magnitude.
func TestOutcomes(t *testing.T) {
	b := must(learning.NewBayesian(learning.BayesianConfig{
		Weights: map[string]float64{learning.ChannelOutcome: 0.5}}))
	for want, strategy := range map[float64]learning.Strategy{0.5: b,
		1: must(learning.NewBayesian(learning.BayesianConfig{}))} {
		for _, failure := range []bool{false, true} {
			f := newFixture(t, learning.Config{Strategy: strategy,
				Expectations: []learning.Expectation{{Trigger: "oven", Outcome: "off", Failure: failure}}},
				"h")
			require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e",
				Condition: "the oven is on", Session: "room"}))
			f.event("s", "it is off")
			sign := 1.
			if failure {
				sign = -1
			}
			assert.Equal(t, map[string][]float64{"implicit_outcome": {sign * want}}, f.counted("h"))
		}
	}
}

func TestExpectations(t *testing.T) {
	patterns := []learning.Expectation{
		{Trigger: "oven", Outcome: "oven off"},
		{Trigger: "OVEN ON", Outcome: "second"},
		{Trigger: "door", Outcome: "burglar", Failure: true, Timeout: 10 * time.Minute},
	}
	for _, test := range []struct {
		condition, text string
		wait            time.Duration
		want            map[string][]float64
	}{
		{"The Oven on", "User turned the oven off", 0, map[string][]float64{"implicit_outcome": {1}}},
		{"the oven on", "OVEN OFF", 0, map[string][]float64{"implicit_outcome": {1}}},
		{"the oven on", "stove/oven offline", 0, map[string][]float64{"implicit_outcome": {1}}},
		{"the oven on", "oven was turned off", 0, map[string][]float64{}},
		// only the first pattern that fits is watched
		{"the oven on", "second", 0, map[string][]float64{}},
		{"the fridge", "oven off", 0, map[string][]float64{}},
		{"the fridge", "", time.Minute, map[string][]float64{"implicit_timeout": {1}}},
		{"the oven on", "", time.Minute, map[string][]float64{"implicit_timeout": {1}}},
		{"the oven on", "oven off", 30 * time.Second, map[string][]float64{"implicit_outcome": {1}}},
		{"the oven on", "oven off", 31 * time.Second, map[string][]float64{"implicit_timeout": {1}}},
		{"the door", "a burglar!", 10 * time.Minute, map[string][]float64{"implicit_outcome": {-1}}},
		{"the door", "", 11 * time.Minute, map[string][]float64{"implicit_timeout": {1}}},
	} {
		t.Run(test.condition+", "+test.text, func(t *testing.T) {
			f := newFixture(t, learning.Config{Expectations: patterns})
			f.put(learning.Heuristic{ID: "h", Condition: test.condition})
			f.fire("h", "e", "")
			f.clock.Advance(test.wait)
			f.event("", test.text)
			f.event("", test.text) // resolves once
			f.sweep()
			assert.Equal(t, test.want, f.counted("h"))
		})
	}
}

// Upstream of the store the fire stays, so that the outcome can come again.
func TestOutcomeThatCannotBeCounted(t *testing.T) {
	f := newFixture(t, learning.Config{Expectations: []learning.Expectation{{Trigger: "oven",
		Outcome: "off"}}})
	f.put(learning.Heuristic{ID: "h", Condition: "oven"})
	f.fire("h", "e", "")
	f.store.fail(errDown)
	changes, err := f.Hear(ctx, learning.Message{Text: "off", Session: "room"})
	assert.ErrorIs(t, err, errDown)
	assert.Empty(t, changes)
	f.store.fail(nil)
	assert.Equal(t, []string{"positive h"}, types(f.event("", "off")))
}

func TestConfig(t *testing.T) {
	f := newFixtureAsIs(t, memstore.Config{}, learning.Config{})
	cfg := f.Config()
	assert.Equal(t, 0.3, cfg.Initial)
	assert.EqualValues(t, 2, learning.TuningOf(cfg).Strength)
	assert.Equal(t, learning.Range{Floor: 0.05, Ceiling: 0.95}, learning.TuningOf(cfg).Bounds)
	assert.Equal(t, "bayesian", cfg.Strategy.Config()["strategy"])
	assert.Equal(t, learning.Windows{Undo: 10 * time.Minute, Ignore: 30 * time.Second,
		Silence: 30 * time.Second}, cfg.Strategy.Windows("any"))
	assert.Zero(t, cfg.Trust)

	_, err := learning.New(ctx, learning.Config{
		Name: "\xff", Answers: "\xff", Initial: 1, Diminish: math.NaN(),
		Packs:    map[string]learning.Constraints{"p": {Lock: "half"}},
		HalfLife: time.Second, Trust: evidence.Trust{Instruments: []string{""}},
		Expectations: []learning.Expectation{{Trigger: " ", Timeout: -1}},
	})
	assert.Equal(t, []string{"Store", "Initial", "Diminish", "Name", "Answers",
		"Packs[p].Lock", "HalfLife", "Trust.Instruments",
		"Expectations[0].Trigger", "Expectations[0].Outcome", "Expectations[0].Timeout"}, fields(err))
	long := strings.Repeat("x", evidence.MaxText-63)
	_, err = learning.New(ctx, learning.Config{Store: newFixture(t, learning.Config{}).store,
		Name: long, Answers: long})
	assert.Equal(t, []string{"Name", "Answers"}, fields(err))
}

func TestModulesShareAStoreByName(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	other := f.another(learning.Config{Name: "other"})
	_, err := other.Standing(ctx, "h")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	other.put(learning.Heuristic{ID: "h", Initial: 0.5})
	f.fire("h", "e", "s")
	other.fire("h", "e", "s")
	f.say(thumb("h", "e", true))
	assert.InDelta(t, 0.5, other.confidence("h"), 1e-12)
	assert.Len(t, other.event("x", "undo"), 1)
	assert.InDelta(t, 1.8/2.8, f.confidence("h"), 1e-12)
	same := f.another(learning.Config{})
	assert.InDelta(t, f.confidence("h"), same.confidence("h"), 1e-12,
		"one of the same name goes on where the first was")
	_, err = same.Explain(ctx, "no such")
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

func TestHalfLife(t *testing.T) {
	f := newFixture(t, learning.Config{HalfLife: 24 * time.Hour}, "h")
	f.apply("1", "h", 8)
	assert.InDelta(t, 0.9, f.confidence("h"), 1e-12)
	f.clock.Advance(3 * 24 * time.Hour)
	assert.InDelta(t, 2./3, f.confidence("h"), 1e-12)
	c := f.apply("2", "h", -1)
	assert.InDelta(t, 2./3, c.Old, 1e-12)
	assert.InDelta(t, 0.5, c.New, 1e-12)
	assert.InDelta(t, c.New, f.confidence("h"), 1e-12)
	f.clock.Advance(365 * 24 * time.Hour)
	assert.InDelta(t, 0.5, f.confidence("h"), 1e-9,
		"without evidence it is the initial confidence again")
}

// A person who thanks has looked at the answer, so no later message ignores it.
func TestAThankedAnswerIsNotIgnored(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for i := range 3 {
		id := fmt.Sprint(i)
		f.fire("h", id, "s")
		f.clock.Advance(5 * time.Second)
		f.hear(learning.Message{ID: "t" + id, Stream: "s", Text: "Thanks!"})
		f.hear(learning.Message{ID: "q" + id, Stream: "s", Text: "How do I open the window?"})
		f.clock.Advance(time.Second)
	}
	assert.Equal(t, 0.5, f.confidence("h"))
	f.clock.Advance(time.Minute)
	assert.Equal(t, []string{"positive h", "positive h", "positive h"}, types(f.sweep()))
}

// An undo takes the same answer back whether it arrives at once or after another answer.
func TestALateUndoMeansWhatWasShownThen(t *testing.T) {
	for _, late := range []bool{false, true} {
		f := newFixture(t, learning.Config{}, "a", "b")
		f.fire("a", "e1", "")
		f.clock.Advance(10 * time.Second)
		undo := learning.Message{ID: "m", Session: "room", Text: "undo that", At: f.clock.Now()}
		if !late {
			f.hear(undo)
		}
		f.clock.Advance(10 * time.Second)
		f.fire("b", "e2", "")
		if late {
			f.hear(undo)
		}
		assert.Less(t, f.confidence("a"), 0.5, "late: %v", late)
		assert.Equal(t, 0.5, f.confidence("b"), "late: %v", late)
	}
}
