package strategy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
)

// The next step in bulk takes over what the last one knew, as far as that has a bounded size.
func TestStepsInBulkRememberABoundedPart(t *testing.T) {
	for parts, keeps := range map[int]bool{1: true, 1 << 19: true, 1<<19 + 1: false} {
		l, step := &Learner{}, &crediting{}
		known := &bulkStep{cells: make(map[evidence.Cell]*fair.Sources), parts: parts}
		l.cfg.Refresh = 1
		l.bulk.Store(known)
		got, err := l.inBulk(t.Context(), step)
		require.NoError(t, err)
		assert.Same(t, known, got, "this step has all of it")
		assert.Equal(t, keeps, l.bulk.Load() == known, parts)
	}
}
