package learning_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// TestAnEqualCallAgain makes each call twice, as a caller does whose reply was lost. The second one
// changes nothing, and is an error only if it names what the first one took away.
func TestAnEqualCallAgain(t *testing.T) {
	for i, d := range deeds {
		t.Run(fmt.Sprint(d.method, " ", i), func(t *testing.T) {
			f := d.stage(t)
			require.NoError(t, d.call(f))
			f.clock.Advance(time.Second)
			after := moments.ReplaceAllString(f.meaning(), "")
			assert.ErrorIs(t, d.call(f), d.done)
			assert.Equal(t, after, moments.ReplaceAllString(f.meaning(), ""))
		})
	}
}

// A judgement that is repeated without a time has a later one.
var moments = regexp.MustCompile(`,?"(at":"[^"]*"|numbers":[0-9]+)`)

// A lossy store loses the reply to one commit, with the commit or after it. The first read after
// that fails as well, so that nobody can ask whether the commit took effect.
type lossy struct {
	store.Store
	at    int // the number of the commit, from 1
	blind bool
	late  bool
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

// TestALostReply loses the reply to each commit of each method, with its effect and without it. The
// call takes effect once, and returns no error unless it can't find out whether it did.
func TestALostReply(t *testing.T) {
	for i, d := range deeds {
		t.Run(fmt.Sprint(d.method, " ", i), func(t *testing.T) {
			good := d.stage(t)
			require.NoError(t, d.call(good))
			after := good.meaning()
			storetest.FailEach(func(at int, late bool) bool {
				f := d.stage(t)
				st := &lossy{Store: f.store.Store, at: at, late: late}
				f.store.Store = st
				err := d.call(f)
				if st.at > 0 {
					return false
				}
				st.blind = false
				where := fmt.Sprintf("commit %d, with its effect: %v", at, late)
				if errors.Is(err, heed.ErrOutcomeUnknown) || errors.Is(err, storetest.ErrFailed) {
					err = d.call(f)
				}
				if late && d.done != nil { // what the first call took away
					assert.ErrorIs(t, err, d.done, where)
				} else {
					assert.NoError(t, err, where)
				}
				assert.Equal(t, after, f.meaning(), where)
				return true
			})
		})
	}
}
