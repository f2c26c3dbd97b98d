package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Config sets what a [Store] keeps and for how long, and how fresh its reads are. The zero value
// means the defaults. Rows past their time, or over HistoryPerCell, stay until the next
// [Store.Sweep].
type Config struct {
	// Now is the clock: observations too far ahead of it are refused, and ids, history and records
	// age by it. nil means the clock of the database: of PostgreSQL's server, and with SQLite of this
	// machine.
	Now func() time.Time
	store.Retention

	// NoCache reads the sums of cells from the database every time. Otherwise a cell that was read is
	// read from memory for a second, and commits of other stores, in other processes or on other
	// handles, are seen no later than that. This store sees its own commits at once, and a Read of
	// records too is always fresh. Set it if a second is too long. The default is false.
	NoCache bool
	// Schema is the schema of PostgreSQL that has the store's tables, whatever the search_path of a
	// connection is: letters, digits, "_" and "-", at most 63 of them. [Open] makes it if it is
	// missing. Empty means the first schema of the search_path. Tenants of one agent share it; a
	// schema for each separates them in the database, too.
	Schema string
	// Existing is for tools next to a host: [Open] makes no tables, and a database without heed's
	// tables is [heed.ErrNotFound]. The default is false.
	Existing bool

	declared bool // HistoryPerCell is the default, so kinds may ask for more
}

// withDefaults returns the configuration with its zero fields set.
func (c Config) withDefaults() Config {
	c.declared = c.HistoryPerCell == 0
	stores.Defaults(&c.Retention)
	c.Limits = maps.Clone(c.Limits)
	return c
}

// Store is a [store.Store] in a database. Any number of them, in any number of processes, may work
// on one. It is safe for concurrent use.
type Store struct {
	db    *database
	cfg   Config
	clock clock
	cache *cache // nil without one
	// kinds are the declared kinds.
	kinds kinds

	commits queue
	reads   readers
	// swept is what the last sweep of this store has done already.
	swept swept
}

var _ store.Store = (*Store)(nil)

// Open returns the store in a database. It creates heed's tables in a database without them. Tables
// of a newer heed, or of an earlier layout, are a [*SchemaError]. Any number of processes may open
// one database at once.
//
// There may be one Config. The handle stays the caller's, who closes it after the last use of the
// store, and may use it for other things in the meantime.
//
// A file of SQLite is put into WAL mode. A database in memory is refused, because each connection
// has its own there. Only its owner can read a file that is new. A file that was not empty keeps
// its permissions. The files of the log next to it get the permissions of the file, from the driver
// or else from Open and Sweep. A driver that leaves it to heed makes them again with the umask of
// the process after all its connections were closed, so put the file into a separate directory.
func Open(ctx context.Context, handle *sql.DB, dialect Dialect, configs ...Config) (*Store, error) {
	var cfg Config
	if len(configs) > 0 {
		cfg = configs[0]
	}
	var found valid.Faults
	found.Check(handle != nil, "handle", nil, "must not be nil")
	if dialect != 0 {
		found.Join(dialect.validate())
	}
	found.Join(stores.Check(cfg.Retention))
	found.Join(cfg.checkSchema(dialect))
	found.Check(len(configs) <= 1, "configs", len(configs), "must be at most one")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	if dialect == 0 {
		err := patiently(ctx, func() (err error) {
			dialect, err = dialectOf(ctx, handle)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("sqlstore: open: %w", err)
		}
		if err := cfg.checkSchema(dialect); err != nil {
			return nil, fmt.Errorf("sqlstore: %w", err)
		}
	}
	s := &Store{db: newDB(handle, dialect, cfg.Schema), cfg: cfg.withDefaults()}
	s.kinds.limits, s.kinds.known = s.cfg.Limits, make(map[string]*keptKind)
	s.commits.store, s.reads.db = s, s.db
	s.commits.most, s.reads.most = mostLeaders, mostLeaders
	if dialect.embedded() {
		s.commits.most = 1
	}
	if !cfg.NoCache {
		s.cache = newCache()
	}
	err := s.db.onConn(ctx, waiting, func(conn *sql.Conn) error {
		if err := s.db.prepareTables(ctx, conn, cfg.Existing); err != nil {
			return err
		}
		if err := s.db.checkSessions(ctx); err != nil {
			return err
		}
		return s.db.lengthenLog(ctx, conn)
	})
	if err == nil {
		err = s.learnClock(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlstore: open: %w", because(ctx, err))
	}
	return s, nil
}

// Commit implements [store.Store]. It returns [heed.ErrOutcomeUnknown], with the database's error,
// if COMMIT was sent and there was no reply, and if the context ended before the reply. In SQLite
// an error of the disk during COMMIT is one, too, because a crash may bring back what the disk was
// given.
func (s *Store) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	c, err := s.begin(ctx, batches)
	if err != nil {
		return c.end(err)
	}
	commit := s.commits.commit
	if c.alone {
		commit = s.commitAlone
	}
	receipts, err := commit(ctx, c)
	if err != nil || !c.cached {
		s.forget(batches)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlstore: commit: %w", err)
	}
	if forgets(batches) {
		_ = s.erase(ctx) // the commit is done, and the next Sweep goes on
	}
	return receipts, nil
}

// commitAlone commits a call in its own transaction. It is in one statement where that is possible,
// and otherwise in steps.
func (s *Store) commitAlone(ctx context.Context, c *change) ([]store.Receipt, error) {
	done, err := s.call(ctx, c, nil)
	if !done {
		err = c.retry(func() error { return s.db.enter(ctx, c.enter, c.run) })
	}
	if deadlocked(err) { // other commits lock the same rows, again and again
		err = fmt.Errorf("%w: %w", heed.ErrConflict, err)
	}
	return c.result(err)
}

// CommitTx commits batches inside of a transaction that the host began on the handle of this store,
// so that they are committed or rolled back with the host's other statements. Batches that are
// refused leave the transaction as it was.
//
// A transaction of PostgreSQL must be READ COMMITTED, and one of SQLite must wait for the disk as
// described at [Dialect]. Any other is a [*heed.InputError]. One of SQLite must begin with BEGIN
// IMMEDIATE, too: SQLite refuses to let a transaction write that read what another changed since.
// In database/sql the data source name sets this: see docs/stores.md. In PostgreSQL, other commits
// may have to wait for the end of the transaction. A batch that takes away should be its first,
// because it waits for batches that add.
//
// After an error of the database (it is locked, or found a deadlock) or of the context the whole
// transaction must be done again. Cached reads of this store see the batches within a second of the
// transaction's commit: see Config.NoCache.
func (s *Store) CommitTx(ctx context.Context, sqlTx *sql.Tx,
	batches ...store.Batch) ([]store.Receipt, error) {
	c, err := s.begin(ctx, batches)
	if err != nil {
		return c.end(err)
	}
	t := s.db.in(ctx, sqlTx)
	if err := t.checkHosts(); err != nil {
		return c.end(err)
	}
	if _, err := t.exec(setSavepoint); err != nil {
		return c.end(err)
	}
	// A try that was taken back leaves the host's statements alone, by the savepoint.
	first := true
	err = c.retry(func() error {
		if !first {
			if _, err := t.exec(toSavepoint); err != nil {
				return err
			}
		}
		first = false
		if err := c.enter(t); err != nil {
			return err
		}
		return c.run(t)
	})
	t.ctx = context.WithoutCancel(ctx) // half a commit must not stay
	if err != nil {
		_, failure := t.exec(toSavepoint)
		err = errors.Join(err, failure)
	}
	if _, failure := t.exec(releaseSavepoint); failure != nil {
		err = errors.Join(err, failure)
	}
	s.forget(batches)
	c.forgetCounts() // the host may take them back
	return c.end(err)
}

// forget has the cells read again that a commit may have changed. After an error as well, because
// the commit may have taken place.
func (s *Store) forget(batches []store.Batch) {
	if s.cache == nil {
		return
	}
	if len(batches) > 0 && batches[0].TakesAway() {
		s.cache.clear()
		return
	}
	for i := range batches {
		for k := range batches[i].Observations {
			s.cache.drop(batches[i].Observations[k].Cell)
		}
	}
}

// hashOf names texts so that they fit into any index and reveal no name. Equal texts have equal
// hashes on all engines, so that dumps can be loaded anywhere.
func hashOf(texts ...string) string { return text.HashOf(texts...).String() }

func hashOfID(id string) string         { return text.HashOfID(id).String() }
func hashOfCell(c evidence.Cell) string { return hashOf(c.Kind, c.Scope, c.Item, c.Name) }
func hashOfRef(r store.Ref) string      { return hashOf(r.Kind, r.ID) }
