package scorecard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const tornBar, sumsBar = "outcomes half there", "off the sums"

func killedLine(engine string, short, long int) card.Line {
	run := func(h habit, short, long int) card.Attempt {
		return on(engine, func(ctx context.Context, s card.Settings, p place) (card.Result, error) {
			return kills(ctx, s, p, h, card.Pick(s, short, long))
		})
	}
	return card.Line{
		Name: "S2 " + engine,
		Promise: "A killed process loses no acknowledged outcome. An outcome that is delivered to " +
			"the next process again counts once.",
		Attack: "A process commits outcomes and is killed (kill -9) at a random moment. The next one " +
			"gets the last outcomes again. At the end every acknowledged outcome must be there once, " +
			"with its record and its audit entry.",
		Bars:  card.None(lostBar, tornBar, sumsBar),
		Short: card.Form{Work: int64(short) * 25, Faults: int64(short), Budget: 3 * time.Minute},
		Long:  card.Form{Work: int64(long) * 25, Faults: int64(long), Budget: 30 * time.Minute},
		Run:   run(sound, short, long),
		Controls: []card.Control{
			{Name: string(ackFirst), Misses: []string{lostBar}, Run: run(ackFirst, 5, 5)},
			{Name: string(inPieces), Misses: []string{tornBar, sumsBar}, Run: run(inPieces, 1, 1)},
		},
	}
}

// kills kills a writing process, over and over. Work counts acknowledged outcomes.
func kills(ctx context.Context, s card.Settings, p place, h habit, rounds int) (result card.Result,
	err error) {
	st, handle, err := p.store(ctx, sqlstore.Config{NoCache: true})
	kit.Check(err)
	defer handle.Close() //nolint:errcheck // it is removed
	rng := s.Rand(0)
	var acknowledged []string
	o := order{Place: p, Job: "write", Habit: h}
	for round := range rounds {
		o.Name = fmt.Sprint(round, "-")
		acked, err := killOne(ctx, o, 1+rng.IntN(60), time.Duration(rng.IntN(3000))*time.Microsecond)
		if err != nil {
			return result, fmt.Errorf("process %d: %w", round, err)
		}
		o.Before, o.Again = o.Name, len(acked)
		acknowledged = append(acknowledged, acked...)
		result.Faults++
	}
	found, before := ledger{}, ledger{torn: -1}
	for found != before { // a server may still be carrying out what a killed process has sent
		before, found = found, kit.Must(read(ctx, st, acknowledged))
	}
	result.Work = int64(len(acknowledged))
	result.Note("%d outcomes were acknowledged: %+v", len(acknowledged), found)
	if found.there < rounds {
		err = fmt.Errorf("only %d outcomes were committed", found.there)
	}
	result.Values = map[string]float64{lostBar: float64(found.lost), tornBar: float64(found.torn),
		sumsBar: found.off}
	return result, err
}

// killOne starts a process, kills it this long after a number of acknowledgements, and returns what
// it has acknowledged.
func killOne(ctx context.Context, o order, number int, after time.Duration) (acknowledged []string,
	err error) {
	p, err := o.start(ctx)
	if err != nil {
		return nil, err
	}
	defer p.in.Close() //nolint:errcheck // it does not read
	for p.lines.Scan() {
		if len(acknowledged) == number-1 {
			time.AfterFunc(after, func() { _ = p.Process.Kill() })
		}
		acknowledged = append(acknowledged, p.lines.Text())
	}
	if p.Wait() == nil || len(acknowledged) < number {
		return nil, errors.New("it ended by itself")
	}
	return acknowledged, ctx.Err()
}

// writeOutcomes commits outcomes by several goroutines and prints their ids, for ever. It begins
// with the last ones of the process before, of whose commits some may have been cut off.
func writeOutcomes(ctx context.Context, st *sqlstore.Store, _ io.Reader, out io.Writer) error {
	if err := st.Declare(ctx, outcomeKind, store.Audit); err != nil {
		return err
	}
	const writers = 4
	again := func(worker int) (ids []string) {
		for i := max(0, given.Again-2*writers); given.Before != "" && i < given.Again+2*writers; i++ {
			if i%writers == worker {
				ids = append(ids, fmt.Sprint(given.Before, i))
			}
		}
		return ids
	}
	var all sync.WaitGroup
	errs := make([]error, writers)
	for worker := range writers {
		all.Go(func() {
			first := again(worker)
			for i := 0; errs[worker] == nil; i++ {
				id := fmt.Sprint(given.Name, (i-len(first))*writers+worker)
				if i < len(first) {
					id = first[i]
				}
				if given.Habit == ackFirst {
					fmt.Fprintln(out, id)
				}
				if errs[worker] = given.Habit.write(ctx, st, id); errs[worker] == nil &&
					given.Habit != ackFirst {
					fmt.Fprintln(out, id)
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
