package learning_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// A happening is something that becomes of one answer, at a time after it was shown.
type happening struct {
	what  string // "click", "undo", "command", "outcome", "ignore" or "sweep"
	who   string // of a click; each person clicks once
	value float64
	at    time.Duration
}

// A life is what the world of an answer is like: what implicit signals weigh, whether the expected
// outcome is a failure, whether the heuristic gave the answer or was compared with it, and what was
// known of it before.
type life struct {
	weights map[string]float64
	failure bool

	compared, agrees              bool
	agreement, disagreement, mass float64
	earlier                       []earlier
	thumbs                        int // on the heuristic's own answers; negative: complaints
}

// An earlier is an answer of the model before, with which the heuristic was compared.
type earlier struct {
	agrees bool
	fate   string // "silence", "praise", "complaint", "ignored" or "undone"
}

const lifeUndo, lifeSilence = time.Minute, 40 * time.Second

func (l *life) config() learning.Config {
	return learning.Tuned(learning.Config{
		Strategy: must(learning.NewBayesian(learning.BayesianConfig{
			UndoWindow: lifeUndo, SilenceWindow: lifeSilence, IgnoreThreshold: 1, Weights: l.weights,
		})),

		Expectations: []learning.Expectation{{Trigger: "oven", Outcome: "it is off",
			Failure: l.failure}},
	}, learning.Tuning{Bounds: learning.Range{Floor: 0, Ceiling: 1}, Unlimited: true})
}

// begin plays what came before.
func (l *life) begin(t testing.TB, m *learning.Module) {
	for i := range max(l.thumbs, -l.thumbs) {
		_, err := m.Judge(ctx, learning.Judgement{HeuristicID: "h", EventID: fmt.Sprint("thumb ",
			i), Value: value(l.thumbs > 0)})
		require.NoError(t, err)
	}
	for i, e := range l.earlier {
		id := fmt.Sprint("earlier ", i)
		compared := []answer.Comparison{{HeuristicID: "h", Agrees: e.agrees}}
		require.NoError(t, m.Fire(ctx, learning.Fire{EventID: id, Session: id, Stream: id,
			Compared: compared, At: start}))
		var err error
		switch e.fate {
		case "praise", "complaint":
			_, err = m.Judge(ctx, learning.Judgement{EventID: id, Value: value(e.fate == "praise"),
				At: start})
		case "ignored":
			_, err = m.Hear(ctx, learning.Message{Stream: id, Text: "and now?", At: start})
		case "undone":
			_, err = m.Undo(ctx, learning.Undo{EventID: id, At: start})
		}
		require.NoError(t, err)
	}
}

// do has it happen, by a module, and reports whether it was refused.
func (h *happening) do(m *learning.Module, l *life) error {
	at := start.Add(h.at)
	var err error
	fire := learning.Fire{HeuristicID: "h", EventID: "e", Session: "room", Stream: "s",
		Condition: "oven", At: at}
	if l.compared {
		fire.HeuristicID, fire.Compared = "", []answer.Comparison{{HeuristicID: "h",
			Agrees: l.agrees}}
	}
	switch h.what {
	case "fire":
		err = m.Fire(ctx, fire)
	case "click":
		_, err = m.Judge(ctx, learning.Judgement{HeuristicID: fire.HeuristicID, EventID: "e",
			Person: h.who, Value: h.value, At: at})
	case "undo":
		_, err = m.Hear(ctx, learning.Message{Session: "room", Text: "undo that", At: at})
	case "command":
		_, err = m.Undo(ctx, learning.Undo{EventID: "e", At: at})
	case "outcome":
		_, err = m.Hear(ctx, learning.Message{Text: "it is off", At: at})
	case "ignore":
		_, err = m.Hear(ctx, learning.Message{Stream: "s", Text: "and now?", At: at})
	default:
		err = m.Sweep(ctx, time.Time{})
	}
	if fault := (*heed.InputError)(nil); errors.As(err, &fault) && fault.Field == "At" &&
		h.at < -evidence.MaxSkew {
		return nil
	}
	return err
}

// live plays a life and returns the confidence at its end. Each happening is of one of two modules
// on a store, which may fail.
func (l *life) live(t testing.TB, all []happening, modules []int, failAt int, late bool) (*fixture,
	float64) {
	f := newFixture(t, l.config(), "h")
	f.store.forgets = true
	f.clock.Advance(100 * time.Second)
	st := &storetest.Failing{Store: f.store.Store}
	f.store.Store = st
	both := []*learning.Module{f.Module, f.another(l.config()).Module}
	for _, m := range both {
		learning.WeighAgreement(m, l.agreement, l.disagreement, l.mass)
	}
	l.begin(t, f.Module)
	st.Fail(failAt, late)
	for i := range all {
		err := all[i].do(both[modules[i]], l)
		if errors.Is(err, storetest.ErrFailed) {
			err = all[i].do(both[modules[i]], l)
		}
		require.NoError(t, err, all[i])
	}
	st.Fail(0, false)
	f.sweep()
	return f, f.confidence("h")
}

// known is what people said of an answer, and what was seen of it within the windows.
type known struct {
	praise, blame, gain, loss float64 // praise and blame in clicks, gain and loss as they weigh
	seen                      map[string]bool
}

func knownOf(all []happening) known {
	k := known{seen: map[string]bool{}}
	for _, h := range all {
		inSkew := h.at >= -evidence.MaxSkew
		switch {
		case h.what == "click" && inSkew:
			k.praise, k.blame = k.praise+max(h.value, 0), k.blame-min(h.value, 0)
		case h.what == "undo" && inSkew && h.at <= lifeUndo, h.what == "command" && inSkew:
			k.seen["undo"] = true
		case h.what == "outcome" && inSkew && h.at <= lifeSilence, h.what == "ignore" && h.at >= 0 &&
			h.at <= lifeSilence:
			k.seen[h.what] = true
		}
	}
	k.gain, k.loss = 0.8*k.praise, 0.8*k.blame
	return k
}

// limits is the table of docs/trust.md, case by case: the implicit signal of an answer.
func (l *life) limits(k known) (implicit float64) {
	w := func(channel string) float64 { return l.weights[channel] }
	onlyPraise := k.praise > 0 && k.blame == 0
	var against []float64
	if k.seen["undo"] {
		against = append(against, w(learning.ChannelUndo))
	}
	if k.seen["outcome"] && l.failure && !onlyPraise {
		against = append(against, w(learning.ChannelOutcome))
	}
	if k.seen["ignore"] && !l.compared && !onlyPraise && !(k.seen["outcome"] && !l.failure) {
		against = append(against, w(learning.ChannelIgnored))
	}
	switch {
	case len(against) > 0:
		return -slices.Max(against)
	case k.seen["outcome"] && !l.failure && k.blame == 0:
		return w(learning.ChannelOutcome)
	case len(k.seen) == 0 && k.praise == 0 && k.blame == 0:
		return w(learning.ChannelTimeout)
	}
	return 0
}

// agreed is the table of agreement: what an answer of the model is worth.
func (l *life) agreed(agrees bool, k known) float64 {
	implicit := l.limits(k)
	switch onlySaid := len(k.seen) == 0 && k.blame == 0; {
	case !agrees && onlySaid && k.praise > 0:
		return -l.disagreement * min(k.praise, 1)
	case !agrees:
		return -l.disagreement
	case implicit < 0 || k.blame > 0 && k.praise == 0:
		return -min(k.loss-implicit, l.disagreement)
	case implicit > 0:
		return l.agreement
	case k.blame > 0:
		return 0
	default:
		return l.agreement * min(k.praise, 1)
	}
}

// expected is the confidence by hand.
func (l *life) expected(all []happening) float64 {
	k := knownOf(all)
	alpha, beta, good, bad, unlike := 1., 1., 0., 0., 0.
	add := func(agrees bool, worth float64) {
		switch {
		case worth > 0:
			good += worth
		case agrees:
			bad -= worth
		default:
			unlike -= worth
		}
	}
	alpha, beta = alpha+0.8*max(float64(l.thumbs), 0), beta-0.8*min(float64(l.thumbs), 0)
	for _, e := range l.earlier {
		before := map[string]known{"silence": {}, "praise": {praise: 1},
			"complaint": {blame: 1, loss: 0.8}, "ignored": {seen: map[string]bool{"ignore": true}},
			"undone": {seen: map[string]bool{"undo": true}}}[e.fate]
		of := *l
		of.compared = true
		add(e.agrees, of.agreed(e.agrees, before))
	}
	if implicit := l.limits(k); l.compared {
		add(l.agrees, l.agreed(l.agrees, k))
	} else {
		alpha, beta = alpha+max(implicit, 0)+k.gain, beta-min(implicit, 0)+k.loss
	}
	with := func(unlike float64) float64 {
		kept := min(1, l.mass/max(good+bad+unlike, 1e-9))
		return (alpha + kept*good) / (alpha + beta + kept*(good+bad+unlike))
	}
	return max(with(unlike), min(with(0), alpha/(alpha+beta)))
}

func drawLife(t *rapid.T) (l life, all []happening) {
	weight := rapid.SampledFrom([]float64{0.2, 0.4, 1, 1.5})
	l = life{
		weights: map[string]float64{}, failure: rapid.Bool().Draw(t, "failure"),
		compared: rapid.Bool().Draw(t, "compared"), agrees: rapid.Bool().Draw(t, "agrees"),
		agreement:    rapid.SampledFrom([]float64{0.25, 2}).Draw(t, "agreement"),
		disagreement: rapid.SampledFrom([]float64{0.085, 1}).Draw(t, "disagreement"),
		mass:         rapid.SampledFrom([]float64{1, 7}).Draw(t, "mass"),
		thumbs:       rapid.IntRange(-2, 4).Draw(t, "thumbs"),
	}
	fate := rapid.SampledFrom([]string{"silence", "silence", "praise", "complaint", "ignored",
		"undone"})
	for range rapid.IntRange(0, 5).Draw(t, "earlier") {
		l.earlier = append(l.earlier, earlier{rapid.Bool().Draw(t, "agreed"), fate.Draw(t, "fate")})
	}
	for _, channel := range []string{learning.ChannelTimeout, learning.ChannelUndo,
		learning.ChannelIgnored, learning.ChannelOutcome} {
		l.weights[channel] = weight.Draw(t, channel)
	}
	at := rapid.SampledFrom([]time.Duration{-301 * time.Second, -300 * time.Second, -time.Second, 0,
		time.Second,
		lifeSilence, lifeSilence + time.Microsecond, lifeUndo, lifeUndo + time.Microsecond,
		99 * time.Second})
	what := rapid.SampledFrom([]string{"click", "click", "undo", "command", "outcome", "ignore",
		"sweep"})
	for i := range rapid.IntRange(0, 6).Draw(t, "happenings") {
		h := happening{what: what.Draw(t, "what"), who: fmt.Sprint("person ", i), at: at.Draw(t, "at")}
		h.value = rapid.SampledFrom([]float64{-1, -0.5, 0, 0.5, 1}).Draw(t, "value")
		all = append(all, h)
	}
	return l, all
}

// TestSignals lives random lives, in random orders of arrival, by one or two processes, with a call
// to the store that fails. The answer is a heuristic's, or one of the model's that was compared
// with it. At most one implicit signal counts, and it is the one of the table. No negative leaves
// the confidence higher than without it, neither of this answer nor of an earlier one.
func TestSignals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l, all := drawLife(rt)
		order := rapid.Permutation(all).Draw(rt, "order")
		order = slices.Insert(order, fireAt(rt, order), happening{what: "fire"})
		modules := rapid.SliceOfN(rapid.IntRange(0, 1), len(order), len(order)).Draw(rt, "modules")
		failAt, late := rapid.IntRange(0, 3*len(order)).Draw(rt, "fail at"),
			rapid.Bool().Draw(rt, "late")
		f, got := l.live(t, order, modules, failAt, late)
		if want := l.expected(all); math.Abs(got-want) > 1e-9 {
			rt.Fatalf("the confidence is %v, and should be %v: %v", got, want, f.counted("h"))
		}
		implicit := 0
		for channel, weights := range f.counted("h") {
			if strings.HasPrefix(channel, "implicit") {
				implicit += len(weights)
			}
		}
		if implicit > 1 {
			rt.Fatalf("%d implicit signals: %v", implicit, f.counted("h"))
		}
		for i, h := range all {
			negative := h.what == "undo" || h.what == "command" || h.what == "ignore" ||
				h.what == "click" && h.value < 0 || h.what == "outcome" && l.failure
			if without := l.expected(slices.Delete(slices.Clone(all), i, i+1)); negative &&
				got > without+1e-9 {
				rt.Fatalf("%+v raises the confidence from %v to %v", h, without, got)
			}
		}
		for i, e := range l.earlier {
			without := l
			without.earlier = slices.Clone(l.earlier)
			without.earlier[i].fate = "silence"
			if before := without.expected(all); e.fate != "praise" && got > before+1e-9 {
				rt.Fatalf("the earlier %+v raises the confidence from %v to %v", e, before, got)
			}
		}
	})
}

// fireAt returns where in an order of arrival the answer is fired: clicks may come before it.
func fireAt(t *rapid.T, order []happening) int {
	clicks := 0
	for clicks < len(order) && order[clicks].what == "click" &&
		order[clicks].at >= -evidence.MaxSkew {
		clicks++
	}
	return rapid.IntRange(0, clicks).Draw(t, "fire at")
}

// Fifty answers, each followed by a complaint and by silence.
func TestComplaintsNeverRaise(t *testing.T) {
	f := newFixtureDefault(t, learning.Config{}, "h")
	for i := range 50 {
		before := f.confidence("h")
		f.fire("h", fmt.Sprint(i), "")
		f.clock.Advance(5 * time.Second)
		j := thumb("h", fmt.Sprint(i), false)
		j.Person = fmt.Sprint("person ", i)
		f.say(j)
		f.clock.Advance(time.Minute)
		f.sweep()
		assert.LessOrEqual(t, f.confidence("h"), before)
	}
	s := f.standing("h")
	assert.Less(t, s.Confidence, 0.1)
	assert.EqualValues(t, 50, s.Failures)
	assert.Zero(t, s.Successes)
}

// A move is one step of a row of answers. It is about the nth answer from the newest one.
type move struct {
	what  string // "fire", "praise", "complain", "withdraw", "command", "undo", "next" or "silence"
	nth   int
	value float64 // of a complaint. Complaints of one value are one person's
}

// play plays a row of answers of one heuristic in a conversation, without the move skip, and
// returns the confidence at the end.
func (l *life) play(t testing.TB, moves []move, skip int) float64 {
	cfg := learning.Tuned(learning.Config{Strategy: must(
		learning.NewBayesian(learning.BayesianConfig{Weights: l.weights}))},
		learning.Tuning{Bounds: learning.Range{Floor: 0, Ceiling: 1}})
	f := newFixture(t, cfg, "h")
	f.store.forgets = true
	answers, ignored := 0, 0
	// the sort of move that judged an answer first, also if that move is left out
	judged := make(map[string]string)
	for i, m := range moves {
		f.clock.Advance(time.Second)
		id := fmt.Sprint(answers - 1 - m.nth)
		if sort, ok := judged[id]; ok && m.what != sort &&
			(m.what == "praise" || m.what == "complain") {
			continue
		}
		if m.nth < answers && (m.what == "praise" || m.what == "complain") {
			judged[id] = m.what
		}
		judge := func(who string, value float64) {
			_, err := f.Judge(ctx, learning.Judgement{HeuristicID: "h", EventID: id, Person: who,
				Value: value})
			require.NoError(t, err)
		}
		switch {
		case i == skip:
		case m.what == "fire":
			f.fire("h", fmt.Sprint(answers), "s")
			answers++
		case m.what == "silence":
			f.clock.Advance(31 * time.Second)
			f.sweep()
		case m.what == "next":
			f.hear(learning.Message{Stream: "s", Text: "and now?"})
		case m.what == "undo":
			f.hear(learning.Message{Stream: "s", Session: "room", Text: "undo that"})
		case m.nth >= answers:
		case m.what == "praise" && answers-1-m.nth >= ignored:
			judge("ann", 1)
		case m.what == "complain":
			judge(fmt.Sprint("bob ", m.value), m.value)
		case m.what == "withdraw":
			judge(fmt.Sprint("bob ", m.value), 0)
		case m.what == "command":
			_, err := f.Undo(ctx, learning.Undo{HeuristicID: "h", EventID: id})
			require.NoError(t, err)
		}
		if m.what == "next" || m.what == "undo" || m.what == "silence" {
			ignored = answers
		}
	}
	return f.confidence("h")
}

// No complaint about one answer, and no undo of it, leaves the confidence higher than without it,
// whatever becomes of the answers around it. A withdrawal is of a complaint. Praise comes before
// the next message, and is not of an answer that somebody else complains about.
func TestRowsOfIgnores(t *testing.T) {
	what := rapid.SampledFrom([]string{"fire", "fire", "fire", "praise", "complain", "complain",
		"withdraw", "command", "undo", "next", "next", "silence"})
	negative := map[string]bool{"complain": true, "command": true}
	rapid.Check(t, func(rt *rapid.T) {
		l := life{weights: map[string]float64{}}
		for _, channel := range []string{learning.ChannelTimeout, learning.ChannelUndo,
			learning.ChannelIgnored} {
			l.weights[channel] = rapid.SampledFrom([]float64{0.2, 0.4, 1}).Draw(rt, channel)
		}
		moves := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move {
			value := rapid.SampledFrom([]float64{-1, -0.01}).Draw(t, "value")
			return move{what.Draw(t, "what"), rapid.IntRange(0, 3).Draw(t, "nth"), value}
		}), 1, 25).Draw(rt, "moves")
		skip := rapid.IntRange(0, len(moves)-1).Draw(rt, "skip")
		if !negative[moves[skip].what] {
			return
		}
		if with, without := l.play(t, moves, -1), l.play(t, moves, skip); with > without+1e-9 {
			rt.Fatalf("%+v raises the confidence from %v to %v: %+v", moves[skip], without, with, moves)
		}
	})
}

// counting is a strategy that keeps which ignore in a row it was asked about.
type counting struct {
	learning.Strategy
	rows    []int
	domains []string
}

func (c *counting) InterpretIgnore(a learning.Answer) (learning.Signal, error) {
	c.rows, c.domains = append(c.rows, a.Consecutive), append(c.domains, a.Domain)
	return c.Strategy.InterpretIgnore(a)
}

// An ignored answer of the model does not count in the row of a heuristic's ignored answers.
func TestWhichIgnoreInARow(t *testing.T) {
	strategy := &counting{Strategy: loud}
	f := newFixture(t, learning.Config{Strategy: strategy}, "h")
	for i, by := range []string{"", "h", "h", ""} {
		f.clock.Advance(time.Second)
		f.fire(by, fmt.Sprint("e", i), "s")
		f.event("s", "next")
	}
	assert.Equal(t, []int{1, 1, 2, 1}, strategy.rows)
	require.NoError(t, f.step1("of the model", func(tx *store.Tx, a *answer.Answer) error {
		a.Domain = "kitchen"
		return f.FireIn(tx, a, learning.Fire{Stream: "s"})
	}))
	f.event("s", "next")
	assert.Equal(t, "kitchen", strategy.domains[4])
}

// ignoresWeighMore configures that an ignore counts more than an undo.
func ignoresWeighMore() learning.Config {
	return learning.Config{Strategy: must(learning.NewBayesian(learning.BayesianConfig{
		IgnoreThreshold: 1,
		Weights:         map[string]float64{learning.ChannelUndo: 0.2, learning.ChannelIgnored: 0.4},
	}))}
}

// An ignore that counts more than the undo before it ends no row.
func TestAnIgnoreAfterAnUndoLeavesTheRow(t *testing.T) {
	f := newFixture(t, ignoresWeighMore(), "h")
	f.fire("h", "e", "s")
	f.event("x", "undo that")
	f.event("s", "next")
	assert.Equal(t, map[string][]float64{learning.ChannelIgnored: {-0.4}}, f.counted("h"))
	states, err := learning.States(ctx, f.Module)
	require.NoError(t, err)
	assert.Contains(t, states, "h: ignored 1")
	f.say(thumb("h", "another", true))
	states, err = learning.States(ctx, f.Module)
	require.NoError(t, err)
	assert.NotContains(t, states, "h: ignored 0", "a row that ended is no record")
}

// The reason that a signal worth 0 has no effect is its worth, and not the lock of the heuristic.
func TestANeutralSignalOnALockedHeuristic(t *testing.T) {
	f := newFixture(t, learning.Config{Packs: map[string]learning.Constraints{
		"": {Lock: "locked"}}}, "h")
	f.fire("h", "e", "s")
	changes := f.event("s", "next")
	require.Len(t, changes, 1)
	assert.Equal(t, []string{learning.LimitNeutral}, changes[0].Limits)
}

// The undo of a second person counts for itself, also where the ignore that came between counts
// more than the first.
func TestASecondUndoAfterAnIgnore(t *testing.T) {
	f := newFixture(t, ignoresWeighMore(), "h")
	f.fire("h", "e", "s")
	f.undoes("bob")
	f.event("s", "next")
	changes, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: "cid"})
	require.NoError(t, err)
	require.Len(t, changes, 1)
	assert.NotContains(t, changes[0].Limits, learning.LimitOutweighed)
	assert.Contains(t, f.raw("learning.heuristic"), "h seen -0.2 by cid")
}

// A text in a person's own session takes back nobody else's answers.
func TestUndoOfOthers(t *testing.T) {
	f := newFixture(t, learning.Config{}, "a", "b")
	fire := func(heuristic, person string) {
		require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: heuristic, EventID: "for " + person,
			Person: person, Session: "of " + person}))
	}
	fire("a", "ann")
	fire("b", "bob")
	for _, text := range []string{"undo that", "How do I cancel my subscription?",
		"please explain git revert", "undoubtedly good"} {
		assert.Empty(t, f.hear(learning.Message{Person: "carol", Session: "of carol", Text: text}),
			text)
	}
	assert.Empty(t, f.hear(learning.Message{Text: "undo that"}), "from nobody and nowhere")
	assert.Empty(t, f.hear(learning.Message{Person: "ann", Session: "new", Text: "undo that"}),
		"what was said elsewhere")
	assert.Equal(t, []string{"negative a"}, types(
		f.hear(learning.Message{Person: "ann", Text: "undo that"})))
	assert.Equal(t, []string{"negative b"}, types(
		f.hear(learning.Message{Session: "of bob", Text: "undo that"})))
}

// Silence alone earns no trust in a handful of answers, and with a cap none in a thousand. One
// person can teach.
func TestSilenceAloneEarnsNoTrust(t *testing.T) {
	f := newFixtureDefault(t, learning.Config{}, "h")
	f.put(learning.Heuristic{ID: "new"})
	f.put(learning.Heuristic{ID: "taught"})
	silent := func(f *fixture, n int) {
		for i := range n {
			f.fire("new", fmt.Sprint(i), "")
			f.clock.Advance(31 * time.Second)
			f.sweep()
		}
	}
	silent(f, 5)
	assert.InDelta(t, (0.6+5*0.4)/(2+5*0.4), f.confidence("new"), 1e-9)
	for i := range 5 {
		f.say(thumb("taught", fmt.Sprint(i), true))
	}
	assert.Greater(t, f.confidence("taught"), 0.7)

	f = newFixtureDefault(t, learning.Config{Trust: evidence.Trust{
		Silence: []string{learning.ChannelTimeout}}})
	f.put(learning.Heuristic{ID: "new"})
	silent(f, 500)
	assert.InDelta(t, 1.6/3, f.confidence("new"), 1e-9)
	f.say(thumb("new", "other", true))
	assert.InDelta(t, (1.6+1.6)/(3+1.6), f.confidence("new"), 1e-9,
		"silence may weigh one full observation more than praise")
}

// TestModuleUndo takes back the answers to an event.
func TestModuleUndo(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h", "other")
	fire := func(heuristic, event string) {
		require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: heuristic, EventID: event,
			Person: "ann"}))
	}
	undo := func(u learning.Undo) []learning.Change {
		changes, err := f.Undo(ctx, u)
		require.NoError(t, err)
		return changes
	}
	fire("h", "e")
	fire("other", "e")
	f.clock.Advance(20 * 24 * time.Hour)
	f.sweep()
	assert.Equal(t, []string{"negative h"}, types(
		undo(learning.Undo{EventID: "e", HeuristicID: "h", Person: "bob"})))
	both := undo(learning.Undo{EventID: "e"})
	assert.Equal(t, []string{"negative h", "negative other"}, types(both))
	assert.Empty(t, both[0].Limits, "bob has done it, and this is ann's")
	assert.Empty(t, both[1].Limits, "the one that is left")
	assert.Empty(t, undo(learning.Undo{EventID: "e"}), "again")
	for id, people := range map[string][]string{"h": {"ann", "bob"}, "other": {"ann"}} {
		e, err := f.Explain(ctx, id)
		require.NoError(t, err)
		require.Len(t, e.Shares, len(people))
		for i, person := range people {
			assert.Equal(t, learning.Share{
				Channel: learning.ChannelUndo, Source: person, Kind: "person", Against: 1,
				CountsAgainst: 1, Count: 1,
			}, e.Shares[i])
		}
	}

	fire("h", "next")
	_, err := f.Undo(ctx, learning.Undo{EventID: "next",
		At: f.clock.Now().Add(-evidence.MaxSkew - time.Second)})
	assertInputError(t, err, "At")
	_, err = f.Judge(ctx, learning.Judgement{HeuristicID: "h", EventID: "next", Value: -1,
		At: f.clock.Now().Add(-evidence.MaxSkew - time.Second)})
	assertInputError(t, err, "At")
	assert.Len(t, undo(learning.Undo{EventID: "next", At: f.clock.Now().Add(-2 * time.Second)}), 1,
		"by another clock")
	_, err = f.Undo(ctx, learning.Undo{EventID: "none"})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	_, err = f.Undo(ctx, learning.Undo{EventID: "next", HeuristicID: "other"})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	for field, u := range map[string]learning.Undo{
		"EventID": {}, "HeuristicID": {EventID: "e", HeuristicID: "\xff"},
		"Person":  {EventID: "e", Person: "\x00"},
		"Session": {EventID: "e", Session: "\xff"},
		"At":      {EventID: "e", At: f.clock.Now().Add(time.Hour)},
	} {
		_, err := f.Undo(ctx, u)
		assertInputError(t, err, field)
	}
}

// A sensor's next reading ends nothing, so that the outcome still counts.
func TestAnIgnoredAnswerWaitsOn(t *testing.T) {
	f := newFixture(t, learning.Config{Expectations: []learning.Expectation{{Trigger: "rain",
		Outcome: "window closed", Timeout: 10 * time.Minute}}})
	f.put(learning.Heuristic{ID: "h", Condition: "rain", Initial: 0.5})
	f.fire("h", "e", "sensor")
	f.clock.Advance(time.Second)
	f.event("sensor", "still rain")
	f.clock.Advance(5 * time.Minute)
	f.sweep()
	assert.Equal(t, []string{"positive h"}, types(f.event("sensor", "window closed")))
	assert.Equal(t, map[string][]float64{"implicit_outcome": {1}}, f.counted("h"))
}

// A message of another person does not ignore an answer.
func TestIgnoredBySomebodyElse(t *testing.T) {
	f := newFixture(t, impatient, "h")
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Stream: "s",
		Person: "ann"}))
	assert.Empty(t, f.hear(learning.Message{Stream: "s", Person: "bob", Text: "hello"}))
	assert.Len(t, f.hear(learning.Message{Stream: "s", Person: "ann", Text: "hello"}), 1)
}

// A lock keeps what was counted and counts nothing, and what the facts say afterwards replaces it.
func TestLockedWhileItHappens(t *testing.T) {
	f := newFixture(t, windows(60, 30), "h")
	lock := func(state string) {
		h := f.standing("h").Heuristic
		h.Constraints.Lock = state
		f.put(h)
	}
	f.fire("h", "e", "s")
	f.clock.Advance(31 * time.Second)
	f.sweep()
	lock("locked")
	f.event("", "undo that")
	assert.Equal(t, map[string][]float64{"implicit_timeout": {1}}, f.counted("h"))
	assert.EqualValues(t, 1, f.standing("h").Failures, "the answer was taken back all the same")
	lock("unlocked")
	f.say(thumb("h", "e", false))
	assert.Equal(t, map[string][]float64{"user_explicit": {-0.8}}, f.counted("h"))
}

// TestStandings reads many heuristics at once.
func TestStandings(t *testing.T) {
	f := newFixture(t, learning.Config{}, "a", "b")
	f.say(thumb("a", "e", true))
	f.fire("b", "e", "s")
	f.store.reads = 0
	all, err := f.Standings(ctx, "b", "none", "a", "b")
	require.NoError(t, err)
	assert.Equal(t, 1, f.store.reads)
	assert.Equal(t, map[string]learning.Standing{"a": f.standing("a"), "b": f.standing("b")}, all)
	all, err = f.Standings(ctx)
	require.NoError(t, err)
	assert.Empty(t, all)
	_, err = f.Standing(ctx, "none")
	require.ErrorIs(t, err, heed.ErrNotFound)
}
