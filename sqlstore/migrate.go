package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/heedhq/heed/internal/export"
)

//go:embed schema
var schemas embed.FS

// migrations are the names of the files that make the tables, the same in each dialect, in order. Exports have their number.
var migrations = [export.Version]string{"0001_evidence.sql", "0002_strategy.sql", "0003_documents.sql"}

// Schema returns the files that make heed's tables, "0001_evidence.sql" and so on, for hosts that run them with a tool of
// their own. Each is to run once, in order and in a transaction; it writes its number into the table heed_schema. All names
// begin with heed_. A file of SQLite is put into WAL mode by [New].
func Schema(dialect Dialect) (fs.FS, error) {
	if err := dialect.validate(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return fs.Sub(schemas, dialect.directory())
}

func (d Dialect) directory() string {
	if d.embedded() {
		return "schema/sqlite"
	}
	return "schema/postgres"
}

// A SchemaError says that the tables are not those that this version of heed works with.
type SchemaError struct {
	Found int // the version of the tables; 0: there are none
	Known int // the version that this program works with
}

func (e *SchemaError) Error() string {
	switch {
	case e.Found == 0:
		return "there are no tables of heed: run Migrate"
	case e.Found > e.Known:
		return fmt.Sprintf("the tables are of version %d, and this program knows %d: it is too old for them", e.Found, e.Known)
	}
	return fmt.Sprintf("the tables are of version %d, and this program needs %d: run Migrate", e.Found, e.Known)
}

// Migrate makes heed's tables, or brings them up to date: all that is missing, or nothing. Any number of processes may do
// so at once. Tables newer than this version of heed are a [*SchemaError]. A database file of SQLite is put into WAL mode;
// one in memory is refused, as each connection has its own there.
func Migrate(ctx context.Context, handle *sql.DB, dialect Dialect) error {
	if err := dialect.validate(); err != nil {
		return fmt.Errorf("sqlstore: %w", err)
	}
	db := newDB(handle, dialect)
	if err := db.onConn(ctx, func(conn *sql.Conn) error { return db.migrate(ctx, conn) }); err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", because(ctx, err))
	}
	return nil
}

func (db *DB) migrate(ctx context.Context, conn *sql.Conn) (err error) {
	begin := "BEGIN"
	if db.dialect.embedded() {
		if err := patiently(ctx, func() error { return useWAL(ctx, conn) }); err != nil {
			return err
		}
		if version, err := db.version(ctx, conn); err != nil || version == len(migrations) {
			return err // whoever writes goes on
		}
		begin = "BEGIN IMMEDIATE"
	}
	if err := patiently(ctx, func() error { _, err := conn.ExecContext(ctx, begin); return err }); err != nil {
		return err
	}
	defer func() {
		end := "COMMIT"
		if err != nil {
			end = "ROLLBACK"
		}
		if _, failure := conn.ExecContext(context.WithoutCancel(ctx), end); err == nil {
			err = failure
		}
	}()
	if !db.dialect.embedded() {
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_xact_lock(4838441021386)"); err != nil {
			return err
		}
	}
	version, err := db.version(ctx, conn)
	if err != nil {
		return err
	}
	if version > len(migrations) {
		return &SchemaError{Found: version, Known: len(migrations)}
	}
	for _, name := range migrations[version:] {
		text, err := schemas.ReadFile(db.dialect.directory() + "/" + name)
		if err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// useWAL puts a database file into WAL mode. While another connection is about to do so, SQLite refuses without waiting.
func useWAL(ctx context.Context, conn *sql.Conn) error {
	var mode string
	err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
	switch {
	case err == nil && mode == "memory":
		return errors.New("the database is in memory, where each connection has its own: give it a file, or take memstore")
	case err == nil && mode != "wal":
		return fmt.Errorf("the database can't be put into WAL mode: it stays in mode %q", mode)
	}
	return err
}

// version returns the version of the tables, and 0 where there are none.
func (db *DB) version(ctx context.Context, conn *sql.Conn) (version int, err error) {
	exists := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'heed_schema'"
	if !db.dialect.embedded() {
		exists = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('heed_schema')"
	}
	var n int
	if err := conn.QueryRowContext(ctx, exists).Scan(&n); err != nil || n == 0 {
		return 0, because(ctx, err)
	}
	err = conn.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM heed_schema").Scan(&version)
	return version, because(ctx, err)
}
