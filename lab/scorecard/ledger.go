package scorecard

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

var (
	cell        = evidence.Cell{Kind: "arm", Scope: "s", Item: "i", Name: "n"}
	outcomeKind = store.Kind{Name: "outcome"}
)

// weightOf is the weight of an outcome: a number of 64ths, so that sums are exact in any order.
func weightOf(id string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return float64(1+h.Sum32()%64) / 64
}

// observed is the evidence of an outcome.
func observed(id string, at time.Time) evidence.Observation {
	return evidence.Observation{ID: id, Cell: cell, Reward: 1, Weight: weightOf(id), At: at}
}

// outcome is a commit of an outcome: its evidence, its record, and its entry in the audit log.
func outcome(id string) store.Batch {
	now := time.Now()
	return store.Batch{
		Observations: []evidence.Observation{observed(id, now)},
		Records: []store.Record{
			{Ref: store.Ref{Kind: outcomeKind.Name, ID: id}, Revision: store.Once, At: now,
				Keys: []string{"k"}, Body: store.Of(id)},
			{Ref: store.Ref{Kind: store.Audit.Name, ID: id}, Revision: store.Once, At: now,
				Body: store.Of(store.AuditEntry{ID: id, At: now, Actor: "ann", Action: "outcome"})},
		},
	}
}

// A habit is how a process or a writer does its work.
type habit string

const (
	sound     habit = "" // one commit for an outcome, and then its acknowledgement
	ackFirst  habit = "acknowledges before the commit"
	inPieces  habit = "commits the record of an outcome by itself"
	unlogged  habit = "unlogged tables"
	stubborn  habit = "tries for two seconds, and then tells a text"
	looking   habit = "looks whether an outcome is known, then adds it"
	forgetful habit = "acknowledges one outcome in ten without a commit"
)

// write commits an outcome, in one commit or by a bad habit.
func (h habit) write(ctx context.Context, st store.Store, id string) error {
	b := outcome(id)
	all := []store.Batch{b}
	if h == inPieces {
		all = []store.Batch{{Records: b.Records[:1]},
			{Observations: b.Observations, Records: b.Records[1:]}}
	}
	for _, b := range all {
		if _, err := st.Commit(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// A ledger is what was found after a crash.
type ledger struct {
	there int     // outcomes that are there
	lost  int     // of the acknowledged ones
	gaps  int     // of the lost ones: something that was acknowledged later is there
	torn  int     // outcomes with one half of their commit
	off   float64 // by how much the sums differ from the sums of the outcomes that are there
}

func (l *ledger) add(o ledger) {
	l.there += o.there
	l.lost += o.lost
	l.gaps += o.gaps
	l.torn += o.torn
	l.off += o.off
}

// read compares evidence, records and the audit log with each other, and with what was
// acknowledged.
func read(ctx context.Context, st store.Store, acknowledged []string) (l ledger, err error) {
	if err := st.Declare(ctx, outcomeKind, store.Audit); err != nil {
		return l, err
	}
	there := make(map[string]int)
	for _, kind := range []string{outcomeKind.Name, store.Audit.Name} {
		for r, err := range st.Find(ctx, store.Query{Kind: kind}) {
			if err != nil {
				return l, err
			}
			there[r.ID]++
		}
	}
	var mass float64
	for id, halves := range there {
		mass += weightOf(id)
		if halves != 2 {
			l.torn++
		}
	}
	l.there = len(there)
	n := 0
	for part, err := range st.List(ctx, store.CellQuery{Kind: cell.Kind, Scope: cell.Scope}) {
		if err != nil {
			return l, err
		}
		n += int(part.Tally.N())
		mass -= part.Tally.Mass
	}
	l.off = max(mass, -mass) + float64(max(n-l.there, l.there-n))
	last := 0
	for i, id := range acknowledged {
		if there[id] == 0 {
			l.lost++
		} else {
			l.gaps += i - last
			last = i + 1
		}
	}
	if l.lost > 0 || len(acknowledged) == 0 {
		return l, nil
	}
	receipts, err := st.Commit(ctx, outcome(acknowledged[len(acknowledged)-1]))
	if err == nil && !slices.Equal(receipts[0].Duplicates, acknowledged[len(acknowledged)-1:]) {
		err = fmt.Errorf("%s counted twice", acknowledged[len(acknowledged)-1])
	}
	return l, err
}
