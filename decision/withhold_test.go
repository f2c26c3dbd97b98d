package decision_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
)

func share(x float64) *float64 { return &x }

// oneAndOther returns two candidates. The model says the action of the first.
func oneAndOther() []decision.Candidate {
	return []decision.Candidate{
		{HeuristicID: "same", Condition: "it is full", Action: "Rotate the logs.", Confidence: 0.3},
		{HeuristicID: "other", Condition: "it is slow", Action: "Call the people on call.",
			Confidence: 0.5},
	}
}

func TestCandidatesAreWithheldAndCompared(t *testing.T) {
	always := decision.Config{LLM: model("Rotate the logs."), Withhold: share(1)}
	res := decide(t, always, decision.Request{EventID: "e", Text: "The disk is full.",
		Candidates: oneAndOther()})
	assert.Empty(t, res.ShownIDs)
	assert.NotContains(t, res.System+res.Prompt, "logs", "the model does not see them")
	assert.NotContains(t, res.Prompt, "Previous responses")
	require.Len(t, res.Compared, 2)
	assert.Equal(t, answer.Comparison{HeuristicID: "same", Similarity: 1, Agrees: true},
		res.Compared[0])
	assert.Equal(t, "other", res.Compared[1].HeuristicID)
	assert.False(t, res.Compared[1].Agrees)
	assert.Equal(t, "same", res.MatchedID)
	assert.Empty(t, res.CreditID)

	h := newHeuristicFirst(t, always)
	res, err := h.Decide(ctx, decision.Request{EventID: "e", Candidates: oneAndOther()})
	require.NoError(t, err)
	trace, err := h.Trace(ctx, res.ResponseID)
	require.NoError(t, err)
	assert.Equal(t, res.Compared, trace.Compared, "the trace says what was withheld")
	assert.Empty(t, trace.ShownIDs)
	assert.Equal(t, res.Prompt, trace.Prompt)

	never := always
	never.Withhold = share(0)
	res = decide(t, never, decision.Request{EventID: "e", Candidates: oneAndOther()})
	assert.Len(t, res.ShownIDs, 2)
	assert.Empty(t, res.Compared)
	assert.Len(t, res.Convergence, 1)
	assert.Empty(t, decide(t, decision.Tuned(decision.Config{LLM: model("x")},
		decision.Tuning{NoSimilarity: true}), decision.Request{Candidates: oneAndOther()}).Compared)
}

// A candidate that the prompt tells in another way is not compared: the model may have copied it.
func TestWhatThePromptTellsIsNotCompared(t *testing.T) {
	trusted := decision.Candidate{HeuristicID: "trusted", Condition: "it is loud",
		Action: "Rotate all the logs.", Confidence: 0.9}
	for name, tt := range map[string]struct {
		change func(*decision.Config, *decision.Request)
		want   []string
	}{
		"nothing": {func(*decision.Config, *decision.Request) {}, []string{"same", "other"}},
		"a shown one": {func(c *decision.Config, r *decision.Request) {
			c.Strategy = "always_llm"
			r.Candidates = append(r.Candidates, trusted)
		}, []string{"other"}},
		"a briefing": {func(_ *decision.Config,
			r *decision.Request) {
			r.Briefing = "- What worked: ROTATE  the logs!"
		}, []string{"other"}},
		"a goal": {func(_ *decision.Config,
			r *decision.Request) {
			r.Goals = []string{"Rotate the logs."}
		}, []string{"other"}},
		"a configured goal": {func(c *decision.Config,
			_ *decision.Request) {
			c.Goals = map[string][]string{"": {"rotate the logs"}}
		},
			[]string{"other"}},
		"the system prompt": {func(c *decision.Config,
			_ *decision.Request) {
			c.System = "You rotate the logs."
		}, []string{"other"}},
		"a word of it": {func(_ *decision.Config,
			r *decision.Request) {
			r.Briefing = "rotate the logsheets"
		}, []string{"same", "other"}},
		"the event itself": {func(_ *decision.Config,
			r *decision.Request) {
			r.Text = "Shall I rotate the logs?"
		}, []string{"other"}},
		"the conversation": {func(_ *decision.Config,
			r *decision.Request) {
			r.Told = []string{"You could rotate the logs."}
		}, []string{"other"}},
		"in full width": {func(_ *decision.Config, r *decision.Request) {
			r.Text = "Ｓｈａｌｌ　Ｉ　ｒｏｔａｔｅ　ｔｈｅ　ｌｏｇｓ？"
		}, []string{"other"}},
		"with look-alikes": {func(_ *decision.Config,
			r *decision.Request) {
			r.Text = "Rоtаtе thе Iоgs"
		}, []string{"other"}},
		"with soft hyphens": {func(_ *decision.Config,
			r *decision.Request) {
			r.Told = []string{"Ro\u00adta\u00adte the lo\u200bgs"}
		},
			[]string{"other"}},
		"without blanks": {func(_ *decision.Config,
			r *decision.Request) {
			r.Text = "call RotateTheLogs()"
		}, []string{"other"}},
		"with more blanks": {func(_ *decision.Config,
			r *decision.Request) {
			r.Briefing = "r o t a t e  t h e  l o g s"
		}, []string{"other"}},
		"with accents": {func(_ *decision.Config,
			r *decision.Request) {
			r.Text = "rótáte the lo\u0301gs"
		}, []string{"other"}},
		"in Chinese, without blanks": {func(c *decision.Config, r *decision.Request) {
			r.Candidates[0].Action, c.LLM = "打开窗户", model("打开窗户")
			r.Text = "请打开窗户吧"
		}, []string{"other"}},
		"a near paraphrase with look-alikes": {func(_ *decision.Config, r *decision.Request) {
			r.Text = "It is full. Rоtаtе аll the lоgs? It is late."
		}, []string{"other"}},
		"letters within other words": {func(_ *decision.Config,
			r *decision.Request) {
			r.Text = "Berotate the logsheets"
		}, []string{"same", "other"}},
		"a near paraphrase in a briefing": {func(_ *decision.Config, r *decision.Request) {
			r.Briefing = "Be brief.\n- Rotate all the logs.\n- Tell nobody."
		}, []string{"other"}},
		"a near paraphrase of the user": {func(_ *decision.Config,
			r *decision.Request) {
			r.Text = "It is full. Rotate all the logs? It is late."
		},
			[]string{"other"}},
		"a near paraphrase that was said before": {func(_ *decision.Config, r *decision.Request) {
			r.Told = []string{"It is full.", "Rotate all the logs!"}
		}, []string{"other"}},
		"an action of two sentences": {func(c *decision.Config, r *decision.Request) {
			r.Candidates[0].Action, c.LLM = "Rotate the logs. Tell the owner.",
				model("Rotate the logs. Tell the owner.")
			r.Briefing = "It is late. Rotate all the logs. Tell the owners. Be brief."
		}, []string{"other"}},
		"something else": {func(_ *decision.Config, r *decision.Request) {
			r.Briefing = "Rotate the keys of the host. Read the logs."
		}, []string{"same", "other"}},
		"an empty action": {func(_ *decision.Config,
			r *decision.Request) {
			r.Candidates[1].Action = " !"
		}, []string{"same"}},
		"a trusted one stays": {func(c *decision.Config, r *decision.Request) {
			c.Strategy = "always_llm"
			r.Candidates[0].Confidence = 0.7
		}, []string{"other"}},
		"a lower bar": {func(c *decision.Config, r *decision.Request) {
			r.Biases = map[string]float64{"confidence_threshold": -0.25}
			c.Strategy = "always_llm"
		}, []string{"same"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := decision.Config{LLM: model("Rotate the logs."), Withhold: share(1)}
			r := decision.Request{EventID: "e", Candidates: oneAndOther()}
			tt.change(&cfg, &r)
			var got []string
			for _, c := range decide(t, cfg, r).Compared {
				got = append(got, c.HeuristicID)
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// A comparison that fails with the shown ones compares nothing.
func TestAComparisonThatFailsIsNone(t *testing.T) {
	s := &failsLater{}
	r := decision.Request{EventID: "e", Candidates: append(oneAndOther(),
		decision.Candidate{HeuristicID: "trusted", Action: "x", Confidence: 0.9})}
	res := decide(t, decision.Config{Strategy: "always_llm", LLM: model("Rotate the logs."),
		Withhold: share(1), Similarity: s}, r)
	assert.Empty(t, res.Compared)
	assert.Empty(t, res.Convergence)
	assert.ErrorIs(t, res.Err, errLater)
	assert.Equal(t, 2, s.calls)
}

// The draw is an event's: the same event is drawn alike, whatever else has changed, and the share
// of events is as configured.
func TestWithholdingIsDrawnByEvent(t *testing.T) {
	withheld := func(seed uint64, p float64, r decision.Request) bool {
		r.Candidates = oneAndOther()
		res := decide(t, decision.Config{LLM: model("Rotate the logs."), Withhold: &p,
			Seed: rand.NewPCG(seed, 1)}, r)
		require.Contains(t, []int{0, 2}, len(res.Compared), "all or none")
		require.Equal(t, 2, len(res.Compared)+len(res.ShownIDs))
		return len(res.Compared) == 2
	}
	n := 0
	for i := range 400 {
		first := withheld(1, 0.75, decision.Request{EventID: fmt.Sprint(i), Text: "a"})
		require.Equal(t, first, withheld(1, 0.75,
			decision.Request{EventID: fmt.Sprint(i), Text: "b", Source: "c"}))
		if first {
			n++
		}
	}
	assert.InDelta(t, 300, n, 45)
	differ := 0
	for i := range 40 {
		r := decision.Request{EventID: fmt.Sprint(i)}
		if withheld(1, 0.5, r) != withheld(2, 0.5, r) {
			differ++
		}
	}
	assert.NotZero(t, differ, "it depends on the seed")
}

// Requests without an id draw again each time, even if they are alike.
func TestRequestsWithoutAnIDDiffer(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{LLM: model("ok"), Withhold: share(0)})
	orders := make(map[string]bool)
	for range 40 {
		res, err := h.Decide(ctx, decision.Request{Text: "the same", Candidates: candidates(0.1, 0.2)})
		require.NoError(t, err)
		orders[strings.Join(res.ShownIDs, " ")] = true
	}
	assert.Len(t, orders, 2)
}

func TestACandidateThatIsThereTwiceCountsOnce(t *testing.T) {
	twice := append(candidates(0.3, 0.2), candidates(0.3)...)
	res := decide(t, decision.Config{LLM: model("action 1"), Withhold: share(0)},
		decision.Request{EventID: "e", Candidates: twice})
	assert.ElementsMatch(t, []string{"h1", "h2"}, res.ShownIDs)
	assert.Equal(t, 1, strings.Count(res.Prompt, "condition 1"))
	res = decide(t, decision.Config{LLM: model("action 1"), Withhold: share(1)},
		decision.Request{EventID: "e", Candidates: twice})
	assert.Len(t, res.Compared, 2)
	assert.Len(t, res.Convergence, 1)
	urgent := decision.Config{UrgencyTiers: true}
	sure := []decision.Candidate{{HeuristicID: "h", Action: "x", Confidence: 0.95, Similarity: 0.95},
		{HeuristicID: "h", Action: "x", Confidence: 0.95, Similarity: 0.95}}
	assert.Equal(t, decision.Heuristic, decide(t, urgent, decision.Request{Candidates: sure}).Path,
		"it does not compete with itself")
	assert.Len(t, sure, 2, "the request stays as it is")
}

// A compared candidate was not in the prompt, and was not trusted.
func TestOnlyTheUnseenIsCompared(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := decision.Request{EventID: rapid.StringMatching("[a-z]{1,3}").Draw(rt, "event")}
		confidence := make(map[string]float64)
		for i := range rapid.IntRange(0, 8).Draw(rt, "candidates") {
			c := decision.Candidate{
				HeuristicID: fmt.Sprint("h", i), Condition: fmt.Sprint("if ", i),
				Action: fmt.Sprintf("word%d %s", i,
					rapid.StringMatching("[a-c]{0,3}").Draw(rt, "action")),
				Confidence: rapid.SampledFrom([]float64{0.1, 0.5, 0.69, 0.7, 0.9}).Draw(rt, "confidence"),
			}
			r.Candidates = append(r.Candidates, c)
			confidence[c.HeuristicID] = c.Confidence
		}
		p := rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(rt, "withhold")
		r.ShowNone = rapid.Bool().Draw(rt, "none")
		res := decide(t, decision.Config{Strategy: "always_llm", LLM: model("word1 abc"),
			Withhold: &p}, r)
		for _, c := range res.Compared {
			require.NotContains(rt, res.ShownIDs, c.HeuristicID)
			require.NotContains(rt, res.Prompt, "word"+c.HeuristicID[1:])
			require.Less(rt, confidence[c.HeuristicID], 0.7)
			require.NotZero(rt, p)
			require.Equal(rt, c.Similarity >= 0.75, c.Agrees)
		}
		require.LessOrEqual(rt, len(res.ShownIDs), 3)
		if p == 1 {
			for _, id := range res.ShownIDs {
				require.GreaterOrEqual(rt, confidence[id], 0.7)
			}
		}
	})
}

var errLater = errors.New("later")
