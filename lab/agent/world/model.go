package world

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/lab/agent/assistant"
	"github.com/heedhq/heed/loop"
)

// Model is the scripted model. Its knowledge is a model's: its prompt, and what it read elsewhere.
func (w *World) Model() decision.LLM {
	return decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		text, err := w.reply(&r)
		return decision.LLMResponse{
			Text: text, Model: "scripted", InputTokens: (len(r.System) + len(r.Prompt)) / 4,
			OutputTokens: len(text) / 4,
		}, errors.Join(err, ctx.Err())
	})
}

func (w *World) reply(r *decision.LLMRequest) (string, error) {
	switch {
	case strings.Contains(r.Prompt, `{"condition"`):
		return w.rule(r.Prompt)
	case r.JSON:
		return fmt.Sprintf(`{"success": %v, "confidence": %v}`, confident, confident), nil
	case r.System == assistant.SubagentPrompt:
		_, note, _ := strings.Cut(r.Prompt, assistant.NoteMark)
		return "It says: " + note[:min(len(note), 120)], nil
	}
	event, rest, _ := strings.Cut(r.Prompt, "\n\n")
	k := kindOf(event)
	switch {
	case k == nil:
		return "I have seen it.", nil
	case k.Domain == assistant.Changes:
		return w.decompose(r.System, event), nil
	}
	text := w.choose(k, r, event, rest).Text
	for _, m := range k.Mistakes {
		slip := slips
		if strings.Contains(r.System, m.Word) {
			slip = slipsWarned
		}
		if w.draw("slip", m.Name, event) > slip {
			text += " " + m.Fixed
		}
	}
	return pick(w.draw("opener", event), "", "Seen. ", "On it: ") + text, nil
}

// choose takes an answer that the prompt shows, or one of the model's own.
func (w *World) choose(k *Kind, r *decision.LLMRequest, event, shown string) Answer {
	if w.draw("adopts", event) < adopts {
		for _, a := range k.Answers {
			if strings.Contains(strings.ToLower(shown), strings.ToLower(a.Key)) {
				return a
			}
		}
	}
	own := k.Own
	if k.Note != nil {
		own = truth.Ways[k.Note.Sort][wayOf(r.System, k.Note)]
	}
	last := len(k.Answers) - 1
	if w.draw("own", event) > own {
		return k.Answers[last]
	}
	return w.best(k, loop.Event{At: w.now})
}

// wayOf returns in which way the prompt has a note.
func wayOf(system string, n *Note) string {
	before, _, found := strings.Cut(system, n.Key)
	if !found {
		return "deferred"
	}
	way, last := "main_context", -1
	for name, heading := range map[string]string{
		"main_context": assistant.NotesHeading, "subagent": assistant.AdviceHeading,
		"background_subagent": assistant.EarlierHeading,
	} {
		if at := strings.LastIndex(before, heading); at > last {
			way, last = name, at
		}
	}
	return way
}

// decompose plans a task, by the model's habits and the prompt's advice on them.
func (w *World) decompose(system, event string) string {
	_, warnings, _ := strings.Cut(system, "## Anti-Patterns to Avoid")
	praise, _, _ := strings.Cut(system, "## Anti-Patterns to Avoid")
	_, praise, _ = strings.Cut(praise, "## Proven Patterns")
	weights := make([]float64, len(truth.Decompositions))
	var total float64
	for i, d := range truth.Decompositions {
		weights[i] = d.Own
		if strings.Contains(warnings, d.Name) {
			weights[i] *= 1 - heeds
		}
		if strings.Contains(praise, d.Name) {
			weights[i] *= follows
		}
		total += weights[i]
	}
	left := w.draw("decomposition", event) * total
	for i, d := range truth.Decompositions {
		if left -= weights[i]; left < 0 {
			return d.Text
		}
	}
	return truth.Decompositions[0].Text
}

// rule writes the heuristic behind an answer that was praised.
func (w *World) rule(prompt string) (string, error) {
	situation, response, _ := strings.Cut(prompt, "\nResponse: ")
	response, _, _ = strings.Cut(response, "\n")
	message, err := strconv.Unquote(response)
	k := kindOf(situation)
	if err != nil || k == nil {
		return "I can't say.", err
	}
	for _, opener := range []string{"Seen. ", "On it: "} {
		message = strings.TrimPrefix(message, opener)
	}
	condition := strings.NewReplacer("{host}", "some host", "{n}",
		"some number of").Replace(k.Texts[0]) + " It was seen before, and is likely to come again."
	return fmt.Sprintf(`{"condition": %s, "action": {"type": "suggest", "message": %s}}`, strconv.Quote(condition), strconv.Quote(message)), nil
}
