package patterns_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store/storetest"
)

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
					st := &storetest.Failing{
						Store: s.sound, At: at, After: late, Replies: true, Blind: true,
					}
					s.failing.Store = st
					_, err := call(s)
					if !st.Failed() {
						return false
					}
					where := fmt.Sprintf("commit %d, with its effect: %v", at, late)
					if err != nil {
						assert.ErrorIs(t, err, storetest.ErrFailed, where)
					}
					st.Fail(0, false)
					_, err = call(s)
					require.NoError(t, err, where)
					assert.Equal(t, want, s.state(), where)
					return true
				})
			})
		}
	}
}
