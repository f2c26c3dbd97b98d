// Package measure prints how large the tree is and its budgets, and fails if one is exceeded:
//
//	go run ./lab measure
//
// It reads the Go files below the current directory that are no tests. A row without a mark meets
// its budget. A row marked "to go" is over the budget, but not larger than the last time somebody
// wrote its size down; anything above that fails, so what was made smaller stays small.
package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A budget bounds one figure. Limit is what must not be exceeded now; it is above most only as long
// as the figure is.
type budget struct {
	most, limit int
}

// budgets are the bounds of all figures, by name, in the order of the page.
var budgets = []struct {
	name string
	budget
}{
	{"library: code lines", budget{34_000, 37_562}},
	{"library: code for 100 lines of comments", budget{400, 400}},
	// This is 6,300 lines with blanks and one comment for nine lines of code. More comments cost
	// nothing.
	{"sqlstore: code lines", budget{5_370, 5_281}},
	{"suites: lines", budget{5_500, 7_076}},
	{"command, pages, API, MCP: lines", budget{9_400, 10_316}},
	{"adapters, streams: lines", budget{5_000, 5_527}},
	{"lab: lines", budget{9_000, 8_995}},
	{"all: lines", budget{80_000, 92_000}},
	{"library: exported names", budget{600, 727}},
	{"library: settings", budget{200, 193}},
	{"loop.Config: fields", budget{20, 20}},
	{"loop.Config: settings reached", budget{150, 143}},
	{"internal: packages", budget{16, 16}},
	{"functions over 60 lines", budget{0, 0}},
	{"lines over 100 columns", budget{0, 0}},
}

// Run prints the sizes of the tree below the current directory, and returns an error if a budget is
// exceeded.
func Run(_ context.Context, call *kit.Call) error {
	packages := call.Bool("packages", false, "print each package as well")
	if err := call.Parse(); err != nil {
		return err
	}
	t, err := read(os.DirFS("."))
	if err != nil {
		return err
	}
	if *packages {
		t.printPackages(call.Out)
	}
	if !report(call.Out, t.figures()) {
		for _, f := range t.long {
			fmt.Fprintln(call.Out, f)
		}
		return errors.New("a budget is exceeded")
	}
	return nil
}

// report prints the figures and their budgets, and reports whether all are within their limits.
func report(to io.Writer, figures map[string]int) bool {
	met := true
	fmt.Fprintf(to, "%-40s %7s %7s\n", "", "has", "budget")
	for _, b := range budgets {
		mark, n := "", figures[b.name]
		switch {
		case n > b.limit:
			mark, met = fmt.Sprintf("  more than the %d allowed now", b.limit), false
		case n > b.most:
			mark = "  to go"
		}
		fmt.Fprintf(to, "%-40s %7d %7d%s\n", b.name, n, b.most, mark)
	}
	return met
}
