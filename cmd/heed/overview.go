package main

import (
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

type overviewCommand struct{}

// recent is how far an overview looks back, mostNotes how many notes of a kind it has, and
// mostWeeks how many weeks of the gain.
const recent, mostNotes, mostWeeks = 7 * day, 5, 8

// A summary is what is most important about a store.
type summary struct {
	Store   string    `json:"store"`
	Engine  string    `json:"engine"`
	Written time.Time `json:"written,omitzero"` // the newest that was seen
	Gain    []gained  `json:"gain"`             // of each agent
	Leading []note    `json:"leading"`
	Waiting []note    `json:"waiting"` // for a person
	Wrong   []note    `json:"wrong"`
}

// A note is a fact about the store, with the command that goes on from there.
type note struct {
	Text    plain  `json:"text"`
	Command string `json:"command,omitempty"`
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
			Store: s.at.String(), Engine: s.at.dialect.String(),
			Gain: []gained{}, Leading: []note{}, Waiting: []note{}, Wrong: []note{},
		}
		for _, of := range []struct {
			part
			add func(*session, *view.Source, []string) error
		}{{agents, sum.agent}, {learners, sum.arms}, {services, sum.rules}} {
			err := of.each(s, func(v *view.Source, words []string) error {
				return of.add(s, v, words)
			})
			if err != nil {
				return err
			}
		}
		for e, err := range store.AuditEntries(s.ctx, s.at.view, store.AuditQuery{Limit: 1}) {
			if err != nil {
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

// seen describes when a record was written.
func (sum *summary) seen(at time.Time) {
	if at.After(sum.Written) {
		sum.Written = at.UTC().Truncate(time.Second)
	}
}

// commandOf writes a command line that can be copied into a shell, or "" for words that do not
// print.
func commandOf(words ...string) string {
	line := "heed"
	for _, word := range words {
		if strings.ContainsFunc(word, unprintable) {
			return ""
		}
		if word == "" || strings.ContainsAny(word, " '\"\\$`!*?[](){}<>|&;#~^") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		line += " " + word
	}
	return line
}

// add adds a note to others, with a command.
func add(to *[]note, words plain, command ...string) {
	*to = append(*to, note{words, commandOf(command...)})
}

// more adds how many are not among the notes.
func more(to *[]note, of plain, n int, command ...string) {
	if n > 0 {
		add(to, say("There are more %v: %v.", of, n), command...)
	}
}

// agent adds what learning gains an agent.
func (sum *summary) agent(s *session, v *view.Source, _ []string) error {
	g, err := v.Gain(s.ctx)
	if err != nil {
		return err
	}
	sum.Gain = append(sum.Gain, gained{v.Name, g, g.Course(view.ByWeek, mostWeeks)})
	latest, err := v.Answers(s.ctx, view.AnswerQuery{Page: view.Page{Limit: 1}})
	for _, a := range latest.Items {
		sum.seen(a.At)
	}
	return err
}

// arms lists which arms lead, in the first segments of a learner.
func (sum *summary) arms(s *session, v *view.Source, words []string) error {
	all, err := v.Segments(s.ctx, view.Page{Limit: mostNotes})
	words = append([]string{"strategy"}, words...)
	for i := range all.Items {
		d := &all.Items[i]
		sum.seen(d.Updated)
		show := slices.Concat(words, []string{"show", d.Category})
		if d.Context != "" {
			show = append(show, "--context="+d.Context)
		}
		leads := "%v leads in %v with %v, %v sure to be the best."
		if !d.Clear() {
			leads = "No arm clearly leads: %v is first in %v with %v, %v sure to be the best."
		}
		add(&sum.Leading, say(leads, d.Leading, segmentName(d.Category, d.Context), d.Lead().Mean,
			percent(d.Best)), show...)
	}
	more(&sum.Leading, "segments", all.Total-len(all.Items), append(words, "distributions")...)
	return err
}

// rules lists what waits for a person.
func (sum *summary) rules(s *session, v *view.Source, _ []string) error {
	in, err := v.Inbox(s.ctx, mostNotes)
	for i := range in.Proposals {
		p := &in.Proposals[i]
		sum.seen(p.Created)
		add(&sum.Waiting, say("A proposal: %v. Approvals: %v.",
			strings.TrimRight(p.Text, ". \n"), p.Quorum.String()), "rules",
			"show", p.ID)
	}
	more(&sum.Waiting, "proposals", in.Pending-len(in.Proposals), "rules", "--status", "pending")
	for i := range in.Disputed {
		add(&sum.Waiting, say("A correction may contradict another: %v",
			view.Said(&in.Disputed[i].Feedback)), "serve")
	}
	more(&sum.Waiting, "such corrections", in.Unsettled-len(in.Disputed), "serve")
	for i := range in.Unfit[:min(len(in.Unfit), mostNotes)] {
		rule := &in.Unfit[i]
		add(&sum.Waiting, say("A rule has no effect, or a bad one: %v", rule.Text), "rules", "retire",
			rule.ID)
	}
	more(&sum.Waiting, "such rules", len(in.Unfit)-mostNotes, "rules", "--status", "active")
	return err
}

// faults lists what the doctor finds without reading the whole store.
func (sum *summary) faults(s *session) error {
	d := &diagnosis{}
	for _, look := range []func(*session) error{d.events, d.choices, d.frozen} {
		if err := look(s); err != nil {
			return err
		}
	}
	switch idle := s.now().Sub(sum.Written); {
	case sum.Written.IsZero():
		d.warning("nothing was ever learned here: does the application open this store?")
	case idle > recent:
		d.warning("no process has written here for %s: does the application run, with this store?",
			plural(int(idle/day), "day", "days"))
	}
	for _, f := range d.Findings {
		add(&sum.Wrong, say("%v", f.Text), "doctor")
	}
	return nil
}
