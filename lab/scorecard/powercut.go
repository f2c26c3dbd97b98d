package scorecard

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const (
	lostBar    = "acknowledged outcomes lost"
	corruptBar = "corrupt or torn databases"
	gapsBar    = "acknowledged outcomes lost before one that is there"
)

// A powerLoss is the disk and the writer of one attempt.
type powerLoss struct {
	dialect sqlstore.Dialect
	deaf    bool // the disk ignores syncs
	habit   habit
}

func (p powerLoss) attempt(short, long int) card.Attempt {
	return func(ctx context.Context, s card.Settings) (card.Result, error) {
		return p.run(ctx, s, card.Pick(s, short, long))
	}
}

func powerCutLines() []card.Line {
	noSync := func(d sqlstore.Dialect) card.Control {
		return card.Control{
			Name: "no sync at all, as with synchronous=OFF", Misses: []string{corruptBar},
			Run: powerLoss{dialect: d, deaf: true}.attempt(30, 30),
		}
	}
	full, relaxed := powerLoss{dialect: sqlstore.SQLite}, powerLoss{dialect: sqlstore.SQLiteRelaxed}
	return []card.Line{{
		Name:    "S1",
		Promise: "On SQLite a power cut loses no acknowledged outcome.",
		Attack: "A disk drops about half of the unsynced sectors, at a random operation. The " +
			"database must then be sound and hold " +
			"all acknowledged outcomes. Evidence, records and audit log must agree.",
		Bars:  card.None(lostBar, corruptBar),
		Short: card.Form{Work: 500, Faults: 500, Budget: 4 * time.Minute},
		Long:  card.Form{Work: 5000, Faults: 5000, Budget: 60 * time.Minute},
		Run:   full.attempt(500, 5000),
		Controls: []card.Control{
			{Name: "synchronous=NORMAL", Misses: []string{lostBar}, Run: relaxed.attempt(20, 20)},
			noSync(sqlstore.SQLite),
		},
	}, {
		Name: "S1 SQLiteRelaxed",
		Promise: "With SQLiteRelaxed a power cut takes the newest outcomes at most. All before them " +
			"are there, each as a whole.",
		Attack: "The disk of S1, with one writer. If an acknowledged outcome is there, all that were " +
			"acknowledged before it must be there. Evidence, records and audit log must agree.",
		Bars:  card.None(gapsBar, corruptBar),
		Short: card.Form{Work: 120, Faults: 120, Budget: 4 * time.Minute},
		Long:  card.Form{Work: 2000, Faults: 2000, Budget: 20 * time.Minute},
		Run:   relaxed.attempt(120, 2000),
		Controls: []card.Control{
			{
				Name: string(forgetful), Misses: []string{gapsBar},
				Run: powerLoss{dialect: sqlstore.SQLiteRelaxed, habit: forgetful}.attempt(5, 5),
			},
			noSync(sqlstore.SQLiteRelaxed),
		},
	}}
}

// run cuts the power in the middle of writing, over and over.
func (p powerLoss) run(ctx context.Context, s card.Settings, rounds int) (result card.Result,
	_ error) {
	base := kit.Must(newDisk(ctx, 4096))
	rng := s.Rand(int(p.dialect))
	acknowledged, corrupt := 0, 0
	var all ledger
	for range rounds {
		d := base.snapshot(rng)
		cut := 60 + rng.IntN(500)
		d.deaf, d.fault = p.deaf, powerCut(cut)
		if rng.IntN(2) == 0 {
			d.options = "&_pragma=wal_autocheckpoint(8)" // so that cuts hit checkpoints too
		}
		acked := p.write(ctx, d)
		acknowledged += len(acked)
		found, fault := inspect(ctx, d.torn(), p.dialect, acked)
		kit.Check(ctx.Err())
		all.add(found)
		if fault != nil || found.torn > 0 || found.off != 0 {
			corrupt++
			result.Note("cut at operation %d: %+v, %v", cut, found, fault)
		}
		result.Work++
		result.Faults++
	}
	result.Note("%d outcomes were acknowledged, and %d were there", acknowledged, all.there)
	result.Values = map[string]float64{lostBar: float64(all.lost), gapsBar: float64(all.gaps),
		corruptBar: float64(corrupt)}
	if acknowledged < rounds*2 {
		return result, fmt.Errorf("only %d outcomes were acknowledged", acknowledged)
	}
	return result, nil
}

// write commits outcomes, one after the other, until the power is cut.
func (p powerLoss) write(ctx context.Context, d *disk) (acknowledged []string) {
	handle, done, err := d.on()
	kit.Check(err)
	defer done()
	st, err := sqlstore.Open(ctx, handle, p.dialect)
	if err == nil {
		err = st.Declare(ctx, outcomeKind, store.Audit)
	}
	for i := 0; err == nil; i++ {
		id := fmt.Sprint(i)
		if p.habit != forgetful || i%10 != 3 {
			err = p.habit.write(ctx, st, id)
		}
		if err == nil {
			acknowledged = append(acknowledged, id)
		}
	}
	kit.Check(ctx.Err())
	return acknowledged
}

// inspect opens what is found on a disk. All of it is lost if it can't be opened or read.
func inspect(ctx context.Context, d *disk, dialect sqlstore.Dialect,
	acknowledged []string) (found ledger, err error) {
	handle, done, err := d.on()
	kit.Check(err)
	defer done()
	all := ledger{lost: len(acknowledged)}
	st, err := sqlstore.Open(ctx, handle, dialect)
	if err != nil {
		return all, err
	}
	var sound string
	if err := handle.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&sound); err != nil {
		return all, err
	}
	if found, err = read(ctx, st, acknowledged); err != nil {
		return all, err
	}
	if sound != "ok" {
		return found, fmt.Errorf("it is damaged: %s", sound)
	}
	return found, nil
}
