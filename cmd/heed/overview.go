package main

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

type overviewCommand struct{}

// recent is how far an overview looks back, and mostNotes how many notes of a kind it has.
const recent, mostNotes = 7 * day, 5

// A summary is what somebody should know who looks at a store.
type summary struct {
	Store   string    `json:"store"`
	Engine  string    `json:"engine"`
	Since   time.Time `json:"since"`
	Written time.Time `json:"written,omitzero"` // the newest that was seen
	Learned []note    `json:"learned"`
	Waiting []note    `json:"waiting"` // for a person
	Wrong   []note    `json:"wrong"`
}

// A note is something to know, with the command that goes on from there.
type note struct {
	Text    plain  `json:"text"`
	Command string `json:"command,omitempty"`
}

// withoutStore says how to get a store.
const withoutStore = `heed shows what an agent has learned: name its store with --db FILE, or in HEED_DB.
To see one that a simulated agent fills, run: heed demo
All commands: heed --help`

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
			Since:   s.now().Add(-recent).UTC().Truncate(time.Second),
			Learned: []note{}, Waiting: []note{}, Wrong: []note{},
		}
		for _, read := range []struct {
			t    part
			into func(*session, *view.Source, []string) error
		}{
			{learners, sum.arms}, {modules, sum.trusts}, {recorders, sum.ways}, {services, sum.rules},
		} {
			if err := read.t.each(s, func(_ checked, v *view.Source, words []string) error {
				return read.into(s, v, words)
			}); err != nil {
				return err
			}
		}
		if err := sum.others(s); err != nil {
			return err
		}
		return sum.faults(s)
	})
	if err != nil {
		return err
	}
	return s.answer(sum, sum.print)
}

// seen tells when something was written.
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

// add adds notes to others: the first ones, and where the rest is.
func add(to *[]note, notes []note, of plain, command ...string) {
	if more := len(notes) - mostNotes; more > 0 {
		rest := note{say("There are more %v: %v.", of, more), commandOf(command...)}
		notes = append(notes[:mostNotes:mostNotes], rest)
	}
	*to = append(*to, notes...)
}

// arms tells which arms lead, and which got better or worse.
func (sum *summary) arms(s *session, v *view.Source, words []string) error {
	all, last, err := v.Learned(s.ctx, s.now().Add(-recent))
	sum.seen(last)
	words = append([]string{"strategy"}, words...)
	var moved, leading []note
	for i := range all {
		d := &all[i]
		about := []string{"show", d.Category}
		if slices.ContainsFunc(all, func(other view.Learned) bool {
			return other.Category == d.Category && other.Context != d.Context
		}) {
			about = append(about, "--context="+d.Context)
		}
		command := commandOf(slices.Concat(words, about)...)
		name := segmentName(d.Category, d.Context)
		for _, arm := range d.Moved {
			better := "better"
			if arm.Now < arm.Before {
				better = "worse"
			}
			moved = append(moved, note{say("%v got %v in %v: a mean reward of %v, before %v.", arm.Arm,
				better, name, arm.Now, arm.Before), command})
		}
		if len(d.Moved) > 0 {
			continue
		}
		leads := "%v leads in %v with %v, %v sure to be the best."
		if !d.Clear() {
			leads = "No arm clearly leads: %v is first in %v with %v, %v sure to be the best."
		}
		leading = append(leading, note{say(leads, d.Leading, name, d.Lead().Mean, percent(d.Best)),
			command})
	}
	add(&sum.Learned, append(moved, leading...), "segments", append(words, "distributions")...)
	return err
}

// trusts tells which heuristics earned or lost trust.
func (sum *summary) trusts(s *session, v *view.Source, words []string) error {
	all, last, err := v.Trusts(s.ctx, s.now().Add(-recent))
	sum.seen(last)
	words = append([]string{"confidence"}, words...)
	var notes []note
	for _, h := range all {
		verb := "earned"
		if h.Now < h.Before {
			verb = "lost"
		}
		notes = append(notes, note{say("%v %v trust: its confidence is %v, before %v.", h.ID, verb,
			atLeast(h.Now), h.Before), commandOf(append(slices.Clone(words), h.ID)...)})
	}
	add(&sum.Learned, notes, "heuristics", words...)
	return err
}

// ways tells which ways of working have changed their state.
func (sum *summary) ways(s *session, v *view.Source, words []string) error {
	all, last, err := v.Changes(s.ctx, s.now().Add(-recent))
	sum.seen(last)
	words = append([]string{"patterns"}, words...)
	var notes []note
	for _, c := range all {
		notes = append(notes, note{say("%v is %v now, and was %v.", c.ID, c.To, c.From),
			commandOf(append(slices.Clone(words), string(c.ID))...)})
	}
	add(&sum.Learned, notes, "changes", words...)
	return err
}

// rules tells which rules became active, and what waits for a person.
func (sum *summary) rules(s *session, v *view.Source, _ []string) error {
	in, err := v.Inbox(s.ctx, mostNotes)
	if err != nil {
		return err
	}
	var active, unfit []note
	for i := range in.Active {
		rule := &in.Active[i]
		if !rule.Since.Before(sum.Since) {
			sum.seen(rule.Since)
			active = append(active, note{say("A rule is in prompts of %v now: %v",
				list(rule.Agents, "all"), rule.Text), commandOf("rules", "show", rule.ID)})
		}
		if !rule.RetireProposed.IsZero() {
			unfit = append(unfit, note{say("A rule has no effect, or a bad one: %v", rule.Text),
				commandOf("rules", "retire", rule.ID)})
		}
	}
	add(&sum.Learned, active, "rules", "rules", "--status", "active")
	for i := range in.Proposals {
		p := &in.Proposals[i]
		sum.seen(p.Created)
		sum.Waiting = append(sum.Waiting, note{say("A proposal: %v Approvals: %v.", p.Text,
			show(p.Quorum.String())),
			commandOf("rules", "show", p.ID)})
	}
	if more := in.Pending - len(in.Proposals); more > 0 {
		sum.Waiting = append(sum.Waiting, note{say("There are more proposals: %v.", more),
			commandOf("rules", "--status", "pending")})
	}
	see := commandOf("rules", "list", "--status", ambiguous)
	for i := range in.Disputed {
		sum.Waiting = append(sum.Waiting, note{say("A correction may contradict another: %v",
			view.Said(&in.Disputed[i])), see})
	}
	if more := in.Unsettled - len(in.Disputed); more > 0 {
		sum.Waiting = append(sum.Waiting, note{say("There are more such corrections: %v.", more), see})
	}
	add(&sum.Waiting, unfit, "such rules", "rules", "--status", "active")
	waiting, err := v.Waiting(s.ctx, "")
	n := 0
	for i := range waiting {
		if c := &waiting[i]; c.Class != feedback.Ambiguous {
			sum.seen(c.At)
			n++
		}
	}
	if n > 0 {
		sum.Waiting = append(sum.Waiting, note{
			plural(n, "correction waits", "corrections wait") + " for others that say the same.",
			commandOf("rules", "list", "--status", unproposed)})
	}
	return err
}

// others sees what else was written last.
func (sum *summary) others(s *session) error {
	for e, err := range store.AuditEntries(s.ctx, s.at.store, store.AuditQuery{Limit: 1}) {
		if err != nil {
			return err
		}
		sum.seen(e.At)
	}
	d, err := decision.New(s.ctx, decision.Config{Store: s.at.store})
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

// faults tells what of the doctor's is found without reading the whole store.
func (sum *summary) faults(s *session) error {
	d := &diagnosis{}
	if err := errors.Join(d.events(s), d.choices(s)); err != nil {
		return err
	}
	dead := 0
	for e, err := range stream.Waiting(s.ctx, s.at.store) {
		if err != nil {
			return err
		}
		if e.Topic == attribution.DeadTopic {
			dead++
		}
	}
	wrong := func(words plain) { sum.Wrong = append(sum.Wrong, note{words, "heed doctor"}) }
	if dead > 0 {
		wrong(plural(dead, "dead letter waits", "dead letters wait") +
			" in the outbox: events that could not be applied.")
	}
	for _, f := range d.Findings {
		wrong(say("%v", f.Text))
	}
	switch idle := s.now().Sub(sum.Written); {
	case sum.Written.IsZero():
		wrong("Nothing was ever learned here. Does the application open this store?")
	case idle > recent:
		wrong(say("Nobody has written here for %v. Does the application run, with this store?",
			plural(int(idle/day), "day", "days")))
	}
	return nil
}

func (sum *summary) print(p *printer) {
	p.heading("%v: %v", sum.Store, sum.Engine)
	if !sum.Written.IsZero() {
		p.line("Last written %v.", sum.Written)
	}
	for _, part := range []struct {
		heading plain
		notes   []note
		none    plain
	}{
		{say("Learned since %v", sum.Since), sum.Learned, "Nothing new."},
		{"Waits for a person", sum.Waiting, "Nothing waits."},
		{"Wrong", sum.Wrong, "Nothing that shows at once. heed doctor reads the whole store."},
	} {
		p.blank()
		p.heading("%v", part.heading)
		if len(part.notes) == 0 {
			p.block("  ", "  ", part.none)
		}
		for _, n := range part.notes {
			p.block("  ", "  ", n.Text)
			if n.Command != "" {
				p.block("    ", "    ", plain(n.Command))
			}
		}
	}
	p.blank()
	if os.Getenv("HEED_DB") == "" {
		p.line("Give these commands the same --db, or set HEED_DB.")
	}
	p.line("All commands: heed --help")
}
