package feedback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnEqualCallAgain makes each call twice, as a caller does whose reply was lost. The second one
// returns what the first one did, and adds no record and no entry of the audit log.
func TestAnEqualCallAgain(t *testing.T) {
	for _, f := range faults {
		if f.refused != "" {
			continue
		}
		t.Run(f.method+" "+f.name, func(t *testing.T) {
			w, _ := f.world(t)
			want, err := f.call(w)
			require.NoError(t, err)
			after, entries := w.summary(), w.entries()
			w.clock.advance(time.Second)
			got, err := f.call(w)
			require.NoError(t, err)
			if !f.opens {
				assert.Equal(t, want, got)
			}
			assert.Equal(t, after, w.summary())
			assert.Equal(t, entries, w.entries())
		})
	}
}

// entries is how many entries the audit log has.
func (w *world) entries() int {
	w.t.Helper()
	entries, err := w.Audit(ctx, 0)
	require.NoError(w.t, err)
	return len(entries)
}
