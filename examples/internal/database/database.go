// Package database opens what -db names: it brings the drivers, which heed leaves to its hosts.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/heedhq/heed/examples/internal/show"
	"github.com/heedhq/heed/sqlstore"
)

// Usage describes what -db takes.
const Usage = "the `database`: a file, for SQLite, or a DSN that begins with postgres://"

// Handle returns a handle on a database, which is for the host's own tables too and must be closed,
// and the database's dialect for [sqlstore.Open].
func Handle(where string) (*sql.DB, sqlstore.Dialect, error) {
	// in memory, each connection would have its own database
	if where == "" || where == ":memory:" {
		return nil, 0, fmt.Errorf("-db must name a file, or a database of PostgreSQL: %w",
			show.ErrUsage)
	}
	driver, dsn, dialect := "sqlite", "file:"+(&url.URL{Path: where}).EscapedPath(), sqlstore.SQLite
	if strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://") {
		driver, dsn, dialect = "pgx", where, sqlstore.Postgres
	}
	handle, err := sql.Open(driver, dsn)
	return handle, dialect, err
}

// Open opens the store in a database. The handle is for the host's own tables too, and must be
// closed.
func Open(
	ctx context.Context, where string, cfg sqlstore.Config,
) (*sqlstore.Store, *sql.DB, error) {
	handle, dialect, err := Handle(where)
	if err != nil {
		return nil, nil, err
	}
	st, err := sqlstore.Open(ctx, handle, dialect, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, handle.Close())
	}
	return st, handle, nil
}
