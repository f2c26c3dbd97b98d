package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/strategy"
)

// An Account says why an answer was given, and what became of it. It is immutable.
type Account struct {
	ID        string
	Path      decision.Path
	Text      string
	At        time.Time
	Heuristic string                // that answered; "" if the model did
	Needed    float64               // the confidence that it took to answer
	Believed  float64               // the confidence that the heuristic had then
	Trust     *learning.Explanation // of the heuristic, as of now
	Choice    *strategy.Choice      // of the arm
	Item      *strategy.ItemReport  // what is believed of the arms now
	Rules     []feedback.Rule       // that the prompt had
	Notes     []string              // likewise
	Shown     []string              // the heuristics that the prompt had
	// Worth is what became of the answer, in [-1, 1], Channel how that is known, and Known whether anything is.
	Worth   float64
	Channel string
	Known   bool
}

// Explain says why an answer was given. An unknown answer is [ErrNoAnswer].
func (a *Agent) Explain(ctx context.Context, id string) (Account, error) {
	account, err := a.explain(ctx, id)
	return account, wrap("explain", err)
}

func (a *Agent) explain(ctx context.Context, id string) (Account, error) {
	kept, err := a.read(ctx, id)
	if err != nil {
		return Account{}, err
	}
	r := &kept.Value
	account := Account{
		ID: r.ID, Path: r.Path, Text: r.Text, At: r.At, Heuristic: r.Heuristic, Needed: r.Threshold, Believed: r.Believed,
		Choice: r.Choice, Notes: r.Notes, Shown: r.Shown,
	}
	w, known := r.worth()
	account.Worth, account.Channel, account.Known = w.value, w.channel, known
	if r.Heuristic != "" && a.learning != nil {
		trust, err := a.learning.Explain(ctx, r.Heuristic)
		if err == nil {
			account.Trust = &trust
		} else if !errors.Is(err, heed.ErrNotFound) {
			return Account{}, err
		}
	}
	for _, id := range r.Rules {
		if a.feedback == nil {
			break
		}
		rule, err := a.feedback.Rules().Rule(ctx, id)
		if err != nil {
			return Account{}, err
		}
		account.Rules = append(account.Rules, rule)
	}
	if learner := a.Strategy(); learner != nil && r.Choice != nil {
		item, err := learner.Item(ctx, strategy.Query{Item: r.Choice.Item, Category: r.Choice.Category, Context: r.Choice.Context})
		if err == nil {
			account.Item = &item
		} else if !errors.Is(err, heed.ErrNotFound) {
			return Account{}, err
		}
	}
	return account, nil
}

// String returns the account as text for people.
func (a Account) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "answer %s\n", a.ID)
	if a.Heuristic != "" {
		fmt.Fprintf(&b, "  the heuristic %s answered: it had a confidence of %.2f, and %.2f was needed\n", a.Heuristic, a.Believed, a.Needed)
	} else {
		fmt.Fprintf(&b, "  the model answered\n")
	}
	if a.Choice != nil {
		fmt.Fprintf(&b, "  arm %s\n", a.Choice.Arm)
	}
	for _, rule := range a.Rules {
		fmt.Fprintf(&b, "  rule %q\n", rule.Text)
	}
	for _, note := range a.Notes {
		fmt.Fprintf(&b, "  note %s\n", note)
	}
	if a.Known {
		fmt.Fprintf(&b, "  worth %+.2f (%s)\n", a.Worth, a.Channel)
	}
	return b.String()
}
