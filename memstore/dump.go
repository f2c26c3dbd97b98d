package memstore

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/ids"
)

// Dump writes all that the store holds, as it is at one moment: [Store.Load] reads it, and so do stores in a database. Ids
// are written as hashes. Sources, keys and bodies are written as they are, so the file is as private as the store.
//
// Commits and reads of evidence wait while Dump writes the evidence, so write to a file or to memory, not to a network.
// Records are written after that.
func (s *Store) Dump(ctx context.Context, to io.Writer) error {
	d := dumper{ctx: ctx, state: s.state()}
	if err := d.run(to); err != nil {
		return fmt.Errorf("memstore: dump: %w", err)
	}
	return nil
}

type dumper struct {
	ctx   context.Context //nolint:containedctx // of the one call that it is for
	state *state
	out   *dump.Writer
	rows  int
}

func (d *dumper) run(to io.Writer) error {
	records, err := d.writeEvidence(to)
	if err != nil {
		return err
	}
	slices.SortFunc(records, func(a, b kindRow) int { return cmp.Compare(a.seq, b.seq) })
	for i := range records {
		r := &records[i]
		body, err := r.body.JSON()
		if err != nil {
			return fmt.Errorf("a record of kind %q: %w", r.kind, err)
		}
		if err := d.write(dump.Row{Record: &dump.Record{
			Kind: r.kind, ID: r.id, Revision: r.revision, At: r.at, Keys: r.keys, Body: body,
		}}); err != nil {
			return fmt.Errorf("a record of kind %q: %w", r.kind, err)
		}
	}
	return d.out.Close()
}

func (d *dumper) write(row dump.Row) error {
	if d.rows++; d.rows%1000 == 1 {
		if err := d.ctx.Err(); err != nil {
			return err
		}
	}
	return d.out.Write(row)
}

// A kindRow is a copy of a row.
type kindRow struct {
	row
	kind string
}

// writeEvidence writes all but the records, which it returns.
func (d *dumper) writeEvidence(to io.Writer) (records []kindRow, err error) {
	s := d.state
	s.lockAll()
	defer s.unlockAll()
	if d.out, err = dump.NewWriter(to, s.records.revision.Load()); err != nil {
		return nil, err
	}
	kinds := *s.records.kinds.Load()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[name]
		if err := d.write(dump.Row{Kind: k.rule.Load()}); err != nil {
			return nil, err
		}
		for i := range k.rows {
			for _, r := range k.rows[i] {
				records = append(records, kindRow{*r, name})
			}
		}
	}
	for i := range s.cells.shards {
		if err := d.writeCells(&s.cells.shards[i]); err != nil {
			return nil, err
		}
	}
	for i := range s.known.shards {
		if err := d.writeIDs(&s.known.shards[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// writeCells writes the cells of a shard: those with evidence, and those with a history or a restart alone.
func (d *dumper) writeCells(shard *shard) error {
	written := make(map[cellKey]bool)
	write := func(key cellKey) error {
		if written[key] {
			return nil
		}
		written[key] = true
		return d.writeCell(shard, key)
	}
	for _, g := range shard.groups {
		clear(written) // what is in a group is in no other
		group := shard.key(shard.slot(g.first))
		for at := g.first; at != 0; at = shard.slot(at).next {
			if err := write(cellKey{group.space, shard.slot(at).name, group.item}); err != nil {
				return err
			}
		}
	}
	clear(written)
	for key := range shard.histories {
		if !shard.holds(key) {
			if err := write(key); err != nil {
				return err
			}
		}
	}
	for key := range shard.restarts {
		if !shard.holds(key) {
			if err := write(key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *dumper) writeCell(shard *shard, key cellKey) error {
	s := d.state
	policy, _ := shard.policy(key)
	rule, cell := s.rule(policy), s.cell(key)
	hash := dump.HashOfCell(cell)
	if err := d.write(dump.Row{Cell: &dump.Cell{
		Hash: hash, Kind: cell.Kind, Scope: cell.Scope, Item: cell.Item, Name: cell.Name,
		HalfLife: rule.HalfLife.Microseconds(), ByOrigin: rule.ByOrigin, Restart: shard.restarts[key].at,
	}}); err != nil {
		return err
	}
	h := shard.histories[key]
	for at := shard.first(key.group()); at != 0; at = shard.slot(at).next {
		if slot := shard.slot(at); slot.name == key.name {
			if err := d.write(dump.Row{Tally: s.dumped(slot, h, hash)}); err != nil {
				return err
			}
		}
	}
	if h == nil {
		return nil
	}
	for i := range h.entries {
		o := &h.entries[i]
		if err := d.write(dump.Row{Observation: &dump.Observation{
			Cell: hash, ID: o.text, Channel: o.channel, Source: o.source, Session: o.session, Reward: o.reward, Weight: o.weight, Share: o.share,
			At: o.at, Recorded: o.recorded,
		}}); err != nil {
			return err
		}
	}
	return nil
}

// cell returns the cell of a key.
func (e *engine) cell(key cellKey) evidence.Cell {
	return e.spaces.value(key.space).cell(key.item, e.names.value(key.name))
}

func (s *state) dumped(slot *slot, h *history, cell ids.Hash) *dump.Tally {
	from := s.origins.value(slot.origin)
	t := slot.tally(s.rule(slot.policy).HalfLife)
	var lost [3]int64
	switch {
	case slot.lost&lostSome == 0:
	case h != nil && h.lost[slot.origin] != lost:
		lost = h.lost[slot.origin]
	default: // no history was kept, so all is lost
		lost = slot.last
	}
	count := func(c evidence.Count, lost int64) dump.Count {
		return dump.Count{N: c.N, Last: c.Last, Lost: evidence.Instant(lost)}
	}
	return &dump.Tally{
		Cell: cell, Channel: from.channel, Source: from.source, Landmark: t.Landmark,
		Mass: t.Mass, Squares: t.Squares, Reward: t.Reward, RewardSquares: t.RewardSquares,
		Positive: count(t.Positive, lost[0]), Negative: count(t.Negative, lost[1]), Neutral: count(t.Neutral, lost[2]),
		LostSource: slot.lost&lostSource != 0,
	}
}

// writeIDs writes the ids of a shard, and where the observations of each count that are not in the history.
func (d *dumper) writeIDs(shard *knownShard) error {
	for _, g := range []*seen{&shard.old, &shard.young} {
		for h, m := range g.marks {
			if _, later := shard.young.marks[h]; later && g == &shard.old {
				continue // the young generation knows better
			}
			if err := d.write(dump.Row{ID: &dump.ID{
				ID: ids.Hash(h), Recorded: m.recorded(), Retracted: m&retracted != 0, Untraced: m&untraced != 0 || d.state.cfg.NoHistory,
			}}); err != nil {
				return err
			}
			for _, p := range shard.places(h) {
				if !d.state.misses(p) || d.state.holds(p.cellKey, h) {
					continue
				}
				lost := dump.Lost{ID: ids.Hash(h), Cell: dump.HashOfCell(d.state.cell(p.cellKey)), Recorded: m.recorded()}
				if policy, ok := d.state.cells.of(p.group()).policy(p.cellKey); ok && d.state.rule(policy).ByOrigin && p.origin != anyOrigin {
					from := d.state.origins.value(p.origin)
					lost.Origin = &dump.Origin{Channel: from.channel, Source: from.source}
				}
				if err := d.write(dump.Row{Lost: &lost}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lockAll takes all locks of shards, in the order of commits.
func (s *state) lockAll() {
	for i := range s.known.shards {
		s.known.shards[i].mu.Lock()
	}
	for i := range s.cells.shards {
		s.cells.shards[i].mu.Lock()
	}
	for i := range s.records.locks {
		s.records.locks[i].Lock()
	}
}

func (s *state) unlockAll() {
	for i := range s.records.locks {
		s.records.locks[i].Unlock()
	}
	for i := range s.cells.shards {
		s.cells.shards[i].mu.Unlock()
	}
	for i := range s.known.shards {
		s.known.shards[i].mu.Unlock()
	}
}
