package scorecard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const (
	unnamedBar = "calls that do not say that it is down"
	waitBar    = "s for a call while it is down"
)

func stoppedLine() card.Line {
	run := func(h habit) card.Attempt {
		return func(ctx context.Context, _ card.Settings) (card.Result, error) {
			return crashes(ctx, 1, h)
		}
	}
	return card.Line{
		Name:    "S3",
		Promise: "A crash of PostgreSQL loses no acknowledged outcome, and the store goes on after it.",
		Attack: "A private server, with fsync, is stopped under load as if it had crashed (pg_ctl -m " +
			"immediate), and started again. The same open store must then go on, with every " +
			"acknowledged outcome. While the server is down, each call must fail within two seconds, " +
			"with the driver's *pgconn.ConnectError. The same commit must go through afterwards.",
		Bars: append(card.None(lostBar, tornBar, sumsBar, unnamedBar), card.Bar{Name: waitBar,
			Most: 2}),
		Short: card.Form{Work: 1000, Faults: 10, Budget: 4 * time.Minute},
		Long:  card.Form{Work: 10_000, Faults: 100, Budget: 30 * time.Minute},
		Run: func(ctx context.Context, s card.Settings) (card.Result, error) {
			return crashes(ctx, card.Pick(s, 10, 100), sound)
		},
		Controls: []card.Control{
			{Name: string(unlogged), Misses: []string{lostBar}, Run: run(unlogged)},
			{Name: string(inPieces), Misses: []string{tornBar, sumsBar}, Run: run(inPieces)},
			{Name: string(stubborn), Misses: []string{unnamedBar, waitBar}, Run: run(stubborn)},
		},
	}
}

// crashes has a server crash under load, over and over. Work counts acknowledged outcomes.
func crashes(ctx context.Context, cycles int, h habit) (result card.Result, err error) {
	server, err := servertest.New("")
	kit.Check(absent(err))
	defer func() { err = errors.Join(err, server.Close()) }()
	defer kit.Catch(&err)
	st, handle, err := place{sqlstore.Postgres, "pgx", server.DSN()}.store(ctx,
		sqlstore.Config{NoCache: true})
	kit.Check(err)
	defer handle.Close() //nolint:errcheck // the server is removed
	kit.Check(st.Declare(ctx, outcomeKind, store.Audit))
	if h == unlogged {
		unlog(ctx, handle)
	}
	down := &outage{store: st, habit: h}
	down.agent = kit.Must(loop.New(ctx, loop.Config{Store: st, Model: says("Wait.")}))
	var acknowledged []string
	var all ledger
	for cycle := range cycles {
		acked, err := untilCrash(ctx, st, server, cycle, h)
		if err != nil {
			return result, fmt.Errorf("cycle %d: %w", cycle, err)
		}
		again := outcome(fmt.Sprint(cycle, "-down"))
		down.calls(ctx, &result, again)
		kit.Check(server.Start())
		kit.Must(st.Commit(ctx, again)) // the commit is made again
		acknowledged = append(append(acknowledged, acked...), again.Observations[0].ID)
		if all, err = read(ctx, st, acknowledged); err != nil {
			return result, fmt.Errorf("after cycle %d: %w", cycle, err)
		}
		result.Faults++
		if all.lost+all.torn > 0 {
			break
		}
	}
	result.Work = int64(len(acknowledged))
	result.Note("%d outcomes were acknowledged: %+v", len(acknowledged), all)
	result.Values = map[string]float64{
		lostBar: float64(all.lost), tornBar: float64(all.torn), sumsBar: all.off,
		unnamedBar: float64(down.unnamed), waitBar: down.longest.Seconds(),
	}
	return result, nil
}

// unlog has PostgreSQL write no log of the tables.
func unlog(ctx context.Context, handle *sql.DB) {
	for _, table := range []string{"cell", "tally", "id", "observation", "record", "key"} {
		kit.Must(handle.ExecContext(ctx, "ALTER TABLE heed_"+table+" SET UNLOGGED"))
	}
}

// An outage has calls made while the server is down.
type outage struct {
	store   store.Store
	agent   *loop.Agent
	habit   habit
	unnamed int
	longest time.Duration
}

// calls makes calls of each sort, a commit among them.
func (o *outage) calls(ctx context.Context, result *card.Result, b store.Batch) {
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"Commit", func() error { _, err := o.store.Commit(ctx, b); return err }},
		{"Read", func() error {
			return o.store.Read(ctx, &store.Snapshot{}, []evidence.Cell{cell}, nil)
		}},
		{"Answer", func() error {
			given, err := o.agent.Answer(ctx, loop.Event{Text: "What now?"})
			if err == nil && given.Degraded != nil { // it goes on without the store, and reports it
				err = given.Degraded.Before
			}
			return err
		}},
	} {
		began := time.Now()
		err := call.do()
		if o.habit == stubborn && err != nil {
			time.Sleep(2 * time.Second)
			err = errors.New(err.Error())
		}
		o.longest = max(o.longest, time.Since(began))
		if !errors.As(err, new(*pgconn.ConnectError)) {
			o.unnamed++
			result.Note("%s: %v", call.name, err)
		}
	}
}

// untilCrash commits outcomes until a hundred of them are acknowledged, and stops the server.
func untilCrash(ctx context.Context, st store.Store, server *servertest.Server, cycle int,
	h habit) (acknowledged []string, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	enough := make(chan struct{})
	for worker := range 4 {
		all.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", cycle, worker, i)
				if h.write(ctx, st, id) != nil {
					return
				}
				mu.Lock()
				if acknowledged = append(acknowledged, id); len(acknowledged) == 100 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.Wait()
	}()
	select {
	case <-enough:
	case <-ended:
		return nil, errors.New("the writers failed by themselves")
	}
	err = server.Stop("immediate")
	<-ended
	return acknowledged, err
}
