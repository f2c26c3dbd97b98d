package memstore

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/sampling"
)

// An engine keeps the sums of cells and their histories. Cells are spread over shards with a lock each, so that commits to
// different items seldom wait for each other.
type engine struct {
	cfg Config
	// declaredHistory returns how many observations a kind wants to be kept of each cell.
	declaredHistory func(kind string) int
	spaces          table[space]
	names           table[string]
	origins         table[origin]
	rules           table[evidence.Policy]
	cells           cells
}

// readCells appends the parts of the cells, in the order of the cells.
func (e *engine) readCells(dst []evidence.Part, cells []evidence.Cell) []evidence.Part {
	for len(cells) > 0 {
		// Cells that differ in the name alone lie together: one lock and one look-up finds them.
		alike := 1
		for alike < len(cells) && cells[alike].Item == cells[0].Item && cells[alike].Scope == cells[0].Scope &&
			cells[alike].Kind == cells[0].Kind {
			alike++
		}
		dst = e.readGroup(dst, cells[:alike])
		cells = cells[alike:]
	}
	return dst
}

// readGroup reads cells that differ in the name alone.
func (e *engine) readGroup(dst []evidence.Part, cells []evidence.Cell) []evidence.Part {
	number, ok := e.spaces.find(space{cells[0].Kind, cells[0].Scope})
	if !ok {
		return dst
	}
	key := groupKey{number, cells[0].Item}
	shard := e.cells.of(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return e.readLocked(dst, cells, key, shard)
}

// A wanted cell is one of those that are read together: the number of its name, its place among them, and its first slot, or 0.
type wanted struct {
	name, first uint32
	asked       int
}

// readLocked reads cells of a group whose shard is locked. It goes along the group's chain once, however many cells it reads.
func (e *engine) readLocked(dst []evidence.Part, cells []evidence.Cell, key groupKey, shard *shard) []evidence.Part {
	at := shard.first(key)
	if at == 0 {
		return dst
	}
	var few [16]wanted
	want := few[:0]
	for i := range cells {
		if name, ok := e.names.find(cells[i].Name); ok {
			want = append(want, wanted{name: name, asked: i})
		}
	}
	slices.SortFunc(want, func(a, b wanted) int { return cmp.Compare(a.name, b.name) })
	for i := range want {
		for at != 0 && shard.slot(at).name < want[i].name {
			at = shard.slot(at).next
		}
		if at != 0 && shard.slot(at).name == want[i].name {
			want[i].first = at
		}
	}
	slices.SortFunc(want, func(a, b wanted) int { return cmp.Compare(a.asked, b.asked) })
	for _, w := range want {
		n := 0 // many sources may have told of one cell
		for at := w.first; at != 0 && shard.slot(at).name == w.name; at = shard.slot(at).next {
			n++
		}
		dst = slices.Grow(dst, n)
		for at := w.first; at != 0 && shard.slot(at).name == w.name; at = shard.slot(at).next {
			dst = append(dst, e.part(cells[w.asked], shard.slot(at)))
		}
	}
	return dst
}

func (e *engine) part(c evidence.Cell, s *slot) evidence.Part {
	from := e.origins.value(s.origin)
	return evidence.Part{Cell: c, Channel: from.channel, Source: from.source, Tally: s.tally(e.rule(s.policy).HalfLife)}
}

func (e *engine) rule(number uint16) evidence.Policy { return e.rules.value(uint32(number)) }

// compareOrigins compares origins by their numbers.
func (e *engine) compareOrigins(a, b uint32) int {
	x, y := e.origins.value(a), e.origins.value(b)
	return cmp.Or(cmp.Compare(x.channel, y.channel), cmp.Compare(x.source, y.source))
}

func compareOrigins(a, b evidence.Part) int {
	return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Source, b.Source))
}

// list yields all parts of a listing, in order, or those of a sample of its items if the context asks for that. It holds a shard's lock for a few items at a time, and none while it yields.
func (e *engine) list(ctx context.Context, in space, yield func(evidence.Part, error) bool) {
	number, ok := e.spaces.find(in)
	if !ok {
		return
	}
	var parts []evidence.Part
	for _, item := range e.cells.list(number, sampling.Wanted(ctx)) {
		parts = e.readItem(parts[:0], in, groupKey{number, item})
		for i := range parts {
			if err := ctx.Err(); err != nil {
				yield(evidence.Part{}, err)
				return
			}
			if !yield(parts[i], nil) {
				return
			}
		}
	}
}

// readItem appends the parts of an item, in order.
func (e *engine) readItem(dst []evidence.Part, in space, key groupKey) []evidence.Part {
	shard := e.cells.of(key)
	shard.mu.Lock()
	for at := shard.first(key); at != 0; at = shard.slot(at).next {
		s := shard.slot(at)
		dst = append(dst, e.part(in.cell(key.item, e.names.value(s.name)), s))
	}
	shard.mu.Unlock()
	slices.SortFunc(dst, func(a, b evidence.Part) int {
		return cmp.Or(strings.Compare(a.Cell.Name, b.Cell.Name), compareOrigins(a, b))
	})
	return dst
}

// scopes returns the scopes of a kind that have evidence, in order.
func (e *engine) scopes(kind string) []string {
	used := make(map[uint32]bool)
	for i := range e.cells.shards {
		shard := &e.cells.shards[i]
		shard.mu.Lock()
		for number := range shard.spaces {
			used[number] = true
		}
		shard.mu.Unlock()
	}
	var scopes []string
	for number := range used {
		if in := e.spaces.value(number); in.kind == kind {
			scopes = append(scopes, in.scope)
		}
	}
	slices.Sort(scopes)
	return scopes
}

// history returns the observations of a cell that are kept, the newest first.
func (e *engine) history(c evidence.Cell) []evidence.Observation {
	key, ok := e.findKey(c)
	if !ok {
		return nil
	}
	shard := e.cells.of(key.group())
	shard.mu.Lock()
	defer shard.mu.Unlock()
	h := shard.histories[key]
	if h == nil {
		return nil
	}
	e.prune(shard, key, h, evidence.InstantOf(e.cfg.Now()))
	kept := make([]evidence.Observation, 0, len(h.entries))
	for i := range slices.Backward(h.entries) {
		kept = append(kept, h.entries[i].observation(c))
	}
	return kept
}

// findKey returns the key of a cell, if its texts are known at all.
func (e *engine) findKey(c evidence.Cell) (cellKey, bool) {
	number, ok := e.spaces.find(space{c.Kind, c.Scope})
	if !ok {
		return cellKey{}, false
	}
	name, ok := e.names.find(c.Name)
	return cellKey{number, name, c.Item}, ok
}

// sweepHistories drops observations that are past their time.
func (e *engine) sweepHistories(ctx context.Context, now evidence.Instant) error {
	for i := range e.cells.shards {
		if err := ctx.Err(); err != nil {
			return err
		}
		shard := &e.cells.shards[i]
		shard.mu.Lock()
		for key, h := range shard.histories {
			e.prune(shard, key, h, now)
		}
		shard.mu.Unlock()
	}
	return nil
}

// yieldAll yields until the loop ends or the context is done.
func yieldAll[T any](ctx context.Context, all []T, yield func(T, error) bool) {
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

// listed reads all that a function lists before it yields the first.
func listed[T any](ctx context.Context, list func() []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(*new(T), err)
			return
		}
		yieldAll(ctx, list(), yield)
	}
}
