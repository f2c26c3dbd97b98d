package decision

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/heedhq/heed/prompt"
)

// system returns the system prompt, with the briefing and the goals behind it.
func (c *Config) system(r *Request, goals []string) string {
	briefing := strings.TrimSpace(r.Briefing)
	if briefing != "" {
		briefing = "\n\n" + briefing
	}
	own := cmp.Or(r.System, c.System)
	return strings.TrimSpace(own) + briefing + bullets(goalsHeading, goals)
}

// bullets returns goals as a list under a heading, and "" without goals.
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

// ask returns what the model is asked about an event, with the candidates in their order.
func (c *Config) ask(r *Request, shown []Candidate) string {
	var after []string
	if len(shown) > 0 {
		after = append(after, c.listed(shown))
	}
	if !c.Bare {
		after = append(after, question)
	}
	return strings.Join(append([]string{c.happened(r, len(after) == 0)}, after...), "\n\n")
}

// happened returns the beginning of the prompt: what happened. alone reports that this is the whole
// prompt.
func (c *Config) happened(r *Request, alone bool) string {
	code, fenced := r.Code, prompt.Code(r.Text, c.mostText())
	// what the model reads, because r.Text may have megabytes
	if text := unfenced(fenced); c.Bare && prompt.Check(text) != nil {
		code = code || !alone || plain(text).has(plain(seenHeading))
	}
	switch {
	case !c.Bare && code:
		return c.heading(r.Source) + "\n" + fenced
	case !c.Bare:
		return c.heading(r.Source) + " " + prompt.Line(r.Text, c.mostText())
	case code:
		return fenced
	default:
		return unfenced(fenced)
	}
}

// unfenced returns the text inside a fence.
func unfenced(block string) string {
	_, text, _ := strings.Cut(block, "\n")
	return text[:max(strings.LastIndexByte(text, '\n'), 0)]
}

// listed returns the candidates that the prompt shows.
func (c *Config) listed(shown []Candidate) string {
	var b strings.Builder
	b.WriteString(seenHeading)
	for i, candidate := range shown {
		b.WriteString("\n" + strconv.Itoa(i+1) + ". Situation: " + prompt.Quote(candidate.Condition,
			0) + " → Response:")
		if candidate.Code {
			b.WriteString("\n" + prompt.Code(candidate.Action, c.mostText()))
		} else {
			b.WriteString(" " + prompt.Quote(candidate.Action, 0))
		}
	}
	return b.String()
}

// heading returns the heading before the text of an event.
func (c *Config) heading(source string) string {
	heading := c.tuning.Event
	if source != "" {
		heading += " [" + name(source) + "]"
	}
	return strings.TrimSuffix(heading, ":") + ":"
}

// name returns a text that can be written in square brackets.
func name(text string) string {
	return strings.NewReplacer("[", "(", "]", ")").Replace(prompt.Line(text, 0))
}

// predict returns the prompt that asks how probable it is that an answer succeeds.
func (c *Config) predict(text, answer string, goals []string) string {
	return fill(predicting, text, answer, c.mostText()) + bullets(successHeading, goals)
}

// fill replaces {situation} and {response} by JSON strings, both at once, so that no text can name
// the other.
func fill(template, situation, response string, most int) string {
	return strings.NewReplacer("{situation}", prompt.Quote(situation, most), "{response}",
		prompt.Quote(response, most)).Replace(template)
}
