package web

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/cells"
	"github.com/heedhq/heed/internal/lock"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// A pageCall asks for a part of a list.
type pageCall struct {
	Limit int    `json:"limit,omitempty"`
	After string `json:"after,omitempty"`
}

const (
	defaultItems = 50
	mostItems    = 200
)

// A pageJSON is a part of a list. Next is the After of the next one; "" says that this is the last one.
type pageJSON[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// pageOf returns the part of a list that was asked for. keyOf gives the text that the list is in order of, and by which it goes on, also
// if the item has gone meanwhile.
func pageOf[T, Out any](in pageCall, all iter.Seq2[T, error], keyOf func(*T) string, out func([]T) ([]Out, error)) (pageJSON[Out], error) {
	none := pageJSON[Out]{}
	limit := cmp.Or(in.Limit, defaultItems)
	after, err := base64.RawURLEncoding.DecodeString(in.After)
	switch {
	case limit < 1 || limit > mostItems:
		return none, &fieldFault{"limit", fmt.Sprintf("must be 1 to %d", mostItems)}
	case err != nil:
		return none, &fieldFault{"after", "must be the next of the page before"}
	}
	var part []T
	more := false
	for one, err := range all {
		if err != nil {
			return none, err
		}
		if in.After != "" && keyOf(&one) <= string(after) {
			continue
		}
		if more = len(part) == limit; more {
			break
		}
		part = append(part, one)
	}
	p := pageJSON[Out]{}
	if more {
		p.Next = base64.RawURLEncoding.EncodeToString([]byte(keyOf(&part[limit-1])))
	}
	p.Items, err = out(part)
	if p.Items == nil {
		p.Items = []Out{}
	}
	return p, err
}

// inOrder yields a list in the order of its keys.
func inOrder[T any](all []T, err error, keyOf func(*T) string) iter.Seq2[T, error] {
	slices.SortFunc(all, func(x, y T) int { return cmp.Compare(keyOf(&x), keyOf(&y)) })
	return func(yield func(T, error) bool) {
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// eachOf returns what makes of each element another one.
func eachOf[T, Out any](one func(*T) Out) func([]T) ([]Out, error) {
	return func(all []T) (made []Out, _ error) {
		for i := range all {
			made = append(made, one(&all[i]))
		}
		return made, nil
	}
}

type armJSON struct {
	Arm      string  `json:"arm"`
	Mean     float64 `json:"mean"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Outcomes uint64  `json:"outcomes"`
}

type segmentJSON struct {
	Category    string    `json:"category"`
	Context     string    `json:"context"`
	Leading     string    `json:"leading"`
	Arms        []armJSON `json:"arms"`
	Items       int       `json:"items"`
	Specialized int       `json:"specialized"`
	Outcomes    uint64    `json:"outcomes"`
	Updated     time.Time `json:"updated"`
}

func (a *api) segments(ctx context.Context, _ *caller, in *pageCall) (pageJSON[segmentJSON], error) {
	learner := a.learner()
	if learner == nil {
		return pageJSON[segmentJSON]{}, lacks("arms")
	}
	cfg := learner.Config()
	key := func(scope *string) string { return *scope }
	scopes := cfg.Store.Scopes(ctx, cells.ArmKind(cfg.Name))
	return pageOf(*in, scopes, key, func(part []string) (made []segmentJSON, err error) {
		for _, scope := range part {
			one, err := a.reports.of(ctx, learner, scope, a.cfg.Now())
			switch {
			case err == nil:
				made = append(made, one)
			case !errors.Is(err, heed.ErrNotFound): // else it was reset meanwhile
				return nil, err
			}
		}
		return made, nil
	})
}

// reports are segments as they were reported last. A report takes milliseconds of a core, so one is made at a time, and serves for a second:
// whoever looks does not slow down those who choose. The zero reports are not ready: see newReports. They are safe for concurrent use.
type reports struct {
	lock  lock.Lock
	known map[string]report // by scope
}

type report struct {
	segmentJSON
	at time.Time
}

const (
	freshReport = time.Second
	mostReports = 1000
)

func newReports() reports { return reports{lock.New(), make(map[string]report)} }

func (r *reports) of(ctx context.Context, learner *strategy.Learner, scope string, now time.Time) (segmentJSON, error) {
	if err := r.lock.Lock(ctx); err != nil {
		return segmentJSON{}, err
	}
	defer r.lock.Unlock()
	if age := now.Sub(r.known[scope].at); age >= 0 && age < freshReport {
		return r.known[scope].segmentJSON, nil
	}
	category, situation, ok := cells.ParseScope(scope)
	if !ok {
		return segmentJSON{}, heed.ErrNotFound // it is of something else
	}
	d, err := learner.Distribution(ctx, category, situation)
	if err != nil {
		return segmentJSON{}, err
	}
	if len(r.known) >= mostReports {
		clear(r.known)
	}
	r.known[scope] = report{segmentOf(&d), now}
	return r.known[scope].segmentJSON, nil
}

func segmentOf(d *strategy.Distribution) segmentJSON {
	s := segmentJSON{
		Category: d.Category, Context: d.Context, Leading: string(d.Leading), Arms: []armJSON{}, Items: d.Items, Specialized: len(d.Specialized),
		Outcomes: d.Outcomes, Updated: d.Updated,
	}
	for _, r := range d.Arms {
		s.Arms = append(s.Arms, armJSON{string(r.Arm), r.Mean, r.Low, r.High, r.Outcomes})
	}
	return s
}

type heuristicsCall struct {
	Domain string `json:"domain,omitempty"`
	pageCall
}

type heuristicJSON struct {
	ID         string  `json:"id"`
	Domain     string  `json:"domain"`
	Condition  string  `json:"condition"`
	Action     string  `json:"action"`
	Confidence float64 `json:"confidence"`
	Pinned     bool    `json:"pinned"`
	Fires      uint64  `json:"fires"`
	Successes  uint64  `json:"successes"`
	Failures   uint64  `json:"failures"`
}

func (a *api) heuristics(ctx context.Context, _ *caller, in *heuristicsCall) (pageJSON[heuristicJSON], error) {
	module := a.cfg.Learning
	if module == nil {
		return pageJSON[heuristicJSON]{}, lacks("heuristics")
	}
	var all []learning.Heuristic
	for h, err := range module.Heuristics(ctx) {
		if err != nil {
			return pageJSON[heuristicJSON]{}, err
		}
		if in.Domain == "" || h.Domain == in.Domain {
			all = append(all, h)
		}
	}
	key := func(h *learning.Heuristic) string { return h.ID }
	return pageOf(in.pageCall, inOrder(all, nil, key), key, func(part []learning.Heuristic) (made []heuristicJSON, err error) {
		var ids []string
		for _, h := range part {
			ids = append(ids, h.ID)
		}
		standings, err := module.Standings(ctx, ids...)
		for _, id := range ids {
			if s, ok := standings[id]; ok { // else it has gone meanwhile
				made = append(made, heuristicOf(&s))
			}
		}
		return made, err
	})
}

func heuristicOf(s *learning.Standing) heuristicJSON {
	h := &s.Heuristic
	return heuristicJSON{
		h.ID, h.Domain, h.Condition, h.Action, s.Confidence, s.Pin.HeuristicID != "", s.Fires, s.Successes, s.Failures,
	}
}

type rulesCall struct {
	Agent  string `json:"agent,omitempty"`
	Status string `json:"status,omitempty"`
	pageCall
}

type ruleJSON struct {
	ID        string         `json:"id"`
	Text      string         `json:"text"`
	Status    string         `json:"status"`
	AllAgents bool           `json:"all_agents"`
	Agents    []string       `json:"agents"`
	Pinned    bool           `json:"pinned"`
	Check     feedback.Check `json:"check"`
	Approvals int            `json:"approvals"`
	Since     time.Time      `json:"since"`
	Effect    string         `json:"effect"`
}

func (a *api) rules(ctx context.Context, _ *caller, in *rulesCall) (pageJSON[ruleJSON], error) {
	if a.cfg.Feedback == nil {
		return pageJSON[ruleJSON]{}, lacks("rules")
	}
	all, err := a.cfg.Feedback.Rules().List(ctx, feedback.RuleQuery{Agent: in.Agent, Status: feedback.State(in.Status)})
	key := func(r *feedback.Rule) string { return r.ID }
	return pageOf(in.pageCall, inOrder(all, err, key), key, eachOf(func(r *feedback.Rule) ruleJSON {
		return ruleJSON{
			r.ID, r.Text, string(r.Status), r.AllAgents, arrayOf(r.Agents), r.Pinned, r.Check, len(r.Approvals), r.Since, r.Effect.Status,
		}
	}))
}

type warningJSON struct {
	ID           string  `json:"id"`
	Content      string  `json:"content"`
	Reason       string  `json:"reason"`
	State        string  `json:"state"`
	Rate         float64 `json:"rate"`
	HarmfulShare float64 `json:"harmful_share"`
	Successes    uint64  `json:"successes"`
	Failures     uint64  `json:"failures"`
}

// warnings are the ways of working that prompts warn of.
func (a *api) warnings(ctx context.Context, _ *caller, in *pageCall) (pageJSON[warningJSON], error) {
	if a.cfg.Patterns == nil {
		return pageJSON[warningJSON]{}, lacks("ways of working")
	}
	all, err := a.cfg.Patterns.Standings(ctx, patterns.PatternQuery{})
	all = slices.DeleteFunc(all, func(s patterns.Standing) bool {
		return !s.Pattern.ArchivedAt.IsZero() || !s.Pattern.Anti && s.State != patterns.Deprecated
	})
	key := func(s *patterns.Standing) string { return string(s.Pattern.ID) }
	return pageOf(*in, inOrder(all, err, key), key, eachOf(func(s *patterns.Standing) warningJSON {
		return warningJSON{
			string(s.Pattern.ID), s.Pattern.Content, s.Pattern.Reason, string(s.State), s.Rate, s.HarmfulShare,
			s.Counts.Successes, s.Counts.Failures,
		}
	}))
}

type findCall struct {
	Session string `json:"session"`
}

type foundJSON struct {
	ID string `json:"id"`
}

// find returns the newest answer of a session.
func (a *api) find(ctx context.Context, _ *caller, in *findCall) (foundJSON, error) {
	if a.cfg.Agent == nil {
		return foundJSON{}, lacks("agent")
	}
	id, err := a.cfg.Agent.Find(ctx, in.Session)
	return foundJSON{id}, err
}

type explanationCall struct {
	Answer string `json:"answer" heed:"id"`
}

type explanationJSON struct {
	ID        string            `json:"id"`
	Text      string            `json:"text"`
	Path      string            `json:"path"`
	At        time.Time         `json:"at"`
	Heuristic string            `json:"heuristic,omitempty"`
	Needed    float64           `json:"needed"`
	Believed  float64           `json:"believed"`
	Arm       *armOf            `json:"arm,omitempty"`
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
}

func (a *api) explanation(ctx context.Context, _ *caller, in *explanationCall) (explanationJSON, error) {
	var got loop.Account
	var err error
	if a.cfg.Agent != nil {
		got, err = a.cfg.Agent.Explain(ctx, in.Answer)
	} else {
		got, err = loop.Explain(ctx, loop.Config{Store: a.cfg.Store, Name: a.cfg.Name, Now: a.cfg.Now}, in.Answer)
	}
	if err != nil {
		return explanationJSON{}, err
	}
	e := explanationJSON{
		ID: got.ID, Text: got.Text, Path: string(got.Path), At: got.At, Heuristic: got.Heuristic, Needed: got.Needed, Believed: got.Believed,
		Rules: []string{}, Notes: arrayOf(got.Notes), Ways: arrayOf(got.Ways), Warnings: arrayOf(got.Warnings), Shown: arrayOf(got.Shown),
		Overruled: got.Overruled, Known: got.Known, Worth: got.Worth, Channel: got.Channel, Tree: got.Tree(),
	}
	if got.Choice != nil {
		e.Arm = &armOf{ID: string(got.Choice.Arm)}
	}
	for _, r := range got.Rules {
		e.Rules = append(e.Rules, r.ID)
	}
	if e.Overruled == nil {
		e.Overruled = map[string]string{}
	}
	return e, nil
}
