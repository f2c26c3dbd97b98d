package mutants

import (
	"io"
	"os"
	"path/filepath"
	"slices"
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
	all, err := find(root, []subject{{"sum", []string{"sum"}}}, 1)
	require.NoError(t, err)
	b := newBench(io.Discard, root, dir)
	sample := b.compile(t.Context(), all, 100)
	b.judge(t.Context(), sample)

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

	var out strings.Builder
	assert.False(t, report(&out, sample), "9 of 14 are killed")
	assert.Contains(t, out.String(), "\nsum/sum.go Sum.Add: s.calls++ → s.calls-- (line 12)\n")
	assert.True(t, report(&out, slices.DeleteFunc(sample,
		func(m *mutant) bool { return m.killer == "" })))
}

func TestTheListNeedsReasons(t *testing.T) {
	read := func(text string) error {
		file := filepath.Join(t.TempDir(), "list")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := readList(file)
		return err
	}
	require.NoError(t, read("# what this is\n\na b: x → y\n\tx is y\n"))
	for _, text := range []string{"a b: x → y\n", "\tso\n", "a\nb\n\tso\n"} {
		require.Error(t, read(text), text)
	}
}

// TestSubjectsFit finds the mutants and the tests of each subject.
func TestSubjectsFit(t *testing.T) {
	for _, s := range subjects {
		found, err := find("../..", []subject{s}, 1)
		if assert.NoError(t, err) {
			assert.NotEmpty(t, found, s.dir)
		}
		for _, dir := range s.tests {
			tests, _ := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
			assert.NotEmpty(t, tests, dir)
		}
	}
}
