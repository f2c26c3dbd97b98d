package stores

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A Position is the place of a record in the order of its kind: by its moment, and of one moment by
// the number that the store gave it when it was first written, from 1 on.
type Position struct {
	// At is the record's moment, and Seq the number of its first writing. A record that is written
	// again with another moment moves, and keeps its number.
	At  evidence.Instant
	Seq int64
}

// Compare orders positions, the oldest first.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.At, o.At), cmp.Compare(p.Seq, o.Seq))
}

// String returns the position as store.Record.Place has it. Numbers are in base 36, which keeps a
// place short enough for a link.
func (p Position) String() string {
	text := strconv.AppendInt(make([]byte, 0, 32), int64(p.At), 36)
	return string(strconv.AppendInt(append(text, '.'), p.Seq, 36))
}

// parse reads what String wrote. A place of another sort of store is refused as bad input.
func parse(place string) (p Position, err error) {
	at, seq, _ := strings.Cut(place, ".")
	moment, err := strconv.ParseInt(at, 36, 64)
	if err == nil {
		p.At = evidence.Instant(moment)
		p.Seq, err = strconv.ParseInt(seq, 36, 64)
	}
	if err != nil {
		return p, &heed.InputError{Field: "After", Reason: "must be a Place of an earlier query"}
	}
	return p, nil
}

// A Range holds what lies between two positions, without the two. An empty range is one whose After
// is not before its Before.
type Range struct{ After, Before Position }

// RangeOf returns the range of a query, or the fault of the query. Since is inclusive and Until is
// not. Positions have whole microseconds, so a bound between two of them is rounded up. A bound in
// time becomes a position that no record has: number -1 is before all records of the moment.
func RangeOf(q store.Query) (r Range, err error) {
	if err := q.Validate(); err != nil {
		return r, err
	}
	r = Range{Position{-1, 0}, Position{math.MaxInt64, math.MaxInt64}}
	if !q.Since.IsZero() {
		r.After = Position{from(q.Since), -1}
	}
	if !q.Until.IsZero() {
		r.Before = Position{from(q.Until), -1}
	}
	if q.After == "" {
		return r, nil
	}
	after, err := parse(q.After)
	r.Pass(after, q.Oldest)
	return r, err
}

// Pass leaves out what a loop had up to a position, from the oldest or from the newest on. A
// position outside of the range does not widen it.
func (r *Range) Pass(p Position, oldest bool) {
	if oldest && p.Compare(r.After) > 0 {
		r.After = p
	}
	if !oldest && p.Compare(r.Before) < 0 {
		r.Before = p
	}
}

// from returns the first moment, in whole microseconds, that is not before a time.
func from(t time.Time) evidence.Instant { return evidence.InstantOf(t.Add(time.Microsecond - 1)) }
