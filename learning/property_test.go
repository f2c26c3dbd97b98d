//go:build !race

package learning_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// steps returns how many steps a long test takes: the few, or with HEED_LONG the many.
func steps(few, many int) int {
	if os.Getenv("HEED_LONG") != "" {
		return many
	}
	return few
}

// An oracle does what a module does. It keeps what happened to each answer, and judges it again at
// each question.
type oracle struct {
	answers map[string]*oracleAnswer
	ignores map[string]int
	spoken  map[string]float64 // signed weights of clicks, by heuristic, event and person
}

type oracleAnswer struct {
	heuristic, event, source string
	at                       time.Time
	number                   int
	undone, ignored, silent  bool
	ignore                   float64
}

func (o *oracle) clicks(heuristic, event string) (sum float64, praise, blame bool) {
	for _, key := range slices.Sorted(maps.Keys(o.spoken)) {
		if strings.HasPrefix(key, heuristic+"/"+event+"/") || event == "" &&
			strings.HasPrefix(key, heuristic+"/") {
			w := o.spoken[key]
			sum, praise, blame = sum+w, praise || w > 0, blame || w < 0
		}
	}
	return sum, praise, blame
}

// implicit is what an answer earns: at most one signal.
func (o *oracle) implicit(a *oracleAnswer) float64 {
	_, praise, blame := o.clicks(a.heuristic, a.event)
	switch {
	case a.undone:
		return -1
	case a.ignored && (a.ignore == 0 || praise && !blame):
		return 0
	case a.ignored:
		return a.ignore
	case a.silent && !praise && !blame:
		return 1
	}
	return 0
}

func (o *oracle) confidence(heuristic string) float64 {
	alpha, beta := 1., 1.
	for key, w := range o.spoken {
		if strings.HasPrefix(key, heuristic+"/") {
			alpha, beta = alpha+max(w, 0), beta-min(w, 0)
		}
	}
	for _, a := range o.answers {
		if a.heuristic == heuristic {
			w := o.implicit(a)
			alpha, beta = alpha+max(w, 0), beta-min(w, 0)
		}
	}
	return min(max(alpha/(alpha+beta), 0.05), 0.95)
}

func (o *oracle) fire(heuristic, event, source string, at time.Time) {
	if key := heuristic + "/" + event; o.answers[key] == nil {
		o.answers[key] = &oracleAnswer{heuristic: heuristic, event: event, source: source, at: at,
			number: len(o.answers)}
		o.settle(event)
	}
}

// settle gives all answers to an event the source of the first one that has one.
func (o *oracle) settle(event string) {
	var first *oracleAnswer
	for _, a := range o.answers {
		if a.event == event && a.source != "" && (first == nil || a.number < first.number) {
			first = a
		}
	}
	for _, a := range o.answers {
		if a.event == event && first != nil {
			a.source = first.source
		}
	}
}

// event is a message. The answers are looked at in the order in which they were shown.
func (o *oracle) event(source string, undo bool, at time.Time) {
	all := slices.SortedFunc(maps.Values(o.answers), func(a, b *oracleAnswer) int {
		return a.number - b.number
	})
	for _, a := range all {
		age := at.Sub(a.at)
		switch {
		case undo && !a.undone && age <= oracleUndo:
			a.undone = true
		case !a.ignored && age <= oracleSilence && source != "" && source == a.source:
			_, praise, blame := o.clicks(a.heuristic, a.event)
			a.ignored = true
			n := o.ignores[a.heuristic] + 1
			if n >= 3 {
				a.ignore = -1
			}
			if praise && !blame {
				continue
			}
			if n >= 3 && !a.undone { // beside an undo it does not count in full
				n = 0
			}
			o.ignores[a.heuristic] = n
		}
	}
}

func (o *oracle) sweep(now time.Time) {
	for _, a := range o.answers {
		if !a.silent && now.After(a.at.Add(oracleSilence)) {
			before := o.implicit(a)
			a.silent = true
			if o.implicit(a) > before {
				delete(o.ignores, a.heuristic)
			}
		}
	}
}

func (o *oracle) say(person, heuristic, event string, value float64) {
	answer := o.answers[heuristic+"/"+event]
	before := 0.
	if answer != nil {
		before = o.implicit(answer)
	}
	o.spoken[heuristic+"/"+event+"/"+person] = 0.8 * value
	if value > 0 || answer != nil && before <= 0 && o.implicit(answer) > 0 {
		delete(o.ignores, heuristic)
	}
}

// TestModuleIsTheOracle takes random steps and compares all confidences after each of them.
func TestModuleIsTheOracle(t *testing.T) {
	heuristics := []string{"h1", "h2", "h3"}
	rapid.Check(t, func(rt *rapid.T) {
		// The oracle does not limit what one person may have among three.
		f := newFixture(t, learning.Tuned(undoAll, learning.Tuning{Unlimited: true}), heuristics...)
		o := oracle{answers: map[string]*oracleAnswer{}, ignores: map[string]int{},
			spoken: map[string]float64{}}
		heuristic := rapid.SampledFrom(heuristics)
		event := rapid.SampledFrom([]string{"e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"})
		source := rapid.SampledFrom([]string{"", "s", "t"})
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			f.clock.Advance(time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second)
			now := f.clock.Now()
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0, 1, 2:
				h, e, s := heuristic.Draw(rt, "heuristic"), event.Draw(rt, "event"),
					source.Draw(rt, "source")
				f.fire(h, e, s)
				o.fire(h, e, s, now)
			case 3, 4:
				s, undo := source.Draw(rt, "source"), rapid.IntRange(0, 3).Draw(rt, "undo") == 0
				f.event(s, map[bool]string{true: "undo", false: "hello"}[undo])
				o.event(s, undo, now)
			case 5:
				f.sweep()
				o.sweep(now)
			default:
				fb := thumb(heuristic.Draw(rt, "heuristic"), event.Draw(rt, "event"), true)
				fb.Value = float64(rapid.IntRange(-1, 1).Draw(rt, "value"))
				fb.Person = rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(rt, "person")
				f.say(fb)
				o.say(fb.Person, fb.HeuristicID, fb.EventID, fb.Value)
			}
			for _, h := range heuristics {
				if want, got := o.confidence(h), f.confidence(h); math.Abs(want-got) > 1e-9 {
					rt.Fatalf("%s is %v, and should be %v: %v", h, got, want, f.counted(h))
				}
			}
		}
	})
}

// TestAMillionSteps takes random steps (40,000 in all, a million with HEED_LONG) against heuristics
// with all sorts of constraints: locks, floors and ceilings hold, a positive signal never lowers
// and a negative never raises, and a signal of weight 0 changes nothing.
func TestAMillionSteps(t *testing.T) {
	for name, cfg := range map[string]learning.Config{
		"plain":                  {},
		"diminishing":            {Diminish: 0.3},
		"fading":                 {HalfLife: time.Hour},
		"many people, unlimited": learning.Tuned(learning.Config{}, learning.Tuning{Unlimited: true}),
		"silence is limited":     {Trust: evidence.Trust{Silence: []string{learning.ChannelTimeout}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, cfg)
			f.store.forgets = true
			rng := rand.New(rand.NewPCG(3, 4))
			people := 2 // with more, what one states can change what others count for
			if name == "many people, unlimited" {
				people = 4
			}
			constraints := []learning.Constraints{
				{}, {Lock: "locked"}, {Floor: 0.6, Ceiling: 0.95},
				{Floor: 0, Ceiling: 0.4},
				{FeedbackWeight: 0.25}, {FeedbackWeight: 2,
					Floor: 0.3, Ceiling: 0.7},
			}
			for i, c := range constraints {
				f.put(learning.Heuristic{ID: fmt.Sprint(i), Initial: 0.02 + 0.96*rng.Float64(),
					Constraints: c})
			}
			sources := []string{learning.ChannelTimeout, learning.ChannelUndo, "user_implicit"}
			for i := range steps(2_000, 200_000) {
				at := rng.IntN(len(constraints))
				s := learning.Signal{
					HeuristicID: fmt.Sprint(at), EventID: fmt.Sprint(i), Channel: sources[rng.IntN(3)],
					Worth: []float64{0, 1e-9, 0.05, 0.4, 1, 50}[rng.IntN(6)],
				}
				if s.Channel != learning.ChannelTimeout { // silence is positive
					s.Worth *= float64(rng.IntN(3) - 1)
				}
				var c learning.Change
				var err error
				if person := fmt.Sprint(rng.IntN(people)); rng.IntN(3) == 0 && s.Worth != 0 {
					c, err = f.Judge(ctx, learning.Judgement{HeuristicID: s.HeuristicID,
						EventID: s.EventID, Person: person,
						Value: value(s.Worth > 0)})
				} else {
					c, err = f.Apply(ctx, s, learning.Origin{ID: fmt.Sprint(i), Person: person})
				}
				require.NoError(t, err)
				f.clock.Advance(time.Second)
				checkChange(t, c, constraints[at])
				if t.Failed() {
					t.Fatalf("step %d: %+v", i, c)
				}
			}
		})
	}
}

func checkChange(t *testing.T, c learning.Change, constraints learning.Constraints) {
	const rounding = 1e-12
	switch {
	case c.Signal.Worth == 0 ||
		constraints.Lock == "locked":
		assert.Zero(t, c.Delta)
		assert.Zero(t, c.Weight)
		return
	case c.Signal.Worth > 0:
		assert.GreaterOrEqual(t, c.Delta, -rounding)
	default:
		assert.LessOrEqual(t, c.Delta, rounding)
	}
	r := learning.Range{Floor: constraints.Floor, Ceiling: constraints.Ceiling}
	if r == (learning.Range{}) {
		r = learning.Range{Floor: 0.05, Ceiling: 0.95}
	}
	for _, confidence := range []float64{c.Old, c.New} {
		assert.True(t, confidence >= max(r.Floor, 0.05) && confidence <= min(r.Ceiling, 0.95),
			confidence)
	}
}

// The order of signals does not matter to where a confidence ends.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.Float64Range(-3, 3), 1, 20).Draw(rt, "weights")
		order := rapid.Permutation(weights).Draw(rt, "order")
		f := newFixture(t, learning.Tuned(learning.Config{},
			learning.Tuning{Bounds: learning.Range{Floor: 0, Ceiling: 1}}), "one", "other")
		for i := range weights {
			f.apply(fmt.Sprint("one", i), "one", weights[i])
			f.apply(fmt.Sprint("other", i), "other", order[i])
		}
		if a, b := f.confidence("one"), f.confidence("other"); math.Abs(a-b) > 1e-12 {
			rt.Fatalf("%v and %v", a, b)
		}
	})
}

// TestNothingIsLeft fires a lot, without any pattern, and ignores some of it: some time after their
// windows no event finds them, and no sweep has anything to do.
func TestNothingIsLeft(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for i := range 1000 {
		id := fmt.Sprint("h", i)
		f.put(learning.Heuristic{ID: id})
		f.fire(id, fmt.Sprint("e", i/10), "s")
		if i%70 == 0 {
			f.event("s", "hello")
		}
	}
	f.clock.Advance(time.Minute)
	f.sweep()
	f.clock.Advance(time.Hour)
	f.sweep()
	n, err := learning.Waiting(ctx, f.Module)
	require.NoError(t, err)
	assert.Zero(t, n)
	commits, reads := len(f.store.commits), f.store.reads
	assert.Empty(t, f.sweep())
	assert.Empty(t, f.event("s", "undo"))
	assert.Len(t, f.store.commits, commits)
	assert.Equal(t, 2, f.store.reads-reads, "of what is due, and of what is open")
}

// A heuristic keeps a bounded number of people apart. Those beyond it share places, their evidence
// counts, and what they take back is gone.
func TestManyPeople(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	say := func(who string, positive bool) {
		fb := thumb("h", "about "+who, positive)
		fb.Person = who
		f.say(fb)
	}
	say("first", true)
	parts := func() (all []evidence.Part) {
		first := f.named("first")[0].Cell
		var read store.Snapshot
		require.NoError(t, f.store.Read(ctx, &read, []evidence.Cell{first}, nil))
		return read.Parts
	}
	cell := f.named("first")[0].Cell
	b := store.Batch{Policies: map[string]evidence.Policy{cell.Kind: {ByOrigin: true}}}
	for i := range fair.MostParts {
		b.Observations = append(b.Observations, evidence.Observation{
			ID: fmt.Sprint("before ", i), Cell: cell, Channel: parts()[0].Channel,
			Source: fmt.Sprint("person ", i), Reward: float64(i % 2), Weight: 1, At: start,
		})
	}
	_, err := f.store.Commit(ctx, b)
	require.NoError(t, err)
	many := len(parts())
	say("late", true)
	assert.Len(t, parts(), many+1)
	assert.Empty(t, f.named("late"), "the cell does not name who shares a place")
	before := f.confidence("h")
	say("late", false)
	assert.Less(t, f.confidence("h"), before)
	assert.Len(t, parts(), many+1, "the complaint takes the place of the praise")
	say("person 1", true)
	assert.Len(t, parts(), many+1)

	own := f.another(learning.Config{}) // of another process
	for i := range 40 {
		require.NoError(t, own.step1("e", func(tx *store.Tx, a *answer.Answer) error {
			_, err := own.JudgeIn(tx, a, answer.Statement{By: fmt.Sprint("new ", i), Of: "h",
				Value: 1, At: start.Add(time.Duration(i) * time.Second)})
			return err
		}))
	}
	assert.Empty(t, f.named("new 0"), "the limit holds for its first statement, too")
}

// An event takes as many calls of the store with many waiting fires as with few, and with many that
// it ends as with few.
func TestAnEventCostsABoundedNumberOfCalls(t *testing.T) {
	for _, waiting := range []int{10, 1000} {
		f := crowded(t, learning.Config{})
		counting := &storetest.Failing{Store: f.store.Store}
		f.fill(waiting, "")
		f.fill(waiting, "mine")
		f.store.Store = counting
		for _, test := range []struct {
			do                    func()
			finds, reads, commits int
		}{
			{func() { f.event("unknown", "hello") }, 0, 1, 0},
			{func() { f.event("", "hello") }, 0, 0, 0},
			{func() { assert.Len(f, f.event("mine", "hello"), waiting) }, 0, 2, 1},
			{func() {
				f.hear(learning.Message{Session: "session 3", Person: "person 3",
					Text: "undo"})
			}, 0, 2, 1},
			{func() {
				f.hear(learning.Message{Session: "unknown", Person: "unknown", Stream: "unknown",
					Text: "the bath empty, the window closed. Undo that!"})
			}, 0, 2, 1},
			{func() { f.say(thumb("filled 1", "e", true)) }, 0, 1, 1},
			{func() { f.say(thumb("filled 1", "e", false)) }, 0, 1, 1},
			{func() { f.fire("filled 1", "new", "s") }, 0, 1, 1},
			{func() { f.apply("1", "filled 1", 1) }, 0, 1, 1},
			{func() { f.standing("filled 1") }, 0, 1, 0},
		} {
			counting.Fail(0, false)
			test.do()
			assert.Equal(t, []int{test.finds, test.reads, test.commits,
				test.finds + test.reads + test.commits},
				[]int{counting.Calls("Find"), counting.Calls("Read"), counting.Calls("Commit"),
					counting.Calls()})
		}
	}
}
