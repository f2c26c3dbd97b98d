package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/heedhq/heed/evidence"
)

// A change is what every command that changes something takes.
type change struct {
	Reason string `placeholder:"TEXT" help:"Why. It is in the audit; a terminal is asked for it."`
	Actor  string `env:"HEED_ACTOR" placeholder:"NAME" help:"Who wants it, for the audit (by default the user of the system)."`
	Yes    bool   `short:"y" help:"Do it without asking. Needed where there is no terminal to ask."`
}

// confirm tells what is about to happen, and returns without an error if that is wanted and there is a reason. What is asked
// is asked on the terminal, and never of a pipe.
func (c *change) confirm(s *session, about string) error {
	if !s.Now.IsZero() {
		return &usageError{"what is changed is changed now: leave out --now"}
	}
	asks := term.IsTerminal(s.in.Fd()) && term.IsTerminal(os.Stderr.Fd())
	c.Reason = strings.TrimSpace(c.Reason)
	switch {
	case !c.Yes && !asks:
		return &usageError{about + ": there is no terminal to ask: say --yes if it is what you want"}
	case c.Reason == "" && !asks:
		return &usageError{"the audit needs a reason: give one with --reason"}
	}
	answers := bufio.NewReader(s.in)
	if !c.Yes {
		fmt.Fprintf(os.Stderr, "%s. Go on? [y/N] ", about)
		switch answer, _ := answers.ReadString('\n'); strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
		default:
			return errors.New("nothing was changed")
		}
	}
	if c.Reason == "" {
		fmt.Fprint(os.Stderr, "Why? ")
		answer, _ := answers.ReadString('\n')
		if c.Reason = strings.TrimSpace(answer); c.Reason == "" {
			return errors.New("nothing was changed, as the audit needs a reason")
		}
	}
	c.Actor = actor(c.Actor)
	return nil
}

// record writes into the audit what somebody wanted and confirmed, where the packages don't.
func (s *store) record(on *session, c *change, action, subject string, details map[string]string) error {
	_, err := s.evidence.Commit(on.ctx, evidence.Batch{Audit: []evidence.AuditEntry{{
		ID: rand.Text(), At: time.Now(), Actor: c.Actor, Action: action, Subject: subject, Reason: c.Reason, Details: details,
	}}})
	return err
}
