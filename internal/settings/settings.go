// Package settings keeps the settings of a component in its store, so that all that use the store
// agree on them.
package settings

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A Field is one setting of a component.
type Field struct {
	// Name is the setting's, unique in its component, for example "maturity.half_life".
	Name string
	// Value points to the setting in the configuration in force, with defaults applied. JSON must
	// keep it exactly.
	Value any
	// Set reports that the host set a fixed field.
	Set bool
	// Fixed reports that the setting changes what is stored. A host that sets another value than the
	// stored one is refused; a host that does not set it gets the stored one, whatever the default is
	// by now. A field that is not fixed applies when evidence is read: the host's is taken over, and
	// the change is audited.
	Fixed bool
}

// show returns a value of the field for people to read.
func (f *Field) show(value json.RawMessage) string {
	var d time.Duration
	if _, ok := f.Value.(*time.Duration); ok && json.Unmarshal(value, &d) == nil {
		return valid.HalfLife(d)
	}
	return string(value)
}

// today returns a stored value as this version writes it, or as it is if it can't be read. A value
// with a setting that is gone is thus no change.
func (f *Field) today(stored json.RawMessage) json.RawMessage {
	value := reflect.New(reflect.TypeOf(f.Value).Elem())
	if json.Unmarshal(stored, value.Interface()) != nil {
		return stored
	}
	text, _ := json.Marshal(value.Interface()) // what was read can be written
	return text
}

// A Component is what has settings: a learner, a module. Its name is unique in the store. Its
// fields point into the configuration in force, so reconciling may change that.
type Component struct {
	// Name is unique in the store, for example "strategy/routing". Fields are all settings.
	Name   string
	Fields []Field
}

// A Value is a setting as it is stored.
type Value struct {
	// Fixed is as in [Field], and Value is the JSON of the setting.
	Fixed bool            `json:"fixed,omitempty"`
	Value json.RawMessage `json:"value"`
}

// A row is the record of a component: its settings by name, and when they last changed.
type row struct {
	Component string           `json:"component"`
	At        time.Time        `json:"at"`
	Fields    map[string]Value `json:"fields"`
}

// kind has a record for each component, with the component's name as its id.
var kind = store.View[row]{
	Kind: store.Kind{Name: "heed.settings"},
	Place: func(r row) (string, time.Time, []string) {
		return r.Component, r.At, nil
	},
}

// Open keeps the component's settings in the store, where they are not there yet, and reconciles
// the two where they are: see [Field]. It declares the kinds that it needs. A refusal is a
// [*heed.SettingsError].
//
// Several processes may open a component at the same time: the store lets one of them write, and
// the others read what it wrote. A component that is new gets no entry in the audit, because no
// setting changed. If no setting changed, there is no write, so a program that starts often costs
// one read.
func Open(ctx context.Context, st store.Store, now time.Time, c Component) error {
	if err := st.Declare(ctx, kind.Kind, store.Audit); err != nil {
		return err
	}
	return store.Do(ctx, st, func(tx *store.Tx) error {
		kept, err := kind.In(tx, c.Name)
		if err != nil {
			return err
		}
		next, changes, err := c.reconcile(kept.Value)
		if err != nil || changes == nil {
			return err
		}
		next.At = now.UTC().Truncate(time.Microsecond)
		kind.Put(tx, next, kept.Revision)
		if kept.Revision > 0 && len(changes) > 0 {
			tx.Put(store.AuditEntry{
				ID: store.IDOf("settings", c.Name, fmt.Sprint(kept.Revision)),
				At: now, Action: "settings", Subject: c.Name, Details: changes,
			}.Record())
		}
		return nil
	})
}

// reconcile returns the row to store and the fields that change. changes is nil if no field
// changes. A field that was not stored before, for example because this version of heed introduced
// it, is stored without being called a change. A fixed field that the host does not set takes the
// stored value, and then the configuration points to that.
func (c *Component) reconcile(stored row) (next row, changes map[string]string, err error) {
	next = row{Component: c.Name, Fields: make(map[string]Value, len(c.Fields))}
	changed := stored.Fields == nil
	changes = make(map[string]string)
	for _, f := range c.Fields {
		text, err := json.Marshal(f.Value)
		if err != nil {
			return next, nil, fmt.Errorf("settings: %s: %w", f.Name, err)
		}
		v := Value{Fixed: f.Fixed, Value: text}
		before, known := stored.Fields[f.Name]
		same := bytes.Equal(f.today(before.Value), text)
		switch {
		case !known:
		case f.Fixed && f.Set && !same:
			return next, nil, &heed.SettingsError{Component: c.Name, Field: f.Name,
				Stored: f.show(before.Value), Wanted: f.show(text)}
		case f.Fixed:
			if err := json.Unmarshal(before.Value, f.Value); err != nil {
				return next, nil, fmt.Errorf("settings: %s: %w", f.Name, err)
			}
			v.Value = before.Value
		case !same:
			changes[f.Name] = string(before.Value) + " -> " + string(text)
		}
		changed = changed || !known || before.Fixed != v.Fixed || !bytes.Equal(before.Value, v.Value)
		next.Fields[f.Name] = v
	}
	if !changed && len(next.Fields) == len(stored.Fields) {
		return next, nil, nil
	}
	return next, changes, nil
}

// Rebuild stores the component's settings in the place of others, and makes the evidence of the
// kinds again that have a policy and are kept under another one, in one commit. The entry is for
// the audit. If no fixed setting differs, and no evidence, it does not write.
//
// Evidence may be kept under other policies than the settings say after a rebuild that was cut off,
// so the half-life of what is stored is compared as well.
func (c *Component) Rebuild(ctx context.Context, st store.Store, entry store.AuditEntry,
	policies map[string]evidence.Policy) error {
	err := st.Declare(ctx, kind.Kind, store.Audit)
	if err == nil { // a call that was cut off may have begun it
		err = store.Resume(ctx, st)
	}
	if err != nil {
		return err
	}
	return store.Do(ctx, st, func(tx *store.Tx) error {
		kept, err := kind.In(tx, c.Name)
		if err != nil {
			return err
		}
		next, _, err := c.reconcile(row{})
		if err != nil {
			return err
		}
		job := store.Job{At: entry.At, Rebuild: make(map[string]evidence.Policy)}
		for _, f := range c.Fields {
			before := kept.Value.Fields[f.Name]
			if f.Fixed && !bytes.Equal(before.Value, next.Fields[f.Name].Value) {
				maps.Copy(job.Rebuild, policies)
			}
		}
		for name, policy := range policies {
			for part, err := range st.List(ctx, store.CellQuery{Kind: name}) {
				if err != nil {
					return err
				}
				if part.Tally.HalfLife != policy.HalfLife {
					job.Rebuild[name] = policy
				}
			}
		}
		if len(job.Rebuild) == 0 { // a call whose reply was lost did it
			return nil
		}
		next.At = entry.At.UTC().Truncate(time.Microsecond)
		kind.Put(tx, next, kept.Revision)
		entry.ID = tx.ID(rand.Text)
		tx.Put(entry.Record())
		tx.Start(job)
		return nil
	})
}

// Adopt sets each field to the value in the store, and leaves the store unchanged. It is for a tool
// other than the application whose settings these are. A component without settings in the store is
// [heed.ErrNotFound]. A field that the store does not have keeps its default, for example one that
// a newer version introduced.
func Adopt(ctx context.Context, st store.Store, c Component) error {
	stored, err := Stored(ctx, st, c.Name)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	for _, f := range c.Fields {
		if known, ok := stored[f.Name]; ok {
			if err := json.Unmarshal(known.Value, f.Value); err != nil {
				return fmt.Errorf("settings: %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

// Stored returns the settings of a component as they are stored, or [heed.ErrNotFound].
func Stored(ctx context.Context, st store.Store, component string) (map[string]Value, error) {
	kept, err := kind.Get(ctx, st, component)
	return kept.Value.Fields, err
}

// Names returns what reads the rest of each component's name that begins with a prefix, in order.
func Names(prefix string) func(context.Context, store.Store) ([]string, error) {
	return func(ctx context.Context, st store.Store) (names []string, err error) {
		for kept, err := range kind.Find(ctx, st, store.Query{}) {
			if err != nil && !errors.Is(err, heed.ErrDamaged) { // a damaged one has a name, too
				return nil, err
			}
			if name, ok := strings.CutPrefix(kept.ID, prefix); ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, nil
	}
}
