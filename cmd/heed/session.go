package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/alecthomas/kong"
)

// A session is one run of the command: what was asked for, and where the answer goes. It must not be used concurrently.
type session struct {
	*commands
	ctx     context.Context
	parser  *kong.Kong
	command string // the last word of its name
	in      *os.File
	out     *printer
}

func newSession(ctx context.Context, c *commands, parser *kong.Kong, command string) *session {
	return &session{c, ctx, parser, command, os.Stdin, newPrinter(os.Stdout, os.Environ())}
}

// An instant is a moment as the command line has it: a time, the beginning of a day in UTC, or nothing.
type instant struct{ time.Time }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (i *instant) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if i.Time, err = time.Parse(layout, string(text)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%q must be a time such as 2026-01-31T15:04:05Z, or a day such as 2026-01-31", text)
}

// now is the moment as at which the store is read.
func (s *session) now() time.Time {
	if s.Now.IsZero() {
		return time.Now()
	}
	return s.Now.Time
}

// answer writes a value as JSON if that was asked for, and else has it printed as text.
func (s *session) answer(value any, text func(*printer)) error {
	if s.JSON {
		var document bytes.Buffer
		encoder := json.NewEncoder(&document)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(value); err != nil {
			return err
		}
		s.out.printf("%s", escaped(document.String()))
		return s.out.err
	}
	text(s.out)
	return s.out.err
}

// escaped writes a document of JSON so that it does nothing to a terminal but be read: characters that do not print, such as C1 controls and
// marks of direction, are escaped as JSON has it. They are in strings alone.
func escaped(document string) string {
	var b strings.Builder
	for _, r := range document {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			first, second := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, first, second)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// errLimit refuses a --limit under which nothing would be shown.
var errLimit error = &usageError{"--limit must be 1 or more"}

// warn tells something that stops nothing.
func warn(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "heed: "+oneLine(fmt.Errorf(format, args...)))
}

// collect reads all that a list yields.
func collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// texts returns a text for each of a list.
func texts[T any](all []T, of func(T) string) (found []string) {
	for _, one := range all {
		found = append(found, of(one))
	}
	return found
}

// actor is who has something changed.
func actor(given string) string {
	if name := cmp.Or(given, os.Getenv("USER"), os.Getenv("USERNAME")); name != "" {
		return name
	}
	if account, err := user.Current(); err == nil && account.Username != "" {
		return account.Username
	}
	return "unknown"
}
