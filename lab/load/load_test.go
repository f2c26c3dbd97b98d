package load

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/servertest"
)

// Whatever number of callers, every outcome that the study counts is in the store.
func TestPostgres(t *testing.T) {
	server, err := servertest.New("-c fsync=off")
	if errors.Is(err, servertest.ErrNone) && os.Getenv("HEED_POSTGRES") != "require" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	s := study{each: 50 * time.Millisecond, callers: []int{1, 8}, segments: []int{1, 3}, items: 500}
	got := s.measure(t.Context(), server.DSN())
	t.Log(s.report(got))
	counted := 0.
	for _, rate := range got.rates {
		counted += rate * s.each.Seconds()
	}
	for _, rate := range got.hot {
		counted += rate * s.each.Seconds()
	}
	assert.Len(t, got.rates, 4)
	assert.Len(t, got.hot, 2)
	assert.GreaterOrEqual(t, float64(got.outcomes), counted)
	assert.Positive(t, got.large)
	assert.Greater(t, got.bytes, 500.)
}
