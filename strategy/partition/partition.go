package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Config configures a [Partition]. Every field but Store has a default.
type Config struct {
	// Store keeps the cells, for other processes and after a restart. It is required.
	Store store.Store
	// Name distinguishes partitions that share a store, and begins the names of items. "" means
	// "partition".
	Name string
	// Embed turns texts into vectors. It must be safe for concurrent use. nil means [Form]. Set it if
	// requests differ in what they are about. Vectors of another length have cells of their own. So
	// set another Name only for another model whose vectors are as long.
	Embed heed.Embedder
	// Clusters is how many cells there are at most, from 1 to 10,000. There is one for every ten
	// vectors until then. 0 means 30. If there are more already, they stay. Raise it if topics and
	// outcomes are many, because each cell needs outcomes.
	Clusters int

	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Seed gives the key of all that is drawn. New uses it once. nil means a key that is always the
	// same.
	Seed rand.Source
}

const (
	defaultName = "partition"
	// defaultClusters is a compromise: more cells distinguish more, and each needs outcomes.
	defaultClusters = 30
	maxName         = evidence.MaxText - 32 // leaves room for the number of a cell
	// vectors that are kept for Sweep, and vectors of texts that are remembered
	remembered = 1000
	// leastBatch is how many vectors Sweep learns from at least.
	leastBatch = 32
)

// withDefaults sets the zero fields. An embedder of the host's is contained, and remembers its
// last vectors; Form needs neither, because it is as fast as the look-up.
func (c Config) withDefaults() Config {
	c.Name, c.Clusters = cmp.Or(c.Name, defaultName), cmp.Or(c.Clusters, defaultClusters)
	if c.Embed == nil {
		c.Embed = Form
	} else {
		c.Embed = text.Remembering(contained(c.Embed), remembered, 1) // Item has one text
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock
	}
	if c.Seed == nil {
		c.Seed = rand.NewPCG(0, 0)
	}
	return c
}

// validate reports all faults of a configuration that has its defaults.
func (c *Config) validate() error {
	var found valid.Faults
	found.Check(c.Store != nil, "Store", nil, "must be set")
	found.Check(evidence.CheckText("", c.Name) == nil && len(c.Name) <= maxName, "Name", c.Name,
		fmt.Sprintf("must be text of at most %d bytes", maxName))
	found.Check(c.Clusters >= 1 && c.Clusters <= maxCells, "Clusters", c.Clusters,
		fmt.Sprintf("must be in [1, %d], or 0 for the default", maxCells))
	return found.Err()
}

// contained turns a panic of the embedder into an error.
func contained(embed heed.Embedder) heed.Embedder {
	return func(ctx context.Context, texts []string) (vectors [][]float32, err error) {
		err = host.Call("the embedder", func() error {
			vectors, err = embed(ctx, texts)
			return err
		})
		return vectors, err
	}
}

// A Partition assigns a text or a vector to a cell. Make one with [New]. It does not start
// goroutines or need to be closed. It is safe for concurrent use by multiple goroutines.
//
// Readers see all cells as they are at one moment, because a state is not changed.
type Partition struct {
	cfg Config
	// key keys what is drawn: the seeds of cells.
	key [2]uint64

	mu sync.Mutex
	// states are the cells in use, by the length of their vectors.
	states map[int]*state
	// unit vectors since the last sweep that learned; at most this many are remembered
	seen [][]float32
}

// New returns a partition with the cells that the store has, or all faults of the configuration,
// joined: each is a [*heed.ConfigError].
func New(ctx context.Context, cfg Config) (*Partition, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, valid.Wrap("partition: new", err)
	}
	p := &Partition{
		cfg: cfg, key: [2]uint64{cfg.Seed.Uint64(), cfg.Seed.Uint64()}, states: make(map[int]*state),
	}
	if err := cfg.Store.Declare(ctx, kind.Kind); err != nil {
		return nil, valid.Wrap("partition: new", err)
	}
	return p, valid.Wrap("partition: new", p.readAll(ctx))
}

// Item returns the item of a text: the name of its cell, for example "partition:286.7". It is ""
// before there are cells, so that all texts are one item. Item also returns the text's vector, for
// strategy.Query.Vector. It does not read the store. It keeps the vector for the next Sweep.
//
// An error is the embedder's. A vector that is zero or not finite is one, too.
func (p *Partition) Item(
	ctx context.Context, text string,
) (item string, vector []float32, err error) {
	vectors, err := p.cfg.Embed(ctx, []string{text})
	if err != nil {
		return "", nil, valid.Wrap("partition: item", err)
	}
	item, err = p.Of(vectors[0])
	return item, vectors[0], valid.Wrap("partition: item", err)
}

// Of returns the item of a vector: see [Partition.Item]. A vector that is zero or not finite is
// a [*heed.InputError].
func (p *Partition) Of(vector []float32) (string, error) {
	v, ok := unit(vector)
	if !ok || len(v) > maxNumbers {
		return "", errVector
	}
	p.remember(v)
	s := p.current(len(v))
	if len(s.cells) == 0 {
		return "", nil
	}
	at, _ := nearest(v, s.cells)
	return s.items[at], nil
}

var errVector = valid.Input("vector",
	"must be finite and not zero, of at most %d numbers", maxNumbers)

// remember keeps a vector for the next sweep. A thousand are enough to learn from. More than that
// until the next sweep are left out.
func (p *Partition) remember(v []float32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) < remembered {
		p.seen = append(p.seen, v)
	}
}

// Sweep reads the cells that other processes have made, and learns from the vectors that
// [Partition.Item] and [Partition.Of] have seen since: at most 1,000, which are in memory only.
// Fewer than 32 of one length wait. Cells move towards the vectors that are nearest to them, the
// less the more they have seen. New ones begin where vectors are far from all cells, until there
// are Config.Clusters. With the same seed and the same vectors the cells are the same.
//
// It implements [heed.Sweeper]. After an error the vectors are kept for the next sweep, as many as
// there is room for.
func (p *Partition) Sweep(ctx context.Context, now time.Time) error {
	if err := p.readAll(ctx); err != nil {
		return valid.Wrap("partition: sweep", err)
	}
	p.mu.Lock()
	seen := make(map[int][][]float32)
	for _, v := range p.seen {
		seen[len(v)] = append(seen[len(v)], v)
	}
	p.seen = nil
	p.mu.Unlock()
	var errs []error
	for _, n := range slices.Sorted(maps.Keys(seen)) {
		var err error
		if len(seen[n]) >= leastBatch {
			err = p.learn(ctx, now, n, seen[n])
			errs = append(errs, err)
		}
		if len(seen[n]) < leastBatch || err != nil {
			p.mu.Lock()
			room := min(len(p.seen), remembered-len(seen[n]))
			p.seen = append(seen[n], p.seen[:room]...)
			p.mu.Unlock()
		}
	}
	return valid.Wrap("partition: sweep", errors.Join(errs...))
}

// learn moves the cells of vectors of one length by a batch. If another process was quicker, it
// starts again from the cells which that one made.
func (p *Partition) learn(
	ctx context.Context, at time.Time, numbers int, points [][]float32,
) error {
	if at.IsZero() {
		at = p.cfg.Now()
	}
	return store.Do(ctx, p.cfg.Store, func(tx *store.Tx) error {
		kept, err := kind.In(tx, rowID(p.cfg.Name, numbers))
		if err != nil {
			return err
		}
		now, err := stateOf(&kept)
		if err != nil {
			return err
		}
		// A record that was lost must not have a name that is in use be given again.
		now.next = max(now.next, p.current(numbers).next)
		next, err := p.after(ctx, now, points)
		if err != nil {
			return err
		}
		kind.Put(tx, next.row(p.cfg.Name, numbers, at.UTC().Truncate(time.Microsecond)), now.revision)
		tx.Then(func(r store.Receipt, err error) {
			if err == nil {
				next.revision = r.Revision
				p.take(numbers, next)
			}
		})
		return nil
	})
}

// after returns the cells after a batch. The generator is keyed by how many vectors were seen, so
// each batch draws other seeds.
func (p *Partition) after(ctx context.Context, now *state, points [][]float32) (*state, error) {
	next := &state{seen: now.seen + uint64(len(points)), next: now.next}
	want := min(p.cfg.Clusters, int(min(next.seen, maxCells*perCell))/perCell) //nolint:gosec // it is small
	rng := rand.New(rand.NewPCG(p.key[0], p.key[1]+next.seen))
	var err error
	if len(now.cells) == 0 {
		next.cells, err = makeCells(ctx, points, want, rng)
	} else if next.cells, _, err = seed(ctx, points, now.cells, want, rng); err == nil {
		next.cells, err = settle(ctx, points, next.cells, 1)
	}
	for i := len(now.cells); i < len(next.cells); i++ {
		next.cells[i].id = next.next
		next.next++
	}
	next.name(p.cfg.Name, len(points[0]))
	return next, err
}

// readAll takes over all cells that the store has.
func (p *Partition) readAll(ctx context.Context) error {
	for kept, err := range kind.Find(ctx, p.cfg.Store, store.Query{Keys: []string{key(p.cfg.Name)}}) {
		if err != nil {
			return err
		}
		s, err := stateOf(&kept)
		if err != nil {
			return err
		}
		p.take(kept.Value.Numbers, s)
	}
	return nil
}

// current returns the cells in use of vectors of a length.
func (p *Partition) current(numbers int) *state {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.states[numbers]; s != nil {
		return s
	}
	return new(state)
}

// take replaces the cells of vectors of a length by the cells of a newer record. It never goes
// back: another goroutine may have taken a newer one in the meantime.
func (p *Partition) take(numbers int, next *state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.states[numbers]; s == nil || s.revision < next.revision {
		p.states[numbers] = next
	}
}

var _ heed.Sweeper = (*Partition)(nil)
