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
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Dump writes the whole content of the store at one moment: [Store.Load] reads it, and so do stores
// in a database. Ids are written as hashes. Sources, keys and bodies are written as they are, so
// the file is as private as the store.
//
// Commits and reads wait while Dump writes the evidence, so write to a file or to memory, not to a
// network. Records are written after that. A record that no store would load, because it has more
// than [store.MaxBody], is a [*heed.SizeError].
func (s *Store) Dump(ctx context.Context, to io.Writer) error {
	d := dumper{ctx: ctx}
	_, d.places = to.(dump.WithPlaces)
	err := s.read(ctx, func(held *state) (err error) {
		if d.out, err = dump.NewWriter(to, held.revision); err != nil {
			return err
		}
		return d.state(held)
	})
	// In the order of first writing, so that a store that numbers them again keeps the order of
	// records of one moment.
	slices.SortFunc(d.records, func(a, b recordRow) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := 0; err == nil && i < len(d.records); i++ {
		if err = d.record(&d.records[i]); err != nil {
			err = fmt.Errorf("a record of kind %q: %w", d.records[i].kind, err)
		}
	}
	if err == nil {
		err = d.out.Close()
	}
	return valid.Wrap("memstore: dump", err)
}

// A dumper writes one dump. It copies the rows of records under the lock and writes them later,
// because bodies may be large and have to be encoded.
type dumper struct {
	ctx context.Context //nolint:containedctx // of the one call that it is for
	// out is the dump, and rows how many it has. records are written after the lock was let go.
	out  *dump.Writer
	rows int
	// places reports that the numbers of records are to be kept: see dump.WithPlaces.
	places  bool
	records []recordRow
}

// A recordRow is a copy of a row.
type recordRow struct {
	row
	kind string
}

// write writes a row. It looks at the context now and then, so that a long dump can be ended.
func (d *dumper) write(row dump.Row) error {
	if d.rows++; d.rows%1000 == 1 {
		if err := d.ctx.Err(); err != nil {
			return err
		}
	}
	return d.out.Write(row)
}

// state writes all but the records, which it copies. The records are copied without their bodies
// being encoded, so the lock is held as briefly as possible. Evidence has to be written under the
// lock, because commits change it in place.
func (d *dumper) state(s *state) error {
	for _, name := range slices.Sorted(maps.Keys(s.kinds)) {
		k := s.kinds[name]
		if name == k.Name {
			if err := d.write(dump.Row{Kind: &k.Kind}); err != nil {
				return err
			}
		}
		for _, r := range k.all {
			d.records = append(d.records, recordRow{*r, name})
		}
	}
	for c := range s.cells() {
		if err := d.cell(c); err != nil {
			return err
		}
	}
	for h, k := range s.known {
		err := d.write(dump.Row{ID: &dump.ID{
			ID: h, Recorded: k.recorded, Retracted: k.retracted, Untraced: k.untraced,
		}})
		if err != nil {
			return err
		}
		for _, c := range k.cells {
			// What is in the history, or counts no more, is not lost.
			if !c.lacks(h) {
				continue
			}
			lost := dump.Lost{ID: h, Cell: dump.HashOfCell(c.Cell), Recorded: k.recorded}
			if c.policy.ByOrigin {
				lost.Origin = c.lost[h]
			}
			if err := d.write(dump.Row{Lost: &lost}); err != nil {
				return err
			}
		}
	}
	return nil
}

// cell writes a cell, its tallies, and its history in the order in which observations happened. The
// restart is written with the cell, so that a load knows which observations are not in the sums.
func (d *dumper) cell(c *cell) error {
	hash := dump.HashOfCell(c.Cell)
	rows := []dump.Row{{Cell: &dump.Cell{
		Hash: hash, Kind: c.Kind, Scope: c.Scope, Item: c.Item, Name: c.Name,
		HalfLife: c.policy.HalfLife.Microseconds(), ByOrigin: c.policy.ByOrigin, Restart: c.restart,
	}}}
	for i := range c.tallies {
		rows = append(rows, dump.Row{Tally: c.tallies[i].dumped(hash)})
	}
	for _, e := range c.history {
		e.Cell = hash
		rows = append(rows, dump.Row{Observation: &e})
	}
	for _, row := range rows {
		if err := d.write(row); err != nil {
			return err
		}
	}
	return nil
}

// dumped returns a tally as a row of a dump.
func (t *tally) dumped(cell id) *dump.Tally {
	count := func(c evidence.Count, lost evidence.Instant) dump.Count {
		return dump.Count{N: c.N, Last: c.Last, Lost: lost}
	}
	return &dump.Tally{
		Cell: cell, Channel: t.Channel, Source: t.Source, Landmark: t.Landmark,
		Mass: t.Mass, Squares: t.Squares, Reward: t.Reward, RewardSquares: t.RewardSquares,
		Positive: count(t.Positive, t.lost[0]), Negative: count(t.Negative, t.lost[1]),
		Neutral: count(t.Neutral, t.lost[2]), LostSource: t.lostSource,
	}
}

// record writes a record. Its number is only written for a store of the same kind, which then
// keeps places of records valid over a load.
func (d *dumper) record(r *recordRow) error {
	body, err := r.body.JSON()
	// Load checks the size as well.
	if err = cmp.Or(err, store.CheckBody(store.Ref{Kind: r.kind, ID: r.id}, body)); err != nil {
		return err
	}
	row := dump.Record{
		Kind: r.kind, ID: r.id, Revision: r.revision, At: r.At, Keys: r.keys, Body: body,
	}
	if d.places {
		row.Seq = r.Seq
	}
	return d.write(dump.Row{Record: &row})
}
