// Command mutants tests the tests: it makes small faults in the code that decides, one at a time, and runs the tests that reach each.
//
//	go run ./.ci/mutants                     the sample; .ci/full runs it
//	go run ./.ci/mutants -only 'memstore/'   the mutants of the sample whose names match, for somebody who writes the missing test
//	go run ./.ci/mutants -n 1000 -seed 2     another sample
//
// A mutant that no test notices survives. Each survivor is either mended by a test or listed in survivors.txt with the reason. The
// command fails on a survivor that is not listed, and where fewer than 90 % of the mutants that are not equivalent are killed.
//
// All mutants of the sample are compiled at once: a function that is mutated gets one copy of its body for each mutant, and HEED_MUTANT
// says which one runs. The sample has the mutants with the lowest hashes, so that a change of the code replaces only its own.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const module = "github.com/heedhq/heed"

var (
	size    = flag.Int("n", 300, "mutants in the sample")
	seed    = flag.Int("seed", 1, "seed of the sample")
	only    = flag.String("only", "", "run only the mutants whose names match this regular expression, of the sample and of those next to it, and do not check the list")
	workers = flag.Int("p", 2, "tests that run at once")
)

func main() {
	flag.Parse()
	ok, err := run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context) (bool, error) {
	root, err := os.Getwd()
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	matching, err := regexp.Compile(*only)
	if err != nil {
		return false, err
	}
	start := time.Now()
	all, err := find(root, subjects, *seed)
	if err != nil {
		return false, err
	}
	b := &bench{root: root, dir: dir, overlay: filepath.Join(dir, "overlay.json"), suites: map[string]*suite{}}
	candidates := slices.DeleteFunc(slices.Clone(all[:min(len(all), *size+*size/3)]), func(m *mutant) bool { return !matching.MatchString(m.key) })
	sample, err := b.compile(ctx, candidates, *size)
	if err != nil {
		return false, err
	}
	fmt.Printf("%d mutants of %d in the sample, compiled after %.0fs\n", len(sample), len(all), time.Since(start).Seconds())
	if err := b.judge(ctx, sample); err != nil {
		return false, err
	}
	listed, err := readList(filepath.Join(root, ".ci/mutants/survivors.txt"))
	if err != nil {
		return false, err
	}
	ok := report(os.Stdout, sample, all, listed, *only != "")
	fmt.Printf("after %.0fs\n", time.Since(start).Seconds())
	return ok, nil
}

// A bench compiles mutants and runs tests on them.
type bench struct {
	root, dir, overlay string
	suites             map[string]*suite // by the directory of their package
}

// A suite is the tests of one package, with all mutants in it.
type suite struct {
	name, dir, file string
	flags           []string
	tests           []*test
}

type test struct {
	name    string
	took    time.Duration // of processors
	reaches map[int]bool  // mutants, by their numbers
}

var broken = regexp.MustCompile(`mutant(\d+)\.go:\d+`)

// compile returns the first n mutants that compile.
func (b *bench) compile(ctx context.Context, sample []*mutant, n int) ([]*mutant, error) {
	for try := 0; ; try++ {
		packages, err := b.write(sample)
		if err != nil {
			return nil, err
		}
		out, err := b.goTool(ctx, b.root, "build", packages...)
		if err == nil {
			return sample[:min(len(sample), n)], nil
		}
		faulty := map[int]bool{}
		for _, found := range broken.FindAllStringSubmatch(out, -1) {
			id, _ := strconv.Atoi(found[1])
			faulty[id] = true
		}
		if len(faulty) == 0 || try == 10 {
			return nil, fmt.Errorf("%w:\n%s", err, out)
		}
		sample = slices.DeleteFunc(sample, func(m *mutant) bool { return faulty[m.id] })
	}
}

// write writes the overlay, and returns the packages in it.
func (b *bench) write(sample []*mutant) ([]string, error) {
	replace := map[string]string{filepath.Join(b.root, "internal/heedmutant/heedmutant.go"): filepath.Join(b.dir, "heedmutant.go")}
	if err := os.WriteFile(filepath.Join(b.dir, "heedmutant.go"), []byte(switcher), 0o600); err != nil {
		return nil, err
	}
	files := map[string][]*mutant{}
	for _, m := range sample {
		files[m.file] = append(files[m.file], m)
	}
	var packages []string
	for file, mutants := range files {
		src, err := os.ReadFile(filepath.Join(b.root, file))
		if err != nil {
			return nil, err
		}
		to := filepath.Join(b.dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, mutated(string(src), mutants), 0o600); err != nil {
			return nil, err
		}
		replace[filepath.Join(b.root, file)] = to
		packages = append(packages, "./"+filepath.Dir(file))
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	slices.Sort(packages)
	return slices.Compact(packages), os.WriteFile(b.overlay, text, 0o600)
}

func (b *bench) goTool(ctx context.Context, dir, verb string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{verb, "-tags=mutants", "-overlay", b.overlay, "-gcflags=" + module + "/...=-e"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// judge runs the tests of each mutant's packages until one fails: the first package of all mutants, then the second of those that survive.
func (b *bench) judge(ctx context.Context, sample []*mutant) error {
	for round, todo := 0, sample; len(todo) > 0; round++ {
		dirs := map[string][]*mutant{}
		for _, m := range todo {
			dirs[m.subject.tests[round]] = append(dirs[m.subject.tests[round]], m)
		}
		for _, dir := range slices.Sorted(maps.Keys(dirs)) {
			bin, err := b.suite(ctx, dir)
			if err != nil {
				return err
			}
			err = inParallel(*workers, dirs[dir], func(m *mutant) error { return m.judge(ctx, bin, round+1 == len(m.subject.tests)) })
			if err != nil {
				return err
			}
		}
		todo = slices.DeleteFunc(slices.Clone(todo), func(m *mutant) bool { return m.killer != "" || round+1 == len(m.subject.tests) })
	}
	return nil
}

// suite compiles the tests of a package, runs each alone without a mutant, and notes how long it takes and what it reaches.
func (b *bench) suite(ctx context.Context, dir string) (*suite, error) {
	if b.suites[dir] != nil {
		return b.suites[dir], nil
	}
	bin := &suite{name: dir, dir: filepath.Join(b.root, dir), file: filepath.Join(b.dir, strings.ReplaceAll(dir, "/", "_")+".test")}
	b.suites[dir] = bin
	if out, err := b.goTool(ctx, bin.dir, "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", bin.file, "."); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", dir, err, out)
	}
	if random := []string{"-rapid.seed=1", "-rapid.nofailfile"}; exec.CommandContext(ctx, bin.file, append(random, "-test.list=^$")...).Run() == nil {
		bin.flags = random
	}
	names, err := exec.CommandContext(ctx, bin.file, "-test.list="+cmp.Or(patterns[dir], "^(Test|Example|Fuzz)")).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	for _, name := range strings.Fields(string(names)) {
		bin.tests = append(bin.tests, &test{name: name})
	}
	if err := inParallel(*workers, bin.tests, func(t *test) error { return bin.trace(ctx, t) }); err != nil {
		return nil, err
	}
	slices.SortStableFunc(bin.tests, func(x, y *test) int { return cmp.Compare(x.took, y.took) })
	fmt.Printf("%s: %d tests traced at %s\n", dir, len(bin.tests), time.Now().Format(time.TimeOnly))
	return bin, nil
}

// trace runs a test without a mutant. Tests that fail are left out, and reported.
func (bin *suite) trace(ctx context.Context, t *test) error {
	file := bin.file + "." + t.name
	passed, _, took := bin.run(ctx, []*test{t}, time.Minute, "HEED_MUTANT_TRACE="+file)
	if !passed {
		fmt.Printf("%s fails without a mutant, and is left out\n", t.name)
		return ctx.Err()
	}
	ids, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	t.took, t.reaches = took, map[int]bool{}
	for _, field := range strings.Fields(string(ids)) {
		id, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		t.reaches[id] = true
	}
	return nil
}

// run runs tests in their package's directory. Tests that take more than the limit of processor time, or 8 GB of memory, fail. The limit by the
// clock is for tests that wait forever; on a busy machine no other test comes near it.
func (bin *suite) run(ctx context.Context, tests []*test, limit time.Duration, env string) (passed, timedOut bool, took time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, max(100*limit, 10*time.Minute))
	defer cancel()
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	limits := fmt.Sprintf(`ulimit -v 8000000 -t %d; exec "$@"`, int(limit.Seconds())+1)
	args := []string{"-c", limits, "sh", bin.file, "-test.failfast", "-test.run=^(" + strings.Join(names, "|") + ")$"}
	cmd := exec.CommandContext(ctx, "bash", append(args, bin.flags...)...)
	cmd.Dir, cmd.WaitDelay = bin.dir, time.Second
	cmd.Env = append(os.Environ(), "HEED_LONG=", "HEED_ENGINES=unraced", env)
	err := cmd.Run()
	took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return err == nil, err != nil && (ctx.Err() != nil || took >= limit), took
}

const (
	quick = 50 * time.Millisecond
	late  = ", out of time"
)

// judge runs the tests of a package that reach a mutant, the quick ones first, until one fails or does not end.
func (m *mutant) judge(ctx context.Context, bin *suite, last bool) error {
	var groups [][]*test
	for _, t := range bin.tests {
		switch {
		case !t.reaches[m.id]:
		case len(groups) > 0 && t.took < quick:
			groups[0] = append(groups[0], t)
		default:
			groups = append(groups, []*test{t})
		}
	}
	for _, group := range groups {
		m.reached = true
		limit := 5 * time.Second
		for _, t := range group {
			limit += 5 * t.took
		}
		passed, timedOut, _ := bin.run(ctx, group, limit, "HEED_MUTANT="+strconv.Itoa(m.id))
		if passed {
			continue
		}
		if m.killer = bin.name + " " + group[0].name; len(group) > 1 {
			m.killer = bin.name + ", a quick test"
		}
		if timedOut {
			m.killer += late
		}
		break
	}
	if m.killer != "" || last {
		fmt.Printf("%-8s  %s:%d %s  [%s]\n", m.verdict(), m.file, m.line, m.change(), m.killer)
	}
	return ctx.Err()
}

// inParallel calls do for each item, n at once, and returns the first error.
func inParallel[T any](n int, items []T, do func(T) error) error {
	var all sync.WaitGroup
	errs, slots := make(chan error, len(items)), make(chan struct{}, n)
	for _, item := range items {
		slots <- struct{}{}
		all.Go(func() { errs <- do(item); <-slots })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
