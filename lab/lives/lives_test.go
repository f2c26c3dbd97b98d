package lives

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A good heuristic gets from 0.3 to answering within 40 events, and a bad one hardly ever does.
// HEED_LONG plays 1,000 lives of 2,000 events. The bounds leave room for what chance does to as
// many lives.
func TestAStartThatStarts(t *testing.T) {
	t.Parallel()
	lives, events, slack := 300, 400, 0.03
	if os.Getenv("HEED_LONG") != "" {
		lives, events, slack = 1000, 2000, 0.005
	}
	s := study{lives: lives, seed: 2026}
	for _, c := range []struct {
		crowd crowd
		// how often the model is right, and of how many good heuristics the start is soon
		model, soon float64
	}{
		// models that are right 70 to 95 times of 100
		{quiet, 0, 0.95}, {talkative, 0, 0.95}, {complaining, 0, 0.95},
		// a model that is often wrong tells little
		{quiet, 0.7, 0.7}, {talkative, 0.7, 0.7}, {complaining, 0.7, 0.7},
		{quiet, 0.8, 0.95}, {quiet, 0.95, 0.95}, {careless, 0, 0.88}, {talkative.team(), 0, 0.95},
	} {
		sub := func(s subject) subject {
			s.model = c.model
			return s
		}
		soon := mean(s.played(&defaults, &c.crowd, sub(good), 40), within(40))
		assert.GreaterOrEqual(t, soon, c.soon-slack, "%s, models %v: a good one", c.crowd.name, c.model)
		if c.model == 0 {
			ever := mean(s.played(&defaults, &c.crowd, sub(bad), events), within(events))
			assert.LessOrEqual(t, ever, 0.01+slack/3, "%s: a bad one", c.crowd.name)
		}
	}
}

// Where people say something, a bad heuristic that was let in by luck falls again. Most good ones
// stay, though users complain about one right answer in a hundred, or one in twenty clicks on
// complaint without looking.
func TestWhatFollowsTheStart(t *testing.T) {
	t.Parallel()
	s := study{lives: 40, seed: 2026}
	const events = 1000
	late := func(c crowd, sub subject) float64 {
		return mean(s.played(&defaults, &c, sub, events),
			func(l *life) float64 { return l.late(events) })
	}
	for _, c := range []crowd{talkative, complaining, talkative.team(), complaining.team()} {
		assert.Less(t, late(c, letIn), 0.03, "%s: let in", c.name)
		stays := 0.8
		// they complain about nearly every tenth answer, and a confidence is near 0.83 for good
		if c.wrong > 0.5 {
			stays = 0.55
		}
		assert.Greater(t, late(c, good), stays, "%s: good", c.name)
	}
	assert.Greater(t, late(quiet, good), 0.95)
	assert.Greater(t, late(careless, good), 0.8)
}

// teach returns how many thumbs-ups of one person make a heuristic trusted.
func (r *rule) teach() int {
	b := r.open(1)
	for n := 1; n <= 100; n++ {
		b.people[0].hears(1, r.silence)
		b.known = 0
		if b.confidence() >= threshold {
			return n
		}
	}
	return 0
}

func TestOnePersonCanTeach(t *testing.T) {
	assert.Equal(t, 4, defaults.teach())
}

// A handful of silent answers, six, is not enough to be trusted.
func TestSilenceAloneIsWeak(t *testing.T) {
	b := defaults.open(1)
	for range 6 {
		b.people[0].hears(0, defaults.silence)
	}
	assert.Less(t, b.confidence(), threshold)
}

// TestPlay plays minds whose lives are known.
func TestPlay(t *testing.T) {
	sub := subject{right: 0.4, model: 0.75}
	for _, own := range []bool{false, true} {
		l, err := play(always(own), &quiet, &sub, 200, 1)
		require.NoError(t, err)
		assert.Equal(t, own, l.began == 0)
		assert.Equal(t, map[bool]float64{false: 0, true: 1}[own], l.late(200))
	}
	_, err := play(failing{}, &quiet, &sub, 200, 1)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

type always bool

func (a always) answers(*event) (bool, error) { return bool(a), nil }
func (a always) hears(*event, float64) error  { return nil }

type failing struct{}

func (failing) answers(*event) (bool, error) { return false, nil }
func (failing) hears(*event, float64) error  { return io.ErrUnexpectedEOF }

func TestReport(t *testing.T) {
	t.Parallel()
	s := study{lives: 3, events: 60, seed: 1}
	starts := s.run(context.Background())
	assert.Equal(t, starts, s.run(context.Background()), "the same seed gives the same study")
	var out bytes.Buffer
	require.NoError(t, s.report(&out, starts))
	for _, text := range []string{"3 lives each", "good by 40", "70 to 95", "spammed team"} {
		assert.Contains(t, out.String(), text)
	}
}

func TestCommandFaults(t *testing.T) {
	assert.ErrorIs(t, Run(context.Background(), kit.NewCall("lives", io.Discard, "-nonsense")),
		kit.ErrUsage)
	assert.ErrorIs(t, Run(context.Background(), kit.NewCall("lives", io.Discard, "-lives", "0")),
		kit.ErrUsage)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, Run(over, kit.NewCall("lives", io.Discard)), context.Canceled)
}

// One of ten who clicks against the truth on each answer does not keep good heuristics from
// starting, and with one user all is as without limits.
func TestASpammerInATeam(t *testing.T) {
	t.Parallel()
	s := study{lives: 400, seed: 2026}
	free := defaults
	free.unlimited = true
	by40 := func(r *rule, c crowd) float64 {
		return mean(s.played(r, &c, good, 40), within(40))
	}
	spammed := talkative.spammed()
	with, without := by40(&defaults, spammed), by40(&free, spammed)
	t.Logf("good ones of 100 that start within 40 events: %.1f, without limits %.1f", 100*with,
		100*without)
	assert.GreaterOrEqual(t, with, 0.9)
	assert.Less(t, without, 0.85)
	assert.Equal(t, s.played(&free, &talkative, good, 400),
		s.played(&defaults, &talkative, good, 400))
}
