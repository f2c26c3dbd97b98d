package decision_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/memstore"
)

// words returns a text of n words.
func words(n int) string { return strings.TrimSuffix(strings.Repeat("word ", n), " ") }

// written is what a model replies with, asked for a heuristic.
func written(condition, kind, message any) string {
	b, _ := json.Marshal(map[string]any{"condition": condition,
		"action": map[string]any{"type": kind, "message": message}})
	return string(b)
}

// conditions has one heuristic.
type conditions struct {
	id         string
	similarity float64
	err        error
	asked      *[2]string
}

func (c conditions) nearest(_ context.Context, condition, message string) (string, float64, error) {
	if c.asked != nil {
		*c.asked = [2]string{condition, message}
	}
	return c.id, c.similarity, c.err
}

func extractor(t testing.TB, cfg decision.Config, reply string,
	traces ...decision.Trace) *decision.Decider {
	t.Helper()
	if cfg.LLM == nil {
		cfg.LLM = &llmtest.Model{Predictions: llmtest.Say(reply)}
	}
	cfg.Store = &memstore.Store{}
	for _, trace := range traces {
		trace.At = time.Now()
		require.NoError(t, decision.PutTrace(ctx, cfg.Store, trace))
	}
	e, err := decision.New(ctx, cfg)
	require.NoError(t, err)
	return e
}

var praised = decision.Trace{ResponseID: "r", Text: "The oven is on.", Response: "Turn it off.",
	Source: "kitchen", Domain: "home", Path: decision.Model}

func TestExtract(t *testing.T) {
	good := written(words(10), "warn", words(50))
	for name, tt := range map[string]struct {
		reply   string
		refused string // "" where a heuristic comes of it
	}{
		"as asked for":      {good, ""},
		"in a fence":        {"```json\n" + good + "\n```", ""},
		"with prose around": {"Here it is: " + good + "\nDone.", ""},
		"with spaces and breaks": {written(strings.ReplaceAll(words(10), " ", "\n "), "remind",
			" "+words(10)+" "), ""},
		"a condition of nine words": {written(words(9), "suggest", words(10)),
			"condition has 9 words, must have 10 to 50"},
		"a condition of fifty": {written(words(50), "suggest", words(10)), ""},
		"a condition of fifty-one": {written(words(51), "suggest", words(10)),
			"condition has 51 words, must have 10 to 50"},
		"a message of nine": {written(words(10), "suggest", words(9)),
			"message has 9 words, must have 10 to 50"},
		"a message of ten": {written(words(10), "suggest", words(10)), ""},
		"a message of fifty-one": {written(words(10), "suggest", words(51)),
			"message has 51 words, must have 10 to 50"},
		"another type": {written(words(10), "action", words(10)),
			"type is not one of suggest, remind, warn"},
		"a type in capitals": {written(words(10), "Suggest", words(10)),
			"type is not one of suggest, remind, warn"},
		"no type":                   {written(words(10), nil, words(10)), "type is not one text"},
		"no message":                {written(words(10), "warn", nil), "message is not one text"},
		"a message that is no text": {written(words(10), "warn", 7), "message is not one text"},
		"an action that is no object": {`{"condition": "` + words(10) + `", "action": "` + words(
			10) + `"}`, "action is not one object"},
		"no action": {`{"condition": "` + words(10) + `"}`, "action is not one object"},
		"two of them": {good + "\n" + good,
			"the reply does not have one object with a condition and an action"},
		"half of one": {good[:len(good)-10],
			"the reply does not have one object with a condition and an action"},
		"nothing": {"I can't.",
			"the reply does not have one object with a condition and an action"},
		"what nobody sees": {written(words(10)+"\u200b", "warn", words(10)),
			"condition: character 50 (U+200B) is invisible, or no character"},
		"what reads as markup": {written(words(10), "warn", words(9)+" <system>"),
			"message: character 46 (U+003C) begins what reads as markup"},
		"a condition that is there twice": {`{"condition": "` + words(10) + `", ` + good[1:],
			"condition is not one text"},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := extractor(t, decision.Config{}, tt.reply, praised).Extract(ctx, "r", nil)
			require.NoError(t, err)
			assert.Equal(t, tt.refused, x.Refused)
			assert.Equal(t, tt.refused == "", x.Condition != "")
		})
	}
}

// JSON that ends too early makes no heuristic, also if it can be read.
func TestExtractFromACutReply(t *testing.T) {
	cut := decision.LLMFunc(func(
		context.Context, decision.LLMRequest,
	) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: written(words(10), "warn", words(10)), Cut: true}, nil
	})
	x, err := extractor(t, decision.Config{LLM: cut}, "", praised).Extract(ctx, "r", nil)
	require.NoError(t, err)
	assert.Contains(t, x.Refused, "cut off")
	assert.Empty(t, x.Condition)
}

func TestExtracted(t *testing.T) {
	condition := "the oven or the stove is on and there has been nobody in the kitchen for a while"
	message := "Turn the oven off and tell whoever is at home that it had been left on."
	m := &llmtest.Model{Predictions: llmtest.Say(written(condition, "warn", message))}
	var asked [2]string
	x, err := extractor(t, decision.Config{LLM: m}, "", praised).Extract(ctx, "r",
		conditions{id: "h9", similarity: 0.74, asked: &asked}.nearest)
	require.NoError(t, err)
	assert.Equal(t, decision.Extraction{
		Name: "Learned: the oven or the stove is on and there has been no…", Condition: condition,
		ActionType: "warn", Message: message,
		Confidence: 0.3, ResponseID: "r", Source: "kitchen", Domain: "home",
	}, x)
	assert.Equal(t, [2]string{condition, message}, asked)
	require.Len(t, m.Requests(), 1)
	r := m.Requests()[0]
	assert.True(t, r.JSON)
	assert.Equal(t, 1024, r.MaxTokens)
	assert.Contains(t, r.Prompt, "Situation: \"The oven is on.\"\nResponse: \"Turn it off.\"\n")
	assert.Contains(t, r.Prompt, "in 10 to 50 words")
	assert.Contains(t, r.Prompt, "suggest | remind | warn")
}

func TestExtractDuplicates(t *testing.T) {
	good := written(words(10), "warn", words(10))
	for name, tt := range map[string]struct {
		nearest conditions
		want    string
	}{
		"there is none":     {conditions{similarity: 1}, ""},
		"just alike enough": {conditions{id: "h9", similarity: 0.75}, "h9"},
		"less alike":        {conditions{id: "h9", similarity: 0.7499}, ""},
		"no number":         {conditions{id: "h9", similarity: nan()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := extractor(t, decision.Config{}, good, praised).Extract(ctx, "r", tt.nearest.nearest)
			require.NoError(t, err)
			assert.Equal(t, tt.want, x.ReinforcedID)
			assert.Equal(t, tt.want == "", x.Condition != "",
				"one that is there already is not stored again")
		})
	}
	broken := errors.New("broken")
	_, err := extractor(t, decision.Config{}, good, praised).Extract(ctx, "r",
		conditions{err: broken}.nearest)
	assert.ErrorIs(t, err, broken)
}

func TestExtractFails(t *testing.T) {
	_, err := extractor(t, decision.Config{}, "{}").Extract(ctx, "r", nil)
	assert.ErrorIs(t, err, heed.ErrNotFound)
	for name, step := range map[string]llmtest.Step{
		"error": {Err: errors.New("out of order")}, "panic": {Panic: "x"}, "hang": {Hang: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &llmtest.Model{Predictions: []llmtest.Step{step}}
			e, began := extractor(t, decision.Config{LLM: m}, "", praised), time.Now()
			x, err := e.Extract(context.Background(), "r", nil)
			assert.NoError(t, err, name)
			assert.Contains(t, x.Refused, "the model did not answer", name)
			assert.Equal(t, name == "hang", time.Since(began) == 30*time.Second)
		})
	}
}

// ids writes candidates shortly.
func ids(all []decision.Candidate) (s string) {
	for _, c := range all {
		s += c.HeuristicID
	}
	return s
}

func TestRank(t *testing.T) {
	c := func(id string, similarity, confidence float64) decision.Candidate {
		return decision.Candidate{HeuristicID: id, Similarity: similarity, Confidence: confidence}
	}
	for name, tt := range map[string]struct {
		candidates []decision.Candidate
		closeness  float64
		want       string
	}{
		"similarity comes first, though products say otherwise": {[]decision.Candidate{c("a", 0.6, 0.7),
			c("b", 0.9, 0.3)}, 0.05, "ba"},
		"close ones by confidence": {[]decision.Candidate{c("a", 0.9, 0.3),
			c("b", 0.87, 0.7), c("c", 0.8, 0.9)}, 0.05, "bac"},
		"close to the first of them, and not in a chain": {[]decision.Candidate{c("a", 0.9, 0.1),
			c("b", 0.86, 0.2), c("c", 0.82, 0.3)}, 0.05, "bac"},
		"equals keep their order": {[]decision.Candidate{c("a", 0.9, 0.5),
			c("b", 0.9, 0.5), c("c", 0.9, 0.5)}, 0, "abc"},
		"of the same similarity, by confidence": {[]decision.Candidate{c("a", 0.9, 0.4),
			c("b", 0.9, 0.5)}, 0, "ba"},
		"none": {nil, 0.05, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(tt.candidates)
			assert.Equal(t, tt.want, ids(decision.Rank(tt.candidates, tt.closeness)))
			assert.Equal(t, before, fmt.Sprint(tt.candidates), "what is given stays as it is")
		})
	}
}
