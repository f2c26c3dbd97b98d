package partition

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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
	// requests differ in what they are about. If you exchange the model and its vectors have as many
	// numbers as before, set another Name. If they have not, Sweep makes new cells.
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
	// textsACall is how many texts an embedder gets in one call at most.
	textsACall = 100
)

// withDefaults sets the zero fields. An embedder of the host's is contained, remembers its last
// vectors, and gets batches; Form needs neither, because it is as fast as the look-up.
func (c Config) withDefaults() Config {
	c.Name, c.Clusters = cmp.Or(c.Name, defaultName), cmp.Or(c.Clusters, defaultClusters)
	if c.Embed == nil {
		c.Embed = Form
	} else {
		c.Embed = text.Remembering(contained(c.Embed), remembered, textsACall)
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
// Readers see a version as a whole, through one pointer, so Item costs no lock. A change makes
// another version and exchanges the pointer.
type Partition struct {
	cfg Config
	// key keys what is drawn: the seeds of cells.
	key [2]uint64
	// state has the cells in use.
	state atomic.Pointer[state]

	mu sync.Mutex
	// unit vectors since the last sweep that learned; at most this many are remembered
	seen [][]float32
}

// New returns a partition with the cells that the store has, or all faults of the configuration,
// joined: each is a [*heed.ConfigError].
func New(ctx context.Context, cfg Config) (*Partition, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, wrap("new", err)
	}
	p := &Partition{cfg: cfg, key: [2]uint64{cfg.Seed.Uint64(), cfg.Seed.Uint64()}}
	p.state.Store(&state{})
	if err := cfg.Store.Declare(ctx, kind.Kind); err != nil {
		return nil, wrap("new", err)
	}
	_, err := p.read(store.Reading(ctx, cfg.Store))
	return p, wrap("new", err)
}

// Item returns the item of a text: the name of its cell, for example "partition:7". It is "" before
// there are cells, so that all texts are one item. Item also returns the text's vector, for
// strategy.Query.Vector. It does not read the store. It keeps the vector for the next Sweep.
//
// An error is the embedder's. A vector that is zero or not finite is one, too.
func (p *Partition) Item(
	ctx context.Context, text string,
) (item string, vector []float32, err error) {
	vectors, err := p.cfg.Embed(ctx, []string{text})
	if err != nil {
		return "", nil, wrap("item", err)
	}
	item, err = p.Of(vectors[0])
	return item, vectors[0], wrap("item", err)
}

// Of returns the item of a vector: see [Partition.Item]. A vector that is zero or not finite is
// a [*heed.InputError].
func (p *Partition) Of(vector []float32) (string, error) {
	v, ok := unit(vector)
	if !ok || len(v) > maxNumbers {
		return "", errVector
	}
	p.remember(v)
	s := p.state.Load()
	if s.numbers() != len(v) {
		return "", nil
	}
	at, _ := nearest(v, s.cells)
	return s.items[at], nil
}

var errVector = valid.Input("vector",
	fmt.Sprintf("must be finite and not zero, of at most %d numbers", maxNumbers))

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
// Fewer than 32 wait. Cells move towards the vectors that are nearest to them, the less the more
// they have seen. New ones begin where vectors are far from all cells, until there are
// Config.Clusters. With the same seed and the same vectors the cells are the same.
//
// If most vectors have another length than the cells, the embedder was exchanged. Then new cells
// with new names take the place of the old ones, and their items begin with the beliefs that the
// learner's pooling gives to items without evidence.
//
// It implements [heed.Sweeper]. After an error the vectors are kept for the next sweep, as many as
// there is room for.
func (p *Partition) Sweep(ctx context.Context, now time.Time) error {
	if _, err := p.read(store.Reading(ctx, p.cfg.Store)); err != nil {
		return wrap("sweep", err)
	}
	p.mu.Lock()
	points := p.seen
	if len(points) < leastBatch {
		p.mu.Unlock()
		return nil
	}
	p.seen = nil
	p.mu.Unlock()
	err := p.learn(ctx, now, points)
	if err != nil {
		p.mu.Lock()
		p.seen = append(points, p.seen[:min(len(p.seen), remembered-len(points))]...)
		p.mu.Unlock()
	}
	return wrap("sweep", err)
}

// learn moves the cells by a batch of vectors. If another process was quicker, it starts again from
// the cells which that one made.
func (p *Partition) learn(ctx context.Context, at time.Time, points [][]float32) error {
	if at.IsZero() {
		at = p.cfg.Now()
	}
	return store.Do(ctx, p.cfg.Store, func(tx *store.Tx) error {
		now, err := p.read(tx)
		if err != nil {
			return err
		}
		next, err := p.after(ctx, now, points)
		if err != nil {
			return err
		}
		kind.Put(tx, next.row(p.cfg.Name, at.UTC().Truncate(time.Microsecond)), now.revision)
		tx.Then(func(r store.Receipt, err error) {
			if err == nil {
				next.revision = r.Revision
				p.take(next)
			}
		})
		return nil
	})
}

// after returns the cells after a batch. The generator is keyed by how many vectors were seen, so
// each batch draws other seeds.
func (p *Partition) after(ctx context.Context, now *state, points [][]float32) (*state, error) {
	numbers := usual(points, now.numbers())
	points = slices.DeleteFunc(slices.Clone(points),
		func(v []float32) bool { return len(v) != numbers })
	next := &state{seen: now.seen + uint64(len(points)), next: now.next}
	before := now.cells
	if numbers != now.numbers() {
		next.seen, before = uint64(len(points)), nil
	}
	want := min(p.cfg.Clusters, int(min(next.seen, maxCells*perCell))/perCell) //nolint:gosec // it is small
	rng := rand.New(rand.NewPCG(p.key[0], p.key[1]+next.seen))
	var err error
	if len(before) == 0 {
		next.cells, err = makeCells(ctx, points, max(want, 1), rng)
	} else if next.cells, _, err = seed(ctx, points, before, want, rng); err == nil {
		next.cells, err = settle(ctx, points, next.cells, 1)
	}
	for i := len(before); i < len(next.cells); i++ {
		next.cells[i].id = next.next
		next.next++
	}
	next.name(p.cfg.Name)
	return next, err
}

// usual returns the length that most vectors have: if two are as frequent, the one of the cells,
// or else the greater one.
func usual(points [][]float32, before int) (most int) {
	count := make(map[int]int)
	for _, v := range points {
		count[len(v)]++
	}
	for n := range count {
		if c := cmp.Compare(count[n], count[most]); c > 0 || c == 0 && most != before &&
			(n == before || n > most) {
			most = n
		}
	}
	return most
}

// read returns the cells that the store has, and takes them over.
func (p *Partition) read(tx *store.Tx) (*state, error) {
	kept, err := kind.In(tx, p.cfg.Name)
	if err != nil {
		return nil, err
	}
	s, err := stateOf(&kept)
	if err == nil {
		p.take(s)
	}
	return s, err
}

// take replaces the cells by the cells of a newer record. It never goes back: another goroutine may
// have taken a newer one in the meantime.
func (p *Partition) take(next *state) {
	for {
		now := p.state.Load()
		if now.revision >= next.revision || p.state.CompareAndSwap(now, next) {
			return
		}
	}
}

// wrap adds to an error what the partition was doing.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("partition: %s: %w", doing, err)
}

var _ heed.Sweeper = (*Partition)(nil)
