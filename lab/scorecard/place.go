package scorecard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"       // the driver "pgx"
	_ "github.com/ncruces/go-sqlite3/driver" // the driver "sqlite3"
	_ "modernc.org/sqlite"                   // the driver "sqlite"

	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/sqlstore"
)

// The engines, with their drivers.
const (
	modernc  = "SQLite (modernc)"
	ncruces  = "SQLite (ncruces)"
	relaxed  = "SQLiteRelaxed"
	postgres = "PostgreSQL"
)

// A place is where a database is. Any number of handles and processes can open it.
type place struct {
	Dialect     sqlstore.Dialect
	Driver, DSN string
}

// store opens the store of a place on its own handle. The caller closes the handle.
func (p place) store(ctx context.Context, cfg sqlstore.Config) (*sqlstore.Store, *sql.DB, error) {
	handle, err := sql.Open(p.Driver, p.DSN)
	if err != nil {
		return nil, nil, err
	}
	st, err := sqlstore.Open(ctx, handle, p.Dialect, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, handle.Close())
	}
	return st, handle, nil
}

// newPlace makes a new database, which end removes.
func newPlace(ctx context.Context, engine string) (p place, end func() error) {
	if engine == postgres {
		return newSchema(ctx)
	}
	dir := kit.Must(os.MkdirTemp("", "heed-scorecard"))
	p = place{sqlstore.SQLite, "sqlite", "file:" + strings.ReplaceAll(filepath.Join(dir, "heed.db"),
		"#", "%23")}
	switch engine {
	case relaxed:
		p.Dialect = sqlstore.SQLiteRelaxed
	case ncruces:
		p.Driver = "sqlite3"
	}
	return p, func() error { return os.RemoveAll(dir) }
}

// on is an attempt with a new place.
func on(engine string, attempt func(context.Context, card.Settings, place) (card.Result,
	error)) card.Attempt {
	return func(ctx context.Context, s card.Settings) (result card.Result, err error) {
		p, end := newPlace(ctx, engine)
		defer func() { err = errors.Join(err, end()) }()
		return attempt(ctx, s, p)
	}
}

// shared is the cluster of all lines that do not stop it.
var shared struct {
	mu sync.Mutex
	*servertest.Server
}

// closeCluster stops the cluster of PostgreSQL, if a line started it.
func closeCluster() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.Server == nil {
		return nil
	}
	err := shared.Server.Close()
	shared.Server = nil
	return err
}

// cluster returns where to find PostgreSQL: at HEED_POSTGRES_DSN, or in a cluster that is started
// when a line first asks.
func cluster() string {
	if dsn := os.Getenv("HEED_POSTGRES_DSN"); dsn != "" {
		return dsn
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.Server == nil {
		server, err := servertest.New("-c fsync=off -c deadlock_timeout=50ms") // no line cuts its power
		kit.Check(absent(err))
		shared.Server = server
	}
	return shared.DSN()
}

// absent makes a line that needs PostgreSQL skip where it is not installed, unless
// HEED_POSTGRES=require.
func absent(err error) error {
	if errors.Is(err, servertest.ErrNone) && os.Getenv("HEED_POSTGRES") != "require" {
		return card.Skip(err.Error())
	}
	return err
}

var schemas atomic.Int64

// newSchema makes a new schema in the cluster.
func newSchema(ctx context.Context) (p place, end func() error) {
	dsn := cluster()
	handle := kit.Must(sql.Open("pgx", dsn))
	name := fmt.Sprintf("heed_scorecard_%d_%d", os.Getpid(), schemas.Add(1))
	kit.Must(handle.ExecContext(ctx, "CREATE SCHEMA "+name))
	end = func() (err error) {
		for range 100 { // a statement of a killed process may still run
			if _, err = handle.Exec("DROP SCHEMA " + name + " CASCADE"); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		return errors.Join(err, handle.Close())
	}
	p = place{sqlstore.Postgres, "pgx", dsn + " search_path=" + name}
	if before, query, found := strings.Cut(dsn, "?"); strings.Contains(dsn, "://") {
		p.DSN = before + "?search_path=" + name
		if found {
			p.DSN += "&" + query
		}
	}
	return p, end
}
