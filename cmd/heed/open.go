package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite" // and the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// A place is where a store is.
type place struct {
	dialect sqlstore.Dialect
	file    string // of SQLite
	dsn     string // of PostgreSQL
}

var keyword = regexp.MustCompile(`^\s*(host|hostaddr|port|dbname|user|service|sslmode|password)\s*=`)

// where describes what --db names.
func (s *session) where() (place, error) {
	switch name := s.DB; {
	case name == "":
		return place{}, &usageError{
			"which store? Name it with --db, or in HEED_DB: a file of SQLite, or a DSN of PostgreSQL"}
	case strings.HasPrefix(name, "postgres://"), strings.HasPrefix(name, "postgresql://"),
		keyword.MatchString(name):
		return place{dialect: sqlstore.Postgres, dsn: name}, nil
	default:
		return place{dialect: sqlstore.SQLite, file: strings.TrimPrefix(strings.TrimPrefix(name,
			"sqlite:"), "file:")}, nil
	}
}

// String names the place in messages, without any password.
func (p place) String() string {
	if p.dialect != sqlstore.Postgres {
		return p.file
	}
	config, err := pgconn.ParseConfig(p.dsn)
	if err != nil {
		return "PostgreSQL"
	}
	return fmt.Sprintf("PostgreSQL database %q at %s", config.Database,
		net.JoinHostPort(config.Host, fmt.Sprint(config.Port)))
}

// handle opens the database. A missing file is an error, unless create is set.
func (p place) handle(ctx context.Context, create bool) (*sql.DB, error) {
	open := p.openFile
	if p.dialect == sqlstore.Postgres {
		open = p.openServer
	}
	handle, err := open(create)
	if err != nil {
		return nil, err
	}
	if err := handle.PingContext(ctx); err != nil {
		_ = handle.Close()
		return nil, p.explain(err)
	}
	return handle, nil
}

// patience is how long the command waits for what others hold.
const patience = 10 * time.Second

func (p place) openFile(create bool) (*sql.DB, error) {
	mode := "rwc"
	if !create {
		mode = "rw"
		if _, err := os.Stat(p.file); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("there is no file %s: check --db or HEED_DB, or make a store there "+
				"with heed store migrate", p.file)
		}
	}
	return sql.Open("sqlite", (&url.URL{
		Scheme: "file", Opaque: (&url.URL{Path: p.file}).EscapedPath(),
		RawQuery: fmt.Sprintf("mode=%s&_pragma=cache_size(-16000)&_pragma=busy_timeout(%d)", mode,
			patience.Milliseconds()),
	}).String())
}

func (p place) openServer(bool) (*sql.DB, error) {
	config, err := pgx.ParseConfig(p.dsn)
	if err != nil {
		return nil, fmt.Errorf("check --db or HEED_DB: %w", err)
	}
	if _, given := config.RuntimeParams["lock_timeout"]; !given {
		config.RuntimeParams["lock_timeout"] = fmt.Sprint(patience.Milliseconds())
	}
	return stdlib.OpenDB(*config), nil
}

// An opened place has a store.
type opened struct {
	place
	handle *sql.DB
	store  *sqlstore.Store
	view   store.Store // the tenant's, or store
	tenant string
}

// open opens the store that --db names. If create is set, it makes what is missing of it.
func (s *session) open(create bool) (*opened, error) {
	at, err := s.where()
	if err != nil {
		return nil, err
	}
	handle, err := at.handle(s.ctx, create)
	if err != nil {
		return nil, err
	}
	st, err := at.make(s.ctx, handle, sqlstore.Config{Existing: !create})
	if err != nil {
		_ = handle.Close()
		return nil, at.explain(err)
	}
	return st, nil
}

// with calls a function while the store that --db names is open, and explains its error.
func (s *session) with(do func() error) error { return s.within(false, do) }

func (s *session) within(create bool, do func() error) (err error) {
	if s.at, err = s.open(create); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, s.at.handle.Close()) }()
	s.at.tenant = s.Tenant
	if s.at.view, err = store.Tenant(s.at.store, s.Tenant); err != nil {
		return err
	}
	if s.Tenant != "" && !s.begins {
		err = s.knownTenant()
	}
	if err == nil && !create {
		err = s.known()
	}
	if err == nil {
		err = do()
	}
	return s.at.explain(err)
}

// knownTenant refuses a --tenant that has nothing in the store.
func (s *session) knownTenant() error {
	has, err := s.at.has(s.ctx, s.Tenant)
	if has || err != nil {
		return err
	}
	names, err := s.at.tenants(s.ctx)
	have := "no tenants: "
	if len(names) > 0 {
		have = someOf(names) + ": choose one, or "
	}
	return cmp.Or(err, unknown("tenant", s.Tenant, s.at.place.String()+" has "+have+
		"leave out --tenant and HEED_TENANT"+s.orBegin()))
}

// orBegin is what else the user can do about a name that the store does not have.
func (s *session) orBegin() string {
	if slices.Contains([]string{"import", "mcp", "serve"}, s.command) {
		return ", or begin it with --new"
	}
	return ""
}

// someOf names the first ten of a list.
func someOf(names []string) string {
	return cmp.Or(strings.Join(view.Names(texts(names, strconv.Quote)).Some(), ", "), "none")
}

// has reports whether anything in the store belongs to a tenant.
func (o *opened) has(ctx context.Context, tenant string) (has bool, _ error) {
	for _, err := range o.store.List(ctx, store.CellQuery{Kind: store.KindIn("", tenant)}) {
		return err == nil, err
	}
	for kind, err := range o.store.Find(ctx, store.Query{Kind: store.Declarations}) {
		if err != nil {
			return false, err
		}
		of := store.Query{Kind: store.KindIn(kind.ID, tenant), Limit: 1}
		for _, err := range o.store.Find(ctx, of) {
			return err == nil, err
		}
	}
	return false, nil
}

// tenants returns the tenants that have something in the store.
func (o *opened) tenants(ctx context.Context) (names []string, err error) {
	status, err := o.store.Status(ctx)
	for _, kind := range slices.Concat(status.Cells, status.Records) {
		if _, tenant := store.KindOf(kind); tenant != "" {
			names = append(names, tenant)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// make opens the store of a database. A host's limits hold for the host's own sweeps; this command
// does not sweep.
func (p place) make(ctx context.Context, handle *sql.DB, cfg sqlstore.Config) (*opened, error) {
	cfg.NoCache = true
	st, err := sqlstore.Open(ctx, handle, p.dialect, cfg)
	if err != nil {
		return nil, p.tableless(err)
	}
	return &opened{place: p, handle: handle, store: st, view: st}, nil
}

// tableless adds what to do to an error about a database without heed's tables.
func (p place) tableless(err error) error {
	if !errors.Is(err, heed.ErrNotFound) {
		return err
	}
	if info, failure := os.Stat(p.file); failure == nil && info.Size() == 0 {
		return fmt.Errorf("%s is empty: check --db or HEED_DB, or restore it from a copy "+
			"(heed store migrate begins a new store there)", p)
	}
	return fmt.Errorf("%s does not have heed's tables: check --db, or make them with "+
		"heed store migrate", p)
}

// The texts about a store whose file or server can't be used.
const (
	damaged = "STORE is damaged: restore it from a copy"
	full    = "the disk of STORE is full, so this was not written: make room, see df -h there"
	inUse   = "STORE is in use by another process, which did not let go in time: try again, or " +
		"stop what holds it"
	shut = "STORE can't be opened for writing, which SQLite needs even to read: check --db or " +
		"HEED_DB, and the rights of the file and its directory, or copy it to a directory where you " +
		"may write"
)

// troubles are what the codes of SQLite and of PostgreSQL mean.
var troubles = map[any]string{
	sqlite3.SQLITE_BUSY: inUse, sqlite3.SQLITE_LOCKED: inUse, sqlite3.SQLITE_CANTOPEN: shut,
	sqlite3.SQLITE_READONLY: shut, sqlite3.SQLITE_PERM: shut, sqlite3.SQLITE_FULL: full,
	sqlite3.SQLITE_NOTADB:  "STORE is no database of SQLite: check --db or HEED_DB",
	sqlite3.SQLITE_CORRUPT: damaged,
	sqlite3.SQLITE_IOERR: "the disk of STORE is full, or fails: see df -h DIR and the system's " +
		"log. SQLite needs room for files of its own even to read",
	"53100": full, "55P03": inUse, // disk_full, lock_not_available
}

// troubleOf returns what the code in an error means, or "".
func troubleOf(err error) string {
	var lite *sqlite.Error
	var server *pgconn.PgError
	switch {
	case errors.As(err, &lite):
		return troubles[lite.Code()&0xff]
	case errors.As(err, &server):
		return troubles[server.Code]
	}
	return ""
}

// explain adds to an error of the database where it comes from, and what to do.
func (p place) explain(err error) error {
	var schema *sqlstore.SchemaError
	var server *pgconn.PgError
	var connect *pgconn.ConnectError
	trouble := troubleOf(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errInterrupted
	case errors.Is(err, heed.ErrDamaged):
		return fmt.Errorf("%w: see heed doctor", err)
	case errors.As(err, &schema) && schema.Found < schema.Known:
		return fmt.Errorf("%s: %w", p, schema)
	case errors.As(err, &schema):
		return fmt.Errorf("%s has tables of version %d, and this heed reads %d: use a newer heed", p,
			schema.Found, schema.Known)
	case trouble != "":
		in := strings.NewReplacer("STORE", p.String(), "DIR", filepath.Dir(p.file))
		return errors.New(in.Replace(trouble))
	case errors.As(err, &connect) && errors.As(err, &server):
		return fmt.Errorf("%s: the server refuses the connection to %s: check --db or HEED_DB",
			server.Message, p)
	case errors.As(err, &connect):
		tries := slices.Compact(strings.Split(connect.Unwrap().Error(), "\n")) // with TLS and without
		return fmt.Errorf("no connection to %s: check --db or HEED_DB, and that the server runs (%s)",
			p, strings.Join(tries, "; "))
	}
	return err
}
