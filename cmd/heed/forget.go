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
)

type forgetCommand struct {
	Person string `arg:"" help:"The person, by the very name under which hosts record them."`
	change
}

func (forgetCommand) Help() string {
	return `Examples:

    heed --db agent.db forget ann
    heed --db agent.db forget ann --yes --reason "they asked for it"

All that was learned from the person is taken back, as if they had never said it, and can't be brought back. What they decided
stays, with a pseudonym in place of their name. It tells how many rows of which tables had their name as the whole of a value,
and how many still have, such as events of a host's own making. Texts that speak of them are not looked for. The audit has that
somebody was forgotten, and not who: the reason must not name them.`
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
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	return st.explain(cmd.forget(s, st))
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
	if err := st.db.Forget(s.ctx, cmd.Person); errors.Is(err, evidence.ErrForgotten) {
		return cmd.kept(s, st)
	} else if err != nil {
		return err
	}
	if err := st.record(s, &cmd.change, "forget", "a person", nil); err != nil {
		return fmt.Errorf("the person is forgotten, and the audit does not have it (%w)", st.place.explain(err))
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
	rows, err := st.handle.QueryContext(s.ctx, `SELECT DISTINCT c.kind FROM heed_tallies t JOIN heed_cells c ON c.cell = t.cell
		WHERE t.lost_source = 1 ORDER BY c.kind`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var kinds []string
	for rows.Next() {
		var kind string
		if err := rows.Scan(&kind); err != nil {
			return err
		}
		kinds = append(kinds, kind)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%s is not forgotten, as the history no longer tells who is in sums of %s: reset those (heed strategy reset, "+
		"heed patterns reset, or in the host), and have the host keep sources apart from then on", show(cmd.Person), show(strings.Join(kinds, ", ")))
}

// A search is what was found of a person in a store.
type search struct {
	person string
	tables []string // that name the person, in the order of an export
	rows   map[string]int
	people map[string]bool // whom rows name as the source of something
}

// String tells in how many rows of which tables a person is.
func (f *search) String() string {
	var parts []string
	total := 0
	for _, table := range f.tables {
		total += f.rows[table]
		parts = append(parts, fmt.Sprintf("%s %d", table, f.rows[table]))
	}
	return fmt.Sprintf("%s (%s)", plural(total, "row", "rows"), strings.Join(parts, ", "))
}

// search looks for a person in all that an export of the store has.
func (s *opened) search(on *session, person string) (*search, error) {
	f := &search{person: person, rows: make(map[string]int), people: make(map[string]bool)}
	for r, err := range s.rows(on) {
		if err != nil {
			return nil, err
		}
		f.look(r)
	}
	return f, nil
}

func (f *search) look(r row) {
	for _, column := range []string{"source", "result_by"} {
		f.people[r.text(column)] = true
	}
	if payload, err := base64.StdEncoding.DecodeString(r.text("payload")); err == nil && len(payload) > 0 { // of an event
		r.Columns["payload"] = string(payload)
	}
	if !f.names(r.Columns) {
		return
	}
	if f.rows[r.Table] == 0 {
		f.tables = append(f.tables, r.Table)
	}
	f.rows[r.Table]++
}

// names reports whether the person is a value of JSON, or of the JSON in one of its texts.
func (f *search) names(value any) bool {
	switch v := value.(type) {
	case string:
		if v == f.person {
			return true
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
