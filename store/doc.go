// Package store has the interface to the place where heed keeps what it learns.
//
// A store keeps two things. Evidence is sums of observations, as package evidence defines them. It
// is changed by deltas, so that writers in any number never overwrite each other. Records are
// everything else: answers, heuristics, patterns, rules, audit entries, events that wait to be
// sent. A record is JSON with an id, a few keys to find it by, and a revision, so that a writer
// notices if another writer was quicker.
//
// [Store.Commit] takes both at once. Things that belong together are one commit, such as an outcome
// and the record of its answer, or an approval, its rule and its audit entry. All of it is stored,
// or none of it.
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
//	st := &memstore.Store{}                            // in memory; memstore.New for a configuration
//	st, err := sqlstore.Open(ctx, db, sqlstore.SQLite) // in a database
//
// # Another store
//
// To write a store, implement the methods of [Store] and run the suite of package storetest against
// it. Call [Validate] first in Commit, and [Query.Validate] first in Find: they hold the rules
// about input that all stores share. If the store encodes bodies, call [CheckBody] with the JSON.
// If the reply to a commit can get lost, return [heed.ErrOutcomeUnknown] then.
package store
