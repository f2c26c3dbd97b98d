package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/strategy"
)

// How an answer is explained. The account is read from the answer's record, and from what the parts
// believe now. Its tree has the same in sentences, for people: the command and the pages show it.

// An Account describes why an answer was given, and what became of it. It is immutable.
//
// Beliefs in it are as they are when it is read, and all about the answer is as it was recorded. So
// a heuristic may be trusted less by now than the confidence with which it answered.
//
// In JSON it has the fields that the HTTP API shows of an answer.
type Account struct {
	// ID names the answer, and its event.
	ID string `json:"id"`
	// Path is how it was answered: by a heuristic or by the model.
	Path decision.Path `json:"path"`
	// Text is the answer as it was stored, which Redact may have changed.
	Text string    `json:"text"`
	At   time.Time `json:"at"`
	// Cut reports that the model's text ends too early, so it was compared with no heuristic.
	Cut bool `json:"-"`
	// Heuristic is the heuristic that answered, or "" if the model did.
	Heuristic string `json:"heuristic,omitempty"`
	// Needed is the confidence that a heuristic needed to answer, and Believed the confidence that
	// this one had then.
	Needed   float64 `json:"needed"`
	Believed float64 `json:"believed"`
	// Trust is how far the heuristic is trusted at present, or nil without one.
	Trust *learning.Explanation `json:"-"`
	// Choice is the choice of the arm, or nil without one.
	Choice *strategy.Choice `json:"-"`
	// Undelivered reports that the person has not seen the answer, so silence does not count.
	Undelivered bool `json:"-"`
	// Control is nil, or how the answer counts in the control group: it was given without learning.
	Control *answer.Side `json:"-"`
	// Spare reports that a fallback answered, and not the arm's model. Unusable reports that the
	// arm's model answered first, and that its answer was of no use.
	Spare    bool `json:"-"`
	Unusable bool `json:"-"`
	// Undid are the answers that the event's text took back. If there are any, this answer earns no
	// credit.
	Undid []string `json:"-"`
	// Item is what is believed of the arms now, nil before the first outcome. Outcomes are the latest
	// ones of the item behind that, of all its answers.
	Item     *strategy.Standing      `json:"-"`
	Outcomes []strategy.ChoiceRecord `json:"-"`
	// Rules and Notes are what the prompt had of each.
	Rules []feedback.Rule `json:"-"`
	Notes []string        `json:"notes,omitempty"`
	// Ways are the ways of working that the prompt recommended, Warnings those that it warned of, and
	// Followed those that the answer followed. Contents has the texts of all that are still kept.
	Ways     []string          `json:"ways,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Followed []string          `json:"-"`
	Contents map[string]string `json:"-"`
	// Shown are the heuristics that the prompt had. Compared are those that it withheld, because an
	// answer of a model that has not seen a heuristic is evidence about it.
	Shown    []string            `json:"shown,omitempty"`
	Compared []answer.Comparison `json:"-"`
	// Told are heuristics that were withheld, but that the prompt or the conversation contains all
	// the same.
	Told []string `json:"-"`
	// Overruled are trusted heuristics that did not answer, each with the id of the active rule that
	// its answer would have broken, a colon, and how.
	Overruled map[string]string `json:"overruled,omitempty"`
	// Worth is what became of the answer, in [-1, 1], Channel how that is known, and Known whether
	// anything is. Channels with equal parts in the worth are joined by commas.
	Worth   float64 `json:"worth"`
	Channel string  `json:"channel,omitempty"`
	Known   bool    `json:"known"`
	// Statements are everything that was stated or observed about the answer, each with its source.
	// What was withdrawn is left out, and so is silence if a source stated something before its end.
	Statements []Statement `json:"-"`
}

// A Statement is one statement about an answer: a reaction, an outcome, a correction, an undo or
// silence.
type Statement struct {
	// Channel is how the statement is known, such as "user_explicit" or "outcome".
	Channel string
	// Source made the statement, and Kind is what it is, for example a person. Both may be empty.
	Source string
	Kind   answer.SourceKind
	At     time.Time
	// Value is how good the answer was, in [-1, 1].
	Value float64
	// Confidence is how much of it counts for the arm, in [0, 1]: the share in the worth, times the
	// trust in it. 0 means that another statement sets it aside.
	Confidence float64
}

// Explain returns why an answer was given. An unknown answer is [ErrNoAnswer].
func (a *Agent) Explain(ctx context.Context, id string) (Account, error) {
	account, err := a.explain(ctx, id)
	return account, wrap("explain", err)
}

// explain reads the record first and then what it names in the parts. A part may be missing if the
// account is read from a store alone: then its share of the account is empty.
func (a *Agent) explain(ctx context.Context, id string) (Account, error) {
	r, err := a.read(ctx, id)
	if err != nil {
		return Account{}, err
	}
	account := Account{
		ID: r.ID, Path: decision.Path(r.Reply.Path), Text: r.Reply.Text, Cut: r.Reply.Cut, At: r.At,
		Heuristic: r.Reply.Heuristic, Needed: r.Reply.Threshold, Believed: r.Reply.Believed,
		Undelivered: r.Reply.Undelivered, Spare: r.Reply.Spare, Unusable: r.Reply.Unusable,
		Undid: r.Undoes, Followed: r.Reply.Followed, Statements: statementsOf(&r),
	}
	if t := r.Reply.Side; t != nil && t.Control {
		account.Control = t
	}
	var rules []string
	if p := r.Prompt; p != nil {
		rules = p.Rules
		account.Notes, account.Ways, account.Warnings = p.Notes, p.Ways, p.Warnings
		account.Shown = p.Shown
		account.Compared, account.Overruled, account.Told = p.Compared, p.Overruled, p.Told
	}
	if r.Choice != nil {
		choice := strategy.ChoiceOf(r.Choice)
		account.Choice = &choice
	}
	account.Worth, account.Channel, account.Known = answers.WorthOf(&r)
	if account.Heuristic != "" && a.learning != nil {
		trust, err := a.learning.Explain(ctx, account.Heuristic)
		if err == nil {
			account.Trust = &trust
		} else if !errors.Is(err, heed.ErrNotFound) {
			return Account{}, err
		}
	}
	if account.Contents, err = a.contents(ctx, &account); err != nil {
		return Account{}, err
	}
	if a.feedback == nil {
		rules = nil
	}
	for _, id := range rules {
		rule, err := a.feedback.Rules().Rule(ctx, id)
		if err != nil {
			return Account{}, err
		}
		account.Rules = append(account.Rules, rule)
	}
	if a.learner != nil && r.Choice != nil {
		err = account.believed(ctx, a.learner, r.Choice)
	}
	return account, err
}

// believed reads what is believed of the arms for the item of a choice, and the outcomes behind
// that.
func (a *Account) believed(ctx context.Context, l *strategy.Learner, c *answer.Choice) error {
	for r, err := range l.History(ctx, strategy.ChoiceFilter{
		Evidence: true, Item: c.Item, Category: c.Category, Context: c.Context, Limit: latest,
	}) {
		if err != nil {
			return err
		}
		a.Outcomes = append(a.Outcomes, r)
	}
	q := strategy.Query{Item: c.Item, Category: c.Category, Context: c.Context}
	for d, err := range l.Distributions(ctx, q) {
		if err != nil {
			return err
		}
		if item, ok := d.Item(c.Item); ok {
			a.Item = &item
		}
	}
	return nil
}

// statementsOf returns every statement about an answer. Withdrawn statements are left out, and so
// is silence if a source stated something before the silence was over. The shares are those that
// the arm was credited with, because a person who was forgotten since changes the shares of the
// others only when the answer is credited again.
func statementsOf(r *answer.Answer) (all []Statement) {
	var silence []Statement
	for _, p := range append(answers.Parts(r), answers.SetAside(r)...) {
		switch {
		case r.Reply.Spare || len(r.Undoes) > 0:
			p.Share = 0
		case r.Choice != nil && p.How != answers.Silence:
			p.Share = credited(r, &p) // it is another share if somebody was forgotten since
		}
		s := Statement{
			Channel: p.Channel, Source: p.Source, Kind: p.Kind, At: p.At, Value: p.Value,
			Confidence: p.Share * p.Trust,
		}
		if p.How == answers.Silence {
			s.Source, s.Kind = "", ""
			silence = append(silence, s)
			continue
		}
		all = append(all, s)
	}
	for _, s := range silence {
		if !slices.ContainsFunc(all, func(o Statement) bool { return !o.At.After(s.At) }) {
			all = append(all, s)
		}
	}
	return all
}

// credited returns the share that the arm learned of a statement, or 0.
func credited(r *answer.Answer, p *answers.ArmPart) float64 {
	for _, c := range r.Choice.Credits {
		if c.Of == p.Of {
			return c.Share
		}
	}
	return 0
}

// contents returns the texts of the ways of working of an answer. A way of working that was removed
// since has no text.
func (a *Agent) contents(ctx context.Context, r *Account) (map[string]string, error) {
	contents := make(map[string]string)
	for _, id := range slices.Concat(r.Ways, r.Warnings, r.Followed) {
		if a.patterns == nil || contents[id] != "" {
			continue
		}
		s, err := a.patterns.Standing(ctx, patterns.PatternID(id))
		switch {
		case err == nil:
			contents[id] = s.Pattern.Content
		case !errors.Is(err, heed.ErrNotFound):
			return nil, err
		}
	}
	return contents, nil
}

// named returns the id of something that the answer rests on, with its text if that is a way of
// working.
func (a *Account) named(id string) string {
	if content := a.Contents[id]; content != "" {
		return id + ": " + prompt.Line(content, shown)
	}
	return id
}

// A Branch is a statement with what it rests on. Branches are a tree of sentences, which the
// command prints and the pages nest.
type Branch struct {
	Text string   `json:"text"`
	On   []Branch `json:"on,omitempty"`
}

// write writes a branch as lines. first is what its own line begins with, and rest what the lines
// below begin with.
func (b Branch) write(w *strings.Builder, first, rest string) {
	w.WriteString(first + b.Text + "\n")
	for i, on := range b.On {
		if i == len(b.On)-1 {
			on.write(w, rest+"└─ ", rest+"   ")
		} else {
			on.write(w, rest+"├─ ", rest+"│  ")
		}
	}
}

func (b *Branch) add(text string, on ...Branch) { b.On = append(b.On, Branch{text, on}) }

// String returns the account's tree as text. The zero Account gives "".
func (a Account) String() string {
	if a.ID == "" {
		return ""
	}
	var w strings.Builder
	a.Tree().write(&w, "", "")
	return w.String()
}

// bar returns how a confidence is shown next to the one that was needed: it is rounded down, so
// that it never seems to reach it.
func bar(confidence float64) float64 { return math.Floor(confidence*100+1e-9) / 100 }

const (
	day    = "2006-01-02 15:04:05"
	latest = 5   // observations and outcomes in a tree
	shown  = 100 // runes of a text in a tree
)

// Tree lists the evidence for the answer, down to the latest observations. Each branch is a
// sentence for somebody who does not know heed.
func (a Account) Tree() Branch {
	root := Branch{Text: fmt.Sprintf("answer %s of %s: %s", a.ID, a.At.UTC().Format(day),
		prompt.Line(a.Text, shown))}
	if a.Cut {
		root.add("the model's text was cut off, so it was compared with no heuristic")
	}
	if a.Undelivered {
		root.add("it was not delivered, so silence about it does not count")
	}
	if a.Heuristic != "" {
		root.On = append(root.On, a.trust())
	} else {
		root.add("the model answered")
	}
	if a.Control != nil {
		root.add("it is of the control group, so it did not use what was learned")
	}
	if a.Choice != nil {
		root.On = append(root.On, a.arm())
	}
	for _, rule := range a.Rules {
		root.On = append(root.On, ruled(&rule))
	}
	for _, of := range [...]struct {
		what string
		ids  []string
	}{
		{"the prompt had the note ", a.Notes},
		{"the prompt recommended the way of working ", a.Ways},
		{"the prompt warned of the way of working ", a.Warnings},
		{"the answer followed the way of working ", a.Followed},
		{"the prompt showed the heuristic ", a.Shown},
	} {
		for _, id := range of.ids {
			root.add(of.what + a.named(id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.Overruled)) {
		root.add(fmt.Sprintf("the heuristic %s was withheld because of the rule %s", id,
			a.Overruled[id]))
	}
	for _, c := range a.Compared {
		does := "says something else"
		if c.Agrees {
			does = "says the same"
		}
		root.add(fmt.Sprintf("the prompt withheld the heuristic %s, which %s: similarity %.2f",
			c.HeuristicID, does, c.Similarity))
	}
	for _, id := range a.Told {
		root.add(fmt.Sprintf(
			"the prompt withheld the heuristic %s, but the prompt or the conversation so far says the "+
				"same: so the answer says nothing about it", id))
	}
	root.On = append(root.On, a.became())
	return root
}

// became describes what became of the answer. A statement that has no part in the worth is listed
// with the reason.
func (a *Account) became() Branch {
	b := Branch{Text: fmt.Sprintf("it was worth %+.2f, in [-1, 1], known by: %s", a.Worth,
		text.ChannelsWords(a.Channel))}
	switch {
	case len(a.Undid) > 0:
		b.Text = "it earns no credit: it took back " + prompt.Line(strings.Join(a.Undid, ", "), shown)
	case !a.Known:
		b.Text = "what it was worth is not known yet"
	}
	for _, h := range a.Statements {
		counts := fmt.Sprintf("counts %.2f", h.Confidence)
		switch {
		case len(a.Undid) > 0:
			counts = "does not count"
		case a.Spare && h.Confidence == 0:
			counts = "does not count for the arm"
		case h.Confidence == 0:
			counts = "does not count beside the others"
		}
		b.add(fmt.Sprintf("%s %s: %+.2f, %s", fromWhom(h.Channel, h.Kind, h.Source),
			h.At.UTC().Format(day), h.Value, counts))
	}
	return b
}

// fromWhom describes how something is known, and from which source.
func fromWhom(channel string, kind answer.SourceKind, source string) string {
	if source != "" {
		source = prompt.Line(source, shown)
	}
	return text.StatementWords(channel, string(kind), source)
}

// trust describes why the heuristic was trusted. The confidence of then and of now are both shown,
// because the answer was given by the former.
func (a *Account) trust() Branch {
	b := Branch{Text: fmt.Sprintf(
		"the heuristic %s answered, with a confidence of %.2f where %.2f was needed", a.Heuristic,
		bar(a.Believed), bar(a.Needed))}
	t := a.Trust
	if t == nil {
		b.add("it was deleted since")
		return b
	}
	now := Branch{Text: fmt.Sprintf("its confidence is %.2f now, after %s: %d ended well, %d badly",
		bar(t.Standing.Confidence), counted(t.Standing.Fires, "answer"), t.Standing.Successes,
		t.Standing.Failures)}
	if t.Standing.Heuristic.Since.After(a.At) {
		now.add("its text has changed since: the confidence counts the answers since")
	}
	now.add(fmt.Sprintf("at the start it counted as if %.2f answers had ended well and %.2f badly",
		t.Prior.Alpha, t.Prior.Beta))
	for _, s := range t.Shares {
		limited := fair.Limited(s.For+s.Against, s.CountsFor, s.CountsAgainst, t.People)
		if limited != "" {
			limited = ", of which counts: " + limited
		}
		now.add(fmt.Sprintf("%s: %.2f for, %.2f against, %s%s",
			cmp.Or(fromWhom(s.Channel, s.Kind, s.Source), "what was seen or said"), s.For, s.Against,
			counted(s.Count, "signal"), limited))
	}
	for _, limit := range t.Limits {
		now.add("limited by: " + limit)
	}
	for _, o := range t.History[:min(len(t.History), latest)] {
		now.add(fmt.Sprintf("observed %s: reward %.2f, weight %.2f, known by: %s",
			o.At.UTC().Format(day), o.Reward, o.Weight,
			cmp.Or(fromWhom(o.Channel, "", o.Source), "a judgement")))
	}
	b.On = append(b.On, now)
	return b
}

// arm describes why the arm was chosen. If the session has had the arm for longer, the draws are
// the draws of the first choice.
func (a *Account) arm() Branch {
	c := a.Choice
	what := cmp.Or(c.Item, "all items of "+cmp.Or(c.Category, "its kind"))
	b := Branch{Text: fmt.Sprintf("the arm %s was chosen for %s", c.Arm, what)}
	if a.Unusable {
		b.add("its model gave no usable answer, which counts against it")
	}
	if a.Spare {
		b.add("a fallback answered in place of its model, so the answer does not count for the arm")
	}
	if a.At.Sub(c.At) >= time.Second {
		b.add(fmt.Sprintf("the session %s has had it since %s, when the arms drew",
			prompt.Line(c.Session, shown), c.At.UTC().Format(day)))
	}
	for i, d := range c.Record().Draws {
		if i == 0 {
			b.add("each arm drew by chance, and the highest draw was chosen")
		}
		mean := cmp.Or(d.Mean, d.Belief.Mean()) // of the linear level, if it drew
		b.add(fmt.Sprintf("%s: drew %.2f, expected %.2f", d.Arm, d.Sample, mean+d.Bonus))
	}
	if a.Item != nil {
		for _, arm := range a.Item.Arms {
			b.add(fmt.Sprintf("%s is worth %.2f now, from %.2f to %.2f after %s", arm.Arm, arm.Mean,
				arm.Low, arm.High, counted(arm.Outcomes, "report")))
		}
	}
	if len(a.Outcomes) > 0 {
		all := Branch{Text: "the latest outcomes for " + what + ", of all its answers"}
		for _, r := range a.Outcomes {
			o := r.Result
			all.add(fmt.Sprintf("observed %s: %s was worth %+.2f, known by: %s",
				o.At.UTC().Format(day), r.Choice.Arm, o.Value, text.ChannelsWords(o.Channel)))
		}
		b.On = append(b.On, all)
	}
	return b
}

// counted writes a number of things.
func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ruled describes a rule with who approved it.
func ruled(r *feedback.Rule) Branch {
	b := Branch{Text: fmt.Sprintf("the prompt had the rule %q", r.Text)}
	for _, approval := range r.Approvals {
		b.add(fmt.Sprintf("approved by %s on %s: %s", approval.Actor, approval.At.UTC().Format(day),
			prompt.Line(approval.Reason, shown)))
	}
	return b
}
