package stream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/stream"
)

// A sink keeps the ids of what is published, and refuses one event.
type sink struct {
	ids     []string
	refuses string
}

func (s *sink) Publish(_ context.Context, e stream.Event) error {
	if e.ID == s.refuses {
		return errors.New("no connection")
	}
	s.ids = append(s.ids, e.ID)
	return nil
}

var at = time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.UTC)

// put puts events into the outbox. The second happened before the first.
func put(t *testing.T, st store.Store, ids ...string) {
	require.NoError(t, st.Declare(t.Context(), stream.Outbox))
	for i, id := range ids {
		e := stream.Event{ID: id, Topic: "suite", At: at.Add(-time.Duration(i) * time.Hour), Payload: []byte(`{"who":"ann"}`)}
		_, err := st.Commit(t.Context(), store.Batch{Records: []store.Record{e.Waiting("Ann", "")}})
		require.NoError(t, err)
	}
}

func waiting(t *testing.T, st store.Store) (ids []string) {
	for e, err := range stream.Waiting(t.Context(), st) {
		require.NoError(t, err)
		ids = append(ids, e.ID)
	}
	return ids
}

func TestEventsWaitInTheOrderOfTheirCommits(t *testing.T) {
	var st memstore.Store
	put(t, &st, "a", "b", "a", "c")
	require.Equal(t, []string{"a", "b", "c"}, waiting(t, &st),
		"an event that waits already waits once")
	for e, err := range stream.Waiting(t.Context(), &st) {
		require.NoError(t, err)
		require.Equal(t, stream.Event{ID: "a", Topic: "suite", At: at.Truncate(time.Microsecond), Payload: []byte(`{"who":"ann"}`)}, e)
		e.Payload[0] = 'x' // which changes no copy but this
		break
	}
	for e, err := range stream.Waiting(t.Context(), &st) {
		require.NoError(t, err)
		require.JSONEq(t, `{"who":"ann"}`, string(e.Payload))
	}
}

func TestAnEventIsFoundByThoseItNames(t *testing.T) {
	var st memstore.Store
	put(t, &st, "a")
	found := 0
	for r, err := range st.Find(t.Context(), store.Query{Kind: stream.Outbox.Name,
		Keys: []string{store.PersonKey("ANN")}}) {
		require.NoError(t, err)
		require.Len(t, r.Keys, 1, "nobody has no key")
		found++
	}
	require.Equal(t, 1, found)
}

func TestRelay(t *testing.T) {
	var st memstore.Store
	var all []string
	for i := range 250 { // more than are taken out at a time
		all = append(all, fmt.Sprint("event ", i))
	}
	put(t, &st, all...)
	to := &sink{refuses: "event 120"}
	sent, err := stream.Relay(t.Context(), &st, to)
	require.ErrorContains(t, err, "no connection")
	require.Equal(t, 120, sent)
	require.Equal(t, all[120:], waiting(t, &st),
		"what was published is taken out, also where the next fails")
	to.refuses = ""
	sent, err = stream.Relay(t.Context(), &st, to)
	require.NoError(t, err)
	require.Equal(t, 130, sent)
	require.Equal(t, all, to.ids)
	require.Empty(t, waiting(t, &st))
}

// TestRelaysTogether has another relay take events out while one publishes them.
func TestRelaysTogether(t *testing.T) {
	var st memstore.Store
	put(t, &st, "a", "b", "c")
	other := &sink{}
	first := true
	sent, err := stream.Relay(t.Context(), &st, publish(func(e stream.Event) error {
		if first {
			first = false
			_, err := stream.Relay(t.Context(), &st, other)
			return err
		}
		return nil
	}))
	require.NoError(t, err)
	require.Zero(t, sent, "the other has taken all of them out")
	require.Equal(t, []string{"a", "b", "c"}, other.ids)
	require.Empty(t, waiting(t, &st))
}

type publish func(stream.Event) error

func (p publish) Publish(_ context.Context, e stream.Event) error { return p(e) }

// TestRelayLosesNothing lets each call of the store fail: an event is published once or more, and
// never taken out before.
func TestRelayLosesNothing(t *testing.T) {
	storetest.FailEach(func(n int, after bool) bool {
		var st memstore.Store
		put(t, &st, "a", "b")
		broken := &storetest.Failing{Store: &st, At: n, After: after}
		to := &sink{}
		_, err := stream.Relay(t.Context(), broken, to)
		if !broken.Failed() {
			require.NoError(t, err)
			return false
		}
		require.ErrorIs(t, err, storetest.ErrFailed)
		_, err = stream.Relay(t.Context(), &st, to)
		require.NoError(t, err)
		require.Subset(t, to.ids, []string{"a", "b"})
		require.Empty(t, waiting(t, &st))
		return true
	})
}

func TestOutboxThatIsFull(t *testing.T) {
	st,
		err := memstore.New(memstore.Config{Retention: store.Retention{Limits: map[string]store.Limits{
		stream.Outbox.Name: {Most: 2, Refuse: true}}}})
	require.NoError(t, err)
	put(t, st, "a", "b")
	_, err = st.Commit(t.Context(), store.Batch{
		Records: []store.Record{stream.Event{ID: "c", Topic: "suite", At: at}.Waiting()}})
	require.ErrorIs(t, err, evidence.ErrFull)
	require.Equal(t, []string{"a", "b"}, waiting(t, st))
}

// A mailbox keeps the ids of events by tenant.
type mailbox map[string][]string

func (m mailbox) Publish(ctx context.Context, e stream.Event) error {
	tenant := heed.TenantOf(ctx)
	m[tenant] = append(m[tenant], e.ID)
	return nil
}

// Events are taken out a hundred at a time, and those at the end together.
func TestHowOftenEventsAreTakenOut(t *testing.T) {
	for events, commits := range map[int]int{0: 0, 1: 1, 99: 1, 100: 1, 101: 2, 250: 3} {
		st := &storetest.Failing{Store: &memstore.Store{}}
		var ids []string
		for i := range events {
			ids = append(ids, fmt.Sprint(i))
		}
		put(t, st, ids...)
		st.Fail(0, false)
		sent, err := stream.Relay(t.Context(), st, &sink{})
		require.NoError(t, err)
		require.Equal(t, events, sent)
		require.Equal(t, commits, st.Calls("Commit"), "%d events", events)
	}
}

// An event that can't be read stays, is an error, and keeps no other from being published or
// listed.
func TestAnEventThatCannotBeRead(t *testing.T) {
	var st memstore.Store
	put(t, &st, "a")
	bad := stream.Event{ID: "bad"}.Waiting()
	bad.Body = store.Of("no event")
	_, err := st.Commit(t.Context(), store.Batch{Records: []store.Record{bad}})
	require.NoError(t, err)
	put(t, &st, "c")
	to := &sink{}
	sent, err := stream.Relay(t.Context(), &st, to)
	require.ErrorContains(t, err, "stream: relay: ")
	require.Equal(t, 2, sent)
	require.Equal(t, []string{"a", "c"}, to.ids)
	put(t, &st, "d")
	listed, failed := 0, 0
	for _, err := range stream.Waiting(t.Context(), &st) {
		if listed++; err != nil {
			failed++
		}
	}
	require.Equal(t, []int{2, 1}, []int{listed, failed})
}

// An event that its sink refuses for good, as the brokers' sinks refuse a topic, holds up no other.
func TestAnEventThatIsRefusedForGood(t *testing.T) {
	var st memstore.Store
	put(t, &st, "a", "refused", "c")
	refusal := &heed.InputError{Field: "Topic"}
	sent, err := stream.Relay(t.Context(), &st, publish(func(e stream.Event) error {
		if e.ID == "refused" {
			return fmt.Errorf("the sink: %w", refusal)
		}
		return nil
	}))
	require.ErrorIs(t, err, refusal)
	require.Equal(t, 2, sent)
	require.Equal(t, []string{"refused"}, waiting(t, &st))
}

// TestRelaysTogetherFail has another relay take one of the events out, and the store fail when the
// rest are taken out one by one.
func TestRelaysTogetherFail(t *testing.T) {
	for at, want := range map[int]int{0: 2, 1: 0, 2: 0, 3: 0, 4: 1} {
		st := &storetest.Failing{Store: &memstore.Store{}}
		put(t, st, "a", "b", "c")
		sent, err := stream.Relay(t.Context(), st, publish(func(e stream.Event) error {
			if e.ID != "c" {
				return nil
			}
			var first store.Record
			oldest := store.Query{Kind: stream.Outbox.Name, Oldest: true}
			for r, err := range st.Find(t.Context(), oldest) {
				require.NoError(t, err)
				first = store.Record{Ref: r.Ref, Revision: r.Revision}
				break
			}
			_, err := st.Commit(t.Context(), store.Batch{Records: []store.Record{first}})
			require.NoError(t, err)
			st.Fail(at, false)
			return nil
		}))
		require.Equal(t, want, sent, "%d", at)
		if at == 0 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, storetest.ErrFailed)
		}
	}
}

// TestTenantsAreRelayed by a relay of the store. Each sees its own events, and a tenant that leaves
// takes them along.
func TestTenantsAreRelayed(t *testing.T) {
	st := &memstore.Store{}
	put(t, st, "a")
	for _, tenant := range []string{"acme", "bravo"} {
		view, err := store.Tenant(st, tenant)
		require.NoError(t, err)
		require.Empty(t, waiting(t, view))
		put(t, view, "a", tenant)
		require.Equal(t, []string{"a", tenant}, waiting(t, view))
	}
	require.NoError(t, store.Run(t.Context(), st, store.Job{Forget: []string{"Ann"}, At: at}))
	require.Len(t, waiting(t, st), 5, "Ann is not forgotten by the tenants")
	require.NoError(t, store.Run(t.Context(), st, store.Job{Leave: "bravo", At: at}))
	sent := make(mailbox)
	n, err := stream.Relay(t.Context(), st, sent)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	ids := []string{store.IDOf("acme", "a"), store.IDOf("acme", "acme")}
	require.Equal(t, mailbox{"": {"a"}, "acme": ids}, sent)
	require.Empty(t, waiting(t, st))
}

// A relay of a tenant's part publishes with the tenant of its context.
func TestATenantsOwnRelay(t *testing.T) {
	view, err := store.Tenant(&memstore.Store{}, "acme")
	require.NoError(t, err)
	put(t, view, "a")
	sent := make(mailbox)
	_, err = stream.Relay(heed.WithTenant(t.Context(), "acme"), view, sent)
	require.NoError(t, err)
	require.Equal(t, mailbox{"acme": {"a"}}, sent)
}

// A runner without a stream and a place for dead letters does not run.
func TestARunnerNeedsItsStreams(t *testing.T) {
	err := (&stream.Runner{Workers: -1, Attempts: -1}).Run(t.Context())
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	require.Equal(t, []string{"Stream", "DeadLetters", "Workers", "Attempts"}, fields)
}
