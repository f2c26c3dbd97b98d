package scorecard

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

const illegal = "illegal histories"

func linearizable() []card.Line {
	return []card.Line{{
		Name:    "S5",
		Promise: "Many callers use one cell at once, and get answers that one caller after the other could have got.",
		Attack: "16 goroutines (64 in the long form) apply outcomes to cells, most of them several times, and read the cells, in a store in memory. " +
			"Porcupine searches an order in which each answer is right.",
		Short:    card.Form{Bars: []card.Bar{card.AtMost(illegal, 0)}, Work: 80_000, Faults: 20_000, Budget: 5 * time.Minute},
		Long:     card.Form{Bars: []card.Bar{card.AtMost(illegal, 0)}, Work: 960_000, Faults: 240_000, Budget: time.Hour},
		Run:      inMemory(func(st store.Store) store.Store { return st }, 80_000, 960_000),
		Controls: []card.Control{{Name: "looks whether an id is known, then counts", Run: inMemory(func(st store.Store) store.Store { return &hasty{Store: st} }, 8_000, 8_000)}},
	}}
}

func inMemory(wrap func(store.Store) store.Store, short, long int) card.Attempt {
	return func(ctx context.Context, s card.Settings) (card.Result, error) {
		st, err := memstore.New(memstore.Config{NoHistory: true})
		if err != nil {
			return card.Result{}, err
		}
		f := counting{workers: card.Pick(s, 16, 64), operations: card.Pick(s, short, long), rand: s.Rand}
		return f.run(ctx, wrap(st))
	}
}

// A counting has workers apply outcomes and read cells, and judges what they are told.
type counting struct {
	workers    int
	operations int // of all workers together
	rand       func(worker int) *rand.Rand
}

const (
	cellIDs = 64                    // ids of a cell, so that a set of them fits into a number
	perCell = 4 * cellIDs           // operations on a cell: each id comes about three times, and a quarter reads
	countOf = "scorecard.countings" // the kind of the cells
)

// counted is what an operation does to a cell, and what was told of it.
type counted struct {
	read bool
	id   int
}

type count struct {
	n         int
	duplicate bool
	unknown   bool // the answer was lost, or an error: it may have happened or not
}

// cellModel is a cell: the set of the ids that count.
var cellModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{uint64(0)} },
	Step: func(state, input, output any) []any {
		ids, in, out := state.(uint64), input.(counted), output.(count)
		if in.read {
			if out.n == bits.OnesCount64(ids) {
				return []any{ids}
			}
			return nil
		}
		with := ids | 1<<in.id
		if out.unknown {
			return []any{ids, with}
		}
		if out.duplicate != (with == ids) || out.n != bits.OnesCount64(with) {
			return nil
		}
		return []any{with}
	},
	Equal: func(a, b any) bool { return a == b },
}

// run spreads the workers over handles of one store. Operations of a handle that fail have an unknown effect; reads that fail are left out.
func (f counting) run(ctx context.Context, handles ...store.Store) (card.Result, error) {
	cells := (f.operations + perCell - 1) / perCell
	histories := make([][]porcupine.Operation, cells)
	began := time.Now()
	var mu sync.Mutex
	var wait sync.WaitGroup
	var failed error
	duplicates := 0
	for worker := range f.workers {
		wait.Go(func() {
			rng, st := f.rand(worker), handles[worker%len(handles)]
			for i := worker; i < cells*perCell && ctx.Err() == nil; i += f.workers { // all are at the same cell at about the same time
				cell := i / perCell
				in := counted{read: rng.IntN(4) == 0, id: rng.IntN(cellIDs)}
				call := time.Since(began).Nanoseconds()
				out, err := f.operate(ctx, st, cell, in)
				op := porcupine.Operation{ClientId: worker, Input: in, Call: call, Output: out, Return: time.Since(began).Nanoseconds()}
				mu.Lock()
				if err != nil {
					failed = errors.Join(failed, err)
					mu.Unlock()
					return
				}
				if out.duplicate {
					duplicates++
				}
				histories[cell] = append(histories[cell], op)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if err := errors.Join(ctx.Err(), failed); err != nil {
		return card.Result{}, err
	}
	r := judged(cellModel.ToModel(), histories)
	r.Faults = int64(duplicates)
	return r, nil
}

// operate does one operation. A store that refuses it for good is an error.
func (f counting) operate(ctx context.Context, st store.Store, cell int, in counted) (count, error) {
	c := evidence.Cell{Kind: countOf, Item: fmt.Sprint("cell ", cell)}
	if in.read {
		var s store.Snapshot
		if err := st.Read(ctx, &s, []evidence.Cell{c}, nil); err != nil {
			return count{}, err
		}
		return count{n: summed(s.Parts)}, nil
	}
	asked := []evidence.Cell{c}
	receipts, err := st.Commit(ctx, store.Batch{PartsOf: asked, Observations: []evidence.Observation{{
		ID: fmt.Sprint(cell, " ", in.id), Cell: c, Reward: 1, Weight: 1, At: time.Now(),
	}}})
	if err != nil {
		return count{}, err
	}
	return count{n: summed(receipts[0].Parts), duplicate: len(receipts[0].Duplicates) > 0}, nil
}

func summed(parts []evidence.Part) (n int) {
	for _, part := range parts {
		n += int(part.Tally.N())
	}
	return n
}

// judged checks each history by itself.
func judged(model porcupine.Model, histories [][]porcupine.Operation) card.Result {
	r := card.Result{Values: map[string]float64{illegal: 0}}
	for i, history := range histories {
		r.Work += int64(len(history))
		if !porcupine.CheckOperations(model, history) {
			r.Values[illegal]++
			r.Note("history %d of %d operations is illegal", i, len(history))
		}
	}
	return r
}

// A hasty store looks whether an id is known, and then counts, in two steps.
type hasty struct {
	store.Store
	mu    sync.Mutex
	known map[string]bool
	n     int
}

func (s *hasty) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	o := &batches[0].Observations[0]
	s.mu.Lock()
	known := s.known[o.ID]
	s.n++
	fresh := fmt.Sprint("fresh ", s.n)
	s.mu.Unlock()
	if known {
		var now store.Snapshot
		err := s.Read(ctx, &now, []evidence.Cell{o.Cell}, nil)
		return []store.Receipt{{Duplicates: []string{o.ID}, Parts: now.Parts}}, err
	}
	runtime.Gosched() // as waiting for a disk does
	id := o.ID
	o.ID = fresh
	receipts, err := s.Store.Commit(ctx, batches...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[string]bool)
	}
	s.known[id] = true
	return receipts, err
}
