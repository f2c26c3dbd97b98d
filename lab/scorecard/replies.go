package scorecard

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/lab/internal/card"
)

const (
	recovered = "% of what can be read is read"
	accepted  = "numbers accepted that have to be refused"
	outside   = "numbers outside of [0, 1]"
)

func malformed() []card.Line {
	bars := []card.Bar{card.AtLeast(recovered, 98), card.AtMost(accepted, 0), card.AtMost(outside, 0)}
	return []card.Line{{
		Name:    "S9",
		Promise: "heed reads a model's prediction if it can be read, and never guesses.",
		Attack: "Replies with the faults that models make: prose, fences, thoughts, broken JSON, numbers that are none, fields that are there twice. The " +
			"long form puts a second wrapper around each that does not break off.",
		Short: card.Form{Bars: bars, Work: 1000, Faults: 500, Budget: 5 * time.Minute},
		Long:  card.Form{Bars: bars, Work: 5000, Faults: 2500, Budget: 30 * time.Minute},
		Run:   predicted(asked),
		Controls: []card.Control{
			{Name: "from the first brace to the last, and a clamp", Misses: []string{recovered, accepted}, Run: predicted(clamped)},
			{Name: "from the first brace to the last, as it stands", Misses: []string{outside}, Run: predicted(braces)},
		},
	}}
}

// outer are wrappers that may stand around any reply, wrapped or not.
var outer = []string{"%s", "\n\n  %s  \n\n", "Sure!\n\n%s", "%s\n\nThat is my estimate.", "## Answer\n\n%s\n\n---"}

// predicted has a reader read each reply.
func predicted(read func(ctx context.Context, reply string) (decision.Prediction, error)) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		r.Values = map[string]float64{accepted: 0, outside: 0}
		readable, correct := 0, 0
		for _, around := range card.Pick(s, outer[:1], outer) {
			for _, reply := range llmtest.Replies() {
				if reply.Exact && around != outer[0] {
					continue
				}
				got, err := read(ctx, fmt.Sprintf(around, reply.Text))
				if err != nil {
					return r, err
				}
				want := decision.Prediction{Success: 0.5, Confidence: 0.5}
				if reply.Success {
					want.Success = 0.9
				}
				if reply.Confidence {
					want.Confidence = 0.3
				}
				r.Work++
				if !(got.Success >= 0 && got.Success <= 1 && got.Confidence >= 0 && got.Confidence <= 1) {
					r.Values[outside]++
				}
				if reply.Success && reply.Confidence {
					if readable++; got == want {
						correct++
					} else {
						r.Note("%s is not read: %v", reply.Name, got)
					}
					continue
				}
				r.Faults++
				if !reply.Success && got.Success != 0.5 || !reply.Confidence && got.Confidence != 0.5 {
					r.Values[accepted]++
					r.Note("%s is read as %v: %.200s", reply.Name, got, reply.Text)
				}
			}
		}
		r.Values[recovered] = 100 * float64(correct) / float64(readable)
		return r, ctx.Err()
	}
}

// asked has a decider ask a model that says this. Half is what it knows where the model says nothing that can be read.
func asked(ctx context.Context, reply string) (decision.Prediction, error) {
	calls := 0
	d, err := decision.New(ctx, decision.Config{
		Prediction: decision.SecondCall, Ceiling: 1,
		LLM: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			if calls++; calls == 1 {
				return decision.LLMResponse{Text: "Do it."}, nil
			}
			return decision.LLMResponse{Text: reply}, nil
		}),
	})
	if err != nil {
		return decision.Prediction{}, err
	}
	res, err := d.Decide(ctx, decision.Request{EventID: "e", Text: "What now?"})
	switch {
	case err != nil:
		return decision.Prediction{}, err
	case res.Prediction == nil || calls != 2:
		return decision.Prediction{}, fmt.Errorf("the model was asked %d times, and predicts %v", calls, res.Prediction)
	}
	return *res.Prediction, nil
}

// clamped is how many programs read such replies.
func clamped(ctx context.Context, reply string) (decision.Prediction, error) {
	p, err := braces(ctx, reply)
	return decision.Prediction{Success: min(max(p.Success, 0), 1), Confidence: min(max(p.Confidence, 0), 1)}, err
}

// braces does not look at what the numbers are.
func braces(_ context.Context, reply string) (decision.Prediction, error) {
	p := decision.Prediction{Success: 0.5, Confidence: 0.5}
	if json.Unmarshal([]byte(object.FindString(reply)), &p) != nil {
		p = decision.Prediction{Success: 0.5, Confidence: 0.5}
	}
	return p, nil
}

var object = regexp.MustCompile(`(?s)\{.*\}`)
