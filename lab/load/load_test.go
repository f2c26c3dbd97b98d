package load

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/raced"
)

// Every request of the load is answered, with a page open. In the long form, 99 of 100 choices are there within 20 ms.
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
