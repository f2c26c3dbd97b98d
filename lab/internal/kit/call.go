// Package kit is what the programs of the lab share: how they are called, run in parallel, and
// report.
package kit

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// ErrUsage marks errors in how a program was called.
var ErrUsage = errors.New("see -help")

// A Call is how a program was called. The embedded flag set takes the program's own flags, which
// must be declared before [Call.Parse].
type Call struct {
	*flag.FlagSet
	Long  bool     // whether the long form is wanted: all that takes more than a minute
	Names []string // the arguments that are no flags
	Out   io.Writer

	args   []string
	counts []*count
}

// A count is a number that depends on the form, unless the call sets it.
type count struct {
	name        string
	value       *int
	short, long int
}

// Count declares a flag for a number above 0, which the two forms have different defaults for.
func (c *Call) Count(name string, short, long int, usage string) *int {
	usage += fmt.Sprintf(" (default %d, and %d with -long)", short, long)
	n := &count{name: name, value: c.Int(name, 0, usage), short: short, long: long}
	c.counts = append(c.counts, n)
	return n.value
}

// settle gives the counts that the call does not set their defaults.
func (c *Call) settle() error {
	said := make(map[string]bool)
	c.Visit(func(f *flag.Flag) { said[f.Name] = true })
	for _, n := range c.counts {
		if !said[n.name] {
			*n.value = c.Pick(n.short, n.long)
		}
		if *n.value < 1 {
			return c.Usage("-%s %d must be at least 1", n.name, *n.value)
		}
	}
	return nil
}

// NewCall returns a call with these arguments.
func NewCall(name string, out io.Writer, args ...string) *Call {
	c := &Call{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), Out: out, args: args}
	c.SetOutput(io.Discard)
	c.BoolVar(&c.Long, "long", false, "the long form")
	return c
}

// Parse parses the arguments of a program that takes flags only.
func (c *Call) Parse() error {
	if err := c.ParseNames(); err != nil {
		return err
	}
	if len(c.Names) > 0 {
		return c.Usage("unexpected argument %q", c.Names[0])
	}
	return nil
}

// ParseNames parses the arguments of a program that takes names, before its flags or after them.
func (c *Call) ParseNames() error {
	for rest := c.args; ; {
		if err := c.FlagSet.Parse(rest); err != nil {
			return fmt.Errorf("%w%.0w", err, ErrUsage)
		}
		if c.NArg() == 0 {
			return c.settle()
		}
		c.Names, rest = append(c.Names, c.Arg(0)), c.Args()[1:]
	}
}

// Usage returns an error that is an [ErrUsage].
func (c *Call) Usage(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrUsage)...)
}

// Command is the command line of the call, for pages that it writes.
func (c *Call) Command() string {
	return strings.Join(append(strings.Fields("go run ./lab "+c.Name()), c.args...), " ")
}

// Pick returns the number for the form that is run.
func (c *Call) Pick(short, long int) int {
	if c.Long {
		return long
	}
	return short
}

// ExitCode returns the code with which a program ends that returned this error.
func ExitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		return 2
	default:
		return 1
	}
}

// DrawProgress draws progress on standard error from now on, and only if that is a terminal.
func DrawProgress() {
	info, err := os.Stderr.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return
	}
	Progress = func(done, of int) {
		const width = 40
		full := done * width / of
		bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
		fmt.Fprintf(os.Stderr, "\r%s %d/%d", bar, done, of)
		if done == of {
			fmt.Fprintf(os.Stderr, "\r%*s\r", width+20, "")
		}
	}
}
