package store

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
)

// A Ref names a record.
type Ref struct {
	Kind string // what sort of record, for example "strategy.answer"
	ID   string
}

// Once is a Revision that writes a record only if its id is new. An existing record stays as it is,
// without an error.
const Once uint64 = math.MaxUint64

// A Record is a value with a revision.
type Record struct {
	Ref
	// Revision is the revision that was read, which must be current when the record is written. 0
	// means that the record must not exist. The new revision is greater than any that a record of
	// this id ever had.
	Revision uint64
	// At orders records and starts their retention. For a record that waits, it is when it is due.
	// Microseconds are kept.
	At time.Time
	// Keys are texts to find the record by, made by [Key]: at most 192.
	Keys []string
	// Body is the value, of at most [MaxBody] bytes as JSON. The zero Body removes the record.
	Body Body
	// Place is the position at which Find found the record, for Query.After. Only the store reads it,
	// so a store is free in its form. It must be short, go into a link, and stay one to go on from if
	// the record changes or goes, also for other handles and after a restart. The stores of heed
	// write the moment of the record in microseconds and the number of its first writing, both in
	// base 36, with a dot between them: "hol7xb1mo0.7a".
	Place string
}

// The limits of a record.
const (
	// maxKeys is the number of keys of one record. An answer that a hundred people have judged has
	// a key for each of them.
	maxKeys = 192
	// maxKey is the bytes of a key. A name as long as [evidence.MaxText] fits into [PersonKey],
	// though lower case may be longer.
	maxKey = 1600
	// MaxBody is the bytes of a body as JSON. A trace has about 200 KiB, and an event of 256 KiB
	// has 350 KiB as base64.
	MaxBody = 4 << 20
)

// Key returns the key by which records of a value are found: "session=42". A store compares keys as
// a whole and does not look into them. The value may have any text, also "=".
func Key(name, value string) string { return name + "=" + value }

// PersonKey returns the key of a record that names a person. Names that differ in case have the
// same key. A [Job] finds records by it and then compares the names themselves: see [Kind].
func PersonKey(name string) string { return Key("person", strings.ToLower(name)) }

// A Query selects records.
type Query struct {
	Kind string // must be set
	// Keys must all be among a record's. Put the rarest first: a store may look up that one alone
	// and check the others.
	Keys  []string
	Since time.Time // At is this moment or later; zero: no limit
	Until time.Time // At is before this moment; zero: no limit
	// Oldest yields by At, the oldest first, and records of one moment in the order in which they
	// were first written. A record that was removed counts as a new one when it is written again.
	// The default is the exact reverse.
	Oldest bool
	// After is the Place of a record. The query yields only records behind it, in the query's order.
	// The record may have changed or gone. A text that is no Place is a [*heed.InputError]. A Place
	// from another query on the same kind serves as well, because it does not depend on keys.
	After string
	Limit int // at most this number of records; 0: all
}

// A CellQuery selects cells: all of a kind and scope, or those that name a source.
type CellQuery struct {
	// Kind and Scope select cells. A Kind of a tenant alone, such as "@acme", selects all cells of
	// the tenant, and yields a part without sums for each.
	Kind, Scope string
	// Empty also yields a part without sums for each cell that has no evidence, such as one that was
	// restarted.
	Empty bool
	// Lost yields only sums that hold observations which the history no longer has.
	Lost bool
	// Naming, in place of Scope, selects the cells of the tenant in Kind, or of no tenant, that have
	// a source in their sums or their history, or as their Scope, Item or Name. It yields their
	// parts that may hold the source, or else a part without sums. If the sums of any of these cells
	// may hold a source that its history no longer has, the loop ends at once with
	// [evidence.ErrForgotten].
	Naming string
	// Sample, if it is set, allows the store to list only some of the items.
	Sample *Sample
}

// A Sample asks [Store.List] for some of the items of a long list. A store that draws no samples
// lists all items and leaves it alone. A Sample serves one list, and must not be used concurrently.
// Read it after the list ended.
type Sample struct {
	// Most is about how many items the reader wants. A store lists more than a fifth of that, and
	// less than twice as many. It must prefer neither some names nor early or late arrivals. If
	// there are at most so many items, it lists all of them.
	Most int
	// Given is the number of items that were listed, of about All that there are. All is 0 if every
	// item was listed.
	Given, All int
}

// Declarations is the kind of the records that list the declared kinds: see [Store].Find.
const Declarations = "heed.kinds"

// DeclarationOf returns a declared kind as a record.
func DeclarationOf(kind Kind) Record {
	return Record{Ref: Ref{Declarations, kind.Name}, Revision: 1, At: time.Unix(0, 0).UTC(),
		Body: Of(kind)}
}

// A Body is the value of a record: JSON that is made when somebody asks for it. A store in memory
// keeps the value itself, a database its JSON. A Body is immutable: the value in it must not be
// changed.
type Body struct {
	value any
	json  []byte
}

// Of returns a Body of a value, which encoding/json must be able to write and read. The value
// must not be changed afterwards.
func Of(value any) Body { return Body{value: value} }

// Raw returns a Body of JSON that is known to be valid. The bytes must not be changed afterwards.
func Raw(text []byte) Body { return Body{json: text} }

// IsZero reports whether there is no value.
func (b Body) IsZero() bool { return b.value == nil && b.json == nil }

// JSON returns the value as JSON. The bytes must not be changed.
func (b Body) JSON() ([]byte, error) {
	if b.value == nil {
		return b.json, nil
	}
	text, err := json.Marshal(b.value)
	return text, valid.Wrap("store", err)
}

// Decode returns the value of a body as a T. If the body holds a T or a pointer to a T, the value
// is returned as it is, so what it refers to must not be changed. Otherwise the value is read from
// JSON.
func Decode[T any](b Body) (T, error) {
	if value, ok := b.value.(T); ok {
		return value, nil
	}
	if value, ok := b.value.(*T); ok {
		return *value, nil
	}
	var value T
	text, err := b.JSON()
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		return value, fmt.Errorf("store: %w: %w", heed.ErrDamaged, err)
	}
	return value, nil
}

// A Kind declares how records are kept, and where they name people.
//
// A path is the JSON names on the way to a text, joined by dots: "approvals.*.actor". A star
// matches each element of an array, or each value of an object. A tilde enters a text that is
// base64 of JSON, as a payload: "payload.~.reviewer". A path may end at an array of texts.
//
// Forgetting compares names exactly: a name in another case is the name of somebody else. A record
// is found by its [PersonKey], so it must have the key of each name at these paths.
type Kind struct {
	Name   string
	Limits Limits
	// History is how many observations to keep of each cell of a kind of this name, for what is
	// retracted or replaced later. A store that was opened with another number keeps that, and every
	// store keeps its default at least. 0 leaves it to the other declarations.
	History int `json:",omitempty"`
	// Versioned gives the kind a version, so that one small [Store.Read] shows whether a copy of its
	// records is stale. Each call of Commit or Sweep that changes records of the kind raises it by at
	// least one, also if a store makes several calls in one transaction. Each commit that takes
	// evidence away by anything but Retract and Withdraw raises the versions of all kinds of the
	// tenant, also of kinds without records: a copy may be empty. Commits that raise a version may
	// wait for each other: it is for kinds that rarely change.
	Versioned bool `json:",omitempty"`

	// Caused are the paths to names of those who caused something: the name is taken out, of an
	// array with its element. "" must mean the same as no name.
	Caused []string
	// Decided are the paths to names of those who decided something: the person's pseudonym takes
	// the place of the name, see [Pseudonyms]. If it makes the record too large, the name is taken
	// out.
	Decided []string
	// Whole removes a record that has the person's name at a path of Caused, instead of changing
	// it. It needs such a path.
	Whole bool
}

// Limits sets how long records of a kind are kept. The zero value keeps all of them for good.
type Limits struct {
	// For is how long a record is kept, counted from its At. 0: for good.
	For time.Duration
	// Most is how many records of the kind are kept. 0: no limit. Set it to bound the size of the
	// store.
	Most int
	// Refuse refuses a commit over Most with [evidence.ErrFull]; else the oldest by At are dropped.
	// Commits that run at the same moment may each take the last room. Set it if losing an old record
	// is worse than an error.
	Refuse bool
}

// Retention sets what a store keeps, and for how long. It is a part of the configuration of the
// stores of this module.
type Retention struct {
	// NoHistory keeps no history of observations. No observation can be retracted then, and a source
	// can be expunged only from cells that keep origins apart. Set it if memory or disk is short and
	// outcomes are final.
	NoHistory bool
	// HistoryPerCell is the number of observations that are kept of each cell, those that happened
	// last. 0 means 100, or as many as the cell's kind was declared with ([Kind].History), if that is
	// more. Raise it if a busy cell gets more than that within HistoryFor, and corrections come late.
	HistoryPerCell int
	// HistoryFor is how long an observation is kept after it was recorded. 0 means 30 days. Raise it
	// if corrections come later.
	HistoryFor time.Duration
	// IDsFor is how long an id is known at the least after it was recorded. It must not be shorter
	// than HistoryFor, nor than the longest time after which an event can be delivered again. 0 means
	// 30 days, or HistoryFor where that is longer.
	IDsFor time.Duration
	// Limits sets by kind how long records are kept. It wins over what [Store.Declare] is given. Set
	// it to keep traces or answers longer, or less of them.
	Limits map[string]Limits
}
