package strategy

import (
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// load reads a segment from the store. The caller holds the lock for that. Its last read is a part
// of the step, so that what the step wants is read with it.
//
// Outcomes do not wait for a load. Each brings the old memory in line with the store, and leaves a
// note for the new one, which takes over all notes before it replaces the old memory. A failure
// leaves the old memory in place.
func (l *Learner) load(tx *store.Tx, s *segment, now time.Time) error {
	ctx, expired := tx.Context(), s.beginLoad()
	defer s.endLoad()
	f, err := l.loadSample(ctx, s.space, evidence.InstantOf(now), l.sampleItems)
	if err != nil {
		return err
	}
	f.settle()
	priors, err := l.start(ctx, f, l.shared.writing())
	if err != nil {
		return err
	}
	f.model = l.model(priors, f.items)
	if f.linear, err = l.loadLinear(ctx, s, f, priors); err != nil {
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
	f.voices, f.scale = nil, scaleOf(f.total, l.cfg.MinConfidence)
	for _, cell := range cells {
		f.parameters = append(f.parameters, f.parameter(partsOf(read.Parts, cell), f.now, f.scale))
	}
	s.install(f, now, expired)
	return nil
}

// beginLoad has outcomes leave notes. It returns how often the segment was expired until then.
func (s *segment) beginLoad() (expired uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = make([]func(*found) bool, 0, 1)
	return s.expired
}

// endLoad has outcomes leave no more notes, whether the load succeeded or failed.
func (s *segment) endLoad() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = nil
}

// install puts what was read in the place of the segment's memory, with what changed during the
// load. The next use loads it again if the model drifted, or the segment was expired during the
// load.
func (s *segment) install(f *found, now time.Time, expired uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	drifted := s.expired != expired
	for _, change := range s.changes {
		drifted = change(f) || drifted
	}
	s.sources.saw(f.parts >= fair.MostParts)
	if s.found, s.loaded = f, now; drifted {
		s.loaded = time.Time{}
	}
}

// sampleItems is about how many items of a segment are read where a store can draw a sample of
// them, and the pooling learns from each only how its items spread.
const sampleItems = 5_000

// settle computes the limit of each source, and the sums of the items within the limits. The limits
// depend on all evidence of the segment, so they are known only after the last item was listed.
func (f *found) settle() {
	f.crowd.Settle(slices.Values(f.voices))
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
) (f *found, err error) {
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

// found is what a store has of the items of a segment. In the memory of a segment, it follows each
// outcome: see [Learner.update].
type found struct {
	// items are the items with their sums by arm, within the limits on people: see settle.
	items []Item
	names []string       // of the items, in order
	late  map[string]int // the items that were first seen after the others were listed
	// counts are the numbers of outcomes, by item and arm.
	counts  [][]uint64
	samples []uint64 // by arm, over all items
	// voices are what each source gave, by item and arm, until the limits were computed.
	voices [][][]fair.Voice
	// crowd has the people with evidence on the arms, and how much each of them counts.
	crowd *fair.Crowd
	// last is when the latest outcome came about.
	last evidence.Instant
	// parts is how many parts the cell with most parts has. If cells have many, they are read before
	// each outcome: see sources.
	parts   int
	space   space
	now     evidence.Instant
	total   evidence.Sums // of all items and arms, within the limits on people
	sampled bool          // whether the items are a sample
	all     int           // how many items there are, if they are a sample
	arms    []Arm         // for reports
	model   Model         // where it was asked for

	// What follows is in the memory of a segment only.

	// changed is when the sums of a cell were read, unless with all others. Only sums that fade need
	// it.
	changed map[evidence.Cell]evidence.Instant
	// scale is the scale of the weights when the segment was loaded: see scaleOf. Parameters are
	// learned on it, so the segment is loaded again if the scale has moved far.
	scale      float64
	parameters []value
	linear     *linear // the linear level, nil unless vectors of queries ask for it
}

// A value is what is believed of a value of a parameter.
type value struct {
	chance.Sampler
	outcomes uint64
}

// parameter returns what is believed of a value by the parts of its cell. The scale is the one of
// the weights in the segment.
func (f *found) parameter(parts []evidence.Part, now evidence.Instant, scale float64) value {
	b := parameterBelief(f.crowd.Pool(parts, now), scale)
	return value{chance.Beta(b.Alpha, b.Beta), countOf(parts)}
}

// loadItems reads the evidence on the items of a segment, or about a sample of them, in the order
// of the store. The listing is in the order of cells: all arms of one item come before the next
// item, so an item ends where the name changes. Slices for several items are allocated together,
// because a segment may have a hundred thousand items.
func (l *Learner) loadItems(
	ctx context.Context, space space, now evidence.Instant, sample *store.Sample,
) (*found, error) {
	n := len(l.cfg.Arms)
	var sums []evidence.Sums // for the next items
	var counts []uint64
	var voices [][]fair.Voice
	f := &found{space: space, now: now, samples: make([]uint64, n), crowd: fair.New(l.cfg.Trust, n)}
	q := store.CellQuery{Kind: l.kinds.arm, Scope: space.scope, Sample: sample}
	for parts, err := range listed(l.cfg.Store.List(ctx, q)) {
		if err != nil {
			return nil, err
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
	}
	return i
}
