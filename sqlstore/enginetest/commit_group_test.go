package enginetest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// A crowd has callers commit at the same time: the first holds the database until all others wait.
type crowd struct {
	*sqlstore.Store
	driver  *hooked
	handle  *sql.DB
	count   int // how many transactions have ended
	queries int // how many statements there were since all waited
}

// inCrowd runs a test with a crowd, on SQLite: in a bubble, where it is certain who waits.
func inCrowd(t *testing.T, test func(*testing.T, *crowd)) {
	at := madeFile(t)
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{}
		c.driver, c.handle = hookedAt(t, at)
		c.Store = open(t, c.handle, at.dialect)
		defer func() { require.NoError(t, c.handle.Close()) }()
		require.NoError(t, commits(noted("warm"))(c.Store)) // which prepares the statements
		test(t, c)
	})
}

// madeTables is a file with heed's tables, which take longer to make than most tests of a crowd.
var madeTables struct {
	sync.Once
	content []byte
}

// madeFile returns a file that has the tables already.
func madeFile(t testing.TB) place {
	at := sqliteFile(t, lites[0])
	madeTables.Do(func() {
		handle, err := at.open()
		require.NoError(t, err)
		open(t, handle, at.dialect)
		require.NoError(t, handle.Close())
		madeTables.content, err = os.ReadFile(at.file())
		require.NoError(t, err)
	})
	require.NoError(t, os.WriteFile(at.file(), madeTables.content, 0o600))
	return at
}

// An attempt is a call of Commit.
type attempt struct {
	ctx     context.Context
	batches []store.Batch
	receipt []store.Receipt
	err     error
	panics  any
}

// together makes the attempts when a first one holds the database. Each statement after that calls
// the hook with its number.
func (c *crowd) together(attempts []*attempt, hook func(n int, statement string) error) {
	var all sync.WaitGroup
	free, held := make(chan struct{}), false
	c.count, c.queries = 0, 0
	c.driver.set(func(statement string) error {
		if !held {
			held = true
			<-free
		}
		if statement == "COMMIT" {
			if c.count++; c.count == 1 {
				return nil
			}
		}
		if c.count > 0 {
			c.queries++
			if hook != nil {
				return hook(c.queries, statement)
			}
		}
		return nil
	})
	defer c.driver.set(nil)
	all.Go(func() {
		_, _ = c.Commit(ctx,
			store.Batch{ID: fmt.Sprint("first", time.Now().UnixNano())})
	})
	synctest.Wait()
	for _, a := range attempts {
		all.Go(func() {
			defer func() { a.panics = recover() }()
			if a.ctx == nil {
				a.ctx = ctx
			}
			a.receipt, a.err = c.Commit(a.ctx, a.batches...)
		})
		synctest.Wait() // so that they wait in this order
	}
	close(free)
	all.Wait()
}

func attempts(ids ...string) (all []*attempt) {
	for _, id := range ids {
		b := noted(id)
		b.PartsOf = store.CellsOf(b.Observations...)
		all = append(all, &attempt{batches: []store.Batch{b}})
	}
	return all
}

// TestWhoWaitsCommitsTogether in one transaction. Each receipt tells of the cell as it was after
// that caller's own batch.
func TestWhoWaitsCommitsTogether(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		all := attempts("1", "2", "3", "4", "5")
		c.together(all, nil)
		assert.Equal(t, 2, c.count)
		for i, a := range all {
			require.NoError(t, a.err)
			require.Len(t, a.receipt[0].Parts, 1)
			assert.EqualValues(t, i+2, a.receipt[0].Parts[0].Tally.N(),
				"the one that warmed it up is there before")
			assert.Equal(t, float64(i+2), a.receipt[0].Parts[0].Tally.Mass)
		}
		assert.EqualValues(t, 6, notedIn(t, c.Store))
	})
}

// TestOneOfManyFails alone: a conflict, a policy and input that is refused.
func TestOneOfManyFails(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		all := attempts("1", "2", "3", "4", "5")
		all[1].batches[0].Expect = []store.Precondition{{Ref: store.Ref{Kind: "note", ID: "warm"},
			Revision: 1 << 40}}
		all[3].batches[0].Policies = map[string]evidence.Policy{arm.Kind: {HalfLife: time.Hour}}
		c.together(all, nil)
		require.ErrorIs(t, all[1].err, heed.ErrConflict)
		require.ErrorAs(t, all[3].err, new(*heed.SettingsError))
		for _, i := range []int{0, 2, 4} {
			require.NoError(t, all[i].err)
		}
		assert.EqualValues(t, 4, notedIn(t, c.Store))

		all = attempts("1", "6", "7", "6")
		all[0].batches[0].ID, all[1].batches[0].ID = "known", "known"
		for _, a := range all {
			a.batches[0].Records = nil
		}
		c.together(all, nil)
		for _, a := range all {
			require.NoError(t, a.err)
		}
		assert.Equal(t, []string{"1"}, all[0].receipt[0].Duplicates)
		assert.True(t, all[1].receipt[0].Duplicate)
		assert.Empty(t, all[3].receipt[0].Duplicates, "the batch that had it first was known")

		write := func(revision uint64) *attempt {
			r := noted("x").Records[0]
			r.Revision = revision
			return &attempt{batches: []store.Batch{{Records: []store.Record{r}}}}
		}
		all = []*attempt{write(0), write(0), write(store.Once), write(0)}
		c.together(all, nil)
		require.NoError(t, all[0].err)
		require.ErrorIs(t, all[1].err, heed.ErrConflict)
		require.NoError(t, all[2].err)
		assert.Len(t, all[2].receipt[0].Left, 1)
		require.ErrorIs(t, all[3].err, heed.ErrConflict)
	})
}

// TestOneOfManyIsCancelled, while it waits, while another commits for it, or while it commits for
// others: the others are as if it had not been there.
func TestOneOfManyIsCancelled(t *testing.T) {
	for _, who := range []int{0, 2} {
		for at, last := 0, false; !last; at++ {
			inCrowd(t, func(t *testing.T, c *crowd) {
				all := attempts("1", "2", "3", "4", "5")
				var cancel func()
				all[who].ctx, cancel = context.WithCancel(ctx)
				ended := "" // the statement before which its context has ended
				c.together(all, func(n int, statement string) error {
					if n == at && ended == "" {
						ended = statement
						cancel()
						// the rollback that may follow waits for this statement, so the bubble never rests
						for range 100 {
							runtime.Gosched()
						}
					}
					return nil
				})
				cancel()
				last = at > 0 && ended == "" // all statements had their turn
				want := uint64(6)
				for i, a := range all {
					if i != who {
						require.NoError(t, a.err, "%d was cancelled before %q", who, ended)
						continue
					}
					if a.err != nil {
						require.ErrorIs(t, a.err, context.Canceled)
						if !strings.Contains(a.err.Error(), "not waited for") { // which leaves it open
							want--
						} else if notedIn(t, c.Store) < want {
							want--
						}
					}
				}
				require.Equal(t, want, notedIn(t, c.Store), "%d was cancelled before %q", who, ended)
			})
		}
	}
	inCrowd(t, func(t *testing.T, c *crowd) { // before anybody commits for it
		all := attempts("1", "2", "3")
		var cancel func()
		all[1].ctx, cancel = context.WithTimeout(ctx, time.Nanosecond)
		defer cancel()
		c.together(all, func(n int, _ string) error {
			if n == 1 {
				time.Sleep(time.Second)
			}
			return nil
		})
		require.ErrorIs(t, all[1].err, context.DeadlineExceeded)
		assert.NoError(t, errors.Join(all[0].err, all[2].err))
		assert.EqualValues(t, 3, notedIn(t, c.Store))
	})
}

// TestAStatementOfManyFails lets each statement of a shared transaction fail in turn. The store has
// the batches of each caller whose call succeeded, and none of a caller whose call failed. All
// callers share a failure of the COMMIT alone.
func TestAStatementOfManyFails(t *testing.T) {
	wrong := errors.New("the disk is on fire")
	for n, last := 1, false; !last; n++ {
		inCrowd(t, func(t *testing.T, c *crowd) {
			all := attempts("1", "2", "3", "4")
			c.together(all, func(i int, statement string) error {
				if i != n {
					return nil
				}
				last = statement == "COMMIT"
				return wrong
			})
			want := uint64(1)
			for _, a := range all {
				if last {
					require.ErrorIs(t, a.err, wrong)
				} else {
					require.NoError(t, a.err, "statement %d", n)
					want++
				}
			}
			require.Equal(t, want, notedIn(t, c.Store), "statement %d", n)
			require.NoError(t, commits(noted("after"))(c.Store), "the store goes on")
		})
	}
}

// A panicking value panics when its JSON is made, which is in the transaction.
type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("no JSON") }

// The panic is that caller's, and the others go on.
func TestOneOfManyPanics(t *testing.T) {
	for who := range 3 {
		inCrowd(t, func(t *testing.T, c *crowd) {
			all := attempts("1", "2", "3")
			all[who].batches[0].Records[0].Body = store.Of(panicking{})
			c.together(all, nil)
			for i, a := range all {
				if i == who {
					require.Equal(t, "no JSON", a.panics)
				} else {
					require.NoError(t, a.err)
					require.Nil(t, a.panics)
				}
			}
			require.NoError(t, commits(noted("after"))(c.Store), "the store goes on")
			require.EqualValues(t, 4, notedIn(t, c.Store))
		})
	}
}

// A plan is a batch whose records have the revisions that a store has when it is filled in.
type plan struct {
	batch  store.Batch
	update string // the id of a record to write over
}

func (p *plan) fill(t testing.TB, st store.Store) store.Batch {
	b := p.batch
	if p.update != "" {
		r := noted(p.update).Records[0]
		var s store.Snapshot
		require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{r.Ref}))
		r.Revision, r.Body, r.At = s.Records[0].Revision, store.Of(b.ID+"!"), modelStart
		b.Records = append(slices.Clone(b.Records), r)
	}
	return b
}

// randomPlan has ids, records and policies in common with others.
func randomPlan(rng *rand.Rand) (p plan) {
	some := func(what string, of int) string { return fmt.Sprint(what, rng.IntN(of)) }
	if rng.IntN(2) == 0 {
		p.batch.ID = some("batch", 60)
	}
	for range rng.IntN(4) {
		o := observe(some("o", 150), modelStart)
		o.Cell.Item, o.Weight, o.Reward = some("item", 2), float64(1+rng.IntN(3))/4,
			float64(rng.IntN(3))/2
		p.batch.Observations = append(p.batch.Observations, o)
	}
	if rng.IntN(20) == 0 {
		p.batch.Policies = map[string]evidence.Policy{arm.Kind: {HalfLife: time.Hour}}
	}
	if rng.IntN(2) == 0 {
		p.batch.PartsOf = store.CellsOf(p.batch.Observations...)
	}
	switch rng.IntN(5) {
	case 0:
		r := noted(some("note", 40)).Records[0]
		r.At, r.Revision = modelStart, []uint64{0, store.Once}[rng.IntN(2)]
		p.batch.Records = append(p.batch.Records, r)
	case 1:
		p.update = some("note", 40)
	case 2:
		p.batch.Expect = []store.Precondition{{Ref: store.Ref{Kind: "note", ID: some("note", 40)}}}
	}
	return p
}

// answered is what a call was told, without numbers of revisions.
func answered(receipts []store.Receipt, err error) string {
	for _, known := range []error{heed.ErrConflict, evidence.ErrFull} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	var setting *heed.SettingsError
	if errors.As(err, &setting) {
		return "settings"
	}
	var input *heed.InputError
	if errors.As(err, &input) { // without the name of the store
		return input.Error()
	}
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, r := range receipts {
		fmt.Fprintln(&text, r.Duplicate, slices.Sorted(slices.Values(r.Duplicates)), r.Left,
			r.Revision > 0, r.Parts)
	}
	return text.String()
}

// stateOf is what a store has.
func stateOf(t testing.TB, st store.Store) string {
	var text strings.Builder
	for part, err := range st.List(ctx, store.CellQuery{Kind: arm.Kind, Scope: arm.Scope}) {
		require.NoError(t, err)
		fmt.Fprintln(&text, part)
	}
	var notes []string
	for r, err := range st.Find(ctx, store.Query{Kind: "note"}) {
		require.NoError(t, err)
		body, err := r.Body.JSON()
		require.NoError(t, err)
		notes = append(notes, fmt.Sprintln(r.ID, r.Keys, string(body)))
	}
	slices.Sort(notes)
	return text.String() + strings.Join(notes, "")
}

// replay makes calls in memory, those of a round by the revisions that there are before it, and
// returns the last round's answers and what there is in the end.
func replay(t testing.TB, past [][][]plan) (answers []string, left string) {
	st, err := memstore.New(memstore.Config{Now: func() time.Time { return modelStart }})
	require.NoError(t, err)
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "note"}))
	for _, round := range past {
		answers = answers[:0]
		calls := make([][]store.Batch, len(round))
		for i, plans := range round {
			for _, p := range plans {
				calls[i] = append(calls[i], p.fill(t, st))
			}
		}
		for _, batches := range calls {
			answers = append(answers, answered(st.Commit(ctx, batches...)))
		}
	}
	return answers, stateOf(t, st)
}

// Random calls are made together. Their receipts and errors and the store are as if they had been
// made one after the other, in some order, in memory.
func TestTogetherIsAsOneByOne(t *testing.T) {
	skipRaced(t)
	at := sqliteFile(t, lites[0])
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{}
		c.driver, c.handle = hookedAt(t, at)
		defer func() { require.NoError(t, c.handle.Close()) }()
		var err error
		c.Store, err = sqlstore.Open(ctx, c.handle, at.dialect, sqlstore.Config{NoCache: true,
			Now: func() time.Time { return modelStart }})
		require.NoError(t, err)
		require.NoError(t, c.Declare(ctx, store.Kind{Name: "note"}))
		rng := rand.New(rand.NewPCG(5, 6))
		var past [][][]plan
		together := 0
		for round := range rounds(40, 400) {
			var plans [][]plan
			var all []*attempt
			for range 3 {
				call, a := []plan{randomPlan(rng), randomPlan(rng)}[:1+rng.IntN(2)], &attempt{}
				for _, p := range call {
					a.batches = append(a.batches, p.fill(t, c.Store))
				}
				plans, all = append(plans, call), append(all, a)
			}
			c.together(all, nil)
			if c.count <= 3 {
				together++
			}
			left, fits := stateOf(t, c.Store), false
			for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1},
				{2, 1, 0}} {
				answers, memory := replay(t, append(slices.Clone(past), [][]plan{plans[order[0]],
					plans[order[1]], plans[order[2]]}))
				fits = memory == left
				for k, i := range order {
					fits = fits && answers[k] == answered(all[i].receipt, all[i].err)
				}
				if fits {
					past = append(past, [][]plan{plans[order[0]], plans[order[1]], plans[order[2]]})
					break
				}
			}
			for i, a := range all {
				if !fits {
					t.Logf("%d: %+v\n%s", i, a.batches, answered(a.receipt, a.err))
				}
			}
			require.True(t, fits, "round %d: there is no order in which memory says the same", round)
		}
		assert.Greater(t, together, rounds(40, 400)/4)
	})
}

// TestTogetherEachCountsOnce has 64 callers who each make and repeat batches that another makes,
// too, while some contexts end. Every id counts once, and each call learns what it did.
func TestTogetherEachCountsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		const callers, each = 64, 6
		var applied, unknown, gone atomic.Int64
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for i := range each {
					b := noted(fmt.Sprint(caller/2*each + i)) // which one other makes, too
					b.ID, b.PartsOf = "batch "+b.Observations[0].ID, store.CellsOf(b.Observations...)
					within, cancel := context.WithCancel(ctx)
					if (caller+i)%7 == 0 {
						within, cancel = context.WithTimeout(ctx, time.Duration(caller)*100*time.Microsecond)
					}
					_, limited := within.Deadline() // a driver may notice it before the context
					receipts, err := st.Commit(within, b)
					switch {
					case err != nil && limited:
						unknown.Add(1)
					case !assert.NoError(t, err):
					case !receipts[0].Duplicate:
						applied.Add(1)
						assert.NotEmpty(t, receipts[0].Parts)
					default:
						gone.Add(1)
					}
					cancel()
				}
			})
		}
		all.Wait()
		assert.LessOrEqual(t, applied.Load(), int64(callers/2*each))
		assert.LessOrEqual(t, int64(notedIn(t, st)), applied.Load()+unknown.Load())
		assert.GreaterOrEqual(t, int64(notedIn(t, st)), applied.Load())
		assert.EqualValues(t, callers*each, applied.Load()+unknown.Load()+gone.Load())
	})
}
