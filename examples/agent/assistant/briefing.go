package assistant

import (
	"context"
	"strings"

	"github.com/heedhq/heed/feedback"
)

// A Briefing is what the prompt says beside the event: rules that two people approved, ways of working that have failed or
// proven good, and a note, in the way that was chosen for it.
type Briefing struct {
	Text  string
	Rules []string // the ids of the rules in it
	Used  *Used    // the note that fits the event; nil: none does
}

func (a *Assistant) brief(ctx context.Context, account *Account) (b Briefing, err error) {
	e := account.Event
	if e.Domain == alerts {
		return b, nil
	}
	var parts []string
	rules, err := a.Feedback.Rules().Inject(ctx, feedback.Request{Agent: Name})
	if err != nil {
		return b, err
	}
	b.Rules = rules.Rules
	parts = append(parts, rules.Section)
	if e.Domain == Changes {
		plan, err := a.Patterns.PlanContext(ctx, e.Text)
		if err != nil {
			return b, err
		}
		parts = append(parts, plan.Prompt())
	} else {
		note, err := a.use(ctx, account)
		if err != nil {
			return b, err
		}
		if b.Used = note; note != nil {
			parts = append(parts, note.text)
		}
	}
	b.Text = strings.Join(parts, "\n\n")
	return b, nil
}
