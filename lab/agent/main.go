package agent

import (
	"context"
	"errors"
	"os"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/lab/agent/world"
	"github.com/heedhq/heed/lab/internal/database"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/llm/openaicompat"
)

// An order is what is wanted of a run.
type order struct {
	seed     uint64
	events   int
	database string // where the one that learns keeps what it learns; "": in memory
	model    string // "": the script
}

// Run runs the assistant through 2,000 events, or as many as the call wants.
func Run(ctx context.Context, call *kit.Call) error {
	var o order
	call.Uint64Var(&o.seed, "seed", 2026, "the seed of the world, and of the assistant's own draws")
	call.IntVar(&o.events, "events", 2000,
		"how many events come in; they come about every twelve minutes")
	call.StringVar(&o.database, "db", "",
		"keep what is learned in "+database.Usage+"; a further run goes on from there")
	call.StringVar(&o.model, "model", "",
		"ask this `model`, at OPENAI_BASE_URL with the key OPENAI_API_KEY, in place of the script")
	if err := call.Parse(); err != nil {
		return err
	}
	if o.events < 20 {
		return call.Usage("-events %d must be at least 20", o.events)
	}
	r, err := o.run(ctx, call.Progress)
	if err != nil {
		return err
	}
	return r.write(call.Out)
}

func (o order) run(ctx context.Context, progress func(done, of int)) (r *result, err error) {
	in := stream{seed: o.seed, span: world.Span{Events: o.events}}
	ways := []way{off, learns, told, oracle}
	if o.model != "" {
		client, err := openaicompat.New(openaicompat.Config{
			BaseURL: os.Getenv("OPENAI_BASE_URL"),
			APIKey:  openaicompat.APIKey(os.Getenv("OPENAI_API_KEY")), Model: o.model,
		})
		if err != nil {
			return nil, err
		}
		in.model = func(decision.LLM) decision.LLM { return client }
		ways = []way{learns} // the others would cost as much again
	}
	if o.database != "" {
		if in.home, err = openShelter(ctx, o.database); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, in.home.close()) }()
		if in.run, in.span, err = in.home.begin(ctx, o.events); err != nil {
			return nil, err
		}
	}
	var lives []*life
	for i, how := range ways {
		l, err := live(ctx, how, in, func(done, of int) { progress(i*of+done, len(ways)*of) })
		if err != nil {
			return nil, err
		}
		lives = append(lives, l)
	}
	return sumUp(ctx, in, lives)
}
