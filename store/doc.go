// Package store has the interface to the place where heed keeps what it learns.
//
// A store keeps two things. Evidence is sums of observations, as package evidence defines them: it is changed by deltas, so
// that writers in any number never overwrite each other. Records are everything else: choices, traces, heuristics,
// patterns, rules, audit entries, events that wait to be sent. A record is JSON with an id, a few keys to find it by, and a
// revision, so that a writer notices when somebody else was quicker.
//
// [Store.Commit] takes both at once. Things that belong together are one commit, such as an outcome and the record of its choice,
// or an approval, its rule and its audit entry. All of it is stored, or none of it.
//
// A host seldom calls these methods. It makes a store and hands it to the packages that need one:
//
//	st := &memstore.Store{}                            // in memory; memstore.New for a configuration
//	st, err := sqlstore.Open(ctx, db, sqlstore.SQLite) // in a database
//
// # A store of your own
//
// Implement the methods of [Store] and run the suite of package storetest against it. Call [Validate] first in Commit and
// [Query.Validate] first in Find: they hold the rules about input that all stores share.
package store
