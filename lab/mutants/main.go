// Package mutants tests the tests: it makes small faults in the code that decides, one at a time,
// and runs the tests that reach each.
//
//	go run ./lab mutants                     a sample of 300, and with -long of 1,000
//	go run ./lab mutants -only '^memstore/'  a sample of the mutants whose names match
//	go run ./lab mutants -n 500 -seed 2      another sample
//
// A mutant that no test notices survives. The command fails if fewer than 90 % of the mutants are
// killed, without those that equivalent.txt lists: a mutant that no test could distinguish from the
// code.
//
// All mutants of the sample are compiled at once: a function that is mutated gets one copy of its
// body for each mutant, and HEED_MUTANT selects which one runs. The sample has the mutants with the
// lowest hashes, so that a change of the code replaces only its own.
package mutants

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/lab/internal/kit"
)

const module = "github.com/heedhq/heed"

// Run runs the mutants of the sample, and returns an error where the tests notice too few.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	size := call.Count("n", 300, 1000, "mutants in the sample")
	seed := call.Int("seed", 1, "seed of the sample")
	only := call.String("only", "", "sample only the mutants whose names match this `pattern`")
	kit.Check(call.Parse())
	root, dir := kit.Must(os.Getwd()), kit.Must(os.MkdirTemp("", "mutants"))
	defer os.RemoveAll(dir) //nolint:errcheck // what is left is temporary
	matching := kit.Must(regexp.Compile(*only))
	start := time.Now()
	all := kit.Must(find(root, subjects, *seed))
	listed := kit.Must(readList(filepath.Join(root, "lab/mutants/equivalent.txt")))
	candidates := slices.DeleteFunc(slices.Clone(all),
		func(m *mutant) bool { return !matching.MatchString(m.key) || listed[m.key] })
	b := newBench(call.Out, root, dir)
	sample := b.compile(ctx, candidates[:min(len(candidates), *size+*size/3)], *size)
	fmt.Fprintf(call.Out, "%d mutants of %d in the sample, compiled after %.0fs\n", len(sample),
		len(all), time.Since(start).Seconds())
	b.judge(ctx, sample)
	fmt.Fprintf(call.Out, "after %.0fs\n", time.Since(start).Seconds())
	if !report(call.Out, sample) {
		return errors.New("the tests notice too few mutants")
	}
	return nil
}

// A bench compiles mutants and runs tests on them.
type bench struct {
	out                io.Writer
	root, dir, overlay string
	suites             map[string]*suite // by the directory of their package
}

func newBench(out io.Writer, root, dir string) *bench {
	return &bench{out: out, root: root, dir: dir, overlay: filepath.Join(dir, "overlay.json"),
		suites: make(map[string]*suite)}
}

// A suite is the tests of one package, with all mutants in it.
type suite struct {
	out             io.Writer
	name, dir, file string
	flags           []string
	tests           []*test
}

type test struct {
	name    string
	took    time.Duration // of processors
	kills   atomic.Int64
	reaches map[int]bool // mutants, by their numbers
}

var broken = regexp.MustCompile(`mutant(\d+)\.go:\d+`)

// compile returns the first n mutants that compile.
func (b *bench) compile(ctx context.Context, sample []*mutant, n int) []*mutant {
	for try := 0; ; try++ {
		out, err := b.goTool(ctx, b.root, "build", b.write(sample)...)
		if err == nil {
			return sample[:min(len(sample), n)]
		}
		faulty := map[int]bool{}
		for _, found := range broken.FindAllStringSubmatch(out, -1) {
			id, _ := strconv.Atoi(found[1])
			faulty[id] = true
		}
		if len(faulty) == 0 || try == 10 {
			kit.Check(fmt.Errorf("%w:\n%s", err, out))
		}
		sample = slices.DeleteFunc(sample, func(m *mutant) bool { return faulty[m.id] })
	}
}

// write writes the overlay, and returns the packages in it.
func (b *bench) write(sample []*mutant) (packages []string) {
	replace := make(map[string]string)
	put := func(file, text string) {
		to := filepath.Join(b.dir, strings.ReplaceAll(file, "/", "_"))
		kit.Check(os.WriteFile(to, []byte(text), 0o600))
		replace[filepath.Join(b.root, file)] = to
	}
	put("internal/heedmutant/heedmutant.go", switcher)
	files := map[string][]*mutant{}
	for _, m := range sample {
		files[m.file] = append(files[m.file], m)
	}
	for file, mutants := range files {
		src := kit.Must(os.ReadFile(filepath.Join(b.root, file)))
		put(file, mutated(string(src), mutants))
		packages = append(packages, "./"+filepath.Dir(file))
	}
	text := kit.Must(json.Marshal(map[string]any{"Replace": replace}))
	kit.Check(os.WriteFile(b.overlay, text, 0o600))
	slices.Sort(packages)
	return slices.Compact(packages)
}

func (b *bench) goTool(ctx context.Context, dir, verb string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{verb, "-overlay", b.overlay,
		"-gcflags=" + module + "/...=-e"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// judge runs the tests of each mutant's packages until one fails: the first package of all mutants,
// then the second of those that survive.
func (b *bench) judge(ctx context.Context, sample []*mutant) {
	for round, todo := 0, sample; len(todo) > 0; round++ {
		dirs := map[string][]*mutant{}
		for _, m := range todo {
			dirs[m.subject.tests[round]] = append(dirs[m.subject.tests[round]], m)
		}
		for _, dir := range slices.Sorted(maps.Keys(dirs)) {
			bin := b.suite(ctx, dir)
			kit.Parallel(ctx, len(dirs[dir]), func(i int) { dirs[dir][i].judge(ctx, bin) })
		}
		todo = slices.DeleteFunc(slices.Clone(todo),
			func(m *mutant) bool { return m.killer != "" || round+1 == len(m.subject.tests) })
	}
}

// suite compiles the tests of a package, runs each alone without a mutant, and notes how long it
// takes and what it reaches.
func (b *bench) suite(ctx context.Context, dir string) *suite {
	if b.suites[dir] != nil {
		return b.suites[dir]
	}
	file := filepath.Join(b.dir, strings.ReplaceAll(dir, "/", "_")+".test")
	bin := &suite{out: b.out, name: dir, dir: filepath.Join(b.root, dir), file: file}
	b.suites[dir] = bin
	if out, err := b.goTool(ctx, bin.dir, "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", file,
		"."); err != nil {
		kit.Check(fmt.Errorf("%s: %w\n%s", dir, err, out))
	}
	random := []string{"-rapid.seed=1", "-rapid.nofailfile"}
	if exec.CommandContext(ctx, file, append(random, "-test.list=^$")...).Run() == nil {
		bin.flags = random
	}
	names := kit.Must(exec.CommandContext(ctx, file, "-test.list="+
		cmp.Or(patterns[dir], "^(Test|Example|Fuzz)")).Output())
	for _, name := range strings.Fields(string(names)) {
		bin.tests = append(bin.tests, &test{name: name})
	}
	kit.Parallel(ctx, len(bin.tests), func(i int) { bin.trace(ctx, bin.tests[i]) })
	fmt.Fprintf(b.out, "%s: %d tests traced at %s\n", dir, len(bin.tests),
		time.Now().Format(time.TimeOnly))
	return bin
}

// trace runs a test without a mutant. Tests that fail are left out, and reported.
func (bin *suite) trace(ctx context.Context, t *test) {
	file := bin.file + "." + t.name
	failed, _, took := bin.run(ctx, []*test{t}, time.Minute, "HEED_MUTANT_TRACE="+file)
	if failed != nil {
		kit.Check(ctx.Err())
		fmt.Fprintf(bin.out, "%s fails without a mutant, and is left out\n", t.name)
		return
	}
	ids, err := os.ReadFile(file)
	if !os.IsNotExist(err) {
		kit.Check(err)
	}
	t.took, t.reaches = took, map[int]bool{}
	for _, field := range strings.Fields(string(ids)) {
		t.reaches[kit.Must(strconv.Atoi(field))] = true
	}
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// run runs tests in their package's directory, and returns the one that fails: the first of them if
// the output does not show it. Tests that take more than the limit of processor time, or 8 GB of
// memory, fail. The limit by the clock is for tests that wait forever; on a busy machine no other
// test comes near it.
func (bin *suite) run(ctx context.Context, tests []*test, limit time.Duration,
	env string) (failed *test, timedOut bool, took time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, max(20*limit, 2*time.Minute))
	defer cancel()
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	limits := fmt.Sprintf(`ulimit -v 8000000 -t %d; exec "$@"`, int(limit.Seconds())+1)
	args := []string{"-c", limits, "sh", bin.file, "-test.failfast",
		"-test.run=^(" + strings.Join(names, "|") + ")$"}
	cmd := exec.CommandContext(ctx, "bash", append(args, bin.flags...)...)
	cmd.Dir, cmd.WaitDelay = bin.dir, time.Second
	cmd.Env = append(os.Environ(), "HEED_LONG=", "HEED_ENGINES=unraced", env)
	out, err := cmd.CombinedOutput()
	took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err == nil {
		return nil, false, took
	}
	failed = tests[0]
	if found := failure.FindSubmatch(out); found != nil {
		failed = tests[max(0, slices.Index(names, string(found[1])))]
	}
	return failed, ctx.Err() != nil || took >= limit, took
}

const (
	together = time.Second // what tests take that one process runs
	late     = ", out of time"
)

// groups returns the tests that reach a mutant: those first that are quick and have killed many. A
// group is run by one process.
func (m *mutant) groups(bin *suite) (groups [][]*test) {
	costs := map[*test]time.Duration{}
	for _, t := range bin.tests {
		if t.reaches[m.id] {
			costs[t] = t.took / time.Duration(1+t.kills.Load())
		}
	}
	tests := slices.SortedStableFunc(slices.Values(bin.tests),
		func(x, y *test) int { return cmp.Compare(costs[x], costs[y]) })
	took := together
	for _, t := range tests {
		if _, reaches := costs[t]; !reaches {
			continue
		}
		if took += t.took; took > together {
			groups, took = append(groups, nil), t.took
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], t)
	}
	return groups
}

// judge runs the tests of a package that reach a mutant until one fails or does not end, and prints
// the result: which test killed the mutant, or which package's tests it survived.
func (m *mutant) judge(ctx context.Context, bin *suite) {
	for _, group := range m.groups(bin) {
		m.reached = true
		limit := 5 * time.Second
		for _, t := range group {
			limit += 5 * t.took
		}
		failed, timedOut, _ := bin.run(ctx, group, limit, "HEED_MUTANT="+strconv.Itoa(m.id))
		if failed == nil {
			continue
		}
		failed.kills.Add(1)
		if m.killer = bin.name + " " + failed.name; timedOut {
			m.killer += late
		}
		break
	}
	fmt.Fprintf(bin.out, "%-8s  %s:%d %s  [%s]\n", m.verdict(), m.file, m.line, m.change(),
		cmp.Or(m.killer, bin.name))
	kit.Check(ctx.Err())
}
