package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"unicode"

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
	Limit  atMost `default:"20"`
}

// The ends of the names of an agent's kinds of records. A module or learner that is used alone has
// answers as well, but only agents have lessons.
const (
	answerKind = ".answer"
	lessonKind = ".lesson"
)

// agents are the agents of a store. What opens one is its name.
var agents = part{"agent",
	func(ctx context.Context, st store.Store) (names []string, err error) {
		status, err := st.(*sqlstore.Store).Status(ctx)
		for _, kind := range status.Kinds {
			if name, ok := strings.CutSuffix(kind.Name, lessonKind); ok {
				names = append(names, name)
			}
		}
		return names, err
	},
	func(_ context.Context, v *view.Source, name string) (checked, error) {
		v.Name = name
		return nil, nil
	}}

// A traceReport is a trace whose fields have lower-case names in JSON.
type traceReport struct{ decision.Trace }

var fieldName, hump = regexp.MustCompile(`(?m)^\s*"[A-Z]\w*":`), regexp.MustCompile(`([a-z])([A-Z])`)

// MarshalJSON implements [json.Marshaler].
func (t traceReport) MarshalJSON() ([]byte, error) {
	document, err := json.MarshalIndent(t.Trace, "", " ")
	return fieldName.ReplaceAllFunc(document, func(name []byte) []byte {
		return bytes.ToLower(hump.ReplaceAll(name, []byte("${1}_${2}")))
	}), err
}

// An explained answer is one of an agent, of package decision, or of both.
type explained struct {
	*view.Explanation
	Trace *traceReport `json:"trace,omitempty"`
}

// Run explains an answer, or lists traces.
func (cmd *explainCommand) Run(s *session) error {
	if cmd.ID == "" {
		return cmd.list(s)
	}
	return s.with(func() error {
		d, err := decision.New(s.ctx, decision.Config{Store: s.at.store})
		if err != nil {
			return err
		}
		e, err := cmd.find(s, d)
		if err != nil {
			return err
		}
		return s.answer(e, func(p *printer) {
			if e.Explanation != nil {
				printBranch(p, e.Tree, "", "")
			}
			if e.Explanation != nil && e.Trace != nil {
				p.blank()
			}
			if e.Trace != nil {
				printTrace(p, e.Trace)
			}
		})
	})
}

func (cmd *explainCommand) list(s *session) error {
	var all []traceReport
	err := s.with(func() error {
		d, err := decision.New(s.ctx, decision.Config{Store: s.at.store})
		if err != nil {
			return err
		}
		for t, err := range d.Traces(s.ctx) {
			if err != nil || len(all) == int(cmd.Limit) {
				return err
			}
			if cmd.Path == "" || string(t.Path) == cmd.Path {
				all = append(all, traceReport{t})
			}
		}
		return nil
	})
	return answerList(s, all, err, "traces", []string{"path", cmd.Path}, printTraces)
}

// find finds what an agent keeps of an answer, or else what package decision does, by the id of the
// answer or of its response.
func (cmd *explainCommand) find(s *session, d *decision.Decider) (explained, error) {
	v := s.source()
	if _, err := agents.one(s, v, cmd.Agent); err != nil && !errors.Is(err, errNone) {
		return explained{}, err
	}
	e, err := found("answer", cmd.ID, "heed explain lists those that are kept, with their events",
		func(id string) (explained, error) { return readAnswer(s, v, d, id) },
		func() ([]string, error) { return answerIDs(s, v, d) },
		func(id string) string { return id })
	if err != nil || !cmd.Prompt || e.Trace != nil {
		return e, err
	}
	a, err := v.Answer(s.ctx, e.ID)
	if err != nil {
		return e, err
	}
	t, err := d.Trace(s.ctx, a.Response)
	e.Trace = &traceReport{t}
	return e, err
}

// readAnswer reads what is kept of an answer, or returns [heed.ErrNotFound]. If a store has an
// agent, the id of an event is the id of its answer.
func readAnswer(s *session, v *view.Source, d *decision.Decider, id string) (explained, error) {
	if v.Name != "" {
		if e, err := v.Explain(s.ctx, id); !errors.Is(err, loop.ErrNoAnswer) {
			return explained{&e, nil}, err
		}
	}
	t, err := d.Trace(s.ctx, id)
	if errors.Is(err, heed.ErrNotFound) && v.Name == "" {
		for one, failure := range d.Traces(s.ctx) { // the newest of an event first
			if failure != nil || one.EventID == id {
				t, err = one, failure
				break
			}
		}
	}
	if err == nil && v.Name != "" {
		if e, err := v.Explain(s.ctx, t.EventID); !errors.Is(err, loop.ErrNoAnswer) {
			return explained{&e, nil}, err
		}
	}
	return explained{nil, &traceReport{t}}, err
}

// mostBegun is how many answers are looked through for one whose id begins with a text.
const mostBegun = 10_000

// answerIDs returns the ids by which answers can be found.
func answerIDs(s *session, v *view.Source, d *decision.Decider) (ids []string, err error) {
	kept := answers.View(v.Name + answerKind)
	for r, err := range kept.Find(s.ctx, v.Store, store.Query{Limit: mostBegun}) {
		if v.Name == "" || errors.Is(err, heed.ErrDamaged) {
			break // heed doctor names what is damaged
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, r.Value.ID)
	}
	for t, err := range d.Traces(s.ctx) {
		if err != nil {
			return nil, err
		}
		if ids = append(ids, t.ResponseID); v.Name == "" {
			ids = append(ids, t.EventID)
		}
	}
	return ids, nil
}

// printBranch prints a tree. Texts of users, models and reviewers are in it.
func printBranch(p *printer, b loop.Branch, first, rest string) {
	further := rest
	if len(b.On) > 0 {
		further += "│ "
	}
	p.block(first, further, say("%v", b.Text))
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
	p.blank()
	p.line("event: %v", t.Text)
	p.line("answer: %v", t.Response)
	for _, c := range t.Compared {
		said := "the answer says something else"
		if c.Agrees {
			said = "the answer says the same"
		}
		p.line("not shown: %v: %v (similarity %v)", c.HeuristicID, said, c.Similarity)
	}
	if t.Prompt == "" {
		return
	}
	p.write("\nsystem prompt\n\n")
	printText(p, t.System)
	p.write("\nprompt\n\n")
	if t.Turns > 0 {
		p.line("(Before it, the model was told the conversation so far, which heed does not keep. "+
			"Messages: %v.)", t.Turns)
	}
	printText(p, t.Prompt)
}

// printText prints a text of several lines, with a mark for each character that a terminal may
// obey.
func printText(p *printer, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		p.line("%v", plain(strings.Map(func(r rune) rune {
			if unprintable(r) {
				return unicode.ReplacementChar
			}
			return r
		}, line)))
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
		confidence, success := plain("-"), plain("-")
		if r.Prediction != nil {
			confidence, success = say("%v", r.Prediction.Confidence), say("%v", r.Prediction.Success)
		}
		t.add(r.ResponseID, r.At, path, confidence, success, r.EventID, r.Domain, r.Variant)
	}
	t.print(p)
}
