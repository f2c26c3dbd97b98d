// Package card runs the lines of the reliability scorecard and judges them. It does not depend on
// heed.
//
// A line attacks one promise. It measures values that must reach their bars, and it has controls:
// unsafe variants of the same thing, which the same attack must catch. A line that a control
// survives is no proof, so it fails.
package card

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"
)

// A Line is one promise and the attack on it.
type Line struct {
	Name     string // "S2"; several lines may share a number: "S2 SQLite"
	Promise  string // one plain sentence
	Attack   string // how the line attacks it, in one or two sentences
	Bars     []Bar  // what all values must reach
	Short    Form
	Long     Form
	Run      Attempt
	Controls []Control // at least one
}

// A Form is what a short or a long run must do.
type Form struct {
	Work   int64         // the least that must be done, in the unit of the line
	Faults int64         // the fewest faults that must be injected
	Budget time.Duration // of the attack and its controls, on a busy machine
}

// A Bar is the most that a value may be.
type Bar struct {
	Name string // of the value, with its unit: "outcomes lost"
	Most float64
}

// None returns the bars of values that must be 0.
func None(names ...string) (bars []Bar) {
	for _, name := range names {
		bars = append(bars, Bar{Name: name})
	}
	return bars
}

func (b Bar) String() string { return "≤ " + number(b.Most) }

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// An Attempt attacks once. It ends soon after its context. An error means that the attack could not
// be made: it is no measurement, and it fails the line. [Skip] makes an error for a machine that
// lacks what the line needs.
type Attempt func(ctx context.Context, s Settings) (Result, error)

// A Control is an unsafe variant, which must miss a bar of its line.
type Control struct {
	Name   string   // what is unsafe about it
	Misses []string // the names of the bars that it must miss, all of them; empty: any one
	Run    Attempt
}

// Settings are what a line is run with.
type Settings struct {
	Long bool
	Seed uint64 // all randomness of the line comes from it
	// Patience multiplies the budgets, for a machine that is busy with something else. 0 means 1.
	Patience int
	name     string
}

// Rand returns the randomness of the line, the same for the same seed. Workers of a line take one
// stream each.
func (s Settings) Rand(worker int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.name))
	return rand.New(rand.NewPCG(s.Seed, h.Sum64()+uint64(worker)))
}

// Pick returns short or long, by the length of the run.
func Pick[T any](s Settings, short, long T) T {
	if s.Long {
		return long
	}
	return short
}

// A Result is what an attack measured.
type Result struct {
	Values map[string]float64 // by the names of the bars
	Work   int64              // operations, rounds, inputs
	Faults int64              // kills, failed calls, hostile inputs
	Notes  []string           // what explains why a line failed
}

// Note adds a line to the notes, up to 20.
func (r *Result) Note(format string, args ...any) {
	if len(r.Notes) < 20 {
		r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
	}
}

var errSkipped = errors.New("skipped")

// Skip returns the error of an attempt that this machine can't make.
func Skip(reason string) error { return fmt.Errorf("%w: %s", errSkipped, reason) }
