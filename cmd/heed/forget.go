package main

import (
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
		found, err := search(s, cmd.Person, func(a, b string) bool { return a == b })
		if err != nil {
			return err
		}
		before := found[s.Tenant]
		if len(before) == 0 {
			return notNamed(cmd.Person, found)
		}
		named := plural(len(before), "row", "rows")
		if err := cmd.confirm(s, "This takes %v, whom %v name, out of the store, for good", cmd.Person,
			named); err != nil {
			return err
		}
		if err := cmd.forget(s); err != nil {
			return err
		}
		if found, err = search(s, cmd.Person, strings.EqualFold); err != nil {
			return err
		}
		after, left := found[s.Tenant], plain("")
		if len(after) > 0 {
			left = say(" Their name, in this or another case, is still in %v (%v).",
				plural(len(after), "row", "rows"), slices.Compact(slices.Clone(after)))
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
		Reason: cmd.Reason}
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

// notNamed reports that no row that was looked at names a person, and which tenants' rows do.
func notNamed(person string, found map[string][]string) error {
	see := "no row of the store has that name"
	if _, own := found[""]; own {
		see = "rows that belong to no tenant have that name: leave out --tenant"
	} else if of := slices.Sorted(maps.Keys(found)); len(of) > 0 {
		see = "rows of tenants have that name: forget it with --tenant in each of " + someOf(of)
	}
	return unknown("person", person, see)
}

// search returns, by tenant, the kind of each row with a name that is the same as a person's.
func search(s *session, person string, same func(a, b string) bool) (map[string][]string, error) {
	found := make(map[string][]string)
	for r, err := range s.at.rows(s.ctx) {
		if err != nil {
			return nil, err
		}
		kind, tenant := store.KindOf(r.kind)
		if r.Record == nil {
			kind = "evidence"
		}
		text, err := json.Marshal(r.Row)
		if err != nil {
			return nil, err
		}
		if mentioned(person, string(text), same) {
			found[tenant] = append(found[tenant], kind)
		}
	}
	for _, kinds := range found {
		slices.Sort(kinds)
	}
	return found, nil
}

// mentioned reports whether a person is a value of JSON, or of JSON that is one of its texts, or of
// the base64 of such.
func mentioned(person string, value any, same func(a, b string) bool) bool {
	in := func(v any) bool { return mentioned(person, v, same) }
	switch v := value.(type) {
	case string:
		if same(v, person) || same(v, store.Key("person", person)) {
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
