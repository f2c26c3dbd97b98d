//go:build !race

package learning_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// TestFeedbackSpam lets a few persons click on thousands of answers of one heuristic that twenty
// others have judged, too. They also ask the model as often. It agrees with the heuristic, and they
// click on its answers. Without limits they have their way.
func TestFeedbackSpam(t *testing.T) {
	clicks := steps(200, 10_000)
	moved := func(cfg learning.Config, spammers int, positive bool) float64 {
		f := newFixture(t, cfg, "h")
		for i := range 40 {
			fb := thumb("h", fmt.Sprint("e", i), i%2 == 0)
			fb.Person = fmt.Sprint("honest ", i%20)
			f.say(fb)
		}
		before := f.confidence("h")
		for i := range clicks {
			fb := thumb("h", fmt.Sprint(i), positive)
			fb.Person = fmt.Sprint("spammer ", i%spammers)
			f.say(fb)
			asked := learning.Fire{EventID: fmt.Sprint("asked ", i), Person: fb.Person,
				Compared: []answer.Comparison{{HeuristicID: "h", Agrees: true}}}
			require.NoError(t, f.Fire(ctx, asked))
			fb.HeuristicID, fb.EventID = "", asked.EventID
			f.say(fb)
		}
		return math.Abs(f.confidence("h") - before)
	}
	unlimited := learning.Tuned(learning.Config{}, learning.Tuning{Unlimited: true})
	for _, positive := range []bool{true, false} {
		one, three := moved(learning.Config{}, 1, positive), moved(learning.Config{}, 3, positive)
		t.Logf("%d clicks: one person moves it by %.4f, three by %.4f", clicks, one, three)
		assert.LessOrEqual(t, one, 0.05)
		assert.LessOrEqual(t, three, 0.15)
		assert.Greater(t, moved(unlimited, 1, positive), 0.4, "without limits")
	}
}

// Ten thousand clicks of a person on one answer count as one.
func TestClicksOnOneAnswer(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for i := range steps(1_000, 10_000) {
		f.say(thumb("h", "e", i%2 == 1))
	}
	assert.InDelta(t, 1.8/2.8, f.confidence("h"), 1e-9)
}

// named returns the parts of a source.
func (f *fixture) named(source string) (all []evidence.Part) {
	for p, err := range f.store.List(ctx, store.CellQuery{Naming: source}) {
		require.NoError(f, err)
		if p.Tally.N() > 0 {
			all = append(all, p)
		}
	}
	return all
}

// quiet limits silence.
var quiet = evidence.Trust{Silence: []string{learning.ChannelTimeout}}

// A complaint about a heuristic that is little trusted does not let more silence count.
func TestComplaintsAreNoSilence(t *testing.T) {
	f := newFixture(t, learning.Tuned(learning.Config{Trust: quiet}, learning.Tuning{Strength: 10}))
	f.put(learning.Heuristic{ID: "h", Initial: 0.1})
	for i := range 100 {
		require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: fmt.Sprint(i),
			Person: fmt.Sprint("user ", i), Session: "room"}))
	}
	f.clock.Advance(time.Minute)
	f.sweep()
	assert.InDelta(t, 2./11, f.confidence("h"), 1e-12, "a hundred silences count for one")
	for i := range 5 {
		fb := thumb("h", fmt.Sprint(i), false)
		fb.Person = fmt.Sprint("user ", i)
		assert.Negative(t, f.say(fb).Delta)
	}
}

// TestSilenceBias lets heuristics that fail in 30 to 80 % of all cases go unanswered but for 5 to
// 30 % of the failures, which are undone or complained about, and never praised. Silence alone must
// not make any of them trusted: none reaches 0.7, the usual gate. Without a limit on silence they
// do.
func TestSilenceBias(t *testing.T) {
	const heuristics = 50
	fires := steps(1_500, 1_000_000)
	peak := func(cfg learning.Config) (peak float64) {
		f := newFixture(t, cfg)
		f.store.forgets = true
		rng := rand.New(rand.NewPCG(5, 6))
		type rates struct{ fails, reported float64 }
		all := make([]rates, heuristics)
		for i := range all {
			all[i] = rates{0.3 + 0.5*rng.Float64(), 0.05 + 0.25*rng.Float64()}
			f.put(learning.Heuristic{ID: fmt.Sprint(i), Initial: 0.5})
		}
		for n := range fires {
			i := rng.IntN(heuristics)
			id, event := fmt.Sprint(i), fmt.Sprint(n)
			f.fire(id, event, "")
			var changes []learning.Change
			if rng.Float64() < all[i].fails*all[i].reported {
				if rng.IntN(2) == 0 {
					changes = f.event("", "undo")
				} else {
					changes = append(changes, f.say(thumb(id, event, false)))
				}
			}
			f.clock.Advance(31 * time.Second)
			for _, c := range append(changes, f.sweep()...) {
				peak = max(peak, c.New)
			}
		}
		return peak
	}
	capped := peak(learning.Config{Trust: quiet})
	t.Logf("%d fires: the greatest confidence is %.3f", fires, capped)
	assert.Less(t, capped, 0.7)
	assert.Greater(t, peak(learning.Tuned(learning.Config{},
		learning.Tuning{Bounds: learning.Range{Floor: 0, Ceiling: 1}})), 0.9, "without a limit")
}
