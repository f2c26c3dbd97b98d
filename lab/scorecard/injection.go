package scorecard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/thoughts"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/prompt/prompttest"
)

const otherForm = "fields in which a text changes the form of a prompt"

func injectionLine() card.Line {
	return card.Line{
		Name: "S10",
		Promise: "No text in a field changes the form of a prompt. Its meaning stays: a sentence " +
			"that asks for something still asks for it.",
		Attack: "1,000 hostile texts in each of 10 fields: of decisions, predictions, extractions " +
			"and plans. They carry line breaks, headings, fences, tags, chat " +
			"markers, JSON and invisible characters. The long form joins them at random.",
		Bars:  card.None(otherForm),
		Short: card.Form{Work: 10_000, Faults: 10_000, Budget: 10 * time.Minute},
		Long:  card.Form{Work: 50_000, Faults: 50_000, Budget: time.Hour},
		Run:   neutral(rendered),
		Controls: []card.Control{{Name: "fmt.Sprintf with the templates of the design",
			Run: neutral(formatted)}},
	}
}

// A renderer makes the prompts that have a text in one of the fields.
type renderer func(ctx context.Context, fields []string) string

const promptFields = 10

// neutral has prompttest try each hostile text in each field, in the long form several times with
// others behind it.
func neutral(render renderer) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, _ error) {
		r.Values = map[string]float64{otherForm: 0}
		hostile := slices.Collect(prompttest.Hostile())
		rng := s.Rand(0)
		for round := range card.Pick(s, 1, 6) {
			for field := range promptFields {
				got := prompttest.Neutral(1, func(_ int, value string) string {
					fields := slices.Repeat([]string{"a benign text"}, promptFields)
					if fields[field] = value; round > 0 && slices.Contains(hostile, value) {
						fields[field] += hostile[rng.IntN(len(hostile))]
					}
					r.Work++
					return render(ctx, fields)
				})
				kit.Check(ctx.Err())
				if got != nil {
					r.Values[otherForm]++
					r.Note("field %d: %.500s", field, got.Error())
				}
			}
		}
		r.Faults = r.Work
		return r, nil
	}
}

// rendered are all prompts that heed makes of the fields.
func rendered(ctx context.Context, f []string) string {
	var prompts []string
	answer := f[9]
	if spoken, _ := thoughts.Split(answer); strings.TrimSpace(spoken) == "" {
		answer = "said" // thoughts alone are not asked about
	}
	model := decision.LLMFunc(func(_ context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		prompts = append(prompts, r.System, r.Prompt)
		return decision.LLMResponse{Text: answer}, nil
	})
	d := kit.Must(decision.New(ctx, decision.Config{
		LLM: model, Store: &memstore.Store{}, Prediction: true, Withhold: new(float64),
		Goals: map[string][]string{"": {f[0], "another goal"}},
	}))
	res := kit.Must(d.Decide(ctx, decision.Request{
		EventID: "e", Source: named(f[1]), Text: f[2], Briefing: "## Rules",
		Candidates: []decision.Candidate{{HeuristicID: "h", Condition: f[3], Action: f[4]}},
	}))
	kit.Must(d.Extract(ctx, res.ResponseID, nil))
	plan := patterns.Plan{
		Similar: []patterns.Precedent{{Description: f[5], Strategy: patterns.PatternID(f[6]),
			Result: f[7]}},
		AntiPatterns: []patterns.Standing{{Pattern: patterns.Pattern{ID: "p", Content: "AVOID: " + f[8],
			Anti: true}}},
	}
	planned, _, _ := plan.Prompt()
	return strings.Join(append(prompts, planned), "\n")
}

// named returns a text as a request may have it for a name. Others are refused.
func named(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, string(utf8.RuneError)), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), evidence.MaxText)], "")
}

// formatted puts the fields where they belong, as they are.
func formatted(_ context.Context, f []string) string {
	return fmt.Sprintf("Current user goals:\n- %s\n\nEvent [%s]: %s\n\n1. Situation: \"%s\" → "+
		"Response: \"%s\"\n\n"+
		"## Similar tasks\n\n- %s with %s: %s\n- AVOID: %s\n\nResponse: %s\n", f[0], f[1], f[2], f[3],
		f[4], f[5], f[6], f[7], f[8], f[9])
}
