package view

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// An Answer is an answer in a list.
type Answer struct {
	ID        string    `json:"id"`
	Question  string    `json:"question,omitempty"` // "" if no trace of it is kept
	Text      string    `json:"text"`
	Response  string    `json:"-"` // the name of its trace
	Person    string    `json:"person,omitempty"`
	Heuristic string    `json:"heuristic,omitempty"` // that answered; "" if the model did
	Arm       string    `json:"arm,omitempty"`       // "" if no arm was chosen
	Control   bool      `json:"control"`             // answered without learning
	At        time.Time `json:"at"`
	Known     bool      `json:"known"` // what it was worth
	Worth     float64   `json:"worth"` // in [-1, 1]
	Channel   string    `json:"channel,omitempty"`
	Asked     *Asked    `json:"-"` // nil if no trace of it is kept, or no model was asked
	damaged   Names     // its trace, if that can't be read: it is then as without one
}

// Asked is what a model was asked.
type Asked struct {
	System string `json:"system"`
	Prompt string `json:"prompt"`
	Turns  int    `json:"turns"` // messages of the conversation, which are not kept
}

// An AnswerQuery selects answers. A time is a day in UTC, a moment as in RFC 3339, or how long ago
// something was, such as 24h.
type AnswerQuery struct {
	Since   string `json:"since,omitempty" placeholder:"TIME"`
	Until   string `json:"until,omitempty" placeholder:"TIME"` // a day is included, a moment is not
	Outcome string `json:"outcome,omitempty" placeholder:"good|bad|unknown"`
	Person  string `json:"person,omitempty" placeholder:"NAME"` // who asked
	Arm     string `json:"arm,omitempty" placeholder:"NAME"`
	// Sort is [Worst], which has the bad ones alone, the worst first, or "".
	Sort string `json:"sort,omitempty" kong:"-"`
	Page `kong:"-"`
}

// The outcomes, and the order, that an AnswerQuery may have.
const (
	Good  = "good"
	Bad   = "bad"
	Open  = "unknown"
	Worst = "worst"
)

// mostScanned is how many answers are read for a part of a list.
const mostScanned = 5000

// Validate refuses a query with a fault. The command calls it before it opens a store.
func (q *AnswerQuery) Validate() error {
	return cmp.Or(aTime("since", q.Since), aTime("until", q.Until),
		oneOf("outcome", q.Outcome, Good, Bad, Open), oneOf("sort", q.Sort, Worst))
}

// selects reports whether an answer is one of those that the query wants.
func (q *AnswerQuery) selects(a *Answer) bool {
	switch {
	case q.Person != "" && a.Person != q.Person, q.Arm != "" && a.Arm != q.Arm,
		q.Sort == Worst && !(a.Known && a.Worth < 0):
		return false
	case q.Outcome == Open:
		return !a.Known
	case q.Outcome == "":
		return true
	default:
		return a.Known && (a.Worth < 0) == (q.Outcome == Bad)
	}
}

// Answers lists the answers that a query selects, the newest first. It looks at 5,000 answers at
// most, so there may be fewer than the page's limit although there are more.
func (s *Source) Answers(ctx context.Context, q AnswerQuery) (l List[Answer], err error) {
	if err := q.Validate(); err != nil {
		return l, err
	}
	found := store.Query{After: q.After}
	if found.Since, found.Until, err = s.span(q.Since, q.Until); err != nil {
		return l, err
	}
	if q.Outcome == Bad || q.Sort == Worst {
		found.Keys = append(found.Keys, answers.Bad)
	}
	if q.Person != "" {
		found.Keys = append(found.Keys, store.PersonKey(q.Person))
	}
	most, view := q.Limit, answers.View(s.Name+".answer")
	if q.Sort == Worst {
		most = mostScanned
	}
	l, err = scan(ctx, s.Store, &view, found, most, func(a *answer.Answer) (one Answer, is bool) {
		if a.Reply == nil { // package learning or strategy was used without the agent
			return one, false
		}
		one = answerOf(a)
		return one, q.selects(&one)
	})
	if err != nil {
		return l, err
	}
	if q.Sort == Worst {
		slices.SortStableFunc(l.Items, func(a, b Answer) int { return cmp.Compare(a.Worth, b.Worth) })
		l.Items, l.Next = l.Items[:min(len(l.Items), q.Limit)], ""
	}
	err = s.readQuestions(ctx, l.Items)
	for i := range l.Items {
		l.Damaged = append(l.Damaged, l.Items[i].damaged...)
	}
	return l, err
}

// scan lists at most a number of records, as the elements that a function makes of them. It leaves
// out those for which the function returns false, and reads at most mostScanned.
func scan[R, T any](
	ctx context.Context, st store.Store, view *store.View[R], q store.Query, most int,
	of func(*R) (T, bool),
) (l List[T], _ error) {
	l.Items, q.Kind = []T{}, view.Name
	last, scanned := "", 0
	for r, err := range st.Find(ctx, q) {
		if err != nil {
			return l, err
		}
		if scanned == mostScanned || len(l.Items) == most {
			l.Next = last
			break
		}
		scanned, last = scanned+1, r.Place
		row, err := view.Of(r)
		if err != nil {
			l.Damaged = append(l.Damaged, nameOf(r.Ref))
		} else if one, is := of(&row.Value); is {
			l.Items = append(l.Items, one)
		}
	}
	return l, nil
}

// nameOf names a record as heed doctor does.
func nameOf(r store.Ref) string { return r.ID + " of " + r.Kind }

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
		Heuristic: answers.HeuristicOf(a), At: a.At}
	one.Worth, one.Channel, one.Known = answers.WorthOf(a)
	if one.Response == "" { // it was imported
		one.Question = a.Reply.About
	}
	t := a.Reply.Side
	one.Control = t != nil && t.Control
	if a.Choice != nil {
		one.Arm = string(a.Choice.Arm)
	} else if one.Heuristic == "" { // it is no evidence about the arm
		one.Arm = a.Reply.Arm
	}
	return one
}

// readQuestions reads what was asked, by people and of the model, in one round trip.
func (s *Source) readQuestions(ctx context.Context, all []Answer) error {
	var refs []store.Ref
	var of []*Answer
	for i := range all {
		if all[i].Response != "" {
			refs = append(refs, store.Ref{Kind: "decision.trace", ID: all[i].Response})
			of = append(of, &all[i])
		}
	}
	var found store.Snapshot
	err := s.Store.Read(ctx, &found, nil, refs)
	for i, r := range found.Records {
		if r.Revision == 0 {
			continue
		}
		trace, err := store.Decode[struct {
			Text string
			Asked
		}](r.Body)
		if err != nil {
			of[i].damaged = Names{nameOf(r.Ref)}
		} else if of[i].Question = trace.Text; trace.Prompt != "" {
			of[i].Asked = &trace.Asked
		}
	}
	return err
}

// An Explanation describes why an answer was given, and what became of it.
type Explanation struct {
	loop.Account
	Question string      `json:"question,omitempty"` // as long as its trace is kept
	Arm      *chosenArm  `json:"arm,omitempty"`
	Rules    []string    `json:"rules,omitempty"`
	Tree     loop.Branch `json:"tree"`
	Person   string      `json:"-"` // who asked
	Default  string      `json:"-"` // the arm of an answer of the control group
	Asked    *Asked      `json:"-"`
	Damaged  Names       `json:"damaged,omitempty"` // its trace, if that can't be read
}

// A chosenArm is the arm that was chosen for an answer.
type chosenArm struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	Context  string `json:"context"`
	Item     string `json:"item,omitempty"`
}

// Explain explains an answer, or returns [loop.ErrNoAnswer].
func (s *Source) Explain(ctx context.Context, id string) (e Explanation, err error) {
	if s.Agent != nil {
		e.Account, err = s.Agent.Explain(ctx, id)
	} else {
		e.Account, err = loop.Explain(ctx, loop.Config{Store: s.Store, Name: s.Name,
			Testing: loop.Testing{Now: s.Now}}, id)
	}
	if err != nil {
		return e, err
	}
	e.Tree = e.Account.Tree()
	if c := e.Choice; c != nil {
		e.Arm = &chosenArm{string(c.Arm), c.Category, c.Context, c.Item}
	}
	for i := range e.Account.Rules {
		e.Rules = append(e.Rules, e.Account.Rules[i].ID)
	}
	asked, err := s.Answer(ctx, e.ID)
	if errors.Is(err, heed.ErrNotFound) { // it was swept since
		err = nil
	}
	e.Question, e.Person, e.Asked = asked.Question, asked.Person, asked.Asked
	if e.Damaged = asked.damaged; e.Control != nil {
		e.Default = asked.Arm
	}
	return e, err
}
