package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/heedhq/heed/store"
)

// A change is what every command that changes something takes.
type change struct {
	Reason string `placeholder:"TEXT" help:"The reason, for the audit. On a terminal the command asks for it."`
	Actor  string `env:"HEED_ACTOR" placeholder:"NAME" help:"Who wants the change, for the audit. By default the user of the system."`
	Yes    bool   `short:"y" help:"Do not ask. Needed if there is no terminal."`
}

// confirm tells what is about to happen. It returns no error if the user wants that and gives a reason. It asks on the terminal,
// and never through a pipe.
func (c *change) confirm(s *session, about string) error {
	if !s.Now.IsZero() {
		return &usageError{"a change happens now: leave out --now and HEED_NOW"}
	}
	asks := term.IsTerminal(s.in.Fd()) && term.IsTerminal(os.Stderr.Fd())
	c.Reason = strings.TrimSpace(c.Reason)
	switch {
	case !c.Yes && !asks:
		return &usageError{about + ". There is no terminal to ask: say --yes if you want it"}
	case c.Reason == "" && !asks:
		return &usageError{"the audit needs a reason: give one with --reason"}
	}
	answers := bufio.NewReader(s.in)
	if !c.Yes {
		switch answer, err := ask(s.ctx, answers, wrap(about+". Go on? [y/N]", terminalWidth(os.Stderr))+" "); strings.ToLower(answer) {
		case "y", "yes":
		default:
			return cmp.Or(err, errors.New("nothing was changed"))
		}
	}
	if c.Reason == "" {
		var err error
		if c.Reason, err = ask(s.ctx, answers, "Why? "); c.Reason == "" {
			return cmp.Or(err, errors.New("nothing was changed, as the audit needs a reason"))
		}
	}
	c.Actor = actor(c.Actor)
	return nil
}

// ask asks on the terminal, and returns what is answered before the end of the context.
func ask(ctx context.Context, answers *bufio.Reader, question string) (string, error) {
	fmt.Fprint(os.Stderr, question)
	answered := make(chan string, 1)
	go func() {
		answer, err := answers.ReadString('\n')
		if err != nil {
			fmt.Fprintln(os.Stderr) // the end of the input has ended no line
		}
		answered <- strings.TrimSpace(answer)
	}()
	select {
	case answer := <-answered:
		return answer, nil
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr)
		return "", fmt.Errorf("%w: nothing was changed", errInterrupted)
	}
}

// entry is what the audit has of a change.
func (c *change) entry(action, subject string, details map[string]string) store.AuditEntry {
	return store.AuditEntry{
		ID: rand.Text(), At: time.Now(), Actor: c.Actor, Action: action, Subject: subject, Reason: c.Reason, Details: details,
	}
}
