package main

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

type overviewCommand struct{}

// recent is how far an overview looks back, and mostNotes how many notes of a kind it has.
const recent, mostNotes = 7 * day, 5

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

// mostWeeks is how many weeks of the gain an overview has.
const mostWeeks = 8

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
		err := agents.each(s, func(_ checked, v *view.Source, _ []string) error {
			g, err := v.Gain(s.ctx)
			sum.Gain = append(sum.Gain, gained{v.Name, g, g.Course(view.ByWeek, mostWeeks)})
			return err
		})
		if err != nil {
			return err
		}
		err = learners.each(s, func(_ checked, v *view.Source, words []string) error {
			return sum.arms(s, v, words)
		})
		if err != nil {
			return err
		}
		err = services.each(s, func(_ checked, v *view.Source, _ []string) error {
			return sum.rules(s, v)
		})
		if err != nil {
			return err
		}
		if err := sum.others(s); err != nil {
			return err
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

// plainWord is a word that a shell leaves as it is.
var plainWord = regexp.MustCompile(`^[\pL\pN_./:@%+=,-]+$`)

// commandOf writes a command line that can be copied into bash or zsh. Characters that do not print
// are written as these read them.
func commandOf(words ...string) string {
	return "heed " + strings.Join(texts(words, func(word string) string {
		switch quoted := strconv.Quote(word); {
		case plainWord.MatchString(word):
			return word
		case strings.ContainsFunc(word, unprintable):
			return "$'" + strings.ReplaceAll(quoted[1:len(quoted)-1], "'", `\'`) + "'"
		}
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}), " ")
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

// arms lists which arms lead, in the first segments of a learner.
func (sum *summary) arms(s *session, v *view.Source, words []string) error {
	all, err := v.Segments(s.ctx, view.Page{Number: 1, Limit: mostNotes})
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
func (sum *summary) rules(s *session, v *view.Source) error {
	in, err := v.Inbox(s.ctx, mostNotes)
	for i := range in.Proposals {
		p := &in.Proposals[i]
		sum.seen(p.Created)
		quorum := plain("unknown")
		if p.Quorum != nil {
			quorum = say("%v", p.Quorum.String())
		}
		add(&sum.Waiting, say("A proposal: %v Approvals: %v.", p.Text, quorum), "rules", "show",
			p.ID)
	}
	more(&sum.Waiting, "proposals", in.Pending-len(in.Proposals), "rules", "--status", "pending")
	for i := range in.Disputed {
		said := view.Said(&in.Disputed[i].Feedback)
		add(&sum.Waiting, say("A correction may contradict another: %v", said),
			"rules", "list", "--status", ambiguous)
	}
	more(&sum.Waiting, "such corrections", in.Unsettled-len(in.Disputed), "rules", "list",
		"--status", ambiguous)
	for i := range in.Unfit[:min(len(in.Unfit), mostNotes)] {
		rule := &in.Unfit[i]
		add(&sum.Waiting, say("A rule has no effect, or a bad one: %v", rule.Text), "rules", "retire",
			rule.ID)
	}
	more(&sum.Waiting, "such rules", len(in.Unfit)-mostNotes, "rules", "--status", "active")
	return err
}

// others sees what else was written last.
func (sum *summary) others(s *session) error {
	for e, err := range store.AuditEntries(s.ctx, s.at.view, store.AuditQuery{Limit: 1}) {
		if err != nil {
			return err
		}
		sum.seen(e.At)
	}
	d, err := decision.New(s.ctx, decision.Config{Store: s.at.view})
	if err != nil {
		return err
	}
	for t, err := range d.Traces(s.ctx) {
		if err != nil && !errors.Is(err, heed.ErrDamaged) { // the doctor names what is damaged
			return err
		}
		sum.seen(t.At)
		break
	}
	return nil
}

// faults lists what the doctor finds without reading the whole store.
func (sum *summary) faults(s *session) error {
	d := &diagnosis{}
	if err := errors.Join(d.events(s), d.choices(s), d.frozen(s)); err != nil {
		return err
	}
	for _, f := range d.Findings {
		add(&sum.Wrong, say("%v", f.Text), "doctor")
	}
	switch idle := s.now().Sub(sum.Written); {
	case sum.Written.IsZero():
		add(&sum.Wrong, "Nothing was ever learned here. Does the application open this store?",
			"doctor")
	case idle > recent:
		add(&sum.Wrong, say("Nobody has written here for %v. Does the application run, with this "+
			"store?", plural(int(idle/day), "day", "days")), "doctor")
	}
	return nil
}
