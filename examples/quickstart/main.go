package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/examples/internal/database"
	"github.com/heedhq/heed/examples/internal/show"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// arms are the three ways to answer. The loop learns which of them helps, for each kind of
// question.
var arms = []loop.Arm{
	{ID: "explain", System: "Explain the background first, in a paragraph."},
	{ID: "steps", System: "Answer in numbered steps."},
	{ID: "command", System: "Answer with the command alone."},
}

func main() {
	show.Main("quickstart", func(ctx context.Context, args []string, out io.Writer) error {
		return command(ctx, args, os.Stdin, out)
	})
}

type options struct {
	seed      uint64
	questions int
	store     store.Store // nil: in memory
}

func command(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	var o options
	flags.IntVar(&o.questions, "questions", 60, "how many questions Ann asks")
	flags.Uint64Var(&o.seed, "seed", 7, "the seed of what is drawn")
	where := flags.String("db", "", "keep what is learned in "+database.Usage)
	me := flags.Bool("me", false, "you ask, and give the thumbs")
	if err := show.Parse(flags, args); err != nil {
		return err
	}
	if o.questions < 10 {
		return fmt.Errorf("-questions %d must be at least 10: %w", o.questions, show.ErrUsage)
	}
	if *where != "" {
		st, handle, err := database.Open(ctx, *where, sqlstore.Config{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, handle.Close()) }()
		o.store = st
	}
	agent, err := loop.New(ctx, loop.Config{Store: o.store, Model: decision.LLMFunc(script),
		Arms: arms, Testing: loop.Testing{Seed: rand.NewPCG(o.seed, 1)}})
	if err != nil {
		return err
	}
	if *me {
		return converse(ctx, agent, in, out)
	}
	return play(ctx, agent, o, out)
}

// play has Ann ask, and shows her first and her last questions.
func play(ctx context.Context, agent *loop.Agent, o options, out io.Writer) error {
	ann := rand.New(rand.NewPCG(o.seed, 2))
	const shown, counted = 4, 15
	var helped []bool
	var last string
	fmt.Fprintf(out, "Ann's first questions\n\n")
	for i := range o.questions {
		q := questions[ann.IntN(len(questions))]
		answer, err := agent.Answer(ctx, loop.Event{Text: q.text, Item: q.kind, Person: "ann"})
		if err != nil {
			return err
		}
		wanted := answer.Plan.Arm.ID == q.wants
		value := thumb(ann, wanted)
		if value != 0 {
			if err := agent.React(ctx, answer.ID, loop.Reaction{Person: "ann",
				Value: value}); err != nil {
				return err
			}
		}
		if i == o.questions-shown {
			fmt.Fprintf(out, "... and her last, after %d answers\n\n", i)
		}
		if i < shown || i >= o.questions-shown {
			fmt.Fprintf(out, "  Ann    %s\n  agent  %s  %s\n\n", q.text,
				strings.ReplaceAll(answer.Text, "\n", "\n         "), face(value))
		}
		helped, last = append(helped, wanted), answer.ID
	}
	n := min(counted, o.questions/2)
	fmt.Fprintf(out, "Answers as Ann wants them: %d of the first %d, %d of the last %d.\n\n",
		count(helped[:n]), n, count(helped[len(helped)-n:]), n)
	account, err := agent.Explain(ctx, last)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Why was the last answer given as it was?\n\n%s\n",
		strings.TrimSpace(account.String()))
	return nil
}

// thumb is what Ann makes of an answer: 1, -1, or 0 if she does not react.
func thumb(ann *rand.Rand, wanted bool) float64 {
	switch says := ann.Float64() < 0.8; {
	case !says:
		return 0
	case wanted:
		return 1
	default:
		return -1
	}
}

func face(value float64) string {
	switch {
	case value > 0:
		return "[thumb up]"
	case value < 0:
		return "[thumb down]"
	default:
		return "[no word]"
	}
}

func count(all []bool) (n int) {
	for _, yes := range all {
		if yes {
			n++
		}
	}
	return n
}

// converse reads questions from a person, and a thumb for each answer: + or -, or neither.
func converse(ctx context.Context, agent *loop.Agent, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	ask := func(prompt string) (string, bool) {
		fmt.Fprint(out, prompt)
		ok := lines.Scan()
		return strings.TrimSpace(lines.Text()), ok
	}
	fmt.Fprintf(out, "Ask, such as %q. Then give a thumb: + or -, or just enter. End with "+
		"Ctrl-D.\n\n", questions[0].text)
	for {
		text, ok := ask("you    ")
		if !ok {
			fmt.Fprintln(out)
			return lines.Err()
		}
		if text == "" {
			continue
		}
		answer, err := agent.Answer(ctx, loop.Event{Text: text, Item: kind(text), Person: "you",
			At: time.Now()})
		if err != nil {
			return err
		}
		if answer.Text == "" {
			fmt.Fprintf(out, "agent  (no answer: %s)\n\n", answer.Result.Reason)
			continue
		}
		fmt.Fprintf(out, "agent  %s   (%s)\n", strings.ReplaceAll(answer.Text, "\n", "\n       "),
			answer.Plan.Arm.ID)
		sign, _ := ask("thumb  ")
		if value := map[string]float64{"+": 1, "-": -1}[sign]; value != 0 {
			if err := agent.React(ctx, answer.ID, loop.Reaction{Person: "you",
				Value: value}); err != nil {
				return err
			}
		}
		fmt.Fprintln(out)
	}
}
