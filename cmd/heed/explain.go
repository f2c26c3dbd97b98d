package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

type explainCommand struct {
	ID     string `arg:"" optional:""`
	Agent  string `placeholder:"NAME"`
	Prompt bool
	Path   string `enum:",heuristic,llm" default:"" placeholder:"PATH"`
	Limit  int    `default:"20"`
}

// The ends of the names of an agent's kinds of records. A module or learner that is used alone has
// answers as well, but only agents have lessons.
const (
	answerKind = ".answer"
	lessonKind = ".lesson"
)

// agents are the agents of a store. What opens one is its name.
var agents = tool[*view.Source]{"agent", "agent",
	func(ctx context.Context, st store.Store) (names []string, err error) {
		status, err := st.(*sqlstore.Store).Status(ctx)
		for _, kind := range status.Kinds {
			if name, ok := strings.CutSuffix(kind.Name, lessonKind); ok {
				names = append(names, name)
			}
		}
		return names, err
	},
	func(_ context.Context, st store.Store, name string, now func() time.Time) (*view.Source, error) {
		return &view.Source{Store: st, Name: name, Now: now}, nil
	}}

// A traceReport is a trace with the names that it has in JSON.
type traceReport struct {
	ResponseID string        `json:"response_id"`
	EventID    string        `json:"event_id"`
	Source     string        `json:"source,omitempty"`
	Domain     string        `json:"domain,omitempty"`
	Path       decision.Path `json:"path"`
	Text       string        `json:"text"`
	Response   string        `json:"response"`
	MatchedID  string        `json:"matched_id,omitempty"`
	CreditID   string        `json:"credit_id,omitempty"`
	Success    *float64      `json:"success,omitempty"`
	Confidence *float64      `json:"confidence,omitempty"`
	ShownIDs   []string      `json:"shown_ids,omitempty"`
	Compared   []comparison  `json:"compared,omitempty"`
	System     string        `json:"system,omitempty"`
	Prompt     string        `json:"prompt,omitempty"`
	Turns      int           `json:"turns,omitempty"` // of the conversation before it, not kept
	Cut        bool          `json:"cut,omitempty"`   // the answer ends too early
	Variant    string        `json:"variant,omitempty"`
	At         time.Time     `json:"at"`
}

// A comparison is a withheld candidate with how it compares to the model's answer.
type comparison struct {
	HeuristicID string  `json:"heuristic_id"`
	Similarity  float64 `json:"similarity"`
	Agrees      bool    `json:"agrees"`
}

func traceOf(t *decision.Trace) traceReport {
	r := traceReport{
		ResponseID: t.ResponseID, EventID: t.EventID, Source: t.Source, Domain: t.Domain, Path: t.Path,
		Text: t.Text, Response: t.Response, MatchedID: t.MatchedID,
		CreditID: t.CreditID, ShownIDs: t.ShownIDs, System: t.System, Prompt: t.Prompt,
		Turns: t.Turns, Cut: t.Cut, Variant: t.Variant, At: t.At,
	}
	if p := t.Prediction; p != nil {
		r.Success, r.Confidence = &p.Success, &p.Confidence
	}
	for _, c := range t.Compared {
		r.Compared = append(r.Compared, comparison(c))
	}
	return r
}

// An explained answer is one of an agent, of package decision, or of both.
type explained struct {
	*view.Explanation
	Trace *traceReport `json:"trace,omitempty"`
}

// Run explains an answer, or lists traces.
func (cmd *explainCommand) Run(s *session) error {
	if cmd.Limit < 1 {
		return errLimit
	}
	if cmd.ID == "" {
		return cmd.list(s)
	}
	return s.with(func(st *opened) error {
		d, err := decision.New(s.ctx, decision.Config{Store: st.store})
		if err != nil {
			return err
		}
		found, err := cmd.find(s, st, d)
		if err != nil {
			return damaged("answer", cmd.ID, err)
		}
		return s.answer(found, func(p *printer) {
			if found.Explanation != nil {
				printBranch(p, found.Tree, "", "")
			}
			if found.Explanation != nil && found.Trace != nil {
				p.printf("\n")
			}
			if found.Trace != nil {
				printTrace(p, found.Trace)
			}
		})
	})
}

func (cmd *explainCommand) list(s *session) error {
	var all []traceReport
	err := s.with(func(st *opened) error {
		d, err := decision.New(s.ctx, decision.Config{Store: st.store})
		if err != nil {
			return err
		}
		for t, err := range d.Traces(s.ctx) {
			if err != nil || len(all) == cmd.Limit {
				return err
			}
			if cmd.Path == "" || string(t.Path) == cmd.Path {
				all = append(all, traceOf(&t))
			}
		}
		return nil
	})
	return answerList(s, all, err, "traces", []string{"path", cmd.Path}, printTraces)
}

// find finds what an agent keeps of an answer, or else what package decision does.
func (cmd *explainCommand) find(s *session, st *opened, d *decision.Decider) (explained, error) {
	v, err := agents.one(s, st, cmd.Agent)
	if errors.Is(err, errNone) {
		t, err := trace(s, d, cmd.ID)
		return explained{Trace: ptr(traceOf(&t))}, err
	}
	if err != nil {
		return explained{}, err
	}
	e, err := v.Explain(s.ctx, cmd.ID)
	if errors.Is(err, loop.ErrNoAnswer) {
		id, none := begunBy(s, v, cmd.ID)
		if none != nil {
			t, unknown := trace(s, d, cmd.ID)
			if unknown != nil || !strings.HasPrefix(t.ResponseID, cmd.ID) {
				return explained{}, none
			}
			id = t.EventID
			if _, err := v.Answer(s.ctx, id); errors.Is(err, heed.ErrNotFound) {
				return explained{Trace: ptr(traceOf(&t))}, nil
			}
		}
		e, err = v.Explain(s.ctx, id)
	}
	if err != nil || !cmd.Prompt {
		return explained{Explanation: &e}, err
	}
	a, err := v.Answer(s.ctx, e.ID)
	if err != nil {
		return explained{}, err
	}
	t, err := d.Trace(s.ctx, a.Response)
	return explained{&e, ptr(traceOf(&t))}, err
}

func ptr[T any](value T) *T { return &value }

// mostBegun is how many answers are looked through for one whose id begins with a text.
const mostBegun = 10_000

// begunBy returns the only answer whose id begins with a text.
func begunBy(s *session, v *view.Source, text string) (string, error) {
	var ids []string
	q := store.Query{Limit: mostBegun}
	kind := answers.View(v.Name + answerKind)
	for r, err := range kind.Find(s.ctx, v.Store, q) {
		if errors.Is(err, heed.ErrDamaged) {
			break // heed doctor names it
		}
		if err != nil {
			return "", err
		}
		ids = append(ids, r.Value.ID)
	}
	slices.Sort(ids)
	id := func(id string) string { return id }
	return pick("answer", text, ids, id, "heed explain lists those that are kept, with their events")
}

// trace finds a trace by the id of its response or of its event, or by the start of one if no other
// begins so. If an event has several traces, it is the newest.
func trace(s *session, d *decision.Decider, id string) (decision.Trace, error) {
	t, err := d.Trace(s.ctx, id)
	if !errors.Is(err, heed.ErrNotFound) {
		return t, damaged("trace", id, err)
	}
	all, err := collect(d.Traces(s.ctx))
	if err != nil {
		return t, err
	}
	has := func(id string) func(decision.Trace) bool {
		return func(t decision.Trace) bool { return t.ResponseID == id || t.EventID == id }
	}
	if of := slices.IndexFunc(all, has(id)); of >= 0 {
		return all[of], nil
	}
	var ids []string
	for _, t := range all {
		ids = append(ids, t.ResponseID, t.EventID)
	}
	slices.Sort(ids)
	itself := func(id string) string { return id }
	see := "heed explain lists those that are kept"
	whole, err := pick("answer", id, slices.Compact(ids), itself, see)
	if err != nil {
		return t, err
	}
	return all[slices.IndexFunc(all, has(whole))], nil
}

// printBranch prints a tree. Texts of users, models and reviewers are in it.
func printBranch(p *printer, b loop.Branch, first, rest string) {
	further := rest
	if len(b.On) > 0 {
		further += "│ "
	}
	text, lead := show(b.Text), first
	if p.terminal {
		text = wrap(text, p.width-max(ansi.StringWidth(first), ansi.StringWidth(further)))
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.printf("%s%s\n", lead, line)
		lead = further
	}
	for i, on := range b.On {
		if i == len(b.On)-1 {
			printBranch(p, on, rest+"└─ ", rest+"   ")
		} else {
			printBranch(p, on, rest+"├─ ", rest+"│  ")
		}
	}
}

func printTrace(p *printer, t *traceReport) {
	printTraces(p, []traceReport{*t})
	p.printf("\n")
	p.line("event: %s", show(t.Text))
	p.line("answer: %s", show(t.Response))
	for _, c := range t.Compared {
		said := "the answer says something else"
		if c.Agrees {
			said = "the answer says the same"
		}
		p.line("not shown: %s: %s (similarity %s)", show(c.HeuristicID), said, share(c.Similarity))
	}
	if t.Prompt == "" {
		return
	}
	p.printf("\nsystem prompt\n\n")
	printText(p, t.System)
	p.printf("\nprompt\n\n")
	if t.Turns > 0 {
		p.line("(Before it, the model was told the conversation so far, which heed does not keep. "+
			"Messages: %d.)", t.Turns)
	}
	printText(p, t.Prompt)
}

// expected shows a part of a prediction, if there is one.
func expected(x *float64) string {
	if x == nil {
		return "-"
	}
	return share(*x)
}

// printText prints a text of several lines, with a mark for each character that a terminal may
// obey.
func printText(p *printer, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		p.line("%s", strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return unicode.ReplacementChar
		}, line))
	}
}

func printTraces(p *printer, all []traceReport) {
	t := newTable("response", "when", "~path", "?>confidence", "?>success", "?event", "?domain",
		"?variant")
	for _, r := range all {
		path := string(r.Path)
		if of := cmp.Or(r.CreditID, r.MatchedID); of != "" {
			path += " " + of
		}
		t.add(show(r.ResponseID), moment(r.At), show(path), expected(r.Confidence),
			expected(r.Success), show(r.EventID), show(r.Domain), show(r.Variant))
	}
	t.print(p)
}
