package strategy_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// TestAResetWhoseReplyIsLost loses the reply to each commit of a reset, with its effect and without
// it. The reset that is made again is not found if the first one has finished. In any case a sweep
// leaves no evidence, and what comes later counts once.
func TestAResetWhoseReplyIsLost(t *testing.T) {
	for _, item := range []string{"", "item"} {
		reset := strategy.Reset{Category: "preference", Item: item, Actor: "ann", Reason: "reworded"}
		storetest.FailEach(func(at int, late bool) bool {
			kept := &memstore.Store{}
			st := &storetest.Failing{Store: kept, Replies: true, Blind: true}
			l := newLearner(t, strategy.Config{Store: st, Pooling: strategy.Copy{Sessions: 5}})
			earn(t, l, "item", "s", 5)
			st.Fail(at, late)
			err := l.Reset(ctx, reset)
			if !st.Failed() {
				require.NoError(t, err)
				return false
			}
			where := fmt.Sprintf("%q, commit %d, with its effect: %v: %v", item, at, late, err)
			st.Fail(0, false)
			if err != nil {
				again := l.Reset(ctx, reset)
				assert.True(t, again == nil || errors.Is(again, heed.ErrNotFound), where)
			}
			require.NoError(t, kept.Sweep(ctx, time.Time{}), where)
			entries := len(audited(t, kept)) // one for each call that changed something
			assert.True(t, entries == 1 || entries == 2 && err != nil, where)
			assert.Zero(t, given(t, kept, "item"), where)
			earn(t, l, "item", "later", 1)
			history, err := outcomes(l, strategy.Query{Item: "item", Category: "preference"}, 0)
			require.NoError(t, err)
			assert.Len(t, history, 1, where)
			return true
		})
	}
}
