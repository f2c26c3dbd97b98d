package sqlstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
)

// EvidenceConfig says what an [Evidence] remembers besides the sums themselves, and how fresh its reads are. The zero value
// means the defaults. What is past its time, or over HistoryPerCell or MaxAudit, stays until the
// next [Evidence.Sweep].
type EvidenceConfig struct {
	// Now is the clock by which observations are refused that lie in the future, and by which ids and history age. nil
	// means time.Now.
	Now func() time.Time
	// NoHistory keeps no history: nothing can then be retracted, and a source be expunged only from cells that keep
	// origins apart.
	NoHistory bool
	// HistoryPerCell is how many observations of a cell are kept, those that happened last. 0 means 100.
	HistoryPerCell int
	// HistoryFor is how long an observation is kept from when it was recorded. 0 means 30 days.
	HistoryFor time.Duration
	// IDsFor is how long an id is known, from when it was recorded. It must not be shorter than HistoryFor, nor than the
	// longest time after which an event can be delivered again. 0 means 30 days, or HistoryFor where that is longer.
	IDsFor time.Duration
	// MaxEvents is how many outgoing events the outbox holds; a batch with more is refused with [evidence.ErrFull]. In
	// PostgreSQL, batches at the same moment do not see each other's. 0 means a million.
	MaxEvents int
	// MaxAudit is how many audit entries are kept, those recorded last. 0 means a million.
	MaxAudit int

	// Stale is for how long a cell that was read is read from memory. What this Evidence commits its own reads see at once;
	// what another one does, in another process or on another handle, they see no later than this. 0 means a second.
	// NoCache reads from the database every time.
	Stale   time.Duration
	NoCache bool
	// MaxCached is how many cells are held in memory at most. 0 means 100,000.
	MaxCached int
}

func (c EvidenceConfig) withDefaults() EvidenceConfig {
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	const month = 30 * 24 * time.Hour
	c.HistoryPerCell = cmp.Or(c.HistoryPerCell, 100)
	c.HistoryFor = cmp.Or(c.HistoryFor, month)
	c.IDsFor = cmp.Or(c.IDsFor, max(c.HistoryFor, month))
	c.MaxEvents = cmp.Or(c.MaxEvents, 1_000_000)
	c.MaxAudit = cmp.Or(c.MaxAudit, 1_000_000)
	c.Stale = cmp.Or(c.Stale, time.Second)
	c.MaxCached = cmp.Or(c.MaxCached, 100_000)
	return c
}

// Validate reports all faults, joined.
func (c EvidenceConfig) Validate() error {
	c = c.withDefaults()
	var found faults.List
	found.Check(c.HistoryPerCell > 0, "HistoryPerCell", c.HistoryPerCell, "must not be negative")
	found.Check(c.HistoryFor > 0, "HistoryFor", c.HistoryFor, "must not be negative")
	found.Check(c.IDsFor >= c.HistoryFor, "IDsFor", c.IDsFor, "must not be shorter than HistoryFor")
	found.Check(c.MaxEvents > 0, "MaxEvents", c.MaxEvents, "must not be negative")
	found.Check(c.MaxAudit > 0, "MaxAudit", c.MaxAudit, "must not be negative")
	found.Check(c.Stale > 0, "Stale", c.Stale, "must not be negative")
	found.Check(c.MaxCached > 0, "MaxCached", c.MaxCached, "must not be negative")
	return found.Err()
}

// Evidence is an [evidence.Store] in a database. Any number of them, in any number of processes, may work on one. It is
// safe for concurrent use.
type Evidence struct {
	db    *DB
	cfg   EvidenceConfig
	cache *cache // nil: none
}

var _ evidence.Store = (*Evidence)(nil)

// NewEvidence returns the store of evidence in a database.
func NewEvidence(db *DB, cfg EvidenceConfig) (*Evidence, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	e := &Evidence{db: db, cfg: cfg.withDefaults()}
	if !cfg.NoCache {
		e.cache = newCache(e.cfg.MaxCached, e.cfg.Stale)
	}
	return e, nil
}

// Config returns the configuration in force.
func (e *Evidence) Config() EvidenceConfig { return e.cfg }

// DB returns the database that the store is in.
func (e *Evidence) DB() *DB { return e.db }

// Commit implements [evidence.Store]. An error of the database at the very end leaves it open whether the batch was
// applied: as everything in it counts once, it may be committed again, if it has an ID or holds nothing but observations,
// audit entries and events.
func (e *Evidence) Commit(ctx context.Context, b evidence.Batch) (receipt evidence.Receipt, err error) {
	c, err := e.begin(ctx, &b)
	if err != nil {
		return evidence.Receipt{}, err
	}
	lock := lockShared
	if c.takesAway() {
		lock = lockAlone
	}
	run := func(t *tx) (err error) {
		receipt, err = c.run(t, lock == lockAlone)
		return err
	}
	err = e.db.write(ctx, lock, run)
	if errors.Is(err, errAlone) {
		lock = lockAlone
		err = e.db.write(ctx, lock, run)
	}
	e.forget(c)
	return e.end(receipt, err)
}

func (e *Evidence) begin(ctx context.Context, b *evidence.Batch) (*commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := e.cfg.Now()
	if err := b.Validate(now); err != nil {
		return nil, fmt.Errorf("sqlstore: commit: %w", err)
	}
	return &commit{store: e, batch: b, now: evidence.InstantOf(now)}, nil
}

func (e *Evidence) end(receipt evidence.Receipt, err error) (evidence.Receipt, error) {
	switch {
	case errors.Is(err, errDuplicate):
		return evidence.Receipt{Duplicate: true}, nil
	case err != nil:
		return evidence.Receipt{}, fmt.Errorf("sqlstore: commit: %w", err)
	}
	return receipt, nil
}

// forget has what a commit may have changed read anew.
func (e *Evidence) forget(c *commit) {
	switch {
	case e.cache == nil:
	case c.takesAway():
		e.cache.clear()
	default:
		for i := range c.batch.Observations {
			e.cache.drop(c.batch.Observations[i].Cell)
		}
	}
}

// CommitTx commits a batch inside of a transaction that the host has begun on the handle of this store, so that it stands or
// falls with what else the host does there. A batch that is refused leaves the transaction as it was.
//
// A transaction of PostgreSQL must be READ COMMITTED, and one of SQLite must wait for the disk as the [Dialect] says; any other is
// a [*heed.InputError]. One of SQLite has to begin with BEGIN IMMEDIATE, too: SQLite refuses to let a transaction write that has
// read what another has changed since. In database/sql it is the data source name that says so; see docs/stores.md. In PostgreSQL,
// other commits may have to wait for the end of the transaction; a batch that takes away should be its first, as it waits for
// those that add.
//
// After an error of the database (it is locked, or found a deadlock) or of the context the whole transaction has to be done again.
//
// Reads of this store that are cached see the batch within EvidenceConfig.Stale of the transaction's commit.
func (e *Evidence) CommitTx(ctx context.Context, sqlTx *sql.Tx, b evidence.Batch) (receipt evidence.Receipt, err error) {
	c, err := e.begin(ctx, &b)
	if err != nil {
		return evidence.Receipt{}, err
	}
	t := e.db.in(ctx, sqlTx)
	if err := t.checkHosts(); err != nil {
		return e.end(receipt, err)
	}
	if _, err := t.exec(setSavepoint); err != nil {
		return e.end(receipt, err)
	}
	lock := lockShared
	if c.takesAway() {
		lock = lockAlone
	}
	_, err = t.exec(lock)
	if err == nil {
		receipt, err = c.run(t, lock == lockAlone)
	}
	if errors.Is(err, errAlone) {
		if _, err = t.exec(toSavepoint); err == nil {
			if _, err = t.exec(lockAlone); err == nil {
				receipt, err = c.run(t, true)
			}
		}
	}
	t.ctx = context.WithoutCancel(ctx) // half a batch must not stay
	if err != nil {
		_, failure := t.exec(toSavepoint)
		err = errors.Join(err, failure)
	}
	if _, failure := t.exec(releaseSavepoint); failure != nil {
		err = errors.Join(err, failure)
	}
	e.forget(c)
	return e.end(receipt, err)
}

// checkHosts refuses a transaction of the host that sees or promises too little.
func (t *tx) checkHosts() error {
	var setting string
	if err := t.one(ofTransaction, nil, &setting); err != nil {
		return err
	}
	var reason string
	switch dialect := t.db.dialect; {
	case dialect == Postgres && setting != "read committed":
		reason = "is " + setting + ", and must be read committed"
	case dialect == SQLite && setting < "2", dialect == SQLiteRelaxed && setting < "1": // 1 is NORMAL, 2 FULL
		reason = "has synchronous=" + setting + ", which is weaker than " + dialect.String() + " promises: see docs/stores.md"
	default:
		return nil
	}
	return &heed.InputError{Field: "transaction", Reason: reason}
}

var (
	ofTransaction    = either(`PRAGMA synchronous`, `SELECT current_setting('transaction_isolation')`)
	setSavepoint     = both(`SAVEPOINT heed`)
	toSavepoint      = both(`ROLLBACK TO SAVEPOINT heed`)
	releaseSavepoint = both(`RELEASE SAVEPOINT heed`)
)

// keyOf names a cell by the SHA-256 of its texts, so that it fits into any index.
func keyOf(c evidence.Cell) string {
	buffer := make([]byte, 0, 256)
	for _, text := range [...]string{c.Kind, c.Scope, c.Item, c.Name} {
		buffer = binary.AppendUvarint(buffer, uint64(len(text)))
		buffer = append(buffer, text...)
	}
	sum := sha256.Sum256(buffer)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// rowsOf makes a JSON array of arrays, which a query takes as rows.
func rowsOf(rows [][]any) (string, error) {
	text, err := json.Marshal(rows)
	return string(text), err
}

// column makes rows of one text each.
func column(texts []string) (string, error) {
	rows := make([][1]string, len(texts))
	for i := range texts {
		rows[i][0] = texts[i]
	}
	text, err := json.Marshal(rows)
	return string(text), err
}

const (
	tallySums = `t.landmark, t.mass, t.squares, t.reward, t.reward_squares,
		t.n_positive, t.n_negative, t.n_neutral, t.last_positive, t.last_negative, t.last_neutral`

	// A few cells are looked up one by one: a PostgreSQL that has no statistics yet would join whole tables.
	fewTallies = `SELECT t.cell, t.channel, t.source, (SELECT c.half_life FROM heed_cells c WHERE c.cell = t.cell), ` + tallySums + `
		FROM heed_tallies t`
)

var (
	readTallies = both(fewTallies + ` WHERE t.cell IN (SELECT value->>0 FROM json_each($1))
		ORDER BY t.cell, t.channel, t.source`)
	readTally = both(fewTallies + ` WHERE t.cell = $1
		ORDER BY t.channel, t.source`)
	listTallies = both(`SELECT c.item, c.name, t.channel, t.source, c.half_life, ` + tallySums + `
		FROM heed_cells c JOIN heed_tallies t ON t.cell = c.cell
		WHERE c.kind = $1 AND c.scope = $2
		ORDER BY c.item, c.name, t.channel, t.source`)
)

// scanPart scans some columns of one's own, and then those of a part.
func scanPart(scan func(...any) error, own ...any) (p evidence.Part, err error) {
	t := &p.Tally
	var halfLife, landmark int64
	err = scan(append(own, &p.Channel, &p.Source, &halfLife, &landmark, &t.Mass, &t.Squares, &t.Reward, &t.RewardSquares,
		&t.Positive.N, &t.Negative.N, &t.Neutral.N, &t.Positive.Last, &t.Negative.Last, &t.Neutral.Last)...)
	t.HalfLife = time.Duration(halfLife) * time.Microsecond
	t.Landmark = evidence.Instant(landmark * evidence.LandmarkStep * halfLife)
	return p, err
}

// Read implements [evidence.Store]. See EvidenceConfig.Stale for how fresh it is.
func (e *Evidence) Read(ctx context.Context, dst []evidence.Part, cells ...evidence.Cell) ([]evidence.Part, error) {
	if err := ctx.Err(); err != nil {
		return dst, err
	}
	if e.cache == nil {
		return e.readAll(ctx, dst, cells)
	}
	now := e.cfg.Now()
	before := len(dst)
	for _, c := range cells {
		parts, ok := e.cache.get(c, now)
		if !ok {
			return e.readAll(ctx, dst[:before], cells)
		}
		dst = append(dst, parts...)
	}
	return dst, nil
}

// readAll reads cells from the database.
func (e *Evidence) readAll(ctx context.Context, dst []evidence.Part, cells []evidence.Cell) ([]evidence.Part, error) {
	if len(cells) == 0 {
		return dst, nil
	}
	tickets := make([]ticket, len(cells))
	keys := make([]string, len(cells))
	for i, c := range cells {
		keys[i] = keyOf(c)
		if e.cache != nil {
			tickets[i] = e.cache.ticket(c)
		}
	}
	now := e.cfg.Now()
	found := make(map[string][]evidence.Part, len(cells))
	row := func(scan func(...any) error) error {
		var key string
		part, err := scanPart(scan, &key)
		found[key] = append(found[key], part)
		return err
	}
	err := e.db.read(ctx, func(t *tx) error {
		if len(keys) == 1 {
			return t.each(readTally, []any{keys[0]}, row)
		}
		rows, err := column(keys)
		if err != nil {
			return err
		}
		return t.each(readTallies, []any{rows}, row)
	})
	if err != nil {
		return dst, fmt.Errorf("sqlstore: read: %w", err)
	}
	for i, c := range cells {
		parts := found[keys[i]]
		for j := range parts {
			parts[j].Cell = c
		}
		if e.cache != nil {
			e.cache.put(tickets[i], c, parts, now)
		}
		dst = append(dst, parts...)
	}
	return dst, nil
}

// List implements [evidence.Store]. It reads all parts before the loop begins.
func (e *Evidence) List(ctx context.Context, kind, scope string) iter.Seq2[evidence.Part, error] {
	return func(yield func(evidence.Part, error) bool) {
		var parts []evidence.Part
		err := e.db.read(ctx, func(t *tx) error {
			return t.each(listTallies, []any{kind, scope}, func(scan func(...any) error) error {
				var item, name string
				part, err := scanPart(scan, &item, &name)
				part.Cell = evidence.Cell{Kind: kind, Scope: scope, Item: item, Name: name}
				parts = append(parts, part)
				return err
			})
		})
		yieldAll(ctx, parts, err, yield)
	}
}

// yieldAll yields until the loop ends or the context is done, or an error if there is one.
func yieldAll[T any](ctx context.Context, all []T, err error, yield func(T, error) bool) {
	if err != nil {
		yield(*new(T), fmt.Errorf("sqlstore: %w", err))
		return
	}
	for _, one := range all {
		if err := ctx.Err(); err != nil {
			yield(*new(T), err)
			return
		}
		if !yield(one, nil) {
			return
		}
	}
}

// Each step finds the next scope by the index, however many cells there are of one.
var listScopes = both(`WITH RECURSIVE scopes (scope) AS (
		SELECT (SELECT c.scope FROM heed_cells c JOIN heed_tallies t ON t.cell = c.cell
			WHERE c.kind = $1 ORDER BY c.scope LIMIT 1)
		UNION ALL
		SELECT (SELECT c.scope FROM heed_cells c JOIN heed_tallies t ON t.cell = c.cell
			WHERE c.kind = $1 AND c.scope > s.scope ORDER BY c.scope LIMIT 1) FROM scopes s WHERE s.scope IS NOT NULL
	)
	SELECT scope FROM scopes WHERE scope IS NOT NULL ORDER BY scope`)

// Scopes implements [evidence.Store].
func (e *Evidence) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var scopes []string
		err := e.db.read(ctx, func(t *tx) (err error) {
			scopes, err = t.texts(listScopes, kind)
			return err
		})
		yieldAll(ctx, scopes, err, yield)
	}
}

// pageSize is how many rows a list reads at a time.
const pageSize = 500

// pages yields page after page, each of which read makes from where the one before has ended.
func pages[T any](ctx context.Context, yield func(T, error) bool, read func() ([]T, error)) {
	for {
		all, err := read()
		if errors.Is(err, errLastPage) {
			yieldAll(ctx, all, nil, yield)
			return
		}
		stop := err != nil
		yieldAll(ctx, all, err, func(one T, err error) bool {
			stop = !yield(one, err) || err != nil
			return !stop
		})
		if stop {
			return
		}
	}
}

// errLastPage comes with the last page.
var errLastPage = errors.New("the last page")

func lastPage(rows int) error {
	if rows < pageSize {
		return errLastPage
	}
	return nil
}

var (
	listHistory = both(`SELECT seq, happened, observation FROM heed_history
		WHERE cell = $1 AND (happened, seq) < ($2, $3) ORDER BY happened DESC, seq DESC LIMIT 500`)
	listAudit  = both(`SELECT seq, entry FROM heed_audit WHERE seq < $1 ORDER BY seq DESC LIMIT 500`)
	listOutbox = both(`SELECT seq, id, topic, happened, payload FROM heed_outbox WHERE seq > $1 ORDER BY seq LIMIT 500`)
)

const maxInt64 = int64(^uint64(0) >> 1)

// History implements [evidence.Store].
func (e *Evidence) History(ctx context.Context, c evidence.Cell) iter.Seq2[evidence.Observation, error] {
	return func(yield func(evidence.Observation, error) bool) {
		happened, seq := maxInt64, maxInt64
		pages(ctx, yield, func() (page []evidence.Observation, err error) {
			rows := 0
			err = e.db.read(ctx, func(t *tx) error {
				return t.each(listHistory, []any{keyOf(c), happened, seq}, func(scan func(...any) error) error {
					var text string
					if err := scan(&seq, &happened, &text); err != nil {
						return err
					}
					rows++
					page = decode(e.db, page, text)
					return nil
				})
			})
			return page, cmp.Or(err, lastPage(rows))
		})
	}
}

// decode appends what a JSON text holds, or counts it as damaged.
func decode[T any](db *DB, all []T, text string) []T {
	var one T
	if err := json.Unmarshal([]byte(text), &one); err != nil {
		db.damaged.Add(1)
		return all
	}
	return append(all, one)
}

// Audit implements [evidence.Store].
func (e *Evidence) Audit(ctx context.Context) iter.Seq2[evidence.AuditEntry, error] {
	return func(yield func(evidence.AuditEntry, error) bool) {
		seq := maxInt64
		pages(ctx, yield, func() (page []evidence.AuditEntry, err error) {
			rows := 0
			err = e.db.read(ctx, func(t *tx) error {
				return t.each(listAudit, []any{seq}, func(scan func(...any) error) error {
					var text string
					if err := scan(&seq, &text); err != nil {
						return err
					}
					rows++
					page = decode(e.db, page, text)
					return nil
				})
			})
			return page, cmp.Or(err, lastPage(rows))
		})
	}
}

// Outbox implements [evidence.Store].
func (e *Evidence) Outbox(ctx context.Context) iter.Seq2[evidence.Event, error] {
	return func(yield func(evidence.Event, error) bool) {
		var seq int64
		pages(ctx, yield, func() (page []evidence.Event, err error) {
			rows := 0
			err = e.db.read(ctx, func(t *tx) error {
				return t.each(listOutbox, []any{seq}, func(scan func(...any) error) (err error) {
					var event evidence.Event
					var happened string
					if err := scan(&seq, &event.ID, &event.Topic, &happened, &event.Payload); err != nil {
						return err
					}
					rows++
					if event.At, err = time.Parse(time.RFC3339Nano, happened); err != nil {
						e.db.damaged.Add(1)
						return nil //nolint:nilerr // it is counted
					}
					if len(event.Payload) == 0 { // drivers differ in what they make of none
						event.Payload = nil
					}
					page = append(page, event)
					return nil
				})
			})
			return page, cmp.Or(err, lastPage(rows))
		})
	}
}
