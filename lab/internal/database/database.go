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

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/sqlstore"
)

// Usage describes what -db takes.
const Usage = "the `database`: a file, for SQLite, or a DSN that begins with postgres://"

// Open opens the store in a database. The caller closes the handle.
func Open(ctx context.Context, where string, cfg sqlstore.Config) (*sqlstore.Store, *sql.DB,
	error) {
	if where == ":memory:" { // each connection would have another database
		return nil, nil, fmt.Errorf("-db must name a file, or a database of PostgreSQL: %w",
			kit.ErrUsage)
	}
	driver, dsn, dialect := "sqlite", "file:"+(&url.URL{Path: where}).EscapedPath(), sqlstore.SQLite
	if strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://") {
		driver, dsn, dialect = "pgx", where, sqlstore.Postgres
	}
	handle, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, nil, err
	}
	st, err := sqlstore.Open(ctx, handle, dialect, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, handle.Close())
	}
	return st, handle, nil
}
