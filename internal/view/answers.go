package view

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// An Answer is an answer in a list.
type Answer struct {
	ID        string
	Question  string // "" if no trace of it is kept
	Text      string
	Response  string // the name of its trace
	Person    string
	Heuristic string // that answered; "" if the model did
	Arm       string // "" if no arm was chosen
	At        time.Time
}

// Answers returns the latest answers behind a place, the newest first, and the place of the next
// ones. "" means that there are no more.
func (s *Source) Answers(ctx context.Context, after string, most int) (
	all []Answer, next string, err error,
) {
	last := ""
	view := answers.View(s.Name + ".answer")
	for kept, err := range view.Find(ctx, s.Store, store.Query{After: after}) {
		if err != nil {
			return nil, "", err
		}
		if kept.Value.Reply == nil { // package learning or strategy was used without the agent
			continue
		}
		if len(all) == most {
			next = last
			break
		}
		last = kept.Place
		all = append(all, answerOf(&kept.Value))
	}
	return all, next, s.readQuestions(ctx, all)
}

// Answer reads an answer, or returns [heed.ErrNotFound].
func (s *Source) Answer(ctx context.Context, id string) (Answer, error) {
	view := answers.View(s.Name + ".answer")
	kept, err := view.Get(ctx, s.Store, answers.ID(id))
	if err == nil && kept.Value.Reply == nil {
		err = heed.ErrNotFound
	}
	if err != nil {
		return Answer{}, err
	}
	all := []Answer{answerOf(&kept.Value)}
	err = s.readQuestions(ctx, all)
	return all[0], err
}

func answerOf(a *answer.Answer) Answer {
	one := Answer{
		ID: a.ID, Text: a.Reply.Text, Response: a.Reply.Response, Person: a.Person,
		Heuristic: a.Heuristic(), At: a.At,
	}
	if a.Choice != nil {
		one.Arm = string(a.Choice.Arm)
	}
	return one
}

// readQuestions reads what was asked, in one round trip.
func (s *Source) readQuestions(ctx context.Context, all []Answer) error {
	var refs []store.Ref
	for i := range all {
		refs = append(refs, store.Ref{Kind: "decision.trace", ID: all[i].Response})
	}
	var found store.Snapshot
	if err := s.Store.Read(ctx, &found, nil, refs); err != nil {
		return err
	}
	for i, r := range found.Records {
		if r.Revision == 0 {
			continue
		}
		var trace struct{ Text string }
		body, err := r.Body.JSON()
		if err == nil {
			err = json.Unmarshal(body, &trace)
		}
		if err != nil {
			return err
		}
		all[i].Question = trace.Text
	}
	return nil
}

// An Explanation describes why an answer was given, and what became of it.
type Explanation struct {
	ID        string            `json:"id"`
	Question  string            `json:"question,omitempty"` // as long as its trace is kept
	Text      string            `json:"text"`
	Path      string            `json:"path"`
	At        time.Time         `json:"at"`
	Heuristic string            `json:"heuristic,omitempty"`
	Needed    float64           `json:"needed"`
	Believed  float64           `json:"believed"`
	Arm       *ChosenArm        `json:"arm,omitempty"`
	Rules     []string          `json:"rules"`
	Notes     []string          `json:"notes"`
	Ways      []string          `json:"ways"`
	Warnings  []string          `json:"warnings"`
	Shown     []string          `json:"shown"`
	Overruled map[string]string `json:"overruled"`
	Known     bool              `json:"known"`
	Worth     float64           `json:"worth"`
	Channel   string            `json:"channel,omitempty"`
	Tree      loop.Branch       `json:"tree"`
	Account   loop.Account      `json:"-"`
}

// A ChosenArm is the arm that was chosen for an answer.
type ChosenArm struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	Context  string `json:"context"`
	Item     string `json:"item,omitempty"`
}

// Explain explains an answer, or returns [loop.ErrNoAnswer].
func (s *Source) Explain(ctx context.Context, id string) (e Explanation, err error) {
	var got loop.Account
	if s.Agent != nil {
		got, err = s.Agent.Explain(ctx, id)
	} else {
		got, err = loop.Explain(ctx, loop.Config{Store: s.Store, Name: s.Name,
			Testing: loop.Testing{Now: s.Now}}, id)
	}
	if err != nil {
		return e, err
	}
	e = Explanation{
		ID: got.ID, Text: got.Text, Path: string(got.Path), At: got.At, Heuristic: got.Heuristic,
		Needed: got.Needed, Believed: got.Believed, Rules: []string{}, Notes: arrayOf(got.Notes),
		Ways: arrayOf(got.Ways), Warnings: arrayOf(got.Warnings), Shown: arrayOf(got.Shown),
		Overruled: got.Overruled, Known: got.Known, Worth: got.Worth, Channel: got.Channel,
		Tree: got.Tree(), Account: got,
	}
	if c := got.Choice; c != nil {
		e.Arm = &ChosenArm{string(c.Arm), c.Category, c.Context, c.Item}
	}
	for i := range got.Rules {
		e.Rules = append(e.Rules, got.Rules[i].ID)
	}
	if e.Overruled == nil {
		e.Overruled = map[string]string{}
	}
	asked, err := s.Answer(ctx, got.ID)
	if errors.Is(err, heed.ErrNotFound) { // it was swept since
		err = nil
	}
	e.Question = asked.Question
	return e, err
}
