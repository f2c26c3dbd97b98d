package sqlstore

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// kinds are the kinds of records that this program declared. The database has the kinds of all
// programs. It is safe for concurrent use.
type kinds struct {
	limits map[string]store.Limits // of the configuration
	mu     sync.RWMutex
	known  map[string]*keptKind
	of     map[string]*keptKind // of tenants, as far as they are remembered
}

// mostOfTenants is how many kinds of tenants are remembered. If there are more, all are forgotten,
// and their records are counted again.
const mostOfTenants = 10_000

// A keptKind is a kind, with an estimate of the number of its records, by which most commits need
// no count: see limit. It is derived from the database, and each process has its own.
type keptKind struct {
	store.Kind
	counting sync.Mutex
	// counted reports that count and seq are set. A transaction that was taken back resets it.
	counted bool
	count   int64 // of its records, when seq was the greatest number
	// seq is the number of the last record when they were counted.
	seq int64
}

// get returns a kind that was declared, also of a tenant, or nil. A tenant declares no kinds: its
// kinds are the kinds of the store, under a name that has the tenant in it.
func (k *kinds) get(name string) *keptKind {
	k.mu.RLock()
	found := k.known[name]
	if found == nil {
		found = k.of[name]
	}
	k.mu.RUnlock()
	if found != nil {
		return found
	}
	base, tenant := store.KindOf(name)
	if tenant == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// Another caller may have made it between the two locks.
	declared := k.known[base]
	if declared == nil || k.of[name] != nil {
		return k.of[name]
	}
	if k.of == nil || len(k.of) >= mostOfTenants {
		k.of = make(map[string]*keptKind)
	}
	found = &keptKind{Kind: declared.Kind}
	found.Name = name
	k.of[name] = found
	return found
}

// limitsOf returns the limits that hold for a kind that was declared.
func (k *kinds) limitsOf(kind store.Kind) store.Limits {
	if limits, ok := k.limits[kind.Name]; ok {
		return limits
	}
	return kind.Limits
}

// set keeps a declaration. Limits of the configuration win over it.
func (k *kinds) set(kind store.Kind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kind.Limits = k.limitsOf(kind)
	// Each agent of a tenant declares again. If nothing changed, the counts stay; otherwise they go,
	// with the counts of all tenants.
	if known := k.known[kind.Name]; known == nil || !reflect.DeepEqual(known.Kind, kind) {
		k.known[kind.Name], k.of = &keptKind{Kind: kind}, nil
	}
}

var (
	// These read and write the declarations. There are few, so the primary key is all they need.
	listDeclared = both(`SELECT name, kind FROM heed_kind ORDER BY name`)
	readDeclared = both(`SELECT name, kind FROM heed_kind WHERE name = $1`)
	keepKind     = both(`INSERT INTO heed_kind (name, kind) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET kind = excluded.kind`)
)

// Declare implements [store.Store]. The database keeps the declarations, so that each program
// forgets people and sweeps as all of them have declared. Declaring a kind twice joins both
// declarations: paths to people are added, and what the later one sets otherwise replaces what was
// stored.
func (s *Store) Declare(ctx context.Context, kinds ...store.Kind) error {
	err := ctx.Err()
	for i := range kinds {
		if err == nil {
			err = kinds[i].Validate()
		}
	}
	if err == nil {
		err = s.declare(ctx, kinds)
	}
	return wrap("declare", err)
}

// declare joins the kinds with what the database has, and writes only those that change. Most
// programs declare what the last one did, so usually there is no lock. Two programs that declare at
// once each join what the other wrote.
func (s *Store) declare(ctx context.Context, kinds []store.Kind) error {
	all := slices.Clone(kinds)
	joined := func(t *tx) (changed []store.Kind, err error) {
		for i, kind := range kinds {
			stored, found, err := s.declared(t, kind.Name)
			if err != nil {
				return nil, err
			}
			if all[i] = stores.Join(stored, kind); !found || !reflect.DeepEqual(stored, all[i]) {
				changed = append(changed, all[i])
			}
		}
		return changed, nil
	}
	// Without the lock first. What is found to differ is joined again under the lock, because
	// another program may have declared something in between.
	var changed []store.Kind
	err := s.db.read(ctx, func(t *tx) (err error) {
		changed, err = joined(t)
		return err
	})
	if err == nil && len(changed) > 0 {
		c := &change{store: s, alone: true}
		err = s.db.enter(ctx, c.enter, func(t *tx) error {
			changed, err := joined(t)
			for i := 0; err == nil && i < len(changed); i++ {
				err = keepDeclared(t, changed[i])
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	// Only now may commits of the kind begin, because others sweep by what the database has.
	for _, kind := range all {
		s.kinds.set(kind)
	}
	return nil
}

// keepDeclared writes how a kind is kept. The row is JSON, so a new field needs no new column.
func keepDeclared(t *tx, kind store.Kind) error {
	text, err := json.Marshal(kind)
	if err == nil {
		_, err = t.exec(keepKind, kind.Name, string(text))
	}
	return err
}

// declared returns a kind as the database keeps it, also for the kind of a tenant.
func (s *Store) declared(t *tx, name string) (kind store.Kind, found bool, err error) {
	name, _ = store.KindOf(name)
	kind.Name = name
	err = t.each(readDeclared, []any{name}, func(scan func(...any) error) (err error) {
		found = true
		kind, err = scanKind(scan)
		return err
	})
	return kind, found, err
}

// scanKind returns the kind in a row, or an error that names it. A kind that can't be decoded stops
// sweeps and jobs, which must know all kinds.
func scanKind(scan func(...any) error) (kind store.Kind, err error) {
	var name, text string
	if err := scan(&name, &text); err != nil {
		return kind, err
	}
	if json.Unmarshal([]byte(text), &kind) != nil {
		return kind, damaged("how records of kind %q are kept", name)
	}
	return kind, nil
}

// allDeclared returns the kinds that any program declared. Limits of this store's configuration
// replace declared ones.
func (s *Store) allDeclared(t *tx) (all []store.Kind, err error) {
	all, err = t.declaredKinds()
	for i := range all {
		all[i].Limits = s.kinds.limitsOf(all[i])
	}
	return all, err
}

// declaredKinds returns them with the limits that were declared.
func (t *tx) declaredKinds() (all []store.Kind, err error) {
	return collect(t, listDeclared, nil, scanKind)
}
