package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/heedhq/heed"
)

var (
	madeTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)
	made      = regexp.MustCompile(`(?ms)^(CREATE (?:TABLE|INDEX) (\w+).*?);$`)
)

// Check looks at a database without opening a store in it, and changes nothing. It returns what is wrong and what to do about it, a
// sentence each: what SQLite says of its file, and tables that are missing. A database without heed's tables is [heed.ErrNotFound], and
// tables of another version are a [*SchemaError].
//
// A deep check takes longer. It has SQLite compare the indexes of the file with the tables. Then it reads every row of every table, a page
// at a time, and checks its checksum and whether it agrees with the rows that belong to it. It names the first 100 rows of each table that
// are wrong. It holds up nobody who writes. An error that says nothing about the rows, such as that of a lost connection, is no finding: it
// ends the check. A fault names the step that mends it, which is often a call of the command heed.
func Check(ctx context.Context, handle *sql.DB, dialect Dialect, deep bool) (faults []string, err error) {
	if err = dialect.validate(); err == nil {
		db := newDB(handle, dialect)
		err = db.onConn(ctx, func(conn *sql.Conn) error {
			faults, err = db.check(ctx, conn, deep)
			return err
		})
		if err == nil && deep {
			var rows []string
			rows, err = db.checkRows(ctx, missing(faults))
			faults = append(faults, rows...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sqlstore: check: %w", because(ctx, err))
	}
	return faults, nil
}

const (
	restoreIt     = ": restore the store from a copy"
	missingBefore = "the table "
	missingAfter  = " is missing" + restoreIt
)

// missing returns the tables that a check has missed.
func missing(faults []string) map[string]bool {
	all := make(map[string]bool)
	for _, fault := range faults {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(fault, missingBefore), missingAfter); ok {
			all[name] = true
		}
	}
	return all
}

func (db *database) check(ctx context.Context, conn *sql.Conn, deep bool) (faults []string, err error) {
	version, err := db.tablesVersion(ctx, conn)
	if err != nil {
		return nil, err
	}
	if refused(version) {
		return nil, &SchemaError{Found: version, Known: tablesVersion}
	}
	if faults, err = db.checkFile(ctx, conn, deep); err != nil {
		return nil, err
	}
	found := false
	for _, file := range tableVersions[:max(version-firstVersion+1, 1)] {
		text, err := tableFiles.ReadFile(db.dialect.tableFiles() + file)
		if err != nil {
			return nil, err
		}
		for _, made := range madeTable.FindAllStringSubmatch(string(text), -1) {
			has, err := db.hasTable(ctx, conn, made[1])
			if err != nil {
				return nil, err
			}
			if found = found || has; !has {
				faults = append(faults, missingBefore+made[1]+missingAfter)
			}
		}
		if deep && db.dialect.embedded() {
			changed, err := changedTables(ctx, conn, string(text))
			if err != nil {
				return nil, err
			}
			faults = append(faults, changed...)
		}
	}
	if !found {
		return nil, fmt.Errorf("tables: %w", heed.ErrNotFound)
	}
	return faults, nil
}

// checkFile asks SQLite what is wrong with its file. A deep check compares indexes with tables, too.
func (db *database) checkFile(ctx context.Context, conn *sql.Conn, deep bool) (faults []string, err error) {
	if !db.dialect.embedded() {
		return nil, nil
	}
	pragma := "PRAGMA quick_check(1)"
	if deep {
		pragma = "PRAGMA integrity_check(100)"
	}
	rows, err := conn.QueryContext(ctx, pragma)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var verdict string
		if err := rows.Scan(&verdict); err != nil {
			return nil, err
		}
		if verdict != "ok" {
			faults = append(faults, "the file is damaged: "+strings.ReplaceAll(verdict, "\n", "; ")+restoreIt)
		}
	}
	return faults, rows.Err()
}

// changedTables compares the definitions of tables and indexes in a file of SQLite, which a flip can change, with those that made them.
func changedTables(ctx context.Context, conn *sql.Conn, text string) (faults []string, err error) {
	for _, made := range made.FindAllStringSubmatch(text, -1) {
		var kept string
		err := conn.QueryRowContext(ctx, "SELECT coalesce(max(sql), '') FROM sqlite_master WHERE name = $1", made[2]).Scan(&kept)
		if err != nil {
			return nil, err
		}
		if kept != "" && kept != made[1] {
			faults = append(faults, "the definition of "+made[2]+" is not heed's"+restoreIt)
		}
	}
	return faults, nil
}
