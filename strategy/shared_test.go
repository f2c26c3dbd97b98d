package strategy_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// A town has the tenants of one store.
type town struct {
	*testing.T
	*clock
	store store.Store
}

func newTown(t *testing.T) *town {
	c := &clock{}
	return &town{t, c, newStore(t, c.Now)}
}

func (t *town) view(tenant string) store.Store {
	view, err := store.Tenant(t.store, tenant)
	require.NoError(t, err)
	return view
}

func (t *town) learner(tenant string) *strategy.Learner {
	return newLearner(t, strategy.Config{
		Store: t.view(tenant), Now: t.Now, Shared: true, Arms: plain("a", "b"),
	})
}

// learns has a tenant learn that an arm works, by the outcomes of as many people.
func (t *town) learns(tenant string, arm strategy.ArmID, n int, value float64) *strategy.Learner {
	l := t.learner(tenant)
	for i := range n {
		c := choose(t, l, strategy.Query{Session: fmt.Sprint(i), Arms: []strategy.ArmID{arm}})
		_, err := l.Observe(ctx, strategy.Outcome{
			Choice: c, Value: value, Confidence: 1, Source: fmt.Sprint(tenant, "'s ", i),
		})
		require.NoError(t, err)
	}
	require.NoError(t, l.Refresh(ctx))
	return l
}

// rows returns what tenants share, as JSON.
func (t *town) rows() (rows []string) {
	for r, err := range t.store.Find(ctx, store.Query{Kind: "strategy.shared"}) {
		require.NoError(t, err)
		text, err := r.Body.JSON()
		require.NoError(t, err)
		rows = append(rows, string(text))
	}
	slices.Sort(rows)
	return rows
}

// start returns what a new tenant believes of an arm.
func (t *town) start() []float64 { return means(t, t.learner("new"), strategy.Query{}) }

// TestSharedArms begins with what five other tenants have shown, and not with fewer. The root of
// the store is a tenant like the others.
func TestSharedArms(t *testing.T) {
	town := newTown(t)
	for _, tenant := range []string{"", "one", "two", "three"} {
		town.learns(tenant, "a", 20, 1)
	}
	assert.Equal(t, []float64{0.5, 0.5}, town.start(), "four tenants")
	town.learns("four", "a", 1, 1)
	assert.Equal(t, []float64{0.5, 0.5}, town.start(), "one outcome is not enough")
	town.learns("four", "a", 2, 1)
	assert.Greater(t, town.start()[0], 0.5, "a second one is")
	last := town.learns("four", "a", 19, 1)
	got := town.start()
	assert.Greater(t, got[0], 0.85)
	assert.Equal(t, 0.5, got[1], "nobody tried it")

	off := newLearner(t, strategy.Config{
		Store: town.view("off"), Now: town.Now, Arms: plain("a", "b"),
	})
	assert.Equal(t, []float64{0.5, 0.5}, means(t, off, strategy.Query{}))
	assert.Equal(t, 0.5, means(t, last, strategy.Query{Category: "another"})[0])
	assert.InDelta(t, 0.95, means(t, last, strategy.Query{})[0], 0.03,
		"with four others, a tenant learns from its own outcomes alone")
}

// An arm that fewer than five other tenants share begins as it would without them.
func TestAnArmThatFewShare(t *testing.T) {
	town := newTown(t)
	for n, tenant := range []string{"one", "two", "three", "four", "five"} {
		town.learns(tenant, "a", 20, 1)
		if n < 4 {
			town.learns(tenant, "b", 20, 1)
		}
	}
	got := town.start()
	assert.Greater(t, got[0], 0.8)
	assert.Equal(t, 0.5, got[1])
	town.learns("five", "b", 20, 1)
	assert.Greater(t, town.start()[1], 0.8)
}

// TestSharedFailures are where a new tenant begins, as successes are.
func TestSharedFailures(t *testing.T) {
	town := newTown(t)
	for _, tenant := range []string{"one", "two", "three", "four", "five"} {
		town.learns(tenant, "a", 20, 0)
		town.learns(tenant, "b", 20, -1)
	}
	got := town.start()
	assert.InDelta(t, 0.5, got[0], 1e-9, "half of the reward")
	assert.Less(t, got[1], 0.15)
}

// A learner that can't read what others share makes no choice by its own evidence alone, and the
// next one is as it would have been.
func TestSharedRowsThatCannotBeRead(t *testing.T) {
	town := newTown(t)
	for _, tenant := range []string{"one", "two", "three", "four", "five"} {
		town.learns(tenant, "a", 20, 1)
	}
	want := town.start()
	failing := &storetest.Failing{Store: town.store}
	kept := town.store
	failed := 0
	storetest.FailEach(func(at int, after bool) bool {
		town.store = failing
		l := town.learner("new")
		failing.Fail(at, after)
		_, err := l.Beliefs(ctx, strategy.Query{})
		did := failing.Failed()
		failing.Fail(0, false)
		if did {
			require.ErrorIs(t, err, storetest.ErrFailed, at)
			failed++
		}
		assert.InDeltaSlice(t, want, means(t, l, strategy.Query{}), 1e-9)
		town.store = kept
		return did
	})
	assert.Positive(t, failed)
}

// TestSharedRowsHaveSumsOnly and go as if they had never been there when a tenant leaves.
func TestSharedRowsHaveSumsOnly(t *testing.T) {
	before, after := newTown(t), newTown(t)
	for i, town := range []*town{before, after} {
		for _, tenant := range []string{"one", "two", "three", "four", "five"} {
			town.learns(tenant, "a", 7, 1)
		}
		if i == 0 {
			continue
		}
		town.learns("loud", "a", 40, -1)
		assert.Len(t, town.rows(), 6)
		assert.NotEqual(t, before.start(), town.start())
		require.NoError(t, store.Run(ctx, town.store, store.Job{Leave: "loud", At: start}))
	}
	assert.Equal(t, before.rows(), after.rows())
	assert.Equal(t, before.start(), after.start())
	for _, row := range after.rows() {
		assert.NotContains(t, row, "'s ", "no person")
	}
}

// TestSharedEvidenceIsTakenBack by whatever takes it out of the tenant.
func TestSharedEvidenceIsTakenBack(t *testing.T) {
	for name, take := range map[string]func(*town, *strategy.Learner) error{
		"reset": func(_ *town, l *strategy.Learner) error {
			return l.Reset(ctx, strategy.Reset{Actor: "kim", Reason: "r"})
		},
		"source": func(town *town, l *strategy.Learner) error {
			err := store.Run(ctx, town.view("one"), store.Job{Expunge: []string{"one's 0"}, At: start})
			return cmp.Or(err, l.Refresh(ctx))
		},
		"person": func(town *town, _ *strategy.Learner) error {
			err := store.Run(ctx, town.view("one"), store.Job{Forget: []string{"one's 0"}, At: start})
			town.Advance(24 * time.Hour)
			return cmp.Or(err, town.learner("one").Sweep(ctx, town.Now()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			town := newTown(t)
			one := town.learns("one", "a", 1, 1)
			require.Len(t, town.rows(), 1)
			require.NoError(t, take(town, one))
			assert.Empty(t, town.rows())
			require.NoError(t, one.Refresh(ctx))
			assert.Empty(t, town.rows())
		})
	}
}

// A row that a tenant shared is kept for thirty days after its last change.
func TestSharedRowsGoAfterThirtyDays(t *testing.T) {
	town := newTown(t)
	town.learns("one", "a", 1, 1)
	for _, test := range []struct {
		after time.Duration
		rows  int
	}{{30*24*time.Hour - time.Minute, 1}, {2 * time.Minute, 0}} {
		town.Advance(test.after)
		require.NoError(t, town.store.Sweep(ctx, time.Time{}))
		assert.Len(t, town.rows(), test.rows)
	}
}

// TestATenantGoesItsOwnWay if its outcomes are not those of the others.
func TestATenantGoesItsOwnWay(t *testing.T) {
	town := newTown(t)
	for i := range 10 {
		town.learns(fmt.Sprint(i), "a", 100, 1)
	}
	own := town.learns("own", "a", 20, -1)
	assert.Less(t, means(t, own, strategy.Query{})[0], 0.15)
}

// TestToolsShareNothing when they look at a tenant, though they show what it learned from others.
func TestToolsShareNothing(t *testing.T) {
	town := newTown(t)
	for _, tenant := range []string{"one", "two", "three", "four", "five"} {
		town.learns(tenant, "a", 20, 1)
	}
	l := town.learner("new")
	credit(t, l, choose(t, l, strategy.Query{}), 1)
	rows := town.rows()
	tool, err := strategy.Open(ctx, strategy.Config{Store: town.view("new"), Now: town.Now})
	require.NoError(t, err)
	assert.Greater(t, means(t, tool, strategy.Query{})[0], 0.85)
	for of, err := range tool.Distributions(ctx, strategy.Query{}) {
		require.NoError(t, err)
		assert.NotEmpty(t, of.Arms)
	}
	assert.Equal(t, rows, town.rows())
}

// TestSharedEvidenceFades by the half-life, and a row is written anew only if it changed.
func TestSharedEvidenceFades(t *testing.T) {
	town := newTown(t)
	cfg := strategy.Config{
		Store: town.view("one"), Now: town.Now, Shared: true, HalfLife: time.Hour,
	}
	l := newLearner(t, cfg)
	try(t, l, strategy.Query{}, "a", 1)
	require.NoError(t, l.Refresh(ctx))
	rows := town.rows()
	require.Len(t, rows, 1)
	town.Advance(time.Hour)
	require.NoError(t, l.Refresh(ctx))
	assert.Equal(t, rows, town.rows(), "it fades when it is read")
	try(t, l, strategy.Query{}, "a", 1)
	require.NoError(t, l.Refresh(ctx))
	assert.NotEqual(t, rows, town.rows())
}

// A rooted store is the view of a tenant of a store that a test watches.
type rooted struct {
	store.Store
	root store.Store
}

func (s rooted) Root() (store.Store, string) { return s.root, "one" }

// A reset that can't take back what the tenant shares is an error.
func TestAResetThatStaysSharedFails(t *testing.T) {
	town := newTown(t)
	root := &fragile{Store: town.store}
	l := newLearner(t, strategy.Config{
		Store: rooted{town.view("one"), root}, Now: town.Now, Shared: true, Arms: plain("a", "b"),
	})
	try(t, l, strategy.Query{}, "a", 1)
	require.NoError(t, l.Refresh(ctx))
	require.Len(t, town.rows(), 1)
	root.before = func(context.Context, store.Batch) error { return errStore }
	require.ErrorIs(t, l.Reset(ctx, strategy.Reset{Reason: "r"}), errStore)
	assert.Len(t, town.rows(), 1)
	root.before = func(context.Context, store.Batch) error { return heed.ErrConflict }
	try(t, l, strategy.Query{}, "a", 1)
	require.NoError(t, l.Reset(ctx, strategy.Reset{Reason: "r"}), "another process wrote it just now")
	root.before = nil
	require.NoError(t, l.Refresh(ctx))
	assert.Empty(t, town.rows())
}

// TestSharedArmsAreReadByOneSweep of several at the same time.
func TestSharedArmsAreReadByOneSweep(t *testing.T) {
	town := newTown(t)
	l := town.learns("one", "a", 1, 1)
	var sweeps sync.WaitGroup
	for range 4 {
		sweeps.Go(func() { assert.NoError(t, l.Sweep(ctx, time.Time{})) })
	}
	sweeps.Wait()
	assert.Len(t, town.rows(), 1)
}

// TestSharedArmsAreReadOnceADay by sweeps, and again after a failure.
func TestSharedArmsAreReadOnceADay(t *testing.T) {
	town := newTown(t)
	st := &faulty{Store: town.store}
	l := newLearner(t, strategy.Config{
		Store: st, Now: town.Now, Shared: true, Arms: plain("a", "b"),
	})
	try(t, l, strategy.Query{Session: "s"}, "a", 1)
	st.list.Store(&errStore)
	require.ErrorIs(t, l.Sweep(ctx, time.Time{}), errStore)
	st.list.Store(nil)
	require.NoError(t, l.Sweep(ctx, time.Time{}))
	st.list.Store(&errStore)
	require.NoError(t, l.Sweep(ctx, time.Time{}), "it has just read all")
	town.Advance(24*time.Hour - 1)
	require.NoError(t, l.Sweep(ctx, time.Time{}), "it reads nothing")
	town.Advance(1)
	require.ErrorIs(t, l.Sweep(ctx, time.Time{}), errStore)
	town.Advance(-24*time.Hour - 1)
	require.ErrorIs(t, l.Sweep(ctx, time.Time{}), errStore, "the clock was put back")
}

// A row is written again after a day, so that it does not expire, and when the clock was put back.
func TestSharedRowsAreWrittenOnceADay(t *testing.T) {
	town := newTown(t)
	l := town.learns("one", "a", 1, 1)
	written := func() (at time.Duration) {
		require.NoError(t, l.Refresh(ctx))
		for r, err := range town.store.Find(ctx, store.Query{Kind: "strategy.shared"}) {
			require.NoError(t, err)
			at = r.At.Sub(start)
		}
		return at
	}
	day := 24 * time.Hour
	town.Advance(day - time.Microsecond)
	assert.Zero(t, written())
	town.Advance(time.Microsecond)
	assert.Equal(t, day, written())
	town.Advance(-time.Hour)
	assert.Equal(t, day-time.Hour, written())
}

// A report that can't read what others share is an error, and no report by other beliefs.
func TestReportsWithoutSharedRows(t *testing.T) {
	town := newTown(t)
	for _, tenant := range []string{"one", "two", "three", "four", "five", "six"} {
		town.learns(tenant, "a", 20, 1)
	}
	failing := &storetest.Failing{Store: town.store}
	town.store = failing
	l := town.learner("one")
	want := reported(t, l)
	storetest.FailEach(func(at int, after bool) bool {
		failing.Fail(at, after)
		var all []strategy.Distribution
		var failed error
		for d, err := range l.Distributions(ctx) {
			all, failed = append(all, d), err
		}
		if failing.Failed() {
			require.ErrorIs(t, failed, storetest.ErrFailed, "call %d", at)
			return true
		}
		text, err := json.Marshal(all)
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
		return false
	})
}

// A sweep that fails is reported, and the next one does what it could not do.
func TestASweepThatFailsSharesLater(t *testing.T) {
	failed := 0
	storetest.FailEach(func(at int, after bool) bool {
		town := newTown(t)
		town.learns("one", "a", 1, 1)
		job := store.Job{Forget: []string{"one's 0"}, At: start}
		require.NoError(t, store.Run(ctx, town.view("one"), job))
		failing := &storetest.Failing{Store: town.store}
		town.store = failing
		l := town.learner("one")
		failing.Fail(at, after)
		err := l.Sweep(ctx, town.Now())
		did := failing.Failed()
		failing.Fail(0, false)
		if err != nil {
			failed++
			require.ErrorIs(t, err, storetest.ErrFailed)
			require.NoError(t, l.Sweep(ctx, town.Now()))
		}
		assert.Empty(t, town.rows(), "call %d", at)
		return did
	})
	assert.GreaterOrEqual(t, failed, 6, "segments, cells and rows are read, and rows are written")
}

// A row that can't be read is an error, because it may be what a tenant should begin with.
func TestADamagedSharedRow(t *testing.T) {
	town := newTown(t)
	town.learns("one", "a", 20, 1)
	for r, err := range town.store.Find(ctx, store.Query{Kind: "strategy.shared"}) {
		require.NoError(t, err)
		r.Body = store.Raw([]byte("{"))
		_, err = town.store.Commit(ctx, store.Batch{Records: []store.Record{r}})
		require.NoError(t, err)
	}
	_, err := town.learner("new").Beliefs(ctx, strategy.Query{})
	require.ErrorIs(t, err, heed.ErrDamaged)
}

// A tenant begins with the 200 tenants whose rows were written last, also if they know some arms
// only.
func TestTheLatestTenantsAreShared(t *testing.T) {
	began := func(before int) []float64 {
		town := newTown(t)
		town.learns("one", "b", 20, 1)
		var b store.Batch
		for r, err := range town.store.Find(ctx, store.Query{Kind: "strategy.shared"}) {
			require.NoError(t, err)
			text, err := r.Body.JSON()
			require.NoError(t, err)
			for n := range 199 + before {
				row, of := r, bytes.ReplaceAll(text, []byte(store.IDOf("one")),
					[]byte(store.IDOf(fmt.Sprint(n))))
				if row.ID, row.Revision = fmt.Sprint(n), 0; n >= 199 {
					row.At, of = row.At.Add(-time.Hour), bytes.ReplaceAll(of, []byte(`"b"`), []byte(`"a"`))
				}
				row.Body = store.Raw(of)
				b.Records = append(b.Records, row)
			}
		}
		_, err := town.store.Commit(ctx, b)
		require.NoError(t, err)
		return town.start()
	}
	want := began(0)
	assert.InDelta(t, 0.5, want[0], 1e-9)
	assert.Greater(t, want[1], 0.8)
	assert.InDeltaSlice(t, want, began(50), 1e-9)
}
