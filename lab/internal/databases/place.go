// Package databases has the lines of the scorecard that need databases and processes: crashes, power cuts, faults of the disk,
// several processes at once, and stores that have to agree.
package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"       // the driver "pgx"
	_ "github.com/ncruces/go-sqlite3/driver" // the driver "sqlite3"
	_ "modernc.org/sqlite"                   // the driver "sqlite"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/sqlstore/enginetest/pgserver"
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

func (p place) open() (*sql.DB, error) { return sql.Open(p.Driver, p.DSN) }

// store opens the store of a place on a handle of its own. The caller closes the handle.
func (p place) store(ctx context.Context, cfg sqlstore.Config) (*sqlstore.Store, *sql.DB, error) {
	handle, err := p.open()
	if err != nil {
		return nil, nil, err
	}
	st, err := sqlstore.Open(ctx, handle, p.Dialect, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, handle.Close())
	}
	return st, handle, nil
}

// A site has the databases of one attempt. Closing it removes them.
type site struct {
	dir  string
	n    int
	ends []func() error
}

func newSite() (*site, error) {
	dir, err := os.MkdirTemp("", "heed-scorecard")
	return &site{dir: dir}, err
}

func (s *site) close() error {
	var all error
	for _, end := range s.ends {
		all = errors.Join(all, end())
	}
	return errors.Join(all, os.RemoveAll(s.dir))
}

// place makes a new database.
func (s *site) place(ctx context.Context, engine string) (place, error) {
	s.n++
	file := "file:" + strings.ReplaceAll(filepath.Join(s.dir, fmt.Sprint(s.n, ".db")), "#", "%23")
	switch engine {
	case modernc:
		return place{sqlstore.SQLite, "sqlite", file}, nil
	case relaxed:
		return place{sqlstore.SQLiteRelaxed, "sqlite", file}, nil
	case ncruces:
		return place{sqlstore.SQLite, "sqlite3", file}, nil
	}
	return s.schema(ctx)
}

// at runs an attempt with a place of its own.
func at(ctx context.Context, engine string, attempt func(place) (card.Result, error)) (card.Result, error) {
	s, err := newSite()
	if err != nil {
		return card.Result{}, err
	}
	p, err := s.place(ctx, engine)
	if err != nil {
		return card.Result{}, errors.Join(err, s.close())
	}
	result, err := attempt(p)
	return result, errors.Join(err, s.close())
}

// shared is the cluster of all lines that do not stop it.
var shared struct {
	mu sync.Mutex
	*pgserver.Server
}

// Close stops the cluster of PostgreSQL, if a line has started it.
func Close() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.Server == nil {
		return nil
	}
	err := shared.Server.Close()
	shared.Server = nil
	return err
}

// cluster returns where to find PostgreSQL: at HEED_POSTGRES_DSN, or in a cluster that is started when a line first asks.
func cluster() (string, error) {
	if dsn := os.Getenv("HEED_POSTGRES_DSN"); dsn != "" {
		return dsn, nil
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.Server == nil {
		server, err := pgserver.New("-c fsync=off -c deadlock_timeout=50ms") // no line cuts its power
		if err != nil {
			return "", absent(err)
		}
		shared.Server = server
	}
	return shared.DSN(), nil
}

// absent makes a line that needs PostgreSQL skip where it is not installed, unless HEED_POSTGRES=require.
func absent(err error) error {
	if errors.Is(err, pgserver.ErrNone) && os.Getenv("HEED_POSTGRES") != "require" {
		return card.Skip(err.Error())
	}
	return err
}

var schemas atomic.Int64

// schema makes a schema of its own in the cluster.
func (s *site) schema(ctx context.Context) (place, error) {
	dsn, err := cluster()
	if err != nil {
		return place{}, err
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return place{}, err
	}
	name := fmt.Sprintf("heed_scorecard_%d_%d", os.Getpid(), schemas.Add(1))
	run := func(ctx context.Context, statement string) error {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, statement)
		return errors.Join(err, conn.Close(ctx))
	}
	if err := run(ctx, "CREATE SCHEMA "+name); err != nil {
		return place{}, err
	}
	s.ends = append(s.ends, func() (err error) {
		for try := 0; try < 100; try++ { // a statement of a killed process may still run
			if err = run(context.WithoutCancel(ctx), "DROP SCHEMA "+name+" CASCADE"); err == nil {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		return err
	})
	if !strings.Contains(dsn, "://") {
		return place{sqlstore.Postgres, "pgx", dsn + " search_path=" + name}, nil
	}
	within, err := url.Parse(dsn)
	if err != nil {
		return place{}, err
	}
	values := within.Query()
	values.Set("search_path", name)
	within.RawQuery = values.Encode()
	return place{sqlstore.Postgres, "pgx", within.String()}, nil
}
