package strategy

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// touched names a cell of an arm whose evidence changed while its segment was read.
type touched struct {
	item string
	arm  int
}

// load computes the model from the store. The caller holds the lock for that. Its last read is a
// part of the step, so that what the step wants is read with it.
//
// Outcomes are counted during that: each updates the old model, and leaves a note of its cell. The
// cells with a note are read again. Only for the last of them does load keep new outcomes waiting,
// so that the new model contains all of them.
//
// The order is: list the items, read what was touched since, take the shared start of other
// tenants, make the model, read the records with vectors, catch up, stop outcomes, catch up with
// the few that came since, read the parameters, install. A failure at any point leaves the old
// model in place.
func (l *Learner) load(tx *store.Tx, s *segment, now time.Time) error {
	ctx, expired := tx.Context(), s.beginLoad()
	defer s.endLoad()
	found, err := l.loadSome(ctx, s, evidence.InstantOf(now))
	if err != nil {
		return err
	}
	if err := l.catchUp(ctx, s, &found); err != nil {
		return err
	}
	priors, err := l.start(ctx, &found, l.shared.writing())
	if err != nil {
		return err
	}
	found.model = l.model(priors, found.items)
	vectors, err := l.loadLinear(ctx, s, &found, priors)
	if err != nil {
		return err
	}
	if err := l.catchUp(ctx, s, &found); err != nil {
		return err
	}
	// Outcomes hold one place of s.observers each from before their commit until the memory has them.
	// With all places taken, no outcome is on its way.
	for range maxObservers {
		select {
		case s.observers <- struct{}{}:
			defer func() { <-s.observers }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := l.catchUp(ctx, s, &found); err != nil {
		return err
	}
	cells, read := l.parameterCells(s.space), store.Snapshot{}
	tx.Want(store.Wants{Cells: cells})
	if err := tx.Fetch(); err != nil {
		return err
	}
	if err := tx.Read(&read, cells, nil); err != nil {
		return err
	}
	l.install(s, now, expired, &found, read.Parts)
	s.install(vectors)
	return nil
}

// sampleItems is about how many items of a segment are read where a store can draw a sample of
// them, and the pooling learns from each only how its items spread.
const sampleItems = 5_000

// loadSome reads what the items of a segment have shown, or a sample of them and the items that
// this learner observed of late.
func (l *Learner) loadSome(
	ctx context.Context, s *segment, now evidence.Instant,
) (f found, err error) {
	if f, err = l.loadSample(ctx, s.space, now, l.sampleItems); err != nil {
		return f, err
	}
	// An item that this learner uses must be in the sample, because each of its outcomes updates the
	// model by a difference, which would be wrong for an item that the model does not have.
	if f.sampled {
		var cells []evidence.Cell
		for _, item := range s.recent() {
			if _, ok := slices.BinarySearch(f.names, item); !ok {
				cells = append(cells, l.armCells(s.space, item)...)
			}
		}
		err = l.reread(ctx, &f, cells)
	}
	f.settle()
	return f, err
}

// settle computes the limit of each source, and the sums of the items within the limits. The limits
// depend on all evidence of the segment, so they are known only after the last item was listed.
func (f *found) settle() {
	f.crowd.Settle(slices.Values(f.voices))
	f.settled = true
	for i, item := range f.items {
		for arm := range item.Arms {
			item.Arms[arm] = f.crowd.ShareVoices(arm, f.voices[i][arm])
		}
	}
	f.total = totalOf(f.items)
}

// loadSample reads what the items of a segment have shown, or about so many of them at random if
// there are more, the store can draw a sample, and the pooling learns from each only how items
// spread. A host's pooling may learn more from an item than how items spread, so only the poolings
// of this package get a sample. The counts of outcomes are scaled up by the share that was read.
func (l *Learner) loadSample(
	ctx context.Context, space space, now evidence.Instant, most int,
) (f found, err error) {
	var sample *store.Sample
	switch l.cfg.Pooling.(type) {
	case TwoLevel, Alone:
		sample = &store.Sample{Most: most}
	}
	if f, err = l.loadItems(ctx, space, now, sample); err != nil || sample == nil || sample.All == 0 {
		return f, err
	}
	f.sampled, f.all = true, sample.All
	for i := range f.samples {
		f.samples[i] = uint64(float64(f.samples[i]) * float64(sample.All) / float64(sample.Given))
	}
	return f, nil
}

// recent returns the items that this learner observed of late, if the segment is a sample.
func (s *segment) recent() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.own))
}

// notes keeps what a load needs of an outcome. The caller holds the lock. It remembers at most most
// items, and any one makes room: the map serves a sample, not a promise.
func (s *segment) notes(item string, arm, most int) {
	if s.touched != nil {
		s.touched[touched{item, arm}] = true
	}
	if s.own == nil || s.own[item] {
		return
	}
	if len(s.own) >= most {
		for old := range s.own { // any
			delete(s.own, old)
			break
		}
	}
	s.own[item] = true
}

// known reports whether there is a model.
func (s *segment) known() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.model != nil
}

// beginLoad has outcomes note the cells that they touch. It returns how often the segment was
// expired until then.
func (s *segment) beginLoad() (expired uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched, s.changes = make(map[touched]bool), make([]func(*linear), 0, 1)
	return s.expired
}

// endLoad has outcomes leave no more notes, whether the load succeeded or failed.
func (s *segment) endLoad() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched, s.changes = nil, nil
}

// catchUp reads the touched cells again, and updates the model if there is one. The notes are
// cleared before the reading, so that an outcome that comes during it leaves another note.
func (l *Learner) catchUp(ctx context.Context, s *segment, f *found) error {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.touched))
	clear(s.touched)
	s.mu.Unlock()
	cells := make([]evidence.Cell, len(all))
	for i, t := range all {
		cells[i] = s.space.arm(t.item, l.cfg.Arms[t.arm].ID)
	}
	return l.reread(ctx, f, cells)
}

// reread reads cells again. Parts come in the order of cells, so the cells are sorted to tell the
// parts apart.
func (l *Learner) reread(ctx context.Context, f *found, cells []evidence.Cell) error {
	if len(cells) == 0 {
		return nil
	}
	slices.SortFunc(cells, evidence.Cell.Compare)
	parts, err := l.readCells(ctx, cells...)
	if err != nil {
		return err
	}
	for _, cell := range cells {
		of := leading(parts, cell)
		parts = parts[len(of):]
		l.replace(f, cell, of)
	}
	return nil
}

// replace puts what was read of a cell in the place of what was listed. Before the limits are
// computed, only the voices of the cell are replaced. After that, the model and the total are
// updated by the difference.
func (l *Learner) replace(f *found, cell evidence.Cell, parts []evidence.Part) {
	arm, at := l.index[ArmID(cell.Name)], f.at(cell.Item)
	had, has := f.counts[at][arm], countOf(parts)
	f.counts[at][arm] = has
	f.samples[arm] += has - had
	if !f.settled { // the cell was not listed
		f.voices[at][arm] = f.crowd.Hear(nil, arm, parts, f.now)
		return
	}
	was, is := f.items[at].Arms[arm], f.crowd.Share(arm, parts, f.now)
	f.items[at].Arms[arm] = is
	f.total = sumsWithout(f.total.Plus(is), was)
	if f.model != nil && f.model.Update(arm, was, is) {
		f.drifted = true
	}
}

// install puts what was read in the place of the segment's memory. The next use loads it again if
// the model drifted, or the segment was expired during the load.
func (l *Learner) install(
	s *segment, now time.Time, expired uint64, f *found, read []evidence.Part,
) {
	scale := scaleOf(f.total, l.cfg.MinConfidence)
	parameters := make([]chance.Sampler, len(l.values))
	for i, v := range l.values {
		of := partsOf(read, s.space.parameter(v.arm, v.Setting))
		parameters[i] = parameterSampler(f.crowd.Pool(of, f.now), scale)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model, s.loaded, s.parameters, s.samples = f.model, now, parameters, f.samples
	s.crowd, s.total, s.scale = f.crowd, f.total, scale
	s.sources.saw(f.parts)
	switch {
	case !f.sampled:
		s.own = nil
	case s.own == nil:
		s.own = make(map[string]bool)
	}
	if f.drifted || s.expired != expired {
		s.loaded = time.Time{}
	}
}

// found is what a store has of the items of a segment.
type found struct {
	// items are the items with their sums by arm, within the limits once settled is set.
	items []Item
	names []string       // of the items, in order
	late  map[string]int // the items that were first seen after the others were listed
	// counts are the numbers of outcomes, by item and arm.
	counts  [][]uint64
	samples []uint64 // by arm, over all items
	// voices are what each source gave, by item and arm, from which the limits are computed.
	voices  [][][]fair.Voice
	crowd   *fair.Crowd
	settled bool // whether the limits are computed
	// last is when the latest outcome came about.
	last evidence.Instant
	// parts is how many parts the cell with most parts has. If cells have many, they are read before
	// each outcome: see sources.
	parts   int
	space   space
	now     evidence.Instant
	total   evidence.Sums // of all items and arms
	sampled bool          // whether the items are a sample
	all     int           // how many items there are, if they are a sample
	arms    []Arm         // for reports
	model   Model         // where it was asked for
	drifted bool          // whether the model has
}

// loadItems reads the evidence on the items of a segment, or about a sample of them, in the order
// of the store. The listing is in the order of cells: all arms of one item come before the next
// item, so an item ends where the name changes. Slices for several items are allocated together,
// because a segment may have a hundred thousand items.
func (l *Learner) loadItems(
	ctx context.Context, space space, now evidence.Instant, sample *store.Sample,
) (f found, err error) {
	n := len(l.cfg.Arms)
	var sums []evidence.Sums // for the next items
	var counts []uint64
	var voices [][]fair.Voice
	f = found{space: space, now: now, samples: make([]uint64, n), crowd: fair.New(l.cfg.Trust, n)}
	q := store.CellQuery{Kind: l.kinds.arm, Scope: space.scope, Sample: sample}
	for parts, err := range listed(l.cfg.Store.List(ctx, q)) {
		if err != nil {
			return found{}, err
		}
		cell := parts[0].Cell
		arm, ok := l.index[ArmID(cell.Name)]
		if !ok {
			continue // of an arm that this learner no longer has
		}
		if len(f.items) == 0 || cell.Item != f.names[len(f.names)-1] {
			if len(sums) < n {
				some := n * min(max(len(f.items), 1), 256)
				sums, counts = make([]evidence.Sums, some), make([]uint64, some)
				voices = make([][]fair.Voice, some)
			}
			f.items = append(f.items, Item{Arms: sums[:n:n]})
			f.names = append(f.names, cell.Item)
			f.counts, f.voices = append(f.counts, counts[:n:n]), append(f.voices, voices[:n:n])
			sums, counts, voices = sums[n:], counts[n:], voices[n:]
		}
		last := len(f.items) - 1
		f.voices[last][arm] = f.crowd.Hear(nil, arm, parts, now)
		f.counts[last][arm] = countOf(parts)
		f.parts = max(f.parts, len(parts))
		f.samples[arm] += f.counts[last][arm]
		for i := range parts {
			f.last = max(f.last, parts[i].Tally.Last())
		}
	}
	return f, nil
}

// at returns the place of an item, which it makes if it is missing. Listed items are in order and
// found by a search. Items that came later are at the end, in a map.
func (f *found) at(item string) int {
	n := len(f.items) - len(f.late)
	if i, ok := slices.BinarySearch(f.names[:n], item); ok {
		return i
	}
	i, ok := f.late[item]
	if !ok {
		if f.late == nil {
			f.late = make(map[string]int)
		}
		i = len(f.items)
		f.late[item] = i
		arms := len(f.samples)
		f.items = append(f.items, Item{Arms: make([]evidence.Sums, arms)})
		f.counts = append(f.counts, make([]uint64, arms))
		f.voices = append(f.voices, make([][]fair.Voice, arms))
	}
	return i
}
