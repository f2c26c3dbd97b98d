package decision

import (
	"strconv"
	"strings"

	"github.com/heedhq/heed/prompt"
)

// system returns the system prompt, with the briefing and the goals behind it.
func (c *Config) system(briefing string, goals []string) string {
	if briefing = strings.TrimSpace(briefing); briefing != "" {
		briefing = "\n\n" + briefing
	}
	return strings.TrimSpace(c.Persona+"\n\n"+c.Prompts.System) + briefing + bullets(c.Prompts.GoalsHeading, goals)
}

// bullets returns goals as a list under a heading, and nothing where there are none.
func bullets(heading string, goals []string) string {
	if len(goals) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n" + heading)
	for _, goal := range goals {
		b.WriteString("\n- " + prompt.Line(goal, 0))
	}
	return b.String()
}

// ask returns what the model is asked about an event, beside the candidates in the order in which they stand.
func (c *Config) ask(r *Request, shown []Candidate) string {
	var b strings.Builder
	if b.WriteString(c.heading(r.Source)); r.Code {
		b.WriteString("\n" + prompt.Code(r.Text, c.MaxText) + "\n\n")
	} else {
		b.WriteString(" " + prompt.Line(r.Text, c.MaxText) + "\n\n")
	}
	if len(shown) > 0 {
		b.WriteString(c.Prompts.Candidates + "\n")
		for i, candidate := range shown {
			b.WriteString(strconv.Itoa(i+1) + ". Situation: " + prompt.Quote(candidate.Condition, 0) + " → Response:")
			if candidate.Code {
				b.WriteString("\n" + prompt.Code(candidate.Action, c.MaxText) + "\n")
			} else {
				b.WriteString(" " + prompt.Quote(candidate.Action, 0) + "\n")
			}
		}
		b.WriteString("\n")
	}
	b.WriteString(c.Prompts.Question)
	if c.Prediction == SameCall {
		b.WriteString("\n\n" + c.Prompts.Ending)
	}
	return b.String()
}

// heading returns what stands before the text of an event.
func (c *Config) heading(source string) string {
	heading := c.Prompts.Event
	if source != "" {
		heading += " [" + name(source) + "]"
	}
	return strings.TrimSuffix(heading, ":") + ":"
}

// name returns a text that can stand in square brackets.
func name(text string) string {
	return strings.NewReplacer("[", "(", "]", ")").Replace(prompt.Line(text, 0))
}

// predict returns the prompt that asks how probable it is that an answer succeeds.
func (c *Config) predict(text, answer string, goals []string) string {
	return fill(c.Prompts.Prediction, text, answer, c.MaxText) + bullets(c.Prompts.SuccessHeading, goals)
}

// fill replaces {situation} and {response} by JSON strings, both at once, so that no text can name the other.
func fill(template, situation, response string, most int) string {
	return strings.NewReplacer("{situation}", prompt.Quote(situation, most), "{response}", prompt.Quote(response, most)).Replace(template)
}
