package databases

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/scorecard/internal/card"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const (
	wrongBar = "flips that change what is served, and are not found"
	panicBar = "panics"
)

func flipsLine() card.Line {
	bars := []card.Bar{card.AtMost(wrongBar, 0), card.AtMost(panicBar, 0)}
	run := func(careless, brittle bool, short, long int) card.Attempt {
		return func(ctx context.Context, s card.Settings) (card.Result, error) {
			return flips(ctx, s, careless, brittle, card.Pick(s, short, long))
		}
	}
	return card.Line{
		Name:    "Bit flips",
		Promise: "If a bit flips in the file, reads are right or `heed doctor --deep` finds the damage.",
		Attack: "One bit at a random place of SQLite's file is flipped: in rows, indexes, pointers or unused space. Then all is read, and the deep check runs. " +
			"Reads must give the same as before, or the check must say that the file is damaged.",
		Short: card.Form{Bars: bars, Work: 300, Faults: 300, Budget: 3 * time.Minute},
		Long:  card.Form{Bars: bars, Work: 3000, Faults: 3000, Budget: 60 * time.Minute},
		Run:   run(false, false, 300, 3000),
		Controls: []card.Control{
			{Name: "without checksums: the rows as they are, and SQLite's quick check", Misses: []string{wrongBar}, Run: run(true, false, 40, 40)},
			{Name: "a reader that panics at a row it does not know", Misses: []string{panicBar}, Run: run(true, true, 20, 20)},
		},
	}
}

// flips flips bits, one in each copy of a file.
func flips(ctx context.Context, s card.Settings, careless, brittle bool, number int) (result card.Result, err error) {
	base, err := newDisk(ctx, 4096)
	if err != nil {
		return result, err
	}
	if err := fillFile(ctx, base); err != nil {
		return result, err
	}
	truth, told := served(ctx, base.snapshot(nil), careless, &result)
	if told || len(truth) < 200 {
		return result, fmt.Errorf("before any flip, %d rows are read, and the check has findings: %v", len(truth), told)
	}
	wrong, found, panics := 0, 0, 0
	rng := s.Rand(0)
	for range number {
		d := base.snapshot(nil)
		whole := d.files["heed.db"].seen
		place := rng.IntN(len(whole))
		whole[place] ^= 1 << rng.IntN(8)
		func() {
			defer func() {
				if p := recover(); p != nil {
					panics++
					result.Note("a flip at byte %d of %d: %v", place, len(whole), p)
				}
			}()
			rows, told := served(ctx, d, careless, nil)
			switch {
			case told:
				found++
			case brittle && !slices.Equal(rows, truth):
				panic("a row that is not known")
			case !slices.Equal(rows, truth):
				wrong++
				result.Note("a flip at byte %d of %d: %.300v, not %.300v", place, len(whole), without(rows, truth), without(truth, rows))
			}
		}()
		if err := ctx.Err(); err != nil {
			return result, err
		}
		result.Work++
		result.Faults++
	}
	result.Note("%d flips in a file of %d bytes: %d found, %d served and not found, the others without effect", number, len(base.files["heed.db"].seen), found, wrong)
	result.Values = map[string]float64{wrongBar: float64(wrong), panicBar: float64(panics)}
	return result, nil
}

// fillFile has a file hold outcomes and records, all of it out of the log.
func fillFile(ctx context.Context, d *disk) error {
	st, handle, done, err := d.store(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := declares(ctx, st); err != nil {
		return err
	}
	policies := map[string]evidence.Policy{cell.Kind: {HalfLife: 90 * time.Hour, ByOrigin: true}}
	for i := range 120 {
		b := seen(fmt.Sprint(i))
		b.Policies = policies
		b.Observations[0].Cell.Item = fmt.Sprint("item ", i%40)
		b.Records = []store.Record{note(fmt.Sprint(i), 0, fmt.Sprint("n=", i%7))}
		if _, err := st.Commit(ctx, b); err != nil {
			return err
		}
	}
	_, err = handle.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// served returns all that can be read of a file, in order, and whether the check finds that it is damaged or a read says so. The findings of the
// check go into the notes.
func served(ctx context.Context, d *disk, careless bool, notes *card.Result) (rows []string, told bool) {
	handle, done, err := d.on()
	if err != nil {
		return nil, true
	}
	defer done()
	faults, err := sqlstore.Check(ctx, handle, sqlstore.SQLite, !careless)
	if notes != nil && (err != nil || len(faults) > 0) {
		notes.Note("%v %v", faults, err)
	}
	told = err != nil || len(faults) > 0
	if careless {
		rows, err = allRows(ctx, handle)
		return rows, told || err != nil
	}
	st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{Now: func() time.Time { return fixedNow }, NoCache: true, Existing: true})
	if err != nil {
		return nil, true
	}
	collect := func(what string, seq iter.Seq2[any, error]) {
		for one, err := range seq {
			if err != nil {
				told = true
				return
			}
			rows = append(rows, fmt.Sprintf("%s %v", what, one))
		}
	}
	collect("part", anyOf(st.List(ctx, cell.Kind, cell.Scope)))
	collect("scope", anyOf(st.Scopes(ctx, cell.Kind)))
	for i := range 40 {
		c := cell
		c.Item = fmt.Sprint("item ", i)
		collect("history", anyOf(st.History(ctx, c)))
		var s store.Snapshot
		if err := st.Read(ctx, &s, []evidence.Cell{c}, []store.Ref{{Kind: "note", ID: fmt.Sprint(i)}}); err != nil {
			told = true
			continue
		}
		text, _ := s.Records[0].Body.JSON()
		rows = append(rows, fmt.Sprintf("read %v %v %v %v %s", s.Parts, s.Records[0].Ref, s.Records[0].At, s.Records[0].Keys, text))
	}
	for _, keys := range [][]string{nil, {"k"}, {"n=3"}} {
		for r, err := range st.Find(ctx, store.Query{Kind: "note", Keys: keys}) {
			if err != nil {
				return rows, true
			}
			text, _ := r.Body.JSON()
			rows = append(rows, fmt.Sprintf("found %v %v %v %v %v %s", keys, r.Ref, r.At, r.Keys, r.Revision, text))
		}
	}
	slices.Sort(rows)
	return rows, told
}

// anyOf hides the type of what a loop yields.
func anyOf[T any](seq iter.Seq2[T, error]) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for one, err := range seq {
			if !yield(one, err) {
				return
			}
		}
	}
}
