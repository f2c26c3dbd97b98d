package mutants

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var project = map[string]string{
	"go.mod": "module " + module + "\n\ngo 1.25.0\n",
	"sum/sum.go": `package sum

import "errors"

const most = 3

type Sum struct{ n, calls int }

func (s Sum) String() string { return string(rune('0' + s.n)) }

func (s *Sum) Add(ns ...int) error {
	s.calls++
each:
	for _, n := range ns {
		for n > most {
			continue each // too large
		}
		if n < 0 {
			return errors.New("negative")
		}
		s.n += n
	}
	return nil
}
`,
	"sum/sum_test.go": `package sum

import "testing"

func TestAdd(t *testing.T) {
	var s Sum
	if s.Add(9, 1, 2) != nil || s.n != 3 || s.Add(-1) == nil {
		t.Fatal(s.n)
	}
}
`,
}

// TestMutantsOfAProject makes all mutants of a small project. Its test knows nothing of the calls,
// nor of the bounds.
func TestMutantsOfAProject(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "sum"), 0o700))
	for name, text := range project {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	t.Setenv("GOWORK", "off")
	all, err := find(root, []subject{{"sum", nil, []string{"sum"}}}, nil, 1)
	require.NoError(t, err)
	b := &bench{out: io.Discard, workers: 2, root: root, dir: dir, overlay: filepath.Join(dir,
		"overlay.json"), suites: map[string]*suite{}}
	sample, err := b.compile(t.Context(), all, 100)
	require.NoError(t, err)
	require.NoError(t, b.judge(t.Context(), sample))

	var survivors, killed []string
	for _, m := range sample {
		if text := strings.TrimPrefix(m.key, "sum/sum.go Sum.Add: "); m.killer == "" {
			survivors = append(survivors, text)
		} else {
			killed = append(killed, text)
		}
	}
	assert.ElementsMatch(t, []string{
		"s.calls++ → s.calls--", "for n > most { → for n >= most {",
		"for n > most { → for n > (most*2 + 1) {", "if n < 0 { → if n <= 0 {",
		"if n < 0 { → if n < (0 + 1) {",
	}, survivors)
	assert.ElementsMatch(t, []string{
		"for n > most { → for n <= most {", "continue each → break each",
		"if n < 0 { → if true || n < 0 {", "if n < 0 { → if false && n < 0 {",
		"if n < 0 { → if n >= 0 {", "if n < 0 { → if n < (0 - 1) {", `return errors.New("negative") → return nil`,
		"s.n += n → s.n -= n", "s.n += n →",
	}, killed)

	listed := map[string]reason{}
	for _, m := range sample {
		if m.killer == "" {
			listed[m.key] = reason{true, "the test looks away"}
		}
	}
	var out strings.Builder
	assert.True(t, report(&out, sample, all, listed, false), out.String())
	listed["sum/sum.go Sum.Add: x → y"] = reason{}
	assert.True(t, report(&out, sample, all, listed, false))
	assert.Contains(t, out.String(), "listed, and its code is gone: sum/sum.go Sum.Add: x → y")
	delete(listed, "sum/sum.go Sum.Add: s.calls++ → s.calls--")
	assert.False(t, report(&out, sample, all, listed, false), "a survivor that is not listed")
	for key := range listed {
		listed[key] = reason{text: "no test yet"}
	}
	listed["sum/sum.go Sum.Add: s.calls++ → s.calls--"] = reason{text: "nor here"}
	assert.False(t, report(&out, sample, all, listed, false), "9 of 14 are killed")
}

func TestTheListNeedsReasons(t *testing.T) {
	read := func(text string) error {
		file := filepath.Join(t.TempDir(), "list")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := readList(file)
		return err
	}
	require.NoError(t, read("# what this is\n\na b: x → y\n\tequivalent: as x is y\n"))
	for _, text := range []string{"a b: x → y\n", "\taccepted: so\n", "a\n\tequivalent:\n",
		"a\n\tperhaps: so\n", "a\nb\n\taccepted: so\n"} {
		require.Error(t, read(text), text)
	}
}

// TestClassicsFit finds the text that each classic changes.
func TestClassicsFit(t *testing.T) {
	for _, c := range classics {
		m, err := c.mutant("../..")
		if assert.NoError(t, err) {
			assert.NotNil(t, m.fn, c.name)
		}
	}
}

// TestSubjectsFit finds the files of each subject.
func TestSubjectsFit(t *testing.T) {
	for _, s := range subjects {
		found, err := find("../..", []subject{s}, nil, 1)
		if assert.NoError(t, err) {
			assert.NotEmpty(t, found, s.dir)
		}
		for _, dir := range s.tests {
			tests, _ := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
			assert.NotEmpty(t, tests, dir)
		}
	}
}
