package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/internal/conformance"
)

type checker = conformance.Checker

// failures returns what a check reports.
func failures(check func(*checker)) string {
	rule := conformance.Rule[string]{Name: "rule", Check: func(t testing.TB, s string) {
		check(&checker{TB: t, Prefix: s})
	}}
	if err := conformance.Check([]conformance.Rule[string]{rule}, "after this: "); err != nil {
		return regexp.MustCompile("checker_test.go:[0-9]+: ").ReplaceAllString(err.Error(), "")
	}
	return ""
}

func TestChecker(t *testing.T) {
	assert.Empty(t, failures(func(c *checker) {
		c.Must("Call", nil)
		c.Check(true, "no")
		c.Equal("a number", 2.0, 2)
		c.Equal("a count", uint64(2), 2)
		c.Equal("a list", []string{}, nil)
		c.Equal("a list", []string(nil), []string{})
		c.Equal("a list", []string{"a"}, []string{"a"})
		c.Equal("nothing", nil, nil)
	}))
	for want, check := range map[string]func(*checker){
		"Call: no":                   func(c *checker) { c.Must("Call", errors.New("no")) },
		"1 of 2":                     func(c *checker) { c.Check(false, "%d of %d", 1, 2) },
		"a number: 2.5, want 2":      func(c *checker) { c.Equal("a number", 2.5, 2) },
		"a text: 2, want 2":          func(c *checker) { c.Equal("a text", "2", 2) },
		"a list: [a], want <nil>":    func(c *checker) { c.Equal("a list", []string{"a"}, nil) },
		"a list: <nil>, want [a]":    func(c *checker) { c.Equal("a list", nil, []string{"a"}) },
		"a truth: false, want true":  func(c *checker) { c.Equal("a truth", false, true) },
		"a name: not a %d, want a %": func(c *checker) { c.Equal("a name", "not a %d", "a %") },
	} {
		assert.Equal(t, "rule: after this: "+want, failures(check))
	}
}

// A fixture has a verb, whose failures are those of its caller.
type fixture struct{ checker }

func (f *fixture) has(n int) { f.Equal("the number", n, 1) }

func TestFailuresNameTheLineOfTheRule(t *testing.T) {
	_, _, line, _ := runtime.Caller(0)
	rule := conformance.Rule[int]{Name: "rule", Check: func(t testing.TB, n int) {
		f := &fixture{checker{TB: t}}
		f.has(n)
	}}
	err := conformance.Check([]conformance.Rule[int]{rule}, 2)
	want := fmt.Sprintf("rule: checker_test.go:%d: the number: 2, want 1", line+3)
	assert.EqualError(t, err, want)
}

// spy is a test that keeps what was reported.
type spy struct {
	testing.TB
	told []string
}

func (s *spy) Errorf(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

// A test's Errorf writes the line of the rule that calls it, so the message has no second one.
func TestATestNamesTheLineOnce(t *testing.T) {
	s := &spy{TB: t}
	f := &fixture{checker{TB: s}}
	f.Equal("the number", 2, 1)
	f.has(2)
	assert.Equal(t, "the number: 2, want 1", s.told[0])
	assert.Regexp(t, `^checker_test.go:\d+: the number: 2, want 1$`, s.told[1])
}

// A panic of an implementation fails its rule, on the check's goroutine and on others.
func TestPanicsAreFailures(t *testing.T) {
	for _, check := range []func(*checker){
		func(*checker) { panic("out of order") },
		func(c *checker) { c.AtOnce(2, func(int) { panic("out of order") }) },
		func(c *checker) {
			c.Must("Call", c.EndsInTime(func(context.Context) error { panic("out of order") }))
		},
	} {
		assert.Contains(t, failures(check), "out of order")
	}
}

func TestEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		assert.Empty(t, failures(func(c *checker) {
			err := c.EndsInTime(func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			c.Equal("the error", err, context.DeadlineExceeded)
		}))
		assert.Equal(t, "rule: after this: it has not returned 5 s after its context was done",
			failures(func(c *checker) {
				_ = c.EndsInTime(func(context.Context) error {
					time.Sleep(6 * time.Second)
					return nil
				})
			}))
		time.Sleep(time.Second) // until that call returns
	})
}
