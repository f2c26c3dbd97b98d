package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
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
		s.begins = true // for what an interrupted call left
		return s.with(func() error { return cmd.leave(s) })
	case cmd.Person == "":
		return &usageError{"whom? Name the person"}
	}
	return s.with(func() error {
		before, err := search(s.ctx, s.at, cmd.Person)
		if err != nil {
			return err
		}
		if len(before) == 0 {
			return unknown("person", cmd.Person, "no row of the store has that name")
		}
		named := plural(len(before), "row", "rows")
		if err := cmd.confirm(s, "This takes %v, whom %v name, out of the store, for good", cmd.Person,
			named); err != nil {
			return err
		}
		if err := cmd.forget(s); err != nil {
			return err
		}
		after, err := search(s.ctx, s.at, cmd.Person)
		if err != nil {
			return err
		}
		left := plain("")
		if len(after) > 0 {
			left = say(" Their name is still in %v (%v).", plural(len(after), "row", "rows"),
				slices.Compact(slices.Clone(after)))
		}
		return s.told(map[string]any{
			"person": cmd.Person, "rows": len(before), "left": slices.Concat([]string{}, after),
		}, "Forgot %v, whom %v named.%v", cmd.Person, named, left)
	})
}

// leave takes a tenant out. What an interrupted call left of it can't be read any more, so that a
// tenant without rows is taken out too, and then reported as unknown.
func (cmd *forgetCommand) leave(s *session) error {
	known, err := s.at.has(s.ctx, s.Tenant)
	if err != nil {
		return err
	}
	err = cmd.confirm(s, "This takes the tenant %v out of the store with all that it has, for good",
		s.Tenant)
	if err == nil {
		err = store.Run(s.ctx, s.at.store, store.Job{At: time.Now(), Leave: s.Tenant})
	}
	if err == nil && !known {
		err = s.knownTenant()
	}
	if err != nil {
		return err
	}
	return s.told(map[string]string{"tenant": s.Tenant}, "Took out the tenant %v.", s.Tenant)
}

// forget takes the person out, and records that somebody was.
func (cmd *forgetCommand) forget(s *session) error {
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
		return fmt.Errorf("%s is not forgotten, because some sums do not name their sources: reset "+
			"those (heed strategy reset, or in the host), and have the host keep sources apart: %w",
			show(cmd.Person), err)
	}
	return err
}

// search returns the kind of each row that names a person, among all that a dump of the tenant has,
// in order.
func search(ctx context.Context, in *opened, person string) (kinds []string, _ error) {
	for r, err := range rows(func(to io.Writer) error { return in.only(ctx, to) }) {
		if err != nil {
			return nil, err
		}
		kind := "evidence"
		if r.Record != nil {
			kind, _ = store.KindOf(r.Record.Kind)
		}
		var value any
		text, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		if err != nil {
			return nil, err
		}
		if mentioned(person, value) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds, nil
}

// mentioned reports whether a person is a value of JSON, or of JSON that is one of its texts, or of
// the base64 of such.
func mentioned(person string, value any) bool {
	in := func(v any) bool { return mentioned(person, v) }
	switch v := value.(type) {
	case string:
		if v == person || v == store.Key("person", person) {
			return true
		}
		if decoded, err := base64.StdEncoding.DecodeString(v); err == nil {
			v = string(decoded)
		}
		var inner any
		return strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil && in(inner)
	case []any:
		return slices.ContainsFunc(v, in)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), in)
	}
	return false
}
