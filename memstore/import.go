package memstore

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/export"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/strategy"
)

// Stores are what [Import] fills. Where a store is nil, or a stream is not named, what the export holds of it is checked and
// left out: a test that asks a learner needs the evidence alone. The zero Stores check an export.
type Stores struct {
	Evidence   *Evidence
	Choices    *Choices
	Heuristics *Heuristics
	Patterns   *Patterns
	Errors     *Errors
	Streams    map[string]*Stream // by the names that they have in the database
}

// Import fills stores that are empty with what [sqlstore.DB.Export] has written: all of it, or nothing and an error. A store
// that holds something is [heed.ErrConflict]. What is not an export, is one of a newer version, or was cut off, and a row that
// can't be right, is a [*heed.InputError] that names the line. The export is read to its end before any store is touched.
//
// The stores then say what the database said, and go on as it would: ids that it knew are duplicates, also those that were
// retracted, and what it could no longer take back is [evidence.ErrForgotten]. Their own configuration holds, and their
// clocks:
//
//   - History over [EvidenceConfig].HistoryPerCell, or past HistoryFor, is forgotten, and stays in the sums; so is all of it
//     under NoHistory. Ids past IDsFor are not known. The audit log keeps its last MaxAudit entries.
//   - Choices past their time, counted from when they were made, are left out. Where there are more than
//     the store keeps, the oldest go. Of transitions, entries and errors those go that were recorded first.
//   - What a store refuses when it is full, Import refuses with [evidence.ErrFull]: events over MaxEvents and over Max of a
//     stream, patterns over MaxPatterns.
//   - Events of a stream are delivered in the order in which they came, and at once: those in hand come again, and leases,
//     delays and holders stay behind.
//
// There is no way back: a store in memory knows ids by their hashes alone, and so can't be exported.
//
// [sqlstore.DB.Export]: https://pkg.go.dev/github.com/heedhq/heed/sqlstore#DB.Export
func Import(ctx context.Context, from io.Reader, into *Stores) error {
	i := newImporter(into)
	err := export.Read(from, func(row export.Row) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return i.read(row)
	})
	if err == nil {
		err = i.fill()
	}
	if err != nil {
		return fmt.Errorf("memstore: import: %w", err)
	}
	return nil
}

// A part is what an export holds of one store.
type part interface {
	read(*checkedRow)    // checks a row, and keeps what it says
	locker() sync.Locker // of the store, for what follows
	check() error        // tells whether the store is empty and has room for what was read
	fill()               // puts it in, which can't fail
}

type importer struct {
	parts     map[string]part    // by table, and for documents by sort
	wanted    []part             // those whose store is there
	documents map[[2]string]bool // that were read, by sort and id
}

func newImporter(into *Stores) *importer {
	i := &importer{parts: make(map[string]part), documents: make(map[[2]string]bool)}
	i.add(newEvidencePart(into.Evidence), into.Evidence != nil,
		export.Cells, export.Tallies, export.IDs, export.History, export.Forgotten, export.Audit, export.Outbox)
	i.add(&choicesPart{store: into.Choices, known: make(map[strategy.ChoiceID]bool)}, into.Choices != nil, export.Choices)
	i.add(newStreamsPart(into.Streams), true, export.Stream)
	i.add(&heuristicsPart{store: into.Heuristics, all: make(map[string]learning.Heuristic)}, into.Heuristics != nil,
		documentOf+export.Heuristic)
	i.add(leftOut{}, false, documentOf+export.Trace, documentOf+export.Verdict)
	i.add(&patternsPart{store: into.Patterns}, into.Patterns != nil,
		documentOf+export.Pattern, documentOf+export.Transition, documentOf+export.Entry)
	i.add(&errorsPart{store: into.Errors}, into.Errors != nil, documentOf+export.Error)
	return i
}

const documentOf = export.Documents + "/" // a sort follows

func (i *importer) add(p part, wanted bool, names ...string) {
	for _, name := range names {
		i.parts[name] = p
	}
	if wanted {
		i.wanted = append(i.wanted, p)
	}
}

func (i *importer) read(row export.Row) error {
	name := row.Table.Name
	r := &checkedRow{Row: row}
	if name == export.Documents {
		name = documentOf + row.Text("sort")
		key := [2]string{row.Text("sort"), row.Text("id")}
		r.check(!i.documents[key], "id", "must not stand twice")
		i.documents[key] = true
	}
	p := i.parts[name]
	if p == nil {
		return &heed.InputError{Field: "sort", Reason: fmt.Sprintf("there is no %q", row.Text("sort"))}
	}
	p.read(r)
	if r.fault != nil {
		return &heed.InputError{Field: name, Reason: r.fault.Error()}
	}
	return nil
}

// importing lets one import at a time hold the locks of several stores.
var importing sync.Mutex

// fill puts everything in, unless a store has something, or no room.
func (i *importer) fill() error {
	importing.Lock()
	defer importing.Unlock()
	for _, p := range i.wanted {
		lock := p.locker()
		lock.Lock()
		defer lock.Unlock()
	}
	for _, p := range i.wanted {
		if err := p.check(); err != nil {
			return err
		}
	}
	for _, p := range i.wanted {
		p.fill()
	}
	return nil
}

// checkEmpty refuses a store that is not.
func checkEmpty(empty bool, what string) error {
	if !empty {
		return fmt.Errorf("the store of %s is not empty: %w", what, heed.ErrConflict)
	}
	return nil
}

// checkRoom refuses more than a store holds.
func checkRoom(n, most int, what string) error {
	if n > most {
		return fmt.Errorf("%d %s, and room for %d: %w", n, what, most, evidence.ErrFull)
	}
	return nil
}

// A checkedRow tells what a row of an export holds, and keeps the first fault that is found there.
type checkedRow struct {
	export.Row
	fault error
}

func (r *checkedRow) check(ok bool, column, reason string) {
	if !ok && r.fault == nil {
		r.fault = &heed.InputError{Field: column, Reason: reason}
	}
}

// valid checks what a column holds, of which err is the fault.
func (r *checkedRow) valid(column string, err error) {
	if err != nil {
		r.check(false, column, err.Error())
	}
}

// id is a text that is not empty.
func (r *checkedRow) id(column string) string {
	r.check(r.Text(column) != "", column, "must not be empty")
	return r.text(column)
}

// text is a text as every store can keep it.
func (r *checkedRow) text(column string) string {
	text := r.Text(column)
	if fault := evidence.CheckText(column, text); fault != nil && r.fault == nil {
		r.fault = fault
	}
	return text
}

func (r *checkedRow) between(column string, least, most int64) int64 {
	n := r.Int(column)
	r.check(n >= least && n <= most, column, fmt.Sprintf("is %d, must be in [%d, %d]", n, least, most))
	return n
}

func (r *checkedRow) flag(column string) bool { return r.between(column, 0, 1) == 1 }

// lastInstant is at the end of the last year that evidence may be of.
var lastInstant = int64(evidence.InstantOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)))

// instant is a moment in microseconds, or 0.
func (r *checkedRow) instant(column string) evidence.Instant {
	return evidence.Instant(r.between(column, 0, lastInstant))
}

// mostSum is more than any sum of evidence comes to: a step of the landmark times as many observations as are counted, each of
// the greatest weight, squared.
const mostSum = 1e102

func (r *checkedRow) sum(column string) float64 {
	x := r.Float(column)
	r.check(math.Abs(x) <= mostSum, column, "is more than evidence comes to")
	return x
}

// time is a moment as RFC 3339 has it.
func (r *checkedRow) time(column string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, r.Text(column))
	r.valid(column, err)
	return t
}

// event is a row of an outbox or of a stream.
func (r *checkedRow) event() evidence.Event {
	return evidence.Event{ID: r.id("id"), Topic: r.text("topic"), At: r.time("happened"), Payload: r.Blob("payload")}
}

// decoded reads the JSON text of a column.
func decoded[T any](r *checkedRow, column string) (value T) {
	r.valid(column, json.Unmarshal([]byte(r.Text(column)), &value))
	return value
}

// same checks that a document has the id and the revision of its body.
func (r *checkedRow) same(id string, revision uint64) {
	r.check(r.Text("id") == id, "id", "must be that of the body")
	r.check(revision > 0 && r.Int("revision") == int64(revision), "revision", "must be above 0, and that of the body")
}
