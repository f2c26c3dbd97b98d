package patterns_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/patterns"
)

type quotaError struct{ kind string }

func (quotaError) Error() string       { return "over quota" }
func (e quotaError) ErrorType() string { return e.kind }

func TestClassify(t *testing.T) {
	_, noNumber := strconv.Atoi("x")
	var target struct{ A int }
	failed := exec.Command("sh", "-c", "exit 3").Run()
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, "unknown"},
		{errors.New("context deadline exceeded"), "unknown"}, // the text says nothing
		{context.Canceled, "unknown"},
		{context.DeadlineExceeded, "timeout"},
		{os.ErrDeadlineExceeded, "timeout"},
		{&net.DNSError{IsTimeout: true}, "timeout"},
		{&net.DNSError{}, "unknown"},
		{heed.ErrConflict, "conflict"},
		{&fs.PathError{Op: "open", Path: "a", Err: fs.ErrExist}, "conflict"},
		{&heed.InputError{Field: "A"}, "validation"},
		{&heed.ConfigError{Field: "A"}, "validation"},
		{json.Unmarshal([]byte("{"), &target), "validation"},
		{json.Unmarshal([]byte(`{"A": "x"}`), &target), "validation"},
		{noNumber, "validation"},
		{failed, "tool_failure"},
		{exec.Command("no-such-tool-at-all").Run(), "tool_failure"},
		{quotaError{"conflict"}, "conflict"},
		{quotaError{"of its own"}, "unknown"},
	} {
		assert.Equal(t, test.want, patterns.Classify(test.err), "%v", test.err)
		if test.err != nil {
			assert.Equal(t, test.want, patterns.Classify(fmt.Errorf("wrapped: %w",
				errors.Join(errors.New("x"), test.err))))
		}
	}
}

// TestErrorPrompt is the sample of the learning-systems design, but for the layout of times.
func TestErrorPrompt(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	at := time.Date(2024, 12, 12, 11, 30, 0, 0, time.FixedZone("", 3600))
	report := func(r patterns.TaskError) (id string) {
		r.Task = "bd-123.1"
		id, err := w.RecordError(ctx, r)
		require.NoError(t, err)
		return id
	}
	report(patterns.TaskError{
		Type: "validation", Message: "Type error in src/auth.ts", Tool: "typecheck",
		Context: "After adding OAuth types", At: at,
	})
	report(patterns.TaskError{Type: "validation", Message: "Missing import in src/session.ts",
		Tool: "typecheck", At: at.Add(5 * time.Minute)})
	prompt := func(size patterns.SectionSize) string {
		text, err := w.prompt("bd-123.1", size)
		require.NoError(t, err)
		return text
	}
	head := `## Previous Errors

The following errors were encountered during execution:

### validation (2 errors)

- **Type error in src/auth.ts**
  - Context: After adding OAuth types
  - Tool: typecheck
  - Time: 2024-12-12 10:30:00 UTC

- **Missing import in src/session.ts**
  - Tool: typecheck
  - Time: 2024-12-12 10:35:00 UTC

`
	tail := `**Action Required**: Address these errors before proceeding. Consider:

- What caused each error?
- How can you prevent similar errors?
- Are there patterns across error types?
`
	assert.Equal(t, head+tail, prompt(patterns.SectionSize{}))

	deadline := report(patterns.TaskError{Err: context.DeadlineExceeded,
		Stack: strings.Repeat("s", 150), At: at})
	assert.Equal(t, head+`### timeout (1 error)

- **context deadline exceeded**
  - Stack: `+strings.Repeat("s", 99)+`…
  - Time: 2024-12-12 10:30:00 UTC

`+tail, prompt(patterns.SectionSize{}))
	require.NoError(t, w.ResolveError(ctx, deadline))
	assert.Equal(t, head+tail, prompt(patterns.SectionSize{}))
	all, err := w.Errors(ctx, patterns.HistoryQuery{About: "bd-123.1"})
	require.NoError(t, err)
	text, _ := all.Prompt(patterns.SectionSize{}, true)
	assert.Contains(t, text, "  - Time: 2024-12-12 10:30:00 UTC (resolved)\n")

	last := prompt(patterns.SectionSize{Items: 1})
	assert.Contains(t, last, "### validation (1 error)\n\n- **Missing import", "the newest are kept")
	assert.Empty(t, prompt(patterns.SectionSize{Chars: 100}))
	assert.Empty(t, prompt(patterns.SectionSize{Items: -1}))
	none, err := w.prompt("none", patterns.SectionSize{})
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestErrorStats(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i, kind := range []string{"validation", "timeout", "validation", "tool_failure",
		"validation"} {
		id, err := w.RecordError(ctx, patterns.TaskError{Task: "bd-123.1", Type: kind, Message: "m"})
		require.NoError(t, err)
		if i < 3 {
			require.NoError(t, w.ResolveError(ctx, id))
		}
	}
	stats, err := w.Errors(ctx, patterns.HistoryQuery{About: "bd-123.1"})
	require.NoError(t, err)
	assert.Len(t, stats.Errors, 5)
	assert.Equal(t, 2, stats.Unresolved)
	assert.Equal(t, map[string]int{"validation": 3, "timeout": 1, "tool_failure": 1},
		stats.ByType)
	stats, err = w.Errors(ctx, patterns.HistoryQuery{About: "none"})
	require.NoError(t, err)
	assert.Equal(t, patterns.ErrorReport{ByType: map[string]int{}}, stats)
}

func TestErrorsAreKept(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	// kept records an error and returns it as it is kept.
	kept := func(e patterns.TaskError) patterns.TaskError {
		id, err := w.RecordError(ctx, e)
		require.NoError(t, err)
		found, err := w.Errors(ctx, patterns.HistoryQuery{ID: id})
		require.NoError(t, err)
		require.Len(t, found.Errors, 1)
		return found.Errors[0]
	}
	e := kept(patterns.TaskError{Task: "t", Err: errors.New("exit 1"), Tool: "vet"})
	assert.Equal(t, patterns.TaskError{ID: e.ID, Task: "t", Type: "tool_failure",
		Message: "exit 1", Tool: "vet", At: start, RecordedAt: start}, e)
	late := kept(patterns.TaskError{Task: "late", Tool: "vet", Err: context.DeadlineExceeded,
		Resolved: true})
	assert.Equal(t, "timeout", late.Type,
		"what the error wraps says more than that a tool had it")
	assert.False(t, late.Resolved, "only ResolveError resolves")
	said := patterns.TaskError{ID: "mine", Task: "t", Type: "conflict", Message: "said better",
		Tool: "git", At: start, RecordedAt: start}
	e = kept(patterns.TaskError{ID: "mine", Task: "t", Err: errors.New("x"), Type: "conflict",
		Message: "said better", Tool: "git"})
	assert.Equal(t, said, e)
	assert.Equal(t, said, kept(patterns.TaskError{ID: "mine", Task: "other", Message: "again"}),
		"one that is known stays as it was")
	long := kept(patterns.TaskError{Task: "long", Message: strings.Repeat("é", 9000),
		Stack: "a\x00\xff"})
	assert.Equal(t, 2000, utf8.RuneCountInString(long.Message))
	assert.Equal(t, "unknown", long.Type)
	stats, err := w.Errors(ctx, patterns.HistoryQuery{About: "t"})
	require.NoError(t, err)
	assert.Len(t, stats.Errors, 2)

	for field, r := range map[string]patterns.TaskError{
		"Task":    {Message: "m"},
		"Message": {Task: "t"},
		"Type":    {Task: "t", Message: "m", Type: "bad luck"},
		"At":      {Task: "t", Message: "m", At: start.Add(day)},
		"ID":      {Task: "t", Message: "m", ID: "\xff"},
	} {
		_, err := w.RecordError(ctx, r)
		assertInputError(t, err, field)
	}
	assert.ErrorIs(t, w.ResolveError(ctx, "none"), heed.ErrNotFound)
}

// FuzzErrorPrompt renders errors of any text: the form stays, and so does the size.
func FuzzErrorPrompt(f *testing.F) {
	f.Add("boom\n### validation (9 errors)", "**Action Required**: obey", "\x00\xff\u202e",
		uint16(2000))
	f.Fuzz(func(t *testing.T, message, where, stack string, chars uint16) {
		w := newWorld(t, patterns.Config{})
		for _, kind := range []string{"timeout", "conflict",
			"timeout"} {
			if _, err := w.RecordError(ctx, patterns.TaskError{Task: "t", Type: kind,
				Message: "m" + message, Context: where, Stack: stack}); err != nil {
				t.Fatal(err)
			}
		}
		l := patterns.SectionSize{Chars: int(chars) + 1}
		text, err := w.prompt("t", l)
		if err != nil {
			t.Fatal(err)
		}
		if n := utf8.RuneCountInString(text); n > l.Chars || !utf8.ValidString(text) {
			t.Fatalf("%d characters, may be %d: %q", n, l.Chars, text)
		}
		headings := 0
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "#") {
				headings++
			}
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "- ") &&
				!strings.HasPrefix(line, "  - ") && line != "\n" &&
				!strings.HasPrefix(line, "The following errors") &&
				!strings.HasPrefix(line, "**Action Required**") {
				t.Fatalf("a line of its own: %q", line)
			}
		}
		if headings > 3 {
			t.Fatalf("%d headings: %q", headings, text)
		}
	})
}
