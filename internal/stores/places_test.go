package stores_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

func TestRanges(t *testing.T) {
	at := time.UnixMicro(1000).UTC()
	whole, err := stores.RangeOf(store.Query{Kind: "k"})
	require.NoError(t, err)
	within := func(r stores.Range, p stores.Position) bool {
		return p.Compare(r.After) > 0 && p.Compare(r.Before) < 0
	}
	first, next := stores.Position{At: 1000, Seq: 1}, stores.Position{At: 1000, Seq: 2}
	assert.True(t, within(whole, first))
	until, err := stores.RangeOf(store.Query{Kind: "k", Until: at})
	require.NoError(t, err)
	assert.False(t, within(until, stores.Position{At: 1000}))
	assert.True(t, within(until, stores.Position{At: 999, Seq: 9}))
	for name, test := range map[string]struct {
		q           store.Query
		first, next bool
	}{
		"since":           {store.Query{Since: at}, true, true},
		"since a bit on":  {store.Query{Since: at.Add(time.Nanosecond)}, false, false},
		"until":           {store.Query{Until: at}, false, false},
		"until a bit on":  {store.Query{Until: at.Add(time.Nanosecond)}, true, true},
		"after, oldest":   {store.Query{After: first.String(), Oldest: true}, false, true},
		"after, newest":   {store.Query{After: next.String()}, true, false},
		"after, no place": {store.Query{After: "x y"}, false, false},
	} {
		test.q.Kind = "k"
		r, err := stores.RangeOf(test.q)
		if name == "after, no place" {
			require.ErrorAs(t, err, new(*heed.InputError))
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, test.first, within(r, first), name)
		assert.Equal(t, test.next, within(r, next), name)
	}
}

// A place names its position, for each moment and number that a store may have.
func TestPlaces(t *testing.T) {
	far := evidence.Instant(math.MaxInt64)
	for _, p := range []stores.Position{
		{At: 1, Seq: 1}, {At: 253402300799e6, Seq: 1 << 62}, {At: far - 1, Seq: math.MaxInt64},
	} {
		r, err := stores.RangeOf(store.Query{Kind: "k", After: p.String(), Oldest: true})
		require.NoError(t, err)
		assert.Equal(t, p, r.After)
		assert.Equal(t, stores.Position{At: far, Seq: math.MaxInt64}, r.Before)
		r, err = stores.RangeOf(store.Query{Kind: "k", After: p.String()})
		require.NoError(t, err)
		assert.Equal(t, p, r.Before)
	}
	for _, wrong := range []string{
		"1", "1.", ".1", "1.1.1", "1,1", "-.1", strings.Repeat("z", 40) + ".1",
	} {
		_, err := stores.RangeOf(store.Query{Kind: "k", After: wrong})
		require.ErrorAs(t, err, new(*heed.InputError), wrong)
	}
}
