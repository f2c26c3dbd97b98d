package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

type forgetCommand struct {
	Person string `arg:"" help:"The name of the person, exactly as hosts record it."`
	change
}

// A forgotten person is one whom a store had in its rows.
type forgottenPerson struct {
	Person string      `json:"person"`
	Tables []namedRows `json:"tables"`
}

// namedRows are those of a table that named a person.
type namedRows struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
	Left  int    `json:"left"` // that still do
}

// Run forgets a person.
func (cmd *forgetCommand) Run(s *session) error {
	if cmd.Person == "" {
		return &usageError{"whom? Name the person"}
	}
	return s.with(func(st *opened) error { return cmd.forget(s, st) })
}

func (cmd *forgetCommand) forget(s *session, st *opened) error {
	before, err := st.search(s, cmd.Person)
	if err != nil {
		return err
	}
	if len(before.rows) == 0 {
		return unknown("person", cmd.Person, slices.Collect(maps.Keys(before.people)), "no row of the store has that name")
	}
	if err := cmd.confirm(s, fmt.Sprintf("This takes %s, whom %s name, out of the store, for good", show(cmd.Person), before)); err != nil {
		return err
	}
	if err := cmd.nameless(); err != nil {
		return err
	}
	if err := st.store.Declare(s.ctx, store.Audit); err != nil {
		return err
	}
	_, err = st.store.Commit(s.ctx, store.Batch{
		Forget: []string{cmd.Person}, Records: []store.Record{cmd.entry("forget", "a person", nil).Record()},
	})
	if errors.Is(err, evidence.ErrForgotten) {
		return cmd.kept(s, st)
	}
	if err != nil {
		return err
	}
	after, err := st.search(s, cmd.Person)
	if err != nil {
		return err
	}
	done := forgottenPerson{Person: cmd.Person}
	for _, table := range before.tables {
		done.Tables = append(done.Tables, namedRows{table, before.rows[table], after.rows[table]})
	}
	return s.answer(done, func(p *printer) {
		p.line("Forgot %s, whom %s named.", show(cmd.Person), before)
		if len(after.rows) > 0 {
			p.line("Their name is still in %s.", after)
		}
	})
}

// nameless reports a reason or an actor by which the audit would name the person.
func (cmd *forgetCommand) nameless() error {
	word := regexp.MustCompile(`(?i)(^|[^\pL\pN])` + regexp.QuoteMeta(cmd.Person) + `($|[^\pL\pN])`)
	switch {
	case word.MatchString(cmd.Reason):
		return &usageError{"the audit would go on naming the person: give a --reason that does not"}
	case strings.EqualFold(cmd.Actor, cmd.Person):
		return &usageError{"the audit would go on naming the person: have somebody else do it, or give another --actor"}
	}
	return nil
}

// kept says what keeps a person from being forgotten.
func (cmd *forgetCommand) kept(s *session, st *opened) error {
	kindOf, kinds := make(map[text.Hash]string), make(map[string]bool)
	for r, err := range st.rows(s.ctx) {
		switch {
		case err != nil:
			return err
		case r.Cell != nil:
			kindOf[r.Cell.Hash] = r.Cell.Kind
		case r.Tally != nil && r.Tally.LostSource:
			kinds[kindOf[r.Tally.Cell]] = true
		}
	}
	return fmt.Errorf("%s is not forgotten, as the history no longer tells who is in sums of %s: reset those (heed strategy reset, "+
		"heed patterns reset, or in the host), and have the host keep sources apart from then on", show(cmd.Person), show(strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")))
}

// A search is what was found of a person in a store.
type search struct {
	person string
	tables []string // that name the person, in the order of an export
	rows   map[string]int
	people map[string]bool // whom rows name as the source of something
}

// String counts the rows that name a person, by table.
func (f *search) String() string {
	var parts []string
	total := 0
	for _, table := range f.tables {
		total += f.rows[table]
		parts = append(parts, fmt.Sprintf("%s %d", table, f.rows[table]))
	}
	return fmt.Sprintf("%s (%s)", plural(total, "row", "rows"), strings.Join(parts, ", "))
}

// search looks for a person in all that a dump of the store has.
func (s *opened) search(on *session, person string) (*search, error) {
	f := &search{person: person, rows: make(map[string]int), people: make(map[string]bool)}
	for r, err := range s.rows(on.ctx) {
		if err != nil {
			return nil, err
		}
		if err := f.look(r); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *search) look(r dump.Row) error {
	if r.Observation != nil {
		f.people[r.Observation.Source] = true
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	if !f.names(value) {
		return nil
	}
	place := placeOf(r)
	if f.rows[place] == 0 {
		f.tables = append(f.tables, place)
	}
	f.rows[place]++
	return nil
}

// names reports whether the person is a value of JSON, or of JSON that is one of its texts, or of the base64 of such.
func (f *search) names(value any) bool {
	switch v := value.(type) {
	case string:
		if v == f.person || v == store.Key("person", f.person) {
			return true
		}
		if plain, err := base64.StdEncoding.DecodeString(v); err == nil && len(plain) > 0 && plain[0] == '{' {
			v = string(plain)
		}
		var inner any
		return strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil && f.names(inner)
	case []any:
		return slices.ContainsFunc(v, f.names)
	case map[string]any:
		for _, inner := range v {
			if f.names(inner) {
				return true
			}
		}
	}
	return false
}
