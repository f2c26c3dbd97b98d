// Package natsstore is a store on NATS JetStream. It needs no database: the servers of NATS keep
// the store on several machines, and it goes on when one of them is lost.
//
//	nc, err := nats.Connect("nats://a,nats://b,nats://c", nats.MaxReconnects(-1))
//	js, err := jetstream.New(nc)
//	st, err := natsstore.Open(ctx, js, natsstore.Config{Name: "heed"})
//
// The store is a log of commits in a stream. Each handle applies the log to a state in memory, so
// the state must fit into the memory of each program. A commit takes effect at its place in the
// log, and whether it is refused follows from the log alone. A read first appends an empty entry,
// and waits until the handle applied everything before it. Reads that wait share one entry. Reads
// of cells alone do so twice a second at most.
//
// When the log became long, or people were forgotten, a handle writes the state as the beginning of
// another stream and deletes the stream of before, with its files.
package natsstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/internal/broker"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// Config configures a [Store].
type Config struct {
	// Name is the name of the store, of letters, digits and "-". Programs that open the same name
	// use the same store. Its streams are called Name_1, Name_2 and so on.
	Name string
	// Replicas is the number of servers that keep the store, 1 to 5. 0 means 3, which survives the
	// loss of one server. Set 1 for a single server.
	Replicas int
	// Timeout is how long a call waits for the servers before it fails. 0 means 20 s: to replace a
	// server that was lost takes them up to 10 s. A context with an earlier deadline wins.
	Timeout time.Duration
	// Kept sets what the store keeps, and for how long, like for a store in memory. It is the same
	// for all handles: if it differs from what the store was opened with before, it replaces that.
	Kept memstore.Config
}

var nameOf = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

// Store is a [store.Store] on JetStream. It is safe for concurrent use. It needs no closing: it
// starts a goroutine for calls that wait, which ends after them, and after Config.Timeout at the
// latest for each. The connection is the host's.
type Store struct {
	js      jetstream.JetStream
	cfg     Config
	session string // of this handle in the log
	clock   func() time.Time
	tick    func() time.Time // real time, for how old the state is
	at      atomic.Int64     // the moment of the applied entry in µs, or 0
	fresh   atomic.Int64     // when the newest entry that was applied was asked for, in real time

	queue   sync.Mutex
	waiting []*call
	working bool

	mu    sync.RWMutex
	state *state    // nil before the log was found; changed by the worker
	told  time.Time // by the servers when the log was looked for
	asked time.Time // when that was, in real time
	// The fields below are the worker's.
	lost    bool               // the stream of the state may be gone
	long    int                // how many bytes a log may have before the next generation begins
	number  uint64             // of the last entry of this handle
	results []result           // of that entry
	replies *nats.Subscription // to requests for messages; it ends with the Store
	inbox   string
	fetches int
}

var _ store.Store = (*Store)(nil)

// Open opens a store, and creates it if it is missing. It returns all faults of the configuration,
// each a [*heed.ConfigError], or [heed.ErrUnavailable] if the servers can't be reached.
func Open(ctx context.Context, js jetstream.JetStream, cfg Config) (*Store, error) {
	var found broker.Faults
	found.Check(js != nil, "JetStream", nil, "must be set")
	found.Check(nameOf.MatchString(cfg.Name), "Name", cfg.Name, "must be of letters, digits and -")
	found.Check(cfg.Replicas >= 0 && cfg.Replicas <= 5, "Replicas", cfg.Replicas, "must be 1 to 5")
	found.Check(cfg.Timeout >= 0, "Timeout", cfg.Timeout, "must not be negative")
	_, err := memstore.New(cfg.Kept)
	found.Join(err)
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("natsstore: %w", err)
	}
	cfg.Replicas, cfg.Timeout = cmp.Or(cfg.Replicas, 3), cmp.Or(cfg.Timeout, 20*time.Second)
	s := &Store{js: js, cfg: cfg, session: nuid.Next(), clock: cfg.Kept.Now, long: longLog}
	s.tick = time.Now //nolint:forbidigo // how long a call waits is real time
	if s.clock == nil {
		s.clock = time.Now //nolint:forbidigo // the default clock of a host that sets no clock
	}
	if len(cfg.Kept.Limits) == 0 {
		s.cfg.Kept.Limits = nil // as it is read again
	}
	if err = s.sync(ctx); err == nil {
		err = s.checkClock(ctx)
	}
	if err == nil && !s.keepsAlike() {
		err = s.do(ctx, &call{rotate: rotateKept}).err
	}
	if err != nil {
		return nil, fmt.Errorf("natsstore: open: %w", err)
	}
	return s, nil
}

// keepsAlike reports whether the store keeps what this handle's configuration asks for.
func (s *Store) keepsAlike() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return reflect.DeepEqual(s.state.Kept, s.cfg.Kept.Retention)
}

// now is the clock of the state: the moment of the entry that is applied, or else the host's clock.
func (s *Store) now() time.Time {
	if at := s.at.Load(); at != 0 {
		return time.UnixMicro(at).UTC()
	}
	return s.clock()
}

// Commit implements [store.Store].
func (s *Store) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	c := &call{action: &action{At: s.moment()}}
	if erase(batches) {
		c.rotate = rotateOld
	}
	err := cmp.Or(ctx.Err(), s.checkClock(ctx), store.Validate(c.action.At.Time(), batches...))
	if err == nil {
		c.action.Batches, err = encode(batches)
	}
	if err == nil {
		got := s.do(ctx, c)
		if err = got.err; err == nil {
			return got.receipts, nil
		}
	}
	return nil, fmt.Errorf("natsstore: commit: %w", err)
}

// Declare implements [store.Store].
func (s *Store) Declare(ctx context.Context, kinds ...store.Kind) error {
	err := ctx.Err()
	for i := 0; err == nil && i < len(kinds); i++ {
		err = kinds[i].Validate()
	}
	if err == nil {
		err = s.do(ctx, &call{action: &action{At: s.moment(), Declare: kinds}}).err
	}
	return broker.Wrap("natsstore: declare", err)
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	const stale = 500 * time.Millisecond // cells alone may be a second old
	age := time.Duration(s.tick().UnixNano() - s.fresh.Load())
	alone := len(refs)+len(finds) == 0 && age.Abs() < stale // also after a clock was put back
	err := ctx.Err()
	if err == nil && !alone {
		err = s.sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("natsstore: read: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	first := len(into.Records)
	if err := s.state.mem.Read(ctx, into, cells, refs, finds...); err != nil {
		return err
	}
	for i, ref := range refs {
		if ref.ID == "" { // a version goes on rising in the next generation
			into.Records[first+i].Revision += s.state.Generation << 40
		}
	}
	return nil
}

// Find implements [store.Store].
func (s *Store) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	return listed(ctx, s, func(mem *memstore.Store) iter.Seq2[store.Record, error] {
		return mem.Find(ctx, q)
	})
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	return listed(ctx, s, func(mem *memstore.Store) iter.Seq2[evidence.Part, error] {
		return mem.List(ctx, q)
	})
}

// Scopes implements [store.Store].
func (s *Store) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return listed(ctx, s, func(mem *memstore.Store) iter.Seq2[string, error] {
		return mem.Scopes(ctx, kind)
	})
}

// History implements [store.Store].
func (s *Store) History(ctx context.Context,
	c evidence.Cell) iter.Seq2[evidence.Observation, error] {
	return listed(ctx, s, func(mem *memstore.Store) iter.Seq2[evidence.Observation, error] {
		return mem.History(ctx, c)
	})
}

// listed yields what the state lists, after the handle has caught up.
func listed[T any](ctx context.Context, s *Store,
	list func(*memstore.Store) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := ctx.Err()
		if err == nil {
			err = s.sync(ctx)
		}
		if err != nil {
			yield(*new(T), fmt.Errorf("natsstore: %w", err))
			return
		}
		s.mu.RLock()
		all := list(s.state.mem)
		s.mu.RUnlock()
		all(yield)
	}
}

// Sweep implements [store.Store]. It finishes jobs before the entry of the sweep, so that they take
// their steps in the log. It also deletes what is left of streams of before, and begins a
// new stream if the log became long or old.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	err := cmp.Or(ctx.Err(), s.checkClock(ctx))
	if err == nil { // a job that fails each time must not keep records past their time
		err = errors.Join(store.Resume(ctx, s), s.do(ctx, &call{rotate: rotateOld, action: &action{
			At: s.moment(), Sweep: true, Until: evidence.InstantOf(now),
		}}).err)
	}
	return broker.Wrap("natsstore: sweep", err)
}

// checkClock refuses what a handle would do whose clock is ahead of the servers' clock by more than
// the clocks of handles may differ: it would drop ids, history and records too early, for all. It
// asks the servers again first, because a clock may have been set, or the machine slept.
func (s *Store) checkClock(ctx context.Context) error {
	if s.cfg.Kept.Now != nil || s.ahead() <= evidence.MaxSkew {
		return nil
	}
	if _, err := s.place(ctx); err != nil {
		return fmt.Errorf("%w: %w", heed.ErrUnavailable, err)
	}
	if ahead := s.ahead(); ahead > evidence.MaxSkew {
		return &heed.ConfigError{Field: "Kept.Now", Value: ahead,
			Reason: "is how far this machine's clock is ahead of the servers' clock: set the clock"}
	}
	return nil
}

func (s *Store) ahead() time.Duration {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.clock().Sub(s.told.Add(s.tick().Sub(s.asked))).Round(time.Second)
}

func (s *Store) moment() evidence.Instant { return evidence.InstantOf(s.clock()) }
