package enginetest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// A dumper is a store that can be dumped.
type dumper interface {
	store.Store
	Dump(ctx context.Context, to io.Writer) error
	Load(ctx context.Context, from io.Reader) error
}

// recorded is when an id became known, which memory rounds up.
var recorded = regexp.MustCompile(`^(\{"(?:id|lost)":.*"recorded":)\d+`)

// lines returns a dump without its first and last line, sorted.
func lines(t testing.TB, st dumper) []string {
	var out bytes.Buffer
	require.NoError(t, st.Dump(ctx, &out))
	all := strings.Split(strings.TrimSpace(out.String()), "\n")
	all = all[1 : len(all)-1]
	for i := range all {
		all[i] = recorded.ReplaceAllString(all[i], "$1#")
	}
	slices.Sort(all)
	return all
}

// alike checks that two dumps say the same, and tells the first difference.
func alike(t testing.TB, want, got []string, what string) {
	for i := range min(len(want), len(got)) {
		require.Equal(t, want[i], got[i], what)
	}
	require.Len(t, got, len(want), what)
}

// eventful fills a store with all that a dump has to keep.
func eventful(t testing.TB, st *sqlstore.Store) {
	personal(t, st, 200)
	fading := map[string]evidence.Policy{"fading": {HalfLife: time.Hour}}
	at := time.Now()
	for i := range 20 {
		o := observe(fmt.Sprint("fading ", i), at.Add(-time.Duration(i*i)*time.Hour))
		o.Cell.Kind, o.Reward, o.Weight = "fading", 1/float64(3+i), 0.1*float64(i)
		_, err := st.Commit(ctx, store.Batch{Policies: fading, Observations: []evidence.Observation{o}})
		require.NoError(t, err)
	}
	_, err := st.Commit(ctx, store.Batch{
		Retract: []string{"fading 3"},
		Restart: []store.Restart{{Cell: evidence.Cell{Kind: "fading", Item: "later"}, At: at}},
	})
	require.NoError(t, err)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
}

// Every store loads the dump of every other one, and dumps the same.
func TestDump(t *testing.T) {
	skipRaced(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			st := b.place(t).store(t, sqlstore.Config{Retention: store.Retention{HistoryPerCell: 12}})
			eventful(t, st)
			want := lines(t, st)
			var out bytes.Buffer
			require.NoError(t, st.Dump(ctx, &out))
			memory, err := memstore.New(memstore.Config{})
			require.NoError(t, err)
			loaded := map[string]dumper{"memory": memory}
			for _, other := range backends {
				loaded[other.name] = other.place(t).store(t, sqlstore.Config{})
			}
			for name, other := range loaded {
				require.NoError(t, other.Load(ctx, bytes.NewReader(out.Bytes())), name)
				alike(t, want, lines(t, other), name)
				require.ErrorIs(t, other.Load(ctx, bytes.NewReader(out.Bytes())), heed.ErrConflict, name)
				require.NoError(t, other.Declare(ctx, store.Kind{Name: "note"}))
				var s store.Snapshot
				ref := store.Ref{Kind: "note", ID: "7"}
				require.NoError(t, other.Read(ctx, &s, nil, []store.Ref{ref}))
				s.Records[0].Body = store.Of("new")
				receipts, err := other.Commit(ctx, store.Batch{ID: "batch of user-11", Records: s.Records})
				require.NoError(t, err, name)
				assert.True(t, receipts[0].Duplicate, "%s knows what was committed", name)
				receipts, err = other.Commit(ctx, store.Batch{Records: s.Records})
				require.NoError(t, err, name)
				var highest uint64
				for r, err := range st.Find(ctx, store.Query{Kind: "note"}) {
					require.NoError(t, err)
					highest = max(highest, r.Revision)
				}
				assert.Greater(t, receipts[0].Revision, highest, name)
				n := 0
				for r, err := range other.Find(ctx, store.Query{Kind: "note",
					Keys: []string{"n=3", store.PersonKey("user-33")}}) {
					require.NoError(t, err)
					assert.Equal(t, "33", r.ID)
					n++
				}
				assert.Equal(t, 1, n, name)
			}
		})
	}
}

// A dump that is cut off or changed leaves nothing behind.
func TestLoadIsWhole(t *testing.T) {
	skipRaced(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			st := b.place(t).store(t, sqlstore.Config{})
			personal(t, st, 200)
			var out bytes.Buffer
			require.NoError(t, st.Dump(ctx, &out))
			whole := out.Bytes()
			other := b.place(t).store(t, sqlstore.Config{})
			empty := lines(t, other)
			changed := bytes.Clone(whole)
			changed[len(whole)/2] ^= 4
			for what, text := range map[string][]byte{
				"cut off": whole[:len(whole)*2/3], "without the end": whole[:bytes.LastIndexByte(
					whole[:len(whole)-1], '\n')+1],
				"changed": changed, "empty": nil, "newer": []byte(`{"heed":{"version":99,"revision":1}}` + "\n"),
			} {
				var fault *heed.InputError
				require.ErrorAs(t, other.Load(ctx, bytes.NewReader(text)), &fault, what)
				alike(t, empty, lines(t, other), what)
			}
			require.NoError(t, other.Load(ctx, bytes.NewReader(whole)))
		})
	}
}
