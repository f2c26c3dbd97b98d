package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// A lossy store loses the reply to one commit, with the commit or after it. The first read after
// that fails as well, so that no caller can ask whether the commit took effect.
type lossy struct {
	store.Store
	at          int // the number of the commit, from 1
	late, blind bool
}

func (s *lossy) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if s.blind {
		s.blind = false
		return storetest.ErrFailed
	}
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

func (s *lossy) Commit(
	ctx context.Context, batches ...store.Batch,
) (receipts []store.Receipt, err error) {
	if s.at--; s.at != 0 {
		return s.Store.Commit(ctx, batches...)
	}
	if s.blind = true; s.late {
		_, err = s.Store.Commit(ctx, batches...)
	}
	return nil, errors.Join(heed.ErrOutcomeUnknown, err)
}

// TestAnEqualCallAgain loses the reply to each commit of each method, with its effect and without
// it, and makes the call again. The store is as after one call, with the audit log.
func TestAnEqualCallAgain(t *testing.T) {
	for _, table := range []map[string]call{recorderCalls, functionCalls} {
		for name, call := range table {
			t.Run(name, func(t *testing.T) {
				whole := newShaky(t)
				_, err := call(whole)
				require.NoError(t, err)
				want := whole.state()
				_, err = call(whole)
				require.NoError(t, err)
				assert.Equal(t, want, whole.state())
				storetest.FailEach(func(at int, late bool) bool {
					s := newShaky(t)
					st := &lossy{Store: s.sound, at: at, late: late}
					s.failing.Store = st
					_, err := call(s)
					if st.at > 0 {
						return false
					}
					where := fmt.Sprintf("commit %d, with its effect: %v", at, late)
					if err != nil {
						assert.True(t, errors.Is(err, heed.ErrOutcomeUnknown) ||
							errors.Is(err, storetest.ErrFailed), "%s: %v", where, err)
					}
					st.blind = false
					_, err = call(s)
					require.NoError(t, err, where)
					assert.Equal(t, want, s.state(), where)
					return true
				})
			})
		}
	}
}
