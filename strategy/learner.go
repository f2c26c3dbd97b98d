package strategy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Learner chooses among arms by Thompson sampling and learns from the outcomes. Make one with
// [New]. All of its state is in the store, so another learner over the same store goes on where it
// stopped. It does not start goroutines or need to be closed. It is safe for concurrent use by
// multiple goroutines.
type Learner struct {
	cfg Config
	// priors are the cold starts, by arm.
	priors []evidence.Beta
	// index is the place of each arm in Config.Arms.
	index    map[ArmID]int
	values   []parameterValue // of all parameters of all arms, in order
	kinds    kinds
	policies map[string]evidence.Policy // by kind
	// key is the key of all random numbers. Each choice derives a generator from it.
	key     chance.Key
	pending string        // the key of choices that wait
	loose   atomic.Uint64 // numbers the choices without a session
	answers store.View[answer.Answer]
	// sessions is the cache of choices, by session, and within it by item and segment.
	sessions *memo
	bulk     atomic.Pointer[bulkStep] // of the last step, if that was in bulk
	// doubts are ids that the store could not take back: see [Learner.doubt].
	doubts *text.Memo[struct{}]
	watch  *watch.Watch
	// shared is what this learner shares with other tenants, or nil.
	shared *sharing

	// sampleItems is the constant of the same name, which tests set lower.
	sampleItems int

	// segments are the latest that were used, by scope. Each has locks for what it holds.
	segments *text.Memo[*segment]
}

// A parameterValue is a value that a parameter of an arm may have.
type parameterValue struct {
	arm ArmID
	answer.Setting
}

// remembered is a choice as the cache keeps it. The record of a choice is read again after
// Config.Refresh, because the session may have ended in another process.
type remembered struct {
	details
	checked evidence.Instant // when its record was read last
}

// New returns a learner, or all faults of its configuration, joined: each is a [*heed.ConfigError].
// It keeps its settings in the store, by its name. If the host sets another half-life than the
// stored one, the error is a [*heed.SettingsError]: see [Rebuild]. If the host sets none, the
// stored half-life is used. Other settings replace the stored ones, with an entry in the audit.
func New(ctx context.Context, cfg Config) (*Learner, error) {
	l, err := build(cfg)
	if err == nil {
		err = l.open(ctx, cfg.Refresh == 0)
	}
	if err != nil {
		return nil, fmt.Errorf("strategy: %w", err)
	}
	return l, nil
}

// build makes a learner that has not seen its store yet. Rebuild uses it as well, to validate a
// configuration before it touches the store.
func build(cfg Config) (*Learner, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	seed := cfg.Seed
	if seed == nil {
		seed = rand.NewPCG(rand.Uint64(), rand.Uint64()) //nolint:forbidigo // the random key of a host that gives no seed
	}
	l := &Learner{
		cfg:      cfg,
		priors:   coldStart(cfg.Arms, cfg.Prior),
		index:    make(map[ArmID]int, len(cfg.Arms)),
		kinds:    kindsOf(cfg.Name),
		policies: cfg.kept(kindsOf(cfg.Name)),
		pending:  answers.Pending(cfg.Name),
		answers:  answers.View(cfg.Answers),
		key:      chance.Key{A: seed.Uint64(), B: seed.Uint64()},
		doubts:   text.NewMemo[struct{}](maxDoubts),
		sessions: newMemo(cfg.Cache.Size),
		segments: text.NewMemo[*segment](maxSegments),
		watch:    watch.New(cfg.Observer, component+cfg.Name, cfg.Now),
		shared:   cfg.sharing(),

		sampleItems: sampleItems,
	}
	for i, arm := range cfg.Arms {
		l.index[arm.ID] = i
		for _, p := range arm.Parameters {
			for _, value := range p.Values {
				l.values = append(l.values, parameterValue{
					arm.ID, answer.Setting{Name: p.Name, Value: value}})
			}
		}
	}
	return l, nil
}

// Config returns the configuration in force, defaults filled in.
func (l *Learner) Config() Config { return l.cfg.withDefaults() }

// EndSession forgets the choices of a session. Later queries of the session choose again, which
// gives the same arm if no outcome was learned since. Records of choices stay. Another learner over
// the same store that remembers a choice of the session keeps it for at most Config.Refresh.
func (l *Learner) EndSession(ctx context.Context, session string) (err error) {
	if l.cfg.Unrecorded || session == "" {
		l.sessions.Drop(session, 0)
		return ctx.Err()
	}
	defer because(&err, "end session")
	return store.Do(ctx, l.cfg.Store, func(tx *store.Tx) error { return l.endIn(tx, session, "") })
}

// maxEnds bounds the ids that a session remembers of those that have ended it.
const maxEnds = 16

// endIn ends a session as a part of a step. If the id is not empty, it ends the session once. The
// epoch is raised, and a choice of an earlier epoch is no longer the session's. So the choices need
// not be written, however many there are. This process forgets its choices with the commit, and if
// the commit failed as well, because it may have taken effect.
func (l *Learner) endIn(tx *store.Tx, session, id string) error {
	var epoch uint64
	tx.Then(func(_ store.Receipt, err error) {
		if err != nil {
			epoch = 0
		}
		l.sessions.Drop(session, epoch)
	})
	row, err := sessions.In(tx, sessionID(l.cfg.Name, session))
	epoch = row.Value.Epoch
	if err != nil || id != "" && slices.Contains(row.Value.Ends, id) {
		return err
	}
	epoch++
	next := sessionRow{
		ID: row.ID, Epoch: epoch, At: evidence.InstantOf(l.cfg.Now()).Time(),
		Ends: row.Value.Ends,
	}
	if id != "" {
		next.Ends = append(slices.Clip(next.Ends), id)
		next.Ends = next.Ends[max(len(next.Ends)-maxEnds, 0):]
	}
	sessions.Put(tx, next, row.Revision)
	return nil
}

// Refresh reads all segments in memory again from the store. Call it after evidence was retracted,
// expunged or reset in the store, or added by others. Segments that were never loaded stay so. A
// failure of one segment does not stop the others.
func (l *Learner) Refresh(ctx context.Context) (err error) {
	defer because(&err, "refresh")
	var failures []error
	now := l.cfg.Now()
	for _, s := range l.segments.All() {
		if loaded, _ := s.state(now, 0); loaded {
			failures = append(failures, l.refresh(ctx, s, now))
		}
	}
	return errors.Join(failures...)
}

// refresh loads a segment, after a load that is under way. It waits for that one to end, because it
// may have begun before the change that the caller wants to see.
func (l *Learner) refresh(ctx context.Context, s *segment, now time.Time) error {
	if err := s.loading.Lock(ctx); err != nil {
		return err
	}
	defer s.loading.Unlock()
	return l.load(store.Reading(ctx, l.cfg.Store), s, now)
}

func isInputError(err error) bool { return errors.As(err, new(*heed.InputError)) }

// because adds to the error of a method what it was doing.
func because(err *error, doing string) {
	if *err != nil {
		*err = fmt.Errorf("strategy: %s: %w", doing, *err)
	}
}
