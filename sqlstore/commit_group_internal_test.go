package sqlstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// A waiter is a call of Commit that waits in a queue, and what await has given it.
type waiter struct {
	*member
	cancel context.CancelFunc
	next   chan turn
	err    error // when next is closed
}

// inQueue has two calls wait in a queue where there may be two leaders. It has some already. The
// first one leads.
func inQueue(t *testing.T, leaders int, test func(q *queue, leader *member, a, b *waiter)) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{line: line[*member]{most: 2, leaders: leaders}}
		waits := func() *waiter {
			w := &waiter{member: &member{change: &change{batches: []store.Batch{{}}},
				turn: make(chan turn, 1)}, next: make(chan turn, 1)}
			w.ctx, w.cancel = context.WithCancel(t.Context())
			q.waiting = append(q.waiting, w.member)
			go func() {
				defer close(w.next)
				next, err := q.await(w.member)
				if w.err = err; err == nil {
					w.next <- next
				}
			}()
			return w
		}
		a, b := waits(), waits()
		test(q, &member{ctx: t.Context(), change: &change{batches: []store.Batch{{}}}, stage: called},
			a, b)
		a.cancel()
		b.cancel()
	})
}

// A leader commits for it from then on, however long it has waited.
func TestOneWhoIsGatheredDoesNotLead(t *testing.T) {
	inQueue(t, 1, func(q *queue, leader *member, a, b *waiter) {
		require.Len(t, q.gather(leader), 3)
		time.Sleep(longPatience)
		synctest.Wait()
		assert.Equal(t, 1, q.leaders)
		for _, w := range []*waiter{a, b} {
			require.Empty(t, w.next, "it leads too")
			w.call(toReturn)
			assert.Equal(t, toReturn, <-w.next)
		}
	})
}

// TestAnEndBetweenGatherAndJoin of a context takes the transaction back, as does one while the
// statements run.
func TestAnEndBetweenGatherAndJoin(t *testing.T) {
	inQueue(t, 1, func(q *queue, leader *member, a, b *waiter) {
		members := q.gather(leader)
		a.cancel()
		synctest.Wait()
		j := q.join(members)
		require.ErrorIs(t, j.ctx.Err(), context.Canceled)
		require.ErrorIs(t, j.close(q), errEnded)
		a.call(toReturn)
		b.call(toReturn)
	})
}

// TestAnEndIsNotedOnce, also where both the member and the leader notice it. The others'
// transaction goes on.
func TestAnEndIsNotedOnce(t *testing.T) {
	inQueue(t, 1, func(q *queue, leader *member, a, b *waiter) {
		j := q.join(q.gather(leader)[1:]) // the leader's own context had ended before
		require.NoError(t, j.close(q))
		a.cancel()
		synctest.Wait()
		<-a.next
		require.ErrorContains(t, a.err, "not waited for")
		require.ErrorIs(t, a.err, heed.ErrOutcomeUnknown)
		a.end()
		require.NoError(t, j.ctx.Err(), "b waits for the end")
		b.cancel()
		synctest.Wait()
		require.ErrorIs(t, j.ctx.Err(), context.Canceled, "nobody waits")
		a.call(toReturn)
		b.call(toReturn)
	})
}

// Those who had lost their patience while there were as many leaders as may be do not wait for it.
func TestOneLeaderHangs(t *testing.T) {
	inQueue(t, 2, func(q *queue, _ *member, a, b *waiter) {
		time.Sleep(2 * patience)
		synctest.Wait()
		require.Len(t, q.waiting, 2)
		q.pass(leads) // the other leader has done
		time.Sleep(longPatience)
		synctest.Wait()
		assert.Len(t, q.waiting, 1)
		assert.Equal(t, 1, len(a.next)+len(b.next), "one leads")
	})
}

// TestOneReaderHangs, as TestOneLeaderHangs. The reader's own error is of the database, which is
// not there.
func TestOneReaderHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &readers{line: line[*reader]{most: mostLeaders, leaders: mostLeaders}, db: &database{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := q.read(ctx, nil, nil)
			done <- err
		}()
		time.Sleep(2 * patience)
		q.pass(leadsReaders)
		time.Sleep(longPatience)
		synctest.Wait()
		require.Len(t, done, 1)
		assert.NoError(t, <-done, "there was nothing to read")
	})
}
