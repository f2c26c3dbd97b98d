package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// How tenants share an agent. A tenant's agent is made when it is asked for, and held in a pool.
// Its store is the view of the tenant's records, inside an active store, which notes that the
// tenant needs sweeps. The agent of all tenants finds them by these notes, so that ten thousand
// tenants without activity cost little.

// latestTenants is how many agents of tenants a process keeps at least. It keeps at most twice as
// many. Callers who have one that was dropped can go on using it.
const latestTenants = 256

// noticed is how long a process waits before it notes again that a tenant is active. A tenant is
// swept every minute for a day after that, and then once a day.
const noticed = 5 * time.Minute

// Tenant returns the agent of a tenant, which shares with a its configuration, its models and its
// store, but not what is learned or recorded: see [store.Tenant]. Each tenant begins with the
// lessons of [Config]. The tenant "" is the agent that [New] made. The agent of a tenant returns
// the agents of others, too. Code that should see one tenant gets its [Agent.Store], which is no
// guard against hostile code.
//
// Call Tenant for each event, with the organisation of the request: the agents of the latest
// 256 tenants are kept in memory, each of about 110 kB, and making one takes a few reads.
// [Agent.Run] and [Agent.Sweep] of the agent that New made serve all tenants. Pages, services
// and commands for a tenant are made with the tenant's agent, or with the view that its Store
// returns. To take a tenant out with all that it has, run a [store.Job] with Leave on the store
// itself. What the tenant's agents commit after that fails with [store.ErrLeft], also for
// an event that was asked before. Then call Tenant again, if the tenant has come back.
//
// A name that store.Tenant refuses is a [*heed.InputError]. A store that can't be reached is
// [heed.ErrUnavailable]. It is safe for concurrent use.
func (a *Agent) Tenant(ctx context.Context, tenant string) (*Agent, error) {
	root := a.top()
	if tenant == "" {
		return root, nil
	}
	if of, known := root.tenants.Get(tenant); known {
		return of, nil
	}
	of, err := root.make(ctx, tenant)
	if err != nil {
		return nil, wrap("tenant", err)
	}
	return root.tenants.Add(tenant, of), nil
}

// make makes the agent of a tenant. Its observer adds the tenant to the context of each notice.
// Making it teaches the lessons, which writes them for a tenant that is new.
func (a *Agent) make(ctx context.Context, tenant string) (*Agent, error) {
	view, err := store.Tenant(a.own, tenant)
	if err != nil {
		return nil, err
	}
	cfg := a.cfg
	if cfg.Testing.Seed != nil { // independent of the order of tenants
		draws := chance.Key{A: a.seed[0], B: a.seed[1]}.Rand(0, tenant)
		cfg.Testing.Seed = rand.NewPCG(draws.Uint64(), draws.Uint64())
	}
	if observer := cfg.Observer; observer != nil {
		cfg.Observer = func(ctx context.Context, n heed.Notice) {
			observer(heed.WithTenant(ctx, tenant), n)
		}
	}
	own := &active{Store: view, root: a, tenant: tenant}
	if err := a.lifeline.try(ctx, reading, func() error { return own.begin(ctx) }); err != nil {
		return nil, err
	}
	cfg.Store, cfg.DB = own, nil
	return build(ctx, cfg, &Agent{models: a.models, gates: a.gates, tenant: tenant, root: a})
}

// A tenantPool holds the agents of tenants. It is safe for concurrent use. If two callers make the
// agent of one tenant at the same time, both get the first one.
type tenantPool struct {
	*text.Memo[*Agent]
	seen atomic.Pointer[sighting]
}

// A sighting is what the agents of tenants know of the records that all tenants share.
type sighting struct {
	frozen bool // whether the agent of all tenants is
	at     time.Time
}

// isFrozen reports whether the agent of all tenants was frozen, as of a second ago at the most. It
// also takes over what other processes recorded about the models. No lock is held while it reads,
// so a store that hangs does not keep callers from the pool.
func (p *tenantPool) isFrozen(ctx context.Context, root *Agent) (bool, error) {
	now, seen := root.cfg.Testing.Now(), p.seen.Load()
	if seen != nil && !now.Before(seen.at) && now.Sub(seen.at) < time.Second {
		return seen.frozen, nil
	}
	tx := store.Reading(ctx, root.cfg.Store)
	var w store.Wants
	root.wantHealth(&w)
	tx.Want(w)
	frozen, err := root.ownFreeze(tx)
	if err == nil {
		err = root.takeHealth(tx)
	}
	if err == nil {
		p.seen.Store(&sighting{frozen, now})
	}
	return frozen, err
}

// A tenantRow notes when the parts of a tenant are to be swept next.
type tenantRow struct {
	Tenant string // as [store.KindIn] writes it, so that it is no person's name
	Active time.Time
	Due    time.Time
}

// tenantsOf returns the kind of the rows of an agent's tenants. A tenant that leaves takes its row
// along.
func tenantsOf(agent string) store.View[tenantRow] {
	return store.View[tenantRow]{
		Kind: store.Kind{Name: agent + ".tenant"},
		Place: func(r tenantRow) (string, time.Time, []string) {
			_, tenant := store.KindOf(r.Tenant)
			return store.IDOf(tenant), r.Due, []string{store.Key("tenant", tenant)}
		},
	}
}

// active is the store of a tenant's agent. It notes that the tenant is active, and refuses commits
// after the tenant left, also if the tenant comes again: then the agent is another one.
//
// The stay shows that the tenant is the same one: a commit expects its record as it was when the
// agent was made, so an agent that outlives its tenant can't write into the next tenant of that
// name.
type active struct {
	store.Store
	root   *Agent
	tenant string
	stay   store.Precondition // the tenant has not left since the agent was made
	mu     sync.Mutex
	last   time.Time
}

// A stay is the record of a tenant that goes when the tenant leaves. It never changes.
type stay struct{ Since time.Time }

// staysOf returns the kind of the record of a tenant's stay.
func staysOf(agent string) store.View[stay] {
	return store.View[stay]{
		Kind: store.Kind{Name: agent + ".stay"},
		Place: func(s stay) (string, time.Time, []string) {
			return "stay", s.Since, nil
		},
	}
}

// begin begins the stay of the tenant, unless it began.
func (s *active) begin(ctx context.Context) error {
	stays := staysOf(s.root.cfg.Name)
	if err := s.Declare(ctx, stays.Kind); err != nil {
		return err
	}
	return store.Do(ctx, s.Store, func(tx *store.Tx) error {
		row, err := stays.In(tx, "stay")
		if err == nil && row.Revision == 0 {
			stays.Put(tx, stay{s.root.cfg.Testing.Now()}, 0)
		}
		tx.Then(func(r store.Receipt, _ error) {
			s.stay = stays.Expect("stay", max(row.Revision, r.Revision))
		})
		return err
	})
}

// Root returns the store of all tenants, and the tenant's name.
func (s *active) Root() (store.Store, string) { return &lasting{s.root.cfg.Store, s}, s.tenant }

// lasting is the store of all tenants for an agent whose tenant has not left.
type lasting struct {
	store.Store
	of *active
}

// Commit implements [store.Store].
func (s *lasting) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	// The record is in the tenant's part of the store, so its kind is the tenant's.
	stays := s.of.stay
	stays.Kind = store.KindIn(stays.Kind, s.of.tenant)
	return s.Store.Commit(ctx, expecting(stays, batches)...)
}

// expecting returns batches that are only applied if a precondition holds.
func expecting(p store.Precondition, batches []store.Batch) []store.Batch {
	all := slices.Clone(batches)
	for i := range all {
		all[i].Expect = append(slices.Clip(all[i].Expect), p)
	}
	return all
}

// Commit implements [store.Store]. A conflict may be the caller's own, or mean that the tenant
// left. The stay's record decides.
func (s *active) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	receipts, err := s.Store.Commit(ctx, expecting(s.stay, batches)...)
	if errors.Is(err, heed.ErrConflict) {
		stays := staysOf(s.root.cfg.Name)
		now, failed := stays.Get(ctx, s.Store, s.stay.ID)
		switch {
		case failed == nil && now.Revision == s.stay.Revision:
		case failed == nil, errors.Is(failed, heed.ErrNotFound):
			err = fmt.Errorf("loop: tenant %q: %w", s.tenant, store.ErrLeft)
		default:
			receipts, err = nil, failed
		}
	}
	switch {
	case err == nil && ctx.Value(swept{}) == nil:
		s.note(ctx)
	case errors.Is(err, store.ErrLeft):
		s.root.tenants.Drop(s.tenant, func(of *Agent) bool { return of.own == s })
	}
	return receipts, err
}

// swept marks the context of a sweep, whose commits are no activity of the tenant.
type swept struct{}

// note has the tenant swept soon. If that fails, the next commit tries again. It comes after the
// commit, because a tenant that is leaving must not be noted. It costs one commit in five minutes
// of activity.
func (s *active) note(ctx context.Context) {
	now := s.root.cfg.Testing.Now()
	s.mu.Lock()
	last := s.last
	if now.Sub(last).Abs() < noticed { // also if the clock was put back
		s.mu.Unlock()
		return
	}
	s.last = now // others don't wait for a store that hangs
	s.mu.Unlock()
	tenants := tenantsOf(s.root.cfg.Name)
	row := tenantRow{Tenant: store.KindIn(tenants.Name, s.tenant), Active: now, Due: now}
	err := store.Do(ctx, &lasting{s.root.own, s}, func(tx *store.Tx) error {
		found, err := tenants.In(tx, store.IDOf(s.tenant))
		if err == nil {
			tenants.Put(tx, row, found.Revision)
		}
		return err
	})
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last = last
	}
}

// tenantsOfSweep is how many tenants one sweep looks at. A tenant without activity for idleFor is
// swept as rarely.
const (
	tenantsOfSweep = 200
	idleFor        = 24 * time.Hour
)

// sweepTenants sweeps the tenants that are due. Tenants without activity cost one sweep a day.
func (a *Agent) sweepTenants(ctx context.Context, now time.Time) error {
	if a.root != nil {
		return nil
	}
	tenants := tenantsOf(a.cfg.Name)
	var due []store.Row[tenantRow]
	var errs []error
	for _, q := range []store.Query{
		{Until: now.Add(time.Microsecond), Oldest: true, Limit: tenantsOfSweep},
		{Since: now.Add(idleFor + 2*evidence.MaxSkew), Limit: tenantsOfSweep}, // by a wrong clock
	} {
		for row, err := range tenants.Find(ctx, a.cfg.Store, q) {
			if errs = append(errs, err); err == nil {
				due = append(due, row)
			}
		}
	}
	for _, row := range due {
		errs = append(errs, a.sweepTenant(ctx, &tenants, row, now))
	}
	return errors.Join(errs...)
}

// sweepTenant sweeps the parts of one tenant, and notes when the next sweep is due. A tenant
// without activity for a day is swept once a day, because its answers may still have deadlines.
func (a *Agent) sweepTenant(
	ctx context.Context, tenants *store.View[tenantRow], row store.Row[tenantRow], now time.Time,
) error {
	_, name := store.KindOf(row.Value.Tenant)
	sweep := context.WithValue(ctx, swept{}, true)
	of, err := a.Tenant(sweep, name)
	if err == nil {
		err = of.sweepParts(sweep, now)
	}
	if errors.Is(err, store.ErrLeft) { // it is leaving, or another process has seen it leave
		return nil
	}
	next := row.Value
	if next.Due = now.Add(time.Minute); now.Sub(next.Active).Abs() > idleFor {
		next.Due = now.Add(idleFor)
	}
	_, moved := a.cfg.Store.Commit(ctx, store.Batch{
		Records: []store.Record{tenants.Record(next, row.Revision)},
	})
	if errors.Is(moved, heed.ErrConflict) { // it is active, or another process swept it
		moved = nil
	}
	return errors.Join(err, moved)
}
