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
			return unknown("person", cmd.Person, nil, "no row of the store has that name")
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
		left := plain("")
		if len(after.rows) > 0 {
			left = say(" Their name is still in %v.", after.words())
		}
		return s.told(map[string]any{"person": cmd.Person, "rows": before.rows, "left": after.rows},
			"Forgot %v, whom %v named.%v", cmd.Person, before.words(), left)
	})
}

// leave takes a tenant out.
func (cmd *forgetCommand) leave(s *session) error {
	err := cmd.confirm(s, "This takes the tenant %v out of the store with all that it has, for good",
		s.Tenant)
	if err == nil {
		err = store.Run(s.ctx, s.at.store, store.Job{At: time.Now(), Leave: s.Tenant})
	}
	if err != nil {
		return err
	}
	return s.told(map[string]string{"tenant": s.Tenant}, "Took out the tenant %v.", s.Tenant)
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
		return fmt.Errorf("%s is not forgotten, because sums of %s do not name their sources: "+
			"reset those (heed strategy reset, or in the host), and have the host keep sources apart "+
			"from then on", show(cmd.Person), strings.Join(slices.Sorted(maps.Keys(f.lost)), ", "))
	}
	return err
}

// Mentions are what was found of a person in a store.
type mentions struct {
	person, tenant string
	rows           map[string]int      // that name the person, by table
	kinds          map[ids.Hash]string // of the tenant's cells
	lost           map[string]bool     // the kinds of sums that do not name their sources
}

// words counts the rows that name a person, by table.
func (f *mentions) words() plain {
	total := 0
	parts := texts(slices.Sorted(maps.Keys(f.rows)), func(table string) string {
		total += f.rows[table]
		return fmt.Sprintf("%s %d", table, f.rows[table])
	})
	return say("%v (%v)", plural(total, "row", "rows"), parts)
}

// search looks for a person in all that a dump of the store has.
func search(ctx context.Context, in *opened, person string) (*mentions, error) {
	f := &mentions{person, in.tenant, map[string]int{}, map[ids.Hash]string{}, map[string]bool{}}
	for r, err := range in.rows(ctx) {
		if err != nil {
			return nil, err
		}
		table, ours := f.tableOf(&r)
		if !ours {
			continue
		}
		var value any
		text, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		if err != nil {
			return nil, err
		}
		if f.names(value) {
			f.rows[table]++
		}
	}
	return f, nil
}

// tableOf returns what table a row is of, and whether it is the tenant's.
func (f *mentions) tableOf(r *dump.Row) (table string, ours bool) {
	switch {
	case r.Record != nil:
		kind, tenant := store.KindOf(r.Record.Kind)
		return kind, tenant == f.tenant
	case r.Observation != nil:
		_, ours = f.kinds[r.Observation.Cell]
		return "observations", ours
	case r.Cell != nil:
		kind, tenant := store.KindOf(r.Cell.Kind)
		if ours = tenant == f.tenant; ours {
			f.kinds[r.Cell.Hash] = kind
		}
	case r.Tally != nil:
		var kind string
		if kind, ours = f.kinds[r.Tally.Cell]; ours && r.Tally.LostSource {
			f.lost[kind] = true
		}
	default:
		return "others", true
	}
	return "evidence", ours
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
