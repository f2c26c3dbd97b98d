package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// held keeps reads of whether all tenants are frozen until it is released.
type held struct {
	store.Store
	on, entered, release chan struct{}
}

func (h *held) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	select {
	case <-h.on:
		if refs[0].ID == "frozen" && !strings.Contains(refs[0].Kind, "@") {
			close(h.entered)
			<-h.release
		}
	default:
	}
	return h.Store.Read(ctx, into, cells, refs, finds...)
}

// While a store hangs for one tenant, the agents of others are found.
func TestATenantIsFoundWhileAnotherWaits(t *testing.T) {
	clock := &clock{now: start}
	st := &held{Store: new(memstore.Store), on: make(chan struct{}), entered: make(chan struct{}),
		release: make(chan struct{})}
	root, err := loop.New(ctx, loop.Config{Store: st, Model: &mouth{says: "Yes."},
		Testing: loop.Testing{Now: clock.Now}})
	require.NoError(t, err)
	acme, err := root.Tenant(ctx, "acme")
	require.NoError(t, err)
	umbrella, err := root.Tenant(ctx, "umbrella")
	require.NoError(t, err)
	clock.now = clock.now.Add(time.Minute)
	close(st.on)
	answered := make(chan error, 1)
	go func() {
		_, err := acme.Answer(ctx, loop.Event{Text: "Hi"})
		answered <- err
	}()
	<-st.entered
	found := make(chan *loop.Agent, 1)
	go func() {
		agent, _ := root.Tenant(ctx, "umbrella")
		found <- agent
	}()
	select {
	case agent := <-found:
		assert.Same(t, umbrella, agent)
	case <-time.After(10 * time.Second):
		assert.Fail(t, "the other tenant waits")
	}
	close(st.release)
	require.NoError(t, <-answered)
}

// Two tenants share a store, and the ids, sessions and people of both are the same. News for one
// changes neither the beliefs nor the prompts nor the answers of the other.
func TestTenants(t *testing.T) {
	clock := &clock{now: start}
	st, err := memstore.New(memstore.Config{Now: clock.Now})
	require.NoError(t, err)
	model := &mouth{says: "Look at the logs."}
	cfg := loop.Config{
		Store: st, Model: model, Testing: loop.Testing{Now: clock.Now},
		System: "You help.", Arms: []loop.Arm{{ID: "a"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	}
	root, err := loop.New(ctx, cfg)
	require.NoError(t, err)
	tenant := func(name string) *world {
		agent, err := root.Tenant(ctx, name)
		require.NoError(t, err)
		again, err := agent.Tenant(ctx, name)
		require.NoError(t, err)
		assert.Same(t, agent, again)
		return &world{t: t, clock: clock, store: agent.Store(), model: model, cfg: cfg, Agent: agent}
	}
	acme, umbrella := tenant("acme"), tenant("umbrella")
	event := loop.Event{Text: "Why is the build slow?", Session: "s", Person: "ann"}
	ask := func(w *world, id string) loop.Answer {
		e := event
		e.ID = id
		return w.answer(e)
	}
	for _, person := range []string{"ann", "bob"} {
		ask(umbrella, person)
		require.NoError(t, umbrella.React(ctx, person, loop.Reaction{Person: person, Value: 1}))
	}
	before, trust := umbrella.mean("", "a"), umbrella.confidence("rotate")

	for i := range 20 {
		id := fmt.Sprint("e", i)
		ask(acme, id)
		require.NoError(t, acme.React(ctx, id, loop.Reaction{Person: "ann", Value: -1}))
		answered := acme.answer(loop.Event{ID: "full " + id, Text: full, Session: "s", Person: "ann"})
		require.NoError(t, acme.React(ctx, answered.ID, loop.Reaction{Person: "ann", Value: -1}))
	}
	_, err = acme.Hear(ctx, learning.Message{ID: "m", Text: "undo that", Session: "s", Person: "ann"})
	require.NoError(t, err)
	require.NoError(t, second(acme.Correct(ctx, "e1",
		loop.Correction{Reviewer: "ann", Text: "Name the ticket always."})))
	assert.Less(t, acme.mean("", "a"), before)
	assert.Less(t, acme.confidence("rotate"), trust)
	require.NoError(t, umbrella.Strategy().Refresh(ctx))
	assert.InDelta(t, before, umbrella.mean("", "a"), 1e-12)
	assert.InDelta(t, trust, umbrella.confidence("rotate"), 1e-12)
	assert.ErrorIs(t, umbrella.React(ctx, "e1", loop.Reaction{Person: "ann", Value: 1}),
		loop.ErrNoAnswer)
	assert.ErrorIs(t, umbrella.Undo(ctx, "e1", "ann"), loop.ErrNoAnswer)

	approve(t, acme, feedback.Draft{Text: "Name the ticket always", Agents: []string{"loop"}})
	ask(acme, "later")
	system, _ := model.last()
	assert.Contains(t, system, "Name the ticket always")
	ask(umbrella, "later")
	system, _ = model.last()
	assert.NotContains(t, system, "Name the ticket always")

	approve(t, acme, feedback.Draft{Text: "Answer in one sentence", AllAgents: true})
	ask(umbrella, "at last")
	system, _ = model.last()
	assert.NotContains(t, system, "Answer in one sentence", "all agents are those of the tenant")
	require.NoError(t, store.Run(ctx, acme.Store(), store.Job{Forget: []string{"ann"}, At: start}))
	require.NoError(t, umbrella.Strategy().Refresh(ctx))
	assert.InDelta(t, before, umbrella.mean("", "a"), 1e-12, "ann is forgotten by acme alone")
	explained, err := umbrella.Explain(ctx, "ann")
	require.NoError(t, err)
	assert.True(t, explained.Known, "her thumb still counts")

	require.NoError(t, store.Run(ctx, st, store.Job{Leave: "acme", At: start}))
	_, err = acme.Explain(ctx, "e1")
	require.ErrorIs(t, err, loop.ErrNoAnswer)
	var all bytes.Buffer
	require.NoError(t, st.Dump(ctx, &all))
	assert.NotContains(t, all.String(), "acme")
	assert.Contains(t, all.String(), "umbrella")
}

// TestTenantsShareArms if the host says so: a sixth tenant begins with what five have learned.
func TestTenantsShareArms(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := newWorld(t, loop.Config{
			Arms: []loop.Arm{{ID: "a"}}, Tuning: loop.Tuning{Strategy: strategy.Config{Shared: shared}},
		})
		mean := func(tenant string, thumbs int) float64 {
			agent, err := w.Tenant(ctx, tenant)
			require.NoError(t, err)
			for i := range thumbs {
				answer, err := agent.Answer(ctx, loop.Event{Text: "Why?"})
				require.NoError(t, err)
				require.NoError(t, agent.React(ctx, answer.ID,
					loop.Reaction{Person: fmt.Sprint(i), Value: 1}))
			}
			require.NoError(t, agent.Strategy().Refresh(ctx))
			beliefs, err := agent.Strategy().Beliefs(ctx, strategy.Query{})
			require.NoError(t, err)
			return beliefs[0].Mean()
		}
		for i := range 5 {
			mean(fmt.Sprint("tenant ", i), 10)
		}
		if got := mean("new", 0); shared {
			assert.Greater(t, got, 0.75)
		} else {
			assert.InDelta(t, 0.5, got, 1e-12)
		}
	}
}

// TestTenantLeaves while its model answers, and comes again. The agents of its first stay, in this
// process and in another one, bring nothing back, and the second stay begins with the lessons.
func TestTenantLeaves(t *testing.T) {
	asked, answers := make(chan bool), make(chan bool)
	w := newWorld(t, loop.Config{
		Arms: []loop.Arm{{ID: "a"}}, Tuning: loop.Tuning{Strategy: strategy.Config{Shared: true}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
		Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
			error) {
			asked <- true
			answers <- true
			return decision.LLMResponse{Text: "It is."}, nil
		}),
	})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	require.ErrorAs(t, store.Run(ctx, acme.Store(), store.Job{Leave: "acme"}), new(*heed.InputError))
	_, err = store.Tenant(acme.Store(), "bravo")
	require.ErrorAs(t, err, new(*heed.InputError))
	elsewhere, err := w.again().Tenant(ctx, "acme")
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		_, err := acme.Answer(ctx, loop.Event{Text: "Why?", Person: "ann"})
		ended <- err
	}()
	<-asked
	require.NoError(t, store.Run(ctx, w.store, store.Job{Leave: "acme", At: start}))
	<-answers
	require.ErrorIs(t, <-ended, store.ErrLeft)
	event := loop.Event{Text: full, Person: "ann"}
	go func() { <-asked; <-answers }()
	_, err = elsewhere.Answer(ctx, event)
	require.ErrorIs(t, err, store.ErrLeft)
	fault := view.FaultOf(err, reflect.TypeFor[struct{}]())
	assert.Equal(t, view.Unknown, fault.Sort)
	w.clock.Advance(time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	var all bytes.Buffer
	require.NoError(t, w.store.(*memstore.Store).Dump(ctx, &all))
	assert.NotContains(t, all.String(), "acme")
	assert.NotContains(t, all.String(), "ann")

	again, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	answer, err := again.Answer(ctx, event)
	require.NoError(t, err)
	assert.Equal(t, decision.Heuristic, answer.Result.Path)
}

// TestTenantOfWhoeverWaits makes an agent although the context of another caller is over.
func TestTenantOfWhoeverWaits(t *testing.T) {
	w := newWorld(t, loop.Config{})
	over, cancel := context.WithCancel(ctx)
	cancel()
	errs := make(chan error, 100)
	for range 50 {
		go func() { errs <- second(w.Tenant(over, "acme")) }()
		go func() { errs <- second(w.Tenant(ctx, "acme")) }()
	}
	failed := 0
	for range 100 {
		if err := <-errs; err != nil {
			require.ErrorIs(t, err, context.Canceled)
			failed++
		}
	}
	assert.LessOrEqual(t, failed, 50)
	_, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
}

// TestTenantIsSweptAfterAClockJumpsBack by the clock as it is then.
func TestTenantIsSweptAfterAClockJumpsBack(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	for i, jump := range []time.Duration{1000 * time.Hour, -1000 * time.Hour} {
		w.clock.Advance(jump)
		_, err = acme.Answer(ctx, loop.Event{ID: fmt.Sprint(i), Text: full, Person: "ann"})
		require.NoError(t, err)
	}
	w.clock.Advance(48 * time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	account, err := acme.Explain(ctx, "1")
	require.NoError(t, err)
	assert.True(t, account.Known, "silence was counted")
}

// TestTenantsAreSwept by the agent of all tenants, also by one that never saw them.
func TestTenantsAreSwept(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	_, err = acme.Answer(ctx, loop.Event{ID: "e", Text: full, Person: "ann"})
	require.NoError(t, err)
	w.clock.now = w.clock.now.Add(48 * time.Hour)
	other := w.again()
	require.NoError(t, other.Sweep(ctx, time.Time{}))
	account, err := acme.Explain(ctx, "e")
	require.NoError(t, err)
	assert.True(t, account.Known, "silence was counted")
	reads := &counted{Store: w.store}
	w.cfg.Store = reads
	third := w.again()
	require.NoError(t, third.Sweep(ctx, time.Time{}))
	assert.Zero(t, reads.swept, "a sweep is no activity: the tenant is not due again")
}

// A conflict of the host's own is one, and does not mean that the tenant left.
func TestAConflictInATenant(t *testing.T) {
	w := newWorld(t, loop.Config{})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	require.NoError(t, acme.Store().Declare(ctx, store.Kind{Name: "host"}))
	made := store.Batch{Records: []store.Record{{
		Ref: store.Ref{Kind: "host", ID: "1"}, At: start, Body: store.Of("x"), Revision: store.Once,
	}}}
	_, err = acme.Store().Commit(ctx, made)
	require.NoError(t, err)
	made.Records[0].Revision = 99
	_, err = acme.Store().Commit(ctx, made)
	require.ErrorIs(t, err, heed.ErrConflict)
	require.NotErrorIs(t, err, store.ErrLeft)
	_, err = acme.Answer(ctx, loop.Event{Text: full})
	require.NoError(t, err)
}

// Whichever call of the store fails, a sweep of tenants that were never seen ends with the error.
func TestASweepOfTenantsWithoutTheStore(t *testing.T) {
	w := newWorld(t, loop.Config{})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	_, err = acme.Answer(ctx, loop.Event{ID: "e", Text: full, Person: "ann"})
	require.NoError(t, err)
	st := &storetest.Failing{Store: w.store}
	w.cfg.Store = st
	for at := 1; ; at++ {
		w.clock.now = w.clock.now.Add(25 * time.Hour) // the tenant is due, also if it is idle
		other := w.again()
		st.Fail(at, false)
		err := other.Sweep(ctx, time.Time{})
		if !st.Failed() {
			require.NoError(t, err)
			break
		}
		require.Error(t, err, "call %d", at)
		st.Fail(0, false)
	}
}

// TestFreezeHoldsForTenants, and one tenant's for itself.
func TestFreezeHoldsForTenants(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a"}}})
	frozen := func(a *loop.Agent) bool {
		answer, err := a.Answer(ctx, loop.Event{Text: "Why?"})
		require.NoError(t, err)
		require.NoError(t, a.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 1}))
		account, err := a.Explain(ctx, answer.ID)
		require.NoError(t, err)
		return !account.Known
	}
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	bravo, err := w.Tenant(ctx, "bravo")
	require.NoError(t, err)
	require.NoError(t, acme.Freeze(ctx, true))
	assert.Equal(t, []bool{true, false, false},
		[]bool{frozen(acme), frozen(bravo), frozen(w.Agent)})
	require.NoError(t, w.Freeze(ctx, true))
	w.clock.now = w.clock.now.Add(time.Second)
	assert.True(t, frozen(bravo))
	require.NoError(t, w.Freeze(ctx, false))
	require.NoError(t, acme.Freeze(ctx, false))
	w.clock.now = w.clock.now.Add(time.Second)
	assert.False(t, frozen(acme))
}

// TestManyTenants has more tenants than a process keeps.
func TestManyTenants(t *testing.T) {
	w := newWorld(t, loop.Config{})
	first, err := w.Tenant(ctx, "tenant 0")
	require.NoError(t, err)
	for i := range 513 {
		_, err := w.Tenant(ctx, fmt.Sprint("tenant ", i))
		require.NoError(t, err)
	}
	again, err := w.Tenant(ctx, "tenant 0")
	require.NoError(t, err)
	assert.NotSame(t, first, again)
	_, err = w.Tenant(ctx, "a\nb")
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Tenant", fault.Field)
	root, err := first.Tenant(ctx, "")
	require.NoError(t, err)
	assert.Same(t, w.Agent, root)
}

// approve makes a rule.
func approve(t *testing.T, w *world, d feedback.Draft) {
	t.Helper()
	rules := w.Feedback().Rules()
	p, err := rules.Propose(ctx, feedback.Submission{Draft: d, Actor: "kim", Reason: "r"})
	require.NoError(t, err)
	for _, actor := range []string{"lee", "max"} {
		_, err = rules.Review(ctx, feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: actor, Reason: "r",
		})
		require.NoError(t, err)
	}
}

// A counted store counts the records of when tenants are swept.
type counted struct {
	store.Store
	swept int
}

func (c *counted) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	for i := range batches {
		for k := range batches[i].Records {
			if batches[i].Records[k].Kind == "loop.tenant" {
				c.swept++
			}
		}
	}
	return c.Store.Commit(ctx, batches...)
}

// A fullDisk has a store that can be read, and takes no commits while it is full.
type fullDisk struct {
	store.Store
	full bool
}

func (f *fullDisk) Commit(ctx context.Context, b ...store.Batch) ([]store.Receipt, error) {
	if f.full {
		return nil, heed.ErrUnavailable
	}
	return f.Store.Commit(ctx, b...)
}

// Making the agent of a tenant only reads, so it does not end an outage of commits.
func TestTenantsOfAFullStore(t *testing.T) {
	observer, notices := outagesOf()
	w := newWorld(t, loop.Config{Observer: observer})
	disk := &fullDisk{Store: w.store}
	w.cfg.Store = disk
	for _, disk.full = range []bool{false, true} {
		root := w.again() // which has no tenant in memory
		for i := range 3 {
			acme, err := root.Tenant(ctx, fmt.Sprint("acme ", i))
			require.NoError(t, err)
			if !disk.full {
				_, err = acme.Answer(ctx, loop.Event{Text: "Hi"})
				require.NoError(t, err)
			}
			_, _ = root.Answer(ctx, loop.Event{Text: "Hi"})
		}
	}
	assert.Len(t, notices(), 1)
}

// A tenant's agent answers without the store as the agent of all tenants does, and obeys the last
// freeze that it knows of. A store that hangs holds it for six seconds.
func TestATenantWithoutTheStore(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		w := newWorld(t, loop.Config{})
		st := &storetest.Failing{Store: w.store}
		w.cfg.Store = st
		root := w.again()
		require.NoError(t, root.Freeze(ctx, frozen))
		acme, err := root.Tenant(ctx, "acme")
		require.NoError(t, err)
		e := loop.Event{Text: "undo that", Session: "u", Person: "cid"}
		_, err = acme.Answer(ctx, e)
		require.NoError(t, err)
		st.SetAway(true)
		w.clock.Advance(time.Minute)
		a, err := acme.Answer(ctx, e)
		require.NoError(t, err)
		assert.Equal(t, "Look at the logs.", a.Text)
		require.NotNil(t, a.Degraded)
		assert.Equal(t, !frozen, a.Plan.Command)
		_, err = root.Tenant(ctx, "a new one")
		require.ErrorIs(t, err, heed.ErrUnavailable)
	}
	synctest.Test(t, func(t *testing.T) {
		sea := &tide{Store: new(memstore.Store)}
		root, err := loop.New(ctx, loop.Config{Store: sea, Model: &mouth{says: "Yes."}})
		require.NoError(t, err)
		acme, err := root.Tenant(ctx, "acme")
		require.NoError(t, err)
		_, err = acme.Answer(ctx, loop.Event{Text: "Hi"})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		sea.out.Store(true)
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		began := time.Now()
		a, err := acme.Answer(limited, loop.Event{Text: "Hi"})
		require.NoError(t, err)
		assert.Equal(t, "Yes.", a.Text)
		assert.Equal(t, 6*time.Second, time.Since(began))
	})
}

// noting holds commits that note that a tenant is active, once it is on.
type noting struct {
	store.Store
	on               atomic.Bool
	entered, release chan struct{}
}

func (n *noting) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	for _, b := range batches {
		for _, r := range b.Records {
			if n.on.Load() && r.Kind == "loop.tenant" {
				n.entered <- struct{}{}
				<-n.release
			}
		}
	}
	return n.Store.Commit(ctx, batches...)
}

// While a store hangs at noting that a tenant is active, other calls of the tenant go on.
func TestACallDoesNotWaitForTheNoteOfAnother(t *testing.T) {
	st := &noting{Store: new(memstore.Store), entered: make(chan struct{}, 9),
		release: make(chan struct{})}
	clock := &clock{now: start}
	root, err := loop.New(ctx, loop.Config{Store: st, Model: &mouth{says: "Yes."},
		Testing: loop.Testing{Now: clock.Now}})
	require.NoError(t, err)
	answered := make(chan error, 2)
	answer := func(a *loop.Agent) { answered <- second(a.Answer(ctx, loop.Event{Text: "Hi"})) }
	acme, err := root.Tenant(ctx, "acme")
	require.NoError(t, err)
	clock.Advance(time.Hour)
	st.on.Store(true)
	go answer(acme)
	<-st.entered
	go answer(acme)
	select {
	case err := <-answered:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		assert.Fail(t, "the second call waits")
	}
	close(st.release)
	require.NoError(t, <-answered)
}

// All tenants share the models. What one process learned of an outage by one tenant, another
// process knows for every other tenant, and it is one incident.
func TestOutagesOfTenants(t *testing.T) {
	dead := &mouth{err: llm.Unreachable}
	observe, told := outagesOf()
	w := newWorld(t, loop.Config{Model: dead, Fallbacks: []decision.LLM{&mouth{says: "Spare."}},
		Observer: observe})
	ask := func(root *loop.Agent, tenant string, n int) {
		a, err := root.Tenant(ctx, tenant)
		require.NoError(t, err)
		for range n {
			_, err := a.Answer(ctx, loop.Event{Text: "Hi"})
			require.NoError(t, err)
		}
	}
	ask(w.Agent, "x", 3)
	ask(w.Agent, "y", 1)
	assert.Equal(t, []string{"model is out"}, told())
	assert.Equal(t, 3, dead.calls())
	for _, tenant := range []string{"z", "x", ""} {
		ask(w.again(), tenant, 1)
		assert.Equal(t, []string{"model is out"}, told(), "each process reports it")
		assert.Equal(t, 3, dead.calls(), "%q asks it", tenant)
	}
}

// A damaged record of one tenant does not keep others from being swept.
func TestASweepPassesOverADamagedTenant(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for _, name := range []string{"acme", "umbrella"} {
		tenant, err := w.Tenant(ctx, name)
		require.NoError(t, err)
		_, err = tenant.Answer(ctx, loop.Event{Text: full})
		require.NoError(t, err)
	}
	revisions := func() (all []uint64) {
		for r, err := range w.store.Find(ctx, store.Query{Kind: "loop.tenant"}) {
			require.NoError(t, err)
			all = append(all, r.Revision)
		}
		return all
	}
	w.spoil(store.Ref{Kind: "loop.tenant"})
	before := revisions()
	require.Len(t, before, 2)
	w.clock.Advance(time.Hour)
	require.ErrorIs(t, w.Sweep(ctx, time.Time{}), heed.ErrDamaged)
	swept := 0
	for _, revision := range revisions() {
		if !slices.Contains(before, revision) {
			swept++
		}
	}
	assert.Equal(t, 1, swept)
}

// A tenant that answers is swept later, whichever call of the store fails at first.
func TestAnActiveTenantIsNoted(t *testing.T) {
	failEach(t, func(t *testing.T, at int, after bool) bool {
		sea := &storetest.Failing{Store: new(memstore.Store)}
		w := newWorld(t, loop.Config{Store: sea})
		sea.Fail(at, after)
		if acme, err := w.Tenant(ctx, "acme"); err == nil {
			_, _ = acme.Answer(ctx, loop.Event{Text: "Why?"})
		}
		failed := sea.Failed()
		sea.Fail(0, false)
		acme, err := w.Tenant(ctx, "acme")
		require.NoError(t, err)
		require.NoError(t, second(acme.Answer(ctx, loop.Event{Text: "Why not?"})))
		rows := 0
		for _, err := range sea.Find(ctx, store.Query{Kind: "loop.tenant"}) {
			require.NoError(t, err)
			rows++
		}
		assert.Equal(t, 1, rows, "call %d", at)
		return failed
	})
}

// A tenant is swept again a minute later, and a day later if it was idle for a day. What fails is
// reported.
func TestWhenATenantIsSweptNext(t *testing.T) {
	disk := &fullDisk{Store: new(memstore.Store)}
	w := newWorld(t, loop.Config{Store: disk})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	require.NoError(t, second(acme.Answer(ctx, loop.Event{Text: "Why?"})))
	due := func() (at time.Time) {
		for r, err := range disk.Find(ctx, store.Query{Kind: "loop.tenant"}) {
			require.NoError(t, err)
			at = r.At
		}
		return at
	}
	for idle, next := range map[time.Duration]time.Duration{
		24 * time.Hour: time.Minute, 24*time.Hour + time.Second: 24 * time.Hour,
	} {
		w.clock.now = start.Add(idle)
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		assert.Equal(t, next, due().Sub(w.clock.Now()), "idle for %v", idle)
		w.clock.now = start
		w.Agent = w.again()
		acme, err = w.Tenant(ctx, "acme")
		require.NoError(t, err)
		require.NoError(t, second(acme.Answer(ctx, loop.Event{Text: "Why?"})))
	}
	disk.full = true
	require.ErrorIs(t, w.Sweep(ctx, time.Time{}), heed.ErrUnavailable)
}

// The choices of a tenant follow from the seed and its name, in whatever order tenants come, and
// from neither without a seed.
func TestSeedsOfTenants(t *testing.T) {
	chosen := func(seeded bool, tenants ...string) (all string) {
		cfg := loop.Config{
			Store: new(memstore.Store), Model: &mouth{says: "So."},
			Arms: []loop.Arm{{ID: "a"}, {ID: "b"}},
		}
		if seeded {
			cfg.Testing.Seed = newSource(7)
		}
		root, err := loop.New(ctx, cfg)
		require.NoError(t, err)
		for _, tenant := range tenants {
			agent, err := root.Tenant(ctx, tenant)
			require.NoError(t, err)
			if tenant != "acme" {
				continue
			}
			for n := range 60 {
				p, err := agent.Prepare(ctx, loop.Event{ID: fmt.Sprint(n), Text: "Why?"})
				require.NoError(t, err)
				all += p.Arm.ID
			}
		}
		return all
	}
	assert.Equal(t, chosen(true, "acme"), chosen(true, "other", "acme"))
	one, another := chosen(false, "acme"), chosen(false, "acme")
	assert.NotEqual(t, one, another)
}
