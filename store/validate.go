package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
)

// MaxChanges bounds one call of [Store.Commit]: the observations, records and expectations, the ids
// to retract or withdraw, and the cells to take evidence from, of all its batches together. A store
// may hold locks and memory for all of them.
const MaxChanges = 100_000

// Validate reports the first fault of batches that are to be committed together, by the store's
// clock: a [*heed.InputError], a [*heed.ConfigError] of a policy, or a [*heed.SizeError] of more
// than [MaxChanges] or of a body made by [Raw]. A store calls it before it does anything else. A
// store that encodes bodies also calls [CheckBody].
//
// A record may be in one batch only. Only the first batch may take evidence away (see
// [Batch.TakesAway]).
func Validate(now time.Time, batches ...Batch) error {
	changes := 0
	for i := range batches {
		changes += batches[i].Changes()
	}
	if changes > MaxChanges {
		return &heed.SizeError{What: "Batches", Size: changes, Most: MaxChanges}
	}
	var written index[Ref]
	for i := range batches {
		b := &batches[i]
		err := b.validate(now, &written)
		if err == nil && i > 0 && b.TakesAway() {
			err = invalid("Observations", "only the first batch of a commit may take evidence away")
		}
		if err != nil && len(batches) > 1 {
			err = inside("Batches", i, err)
		}
		if err != nil {
			return err
		}
	}
	for i := range batches { // what is expected must stay as it is throughout
		for k, e := range batches[i].Expect {
			if written.find(e.Ref) >= 0 {
				return invalid(fmt.Sprintf("Expect[%d]", k), "is written by the same commit")
			}
		}
	}
	return nil
}

// Changes counts what [MaxChanges] bounds.
func (b *Batch) Changes() int {
	expect := len(b.Expect)
	if b.tenant() != "" {
		expect-- // the view of a tenant added one
	}
	return len(b.Observations) + len(b.Records) + expect + len(b.Retract) + len(b.Withdraw) +
		len(b.Reset) + len(b.Rebuild) + len(b.Restart) + len(b.Expunge)
}

// CheckBody returns a [*heed.SizeError] if the JSON of a body is longer than [MaxBody]. The Ref
// names the record in the error.
func CheckBody(of Ref, text []byte) error {
	if len(text) <= MaxBody {
		return nil
	}
	what := fmt.Sprintf("body of %s %q", of.Kind, of.ID)
	return &heed.SizeError{What: what, Size: len(text), Most: MaxBody}
}

func (b *Batch) validate(now time.Time, written *index[Ref]) error {
	err := cmp.Or(evidence.CheckText("ID", b.ID), b.validateMarks())
	for _, policy := range b.Policies {
		err = cmp.Or(err, policy.Validate())
	}
	if err == nil {
		err = cmp.Or(b.validateEvidence(now), b.validateTaking(), b.validatePartsOf(),
			b.validateRecords(written))
	}
	return err
}

// CellsOf returns the cells of observations, each once, for [Batch.PartsOf].
func CellsOf(observations ...evidence.Observation) []evidence.Cell {
	var cells index[evidence.Cell]
	for i := range observations {
		cells.add(observations[i].Cell)
	}
	return cells.keys
}

func (b *Batch) validatePartsOf() error {
	var named index[evidence.Cell]
	for i, c := range b.PartsOf {
		if !named.add(c) {
			return invalid(fmt.Sprintf("PartsOf[%d]", i), "must be named once")
		}
	}
	observed := make([]bool, len(b.PartsOf))
	for i := range b.Observations {
		if at := named.find(b.Observations[i].Cell); at >= 0 {
			observed[at] = true
		}
	}
	if i := slices.Index(observed, false); i >= 0 {
		return invalid(fmt.Sprintf("PartsOf[%d]", i), "must be the cell of an observation of the batch")
	}
	return nil
}

func (b *Batch) validateEvidence(now time.Time) error {
	return cmp.Or(
		each("Reset", b.Reset, (*evidence.Cell).Validate),
		each("Rebuild", b.Rebuild, (*evidence.Cell).Validate),
		each("Restart", b.Restart, func(r *Restart) error {
			return cmp.Or(r.Cell.Validate(), valid.Time("At", r.At, now))
		}),
		each("Observations", b.Observations, func(o *evidence.Observation) error {
			return o.Validate(now)
		}),
	)
}

// each reports the first fault of a list, with the place of the element before its field.
func each[T any](list string, all []T, check func(*T) error) error {
	for i := range all {
		if err := check(&all[i]); err != nil {
			return inside(list, i, err)
		}
	}
	return nil
}

// validateTaking checks the names of what is taken back. A batch can't take back what it adds.
func (b *Batch) validateTaking() error {
	if !b.TakesAway() {
		return nil
	}
	err := each("Expunge", b.Expunge, func(e *SourceOf) error {
		return cmp.Or(e.Cell.Validate(), valid.Names(evidence.MaxText, "Source", e.Source))
	})
	if err != nil {
		return err
	}
	ids := make(map[string]bool)
	for i := range b.Observations {
		ids[b.Observations[i].ID] = true
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"Retract", b.Retract}, {"Withdraw", b.Withdraw}} {
		for i, name := range list.names {
			field := fmt.Sprintf("%s[%d]", list.field, i)
			if err := evidence.CheckText(field, name); err != nil {
				return err
			}
			if name == "" || ids[name] {
				return invalid(field, "must not be empty, nor in an observation of the batch")
			}
		}
	}
	return nil
}

func (b *Batch) validateRecords(written *index[Ref]) error {
	expected := func(e *Precondition) error { return e.validate() }
	return cmp.Or(each("Expect", b.Expect, expected), each("Records", b.Records,
		func(r *Record) error {
			err := r.validate()
			if err == nil && !written.add(r.Ref) {
				err = invalid("ID", "must not stand twice in one commit")
			}
			return err
		}))
}

func (r Ref) validate() error {
	if kind, _ := KindOf(r.Kind); kind == "" {
		return invalid("Kind", "must not be empty, and have no @, which precedes a tenant's name")
	}
	if r.ID == "" {
		return invalid("ID", "must not be empty")
	}
	return cmp.Or(evidence.CheckText("Kind", r.Kind), evidence.CheckText("ID", r.ID))
}

func (r *Record) validate() error {
	if err := r.Ref.validate(); err != nil {
		return err
	}
	name, tenant := KindOf(r.Kind)
	leaves := tenant != "" && r.Body.IsZero() // a job removes what a tenant has
	switch {
	case r.Kind == Declarations:
		return invalid("Kind", "is what the store makes of declarations")
	case name == Pseudonyms.Name && !leaves && (r.Revision != Once || r.ID != pseudonymKeyID):
		return errPseudonyms
	}
	if r.Body.IsZero() {
		if r.Revision == 0 || r.Revision == Once {
			return invalid("Revision", "must be the one that was read, to remove a record")
		}
		return nil
	}
	if r.At.Unix() < 0 || r.At.Year() > 9999 {
		return invalid("At", "must be in the years 1970 to 9999")
	}
	if err := CheckBody(r.Ref, r.Body.json); err != nil {
		return err
	}
	return checkKeys(r.Keys)
}

func checkKeys(keys []string) error {
	if len(keys) > maxKeys {
		return invalid("Keys", fmt.Sprintf("are %d, may be %d", len(keys), maxKeys))
	}
	for i, key := range keys {
		reason := ""
		switch {
		case key == "" || len(key) > maxKey:
			reason = fmt.Sprintf("is %d bytes long, must be 1 to %d", len(key), maxKey)
		case strings.IndexByte(key, 0) >= 0 || !utf8.ValidString(key):
			reason = "must be valid UTF-8 without NUL"
		default:
			continue
		}
		return invalid(fmt.Sprintf("Keys[%d]", i), reason)
	}
	return nil
}

// Validate reports the first fault of the query as a [*heed.InputError]. A store calls it before it
// does anything else.
func (q Query) Validate() error {
	if q.Kind == "" {
		return invalid("Kind", "must not be empty")
	}
	if q.Limit < 0 {
		return invalid("Limit", "must not be negative")
	}
	return checkKeys(q.Keys)
}

// Validate reports the first fault of the kind as a [*heed.InputError].
func (k Kind) Validate() error {
	switch {
	case k.Name == "":
		return invalid("Name", "must not be empty")
	case strings.Contains(k.Name, tenantMark):
		return invalid("Name", "must not contain @, which precedes the name of a tenant")
	case k.Limits.For < 0:
		return invalid("Limits.For", "must not be negative")
	case k.Limits.Most < 0:
		return invalid("Limits.Most", "must not be negative")
	case k.History < 0:
		return invalid("History", "must not be negative")
	}
	if err := evidence.CheckText("Name", k.Name); err != nil {
		return err
	}
	for _, paths := range [][]string{k.Caused, k.Decided} {
		for _, path := range paths {
			if strings.Contains("."+path+".", "..") {
				return invalid("Paths", "must be names joined by dots")
			}
		}
	}
	if k.Whole && len(k.Caused) == 0 {
		return invalid("Whole", "needs a path of Caused")
	}
	return nil
}

func invalid(field, reason string) error { return &heed.InputError{Field: field, Reason: reason} }

// inside puts the place of an element before the field of its fault.
func inside(list string, i int, err error) error {
	if fault := (*heed.InputError)(nil); errors.As(err, &fault) {
		return &heed.InputError{Field: fmt.Sprintf("%s[%d].%s", list, i, fault.Field),
			Reason: fault.Reason}
	}
	return err
}
