package answers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var ctx = context.Background()

// An answer is found from the moment when it is due, and before that only in the last half of its
// time.
func TestDue(t *testing.T) {
	for _, waits := range []time.Duration{
		-time.Minute, 0, time.Millisecond, 14 * time.Second, 15 * time.Second, 29 * time.Second,
		30 * time.Second, 31 * time.Second, 15 * time.Minute, 25 * time.Minute, time.Hour,
		100 * time.Minute, 23 * time.Hour, 24 * time.Hour, 29 * 24 * time.Hour,
	} {
		st := new(memstore.Store)
		view := answers.View("answer")
		require.NoError(t, st.Declare(ctx, view.Kind))
		a := answer.Answer{ID: "e", At: start, Fires: []answer.Fire{{Due: start.Add(waits)}}}
		_, err := st.Commit(ctx, store.Batch{Records: []store.Record{view.Record(a, 0)}})
		require.NoError(t, err)
		found := func(after time.Duration) bool {
			queries, err := answers.Due(ctx, st, "answer", start.Add(after))
			require.NoError(t, err)
			for _, q := range queries {
				for row, err := range view.Find(ctx, st, q) {
					require.NoError(t, err)
					assert.Equal(t, "e", row.Value.ID)
					return true
				}
			}
			return false
		}
		assert.True(t, found(max(waits, 0)), waits)
		assert.True(t, found(waits+100*24*time.Hour), waits)
		if waits >= 15*time.Second {
			assert.False(t, found(waits/2-time.Second), waits)
		}
		a.Fires[0].Closed = true
		wait := func(key string) bool { return strings.HasPrefix(key, "wait=") }
		assert.False(t, slices.ContainsFunc(answers.Keys(&a), wait), fmt.Sprint(waits))
	}
}

// A scope is read back as it was written, whatever is in its texts. No other text is one.
func TestScopesAreReadBack(t *testing.T) {
	texts := []string{"", "a", "a/b", `a"b`, `"a"`, "/", `"`, "ä\n"}
	for _, category := range texts {
		for _, context := range texts {
			c, in, ok := answers.ParseScope(answers.Scope(category, context))
			assert.Equal(t, []any{category, context, true}, []any{c, in, ok})
		}
	}
	for _, scope := range []string{"", "a", `"a"`, `"a"b/c`} {
		_, _, ok := answers.ParseScope(scope)
		assert.False(t, ok, scope)
	}
}
