// Package store provides the interface to the place where heed keeps what it learns.
//
// A store keeps two things. Evidence is sums of observations, defined by package evidence. It is
// changed by deltas, so that writers in any number never overwrite each other. Records are
// everything else: answers, heuristics, patterns, rules, audit entries, events that wait to be
// sent. A record is JSON with an id, a few keys to find it by, and a revision, so that a writer
// notices if another writer was quicker.
//
// [Store.Commit] takes both at once. Things that belong together are one commit, such as an outcome
// and the record of its answer, or an approval, its rule and its audit entry. Either the whole
// commit is stored or no part of it.
//
// # Steps
//
// A host seldom calls these methods. A [View] is a typed view of one kind of record, for records of
// heed and for those that the host keeps. [Do] runs a step: a function that reads through a [Tx],
// decides, and adds what is to be written. Do commits it, and runs the step again if another writer
// was quicker. Methods of heed's packages that end in "In" take the Tx of a step, so a host can
// have several of them, and the host's records, in one commit.
//
// # Stores
//
// A host makes a store and hands it to the packages that need one:
//
//	st := &memstore.Store{}                            // in memory
//	st, err := sqlstore.Open(ctx, db, sqlstore.SQLite) // in a database
//
// # Several handles
//
// A handle is what opening a store returns. Any number of handles may work on one store, in one
// process or in several. A store that allows only one handle must refuse the second one.
//
//   - Each method of each handle sees every commit that returned before the method was called. The
//     exception is a Read that names cells alone: of commits of other handles, it may return
//     evidence that is at most one second old. To be sure, name a record as well.
//   - A commit is seen as a whole. Revisions, versions, known ids and the order of first writing
//     are the same for all handles, and they must not depend on the clock of a handle.
//   - Declarations are kept in the store. A handle without declarations sweeps and forgets people
//     by the declarations of the other handles.
//   - There is one clock: the engine's, or else the one that the host gives to every handle. Commit
//     refuses observations by it, and a Sweep of the zero time uses it. No other method depends on
//     it. The clocks of handles may differ by up to [evidence.MaxSkew]. A handle whose clock is
//     ahead by more drops ids, history and records too early, by as much as it is ahead. A store
//     whose engine has a clock uses that one, or returns a [*heed.ConfigError] in that case.
//
// # Sizes
//
// A key has at most 1,600 bytes, a record 192 keys and a body of [MaxBody] bytes, and a
// call of Commit [MaxChanges] changes. An engine with lower limits returns a [*heed.SizeError] and
// does not apply the call. A cell that a batch takes evidence from is changed with its sums and
// history.
//
// # Tenants
//
// Several organisations may share a store. [Tenant] returns a view of a store that has the records
// and the evidence of one organisation, for everything that takes a Store. What is written through
// one view can be neither read nor changed through another one. An engine keeps a tenant's records
// and cells under a kind such as "loop.answer@acme", which [KindOf] splits: how they are kept
// follows from the part before @. [CellQuery] has what else an engine is asked for.
//
// # Jobs
//
// What may be too large for one commit is a [Job]: to forget people, to expunge sources, to reset
// segments, to rebuild kinds of cells. A job works with the methods of [Store] alone, so a store
// need not implement forgetting people. Each of its commits changes at most 500 keys. Between
// them, readers see each record and each cell as it was before the job, or after it. If the program
// ends, the next Sweep of any handle finishes the job.
//
// # Repeating
//
// Every method can be repeated after an error, [heed.ErrOutcomeUnknown] among them. A batch with an
// ID counts once: if it took effect, its repetition is a Duplicate. Without an ID, observations
// count once by their ids, and records written [Once] stay as they are. A revision that the first
// try used up is [heed.ErrConflict]: read again. Retracting, withdrawing or expunging again has no
// effect, and neither has a [Job] that forgets again. A Reset also takes away what others have
// added since, so give its batch an ID. Keep ids for longer than any writer repeats a call.
//
// # Another store
//
// To write a store, implement the methods of [Store] and run the suite of package storetest against
// it. Call [Validate] first in Commit, and [Query.Validate] first in Find: they hold the rules
// about input that all stores share. Call [Resume] first in Sweep. If the store encodes bodies,
// call [CheckBody] with the JSON. If it has copies of names elsewhere, for example in a log, erase
// them for [Batch].Forgotten. If the reply to a commit can get lost, return
// [heed.ErrOutcomeUnknown] then. Package memstore is a store to read: its package comment leads
// through it.
package store
