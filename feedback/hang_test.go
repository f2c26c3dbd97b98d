package feedback_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
)

// hanging is an evaluator that answers only when it is told that nobody waits any more.
func hanging(ctx context.Context, _ feedback.Case) (feedback.Evaluation, error) {
	<-ctx.Done()
	return feedback.Evaluation{}, ctx.Err()
}

// TestAHangingEvaluatorHoldsUpNobodyForLongerThanTheyWait, and nothing but evaluations.
func TestAHangingEvaluatorHoldsUpNobodyForLongerThanTheyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feedback.Config{Evaluator: hanging})
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 3 {
			f := w.correction("ann", long)
			_, err := w.Record(ctx, f)
			require.NoError(t, err)
			wg.Go(func() {
				bounded, cancel := context.WithTimeout(ctx, time.Duration(i+1)*time.Minute)
				defer cancel()
				_, err := w.Evaluate(bounded, f.ID)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, time.Duration(i+1)*time.Minute, time.Since(began))
			})
		}
		synctest.Wait()
		w.approve(w.propose("paul", rule("Be brief")), "cleo", "dan")
		assert.Len(t, w.inject("prd", "").Rules, 1)
		assert.Zero(t, time.Since(began))
		wg.Wait()
	})
}
