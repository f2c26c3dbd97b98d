//go:build !race

package enginetest_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	// the driver "sqlite"; with "pgx" of github.com/jackc/pgx/v5/stdlib it is sqlstore.Postgres
	_ "modernc.org/sqlite"

	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func try(err error) { must(0, err) }

// database opens a file of SQLite, and makes heed's tables where there are none.
func database(ctx context.Context, file string) (st *sqlstore.Store, done func()) {
	handle := must(sql.Open("sqlite", "file:"+file))
	return must(sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{})),
		func() { try(handle.Close()) }
}

func temporary() (dir string, remove func()) {
	dir = must(os.MkdirTemp("", "heed"))
	return dir, func() { try(os.RemoveAll(dir)) }
}

// learner returns one that keeps what it learns in a database.
func learner(ctx context.Context, st *sqlstore.Store) *strategy.Learner {
	return must(strategy.New(ctx, strategy.Config{Store: st,
		Arms: []strategy.Arm{{ID: "short-prompt"}, {ID: "long-prompt"}}}))
}

// A choice and its outcome are there when the program runs again.
func Example_learner() {
	ctx := context.Background()
	dir, remove := temporary()
	defer remove()
	file := filepath.Join(dir, "heed.db")

	st, done := database(ctx, file)
	query := strategy.Query{Session: "monday", Item: "release notes",
		Arms: []strategy.ArmID{"long-prompt"}}
	choice := must(learner(ctx, st).Select(ctx, query))
	done()

	st, done = database(ctx, file)
	defer done()
	known := learner(ctx, st)
	record := must(known.Find(ctx, "monday", "release notes", time.Now()))
	fmt.Println(record.Choice.ID == choice.ID, record.Choice.Arm, record.Stage)
	must(known.Observe(ctx, strategy.Outcome{Choice: record.Choice, Value: 1, Confidence: 1}))
	for i, belief := range must(known.Beliefs(ctx, strategy.Query{Item: "release notes"})) {
		fmt.Printf("%s: %.1f good\n", known.Config().Arms[i].ID, belief.Successes)
	}
	// Output:
	// true long-prompt pending
	// short-prompt: 0.0 good
	// long-prompt: 1.0 good
}

// From one store to another, of whatever sort.
func Example_dump() {
	ctx := context.Background()
	dir, remove := temporary()
	defer remove()

	st, done := database(ctx, filepath.Join(dir, "old.db"))
	defer done()
	must(learner(ctx, st).Select(ctx, strategy.Query{Session: "monday", Item: "release notes"}))
	var backup bytes.Buffer
	try(st.Dump(ctx, &backup))

	st, done = database(ctx, filepath.Join(dir, "new.db"))
	defer done()
	try(st.Load(ctx, &backup))
	record := must(learner(ctx, st).Find(ctx, "monday", "release notes", time.Now()))
	fmt.Println(record.Stage)
	// Output: pending
}

// Forget removes what a person caused.
func Example_forget() {
	ctx := context.Background()
	dir, remove := temporary()
	defer remove()
	st, done := database(ctx, filepath.Join(dir, "heed.db"))
	defer done()

	known := learner(ctx, st)
	choice := must(known.Select(ctx, strategy.Query{Session: "monday", Item: "release notes"}))
	must(known.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1, Source: "ann"}))
	try(known.Reset(ctx, strategy.Reset{Item: "release notes", Actor: "ann",
		Reason: "they are written by hand now"}))

	try(store.Run(ctx, st, store.Job{Forget: []string{"ann"}}))

	record := must(known.Find(ctx, "monday", "release notes", time.Now()))
	fmt.Printf("%s, by %q\n", record.Stage, record.Result.Source)
	for entry, err := range store.AuditEntries(ctx, st, store.Query{}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s, by %.10s…\n", entry.Action, entry.Actor)
	}
	// Output:
	// observed, by ""
	// strategy.reset, by forgotten-…
}
