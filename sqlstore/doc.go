// Package sqlstore keeps what heed learns in a database: SQLite where one machine is enough, PostgreSQL where many share.
//
// It has an implementation of each store interface of heed on [database/sql], and no driver: the host brings its own, as two
// drivers of one name in a program panic when it starts.
//
//	import _ "modernc.org/sqlite" // the driver "sqlite"
//
//	handle, err := sql.Open("sqlite", "file:heed.db")
//	...
//	if err := sqlstore.Migrate(ctx, handle, sqlstore.SQLite); err != nil { ... }
//	db, err := sqlstore.New(ctx, handle, sqlstore.SQLite)
//	...
//	store, err := sqlstore.NewEvidence(db, sqlstore.EvidenceConfig{})
//	...
//	learner, err := strategy.New(strategy.Config{Store: store, Arms: arms})
//
// With PostgreSQL it is the driver "pgx" of github.com/jackc/pgx/v5/stdlib, and [Postgres]. A database of SQLite must be a
// file, as each connection has a ":memory:" of its own. What a configuration leaves out has a default, and a constructor
// reports each fault, such as a negative number, as a heed.ConfigError.
//
// # What is promised
//
// What a method has returned from without an error survives a crash of the process, and with [SQLite], or PostgreSQL as it is
// set up by default, a power cut too; see [Dialect]. Evidence is added: no sum is ever read, changed and written back, so that
// any number of processes add to one cell and no outcome is lost. The ids of a batch, its sums, its history, its audit
// entries and its outgoing events are one transaction; [Evidence.CommitTx] makes them a part of the host's own.
//
// Reads of evidence may be from memory, for as long as EvidenceConfig.Stale says: a store sees its own commits at once, and
// those of others within that time.
//
// # Housekeeping
//
// Nothing runs by itself. The host calls Sweep of each store now and then, which removes what is past its time; until then it
// stays. [DB.Export] and [DB.Import] bring everything from one database to another, of whatever engine. [DB.Forget] takes a
// person out.
//
// The file docs/stores.md of the module has all of this with the tests that show it.
package sqlstore
