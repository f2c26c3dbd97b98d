package assistant

import (
	"context"
	"strings"
)

// A Briefing is what the prompt says beside the event: rules that two people approved, ways of working that have failed or
// proven good, and a note, in the way that was chosen for it.
type Briefing struct {
	Text  string
	Rules []string // the ids of the rules in it
	Used  *Used    // the note that fits the event; nil: none does
}

func (a *Assistant) brief(ctx context.Context, e Event) (b Briefing, err error) {
	rules, err := a.Feedback.Rules().Inject(ctx, Name, "", "")
	if err != nil {
		return b, err
	}
	b.Rules = rules.Rules
	parts := []string{rules.Section}
	switch e.Domain {
	case Changes:
		plan, err := a.Patterns.Plan(ctx, e.Text)
		if err != nil {
			return b, err
		}
		parts = append(parts, plan.Prompt())
	case Requests:
		if b.Used, err = a.use(ctx, e); err != nil {
			return b, err
		}
		if b.Used != nil {
			parts = append(parts, b.Used.text)
		}
	}
	b.Text = strings.Join(parts, "\n\n")
	return b, nil
}
