package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
)

var (
	// schemaName matches names that need no escaping within quotes. PostgreSQL cuts longer names.
	schemaName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)
	// heedsName matches what is heed's in a statement: all its names begin with heed_.
	heedsName = regexp.MustCompile(`\bheed_\w+`)
)

// checkSchema refuses a schema that SQLite does not have, or that would have to be quoted.
func (c *Config) checkSchema(dialect Dialect) error {
	if c.Schema == "" {
		return nil
	}
	var found valid.Faults
	found.Check(!dialect.embedded(), "Schema", c.Schema, "must be empty with SQLite")
	found.Check(schemaName.MatchString(c.Schema), "Schema", c.Schema,
		`must be at most 63 letters, digits, "_" and "-"`)
	return found.Err()
}

// inSchema names heed's tables, sequences and functions in a text with the schema of the store.
func (db *database) inSchema(text string) string {
	if db.schema == "" {
		return text
	}
	return heedsName.ReplaceAllStringFunc(text, func(name string) string {
		return `"` + db.schema + `".` + name
	})
}

// stateOf returns the SQLSTATE of an error of PostgreSQL's server, or "". Drivers have different
// types for it, but share this method, so no driver need be imported.
func stateOf(err error) string {
	var answer interface{ SQLState() string }
	if errors.As(err, &answer) {
		return answer.SQLState()
	}
	return ""
}

// answered reports whether an error is PostgreSQL's own, or a network's: it does not mean that the
// database is of another sort. Errors of a driver of SQLite are a [net.Error] as well.
func answered(err error) bool {
	return stateOf(err) != "" || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, new(*net.OpError)) || errors.As(err, new(*net.DNSError))
}

// mayNotCreate explains the error of a role that may not make the tables.
func (db *database) mayNotCreate(err error) error {
	if stateOf(err) != "42501" { // insufficient_privilege
		return err
	}
	return fmt.Errorf("%w: %w", &heed.ConfigError{Field: "handle", Value: "a role without CREATE",
		Reason: "there are no tables yet, and the role may not make them: have their owner " +
			"run sqlstore.Schema, and grant what docs/stores.md lists"}, err)
}

// pooled reports whether an error is PostgreSQL's that the session has, or does not have, the
// statement that the driver prepared. It means that a pooler changed the session.
func pooled(err error) bool {
	state := stateOf(err)
	// duplicate_prepared_statement, invalid_sql_statement_name
	return (state == "42P05" || state == "26000") && !errors.As(err, new(*heed.ConfigError))
}

// errPooled names the remedy for a pooler that changes sessions.
func errPooled() error {
	return &heed.ConfigError{Field: "handle", Value: "a driver that prepares statements in sessions",
		Reason: "a pooler such as PgBouncer gives each transaction another session: " +
			"with pgx, add default_query_exec_mode=exec to the data source name"}
}

// checkSessions finds a pooler that changes sessions: it has two connections prepare one statement,
// which fails if they share a session. A pooler that is busy may give them two sessions. Then the
// first call that fails returns the same error.
func (db *database) checkSessions(ctx context.Context) error {
	if db.dialect.embedded() || db.handle.Stats().MaxOpenConnections == 1 {
		return nil
	}
	const patience = time.Second // others may have all connections of the handle
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := db.handle.Conn(within)
	if err != nil {
		return nil // one connection works
	}
	// The connection is closed, because a pool that needs one should not be left with two.
	defer conn.Raw(func(any) error { return driver.ErrBadConn }) //nolint:errcheck // it is that one
	if _, err = db.hasTable(within, conn, "heed_store"); errors.As(err, new(*heed.ConfigError)) {
		return err
	}
	return nil
}
