// Package agent runs an operations assistant that learns: all packages of heed in one loop.
//
// It lives in a simulated world of alerts, requests and tasks, with a scripted model that makes
// mistakes, users who mostly do not react, reviewers and two leads. The truth of that world is in
// world/truth.go, and the assistant can't see it. Package assistant has all that learns, and
// package world all that is true. This package brings them together and keeps the score, for the
// same events without learning and with the best answer to everything as well.
//
//	go run ./lab agent [-seed S] [-events N] [-db FILE] [-picture FILE] [-gain LIVES] [-fit F]
//
// With -picture it draws how often answers were good over time, with and without learning, as SVG.
// With -gain it lets assistants live that answer 5 % of the events as without learning, and
// compares the gain that heed shows with the true one. With -db the one that learns keeps what it
// learns in a new file of SQLite.
package agent

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/heedhq/heed/lab/internal/kit"
)

// Run runs the assistant through 2,000 events, or as many as the call wants.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	var in stream
	call.Uint64Var(&in.seed, "seed", 2026, "the seed of the world, and of the assistant's own draws")
	call.IntVar(&in.events, "events", 2000, "how many events come in, about every twelve minutes")
	call.StringVar(&in.database, "db", "", "keep what is learned in this `file`, by SQLite")
	call.Float64Var(&in.fit, "fit", 0, "AnswerFit of loop.Tuning; 0 is the default")
	drawing := call.String("picture", "", "draw how often answers were good into this file, as SVG")
	comparing := call.Int("gain", 0, "compare the shown gain with the true one in so many lives")
	kit.Check(call.Parse())
	if in.events < 20 {
		return call.Usage("-events %d must be at least 20", in.events)
	}
	if *comparing > 0 {
		gains(ctx, call, in.seed, *comparing, in.events)
		return nil
	}
	fmt.Fprintf(call.Out, "`%s`: %d events, seed %d: the same events with the same luck\n\n",
		call.Command(), in.events, in.seed)
	table := kit.NewTable(call.Out)
	fmt.Fprintln(table,
		"\tsuccess\tcalls an event\ttokens\tin the last quarter: success\theuristics\tcalls an "+
			"event\ttokens\t")
	ways := []way{off, learns, oracle}
	all := make([]*life, len(ways))
	kit.Parallel(ctx, len(ways), func(i int) { all[i] = live(ctx, ways[i], in) })
	for _, l := range all {
		whole, last := scoreOf(l.answers), scoreOf(l.last())
		fmt.Fprintf(table, "%s\t%.1f %%\t%.2f\t%.0f\t%.1f %%\t%.0f %%\t%.2f\t%.0f\t\n", l.way,
			100*whole.success, whole.calls, whole.tokens, 100*last.success, 100*last.heuristics,
			last.calls, last.tokens)
		kit.Check(l.close())
	}
	if *drawing != "" {
		kit.Check(os.WriteFile(*drawing, []byte(picture(all[:2])), 0o600))
	}
	return errors.Join(table.Flush(), ctx.Err())
}
