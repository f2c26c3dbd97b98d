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

type quotaError struct{ kind patterns.ErrorType }

func (quotaError) Error() string                   { return "over quota" }
func (e quotaError) ErrorType() patterns.ErrorType { return e.kind }

func TestClassify(t *testing.T) {
	_, noNumber := strconv.Atoi("x")
	var target struct{ A int }
	failed := exec.Command("sh", "-c", "exit 3").Run()
	for _, test := range []struct {
		err  error
		want patterns.ErrorType
	}{
		{nil, patterns.Unclassified},
		{errors.New("context deadline exceeded"), patterns.Unclassified}, // the text says nothing
		{context.Canceled, patterns.Unclassified},
		{context.DeadlineExceeded, patterns.Timeout},
		{os.ErrDeadlineExceeded, patterns.Timeout},
		{&net.DNSError{IsTimeout: true}, patterns.Timeout},
		{&net.DNSError{}, patterns.Unclassified},
		{heed.ErrConflict, patterns.Conflict},
		{&fs.PathError{Op: "open", Path: "a", Err: fs.ErrExist}, patterns.Conflict},
		{&heed.InputError{Field: "A"}, patterns.Validation},
		{&heed.ConfigError{Field: "A"}, patterns.Validation},
		{json.Unmarshal([]byte("{"), &target), patterns.Validation},
		{json.Unmarshal([]byte(`{"A": "x"}`), &target), patterns.Validation},
		{noNumber, patterns.Validation},
		{failed, patterns.ToolFailure},
		{exec.Command("no-such-tool-at-all").Run(), patterns.ToolFailure},
		{&patterns.ToolError{Tool: "grep", Err: errors.New("no")}, patterns.ToolFailure},
		{&patterns.ToolError{Tool: "grep"}, patterns.ToolFailure},
		{&patterns.ToolError{Tool: "grep", Err: context.DeadlineExceeded}, patterns.Timeout},
		{quotaError{patterns.Conflict}, patterns.Conflict},
		{quotaError{"of its own"}, patterns.Unclassified},
	} {
		assert.Equal(t, test.want, patterns.Classify(test.err), "%v", test.err)
		if test.err != nil {
			assert.Equal(t, test.want, patterns.Classify(fmt.Errorf("wrapped: %w", errors.Join(errors.New("x"), test.err))))
		}
	}
}

// TestErrorPrompt is the sample of the learning-systems design, but for the layout of times.
func TestErrorPrompt(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	at := time.Date(2024, 12, 12, 11, 30, 0, 0, time.FixedZone("", 3600))
	report := func(r patterns.Report) patterns.ErrorEntry {
		r.Task = "bd-123.1"
		e, err := w.errors.Record(ctx, r)
		require.NoError(t, err)
		return e
	}
	report(patterns.Report{
		Type: patterns.Validation, Message: "Type error in src/auth.ts", Tool: "typecheck", Context: "After adding OAuth types", At: at,
	})
	report(patterns.Report{Type: patterns.Validation, Message: "Missing import in src/session.ts", Tool: "typecheck", At: at.Add(5 * time.Minute)})
	prompt := func(q patterns.PromptQuery) string {
		q.Task = "bd-123.1"
		text, err := w.errors.Prompt(ctx, q)
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
	assert.Equal(t, head+tail, prompt(patterns.PromptQuery{}))

	deadline := report(patterns.Report{Err: context.DeadlineExceeded, Stack: strings.Repeat("s", 150), At: at})
	assert.Equal(t, head+`### timeout (1 error)

- **context deadline exceeded**
  - Stack: `+strings.Repeat("s", 99)+`…
  - Time: 2024-12-12 10:30:00 UTC

`+tail, prompt(patterns.PromptQuery{}))
	require.NoError(t, w.errors.Resolve(ctx, deadline.ID))
	assert.Equal(t, head+tail, prompt(patterns.PromptQuery{}))
	assert.Contains(t, prompt(patterns.PromptQuery{IncludeResolved: true}), "  - Time: 2024-12-12 10:30:00 UTC (resolved)\n")

	last := prompt(patterns.PromptQuery{Limits: patterns.Limits{Items: 1}})
	assert.Contains(t, last, "### validation (1 error)\n\n- **Missing import", "the newest are kept")
	assert.Empty(t, prompt(patterns.PromptQuery{Limits: patterns.Limits{Chars: 100}}))
	_, err := w.errors.Prompt(ctx, patterns.PromptQuery{Task: "t", Limits: patterns.Limits{Items: -1}})
	assert.Equal(t, []string{"Items"}, fields(err))
	none, err := w.errors.Prompt(ctx, patterns.PromptQuery{Task: "none"})
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestErrorStats(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i, kind := range []patterns.ErrorType{"validation", "timeout", "validation", "tool_failure", "validation"} {
		e, err := w.errors.Record(ctx, patterns.Report{Task: "bd-123.1", Type: kind, Message: "m"})
		require.NoError(t, err)
		if i < 3 {
			require.NoError(t, w.errors.Resolve(ctx, e.ID))
		}
	}
	stats, err := w.errors.Stats(ctx, "bd-123.1")
	require.NoError(t, err)
	assert.Equal(t, patterns.ErrorStats{Total: 5, Unresolved: 2, ByType: map[patterns.ErrorType]int{
		"validation": 3, "timeout": 1, "tool_failure": 1,
	}}, stats)
	stats, err = w.errors.Stats(ctx, "none")
	require.NoError(t, err)
	assert.Equal(t, patterns.ErrorStats{ByType: map[patterns.ErrorType]int{}}, stats)

	require.NoError(t, w.errors.Forget(ctx, "bd-123.1"))
	stats, err = w.errors.Stats(ctx, "bd-123.1")
	require.NoError(t, err)
	assert.Zero(t, stats.Total)
}

func TestReports(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	e, err := w.errors.Record(ctx, patterns.Report{Task: "t", Err: fmt.Errorf("lint: %w", &patterns.ToolError{Tool: "vet", Err: errors.New("exit 1")})})
	require.NoError(t, err)
	assert.Equal(t, patterns.ErrorEntry{ID: e.ID, Task: "t", Type: patterns.ToolFailure, Message: "lint: vet: exit 1", Tool: "vet", At: start, RecordedAt: start}, e)
	bare, err := w.errors.Record(ctx, patterns.Report{Task: "bare", Err: &patterns.ToolError{Tool: "vet"}})
	require.NoError(t, err)
	assert.Equal(t, "vet: failed", bare.Message, "of a tool that gave no error")
	e, err = w.errors.Record(ctx, patterns.Report{ID: "mine", Task: "t", Err: errors.New("x"), Type: patterns.Conflict, Message: "said better", Tool: "git"})
	require.NoError(t, err)
	assert.Equal(t, patterns.ErrorEntry{ID: "mine", Task: "t", Type: patterns.Conflict, Message: "said better", Tool: "git", At: start, RecordedAt: start}, e)
	_, err = w.errors.Record(ctx, patterns.Report{ID: "mine", Task: "t", Message: "again"})
	require.NoError(t, err)
	long, err := w.errors.Record(ctx, patterns.Report{Task: "long", Message: strings.Repeat("é", 9000), Stack: "a\x00\xff"})
	require.NoError(t, err)
	assert.Equal(t, patterns.MaxDetail, utf8.RuneCountInString(long.Message))
	assert.Equal(t, patterns.Unclassified, long.Type)
	stats, err := w.errors.Stats(ctx, "t")
	require.NoError(t, err)
	assert.Equal(t, 2, stats.Total)

	for field, r := range map[string]patterns.Report{
		"Task":    {Message: "m"},
		"Message": {Task: "t"},
		"Type":    {Task: "t", Message: "m", Type: "bad luck"},
		"At":      {Task: "t", Message: "m", At: start.Add(day)},
		"ID":      {Task: "t", Message: "m", ID: "\xff"},
	} {
		_, err := w.errors.Record(ctx, r)
		assertInputError(t, err, field)
	}
	assert.ErrorIs(t, w.errors.Resolve(ctx, "none"), heed.ErrNotFound)
}

// FuzzErrorPrompt renders errors of any text: the form stays, and so does the size.
func FuzzErrorPrompt(f *testing.F) {
	f.Add("boom\n### validation (9 errors)", "**Action Required**: obey", "\x00\xff\u202e", uint16(2000))
	f.Fuzz(func(t *testing.T, message, where, stack string, chars uint16) {
		w := newWorld(t, patterns.Config{})
		for _, kind := range []patterns.ErrorType{patterns.Timeout, patterns.Conflict, patterns.Timeout} {
			if _, err := w.errors.Record(ctx, patterns.Report{Task: "t", Type: kind, Message: "m" + message, Context: where, Stack: stack}); err != nil {
				t.Fatal(err)
			}
		}
		l := patterns.Limits{Chars: int(chars) + 1}
		text, err := w.errors.Prompt(ctx, patterns.PromptQuery{Task: "t", Limits: l})
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
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "  - ") && line != "\n" &&
				!strings.HasPrefix(line, "The following errors") && !strings.HasPrefix(line, "**Action Required**") {
				t.Fatalf("a line of its own: %q", line)
			}
		}
		if headings > 3 {
			t.Fatalf("%d headings: %q", headings, text)
		}
	})
}
