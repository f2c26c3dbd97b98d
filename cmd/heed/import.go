package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/cmd/heed/internal/past"
	"github.com/heedhq/heed/loop"
)

// A pastLog is a log that was opened. It is read twice.
type pastLog struct {
	*os.File
	past.Mapping
}

// open opens the log, with its mapping.
func (cmd *pastCommand) open() (l *pastLog, err error) {
	l = &pastLog{}
	if l.File, err = openFile(cmd.File); err != nil {
		return nil, err
	}
	if about, failed := l.Stat(); failed == nil && !about.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file that can be read twice: write the log to one first", l.Name())
	} else {
		err = cmd.mapping(l)
	}
	if err != nil {
		err = errors.Join(err, l.Close())
	}
	return l, err
}

func (cmd *pastCommand) mapping(l *pastLog) (err error) {
	if cmd.Map == "" {
		l.Mapping, err = past.Propose(l.File)
		return err
	}
	file, err := openFile(cmd.Map)
	if err != nil {
		return err
	}
	defer file.Close()
	if l.Mapping, err = past.ReadMapping(file); err != nil {
		err = fmt.Errorf("%s: %w", cmd.Map, err)
	}
	return err
}

// rows yields the rows of the log from its beginning, with what is wrong with them. own returns
// what is wrong with an answer beyond the form of its row.
func (l *pastLog) rows(ctx context.Context, own func(*loop.Past) error) iter.Seq2[past.Row, error] {
	return func(yield func(past.Row, error) bool) {
		if _, err := l.Seek(0, io.SeekStart); err != nil {
			yield(past.Row{}, err)
			return
		}
		for row, err := range past.Read(l.File, l.Mapping) {
			row.Event.ID = cmp.Or(row.Event.ID, "past-"+row.Hash)
			input := (*heed.InputError)(nil)
			if errors.As(own(&row.Past), &input) && err == nil {
				err = &past.Fault{At: row.At, Column: input.Field, Reason: input.Reason}
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if !yield(row, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// maxFaults is how many rows at fault are named.
const maxFaults = 20

// A survey is what the first reading of a log found.
type survey struct {
	Rows    int            `json:"rows"` // without faults
	Faults  []string       `json:"faults,omitempty"`
	Bad     int            `json:"bad"` // rows at fault
	Arms    map[string]int `json:"arms,omitempty"`
	People  int            `json:"people"`
	From    time.Time      `json:"from,omitzero"`
	Until   time.Time      `json:"until,omitzero"`
	praises praises
}

// look reads the whole log once, and refuses rows at fault that are not to be skipped.
func (cmd *pastCommand) look(
	ctx context.Context, l *pastLog, own func(*loop.Past) error,
) (survey, error) {
	found := survey{Arms: make(map[string]int), praises: make(praises)}
	seed := maphash.MakeSeed()
	people := make(map[uint64]struct{})
	for row, err := range l.rows(ctx, own) {
		if fault := (*past.Fault)(nil); errors.As(err, &fault) {
			if found.Bad++; len(found.Faults) < maxFaults {
				found.Faults = append(found.Faults, fault.Error())
			}
			continue
		} else if err != nil {
			return found, err
		}
		found.Rows++
		if row.Arm != "" {
			found.Arms[row.Arm]++
		}
		found.praises.add(seed, &row.Past)
		for _, name := range peopleIn(&row.Past) {
			people[maphash.String(seed, name)] = struct{}{}
		}
		if at := row.Event.At; !at.IsZero() {
			if found.From.IsZero() || at.Before(found.From) {
				found.From = at
			}
			if at.After(found.Until) {
				found.Until = at
			}
		}
	}
	found.People = len(people)
	return found, cmd.faults(&found)
}

// peopleIn returns the names of people in an answer. Sources of outcomes may be instruments.
func peopleIn(p *loop.Past) (all []string) {
	if p.Event.Person != "" {
		all = append(all, p.Event.Person)
	}
	for i := range p.Reactions {
		all = append(all, p.Reactions[i].Person)
	}
	for i := range p.Corrections {
		all = append(all, p.Corrections[i].Reviewer)
	}
	return all
}

// faults reports the rows at fault, unless they are to be skipped.
func (cmd *pastCommand) faults(found *survey) error {
	if found.Bad == 0 || cmd.Skip && found.Rows > 0 {
		return nil
	}
	for _, fault := range found.Faults {
		warn("%s", fault)
	}
	if found.Bad > len(found.Faults) {
		warn("and %d more", found.Bad-len(found.Faults))
	}
	return fmt.Errorf("%d of %d rows can't be read, so nothing was used: mend them, or change the "+
		"mapping (--propose, --map), or leave them out with --skip", found.Bad, found.Bad+found.Rows)
}

type pastCommand struct {
	File        string `arg:""`
	Map         string `placeholder:"FILE"`
	Skip        bool
	New         bool
	Propose     bool
	Backtest    bool
	Seed        uint64   `default:"1"`
	Instruments []string `placeholder:"NAME"`
	Suggest     string   `placeholder:"FILE"`
	Actor       string   `env:"HEED_ACTOR" placeholder:"NAME"`
}

// A pastReport is what an import found and did.
type pastReport struct {
	survey
	Store     string        `json:"store"`
	Agent     string        `json:"agent"`
	Tenant    string        `json:"tenant,omitempty"`
	Imported  loop.Imported `json:"imported"`
	Suggested int           `json:"suggested"`
	File      string        `json:"file,omitempty"` // of the suggested heuristics
	Mapping   past.Mapping  `json:"-"`
	Wanted    bool          `json:"-"` // suggestions
}

// Run imports a log.
func (cmd *pastCommand) Run(s *session) (err error) {
	if !s.Now.IsZero() {
		return &usageError{"--now is for looking"}
	}
	l, err := cmd.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if cmd.Propose {
		written, err := json.MarshalIndent(l.Mapping, "", "  ")
		if err == nil {
			s.out.write(escaped(string(written)) + "\n")
		}
		return cmp.Or(err, s.out.err)
	}
	if cmd.Backtest {
		return cmd.backtest(s, l)
	}
	if len(l.Arms) > 0 {
		return &usageError{"the log has what every arm was worth, and not which one answered: " +
			"--backtest shows what heed would have chosen"}
	}
	s.begins = cmd.New
	return s.within(cmd.New, func() error { return cmd.run(s, l) })
}

// backtest tests what heed would have chosen in a log, without a store.
func (cmd *pastCommand) backtest(s *session, l *pastLog) error {
	sound := func(*loop.Past) error { return nil }
	if _, err := cmd.look(s.ctx, l, sound); err != nil {
		return err
	}
	b, err := past.Test(s.ctx, cmd.Seed, func() iter.Seq2[past.Row, error] {
		return l.rows(s.ctx, sound)
	})
	if err != nil {
		return err
	}
	return s.answer(struct {
		past.Backtest
		Mapping past.Mapping `json:"-"`
	}{b, l.Mapping}, "backtest")
}

// importMemory bounds what Go uses while a log is imported; the pages of SQLite come on top.
const importMemory = 80 << 20

func (cmd *pastCommand) run(s *session, l *pastLog) error {
	debug.SetMemoryLimit(min(importMemory, debug.SetMemoryLimit(-1)))
	known, c, err := cmd.settings(s)
	if err != nil {
		return err
	}
	report := pastReport{Store: s.at.String(), Agent: c.Name, Tenant: s.Tenant,
		Mapping: l.Mapping, Wanted: cmd.Suggest != ""}
	cmd.Instruments = c.Instruments
	own := func(p *loop.Past) error { return cmd.own(p, known) }
	if report.survey, err = cmd.look(s.ctx, l, own); err != nil {
		return err
	}
	if len(known) == 0 {
		for _, arm := range slices.Sorted(maps.Keys(report.Arms)) {
			c.Arms = append(c.Arms, loop.Arm{ID: arm})
		}
	}
	agent, err := loop.New(s.ctx, c)
	if err != nil {
		return err
	}
	report.Imported, err = agent.Import(s.ctx, answersIn(l.rows(s.ctx, own), report.Rows),
		actor(cmd.Actor), filepath.Base(l.Name())) // a folder is of one machine
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w after %d of %d rows: the same command goes on there", errInterrupted,
			report.Imported.Rows, report.Rows)
	}
	if err != nil {
		return err
	}
	if err := cmd.suggest(s.ctx, &report); err != nil {
		return err
	}
	return s.answer(report, "import")
}

// settings returns the arms that a host left in the store, and the configuration of an agent with
// the host's settings.
func (cmd *pastCommand) settings(s *session) (map[string]bool, loop.Config, error) {
	known := make(map[string]bool)
	c := loop.Config{
		Store: s.at.view, Instruments: cmd.Instruments,
		RequireStore: true, // nothing is answered, so nothing must be remembered for outages
	}
	err := settle(s, &c, defaultAgent)
	v := s.source()
	v.Name = c.Name
	if err = cmp.Or(err, learners.some(s, v)); v.Strategy != nil { // a tenant may have other arms
		c.Tuning.Strategy = v.Strategy.Config()
	}
	for _, arm := range c.Tuning.Strategy.Arms {
		known[string(arm.ID)] = true
		c.Arms = append(c.Arms, loop.Arm{ID: string(arm.ID), Weight: arm.Weight})
	}
	return known, c, err
}

// own reports what this store does not take.
func (cmd *pastCommand) own(p *loop.Past, known map[string]bool) error {
	if p.Arm != "" && len(known) > 0 && !known[p.Arm] {
		return &heed.InputError{Field: "arm", Reason: fmt.Sprintf(
			"is %.40q, and the agent's arms are %s", p.Arm,
			strings.Join(slices.Sorted(maps.Keys(known)), ", "))}
	}
	for _, name := range peopleIn(p) {
		if slices.Contains(cmd.Instruments, name) {
			return &heed.InputError{Field: "person", Reason: fmt.Sprintf(
				"is %.40q, which is an instrument", name)}
		}
	}
	if p.Event.At.After(time.Now().Add(5 * time.Minute)) {
		return &heed.InputError{Field: "at", Reason: "is in the future"}
	}
	return nil
}

// answersIn yields the answers in rows without those at fault. A terminal shows how far it is.
func answersIn(rows iter.Seq2[past.Row, error], of int) iter.Seq2[loop.Past, error] {
	return func(yield func(loop.Past, error) bool) {
		n, shows := 0, term.IsTerminal(os.Stderr.Fd())
		for row, err := range rows {
			if errors.As(err, new(*past.Fault)) {
				continue
			}
			if n++; shows && n%1024 == 0 {
				fmt.Fprintf(os.Stderr, "\r%d of %d rows", n, of)
			}
			if !yield(row.Past, err) || err != nil {
				break
			}
		}
		if shows {
			fmt.Fprintf(os.Stderr, "\r%40s\r", "")
		}
	}
}

// A lesson is a heuristic as [loop.ReadLessons] reads it.
type lesson struct {
	Action    string `json:"action"`
	Condition string `json:"condition"`
	Domain    string `json:"domain"`
	ID        string `json:"id"`
}

// praises has, by question and answer, whether several people praised it and none rejected it.
type praises map[uint64]*praised

type praised struct {
	lesson
	by                string // who praised it first
	several, rejected bool
}

// maxPraised bounds the answers that are compared for suggestions.
const maxPraised = 50_000

func (all praises) add(seed maphash.Seed, p *loop.Past) {
	if p.Event.Text == "" || p.Text == "" || len(p.Text) > 4096 || len(p.Event.Text) > 512 {
		return
	}
	for _, r := range p.Reactions {
		key := maphash.String(seed, strings.Join([]string{
			p.Event.Domain, strings.ToLower(strings.TrimSpace(p.Event.Text)), p.Text,
		}, "\x00"))
		one := all[key]
		if one == nil && len(all) == maxPraised {
			continue
		}
		if one == nil {
			one = &praised{by: r.Person, lesson: lesson{
				Domain: p.Event.Domain, Condition: p.Event.Text, Action: p.Text,
			}}
			all[key] = one
		}
		one.several = one.several || r.Person != one.by
		one.rejected = one.rejected || r.Value <= 0
	}
}

// heuristics returns the answers that at least two people praised and no person rejected.
func (all praises) heuristics() (found []lesson) {
	for _, one := range all {
		if one.several && !one.rejected {
			found = append(found, one.lesson)
		}
	}
	slices.SortFunc(found, func(a, b lesson) int {
		return cmp.Or(strings.Compare(a.Condition, b.Condition), strings.Compare(a.Action, b.Action))
	})
	for i := range found {
		found[i].ID = fmt.Sprintf("past-%d", i+1)
	}
	return found
}

// suggest writes the heuristics that praised answers suggest as lessons, which people read before
// an agent is taught them.
func (cmd *pastCommand) suggest(ctx context.Context, report *pastReport) error {
	found := report.praises.heuristics()
	if report.Suggested = len(found); cmd.Suggest == "" || len(found) == 0 {
		return nil
	}
	report.File = cmd.Suggest
	return writeNew(ctx, cmd.Suggest, func(_ context.Context, out *os.File) error {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false) // people read it
		return encoder.Encode(map[string]any{"heuristics": found})
	})
}
