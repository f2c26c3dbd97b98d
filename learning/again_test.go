package learning_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
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
				st := &storetest.Failing{
					Store: f.store.Store, At: at, After: late, Replies: true, Blind: true,
				}
				f.store.Store = st
				err := d.call(f)
				if !st.Failed() {
					return false
				}
				st.Fail(0, false)
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
