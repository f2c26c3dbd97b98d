package scorecard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A suite is some tests of a package of heed, that lines run.
type suite struct {
	dir string // below the root
	run string // the tests, as -test.run has them
}

// A change is an edit of heed's source. It is made in copies that go's -overlay compiles, and never in the tree. Each new text
// asks seeded("NAME"), which is true in a run that has the bug of that name.
type change struct {
	file     string // below the root
	old, new string // old stands there once
}

// A workshop compiles test binaries, one for each package. Each has all changes to what it tests, and they sleep until a run names them.
type workshop struct {
	changes map[string][]change // by the directory whose tests have them

	mu    sync.Mutex
	temp  string
	built map[string]*built
}

type built struct {
	once   sync.Once
	binary string
	err    error
}

// close removes all that was compiled.
func (w *workshop) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.temp == "" {
		return nil
	}
	temp := w.temp
	w.temp, w.built = "", nil
	return os.RemoveAll(temp)
}

// binary returns the test binary of a directory. flags are more flags for go test -c.
func (w *workshop) binary(ctx context.Context, root, dir string, flags ...string) (string, error) {
	key := strings.Join(append(flags, dir), " ")
	w.mu.Lock()
	if w.temp == "" {
		temp, err := os.MkdirTemp("", "scorecard")
		if err != nil {
			w.mu.Unlock()
			return "", err
		}
		w.temp, w.built = temp, make(map[string]*built)
	}
	b := w.built[key]
	if b == nil {
		b = &built{}
		w.built[key] = b
	}
	place := filepath.Join(w.temp, fmt.Sprint(len(w.built)))
	w.mu.Unlock()
	b.once.Do(func() { b.binary, b.err = w.compile(ctx, root, dir, place, flags) })
	return b.binary, b.err
}

func (w *workshop) compile(ctx context.Context, root, dir, place string, flags []string) (binary string, err error) {
	if err := os.MkdirAll(place, 0o700); err != nil {
		return "", err
	}
	binary = filepath.Join(place, "suite.test")
	args := append([]string{"test", "-c", "-vet=off", "-o", binary}, flags...)
	if changes := w.changes[dir]; len(changes) > 0 {
		overlay, err := overlaid(root, place, changes)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = filepath.Join(root, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, tail(out))
	}
	return binary, nil
}

var packageClause = regexp.MustCompile(`(?m)^package (\w+)$`)

// overlaid writes the changed files, and the list of them for go's -overlay.
func overlaid(root, place string, changes []change) (overlay string, err error) {
	texts := make(map[string]string) // by file
	for _, c := range changes {
		file := filepath.Join(root, c.file)
		if _, read := texts[file]; !read {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			texts[file] = string(text)
		}
		if n := strings.Count(texts[file], c.old); n != 1 {
			return "", fmt.Errorf("%s has %q %d times, and the scorecard wants to change it", c.file, c.old, n)
		}
		texts[file] = strings.Replace(texts[file], c.old, c.new, 1)
		name := packageClause.FindStringSubmatch(texts[file])[1]
		texts[filepath.Join(filepath.Dir(file), "scorecard_seeded.go")] = "package " + name + seeding
	}
	replace := make(map[string]string)
	for file, text := range texts {
		replace[file] = filepath.Join(place, fmt.Sprint(len(replace), ".go"))
		if err := os.WriteFile(replace[file], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(place, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// seeding is added to each package that is changed.
const seeding = `

import (
	"os"
	"runtime"
)

var seededBug = os.Getenv("` + seedVariable + `")

func seeded(name string) bool { return seededBug == name }

// dawdle lets others run, as waiting for a disk does.
func dawdle() bool { runtime.Gosched(); return true }

var _ = dawdle
`

const seedVariable = "HEED_SEEDED_BUG"

// A verdict is what a run of tests said.
type verdict struct {
	failed bool
	tests  int64 // that ran, with their subtests
	output []byte
}

// telling finds what a test binary prints of a test that fails, and of the runtime's own finds, such as concurrent writes to a map.
var telling = regexp.MustCompile(`(?m)^\s*--- FAIL: |^panic: |^fatal error: `)

// unclear reports whether the tests ran out of time, or died without saying why. That shows no bug.
func (v verdict) unclear() bool {
	return v.failed && (bytes.Contains(v.output, []byte("panic: test timed out")) || !telling.Match(v.output))
}

var started = regexp.MustCompile(`(?m)^=== RUN `)

// play runs the tests of a suite with a bug, or with none. It is an error if no test ran.
func (w *workshop) play(ctx context.Context, root string, t suite, bug string, args ...string) (verdict, error) {
	binary, err := w.binary(ctx, root, t.dir)
	if err != nil {
		return verdict{}, err
	}
	if t.drawsAtRandom(root) {
		args = append(args, "-rapid.nofailfile") // nothing is written into the tree
	}
	args = append([]string{"-test.v", "-test.run=" + t.run, "-test.timeout=2h"}, args...)
	v, err := execute(ctx, filepath.Join(root, t.dir), binary, []string{seedVariable + "=" + bug}, args...)
	v.tests = int64(len(started.FindAll(v.output, -1)))
	if err == nil && v.tests == 0 {
		err = fmt.Errorf("no test of %s ran for %s\n%s", t.dir, t.run, tail(v.output))
	}
	return v, err
}

// drawsAtRandom reports whether the tests of the package take the flags of rapid.
func (t suite) drawsAtRandom(root string) bool {
	files, _ := filepath.Glob(filepath.Join(root, t.dir, "*_test.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`)) {
			return true
		}
	}
	return false
}

// execute runs a program. That it fails is no error.
func execute(ctx context.Context, dir, program string, env []string, args ...string) (v verdict, err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), env...), time.Second
	v.output, err = cmd.CombinedOutput()
	v.failed = err != nil
	switch {
	case ctx.Err() != nil:
		return v, ctx.Err()
	case errors.As(err, new(*exec.ExitError)):
		return v, nil
	}
	return v, err
}

// sum adds up the numbers that a pattern's group finds in the output.
func (v verdict) sum(pattern *regexp.Regexp) (sum int64) {
	for _, found := range pattern.FindAllSubmatch(v.output, -1) {
		n, _ := strconv.ParseInt(string(found[1]), 10, 64)
		sum += n
	}
	return sum
}

// tail is the end of an output.
func tail(out []byte) []byte {
	const most = 2000
	return bytes.TrimSpace(out[max(0, len(out)-most):])
}
