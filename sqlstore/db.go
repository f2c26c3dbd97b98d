package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
)

// Dialect is the kind of database, and the guarantees there. If it is 0, [Open] finds it out by
// itself: then it is SQLite or Postgres. Give it to [Open] if you know it: then a handle of the
// wrong kind is an error, and SQLiteRelaxed can be chosen.
type Dialect int

// The dialects.
const (
	// SQLite writes with synchronous=FULL to a file in WAL mode: what was acknowledged survives a
	// power cut.
	SQLite Dialect = iota + 1
	// SQLiteRelaxed is weaker: it writes with synchronous=NORMAL, which is quicker. A power cut can
	// take back what was acknowledged last, and leaves all that was before it in order.
	SQLiteRelaxed
	// Postgres is PostgreSQL 12 or later. Acknowledged commits are as durable as its setting
	// synchronous_commit makes them. By default they survive a power cut.
	Postgres

	// dialects is one more than the last dialect, for arrays that are indexed by it.
	dialects = iota + 1
)

// String returns a name for people, such as "PostgreSQL".
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case SQLiteRelaxed:
		return "SQLite, relaxed"
	case Postgres:
		return "PostgreSQL"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// embedded reports whether the database is a file that SQLite reads and writes in this process.
// Most differences between the engines in this package follow from it.
func (d Dialect) embedded() bool { return d == SQLite || d == SQLiteRelaxed }

// validate refuses 0 as well, which only Open accepts.
func (d Dialect) validate() error {
	var found valid.Faults
	found.Check(d >= SQLite && d < dialects, "Dialect", int(d),
		"must be SQLite, SQLiteRelaxed or Postgres")
	return found.Err()
}

// dialectOf asks a database what it is. Other databases that know version(), for example MySQL, are
// refused by name. It runs at most two statements, and changes no setting of the connection.
func dialectOf(ctx context.Context, handle *sql.DB) (Dialect, error) {
	var version string
	// which SQLite does not have
	err := handle.QueryRowContext(ctx, "SELECT version()").Scan(&version)
	switch {
	case err == nil && strings.HasPrefix(version, "PostgreSQL"):
		return Postgres, nil
	case err == nil:
		return 0, &heed.ConfigError{Field: "handle", Value: version,
			Reason: "must be a database of SQLite or PostgreSQL"}
	case handle.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version) == nil:
		return SQLite, nil
	}
	return 0, because(ctx, err)
}

// A database has heed's tables. It is safe for concurrent use.
type database struct {
	// handle is the host's, and stays open.
	handle *sql.DB
	// dialect is found out or given before a database is made, and never 0.
	dialect Dialect
	schema  string   // of the tables; empty: the schema that search_path finds
	texts   []string // by number of the query, if there is a schema
	setUp   string   // what a connection of SQLite needs before it writes
	// by number of the query; SQLite alone, because drivers for PostgreSQL keep their own
	stmts []atomic.Pointer[sql.Stmt]
	turn  host.Lock // of the writers of this process, because SQLite has one at a time
}

// newDB returns a database whose tables were not looked at yet. With a schema, each statement is
// rewritten once to name it, because a pooler may give any connection another search_path.
// Statements are prepared later, each at its first use.
func newDB(handle *sql.DB, dialect Dialect, schema string) *database {
	setUp := durable
	if dialect == SQLiteRelaxed {
		setUp = relaxed
	}
	db := &database{
		setUp:  setUp,
		handle: handle, dialect: dialect, stmts: make([]atomic.Pointer[sql.Stmt], len(queries)),
		turn:   host.NewLock(),
		schema: schema,
	}
	if schema != "" {
		for _, q := range queries {
			db.texts = append(db.texts, db.inSchema(q.texts[dialect]))
		}
	}
	return db
}

// text returns a query as this database takes it.
func (db *database) text(q *query) string {
	if db.texts != nil {
		return db.texts[q.number]
	}
	return q.texts[db.dialect]
}

// because adds to an error that the context was done, if that is the reason. It explains the errors
// of statements that were prepared in another session. Callers then find the end of their context
// by [errors.Is], whatever the driver returned.
func because(ctx context.Context, err error) error {
	if pooled(err) {
		err = fmt.Errorf("%w: %w", errPooled(), err)
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// wrap adds to an error what failed.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlstore: %s: %w", what, err)
}

// How a connection of SQLite is set up, each time that heed writes, because the host's pool may
// have opened it elsewhere.
const (
	waiting   = `PRAGMA busy_timeout = 10000`
	noWaiting = `PRAGMA busy_timeout = 0`
	durable   = `; PRAGMA synchronous = FULL`
	relaxed   = `; PRAGMA synchronous = NORMAL`
)

// SQLite brings its log into the file when it has this many pages. Pages that change often are then
// written to the file less often. Four thousand are 16 MB, and as many as one part of the log's
// index has.
const (
	usualLog     = 1000 // SQLite's own
	longerLog    = 4000
	setLongerLog = `; PRAGMA wal_autocheckpoint = 4000`
)

// lengthenLog has the connections that write keep a longer log, unless the host set its length by
// the data source name. It is called once, when the store is opened.
func (db *database) lengthenLog(ctx context.Context, conn *sql.Conn) error {
	if !db.dialect.embedded() {
		return nil
	}
	var pages int
	err := conn.QueryRowContext(ctx, "PRAGMA wal_autocheckpoint").Scan(&pages)
	// another store of this handle may have lengthened it
	if err == nil && (pages == usualLog || pages == longerLog) {
		db.setUp += setLongerLog
	}
	return err
}

// onConn calls a function with a connection that is set up. One of SQLite that is to write does not
// wait by itself for others that write: see patiently. The set-up costs no round trip, because
// SQLite runs in this process. A connection that could not be set up goes back to the pool, and do
// is not called.
func (db *database) onConn(ctx context.Context, waits string, do func(*sql.Conn) error) error {
	var conn *sql.Conn
	err := patiently(ctx, func() (err error) { // fails while the last connection closes
		conn, err = db.handle.Conn(ctx)
		return err
	})
	if err != nil {
		return because(ctx, err)
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	if db.dialect.embedded() {
		if waits == noWaiting {
			defer waitAgain(ctx, conn)
		}
		setUp := waits + db.setUp
		if err := patiently(ctx, func() error {
			_, err := conn.ExecContext(ctx, setUp)
			return err
		}); err != nil {
			return because(ctx, err)
		}
	}
	return do(conn)
}

// waitAgain has a connection wait for others, because it goes back to the pool of the host, which
// expects that. One that can't, for example because an ended context still interrupts it, does not
// go back.
func waitAgain(ctx context.Context, conn *sql.Conn) {
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), waiting); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// A tx runs queries, in a transaction or, to read, outside of one.
type tx struct {
	// ctx is the context of the statements. CommitTx replaces it at the end.
	ctx context.Context
	// db has the texts of the queries. on runs them: the handle, or the transaction.
	db *database
	on interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	// sql is the transaction, or nil outside of one.
	sql  *sql.Tx
	seen []*query // that were not prepared

	// is called in SQLite after the commit, before anybody else in this process writes
	committed func()
}

// prepare keeps statements for the next time. It is done when the connection of a transaction is
// back in the pool, which may have no other; one that can't be prepared then goes on as text. A
// statement is prepared once for the handle, and database/sql prepares it on each connection that
// uses it.
func (db *database) prepare(ctx context.Context, seen []*query) {
	for _, q := range seen {
		if db.stmts[q.number].Load() != nil {
			continue
		}
		stmt, err := db.handle.PrepareContext(ctx, db.text(q))
		if err == nil && !db.stmts[q.number].CompareAndSwap(nil, stmt) {
			_ = stmt.Close() // somebody else was quicker
		}
	}
}

// prepared returns a statement for use in the transaction, or nil. A query that was not prepared
// yet is noted, and prepared when the transaction has ended.
func (t *tx) prepared(q *query) *sql.Stmt {
	if !t.db.dialect.embedded() {
		return nil
	}
	stmt := t.db.stmts[q.number].Load()
	if stmt == nil {
		t.seen = append(t.seen, q)
		return nil
	}
	if t.sql == nil {
		return stmt
	}
	return t.sql.StmtContext(t.ctx, stmt)
}

// enter calls a function in a transaction, after one that takes the lock. The transaction is
// committed if both return nil. In SQLite, lock is called again for as long as others have it. If
// PostgreSQL found a deadlock and rolled this transaction back, or its connection was broken before
// COMMIT, both are called again: no caller did anything wrong. So do must not keep anything of an
// earlier try.
func (db *database) enter(ctx context.Context, lock, do func(*tx) error) error {
	const tries = 5
	for try := 1; ; try++ {
		err := db.renewed(ctx, func() error { return db.writeOnce(ctx, lock, do) })
		if try == tries || !deadlocked(err) {
			return err
		}
	}
}

// renewed calls a function again as long as its connection turns out to be broken. A server that
// crashed or was replaced leaves such connections in the pool of the host, and each try removes
// one. At last a new one is opened, whose error is the server's. An error whose outcome is unknown
// is returned.
func (db *database) renewed(ctx context.Context, do func() error) error {
	err := do()
	if !broken(err) {
		return err
	}
	for left := db.handle.Stats().Idle; left >= 0 && broken(err) && ctx.Err() == nil; left-- {
		err = do()
	}
	return err
}

// broken reports whether an error means that the connection was of no use, and nothing was
// committed by it.
func broken(err error) bool {
	if err == nil || errors.Is(err, heed.ErrOutcomeUnknown) {
		return false
	}
	switch state := stateOf(err); state {
	case "57P01", "57P02", "57P05": // the server ended the session, or all, or those that were idle
		return true
	case "":
		return slices.ContainsFunc([]error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF,
			syscall.ECONNRESET, syscall.EPIPE}, func(one error) bool { return errors.Is(err, one) })
	default:
		return strings.HasPrefix(state, "08") // connection exceptions
	}
}

// deadlocked reports whether an error is PostgreSQL's that the transaction was in a deadlock.
func deadlocked(err error) bool { return stateOf(err) == "40P01" }

// writeOnce is enter without another try. PostgreSQL runs transactions at READ COMMITTED: what must
// not change is locked, and each statement sees what others have committed. In SQLite the lock is
// the first statement that writes, and waits for other processes only.
func (db *database) writeOnce(ctx context.Context, lock, do func(*tx) error) error {
	if !db.dialect.embedded() {
		sqlTx, err := db.handle.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		_, err = db.finish(ctx, sqlTx, err, lock, do)
		return err
	}
	// The writers of this process wait in a line, because SQLite would let all of them try at once,
	// and serves those that wait in no order.
	if err := db.turn.Lock(ctx); err != nil {
		return err
	}
	defer db.turn.Unlock()
	var t *tx
	err := db.onConn(ctx, noWaiting, func(conn *sql.Conn) error {
		var sqlTx *sql.Tx
		err := patiently(ctx, func() (err error) {
			sqlTx, err = conn.BeginTx(ctx, nil) // which may be the host's BEGIN IMMEDIATE
			return err
		})
		t, err = db.finish(ctx, sqlTx, err, nil, func(t *tx) error {
			if err := patiently(ctx, func() error { return lock(t) }); err != nil {
				return err
			}
			return do(t)
		})
		return err
	})
	// Still under the turn, so that no later commit of this process can be overtaken.
	if err == nil && t != nil && t.committed != nil {
		t.committed()
	}
	if t != nil {
		db.prepare(ctx, t.seen)
	}
	return err
}

// alone calls a function with a connection of SQLite while no other call in this process writes.
// VACUUM and checkpoints run so, outside of a transaction.
func (db *database) alone(ctx context.Context, do func(context.Context, *sql.Conn) error) error {
	if err := db.turn.Lock(ctx); err != nil {
		return err
	}
	defer db.turn.Unlock()
	return because(ctx, db.onConn(ctx, noWaiting, func(conn *sql.Conn) error {
		return do(ctx, conn)
	}))
}

// patiently calls a function again for as long as others keep the database locked, though not for
// ever. SQLite's own waiting looks only now and then whether it can have its turn, at last ten
// times a second, and so can miss all of the moments at which processes that write without a pause
// let go.
func patiently(ctx context.Context, do func() error) error {
	const pause, patience = 5 * time.Millisecond, 10 * time.Second
	err := do()
	if !locked(err) {
		return err
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	for locked(err) {
		select {
		case <-ctx.Done():
			return because(ctx, err)
		case <-over.C:
			return err
		case <-time.After(pause):
			err = do()
		}
	}
	return err
}

// locked reports whether an error is SQLite's that others have what it takes. Each driver has a
// separate type for it. All of the drivers have this word of SQLite's in the text.
func locked(err error) bool { return err != nil && strings.Contains(err.Error(), "locked") }

// finish calls a function in a transaction that began, if it has, and ends it. It returns what the
// function was given. The rollback after a commit has no effect. The lock's error ends the
// transaction before do is called.
func (db *database) finish(ctx context.Context, sqlTx *sql.Tx, err error, lock,
	do func(*tx) error) (*tx, error) {
	if err != nil {
		return nil, because(ctx, err)
	}
	defer sqlTx.Rollback() //nolint:errcheck // another error is returned
	t := db.in(ctx, sqlTx)
	if lock != nil {
		if err := lock(t); err != nil {
			return t, err
		}
	}
	if err := do(t); err != nil {
		return t, err
	}
	return t, db.commit(ctx, sqlTx)
}

// commit ends a transaction. Its error wraps [heed.ErrOutcomeUnknown], unless it is certain that
// the database did not apply the transaction.
func (db *database) commit(ctx context.Context, sqlTx *sql.Tx) error {
	// Looked at once more, because an error from here on is certain, and one after COMMIT is not.
	if err := ctx.Err(); err != nil { // COMMIT is not sent
		return err
	}
	err := sqlTx.Commit()
	if err == nil || db.notApplied(err) {
		return because(ctx, err)
	}
	return fmt.Errorf("%w: %w", heed.ErrOutcomeUnknown, because(ctx, err))
}

// notApplied reports whether an error of COMMIT means that the transaction was not applied. For all
// other errors the outcome is unknown, and store.Do looks by the id of the batch whether it was
// applied.
func (db *database) notApplied(err error) bool {
	if errors.Is(err, sql.ErrTxDone) { // the context ended before
		return true
	}
	if db.dialect.embedded() {
		return strings.Contains(err.Error(), "is full")
	}
	// For a COMMIT that was sent, pgx may return "conn closed", and that it is safe to try again.
	switch state := stateOf(err); {
	case state == "", state == "40003": // statement_completion_unknown
		return false
	case state == "57014": // query_canceled
		return true
	// a constraint, the state of the transaction, a rollback; any other may be a server that stops
	default:
		return slices.Contains([]string{"23", "25", "40"}, state[:min(2, len(state))])
	}
}

// in returns a tx that runs its queries in a transaction.
func (db *database) in(ctx context.Context, sqlTx *sql.Tx) *tx {
	return &tx{ctx: ctx, db: db, on: sqlTx, sql: sqlTx}
}

// read calls a function that only reads. Each of its statements sees the database as it is then,
// and never waits: not even in SQLite where the host has every transaction begin with BEGIN
// IMMEDIATE.
func (db *database) read(ctx context.Context, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &tx{ctx: ctx, db: db, on: db.handle}
	err := do(t)
	db.prepare(ctx, t.seen)
	return err
}

// snapshot calls a function that only reads, and sees the database as it is at one moment. A dump
// needs it: its statements must agree with each other.
func (db *database) snapshot(ctx context.Context, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	options := &sql.TxOptions{ReadOnly: true}
	if !db.dialect.embedded() {
		options.Isolation = sql.LevelRepeatableRead
	}
	return db.onConn(ctx, waiting, func(conn *sql.Conn) error {
		sqlTx, err := conn.BeginTx(ctx, options)
		_, err = db.finish(ctx, sqlTx, err, nil, do)
		return err
	})
}

// exec runs a statement and returns how many rows it changed. A prepared statement saves SQLite the
// parsing.
func (t *tx) exec(q *query, args ...any) (n int64, err error) {
	var result sql.Result
	if stmt := t.prepared(q); stmt != nil {
		result, err = stmt.ExecContext(t.ctx, args...)
	} else {
		result, err = t.on.ExecContext(t.ctx, t.db.text(q), args...)
	}
	if err != nil {
		return 0, because(t.ctx, err)
	}
	return result.RowsAffected()
}

// execRows runs a statement whose last argument is rows of values, if there are any. The rows are
// one argument as JSON, so a statement has the same text for any number of them.
func (t *tx) execRows(q *query, rows [][]any, before ...any) error {
	if len(rows) == 0 {
		return nil
	}
	text, err := rowsOf(rows)
	if err == nil {
		_, err = t.exec(q, append(before, text)...)
	}
	return err
}

// insert runs a bulk with rows of values, and calls a function with every row that it returns. A
// bulk that returns no rows does not need the function. PostgreSQL gets one statement for all rows.
// SQLite gets the fewest statements of bulkSizes that make up the number, for example 32, 8 and 3
// rows for 43.
func (t *tx) insert(b *bulk, rows [][]any, row func(scan func(...any) error) error) error {
	run := func(q *query, args []any) error {
		if row != nil {
			return t.each(q, args, row)
		}
		_, err := t.exec(q, args...)
		return err
	}
	if !t.db.dialect.embedded() && len(rows) > 0 {
		text, err := rowsOf(rows)
		if err != nil {
			return err
		}
		return run(b.json, []any{text})
	}
	for i, size := range bulkSizes {
		for ; len(rows) >= size; rows = rows[size:] {
			if err := run(b.bound[i], slices.Concat(rows[:size]...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// each calls a function with every row that a query finds. Outside of a transaction, it is asked
// again until there is a row if its connection was broken, or if a database of SQLite is locked for
// a moment, for example while its last user closes it.
func (t *tx) each(q *query, args []any, row func(scan func(...any) error) error) error {
	if t.sql != nil {
		return t.query(q, args, row)
	}
	again := t.db.renewed
	if t.db.dialect.embedded() {
		again = patiently
	}
	var failed error // after the first row
	err := again(t.ctx, func() error {
		found := false
		err := t.query(q, args, func(scan func(...any) error) error {
			found = true
			return row(scan)
		})
		// Rows were handed on already. To ask again would hand them on twice, so the error is final.
		if found {
			failed, err = err, nil
		}
		return err
	})
	return cmp.Or(err, failed)
}

// query is each without another try. An error of the function ends the
// reading.
func (t *tx) query(q *query, args []any, row func(scan func(...any) error) error) (err error) {
	var rows *sql.Rows
	if stmt := t.prepared(q); stmt != nil {
		rows, err = stmt.QueryContext(t.ctx, args...)
	} else {
		rows, err = t.on.QueryContext(t.ctx, t.db.text(q), args...)
	}
	if err != nil {
		return because(t.ctx, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports it
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			if strings.Contains(err.Error(), "sql: Scan error") { // such as a count below 0
				err = damaged("%v", err)
			}
			return err
		}
	}
	return because(t.ctx, rows.Err())
}

// one scans the row that a query finds, or returns [heed.ErrNotFound].
func (t *tx) one(q *query, args []any, into ...any) error {
	found := false
	err := t.each(q, args, func(scan func(...any) error) error {
		found = true
		return scan(into...)
	})
	if err == nil && !found {
		err = heed.ErrNotFound
	}
	return err
}

// finds reports whether a query finds a row.
func (t *tx) finds(q *query, args ...any) (bool, error) {
	found := false
	err := t.each(q, args, func(func(...any) error) error {
		found = true
		return nil
	})
	return found, err
}

// texts returns the first column of a query's rows.
func (t *tx) texts(q *query, args ...any) (all []string, err error) {
	return collect(t, q, args, func(scan func(...any) error) (text string, err error) {
		return text, scan(&text)
	})
}

// collect returns what a function makes of the rows that a query finds. All rows are kept in
// memory, so it is for bounded queries.
func collect[T any](
	t *tx, q *query, args []any, row func(scan func(...any) error) (T, error),
) (all []T, err error) {
	err = t.each(q, args, func(scan func(...any) error) error {
		one, err := row(scan)
		all = append(all, one)
		return err
	})
	return all, err
}
