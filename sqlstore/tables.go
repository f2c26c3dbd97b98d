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

// tableFiles has the statements that make the tables of both dialects.
//
//go:embed tables
var tableFiles embed.FS

// tablesVersion is the version of the tables that tablesFile makes. Version 6 had other hashes of
// ids.
const (
	tablesVersion = 7
	tablesFile    = "0001_store.sql"
)

// tableFiles returns the folder that has the tables of a dialect.
func (d Dialect) tableFiles() string {
	if d.embedded() {
		return "tables/sqlite/"
	}
	return "tables/postgres/"
}

// Schema returns the file that makes heed's tables, "0001_store.sql", for hosts that run it with
// their tool. It is to run once, in a transaction. All names begin with heed_. [Open] does this by
// itself.
func Schema(dialect Dialect) (fs.FS, error) {
	if err := dialect.validate(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return fs.Sub(tableFiles, strings.TrimSuffix(dialect.tableFiles(), "/"))
}

// A SchemaError reports tables that this program does not open, because a newer heed or an earlier
// layout made them. It is matched with [errors.As]. The remedy is a newer program, or a new
// database.
type SchemaError struct {
	Found int // the version of the tables
	Known int // the version that this program works with
}

// Error states both versions and what to do.
func (e *SchemaError) Error() string {
	if e.Found < e.Known {
		return fmt.Sprintf("the store was made by an earlier layout, version %d, and is not opened: "+
			"this program works with version %d, so give it a new database", e.Found, e.Known)
	}
	return fmt.Sprintf("the tables are of version %d, and this program reads %d: it is too old "+
		"for them", e.Found, e.Known)
}

// prepareTables makes the store's tables if they are missing. With existing, no table is made, and
// a database without tables is [heed.ErrNotFound].
func (db *database) prepareTables(ctx context.Context, conn *sql.Conn, existing bool) error {
	var version int
	err := patiently(ctx, func() (err error) {
		version, err = db.tablesVersion(ctx, conn)
		return err
	})
	if err == nil && version == 0 && existing {
		err = fmt.Errorf("tables: %w", heed.ErrNotFound)
	}
	if err != nil {
		return err
	}
	if db.dialect.embedded() {
		if err := private(ctx, conn); err != nil {
			return err
		}
		if err := patiently(ctx, func() error { return useWAL(ctx, conn) }); err != nil {
			return err
		}
	}
	if version == 0 { // or else others who write are not waited for
		err = db.makeTables(ctx, conn)
	}
	if err == nil && db.dialect.embedded() {
		err = alignFiles(ctx, conn)
	}
	return err
}

// makeTables makes the tables in one transaction. Of several programs that open an empty database
// at once, one makes them, and the others wait and find them. In PostgreSQL they wait for an
// advisory lock; SQLite has one writer. The context's end does not stop the rollback.
func (db *database) makeTables(ctx context.Context, conn *sql.Conn) (err error) {
	begin := "BEGIN ISOLATION LEVEL READ COMMITTED" // to see what others have just made
	if db.dialect.embedded() {
		begin = "BEGIN IMMEDIATE"
	}
	if err := patiently(ctx, func() error {
		_, err := conn.ExecContext(ctx, begin)
		return err
	}); err != nil {
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
	// Asked again under the lock, because another process may have made the tables since.
	version, err := db.tablesVersion(ctx, conn)
	if err != nil || version > 0 { // another process made them
		return err
	}
	text, err := tableFiles.ReadFile(db.dialect.tableFiles() + tablesFile)
	if err == nil {
		err = db.useSchema(ctx, conn)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, string(text))
	}
	return db.mayNotCreate(err)
}

// useSchema makes the schema of the store if it is missing, and has the transaction use it. The
// search_path is set for this transaction only, because the connection is the host's. A role that
// may not create schemas can still use one that exists.
func (db *database) useSchema(ctx context.Context, conn *sql.Conn) error {
	if db.schema == "" {
		return nil
	}
	quoted := `"` + db.schema + `"` // which has no quotes itself
	create := "CREATE SCHEMA " + quoted
	var has bool
	err := conn.QueryRowContext(ctx, "SELECT to_regnamespace($1) IS NOT NULL", quoted).Scan(&has)
	if err == nil && !has {
		_, err = conn.ExecContext(ctx, create)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "SELECT set_config('search_path', $1, true)", quoted)
	}
	return because(ctx, err)
}

// hasTable reports whether a table exists. It is the first statement on a database, so its error
// explains a dialect that is wrong. to_regclass looks in the store's schema alone, if it has one.
func (db *database) hasTable(ctx context.Context, conn *sql.Conn, name string) (bool, error) {
	query := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1"
	if !db.dialect.embedded() {
		query = "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1)"
	}
	var n int
	err := conn.QueryRowContext(ctx, query, db.inSchema(name)).Scan(&n)
	err = because(ctx, err)
	if err != nil && ctx.Err() == nil && !db.dialect.embedded() && !answered(err) {
		err = fmt.Errorf("the database does not answer as PostgreSQL does: is the dialect right? %w",
			err)
	}
	return n > 0, err
}

// tablesVersion returns the version of the tables, and 0 without tables. Any other version than
// this program's is a [*SchemaError]. It reads and changes no row.
func (db *database) tablesVersion(ctx context.Context, conn *sql.Conn) (version int, err error) {
	if has, err := db.hasTable(ctx, conn, "heed_store"); err != nil || !has {
		return 0, err
	}
	err = conn.QueryRowContext(ctx, db.inSchema("SELECT version FROM heed_store")).Scan(&version)
	if err == nil && version != tablesVersion {
		return version, &SchemaError{Found: version, Known: tablesVersion}
	}
	return version, because(ctx, err)
}

// useWAL puts a database file into WAL mode. While another connection is about to do so, SQLite
// refuses without waiting. In WAL mode, readers do not wait for the writer. The mode stays with the
// file.
func useWAL(ctx context.Context, conn *sql.Conn) error {
	var mode string
	err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
	switch {
	case err == nil && mode == "memory":
		return errors.New("the database is in memory, where each connection has its own: give it a " +
			"file, or take memstore")
	case err == nil && mode != "wal":
		return fmt.Errorf("the database can't be put into WAL mode: it stays in mode %q", mode)
	}
	return err
}
