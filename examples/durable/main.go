// Durable learns which of three models to ask, and keeps what it learns in a database: its second
// run goes on where the first stopped. internal/database opens it, and brings the drivers.
//
//	go run ./examples/durable -db heed.db
//	go run ./examples/durable -db postgres://localhost/heed
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/heedhq/heed/examples/internal/database"
	"github.com/heedhq/heed/examples/internal/show"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

var (
	arms = []strategy.Arm{{ID: "small"}, {ID: "medium"}, {ID: "large"}}
	// which the learner does not see
	right = map[strategy.ArmID]float64{"small": 0.3, "medium": 0.6, "large": 0.9}
	items = []string{"invoices", "logins", "refunds"}
)

// late is of how many tasks, the last of a run, the outcome comes only when the next run began.
const late = 20

// query is what a task asks for. Each task is a session.
func query(task int) strategy.Query {
	return strategy.Query{Session: fmt.Sprint("task ", task), Item: items[task%len(items)],
		Category: "support"}
}

// outcome is what came of a task's choice.
func outcome(task int, choice strategy.Choice) strategy.Outcome {
	value := -1.
	if rand.New(rand.NewPCG(7, uint64(task))).Float64() < right[choice.Arm] {
		value = 1
	}
	return strategy.Outcome{Choice: choice, Value: value, Confidence: 0.8}
}

func main() {
	show.Main("durable", func(ctx context.Context, args []string, out io.Writer) error {
		return command(ctx, args, out, func(int, int) {})
	})
}

func command(ctx context.Context, args []string, out io.Writer,
	progress func(done, of int)) (err error) {
	flags := flag.NewFlagSet("durable", flag.ContinueOnError)
	where := flags.String("db", "", database.Usage)
	tasks := flags.Int("tasks", 200, "how many tasks come in")
	if err := show.Parse(flags, args); err != nil {
		return err
	}
	if *tasks < 1 {
		return fmt.Errorf("-tasks %d must be at least 1: %w", *tasks, show.ErrUsage)
	}
	st, handle, err := database.Open(ctx, *where, sqlstore.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, handle.Close()) }()
	learner, err := newLearner(ctx, st)
	if err != nil {
		return err
	}
	return run(ctx, learner, *tasks, out, progress)
}

// newLearner returns a learner that keeps its evidence, and records of its choices, in a database.
func newLearner(ctx context.Context, st store.Store) (*strategy.Learner, error) {
	return strategy.New(ctx, strategy.Config{
		Store: st, Arms: arms,
		Cache: strategy.Cache{TTL: 7 * 24 * time.Hour}, // for so long an open session keeps its choice
		// leave it out for choices that differ from one database to the next
		Seed: rand.NewPCG(1, 2),
	})
}

// run goes on with the first task that has no record.
func run(ctx context.Context, learner *strategy.Learner, tasks int, out io.Writer,
	progress func(done, of int)) error {
	first := 0
	for _, err := range learner.History(ctx, strategy.ChoiceFilter{}) {
		if err != nil {
			return err
		}
		first++
	}
	if err := believed(ctx, learner, out, fmt.Sprintf("At the start, after %d tasks:",
		first)); err != nil {
		return err
	}
	if err := catchUp(ctx, learner, first, out); err != nil {
		return err
	}
	var chosen []string
	for task := first; task < first+tasks; task++ {
		choice, err := learner.Select(ctx, query(task))
		if err != nil {
			return err // a host may go on with choice.Arm, which is the default then
		}
		chosen = append(chosen, string(choice.Arm))
		if task < first+tasks-late {
			if _, err := learner.Observe(ctx, outcome(task, choice)); err != nil {
				return err
			}
		}
		if task == first+tasks-1 {
			fmt.Fprintf(out, "The first choices: %s.\n", strings.Join(chosen[:min(10, tasks)], " "))
			fmt.Fprintf(out, "Left open: %s.\n", told(choice))
		} else if err := learner.EndSession(ctx, choice.Session); err != nil {
			return err
		}
		progress(task-first+1, tasks)
	}
	return believed(ctx, learner, out, fmt.Sprintf("At the end, after %d tasks:", first+tasks))
}

// catchUp delivers the outcomes that the run before did not wait for. Each names the session and
// the item of its choice.
func catchUp(ctx context.Context, learner *strategy.Learner, first int, out io.Writer) error {
	delivered := 0
	for task := max(first-late, 0); task < first; task++ {
		q := query(task)
		record, err := learner.Find(ctx, q.Session, q.Item, time.Time{})
		if err != nil {
			return err
		}
		// it was open when the run before stopped
		if task == first-1 && record.Stage == strategy.Pending {
			choice, err := learner.Select(ctx, q)
			if err != nil {
				return err
			}
			if choice.ID == record.Choice.ID {
				fmt.Fprintf(out, "Still open: %s.\n", told(choice))
			}
			if err := learner.EndSession(ctx, q.Session); err != nil {
				return err
			}
		}
		disposition, err := learner.Observe(ctx, outcome(task, record.Choice))
		if err != nil {
			return err
		}
		if disposition == strategy.Applied {
			delivered++
		}
	}
	fmt.Fprintf(out, "Outcomes of the run before: %d.\n", delivered)
	return nil
}

func told(c strategy.Choice) string {
	return fmt.Sprintf("%s has %s, chosen at %s", c.Session, c.Arm,
		c.At.UTC().Format(time.RFC3339Nano))
}

func believed(ctx context.Context, learner *strategy.Learner, out io.Writer, when string) error {
	fmt.Fprintln(out, when)
	known := false
	for d, err := range learner.Distributions(ctx, strategy.Query{Category: "support"}) {
		if err != nil {
			return err
		}
		known = true
		for _, arm := range d.Arms {
			fmt.Fprintf(out, "  %-6s  %.2f, between %.2f and %.2f (outcomes: %d)\n",
				arm.Arm, arm.Mean, arm.Low, arm.High, arm.Outcomes)
		}
	}
	if !known {
		fmt.Fprintln(out, "  nothing is known")
	}
	return nil
}
