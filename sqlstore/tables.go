package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
)

//go:embed tables
var tableFiles embed.FS

// tableVersions are the names of the files that make the store's tables, the same in each dialect, in order.
var tableVersions = []string{"0001_store.sql"}

func (d Dialect) tableFiles() string {
	if d.embedded() {
		return "tables/sqlite/"
	}
	return "tables/postgres/"
}

// prepareTables makes the store's tables, or brings them up to date: all that is missing, or nothing.
func (db *DB) prepareTables(ctx context.Context, conn *sql.Conn) error {
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
	case version > len(tableVersions):
		return &SchemaError{Found: version, Known: len(tableVersions)}
	case version < len(tableVersions): // or else nobody who writes is waited for
		err = db.migrateTables(ctx, conn)
	}
	if err == nil && db.dialect.embedded() {
		err = alignFiles(ctx, conn)
	}
	return err
}

func (db *DB) migrateTables(ctx context.Context, conn *sql.Conn) (err error) {
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
	case version > len(tableVersions):
		return &SchemaError{Found: version, Known: len(tableVersions)}
	case version > 0 && !db.dialect.embedded(): // commits under way end first, and later ones see the new version
		if _, err := conn.ExecContext(ctx, "LOCK TABLE heed_store IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
	}
	for _, name := range tableVersions[min(version, len(tableVersions)):] {
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

// tablesVersion returns the version of the tables, and 0 where there are none.
func (db *DB) tablesVersion(ctx context.Context, conn *sql.Conn) (version int, err error) {
	exists := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'heed_store'"
	if !db.dialect.embedded() {
		exists = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('heed_store')"
	}
	var n int
	if err := conn.QueryRowContext(ctx, exists).Scan(&n); err != nil || n == 0 {
		return 0, because(ctx, err)
	}
	err = conn.QueryRowContext(ctx, "SELECT version FROM heed_store").Scan(&version)
	return version, because(ctx, err)
}
