package load

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/lab/internal/raced"
)

// Every request of the load is answered, with a page open. In the long form, 99 of 100 choices are
// there within 20 ms.
func TestLoad(t *testing.T) {
	raced.Skip(t)
	l := load{long: 2 * time.Second, rate: 200}
	if os.Getenv("HEED_LONG") != "" {
		l.long = time.Minute
	}
	got, err := l.measure(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Logf("%v on %d cores\n%s", l.long, runtime.GOMAXPROCS(0), got)
	sent := len(got["select"]) + len(got["observe"]) + len(got["read"])
	assert.InDelta(t, l.long.Seconds()*l.rate, sent, 0)
	assert.InDelta(t, 0.5, float64(len(got["select"]))/float64(sent), 0.2)
	assert.Positive(t, l.pages)
	if os.Getenv("HEED_LONG") != "" {
		assert.Less(t, got.quantile("select", 0.99), 20*time.Millisecond)
	}
}

// Whatever number of callers, every outcome that the study counts is in the store.
func TestPostgres(t *testing.T) {
	raced.Skip(t)
	server, err := servertest.New("-c fsync=off")
	if errors.Is(err, servertest.ErrNone) && os.Getenv("HEED_POSTGRES") != "require" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	s := study{each: 50 * time.Millisecond, callers: []int{1, 8}, segments: []int{1, 3}, items: 500,
		progress: func(int, int) {}}
	got, err := s.measure(t.Context(), server.DSN())
	require.NoError(t, err)
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
