package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
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
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// withoutStore says how to get a store.
const withoutStore = `heed shows what an agent has learned: name its store with --db FILE, or in HEED_DB.
To see one that a simulated agent fills, run: heed demo --open
All commands: heed --help`

// Run sums up the store.
func (overviewCommand) Run(s *session) error {
	if s.DB == "" && !s.JSON {
		for line := range strings.SplitSeq(withoutStore, "\n") {
			s.out.line("%s", line)
		}
		return s.out.err
	}
	var sum summary
	err := s.with(func(st *opened) error {
		sum = summary{
			Store: st.String(), Engine: st.dialect.String(), Since: s.now().Add(-recent).UTC().Truncate(time.Second),
			Learned: []note{}, Waiting: []note{}, Wrong: []note{},
		}
		for _, look := range []func(*session, *opened) error{sum.arms, sum.trusts, sum.ways, sum.rules, sum.others, sum.faults} {
			if err := look(s, st); err != nil {
				return err
			}
		}
		return nil
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

// each calls a function with everything of a kind that a host has opened, and the words that name it on the command line.
func (t tool[T]) each(s *session, st *opened, group string, do func(one T, words []string) error) error {
	names, err := t.names(s.ctx, st.store)
	if err != nil {
		return err
	}
	for _, name := range names {
		one, err := t.one(s, st, name)
		if errors.Is(err, errNone) {
			continue
		} else if err != nil {
			return err
		}
		words := []string{"heed", group}
		if len(names) > 1 {
			words = append(words, "--"+t.flag+"="+name)
		}
		if err := do(one, words); err != nil {
			return err
		}
	}
	return nil
}

// plainWord is a word that a shell leaves as it is.
var plainWord = regexp.MustCompile(`^[\pL\pN_./:@%+=,-]+$`)

// commandOf writes a command line that can be copied into bash or zsh. Characters that do not print are written as these read them.
func commandOf(words ...string) string {
	var line []string
	for _, word := range words {
		switch {
		case plainWord.MatchString(word):
			line = append(line, word)
		case strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }):
			quoted := strconv.Quote(word)
			line = append(line, "$'"+strings.ReplaceAll(quoted[1:len(quoted)-1], "'", `\'`)+"'")
		default:
			line = append(line, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
		}
	}
	return strings.Join(line, " ")
}

// arms tells which arms lead, and which got better or worse.
func (sum *summary) arms(s *session, st *opened) error {
	return learners.each(s, st, "strategy", func(l *strategy.Learner, words []string) error {
		v := &view.Source{Store: st.store, Strategy: l, Now: s.now}
		all, last, err := v.Learned(s.ctx, s.now().Add(-recent))
		sum.seen(last)
		var moved, leading []note
		for i := range all {
			d := &all[i]
			about := []string{"show", d.Category}
			if slices.ContainsFunc(all, func(other view.Learned) bool {
				return other.Category == d.Category && other.Context != d.Context
			}) {
				about = append(about, "--context="+d.Context)
			}
			command, name := commandOf(slices.Concat(words, about)...), segmentName(d.Category, d.Context)
			for _, arm := range d.Moved {
				better := "better"
				if arm.Now < arm.Before {
					better = "worse"
				}
				moved = append(moved, note{fmt.Sprintf("%s got %s in %s: a mean reward of %s, before %s.",
					show(string(arm.Arm)), better, name, share(arm.Now), share(arm.Before)), command})
			}
			if len(d.Moved) > 0 {
				continue
			}
			leads := "%s leads in %s with %s, %s sure to be the best."
			if !d.Clear() {
				leads = "No arm clearly leads: %s is first in %s with %s, %s sure to be the best."
			}
			leading = append(leading, note{fmt.Sprintf(leads, show(string(d.Leading)), name,
				share(d.Lead().Mean), percent(d.Best)), command})
		}
		more := commandOf(append(words, "distributions")...)
		sum.Learned = append(sum.Learned, some(slices.Concat(moved, leading), "segments", more)...)
		return err
	})
}

// some returns the first of some notes, and says where the others are.
func some(notes []note, of, command string) []note {
	if more := len(notes) - mostNotes; more > 0 {
		text := fmt.Sprintf("There are more %s: %d.", of, more)
		notes = append(notes[:mostNotes:mostNotes], note{text, command})
	}
	return notes
}

// trusts tells which heuristics earned or lost trust.
func (sum *summary) trusts(s *session, st *opened) error {
	return modules.each(s, st, "confidence", func(m *learning.Module, words []string) error {
		v := &view.Source{Store: st.store, Learning: m, Now: s.now}
		all, last, err := v.Trusts(s.ctx, s.now().Add(-recent))
		sum.seen(last)
		var notes []note
		for _, h := range all {
			verb := "earned"
			if h.Now < h.Before {
				verb = "lost"
			}
			notes = append(notes, note{fmt.Sprintf("%s %s trust: its confidence is %s, before %s.",
				show(h.ID), verb, atLeast(h.Now), share(h.Before)),
				commandOf(append(slices.Clone(words), h.ID)...)})
		}
		sum.Learned = append(sum.Learned, some(notes, "heuristics", commandOf(words...))...)
		return err
	})
}

// ways tells which ways of working have changed their state.
func (sum *summary) ways(s *session, st *opened) error {
	return recorders.each(s, st, "patterns", func(r *patterns.Recorder, words []string) error {
		v := &view.Source{Store: st.store, Patterns: r, Now: s.now}
		all, last, err := v.Changes(s.ctx, s.now().Add(-recent))
		sum.seen(last)
		var notes []note
		for _, c := range all {
			notes = append(notes, note{
				fmt.Sprintf("%s is %s now, and was %s.", show(string(c.ID)), c.To, c.From),
				commandOf(append(slices.Clone(words), string(c.ID))...),
			})
		}
		sum.Learned = append(sum.Learned, some(notes, "changes", commandOf(words...))...)
		return err
	})
}

// rules tells which rules became active, and what waits for a person.
func (sum *summary) rules(s *session, st *opened) error {
	f, err := services.one(s, st, "")
	if errors.Is(err, errNone) {
		return nil
	}
	if err != nil {
		return err
	}
	v := &view.Source{Store: st.store, Feedback: f, Now: s.now}
	r, err := v.Inbox(s.ctx, mostNotes)
	if err != nil {
		return err
	}
	var active, unfit []note
	for _, rule := range r.Active {
		if !rule.Since.Before(sum.Since) {
			sum.seen(rule.Since)
			active = append(active, note{
				"A rule is in prompts of " + list(rule.Agents, "all") + " now: " + show(rule.Text),
				commandOf("heed", "rules", "show", rule.ID),
			})
		}
		if !rule.RetireProposed.IsZero() {
			unfit = append(unfit, note{"A rule has no effect, or a bad one: " + show(rule.Text),
				commandOf("heed", "rules", "retire", rule.ID)})
		}
	}
	sum.Learned = append(sum.Learned, some(active, "rules", "heed rules --status active")...)
	sum.proposals(f, &r)
	for i := range r.Disputed {
		text := "A correction may contradict another: " + show(view.Said(&r.Disputed[i]))
		sum.Waiting = append(sum.Waiting, note{text, seeAmbiguous})
	}
	if more := r.Unsettled - len(r.Disputed); more > 0 {
		text := fmt.Sprintf("There are more such corrections: %d.", more)
		sum.Waiting = append(sum.Waiting, note{text, seeAmbiguous})
	}
	sum.Waiting = append(sum.Waiting, some(unfit, "such rules", "heed rules --status active")...)
	waiting, err := v.Waiting(s.ctx, "")
	n := 0
	for i := range waiting {
		if c := &waiting[i]; c.Class != feedback.Ambiguous {
			sum.seen(c.At)
			n++
		}
	}
	if n > 0 {
		text := plural(n, "correction waits", "corrections wait") + " for others that say the same."
		sum.Waiting = append(sum.Waiting, note{text, "heed rules list --status " + unproposed})
	}
	return err
}

const seeAmbiguous = "heed rules list --status " + ambiguous

// proposals tells what waits for approval.
func (sum *summary) proposals(f *feedback.Service, r *view.Inbox) {
	for i := range r.Proposals {
		p := &r.Proposals[i]
		sum.seen(p.Created)
		quorum := view.QuorumOf(p, f.Config().Gate).Words(show)
		sum.Waiting = append(sum.Waiting, note{
			fmt.Sprintf("A proposal: %s Approvals: %s.", show(p.Text), quorum),
			commandOf("heed", "rules", "show", p.ID),
		})
	}
	if more := r.Pending - len(r.Proposals); more > 0 {
		sum.Waiting = append(sum.Waiting, note{fmt.Sprintf("There are more proposals: %d.", more), "heed rules --status pending"})
	}
}

// others sees what else was written last.
func (sum *summary) others(s *session, st *opened) error {
	for e, err := range store.AuditEntries(s.ctx, st.store, store.AuditQuery{Limit: 1}) {
		if err != nil {
			return err
		}
		sum.seen(e.At)
	}
	d, err := decision.New(s.ctx, decision.Config{Store: st.store})
	if err != nil {
		return err
	}
	for t, err := range d.Traces(s.ctx) {
		if errors.Is(err, heed.ErrDamaged) {
			break // the doctor names it
		} else if err != nil {
			return err
		}
		sum.seen(t.At)
		break
	}
	return nil
}

// faults tells what of the doctor's is found without reading the whole store.
func (sum *summary) faults(s *session, st *opened) error {
	d := &diagnosis{}
	if err := d.events(s, st); err != nil {
		return err
	}
	if err := d.choices(s, st); err != nil {
		return err
	}
	dead := 0
	for e, err := range stream.Waiting(s.ctx, st.store) {
		if err != nil {
			return err
		}
		if e.Topic == attribution.DeadTopic {
			dead++
		}
	}
	if dead > 0 {
		sum.Wrong = append(sum.Wrong, note{plural(dead, "dead letter waits", "dead letters wait") + " in the outbox: events that could not be applied.", "heed doctor"})
	}
	for _, f := range d.Findings {
		sum.Wrong = append(sum.Wrong, note{f.Text, "heed doctor"})
	}
	switch idle := s.now().Sub(sum.Written); {
	case sum.Written.IsZero():
		sum.Wrong = append(sum.Wrong, note{"Nothing was ever learned here. Does the application open this store?", "heed doctor"})
	case idle > recent:
		sum.Wrong = append(sum.Wrong, note{fmt.Sprintf("Nobody has written here for %s. Does the application run, with this store?", plural(int(idle/day), "day", "days")), ""})
	}
	return nil
}

func (sum *summary) print(p *printer) {
	p.heading("%s: %s", show(sum.Store), sum.Engine)
	if !sum.Written.IsZero() {
		p.line("Last written %s.", moment(sum.Written))
	}
	p.printf("\n")
	notes(p, fmt.Sprintf("Learned since %s", moment(sum.Since)), sum.Learned, "Nothing new.")
	notes(p, "Waits for a person", sum.Waiting, "Nothing waits.")
	notes(p, "Wrong", sum.Wrong, "Nothing that shows at once. heed doctor reads the whole store.")
	if os.Getenv("HEED_DB") == "" {
		p.line("Give these commands the same --db, or set HEED_DB.")
	}
	p.line("All commands: heed --help")
}

// notes prints notes below a heading.
func notes(p *printer, heading string, all []note, none string) {
	p.heading("%s", heading)
	if len(all) == 0 {
		p.indented(none)
	}
	for _, n := range all {
		p.indented(n.Text)
		if n.Command != "" {
			p.indented("  " + n.Command)
		}
	}
	p.printf("\n")
}
