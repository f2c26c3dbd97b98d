package store

import (
	"context"
	"iter"
	"time"

	"github.com/heedhq/heed/evidence"
)

// Store keeps evidence and records.
//
// An implementation must be safe for concurrent use by multiple goroutines. Every method honours
// its context: a context that ended on entry gives its error and has no effect. Slices that go in
// or come out are copied. The value in a [Body] is not copied, and must not be changed. Package
// storetest has the suite that judges an implementation.
//
// A store may rely on what [Validate] checks: a commit has at most [MaxChanges] changes, a record
// at most 192 keys of at most 1,600 bytes, and each record is written once. It may rely on
// [MaxBody] if it calls [CheckBody]. Callers repeat commits: see [Do].
type Store interface {
	// Commit applies the batches in order: either all of them, or it returns an error and has no
	// effect. A method that begins after Commit returned sees what it applied, on any handle, with
	// one exception: see the package comment. There is one receipt for each batch.
	//
	// A batch whose ID is known is left out, whatever its revisions, and its receipt has Duplicate
	// set; the other batches are applied.
	//
	// The errors are
	//   - a [*heed.InputError], [*heed.ConfigError] or [*heed.SizeError] of [Validate]. A store that
	//     encodes bodies calls [CheckBody] with the JSON that it made. A store that keeps values
	//     as they are need not encode them for the check, and may hold a larger value;
	//   - a [*heed.InputError] if the kind of a record was not declared, also in a batch that is left
	//     out;
	//   - [heed.ErrConflict] if a revision is not current;
	//   - a [*heed.SettingsError] if a cell is kept under another policy;
	//   - [heed.ErrNotFound] if an id to retract was never seen;
	//   - [evidence.ErrForgotten] if the history that is needed is no longer kept;
	//   - [evidence.ErrFull] if a kind that refuses more is full;
	//   - [heed.ErrOutcomeUnknown] if it is unknown whether the store applied the batches. A store
	//     must return it, with the cause, if the connection broke or the context ended after the
	//     store had sent the command to commit and before it had the reply. The batches are applied
	//     as a whole or not at all, perhaps after Commit returned. The caller may read, decide
	//     again and repeat.
	//
	// After any other error, the error of the context among them, the batches are not applied.
	Commit(ctx context.Context, batches ...Batch) ([]Receipt, error)

	// Declare sets how kinds of records are kept. Every kind must be declared before a record of it
	// is committed, by each program that uses the store. The store keeps declarations, and all
	// handles sweep and forget by them. Declarations of one kind are joined, because several packages
	// may declare it: paths add up, in the order in which they were declared, and Versioned and Whole
	// stay true if any declaration has them. Of Limits and of History the later value wins, unless it
	// is zero. Limits that the store was opened with win over declared ones.
	Declare(ctx context.Context, kinds ...Kind) error

	// Read appends to the snapshot: first the records that refs name, in that order, then the parts
	// of the cells, in the order asked and of each cell by channel and source, then for each query
	// the records that it selects. A record that is not there has Revision 0. A cell without
	// evidence has no part.
	//
	// A Ref without an ID asks for the version of a kind, which is the Revision of the record that
	// is read: see [Kind].Versioned. A kind that is not declared with one is a [*heed.InputError],
	// and nothing is appended then.
	//
	// Records are read no later than parts: if a record's revision is still current when a later
	// Commit checks it, the parts hold all evidence that was committed together with that revision.
	// Versions are read no later than all else.
	Read(ctx context.Context, into *Snapshot, cells []evidence.Cell, refs []Ref, finds ...Query) error

	// Find yields the records that a query selects. Commits that happen during the loop may be seen
	// or not. The loop may call the store, and may end early. After an error it ends.
	//
	// The records of the kind [Declarations] are made by the store: one for each kind that a handle
	// declared, in the form of [DeclarationOf], in any order. Read need not find them.
	Find(ctx context.Context, q Query) iter.Seq2[Record, error]

	// List yields the parts of the cells that a query selects, by cell, channel and source. The
	// rules of Find hold.
	List(ctx context.Context, q CellQuery) iter.Seq2[evidence.Part, error]

	// Scopes yields the scopes of a kind of cells that have evidence, in order. The rules of Find
	// hold.
	Scopes(ctx context.Context, kind string) iter.Seq2[string, error]

	// History yields the observations of a cell that are still kept, the newest first by At, and of
	// one moment the last recorded first. Retracted ones are not among them. The rules of Find
	// hold.
	History(ctx context.Context, c evidence.Cell) iter.Seq2[evidence.Observation, error]

	// Sweep finishes jobs that have begun, by [Resume]. Then it drops what is past its limits at now
	// or by the store's own clock, whichever is earlier: ids, history, records. The zero time means
	// the store's clock. Sweep works in small steps, so that others need not wait long.
	Sweep(ctx context.Context, now time.Time) error
}

// A Batch is applied as a whole or not at all. Its parts are applied in the order of the fields.
// Only the first batch of a call may take evidence away, by the fields from Reset to Expunge, so a
// store need not work out what an earlier batch of the call added. A store copies what it keeps of
// a batch, and what it returns of a record, except bodies, which are immutable.
type Batch struct {
	// ID, if it is not empty, makes the batch count once. If a batch or an observation of this ID was
	// stored before, the batch has no effect.
	ID string

	// Policies sets how the cells of a kind are kept. A kind that is not named has the zero policy.
	Policies map[string]evidence.Policy

	// Reset forgets cells with their history. The ids of their observations stay known. A [Job]
	// resets any number of cells.
	Reset []evidence.Cell
	// Rebuild makes cells again from their whole history, under this batch's policy. A [Job] rebuilds
	// all cells of a kind.
	Rebuild []evidence.Cell
	// Restart leaves out of cells what happened before a moment.
	Restart []Restart
	// Retract takes back all observations of these ids. The ids stay known. Retracting an id again
	// has no effect.
	Retract []string
	// Withdraw retracts the ids for which that is possible. The receipt names the others in Kept.
	Withdraw []string
	// Expunge takes back, and erases from the history, all observations of a source in a cell. If the
	// sums of the cell may hold the source and the history does not have all of it, the error is
	// [evidence.ErrForgotten]. If the cell then has neither evidence nor history, and the source is
	// its Scope, Item or Name, the cell goes as well. A [Job] expunges a source from all cells.
	Expunge []SourceOf
	// Forgotten are people whom a [Job] took out of evidence and records, or ids of records whose
	// content was deleted for good. A store that has copies elsewhere, such as in free pages of a
	// file, erases them before it returns or, if that fails, in the next Sweep.
	Forgotten []string

	// Observations to add. One whose id was known before this batch is left out, and the receipt
	// names it. Observations of the batch may share an id, if they are of several cells. Of one id
	// and one cell, the first counts, and the receipt does not name the others.
	Observations []evidence.Observation

	// Expect names records that must still have these revisions. They stay as they are.
	Expect []Precondition
	// Records to write, or to remove where the Body is zero.
	Records []Record

	// PartsOf names the cells that the receipt returns as they are after the commit. Each must be the
	// cell of an observation of the batch, and be named once. See [CellsOf].
	PartsOf []evidence.Cell
}

// A Precondition is the revision of a record that the writer saw. Revision 0 means that there was
// no record.
type Precondition struct {
	Ref
	Revision uint64
}

// A Selection names cells: all of a kind and a scope, or the cells of one item, or one of its
// alternatives.
type Selection struct {
	Kind, Scope string
	Item        string // "": of every item
	Name        string // "": every alternative
}

// Covers reports whether the selection names the cell.
func (s Selection) Covers(c evidence.Cell) bool {
	return s.Kind == c.Kind && s.Scope == c.Scope &&
		(s.Item == "" || s.Item == c.Item) && (s.Name == "" || s.Name == c.Name)
}

// A SourceOf names a source of observations of a cell.
type SourceOf struct {
	Cell   evidence.Cell
	Source string
}

// A Restart leaves out of a cell what happened before At, whether it came already or comes late. A
// cell's restart only moves forward. Unless At is after everything that the cell saw, the cell is
// computed again from its history, and the error is [evidence.ErrForgotten] if the history does not
// have all that happened at At or later.
type Restart struct {
	Cell evidence.Cell
	At   time.Time
}

// TakesAway reports whether the batch may take evidence away, for which a store may need to be
// alone.
func (b *Batch) TakesAway() bool {
	return len(b.Reset)+len(b.Rebuild)+len(b.Restart)+len(b.Retract)+len(b.Withdraw)+len(
		b.Expunge) > 0
}

// A Receipt reports what a batch did.
type Receipt struct {
	// the batch's ID was known: it was not applied, and all else here is empty
	Duplicate  bool
	Duplicates []string // the ids of observations that were known, each once
	Kept       []string // the ids of Withdraw that could not be taken back
	Left       []Ref    // records written [Once] that were there already
	// of every record that the batch wrote; 0 without writes. Removals do not count
	Revision uint64
	Parts    []evidence.Part // of the cells in Batch.PartsOf, in their order
}

// A Snapshot is what [Store.Read] read. It must not be used concurrently.
type Snapshot struct {
	Records []Record
	Parts   []evidence.Part
	Found   [][]Record // by query
}
