// Package sqlstore keeps what heed learns in a database: SQLite where one machine is enough,
// PostgreSQL where many share.
//
// [Store] is a [store.Store] on [database/sql]. The package has no driver: the host brings its own,
// because two drivers of one name make a program panic when it starts.
//
//	import _ "modernc.org/sqlite" // the driver "sqlite"
//
//	handle, err := sql.Open("sqlite", "file:heed.db")
//	...
//	st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite)
//	...
//	learner, err := strategy.New(ctx, strategy.Config{Store: st, Arms: arms})
//
// With PostgreSQL it is the driver "pgx" of github.com/jackc/pgx/v5/stdlib, and [Postgres]. A
// database of SQLite must be a file, because each connection has a separate ":memory:".
//
// # Promises
//
// Everything that a method has acknowledged survives a crash of the process, and with [SQLite], or
// PostgreSQL as it is set up by default, a power cut too: see [Dialect]. A commit is one
// transaction. Sums are added to and never read, changed and written back, so any number of
// processes add to one cell and no outcome is lost. [Store.CommitTx] makes a commit a part of the
// host's transaction. A commit whose reply was lost is heed.ErrOutcomeUnknown; store.Do repeats it.
//
// Reads of evidence may be from memory, for a second: see Config.NoCache. A store sees its own
// commits at once.
//
// # Housekeeping
//
// The store does not start goroutines. The host calls [Store.Sweep], or has heed.Run do so;
// whatever is past its time stays until then. [Store.Dump] and [Store.Load] bring everything to
// another store of whatever kind. Tables and dumps of an earlier layout are refused.
//
// The SQL of a commit is in the files that begin with commit: its evidence, its records, and what
// it takes back.
//
// The file docs/stores.md of the module has all of this with the tests that show it.
package sqlstore
