// Routing learns which of several models to ask, from recorded outcomes.
//
// It replays a table as a stream of tasks in shuffled order. For each task heed chooses an arm (a model) for the item (the
// task's subject), and learns from the outcome of that arm alone, as an application would. The report sets what that
// earned beside choosing at random, always the same arm, and other ways of pooling what is learned.
//
// Usage:
//
//	go run ./lab routing [-long] [-data FILE] [-forms FILE] [-price P] [-runs N] [-seed S]
//	                     [-svg FILE]
//
// Without -data it makes a table of its own. A table is a CSV file with a header: the item, the question's id, and for
// each arm whether it was right, 0 or 1. The last arm is the dear one: a task earns (right + P)/(1 + P) with any other, and
// right/(1 + P) with the last. At the end there is a curve of quality against the share of calls to the last arm, for prices from 0 to 0.60.
//
// With -forms, a CSV file with the item, the question's id and numbers about its text, the item is also the cell of these numbers, in place of the subject
// and together with it.
package routing

import (
	"context"
	"os"

	"github.com/heedhq/heed/lab/internal/kit"
)

// Run runs the study: 2 runs, and 20 in the long form.
func Run(ctx context.Context, call *kit.Call) error {
	data := call.String("data", "", "the `file` with the table; without it one is made")
	forms := call.String("forms", "",
		"the `file` with the form of each question, which policies then go by, too")
	price := call.Float64("price", 0.10, "what the last arm costs more, in right answers")
	runs := call.Count("runs", 2, 20, "how many runs to average over")
	seed := call.Uint64("seed", 2026, "the seed of the runs' orders and choices")
	picture := call.String("svg", "", "write the learning curves to this `file`")
	if err := call.Parse(); err != nil {
		return err
	}
	if !(*price >= 0 && *price <= 1e6) {
		return call.Usage("-price %v must be between 0 and 1e6", *price)
	}
	table := makeTable()
	if *data != "" {
		var err error
		if table, err = readTable(*data); err != nil {
			return err
		}
	}
	if *forms != "" {
		if err := table.readForms(*forms); err != nil {
			return err
		}
	}
	if *picture != "" { // a file that can't be written is better known before the work than after it
		if err := os.WriteFile(*picture, nil, 0o600); err != nil {
			return err
		}
	}
	s, err := run(ctx, table, *price, *runs, *seed, call.Progress)
	if err == nil {
		s.Curve, err = table.drawCurve(ctx, *runs, *seed, call.Progress)
	}
	if err != nil {
		return err
	}
	if *picture != "" {
		if err := s.chart().WriteFile(*picture); err != nil {
			return err
		}
	}
	return s.report(call.Out)
}
