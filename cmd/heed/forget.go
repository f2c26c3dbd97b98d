package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	ids "github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

type forgetCommand struct {
	Person     string `arg:"" optional:""`
	Everything bool
	change
}

// namedRows counts the rows of a table that named a person.
type namedRows struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
	Left  int    `json:"left"` // that still do
}

// Run forgets a person.
func (cmd *forgetCommand) Run(s *session) error {
	switch {
	case cmd.Everything && (s.Tenant == "" || cmd.Person != ""):
		return &usageError{"--everything takes out all that a --tenant has, and no person"}
	case cmd.Everything:
		return s.with(func() error { return cmd.leave(s) })
	case cmd.Person == "":
		return &usageError{"whom? Name the person"}
	}
	return s.with(func() error {
		before, err := search(s.ctx, s.at, cmd.Person)
		if err != nil {
			return err
		}
		if len(before.rows) == 0 {
			return unknown("person", cmd.Person, slices.Collect(maps.Keys(before.people)),
				"no row of the store has that name")
		}
		if err := cmd.confirm(s, "This takes %v, whom %v name, out of the store, for good", cmd.Person,
			before.words()); err != nil {
			return err
		}
		if err := cmd.forget(s, before); err != nil {
			return err
		}
		after, err := search(s.ctx, s.at, cmd.Person)
		if err != nil {
			return err
		}
		for i, t := range before.rows {
			before.rows[i].Left = after.in(t.Table).Rows
		}
		done := struct {
			Person        string      `json:"person"`
			Tables        []namedRows `json:"tables"`
			Before, After plain       `json:"-"`
		}{cmd.Person, before.rows, before.words(), ""}
		if len(after.rows) > 0 {
			done.After = after.words()
		}
		return s.answer(done, "forgotten")
	})
}

// leave takes a tenant out.
func (cmd *forgetCommand) leave(s *session) error {
	err := cmd.confirm(s, "This takes the tenant %v out of the store with all that it has, for good",
		s.Tenant)
	if err != nil {
		return err
	}
	if err := store.Run(s.ctx, s.at.store, store.Job{At: time.Now(), Leave: s.Tenant}); err != nil {
		return err
	}
	return s.answer(struct {
		Tenant string `json:"tenant"`
	}{s.Tenant}, "left")
}

func (cmd *forgetCommand) forget(s *session, f *mentions) error {
	word := regexp.MustCompile(`(?i)(^|[^\pL\pN])` + regexp.QuoteMeta(cmd.Person) + `($|[^\pL\pN])`)
	if word.MatchString(cmd.Reason) || strings.EqualFold(cmd.Actor, cmd.Person) {
		return &usageError{"the audit would go on naming the person: give a --reason that does not, " +
			"and another --actor than the person"}
	}
	if err := s.at.view.Declare(s.ctx, store.Audit); err != nil {
		return err
	}
	entry := store.AuditEntry{
		ID: rand.Text(), At: time.Now(), Actor: cmd.Actor, Action: "forget", Subject: "a person",
		Reason: cmd.Reason,
	}
	err := store.Do(s.ctx, s.at.view, func(tx *store.Tx) error {
		tx.Put(entry.Record())
		tx.Start(store.Job{At: entry.At, Forget: []string{cmd.Person}})
		return nil
	})
	if errors.Is(err, evidence.ErrForgotten) {
		kinds := strings.Join(slices.Sorted(maps.Keys(f.lost)), ", ")
		return fmt.Errorf("%s is not forgotten, because sums of %s do not name their sources: "+
			"reset those (heed strategy reset, heed patterns reset, or in the host), and have the host "+
			"keep sources apart from then on", show(cmd.Person), kinds)
	}
	return err
}

// Mentions are what was found of a person in a store.
type mentions struct {
	person string
	rows   []namedRows // in the order of an export
	people map[string]bool
	tenant string
	kinds  map[ids.Hash]string // of the tenant's cells
	lost   map[string]bool     // the kinds of sums that do not name their sources
}

// in returns the rows of a table.
func (f *mentions) in(table string) (rows namedRows) {
	for _, t := range f.rows {
		if t.Table == table {
			rows = t
		}
	}
	return rows
}

// words counts the rows that name a person, by table.
func (f *mentions) words() plain {
	total := 0
	parts := texts(f.rows, func(t namedRows) string {
		total += t.Rows
		return fmt.Sprintf("%s %d", t.Table, t.Rows)
	})
	return say("%v (%v)", plural(total, "row", "rows"), parts)
}

// search looks for a person in all that a dump of the store has.
func search(ctx context.Context, in *opened, person string) (*mentions, error) {
	f := &mentions{
		person: person, tenant: in.tenant, people: map[string]bool{}, kinds: map[ids.Hash]string{},
		lost: map[string]bool{},
	}
	for r, err := range in.rows(ctx) {
		if err == nil {
			err = f.look(r)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *mentions) look(r dump.Row) error {
	table := fmt.Sprintf("%T", r)
	switch {
	case r.Record != nil:
		var tenant string
		if table, tenant = store.KindOf(r.Record.Kind); tenant != f.tenant {
			return nil
		}
	case r.Observation != nil:
		if _, ours := f.kinds[r.Observation.Cell]; !ours {
			return nil
		}
		table = "observations"
		f.people[r.Observation.Source] = true
	case r.Cell != nil:
		table = "evidence"
		kind, tenant := store.KindOf(r.Cell.Kind)
		if tenant != f.tenant {
			return nil
		}
		f.kinds[r.Cell.Hash] = kind
	case r.Tally != nil:
		if _, ours := f.kinds[r.Tally.Cell]; !ours {
			return nil
		}
		if table = "evidence"; r.Tally.LostSource {
			f.lost[f.kinds[r.Tally.Cell]] = true
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil || !f.names(value) {
		return err
	}
	i := slices.IndexFunc(f.rows, func(t namedRows) bool { return t.Table == table })
	if i < 0 {
		i, f.rows = len(f.rows), append(f.rows, namedRows{Table: table})
	}
	f.rows[i].Rows++
	return nil
}

// names reports whether the person is a value of JSON, or of JSON that is one of its texts, or of
// the base64 of such.
func (f *mentions) names(value any) bool {
	switch v := value.(type) {
	case string:
		if v == f.person || v == store.Key("person", f.person) {
			return true
		}
		if decoded, err := base64.StdEncoding.DecodeString(v); err == nil {
			v = string(decoded)
		}
		var inner any
		return strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil && f.names(inner)
	case []any:
		return slices.ContainsFunc(v, f.names)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), f.names)
	}
	return false
}
