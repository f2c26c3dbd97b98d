package partition

import (
	"cmp"
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
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Config configures a [Partition]. Every field has a default.
type Config struct {
	// Store keeps the cells, for other processes and after a restart. nil: they end with the
	// process.
	Store store.Store
	// Name distinguishes partitions that share a store, and begins the names of items. "" means
	// "partition".
	Name string
	// Embed turns texts into vectors. It must be safe for concurrent use. nil means [Form]. Vectors
	// of another model need a new partition, or [Partition.Fit]. Set it if requests differ in what
	// they are about.
	Embed heed.Embedder
	// Clusters is how many cells there are at most, from 1 to 10,000. There is one for every ten
	// vectors until then. 0 means 30. If there are more already, they stay until Fit. Raise it if
	// topics and outcomes are many, because each cell needs outcomes.
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
	// key keys what is drawn: the seeds of cells, and the sample of Fit.
	key [2]uint64
	// state is the version in use.
	state atomic.Pointer[state]

	mu sync.Mutex
	// unit vectors since the last sweep that learned; at most this many are remembered
	seen [][]float32

	changing sync.Mutex // held while the cells are changed, where there is no store
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
	if cfg.Store == nil {
		return p, nil
	}
	if err := cfg.Store.Declare(ctx, kind.Kind); err != nil {
		return nil, wrap("new", err)
	}
	_, err := p.read(ctx)
	return p, wrap("new", err)
}

// Version returns the number of the version of the cells: 0 before there are any.
func (p *Partition) Version() uint64 { return p.state.Load().version }

// Item returns the item of a text: the name of its cell, for example "partition:7". It is "" before
// there are cells, so that all texts are one item. Item also returns the text's vector, for
// strategy.Query.Vector. It does not read the store.
//
// An error is the embedder's. Vectors that are zero, not finite, or of another length than the
// vectors of the cells are one, too.
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

// Of returns the item of a vector: see [Partition.Item]. A vector that is zero, not finite, or of
// another length than the cells' vectors is a [*heed.InputError]. The vector is remembered for the
// next sweep.
func (p *Partition) Of(vector []float32) (string, error) {
	v, ok := unit(vector)
	if !ok || len(v) > maxNumbers {
		return "", errVector
	}
	s := p.state.Load()
	if s.version > 0 && s.numbers() != len(v) {
		return "", &heed.InputError{Field: "vector",
			Reason: fmt.Sprintf("has %d numbers, and the partition's have %d: to go on with another "+
				"embedder, call Fit", len(v), s.numbers())}
	}
	p.remember(v)
	if s.version == 0 {
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

// Fit makes new cells from texts: see [Partition.FitVectors].
func (p *Partition) Fit(ctx context.Context, texts []string) error {
	vectors, err := p.cfg.Embed(ctx, texts)
	if err != nil {
		return wrap("fit", err)
	}
	return p.FitVectors(ctx, vectors)
}

// FitVectors makes new cells from vectors, at least ten. Of more than 256 for each cell it
// uses a random sample. With the same seed and the same vectors the cells are the same.
//
// A new cell takes the name of an old one if more than half of the vectors that are in either are
// in both. Its item then keeps its evidence. All other cells have new names, and their items begin
// with the beliefs that the learner's pooling gives to items without evidence.
//
// Vectors that are too few, not finite, zero or of different lengths are a [*heed.InputError].
func (p *Partition) FitVectors(ctx context.Context, vectors [][]float32) error {
	points := make([][]float32, len(vectors))
	for i, v := range vectors {
		var ok bool
		if points[i], ok = unit(v); !ok || len(v) > maxNumbers || len(v) != len(vectors[0]) {
			return wrap("fit", valid.Input(fmt.Sprintf("vectors[%d]", i),
				"must be finite, not zero, and as long as the others"))
		}
	}
	if len(points) < perCell {
		return wrap("fit", valid.Input("vectors",
			fmt.Sprintf("are %d, must be at least %d", len(points), perCell)))
	}
	rng := rand.New(rand.NewPCG(p.key[0], p.key[1]))
	cells, err := makeCells(ctx, points, min(p.cfg.Clusters, len(points)/perCell), rng)
	if err != nil {
		return wrap("fit", err)
	}
	err = p.change(ctx, time.Time{}, func(now *state) (*state, error) {
		next := *now
		next.cells, next.seen = slices.Clone(cells), uint64(len(points))
		name(points, now, &next)
		return &next, nil
	})
	return wrap("fit", err)
}

// name gives each cell the id of the old one that has the most in common with it, where that is
// more than half of both together. No two can have that with one. It looks at a part of the points
// if there are very many, because a majority shows in a sample.
func name(points [][]float32, before, next *state) {
	known := before.numbers() == next.numbers()
	type pair struct{ before, next int }
	common, was, is := make(map[pair]int), make(map[int]int), make(map[int]int)
	for i := 0; known && i < len(points); i += 1 + len(points)/(maxSample*len(next.cells)) {
		v := points[i]
		b, _ := nearest(v, before.cells)
		n, _ := nearest(v, next.cells)
		common[pair{b, n}]++
		was[b]++
		is[n]++
	}
	old := make(map[int]int)
	for pair, n := range common {
		if 2*n > was[pair.before]+is[pair.next]-n {
			old[pair.next] = pair.before
		}
	}
	for i := range next.cells {
		if b, ok := old[i]; ok {
			next.cells[i].id = before.cells[b].id
		} else {
			next.cells[i].id = next.next
			next.next++
		}
	}
}

// Sweep reads the cells that other processes have made, and learns from the vectors that
// [Partition.Item] and [Partition.Of] have seen since: at most 1,000, which are in memory only.
// Fewer than 32 wait. Cells move towards the vectors that are nearest to them, the less the more
// they have seen. New ones begin where vectors are far from all cells, until there are
// Config.Clusters. It implements [heed.Sweeper]. After an error the vectors are kept for the next
// sweep, as many as there is room for.
func (p *Partition) Sweep(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return wrap("sweep", err)
	}
	if p.cfg.Store != nil {
		if _, err := p.read(ctx); err != nil {
			return wrap("sweep", err)
		}
	}
	p.mu.Lock()
	points := p.seen
	if len(points) < leastBatch {
		p.mu.Unlock()
		return nil
	}
	p.seen = nil
	p.mu.Unlock()
	err := p.change(ctx, now, func(now *state) (*state, error) { return p.learn(ctx, now, points) })
	if err != nil {
		p.mu.Lock()
		p.seen = append(points, p.seen[:min(len(p.seen), remembered-len(points))]...)
		p.mu.Unlock()
	}
	return wrap("sweep", err)
}

// learn returns the cells after a batch, or nil where the vectors are not of the cells' space. The
// generator is keyed by how many vectors were seen, so each batch draws other seeds, and the same
// vectors in the same batches give the same cells.
func (p *Partition) learn(ctx context.Context, now *state, points [][]float32) (*state, error) {
	numbers := cmp.Or(now.numbers(), len(points[len(points)-1]))
	points = slices.DeleteFunc(slices.Clone(points),
		func(v []float32) bool { return len(v) != numbers })
	if len(points) == 0 {
		return nil, nil
	}
	next := *now
	next.seen += uint64(len(points))
	want := min(p.cfg.Clusters, int(min(next.seen, maxCells*perCell))/perCell) //nolint:gosec // it is small
	rng := rand.New(rand.NewPCG(p.key[0], p.key[1]+next.seen))
	var err error
	if now.version == 0 {
		next.cells, err = makeCells(ctx, points, max(want, 1), rng)
	} else if next.cells, _, err = seed(ctx, points, now.cells, want, rng); err == nil {
		next.cells, err = settle(ctx, points, next.cells, 1)
	}
	for i := range next.cells {
		if i >= len(now.cells) {
			next.cells[i].id = next.next
			next.next++
		}
	}
	return &next, err
}

// read takes over the cells that the store has, and returns its record.
func (p *Partition) read(ctx context.Context) (store.Row[row], error) {
	kept, err := kind.Get(ctx, p.cfg.Store, p.cfg.Name)
	if errors.Is(err, heed.ErrNotFound) {
		return kept, nil
	}
	if err != nil {
		return kept, err
	}
	s, err := kept.Value.File.state()
	if err != nil {
		return kept, fmt.Errorf("%w: %w", heed.ErrDamaged, err)
	}
	p.take(&s)
	return kept, nil
}

// take replaces the cells by the cells of a newer version. It never goes back: a version that
// another goroutine took in the meantime may be newer.
func (p *Partition) take(s *state) {
	next := s.named(p.cfg.Name)
	for {
		now := p.state.Load()
		if now.version >= next.version || p.state.CompareAndSwap(now, next) {
			return
		}
	}
}

// change makes a new version of the cells from the current one. If another process was quicker, it
// starts again. If to returns nil, the cells stay as they are. The lock keeps changes within this
// process apart, and the revision of the record the changes of other processes. The new cells are
// used once the store has them.
func (p *Partition) change(ctx context.Context, at time.Time,
	to func(now *state) (*state, error)) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	if p.cfg.Store == nil {
		next, err := p.next(to)
		if err == nil && next != nil {
			p.take(next)
		}
		return err
	}
	return store.Do(ctx, p.cfg.Store, func(tx *store.Tx) error {
		kept, err := p.read(ctx)
		if err != nil {
			return err
		}
		next, err := p.next(to)
		if err != nil || next == nil {
			return err
		}
		r := row{Name: p.cfg.Name, At: at, File: next.file()}
		if at.IsZero() {
			r.At = p.cfg.Now()
		}
		r.At = r.At.UTC().Truncate(time.Microsecond)
		kind.Put(tx, r, kept.Revision)
		tx.Then(func(_ store.Receipt, err error) {
			if err == nil {
				p.take(next)
			}
		})
		return nil
	})
}

// next returns the version that follows the current one, or nil without a change.
func (p *Partition) next(to func(now *state) (*state, error)) (*state, error) {
	now := p.state.Load()
	next, err := to(now)
	if err != nil || next == nil {
		return nil, err
	}
	next.version = max(next.version, now.version+1)
	next.origin = cmp.Or(next.origin, next.first())
	return next, nil
}

// first names the first version by what it has. Partitions that were made from different texts have
// different origins, by which their exports can be told apart.
func (s *state) first() string {
	parts := make([]string, len(s.cells))
	for i, c := range s.file().Cells {
		parts[i] = string(c.Vector)
	}
	return store.IDOf(parts...)
}

// wrap adds to an error what the partition was doing.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("partition: %s: %w", doing, err)
}

var _ heed.Sweeper = (*Partition)(nil)
