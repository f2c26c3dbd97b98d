package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"reflect"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
)

// A session is one run of the command: what was asked for, and where the answer goes. It must not
// be used concurrently.
type session struct {
	*commands
	ctx     context.Context
	command string // the last word of its name
	out     *printer
	at      *opened // the store, once it is open
	begins  bool    // whether a --tenant may be new
}

// An instant is a moment of the command line: a time, the beginning of a day in UTC, or the zero
// time.
type instant struct{ time.Time }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (i *instant) UnmarshalText(text []byte) (err error) {
	i.Time, err = view.Moment(string(text), 0)
	return err
}

// now is the moment as at which the store is read.
func (s *session) now() time.Time {
	if s.Now.IsZero() {
		return time.Now()
	}
	return s.Now.Time
}

// answer writes a value as JSON if that was asked for, and else by the template of a name.
func (s *session) answer(value any, name string) error {
	if !s.JSON {
		return s.out.render(name, value)
	}
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	s.out.write(escaped(document.String()))
	return s.out.err
}

// told writes a value as JSON, or otherwise a line of text.
func (s *session) told(value any, format string, args ...any) error {
	if s.JSON {
		return s.answer(value, "")
	}
	s.out.line(format, args...)
	return s.out.err
}

// escaped escapes the characters of a text that do not print, such as C1 controls and marks of
// direction, because a terminal may obey them. In a JSON document only strings have such
// characters, and so it stays JSON.
func escaped(document string) string {
	var b strings.Builder
	for _, r := range document {
		if r == '\n' || !unprintable(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// listed reads a list from what with opens, and writes it by the template of a name. If no host
// opened what it is read from, the list is empty.
func listed[T any](
	s *session, with func(*session, func(*view.Source) error) error, what, name string,
	read func(*view.Source) ([]T, error),
) error {
	var all []T
	err := with(s, func(v *view.Source) (err error) {
		all, err = read(v)
		return err
	})
	switch {
	case len(all) > 0 && (err == nil || errors.Is(err, heed.ErrDamaged)): // what is sound
		return cmp.Or(s.answer(all, name), err)
	case err != nil && !errors.Is(err, errNone):
		return err
	}
	return s.told([]T{}, "There are no %v here.", what)
}

// showOne reads one thing from what with opens, and writes what is sound of it by a template.
func showOne[T any](
	s *session, with func(*session, func(*view.Source) error) error, name string,
	read func(*view.Source) (T, error),
) error {
	return with(s, func(v *view.Source) error {
		one, err := read(v)
		if err != nil && (!errors.Is(err, heed.ErrDamaged) || reflect.ValueOf(one).IsZero()) {
			return err
		}
		return cmp.Or(s.answer(&one, name), err)
	})
}

// An atMost is a number of things to show.
type atMost int

// Validate implements the check of package kong.
func (n atMost) Validate() error {
	if n < 1 {
		return errors.New("must be 1 or more")
	}
	return nil
}

// warn prints a warning and goes on.
func warn(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "heed: "+oneLine(fmt.Errorf(format, args...)))
}

// paged reads what a query selects part by part, up to a number of elements. If some are damaged,
// it returns the others with [heed.ErrDamaged].
func paged[P view.Paged[Query], Query, T any](
	s *session, most atMost, q Query, read func(context.Context, Query) (view.List[T], error),
) (all []T, err error) {
	var damaged view.Names
	for after := ""; ; {
		P(&q).Turn(view.Page{After: after, Limit: int(most) - len(all)})
		part, err := read(s.ctx, q)
		all, damaged = append(all, part.Items...), append(damaged, part.Damaged...)
		if after = part.Next; err != nil || after == "" || len(all) >= int(most) {
			return all, cmp.Or(err, damaged.Err())
		}
	}
}

// items returns the elements of a list, with [heed.ErrDamaged] if damaged ones are left out.
func items[T any](l view.List[T], err error) ([]T, error) {
	return l.Items, cmp.Or(err, l.Damaged.Err())
}

// texts returns a text for each of a list.
func texts[T any](all []T, of func(T) string) (found []string) {
	for _, one := range all {
		found = append(found, of(one))
	}
	return found
}

// A change is what every command that changes something takes.
type change struct {
	Reason string `placeholder:"TEXT"`
	Actor  string `env:"HEED_ACTOR" placeholder:"NAME"`
	Yes    bool   `short:"y"`
}

// confirm returns no error if the user wants a change and gives a reason. Otherwise the error
// describes what would happen.
func (c *change) confirm(s *session, format string, args ...any) error {
	c.Reason, c.Actor = strings.TrimSpace(c.Reason), actor(c.Actor)
	switch {
	case !s.Now.IsZero():
		return &usageError{"a change happens now: leave out --now and HEED_NOW"}
	case !c.Yes:
		return &usageError{string(say(format, args...)) + ". Nothing was changed: say --yes and " +
			"--reason if you want it"}
	case c.Reason == "":
		return &usageError{"the audit needs a reason: give one with --reason"}
	}
	return nil
}

// actor is who has something changed.
func actor(given string) string {
	name := cmp.Or(given, os.Getenv("USER"), os.Getenv("USERNAME"))
	if account, err := user.Current(); name == "" && err == nil {
		name = account.Username
	}
	return cmp.Or(name, "unknown")
}
