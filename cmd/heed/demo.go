package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/web"
)

type demoCommand struct {
	Listen string        `default:"127.0.0.1:0" placeholder:"ADDRESS" help:"Where to listen on this machine. Port 0 takes any free one."`
	Open   bool          `help:"Open the pages in the browser."`
	Every  time.Duration `default:"1.5s" help:"How often something happens, once the first days are over."`
	Seed   uint64        `default:"1" help:"Other numbers give other accidents."`
}

// Run serves a store that a simulated agent fills, until a signal ends it.
func (cmd *demoCommand) Run(s *session) (err error) {
	l := listening{Listen: cmd.Listen, As: []string{"ann", "kim"}}
	switch {
	case !s.Now.IsZero():
		return &usageError{"--now is for looking"}
	case cmd.Every <= 0:
		return &usageError{"--every must be above 0"}
	}
	if err := l.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "heed-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	at := place{dialect: sqlstore.SQLite, file: filepath.Join(dir, "demo.db")}
	handle, err := at.handle(s.ctx, true)
	if err != nil {
		return err
	}
	defer handle.Close()
	st, err := at.make(s.ctx, handle, sqlstore.Config{})
	if err != nil {
		return err
	}
	return cmd.run(s, &l, st)
}

// run has the agent live beside the server. Both end together.
func (cmd *demoCommand) run(s *session, l *listening, st *opened) error {
	w := &demoWorld{dice: rand.New(rand.NewPCG(cmd.Seed, 23)), every: cmd.Every, said: map[string]int{}}
	live := &web.Live{}
	agent, err := loop.New(s.ctx, loop.Config{
		DB: st.handle, Name: "desk", Model: w, Arms: demoArms, Lessons: demoLessons, Now: w.now, Seed: w.dice,
		Patterns: patterns.Config{Approaches: demoWays, Warnings: true},
		Observer: func(ctx context.Context, n heed.Notice) { live.Observe(ctx, n); tellFailure(ctx, n) },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	lived := make(chan error, 1)
	go func() {
		defer cancel()
		err := w.live(ctx, agent)
		if ctx.Err() != nil {
			err = nil // what was interrupted fails in any words
		}
		lived <- err
	}()
	here := *s
	here.ctx = ctx
	if cmd.Open {
		l.greeted = browse
	}
	err = l.serve(&here, web.Config{Store: st.store, Agent: agent, Live: live, Now: w.now, Observer: tellFailure}, "a simulated agent")
	cancel()
	return errors.Join(err, <-lived)
}

// browse opens the link of the first person.
func browse(ctx context.Context, g greeting) {
	name, args := "xdg-open", []string{g.People[0].Link}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", g.People[0].Link}
	}
	if err := exec.CommandContext(ctx, name, args...).Run(); err != nil && ctx.Err() == nil {
		warn("the browser did not open: %w", fmt.Errorf("%s: %w", name, err))
	}
}
