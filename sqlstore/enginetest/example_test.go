package enginetest_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"; with "pgx" of github.com/jackc/pgx/v5/stdlib it is sqlstore.Postgres

	"github.com/heedhq/heed/sqlstore"
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
func database(ctx context.Context, file string) (db *sqlstore.DB, done func()) {
	handle := must(sql.Open("sqlite", "file:"+file))
	try(sqlstore.Migrate(ctx, handle, sqlstore.SQLite))
	return must(sqlstore.New(ctx, handle, sqlstore.SQLite)), func() { try(handle.Close()) }
}

func temporary() (dir string, remove func()) {
	dir = must(os.MkdirTemp("", "heed"))
	return dir, func() { try(os.RemoveAll(dir)) }
}

// learner returns one that keeps what it learns, and its choices, in a database.
func learner(db *sqlstore.DB) *strategy.Learner {
	return must(strategy.New(strategy.Config{
		Store:   must(sqlstore.NewEvidence(db, sqlstore.EvidenceConfig{})),
		Choices: must(sqlstore.NewChoices(db, sqlstore.ChoicesConfig{})),
		Arms:    []strategy.Arm{{ID: "short-prompt"}, {ID: "long-prompt"}},
	}))
}

// What a learner is told of a choice is there when the program runs again, and so is the choice.
func Example_learner() {
	ctx := context.Background()
	dir, remove := temporary()
	defer remove()
	file := filepath.Join(dir, "heed.db")

	db, done := database(ctx, file)
	query := strategy.Query{Session: "monday", Item: "release notes", Arms: []strategy.ArmID{"long-prompt"}}
	choice := must(learner(db).Select(ctx, query))
	done()

	db, done = database(ctx, file)
	defer done()
	known := learner(db)
	record := must(known.Find(ctx, "monday", "release notes", time.Time{}))
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

// From one database to another, of whatever sort.
func Example_export() {
	ctx := context.Background()
	dir, remove := temporary()
	defer remove()

	db, done := database(ctx, filepath.Join(dir, "old.db"))
	defer done()
	must(learner(db).Select(ctx, strategy.Query{Session: "monday", Item: "release notes"}))
	var backup bytes.Buffer
	try(db.Export(ctx, &backup))

	db, done = database(ctx, filepath.Join(dir, "new.db"))
	defer done()
	try(db.Import(ctx, &backup))
	record := must(learner(db).Find(ctx, "monday", "release notes", time.Time{}))
	fmt.Println(record.Stage)
	// Output: pending
}

// What a person caused goes.
func Example_forget() {
	ctx := context.Background()
	dir, remove := temporary()
	defer remove()
	db, done := database(ctx, filepath.Join(dir, "heed.db"))
	defer done()

	known := learner(db)
	choice := must(known.Select(ctx, strategy.Query{Session: "monday", Item: "release notes"}))
	must(known.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1, Source: "ann"}))

	try(db.Forget(ctx, "ann"))

	record := must(known.Find(ctx, "monday", "release notes", time.Time{}))
	fmt.Printf("%s, by %q\n", record.Stage, record.Result.Source)
	// Output:
	// observed, by ""
}
