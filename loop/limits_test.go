package loop_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// The least and the greatest value of each setting are accepted, and the next ones are faults.
func TestTheRangesOfSettings(t *testing.T) {
	tuned := func(fit, answer float64) loop.Config {
		return loop.Config{Tuning: loop.Tuning{Fit: fit, AnswerFit: answer}}
	}
	priced := func(input, output float64) loop.Config {
		return loop.Config{Arms: []loop.Arm{{ID: "a", InputPrice: input, OutputPrice: output}}}
	}
	for field, cfgs := range map[string][]loop.Config{
		"": {
			tuned(1, 0), tuned(0.01, 0), tuned(0.5, 0.5), tuned(0.5, 1), tuned(0, 0.3), {Control: 1},
			priced(0, 0), priced(1e6, 1e6), {Keep: 1}, {Budget: loop.Budget{Time: 1, Notes: 1}},
			{Name: strings.Repeat("n", 64)},
		},
		"Tuning.Fit":          {tuned(-0.1, 0), tuned(1.01, 0)},
		"Tuning.AnswerFit":    {tuned(0.5, 0.49), tuned(0.5, 1.01), tuned(0, 0.2)},
		"Control":             {{Control: -0.01}, {Control: 1.01}},
		"Arms[0].InputPrice":  {priced(-1, 0), priced(1e6+1, 0)},
		"Arms[0].OutputPrice": {priced(0, -1), priced(0, 1e6+1)},
		"Keep":                {{Keep: -1}},
		"Budget.Time":         {{Budget: loop.Budget{Time: -1}}},
		"Budget.Notes":        {{Budget: loop.Budget{Notes: -1}}},
		"Name":                {{Name: "a\x00"}},
	} {
		for _, cfg := range cfgs {
			_, err := loop.New(ctx, cfg)
			var fields []string
			for fault := range heed.ConfigErrors(err) {
				fields = append(fields, fault.Field)
			}
			if field == "" {
				assert.NoError(t, err, "%+v", cfg)
			} else {
				assert.Equal(t, []string{field}, fields, "%+v", cfg)
			}
		}
	}
}

// An agent keeps the slices of its configuration as they were.
func TestTheHostsSlicesAreCopied(t *testing.T) {
	cfg := loop.Config{
		Arms: []loop.Arm{{ID: "a", System: "Be brief."}}, Instruments: []string{"ci"},
		Fallbacks: []decision.LLM{&mouth{says: "I am here."}}, Model: &mouth{err: llm.Unreachable},
	}
	agent, err := loop.New(ctx, cfg)
	require.NoError(t, err)
	cfg.Arms[0].System, cfg.Instruments[0], cfg.Fallbacks[0] = "Be long.", "ann", nil
	a, err := agent.Answer(ctx, loop.Event{Text: "Why?", Person: "ann"})
	require.NoError(t, err)
	assert.Equal(t, "I am here.", a.Text)
	assert.Equal(t, "Be brief.", a.Plan.Arm.System)
	require.NoError(t, agent.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
	assertField(t, "Person", agent.React(ctx, a.ID, loop.Reaction{Person: "ci", Value: 1}))
}

// A prompt has at most 12,000 characters of heed's, and a text has all of them or is left out.
func TestTheRoomOfAPrompt(t *testing.T) {
	for n, fits := range map[int]bool{12_000: true, 12_001: false} {
		text := strings.Repeat("ü", n)
		w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a", System: " " + text + "\n"}}})
		p, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
		require.NoError(t, err)
		if fits {
			assert.Equal(t, text, p.System)
			assert.Empty(t, p.LeftOut)
		} else {
			assert.Empty(t, p.System)
			assert.Equal(t, []loop.LeftOut{{What: "arm", Why: "characters"}}, p.LeftOut)
		}
	}
	w := newWorld(t, loop.Config{
		Arms:    []loop.Arm{{ID: "a", System: "Be brief."}},
		Budget:  loop.WithRoom(loop.Budget{}, 300),
		Lessons: loop.Lessons{Notes: []loop.Note{{ID: "n", Topic: full, Text: "See room 3."}}},
	})
	approved(t, w.Feedback(), "Name the ticket.")
	p, err := w.Prepare(ctx, loop.Event{Text: full})
	require.NoError(t, err)
	var at []int
	for _, text := range []string{"Be brief.", "Name the ticket.", "## Notes\n\n- See room 3."} {
		at = append(at, strings.Index(p.System, text))
	}
	assert.NotContains(t, at, -1)
	assert.True(t, slices.IsSorted(at), p.System)
}

// The errors of tools take at most 6,000 characters of a prompt.
func TestTheRoomOfToolErrors(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for i := range 20 {
		w.clock.Advance(time.Second)
		fault := fmt.Errorf("%d %s", i, strings.Repeat("x", 900))
		require.NoError(t, second(w.Tool(ctx, "e", loop.ToolResult{Name: "sh", Err: fault, Task: "t"})))
	}
	p, err := w.Prepare(ctx, loop.Event{Text: "Again", Task: "t"})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(p.System), 6000)
	assert.Greater(t, len(p.System), 4000)
	assert.NotEmpty(t, p.LeftOut)
	w.cfg.Budget = loop.WithRoom(loop.Budget{}, 2000)
	p, err = w.again().Prepare(ctx, loop.Event{Text: "Again", Task: "t"})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(p.System), 2000)
	assert.Greater(t, len(p.System), 900)
}

// At most twenty heuristics are candidates for an event, the most similar ones.
func TestTwentyHeuristicsAreConsidered(t *testing.T) {
	var all []learning.Heuristic
	for n := range 30 {
		all = append(all, learning.Heuristic{
			ID: fmt.Sprint("h", n), Condition: full + strings.Repeat("!", n),
			Action: fmt.Sprint("Do ", n),
		})
	}
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: all}})
	p, err := w.Prepare(ctx, loop.Event{Text: full})
	require.NoError(t, err)
	require.Len(t, p.Candidates, 20)
	assert.Equal(t, "h0", p.Candidates[0].HeuristicID)
	assert.InDelta(t, 1, p.Candidates[0].Similarity, 1e-9)
}

// A text of megabytes is refused by its name before anything is read.
func TestALongNameIsRefused(t *testing.T) {
	w := newWorkshop(t)
	long := strings.Repeat("x", 5<<20)
	for field, err := range map[string]error{
		"caller": w.KeepPlan(ctx, long, w.plan), "session": second(w.Find(ctx, long)),
	} {
		var input *heed.InputError
		require.ErrorAs(t, err, &input)
		assert.Equal(t, field, input.Field)
	}
	assert.Less(t, len(second(w.KeptPlan(ctx, "kim", long)).Error()), 200)
}

// A plan is kept for an hour, to the last moment of it.
func TestAPlanIsKeptForAnHour(t *testing.T) {
	w := newWorkshop(t)
	require.NoError(t, w.KeepPlan(ctx, "kim", w.plan))
	w.clock.Advance(time.Hour - time.Microsecond)
	require.NoError(t, second(w.KeptPlan(ctx, "kim", "p")))
	w.clock.Advance(time.Microsecond)
	require.ErrorIs(t, second(w.KeptPlan(ctx, "kim", "p")), heed.ErrNotFound)
}

// An answer waits for a second, at the most, for the record of a model's health.
func TestAnAnswerDoesNotWaitForTheHealthOfModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sea := &tide{Store: new(memstore.Store)}
		var failed []string
		agent, err := loop.New(ctx, loop.Config{
			Store: sea, RequireStore: true, Model: decision.LLMFunc(
				func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
					sea.out.Store(true)
					return decision.LLMResponse{}, llm.Unreachable
				}),
			Observer: func(_ context.Context, n heed.Notice) {
				if f, is := n.(heed.Failed); is {
					failed = append(failed, f.What)
				}
			},
		})
		require.NoError(t, err)
		began := time.Now()
		for range 3 {
			sea.out.Store(false)
			_, err := agent.Answer(ctx, loop.Event{Text: "Why?"})
			require.NoError(t, err)
		}
		assert.Equal(t, time.Second, time.Since(began))
		assert.Contains(t, failed, "store the availability of model")
		assert.Equal(t, int64(1), sea.calls.Load())
	})
}

// An event finds the notes and heuristics of its domain, and the notes and heuristics without a
// domain.
func TestWhatADomainHas(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{
			{ID: "h", Condition: full, Action: "a"},
			{ID: "hd", Domain: "d", Condition: full, Action: "b"},
			{ID: "hx", Domain: "x", Condition: full, Action: "c"},
		},
		Notes: []loop.Note{
			{ID: "n", Topic: full, Text: "1"}, {ID: "nd", Domain: "d", Text: full},
			{ID: "nx", Domain: "x", Topic: full, Text: "3"},
		},
	}})
	for domain, want := range map[string][]string{
		"": {"h", "n"}, "d": {"hd", "h", "nd", "n"}, "x": {"hx", "h", "nx", "n"}, "y": {"h", "n"},
	} {
		p, err := w.Prepare(ctx, loop.Event{Text: full, Domain: domain})
		require.NoError(t, err)
		var got []string
		for _, c := range p.Candidates {
			got = append(got, c.HeuristicID)
		}
		for _, n := range p.Notes {
			got = append(got, n.ID)
		}
		assert.Equal(t, want, got, domain)
	}
}

// A similarity that counts wrong, or an embedder that fails, is an error that names it.
func TestASimilarityAtFault(t *testing.T) {
	away := errors.New("away")
	for want, similarity := range map[string]heed.Similarity{
		"the similarity has 0 numbers for 1 texts": alikeness{},
		"the similarity has 3 numbers for 1 texts": alikeness{1, 1, 1},
		"+Inf, which is above 1":                   alikeness{math.Inf(1)},
		"away": heed.Embedder(func(context.Context, []string) ([][]float32, error) {
			return nil, away
		}),
	} {
		w := newWorld(t, loop.Config{
			Tuning:  loop.Tuning{Similarity: similarity},
			Lessons: loop.Lessons{Notes: []loop.Note{{ID: "n", Text: "Room 3."}}},
		})
		for range 2 {
			err := second(w.Prepare(ctx, loop.Event{Text: full}))
			require.ErrorContains(t, err, "loop: prepare: ")
			require.ErrorContains(t, err, want)
		}
	}
}

// A cosine of two equal vectors may be a little above 1 by rounding, which counts as 1.
func TestASimilarityOfALittleMoreThanOne(t *testing.T) {
	w := newWorld(t, loop.Config{
		Tuning:  loop.Tuning{Similarity: alikeness{1 + 1e-7}},
		Lessons: loop.Lessons{Notes: []loop.Note{{ID: "n", Text: "Room 3."}}},
	})
	p, err := w.Prepare(ctx, loop.Event{Text: full})
	require.NoError(t, err)
	assert.Contains(t, p.System, "Room 3.")
}

// alikeness is a similarity that returns the same numbers for any texts.
type alikeness []float64

func (n alikeness) Similar(context.Context, string, []string) ([]float64, error) { return n, nil }

// Lessons are counted as they are: new, changed, without evidence, missing, taken out.
func TestWhatTeachingDid(t *testing.T) {
	h := func(id, action string, initial float64) learning.Heuristic {
		return learning.Heuristic{ID: id, Condition: "c " + id, Action: action, Initial: initial}
	}
	n := func(id, text string) loop.Note { return loop.Note{ID: id, Text: text} }
	w := newWorld(t, loop.Config{})
	for i, step := range []struct {
		lessons loop.Lessons
		want    loop.Taught
	}{
		{loop.Lessons{}, loop.Taught{}},
		{loop.Lessons{Heuristics: []learning.Heuristic{h("a", "A", 0), h("b", "B", 0)},
			Notes: []loop.Note{n("x", "X"), n("y", "Y")}}, loop.Taught{New: 4}},
		{loop.Lessons{Heuristics: []learning.Heuristic{h("a", "A", 0), h("b", "B", 0)},
			Notes: []loop.Note{n("x", "X"), n("y", "Y")}}, loop.Taught{}},
		{loop.Lessons{Heuristics: []learning.Heuristic{h("a", "A", 0.5), h("b", "B2", 0)},
			Notes: []loop.Note{n("x", "X2")}}, loop.Taught{Changed: 3, Restarted: []string{"b"},
			Missing: []string{"note y"}}},
		{loop.Lessons{}, loop.Taught{}},
		{loop.Lessons{Heuristics: []learning.Heuristic{h("b", "B", 0)}}, loop.Taught{Changed: 1,
			Missing: []string{"heuristic a", "note x", "note y"}}},
		{loop.Lessons{Only: true, Heuristics: []learning.Heuristic{h("b", "B", 0)},
			Notes: []loop.Note{n("y", "Y")}}, loop.Taught{
			Removed: []string{"heuristic a", "note x"}}},
		{loop.Lessons{Only: true, Heuristics: []learning.Heuristic{h("a", "A", 0.5)}},
			loop.Taught{New: 1, Removed: []string{"heuristic b", "note y"}}},
		{loop.Lessons{Only: true}, loop.Taught{Removed: []string{"heuristic a"}}},
		{loop.Lessons{Only: true}, loop.Taught{}},
	} {
		w.clock.Advance(time.Second)
		got, err := w.Teach(ctx, step.lessons)
		require.NoError(t, err)
		slices.Sort(got.Missing)
		slices.Sort(got.Removed)
		assert.Equal(t, step.want, got, "step %d", i)
	}
	p, err := w.Prepare(ctx, loop.Event{Text: "c a"})
	require.NoError(t, err)
	assert.Empty(t, p.Candidates)
	assert.Empty(t, p.Notes)
}

// A lesson that can't be stored is named, with the field at fault if there is one. The lessons
// before it are kept.
func TestALessonThatIsRefused(t *testing.T) {
	w := newWorld(t, loop.Config{})
	_, err := w.Teach(ctx, loop.Lessons{Heuristics: []learning.Heuristic{
		rotating, {ID: "b", Condition: "c", Action: "a", Domain: strings.Repeat("d", 2000)},
	}})
	assertField(t, "Heuristics[1].Domain", err)
	require.NoError(t, second(w.Learning().Standing(ctx, "rotate")))
	require.NoError(t, second(w.Teach(ctx, loop.Lessons{Notes: []loop.Note{{ID: "n", Text: "N"}}})))
	damage(t, w.store, "loop.note", store.IDOf("n"))
	_, err = w.Teach(ctx, loop.Lessons{Heuristics: []learning.Heuristic{rotating}})
	require.ErrorIs(t, err, heed.ErrDamaged)
}

// An agent that runs sweeps until its context ends.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var swept int
		agent, err := loop.New(ctx, loop.Config{
			Model: &mouth{says: "So."}, Observer: func(_ context.Context, n heed.Notice) {
				if _, is := n.(heed.Swept); is {
					swept++
				}
			},
		})
		require.NoError(t, err)
		require.NoError(t, second(agent.Answer(ctx, loop.Event{Text: "Why?"})))
		within, cancel := context.WithTimeout(ctx, 90*time.Second)
		defer cancel()
		require.NoError(t, agent.Run(within))
		assert.Equal(t, 1, swept)
	})
}

// A closed is a connector to a database that refuses connections.
type closed struct{ error }

func (c closed) Connect(context.Context) (driver.Conn, error) { return nil, c.error }
func (c closed) Driver() driver.Driver                        { return nil }

// Without its database there is no agent, and the error has what the database said.
func TestADatabaseThatCannotBeOpened(t *testing.T) {
	refused := errors.New("refused")
	agent, err := loop.New(ctx, loop.Config{DB: sql.OpenDB(closed{refused})})
	require.ErrorIs(t, err, refused)
	assert.Nil(t, agent)
}

// A declaring store notes which kinds of records were declared.
type declaring struct {
	store.Store
	kinds map[string]store.Limits
}

func (d *declaring) Declare(ctx context.Context, kinds ...store.Kind) error {
	for _, k := range kinds {
		d.kinds[k.Name] = k.Limits
	}
	return d.Store.Declare(ctx, kinds...)
}

// Lessons are kept for good and refused if there are too many. What is needed for a while is not.
func TestWhatAnAgentKeepsAndForHowLong(t *testing.T) {
	st := &declaring{new(memstore.Store), make(map[string]store.Limits)}
	newWorld(t, loop.Config{Store: st})
	for kind, want := range map[string]store.Limits{
		"note": {Most: 100_000, Refuse: true}, "lesson": {Most: 100_000, Refuse: true},
		"plan": {For: time.Hour, Most: 10_000}, "model": {For: time.Hour, Most: 1000},
		"import": {}, "tenant": {},
	} {
		got, declared := st.kinds["loop."+kind]
		assert.True(t, declared, kind)
		assert.Equal(t, want, got, kind)
	}
}

// No lesson is kept if one of them has a text that no store can keep.
func TestLessonsWithATextThatCannotBeKept(t *testing.T) {
	for _, text := range []string{"\xff", "a\x00"} {
		for field, bad := range map[string]loop.Lessons{
			"Heuristics[1].Action": {Heuristics: []learning.Heuristic{
				rotating, {ID: "b", Condition: "c", Action: text},
			}},
			"Heuristics[1].Condition": {Heuristics: []learning.Heuristic{
				rotating, {ID: "b", Condition: text, Action: "a"},
			}},
			"Notes[0].Text": {
				Heuristics: []learning.Heuristic{rotating}, Notes: []loop.Note{{ID: "n", Text: text}},
			},
		} {
			w := newWorld(t, loop.Config{})
			_, err := w.Teach(ctx, bad)
			assertField(t, field, err)
			require.ErrorIs(t, second(w.Learning().Standing(ctx, "rotate")), heed.ErrNotFound)
		}
	}
}

// An id may be so long that the names of an arm's observations still fit.
func TestTheLongestIDOfAnEvent(t *testing.T) {
	w := newWorld(t, loop.Config{
		Name: strings.Repeat("n", 240), Arms: []loop.Arm{{ID: "only"}},
	})
	most := 1024 - len(w.Strategy().Config().Name) - len("::/") - 36 - 20
	require.NoError(t, second(w.Answer(ctx, loop.Event{ID: strings.Repeat("i", most), Text: "Why?"})))
	_, err := w.Answer(ctx, loop.Event{ID: strings.Repeat("i", most+1), Text: "Why?"})
	assert.ErrorContains(t, err, fmt.Sprintf("ID: is %d bytes long, may be %d", most+1, most))
}

func TestBoundsOfAnOutcome(t *testing.T) {
	w := newWorld(t, loop.Config{})
	id := w.answer(loop.Event{Text: "Why?"}).ID
	yes, no := true, false
	reward := func(x float64) loop.Outcome { return loop.Outcome{Reward: &x} }
	for _, test := range []struct {
		field string // of the fault, and empty without one
		o     loop.Outcome
	}{
		{"", reward(-1)}, {"", reward(1)}, {"", loop.Outcome{Success: &no}},
		{"Reward", reward(math.Nextafter(-1, -2))}, {"Reward", reward(math.Nextafter(1, 2))},
		{"Reward", reward(math.NaN())},
		{"", loop.Outcome{Success: &yes, Errors: 0, Retries: 0, Duration: 0}},
		{"Errors", loop.Outcome{Success: &yes, Errors: -1}},
		{"Retries", loop.Outcome{Success: &yes, Retries: -1}},
		{"Duration", loop.Outcome{Success: &yes, Duration: -1}},
		{"", loop.Outcome{Success: &yes, Cost: 1e6}},
		{"Cost", loop.Outcome{Success: &yes, Cost: math.Nextafter(1e6, 2e6)}},
		{"Cost", loop.Outcome{Success: &yes, Cost: -1e-9}},
		{"", loop.Outcome{Success: &yes, Confidence: 1}},
		{"Confidence", loop.Outcome{Success: &yes, Confidence: math.Nextafter(1, 2)}},
		{"Confidence", loop.Outcome{Success: &yes, Confidence: -1e-9}},
		{"Success", loop.Outcome{}}, {"", loop.Outcome{Withdraw: true}},
		{"Withdraw", loop.Outcome{Withdraw: true, Success: &yes}},
		{"Withdraw", loop.Outcome{Withdraw: true, Reward: new(float64)}},
		{"Withdraw", loop.Outcome{Withdraw: true, Cost: 1}},
		{"Source", loop.Outcome{Success: &yes, Source: "\xff"}},
	} {
		err := w.Outcome(ctx, id, test.o)
		if test.field == "" {
			assert.NoError(t, err)
			continue
		}
		assertField(t, test.field, err)
	}
}

func TestBoundsOfAPastAnswer(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	for n, test := range []struct {
		field string // of the fault, and empty without one
		p     loop.Past
	}{
		{"", loop.Past{Arm: "only", Propensity: 1}}, {"", loop.Past{Arm: "only", Propensity: 1e-9}},
		{"Propensity", loop.Past{Arm: "only", Propensity: math.Nextafter(1, 2)}},
		{"Propensity", loop.Past{Arm: "only", Propensity: -1e-9}},
		{"Arm", loop.Past{Arm: "other"}},
		{"", loop.Past{Spent: answer.Spent{Cost: 1e6}}},
		{"Spent.Cost", loop.Past{Spent: answer.Spent{Cost: math.Nextafter(1e6, 2e6)}}},
		{"Spent.Cost", loop.Past{Spent: answer.Spent{Cost: -1e-9}}},
		{"Spent", loop.Past{Spent: answer.Spent{Latency: -1}}},
		{"Spent", loop.Past{Spent: answer.Spent{Tokens: -1}}},
	} {
		test.p.Event, test.p.Text = loop.Event{ID: fmt.Sprint(n), Text: "Why?", At: start}, "So."
		_, err := w.Import(ctx, each([]loop.Past{test.p}), "", "")
		if test.field == "" {
			assert.NoError(t, err)
			continue
		}
		assertField(t, test.field, err)
	}
}

func TestBoundsOfAConfiguration(t *testing.T) {
	type cfg = loop.Config
	price := func(in, out float64) cfg {
		return cfg{Arms: []loop.Arm{{ID: "a", InputPrice: in, OutputPrice: out}}}
	}
	fit := func(fit, answer float64) cfg {
		return cfg{Tuning: loop.Tuning{Fit: fit, AnswerFit: answer}}
	}
	above := func(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
	for _, test := range []struct {
		field string // of the fault, and empty without one
		cfg   cfg
	}{
		{"", cfg{Name: strings.Repeat("n", 240)}}, {"Name", cfg{Name: strings.Repeat("n", 1025)}},
		{"", cfg{Keep: 1}}, {"Keep", cfg{Keep: -1}},
		{"", cfg{Control: 1}}, {"Control", cfg{Control: above(1)}}, {"Control", cfg{Control: -1e-9}},
		{"", fit(1, 1)}, {"Tuning.Fit", fit(above(1), 0)}, {"Tuning.Fit", fit(-1e-9, 0.5)},
		{"", fit(0.5, 0.5)}, {"", fit(0.5, 1)}, {"Tuning.AnswerFit", fit(0.5, above(1))},
		{"Tuning.AnswerFit", fit(above(0.5), 0.5)},
		{"Budget.Time", cfg{Budget: loop.Budget{Time: -1}}}, {"", cfg{Budget: loop.Budget{Time: 1}}},
		{"Budget.Notes", cfg{Budget: loop.Budget{Notes: -1}}}, {"", cfg{Budget: loop.Budget{Notes: 1}}},
		{"", price(1e6, 1e6)}, {"", price(0, 0)},
		{"Arms[0].InputPrice", price(above(1e6), 0)}, {"Arms[0].OutputPrice", price(0, above(1e6))},
		{"Arms[0].InputPrice", price(-1e-9, 0)}, {"Arms[0].OutputPrice", price(0, -1e-9)},
		{"Fallbacks[0]", cfg{Fallbacks: []decision.LLM{nil}}},
	} {
		test.cfg.Store, test.cfg.Model = new(memstore.Store), &mouth{}
		_, err := loop.New(ctx, test.cfg)
		if test.field == "" {
			assert.NoError(t, err)
			continue
		}
		var fields []string
		for fault := range heed.ConfigErrors(err) {
			fields = append(fields, fault.Field)
		}
		assert.Equal(t, []string{test.field}, fields, "%.200v", err)
	}
}

// An event that is refused has no answer at all.
func TestARefusedEventHasNoAnswer(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for _, e := range []loop.Event{{}, {Text: "Why?", Task: strings.Repeat("t", 513)}} {
		given, err := w.Answer(ctx, e)
		require.Error(t, err)
		assert.Equal(t, loop.Answer{}, given)
	}
	assert.Zero(t, w.model.calls())
}
