package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	records "github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/overview"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// A trust is a heuristic with the interval of its confidence.
type trust struct {
	learning.Standing
	Bar  bar
	Held string  // what holds the confidence; "" nothing does
	Need float64 // the confidence from which on it answers
	Line int     // where that is drawn
}

// needed is the confidence from which on a heuristic answers by itself.
func (h *Handler) needed() float64 {
	if h.cfg.Agent != nil {
		return h.cfg.Agent.Decision().Config().Threshold
	}
	return usualNeed
}

const usualNeed = 0.7 // of an agent without another setting

func trustOf(e *learning.Explanation, cfg learning.Config, need float64) trust {
	low, high := overview.Interval(e)
	t := trust{Standing: e.Standing, Bar: newBar(e.Standing.Heuristic.ID, low, e.Standing.Confidence, high), Need: need, Line: int(scaleWidth * need)}
	switch of := e.Constraints.Range; {
	case e.Constraints.Lock == learning.Locked:
		t.Held = "locked"
	case of.Floor == of.Ceiling && of.Ceiling > 0:
		t.Held = "pinned"
	case len(e.Limits) > 0:
		t.Held = holding(e.Limits[0])
	}
	return t
}

// holding says what a limit does to a confidence.
func holding(limit learning.Limit) string {
	switch limit {
	case "cap":
		return "part of the evidence is over a cap"
	case "floor":
		return "it may not fall below its floor"
	case "ceiling":
		return "it may not rise above its ceiling"
	case overview.DisagreementChannel:
		return "the model said something else more often than the same, and that counts for at most as much as its agreement"
	default:
		return words(limit)
	}
}

func (h *Handler) heuristics(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Heuristics"
	var all []learning.Heuristic
	for one, err := range h.cfg.Learning.Heuristics(ctx) {
		if err != nil {
			return title, nil, err
		}
		all = append(all, one)
	}
	all = search(r, all, func(one learning.Heuristic) []string { return []string{one.ID, one.Domain, one.Condition, one.Action} })
	page, err := cutOut(r, all)
	if err != nil {
		return title, nil, err
	}
	rows := make([]trust, 0, len(page.Rows))
	for _, one := range page.Rows {
		e, err := h.cfg.Learning.Explain(ctx, one.ID)
		switch {
		case err == nil:
			rows = append(rows, trustOf(&e, h.cfg.Learning.Config(), h.needed()))
		case !errors.Is(err, heed.ErrNotFound): // else it was deleted meanwhile
			return title, nil, err
		}
	}
	return title, listing[trust]{rows, page.From, page.Total, page.Page, page.Pages, page.Prev, page.Next, page.Search}, nil
}

// Alone says whether the heuristic answers by itself.
func (t trust) Alone() string {
	if t.Confidence >= t.Need {
		return "yes, as its confidence is at least " + three(t.Need)
	}
	return "no, from " + three(t.Need) + " on"
}

// Depth is where the line of the confidence that it takes is in a chart.
func (t trust) Depth() float64 { return chartHeight * (1 - t.Need) }

// A heuristicData is a heuristic with its rise and fall.
type heuristicData struct {
	trust
	Prior   evidence.Beta
	Shares  []learning.Share
	Curve   curve
	History listing[evidence.Observation]
	Kept    int
	Limits  []string
}

func (h *Handler) heuristic(ctx context.Context, r *http.Request) (title string, _ any, err error) {
	title = "Heuristic"
	e, err := byID(ctx, r, h.cfg.Learning.Explain)
	if err != nil {
		return title, nil, err
	}
	d := heuristicData{trust: trustOf(&e, h.cfg.Learning.Config(), h.needed()), Prior: e.Prior, Shares: e.Shares, Curve: curveOf(&e, h.cfg.Learning.Config(), h.cfg.Now()), Kept: len(e.History)}
	for _, limit := range e.Limits {
		d.Limits = append(d.Limits, holding(limit))
	}
	d.History, err = cutOut(r, e.History)
	return title, d, err
}

// A waysData lists ways of working.
type waysData struct {
	listing[patterns.Standing]
	Warned bool // they are warned of
	Other  int  // of the others
}

func (h *Handler) ways(ctx context.Context, r *http.Request) (string, any, error) {
	d := waysData{Warned: r.URL.Query().Get("warned") != ""}
	title := "Ways of working"
	if d.Warned {
		title = "Warnings"
	}
	all, err := h.cfg.Patterns.Standings(ctx, patterns.PatternQuery{})
	if err != nil {
		return title, nil, err
	}
	of := len(all)
	all = slices.DeleteFunc(all, func(s patterns.Standing) bool { return warned(&s) != d.Warned })
	d.Other = of - len(all)
	all = search(r, all, func(s patterns.Standing) []string {
		return append([]string{string(s.Pattern.ID), s.Pattern.Content}, s.Pattern.Tags...)
	})
	slices.SortStableFunc(all, func(a, b patterns.Standing) int {
		return cmp.Compare(b.Counts.Successes+b.Counts.Failures, a.Counts.Successes+a.Counts.Failures)
	})
	d.listing, err = cutOut(r, all)
	return title, d, err
}

// warned reports whether prompts warn of a way of working.
func warned(s *patterns.Standing) bool { return s.Pattern.Anti || s.State == patterns.Deprecated }

// A wayData is a way of working with what it has earned.
type wayData struct {
	patterns.Standing
	Warned      bool
	Bar         bar
	Gates       []string
	Transitions []patterns.Transition
}

const mostTransitions = 100

func (h *Handler) way(ctx context.Context, r *http.Request) (title string, _ any, err error) {
	title = "Way of working"
	s, err := byID(ctx, r, func(ctx context.Context, id string) (patterns.Standing, error) {
		return h.cfg.Patterns.Standing(ctx, patterns.PatternID(id))
	})
	if err != nil {
		return title, nil, err
	}
	low, high := evidence.Beta{Alpha: 1 + s.Helpful, Beta: 1 + s.Harmful}.Interval(0.9)
	d := wayData{Standing: s, Warned: warned(&s), Bar: newBar(string(s.Pattern.ID), low, s.Rate, high)}
	for _, gate := range s.Conditions {
		d.Gates = append(d.Gates, gate.String())
	}
	for change, err := range h.cfg.Patterns.Transitions(ctx, patterns.HistoryQuery{About: string(s.Pattern.ID), Limit: mostTransitions}) {
		if err != nil {
			return title, nil, err
		}
		d.Transitions = append(d.Transitions, change)
	}
	return title, d, nil
}

// An answerRow is an answer as a list shows it.
type answerRow struct {
	ID        string
	Text      string
	Response  string // the name of its trace
	Person    string
	Heuristic string
	Arm       string // empty: none was chosen
	At        time.Time
}

func answerRowOf(a *answer.Answer) answerRow {
	row := answerRow{ID: a.ID, Person: a.Person, Heuristic: a.Heuristic(), At: a.At}
	if a.Reply != nil {
		row.Text, row.Response = a.Reply.Text, a.Reply.Response
	}
	if a.Choice != nil {
		row.Arm = string(a.Choice.Arm)
	}
	return row
}

// An answersData is a page of answers.
type answersData struct {
	Rows []asked
	Next address
	Late bool // it is not the first page
}

func (h *Handler) answers(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Answers"
	after := r.URL.Query().Get("after")
	d := answersData{Late: after != ""}
	last := ""
	view := records.View(h.cfg.Name + ".answer")
	for kept, err := range view.Find(ctx, h.cfg.Store, store.Query{After: after}) {
		if err != nil {
			return title, nil, err
		}
		if kept.Value.Reply == nil { // package learning or strategy was used past the agent
			continue
		}
		if len(d.Rows) == perPage {
			d.Next = address(h.link("/answers", "after", last))
			break
		}
		last = kept.Place
		d.Rows = append(d.Rows, asked{answerRow: answerRowOf(&kept.Value)})
	}
	return title, d, h.questions(ctx, d.Rows)
}

// An answerData says why an answer was given.
type answerData struct {
	loop.Account
	Tree             loop.Branch
	Question, Person string
}

func (h *Handler) answer(ctx context.Context, r *http.Request) (title string, _ any, err error) {
	title = "Answer"
	account, err := byID(ctx, r, func(ctx context.Context, id string) (loop.Account, error) {
		if h.cfg.Agent != nil {
			return h.cfg.Agent.Explain(ctx, id)
		}
		return loop.Explain(ctx, loop.Config{Store: h.cfg.Store, Name: h.cfg.Name, Now: h.cfg.Now}, id)
	})
	if err != nil {
		return title, nil, err
	}
	of, err := h.askedOf(ctx, account.ID)
	if errors.Is(err, heed.ErrNotFound) { // it was swept meanwhile
		err = nil
	}
	return title, answerData{account, account.Tree(), of.Question, of.Person}, err
}
