package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/heedhq/heed"
)

// madeTable finds the names of the tables in the file that makes them, so that a check can't forget
// one. The file is the only list of tables.
var madeTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// restoreIt is the remedy for every fault: heed repairs no database, because a copy is surer.
const restoreIt = ": restore the store from a copy"

// Check reads a database without opening a store in it, and does not change it. It returns what is
// wrong and what to do about it, a sentence each: what the engine reports about its pages, and
// tables that are missing. A database without heed's tables is [heed.ErrNotFound], and tables of
// another version are a [*SchemaError].
//
// A deep check takes longer. SQLite compares the indexes of the file with the tables
// (integrity_check). PostgreSQL does so if the database has the extension amcheck. Warnings list
// what could not be checked, for example because the server keeps no checksums of its pages. There
// may be one Config, and only its Schema is used.
func Check(ctx context.Context, handle *sql.DB, dialect Dialect, deep bool, configs ...Config) (
	faults, warnings []string, err error,
) {
	var cfg Config
	if len(configs) > 0 {
		cfg = configs[0]
	}
	if err = cmp.Or(dialect.validate(), cfg.checkSchema(dialect)); err == nil {
		c := &check{db: newDB(handle, dialect, cfg.Schema), deep: deep}
		err = c.db.onConn(ctx, waiting, func(conn *sql.Conn) error { return c.tables(ctx, conn) })
		if err == nil {
			err = c.db.read(ctx, c.file)
		}
		faults, warnings = c.faults, c.warnings
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sqlstore: check: %w", because(ctx, err))
	}
	return faults, warnings, nil
}

// A check is a call of Check.
type check struct {
	db               *database
	deep             bool
	faults, warnings []string
}

// fault notes something that is wrong, with the remedy.
func (c *check) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...)+restoreIt)
}

// warn notes something that could not be checked.
func (c *check) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// tables looks for the tables. It asks PostgreSQL about its pages, too, on the same connection. A
// database that has only some of the tables is at fault; one without any is not a store. A missing
// table does not end the check, so all of them are named at once.
func (c *check) tables(ctx context.Context, conn *sql.Conn) error {
	_, err := c.db.tablesVersion(ctx, conn)
	if err == nil && !c.db.dialect.embedded() {
		err = c.server(ctx, conn)
	}
	if err != nil {
		return err
	}
	text, err := tableFiles.ReadFile(c.db.dialect.tableFiles() + tablesFile)
	if err != nil {
		return err
	}
	found := false
	for _, made := range madeTable.FindAllStringSubmatch(string(text), -1) {
		has, err := c.db.hasTable(ctx, conn, made[1])
		if err != nil {
			return err
		}
		if found = found || has; !has {
			c.fault("the table %s is missing", made[1])
		}
	}
	if !found {
		return fmt.Errorf("tables: %w", heed.ErrNotFound)
	}
	return nil
}

var (
	// quickCheck reads every page and compares no index. It stops at the first fault.
	quickCheck = either(`PRAGMA quick_check(1)`, ``)
	// wholeCheck also compares each index with its table, and reports up to 100 faults.
	wholeCheck = either(`PRAGMA integrity_check(100)`, ``)
)

// file asks SQLite what is wrong with its file.
func (c *check) file(t *tx) error {
	if !c.db.dialect.embedded() {
		return nil
	}
	q := quickCheck
	if c.deep {
		q = wholeCheck
	}
	verdicts, err := t.texts(q)
	for _, verdict := range verdicts {
		if verdict != "ok" {
			c.fault("the file is damaged: %s", strings.ReplaceAll(verdict, "\n", "; "))
		}
	}
	return err
}

// compareIndexes has amcheck, in whatever schema it is, compare all indexes with their tables. The
// error of a damaged index names it.
const compareIndexes = `DO $$ BEGIN
	EXECUTE (SELECT format('SELECT %I.bt_index_check(i.indexrelid, true)
			FROM pg_index AS i JOIN pg_class AS t ON t.oid = i.indrelid
			WHERE t.relname LIKE ''heed\_%%'' AND t.relnamespace =
				(SELECT relnamespace FROM pg_class WHERE oid = to_regclass(''heed_store''))', n.nspname)
		FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
		WHERE e.extname = 'amcheck');
END $$`

// server asks PostgreSQL what it found in its pages and, in a deep check, has amcheck look. A role
// without the right to run amcheck is a warning, because the database may be in order. Each of its
// three questions needs only the rights of a usual role, except for amcheck.
func (c *check) server(ctx context.Context, conn *sql.Conn) error {
	var kept string
	var failures int64
	var installed bool
	err := conn.QueryRowContext(ctx,
		`SELECT current_setting('data_checksums'), coalesce(checksum_failures, 0),
			EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'amcheck')
		FROM pg_stat_database WHERE datname = current_database()`).Scan(&kept, &failures, &installed)
	if err != nil {
		return err
	}
	if failures > 0 {
		c.fault("the server has read pages that do not match their checksums, %d times: see its log",
			failures)
	}
	if !c.deep {
		return nil
	}
	if kept != "on" {
		c.warn("the server keeps no checksums of its pages, so it can't find what a disk " +
			"has changed: see pg_checksums --enable")
	}
	if !installed {
		c.warn("indexes were not compared with their tables, because the database has no " +
			"extension amcheck: run CREATE EXTENSION amcheck, and check again")
		return nil
	}
	_, err = conn.ExecContext(ctx, c.db.inSchema(compareIndexes))
	switch state := stateOf(err); {
	case strings.HasPrefix(state, "XX"): // an internal error, such as index_corrupted
		c.fault("%v", err)
	case state == "42501": // insufficient_privilege
		c.warn("indexes were not compared with their tables, because this role may not run amcheck: " +
			"GRANT EXECUTE ON FUNCTION bt_index_check(regclass, boolean) to it")
	default:
		return err
	}
	return nil
}
