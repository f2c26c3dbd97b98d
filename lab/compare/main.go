// Package compare compares two files with results of go test -bench, whose runs were made in
// pairs: `go run ./lab compare base.txt head.txt`. It prints the medians, and the geometric
// mean of the paired ratios with a 95 % interval of Student's t over the logarithms. An interval
// above 1 is marked as worse, and one below 1 as better.
package compare

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heedhq/heed/lab/internal/kit"
)

// The figures that are compared, in the order of the table.
var units = []string{
	"cpu-ms/op", "server-cpu-ms/op", "written-B/op", "growth-B/op", "statements/op",
	"reads/op", "finds/op", "commits/op", "B/op", "allocs/op",
}

// Run compares the two files that the call names.
func Run(_ context.Context, call *kit.Call) error {
	if err := call.ParseNames(); err != nil {
		return err
	}
	if len(call.Names) != 2 {
		return call.Usage("name two files")
	}
	base, err := read(call.Names[0])
	if err != nil {
		return err
	}
	head, err := read(call.Names[1])
	if err != nil {
		return err
	}
	fmt.Fprintln(call.Out, "| engine | benchmark | figure | base | head | head/base | 95 % | |")
	fmt.Fprintln(call.Out, "|---|---|---|--:|--:|--:|---|---|")
	for _, name := range slices.Sorted(maps.Keys(base)) {
		for _, unit := range units {
			a, b := base[name][unit], head[name][unit]
			if len(a) > 0 && len(a) == len(b) && slices.Max(a)+slices.Max(b) > 0 {
				fmt.Fprintf(call.Out, "| %s | %s | %s\n", name, unit, compared(a, b))
			}
		}
	}
	return nil
}

var benchmark = regexp.MustCompile(`^Benchmark(.*)/store=([^/]+)-\d+\s+\d+\s+(.*)$`)

// read returns the values of each benchmark, by engine and name, and by unit, one for each run.
func read(file string) (map[string]map[string][]float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string][]float64)
	for line := range strings.Lines(string(text)) {
		parts := benchmark.FindStringSubmatch(strings.TrimSpace(line))
		if parts == nil {
			continue
		}
		name := parts[2] + " | " + strings.ReplaceAll(parts[1], "/", " ")
		if all[name] == nil {
			all[name] = make(map[string][]float64)
		}
		fields := strings.Fields(parts[3])
		for i := 0; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				all[name][fields[i+1]] = append(all[name][fields[i+1]], value)
			}
		}
	}
	return all, nil
}

// compared returns the last columns of a row: the medians, the ratio and its interval.
func compared(base, head []float64) string {
	medians := number(median(base)) + " | " + number(median(head))
	n, sum, squares := float64(len(base)), 0.0, 0.0
	for i := range base {
		l := math.Log(head[i] / base[i])
		sum, squares = sum+l, squares+l*l
	}
	ratio := math.Exp(sum / n)
	if n < 2 || math.IsNaN(ratio) || math.IsInf(ratio, 0) || ratio == 0 {
		return medians + " | – | – | |"
	}
	half := quantile(n-1) * math.Sqrt(max(0, squares-sum*sum/n)/(n-1)/n)
	least, most, verdict := ratio*math.Exp(-half), ratio*math.Exp(half), ""
	if least > 1.0005 {
		verdict = "worse"
	} else if most < 0.9995 {
		verdict = "better"
	}
	return fmt.Sprintf("%s | %.3f | %.3f to %.3f | %s |", medians, ratio, least, most, verdict)
}

// quantile returns the 97.5 % quantile of Student's t with v degrees of freedom: Abramowitz and
// Stegun, 26.7.5. It is exact to a percent from four degrees on.
func quantile(v float64) float64 {
	const z = 1.959963984540054
	z3, z5, z7 := z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

func number(x float64) string {
	if x >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
