package sqlstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// A change is a commit on its way into the database, in one transaction. Commits that only add run
// concurrently, because all they do to a cell is to add to its sums, and each record has its own
// row. A commit that takes evidence away has the store alone. Its statements are in the files
// commit_evidence.go, commit_records.go and commit_take.go.
//
// A change is used by one goroutine at a time. It may be tried several times: retry decides with
// what.
type change struct {
	store   *Store
	batches []store.Batch
	calls   []int  // the first batch of each call of Commit, where there are several
	known   []bool // by batch: its ID was known, so it is left out
	alone   bool   // whether this has the store for itself
	careful bool   // whether a quick try found that there is more to do
	cached  bool   // whether the cache has what this commit changed
	// assumed is the time by which the batches were checked, before the transaction.
	assumed time.Time
	counted []*keptKind // whose number of records this has learnt

	// The fields below belong to one try.
	t        *tx
	unread   error // the last damaged observation that remove left
	quick    bool  // see commit_quick.go
	now      evidence.Instant
	revision uint64
	fresh    map[string]bool // the hashes of ids that were not known before this commit
	blamed   int             // the batch that has a conflict; -1 if unknown
	receipts []store.Receipt
	parts    map[string][]evidence.Part // by cell, where all of them are known

	// The fields below belong to a call in one statement.
	additions []addition
	writes    []writing
	left      map[string]bool            // the hashes of the refs of records that were there already
	asked     map[string]evidence.Cell   // whose parts to report
	wanted    map[string]evidence.Policy // of those whose tallies come as they change
}

var (
	// errKnown takes a try back because the ID of a batch is known. retry leaves the batch out.
	errKnown = errors.New("a batch is known")
	// errRaced takes a try back because only a commit that has the store alone can do it: to give a
	// cell without evidence another policy.
	errRaced = errors.New("this can only be done alone")
)

// begin checks the batches to commit, by the clock as it was last known. PostgreSQL's clock is read
// in the transaction, and if it differs by more than a second, the batches are checked again. What
// can be refused without the database is refused here, so that a batch with a fault never waits in
// the queue and never fails the commit of others.
func (s *Store) begin(ctx context.Context, batches []store.Batch) (*change, error) {
	c := &change{store: s, batches: batches, known: make([]bool, len(batches)), blamed: -1}
	if err := ctx.Err(); err != nil {
		return c, err
	}
	c.assumed = s.now()
	if err := store.Validate(c.assumed, batches...); err != nil {
		return c, err
	}
	known := func(kind string) bool { return s.kinds.get(kind) != nil }
	if err := stores.CheckDeclared(batches, known); err != nil {
		return c, err
	}
	c.alone = len(batches) > 0 && batches[0].TakesAway() || leaves(batches)
	return c, nil
}

// retry tries again without batches that are known, and alone where it must be.
func (c *change) retry(try func() error) error {
	for {
		err := try()
		switch {
		// A transaction for several calls is not made alone for the sake of one: its error sends each
		// call on its own way, and there this case holds.
		case errors.Is(err, errRaced) && len(c.calls) == 0:
			c.alone = true
		case errors.Is(err, errCareful):
			c.careful = true
		// The known batches are marked. The others are tried again, as long as there are any.
		case errors.Is(err, errKnown) && slices.Contains(c.known, false):
		default:
			return err
		}
	}
}

// end returns the receipts, or the error as users have it. A commit whose batches are all known is
// no error: each receipt is a Duplicate.
func (c *change) end(err error) ([]store.Receipt, error) {
	receipts, err := c.result(err)
	return receipts, wrap("commit", err)
}

// result returns the receipts of the last try, or its error as it is.
func (c *change) result(err error) ([]store.Receipt, error) {
	switch {
	case errors.Is(err, errKnown):
		c.receipts = make([]store.Receipt, len(c.batches))
		for i := range c.receipts {
			c.receipts[i].Duplicate = true
		}
	case err != nil:
		c.forgetCounts()
		return nil, err
	}
	return c.receipts, nil
}

// forgetCounts has the kinds counted again that this counted, because what was counted was, or may
// be, taken back.
func (c *change) forgetCounts() {
	for _, kind := range c.counted {
		kind.counting.Lock()
		kind.counted = false
		kind.counting.Unlock()
	}
}

// The first statement of a transaction that writes. In SQLite it makes it the one writer. In
// PostgreSQL, transactions that add share a lock, and those that take away have it alone. It
// reports whether the version of the tables is not this program's. While the tables are brought up
// to date, PostgreSQL refuses to begin it.
var (
	enterShared = entrance(`pg_advisory_xact_lock_shared`)
	enterAlone  = entrance(`pg_advisory_xact_lock`)
)

// entrance makes the statement for a lock of PostgreSQL. One round trip takes the lock, reads the
// server's clock after the wait, checks the version of the tables, and draws a revision if records
// are written. The number of the lock is a constant that other programs on the database are
// unlikely to use.
func entrance(lock string) *query {
	return either(`UPDATE heed_store SET version = version WHERE version <> $1`,
		`SELECT version, CASE WHEN `+lock+`(4838441021388) IS NULL THEN 0 ELSE `+postgresNow+` END,
			CASE WHEN $1 = 1 THEN nextval('heed_revision') ELSE 0 END
		FROM heed_store`)
}

// whichVersion reads the version of the tables, for the error that names it.
var whichVersion = either(`SELECT version FROM heed_store`, ``)

// nextRevision draws the number of a commit in SQLite. PostgreSQL has a sequence, which does not
// make commits wait for each other.
var nextRevision = either(`UPDATE heed_store SET revision = revision + 1 WHERE version = $1
	RETURNING revision`, ``)

// enter takes the lock, and reads what comes with it at no cost.
func (c *change) enter(t *tx) error {
	lock := enterShared
	if c.alone {
		lock = enterAlone
	}
	embedded := c.store.db.dialect.embedded()
	version := tablesVersion
	var micros, revision int64
	var err error
	if embedded {
		version, revision, err = c.enterSQLite(t, lock)
	} else {
		err = t.one(lock, []any{flag(c.writesRecords())}, &version, &micros, &revision)
	}
	switch {
	case err != nil:
		return err
	case version != tablesVersion:
		return &SchemaError{Found: version, Known: tablesVersion}
	}
	now := c.store.now()
	if !embedded {
		wanted := c.store.clock.learn(micros)
		if c.store.cfg.Now == nil {
			now = wanted
		}
	}
	c.now, c.revision = evidence.InstantOf(now), uint64(revision)
	// The batches were checked by what this process believed of the server's clock. Only if that
	// was wrong by more than rounding, observations may be refused by the true one.
	if d := now.Sub(c.assumed); len(c.batches) > 0 && d.Abs() > time.Second &&
		c.store.cfg.Now == nil {
		return store.Validate(now, c.batches...)
	}
	return nil
}

// enterSQLite returns the version of the tables and, if records are to be written, the commit's
// number: where all is as usual, by one statement.
func (c *change) enterSQLite(t *tx, lock *query) (version int, revision int64, err error) {
	if c.writesRecords() {
		// The statement finds its row by the version of the tables. So in the usual case it takes the
		// lock, checks the version and draws the revision in one.
		err := t.one(nextRevision, []any{tablesVersion}, &revision)
		if !errors.Is(err, heed.ErrNotFound) {
			return tablesVersion, revision, err
		}
	}
	other, err := t.exec(lock, int64(tablesVersion))
	if err != nil || other == 0 {
		return tablesVersion, 0, err
	}
	err = t.one(whichVersion, nil, &version)
	return version, 0, err
}

// writesRecords reports whether the commit needs a revision.
func (c *change) writesRecords() bool {
	return slices.ContainsFunc(c.batches, func(b store.Batch) bool {
		return len(b.Records) > 0
	})
}

// run makes the commit in steps, in a transaction that has entered: ids become known, evidence is
// taken away and added, records are checked and written, and versions rise. An error rolls all of
// it back. The order is the same for all commits, so that two of them wait for each other in one
// direction only. A change that is tried again begins with empty receipts.
func (c *change) run(t *tx) error {
	c.t, c.receipts, c.parts, c.blamed = t, make([]store.Receipt, len(c.batches)), nil, -1
	c.forgetCounts() // of a try that was taken back
	c.counted = nil
	c.quick = c.fitsQuick()
	if err := c.hold(); err != nil {
		return err
	}
	if err := c.knowIDs(); err != nil {
		return err
	}
	if c.alone && len(c.batches) > 0 && !c.known[0] {
		if err := c.takeAway(&c.batches[0], &c.receipts[0]); err != nil {
			return err
		}
		// What a take-away returned were sums on their way, and not the ones after the commit.
		c.parts = nil
	}
	pending, observe := c.pending(), c.observe
	if c.quick {
		observe = c.observeQuickly
	}
	if err := observe(pending); err != nil {
		return err
	}
	if err := c.putRecords(); err != nil {
		return err
	}
	if err := c.readParts(pending); err != nil {
		return err
	}
	// The file still has copies of what was deleted: see people.go. The note is a part of the commit,
	// so that a crash does not lose it.
	if forgets(c.batches) && t.db.dialect.embedded() {
		if _, err := t.exec(noteForgotten); err != nil {
			return err
		}
	}
	return c.raise()
}

// forgets reports whether people were forgotten before the batches.
func forgets(batches []store.Batch) bool {
	return slices.ContainsFunc(batches, func(b store.Batch) bool { return len(b.Forgotten) > 0 })
}
