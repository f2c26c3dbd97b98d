package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/heedhq/heed"
)

//go:embed tables
var tableFiles embed.FS

// tableVersions are the names of the files that make the store's tables, the same in each dialect, in order.
var tableVersions = [...]string{"0001_store.sql"}

// firstVersion is the version of the tables that the first file makes. Tables of version 5 have
// columns of checksums, and an answer was several records of several kinds in version 4.
const (
	firstVersion  = 6
	tablesVersion = firstVersion + len(tableVersions) - 1
)

func (d Dialect) tableFiles() string {
	if d.embedded() {
		return "tables/sqlite/"
	}
	return "tables/postgres/"
}

// Schema returns the files that make heed's tables, "0001_store.sql" and so on, for hosts that run them with a tool of their
// own. Each is to run once, in order and in a transaction. All names begin with heed_. [Open] does all of it by itself.
func Schema(dialect Dialect) (fs.FS, error) {
	if err := dialect.validate(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return fs.Sub(tableFiles, strings.TrimSuffix(dialect.tableFiles(), "/"))
}

// A SchemaError reports tables that this program does not open, because a newer heed or an earlier
// layout made them.
type SchemaError struct {
	Found int // the version of the tables
	Known int // the version that this program works with
}

func (e *SchemaError) Error() string {
	if e.Found < e.Known {
		return fmt.Sprintf("the store was made by an earlier layout, version %d, and is not opened: "+
			"this program works with version %d, so give it a new database", e.Found, e.Known)
	}
	return fmt.Sprintf("the tables are of version %d, and this program knows %d: it is too old for them", e.Found, e.Known)
}

// prepareTables makes the store's tables, or brings them up to date: all that is missing, or nothing.
func (db *database) prepareTables(ctx context.Context, conn *sql.Conn, existing bool) error {
	if existing {
		if version, err := db.tablesVersion(ctx, conn); err != nil {
			return err
		} else if version == 0 {
			return fmt.Errorf("tables: %w", heed.ErrNotFound)
		}
	}
	if db.dialect.embedded() {
		if err := private(ctx, conn); err != nil {
			return err
		}
		if err := patiently(ctx, func() error { return useWAL(ctx, conn) }); err != nil {
			return err
		}
	}
	version, err := db.tablesVersion(ctx, conn)
	switch {
	case err != nil:
		return err
	case refused(version):
		return &SchemaError{Found: version, Known: tablesVersion}
	case version < tablesVersion: // or else nobody who writes is waited for
		err = db.migrateTables(ctx, conn)
	}
	if err == nil && db.dialect.embedded() {
		err = alignFiles(ctx, conn)
	}
	return err
}

// refused reports whether this program can't bring tables of a version up to date.
func refused(version int) bool {
	return version > tablesVersion || version != 0 && version < firstVersion
}

func (db *database) migrateTables(ctx context.Context, conn *sql.Conn) (err error) {
	begin := "BEGIN"
	if db.dialect.embedded() {
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
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_xact_lock(4838441021389)"); err != nil {
			return err
		}
	}
	version, err := db.tablesVersion(ctx, conn)
	switch {
	case err != nil:
		return err
	case refused(version):
		return &SchemaError{Found: version, Known: tablesVersion}
	case version > 0 && !db.dialect.embedded(): // commits under way end first, and later ones see the new version
		if _, err := conn.ExecContext(ctx, "LOCK TABLE heed_store IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
	}
	for _, name := range tableVersions[max(version-firstVersion+1, 0):] {
		text, err := tableFiles.ReadFile(db.dialect.tableFiles() + name)
		if err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (db *database) hasTable(ctx context.Context, conn *sql.Conn, name string) (bool, error) {
	query := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1"
	if !db.dialect.embedded() {
		query = "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1)"
	}
	var n int
	err := conn.QueryRowContext(ctx, query, name).Scan(&n)
	if err = because(ctx, err); err != nil && ctx.Err() == nil && !db.dialect.embedded() {
		err = fmt.Errorf("the database does not answer as PostgreSQL does: is the dialect right? %w", err)
	}
	return n > 0, err
}

// tablesVersion returns the version of the tables, and 0 where there are none.
func (db *database) tablesVersion(ctx context.Context, conn *sql.Conn) (version int, err error) {
	if has, err := db.hasTable(ctx, conn, "heed_store"); err != nil || !has {
		return 0, err
	}
	err = conn.QueryRowContext(ctx, "SELECT version FROM heed_store").Scan(&version)
	return version, because(ctx, err)
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
