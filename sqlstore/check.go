package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"

	"github.com/heedhq/heed"
)

var madeTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// Check looks at a database without opening a store in it, and changes nothing. It returns what is wrong, a sentence each: what
// SQLite says of its file, and tables that are missing. A database without heed's tables is [heed.ErrNotFound], and newer tables
// are a [*SchemaError].
func Check(ctx context.Context, handle *sql.DB, dialect Dialect) (faults []string, err error) {
	if err = dialect.validate(); err == nil {
		db := newDB(handle, dialect)
		err = db.onConn(ctx, func(conn *sql.Conn) error {
			faults, err = db.check(ctx, conn)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("sqlstore: check: %w", because(ctx, err))
	}
	return faults, nil
}

func (db *database) check(ctx context.Context, conn *sql.Conn) (faults []string, err error) {
	if db.dialect.embedded() {
		var verdict string
		if err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
			return nil, err
		}
		if verdict != "ok" {
			faults = append(faults, "the file is damaged: "+verdict)
		}
	}
	version, err := db.tablesVersion(ctx, conn)
	if err != nil {
		return nil, err
	}
	if version > len(tableVersions) {
		return nil, &SchemaError{Found: version, Known: len(tableVersions)}
	}
	found := false
	for _, file := range tableVersions[:max(version, 1)] {
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
				faults = append(faults, "the table "+made[1]+" is missing")
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("tables: %w", heed.ErrNotFound)
	}
	return faults, nil
}
