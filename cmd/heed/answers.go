package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

type answersCommand struct {
	ID      string `arg:"" optional:""`
	Agent   string `placeholder:"NAME"`
	Prompt  bool
	Since   when   `placeholder:"TIME"`
	Until   when   `placeholder:"TIME"`
	Outcome string `enum:",good,bad,unknown" default:"" placeholder:"good|bad|unknown"`
	Person  string `placeholder:"NAME"`
	Arm     string `placeholder:"NAME"`
	Worst   bool
	Limit   atMost `default:"20"`
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
		for kind, err := range st.Find(ctx, store.Query{Kind: store.Declarations}) {
			if err != nil {
				return nil, err
			}
			if name, ok := strings.CutSuffix(kind.ID, lessonKind); ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, nil
	},
	func(_ context.Context, v *view.Source, name string) (checked, error) {
		v.Name = name
		return nil, nil
	}}

// A traceReport is a trace whose fields have lower-case names in JSON.
type traceReport struct{ decision.Trace }

var fieldName = regexp.MustCompile(`(?m)^\s*"[A-Z]\w*":`)
var hump = regexp.MustCompile(`([a-z])([A-Z])`)

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

// Run explains an answer, or lists answers with how they turned out. A store without an agent has
// the traces of package decision.
func (cmd *answersCommand) Run(s *session) error {
	var all []view.Answer
	var traces []traceReport
	err := s.with(func() error {
		v := s.source()
		_, err := agents.one(s, v, cmd.Agent)
		if err != nil && !errors.Is(err, errNone) {
			return err
		}
		d, failure := decision.New(s.ctx, decision.Config{Store: s.at.view})
		switch {
		case failure != nil:
			return failure
		case cmd.ID != "":
			e, err := cmd.find(s, v, d)
			if err != nil {
				return err
			}
			return s.answer(e, "explained")
		case err == nil:
			all, err = cmd.list(s, v)
			return err
		}
		for t, err := range d.Traces(s.ctx) {
			if err != nil || len(traces) == int(cmd.Limit) {
				return err
			}
			traces = append(traces, traceReport{t})
		}
		return nil
	})
	if cmd.ID != "" {
		return err
	} else if len(traces) > 0 {
		return answerList(s, traces, err, "traces", "traces")
	}
	return answerList(s, all, err, "answers", "answers", "outcome", cmd.Outcome, "person", cmd.Person,
		"arm", cmd.Arm)
}

// list reads the newest answers that the flags select.
func (cmd *answersCommand) list(s *session, v *view.Source) (all []view.Answer, err error) {
	q := view.AnswerQuery{Since: string(cmd.Since), Until: string(cmd.Until), Outcome: cmd.Outcome,
		Person: cmd.Person, Arm: cmd.Arm}
	if cmd.Worst {
		q.Sort = view.Worst
	}
	for after := ""; ; {
		part, next, err := v.Answers(s.ctx, q, after, int(cmd.Limit)-len(all))
		all = append(all, part...)
		if after = next; err != nil || next == "" || len(all) >= int(cmd.Limit) {
			return all, err
		}
	}
}

// find finds what an agent keeps of an answer, or else what package decision does, by the id of the
// answer or of its response.
func (cmd *answersCommand) find(
	s *session, v *view.Source, d *decision.Decider,
) (explained, error) {
	e, err := found("answer", cmd.ID, "heed answers lists those that are kept",
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
	t, err := d.Trace(s.ctx, id)
	if v.Name != "" {
		for _, of := range []string{id, t.EventID} {
			e, failure := v.Explain(s.ctx, of)
			if of != "" && !errors.Is(failure, loop.ErrNoAnswer) {
				return explained{&e, nil}, failure
			}
		}
	} else if errors.Is(err, heed.ErrNotFound) {
		for one, failure := range d.Traces(s.ctx) { // the newest of an event first
			if failure != nil || one.EventID == id {
				t, err = one, failure
				break
			}
		}
	}
	return explained{nil, &traceReport{t}}, err
}

// mostBegun is how many answers and traces are looked through for one whose id begins with a text.
const mostBegun = 1000

// answerIDs returns the ids by which the latest answers can be found.
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
	n := 0
	for t, err := range d.Traces(s.ctx) {
		if n++; err != nil || n > mostBegun {
			return ids, err
		}
		if ids = append(ids, t.ResponseID); v.Name == "" {
			ids = append(ids, t.EventID)
		}
	}
	return ids, nil
}
