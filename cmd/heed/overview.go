package main

import (
	"errors"
	"time"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

type overviewCommand struct{}

// recent is how far an overview looks back. It names at most so many proposals, weeks of the gain,
// and agents that do not learn.
const recent, mostWaiting, mostWeeks, mostFrozen = 7 * day, 5, 8, 10

// A summary is what is most important about a store.
type summary struct {
	Store    string        `json:"store"`
	Engine   string        `json:"engine"`
	Written  time.Time     `json:"written,omitzero"` // the newest that was seen
	Gain     []gained      `json:"gain"`             // of each agent
	Learners []view.Status `json:"learners"`
	Waiting  []view.Rule   `json:"waiting"`  // proposals, the newest
	Pending  int           `json:"pending"`  // proposals in all
	Disputed int           `json:"disputed"` // corrections that may contradict others
	Unfit    int           `json:"unfit"`    // rules without an effect, or with a bad one
	Wrong    []finding     `json:"wrong"`
	Unread   bool          `json:"unread"` // something, because it is damaged

	Hidden map[string]bool `json:"-"` // the sorts of parts that damage hides
}

// A gained is what learning gains an agent.
type gained struct {
	Agent string `json:"agent"`
	view.Gain
	Weeks []loop.GainPart `json:"weeks"`
}

// withoutStore explains how to get a store.
const withoutStore = "heed shows what an agent has learned: name its store with --db FILE, or in " +
	"HEED_DB.\nTo have an agent that fills one, run: heed --db FILE serve --run\n" +
	"All commands: heed --help"

// Run sums up the store.
func (overviewCommand) Run(s *session) error {
	if s.DB == "" && !s.JSON {
		s.out.block("", "", withoutStore)
		return s.out.err
	}
	var sum summary
	err := s.with(func() error {
		sum = summary{
			Store: s.at.String(), Engine: s.at.dialect.String(), Gain: []gained{},
			Learners: []view.Status{}, Waiting: []view.Rule{}, Wrong: []finding{},
			Hidden: map[string]bool{}}
		for _, of := range []struct {
			part
			add func(*session, *view.Source) error
		}{{agents, sum.agent}, {learners, sum.learner}, {services, sum.rules}} {
			err := of.each(s, func(v *view.Source) error { return sum.sound(s, of.what, of.add(s, v)) })
			if err = sum.sound(s, of.what, err); err != nil {
				return err
			}
		}
		for e, err := range store.AuditEntries(s.ctx, s.at.view, store.Query{Limit: 1}) {
			if err = sum.sound(s, "audit", err); err != nil {
				return err
			}
			sum.seen(e.At)
		}
		return sum.faults(s)
	})
	if err != nil {
		return err
	}
	return s.answer(sum, "overview")
}

// sound makes a finding of damage, so that the rest is shown, and returns other errors.
func (sum *summary) sound(s *session, what string, err error) error {
	names, err := view.DamagedIn(err)
	if len(names) > 0 {
		sum.Hidden[what], sum.Unread = true, true
		sum.Wrong = append(sum.Wrong, finding{"fault", s.at.explain(names.Err()).Error()})
	}
	return err
}

// seen describes when a record was written.
func (sum *summary) seen(at time.Time) {
	if at.After(sum.Written) {
		sum.Written = at.UTC().Truncate(time.Second)
	}
}

// agent adds what learning gains an agent.
func (sum *summary) agent(s *session, v *view.Source) error {
	g, err := v.Gain(s.ctx)
	if err != nil {
		return err
	}
	sum.Gain = append(sum.Gain, gained{v.Name, g, g.Course(view.ByWeek, mostWeeks)})
	latest, err := paged(s, 1, view.AnswerQuery{}, v.Answers)
	for _, a := range latest {
		sum.seen(a.At)
	}
	return err
}

// learner adds which arms lead.
func (sum *summary) learner(s *session, v *view.Source) error {
	status, err := v.Status(s.ctx)
	if status.Learner == "" { // no segment can be read
		return err
	}
	sum.Learners = append(sum.Learners, status)
	for i := range status.Leading {
		sum.seen(status.Leading[i].Updated)
	}
	return sum.sound(s, "choices", err)
}

// rules adds what waits for a person.
func (sum *summary) rules(s *session, v *view.Source) error {
	in, err := v.Inbox(s.ctx, 1)
	sum.Pending, sum.Disputed, sum.Unfit = in.Pending, in.Unsettled, len(in.Unfit)
	waiting, failure := v.Proposals(s.ctx, view.RuleQuery{ // Inbox names the damaged ones
		Status: "pending", Page: view.Page{Limit: mostWaiting},
	})
	sum.Waiting = append(sum.Waiting, waiting.Items...) // [] in JSON
	return errors.Join(err, failure)
}

// faults lists what the doctor finds without reading the whole store.
func (sum *summary) faults(s *session) error {
	d := &diagnosis{}
	all, err := s.at.tenants(s.ctx)
	for _, find := range []error{err, d.events(s), d.models(s), d.frozen(s, mostFrozen)} {
		if err = sum.sound(s, "", find); err != nil {
			return err
		}
	}
	switch idle := s.now().Sub(sum.Written); {
	case sum.Unread: // maybe the newest
	case sum.Written.IsZero() && s.Tenant == "" && len(all) > 0:
		d.warning("all that was learned here belongs to tenants: choose one with --tenant: %s",
			someOf(all))
	case sum.Written.IsZero():
		d.warning("nothing was ever learned here: does the application open this store?")
	case idle > recent:
		d.warning("no process has written here for %s: does the application run, with this store?",
			plural(int(idle/day), "day", "days"))
	}
	sum.Wrong = append(sum.Wrong, d.Findings...)
	return nil
}
