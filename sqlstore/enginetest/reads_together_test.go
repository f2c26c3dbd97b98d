package enginetest_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A readAttempt is a call of Read.
type readAttempt struct {
	ctx  context.Context
	item string
	got  store.Snapshot
	err  error
}

// readTogether makes reads while a first one holds a statement, and calls a function before it lets
// go. It returns how many statements there were after that one.
func (c *crowd) readTogether(all []*readAttempt, fail func(n int) error,
	then func()) (statements int) {
	free := make(chan struct{})
	var mu sync.Mutex
	c.driver.set(func(string) error {
		mu.Lock()
		statements++
		n := statements
		mu.Unlock()
		if n == 1 {
			<-free
			return nil
		}
		return fail(n - 1)
	})
	defer c.driver.set(nil)
	read := func(a *readAttempt) {
		cell := arm
		cell.Item = a.item
		a.err = c.Read(a.ctx, &a.got, []evidence.Cell{cell},
			[]store.Ref{{Kind: "note", ID: a.item}, {Kind: "note", ID: "of all"}})
	}
	var callers sync.WaitGroup
	callers.Go(func() { read(&readAttempt{ctx: ctx, item: "first"}) })
	synctest.Wait()
	for _, a := range all {
		callers.Go(func() { read(a) })
		synctest.Wait()
	}
	then()
	close(free)
	callers.Wait()
	return statements - 1
}

// TestWhoWaitsReadsTogether in one statement. Each caller has what it asked for. If the statement
// fails, each reads alone.
func TestWhoWaitsReadsTogether(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		record := func(id string) store.Record {
			return store.Record{Ref: store.Ref{Kind: "note", ID: id}, Keys: []string{"k"}, At: time.Now(), Body: store.Raw([]byte(`"` + id + `"`))}
		}
		batch := store.Batch{Records: []store.Record{record("of all")}}
		for i := range 4 {
			o := noted(strconv.Itoa(i)).Observations[0]
			o.Cell.Item, o.Weight = strconv.Itoa(i), float64(i+1)/8
			batch.Observations = append(batch.Observations, o)
			batch.Records = append(batch.Records, record(strconv.Itoa(i)))
		}
		_, err := c.Commit(ctx, batch)
		require.NoError(t, err)
		attempts := func() (all []*readAttempt) {
			for i := range 4 {
				all = append(all, &readAttempt{ctx: ctx, item: strconv.Itoa(i)})
			}
			return all
		}
		check := func(all []*readAttempt, but int) {
			for i, a := range all {
				if i == but {
					continue
				}
				require.NoError(t, a.err)
				require.Len(t, a.got.Parts, 1)
				assert.Equal(t, float64(i+1)/8, a.got.Parts[0].Tally.Mass)
				require.Len(t, a.got.Records, 2)
				assert.Equal(t, strconv.Itoa(i), a.got.Records[0].ID)
				assert.NotZero(t, a.got.Records[0].Revision)
				assert.Equal(t, "of all", a.got.Records[1].ID)
				a.got.Records[1].Keys[0] = "mine" // it is the caller's own
			}
		}
		well, nothing := func(int) error { return nil }, func() {}
		all := attempts()
		assert.Equal(t, 1, c.readTogether(all, well, nothing))
		check(all, -1)

		all = attempts()
		assert.Less(t, c.readTogether(all, well, func() {
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			check(all, -1) // they do not wait for the first for long
		}), len(all), "some share a statement")

		all = attempts()
		wrong := errors.New("the disk is on fire")
		assert.Equal(t, 5, c.readTogether(all, func(n int) error {
			if n == 1 || n == 3 {
				return wrong
			}
			return nil
		}, nothing))
		failed := -1
		for i, a := range all {
			if a.err != nil {
				require.ErrorIs(t, a.err, wrong)
				assert.Negative(t, failed)
				failed = i
			}
		}
		assert.GreaterOrEqual(t, failed, 0)
		check(all, failed)

		for _, who := range []int{0, 2} { // the one that leads, and one of those that it reads for
			all = attempts()
			var cancel func()
			all[who].ctx, cancel = context.WithCancel(ctx)
			c.readTogether(all, func(n int) error {
				if n == 1 {
					cancel()
				}
				return nil
			}, nothing)
			if all[who].err != nil {
				require.ErrorIs(t, all[who].err, context.Canceled)
			}
			check(all, who)

			all = attempts()
			all[who].ctx, cancel = context.WithCancel(ctx)
			c.readTogether(all, well, cancel)
			require.ErrorIs(t, all[who].err, context.Canceled)
			check(all, who)
		}
	})
}
