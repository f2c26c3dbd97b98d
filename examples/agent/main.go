package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/examples/agent/world"
	"github.com/heedhq/heed/examples/internal/database"
	"github.com/heedhq/heed/examples/internal/show"
	"github.com/heedhq/heed/llm/openaicompat"
)

func main() {
	show.Main("agent", func(ctx context.Context, args []string, out io.Writer, progress func(done, of int)) error {
		return command(ctx, args, os.Getenv, out, progress)
	})
}

func command(ctx context.Context, args []string, env func(string) string, out io.Writer, progress func(done, of int)) (err error) {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	seed := flags.Uint64("seed", 2026, "the seed of the world, and of the assistant's own draws")
	events := flags.Int("events", 2000, "how many events come in; they come about every twelve minutes")
	asJSON := flags.Bool("json", false, "write the result as JSON")
	where := flags.String("db", "", "have the one that learns keep what it learns in "+database.Usage+"; a further run goes on from there")
	name := flags.String("model", "", "ask this `model`, at OPENAI_BASE_URL with the key OPENAI_API_KEY, in place of the script")
	if err := show.Parse(flags, args); err != nil {
		return err
	}
	if *events < 20 {
		return fmt.Errorf("-events %d must be at least 20: %w", *events, show.ErrUsage)
	}
	in := stream{seed: *seed, span: world.Span{Events: *events}}
	ways := []way{off, learns, told, oracle}
	if *name != "" {
		client, err := openaicompat.New(openaicompat.Config{
			BaseURL: env("OPENAI_BASE_URL"), APIKey: openaicompat.APIKey(env("OPENAI_API_KEY")), Model: *name,
		})
		if err != nil {
			return err
		}
		in.model = func(decision.LLM) decision.LLM { return client }
		ways = []way{learns} // the others would cost as much again
	}
	if *where != "" {
		if in.home, err = openShelter(ctx, *where); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, in.home.close()) }()
		if in.run, in.span, err = in.home.begin(ctx, *events); err != nil {
			return err
		}
	}
	var lives []*life
	for i, how := range ways {
		l, err := live(ctx, how, in, func(done, of int) { progress(i*of+done, len(ways)*of) })
		if err != nil {
			return err
		}
		lives = append(lives, l)
	}
	r, err := sumUp(ctx, in, lives)
	if err != nil {
		return err
	}
	if *asJSON {
		return show.JSON(out, r)
	}
	return r.write(out)
}
