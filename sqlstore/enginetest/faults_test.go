package enginetest_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// stores are all stores of one database.
type stores struct {
	handle   *sql.DB
	evidence *sqlstore.Evidence
	choices  *sqlstore.Choices
	stream   *sqlstore.Stream
}

func newStores(t testing.TB, handle *sql.DB, db *sqlstore.DB) *stores {
	s := &stores{handle: handle, evidence: newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true, HistoryPerCell: 3, MaxAudit: 3})}
	var err error
	s.choices, err = sqlstore.NewChoices(db, sqlstore.ChoicesConfig{})
	require.NoError(t, err)
	s.stream, err = sqlstore.NewStream(ctx, db, sqlstore.StreamConfig{Name: "inbox"})
	require.NoError(t, err)
	return s
}

func choiceOf(i int) strategy.Choice {
	return strategy.Choice{ID: strategy.ChoiceID{15: byte(i), 14: byte(i >> 8)}, Session: "s", Item: "i", At: time.Now()}
}

func drain[T any](seq func(func(T, error) bool)) (n int, err error) {
	for _, err := range seq {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// methods are what the stores do. prepare makes ready for a call, without faults; call makes it; and effect tells what can
// be seen of it: before and after the call, and nothing between.
var methods = []struct {
	name          string
	prepare, call func(s *stores, i int) error
	effect        func(s *stores, i int) (any, error)
}{
	{
		name: "commit that adds",
		call: func(s *stores, i int) error {
			_, err := s.evidence.Commit(ctx, outcome(fmt.Sprint("add", i)))
			return err
		},
		effect: talliesAndRecords,
	},
	{
		name:    "commit that retracts",
		prepare: func(s *stores, i int) error { return s.add(outcome(fmt.Sprint("take", i))) },
		call:    func(s *stores, i int) error { return s.add(evidence.Batch{Retract: []string{fmt.Sprint("take", i)}}) },
		effect:  talliesAndRecords,
	},
	{
		name: "commit that expunges",
		prepare: func(s *stores, i int) error {
			b := outcome(fmt.Sprint("expunge", i))
			b.Observations[0].Source = "ann"
			return s.add(b)
		},
		call:   func(s *stores, i int) error { return s.add(evidence.Batch{Expunge: []string{"ann"}}) },
		effect: talliesAndRecords,
	},
	{
		name: "commit that resets, restarts and adds",
		call: func(s *stores, i int) error {
			b := outcome(fmt.Sprint("all", i))
			b.ID = fmt.Sprint("batch", i)
			b.Reset = []evidence.Selection{{Kind: arm.Kind, Scope: arm.Scope}}
			b.Restart = []evidence.Restart{{Cell: arm, At: time.Now().Add(-time.Hour)}}
			return s.add(b)
		},
		effect: talliesAndRecords,
	},
	{
		name:   "read, list, scopes, history, audit and outbox",
		call:   func(s *stores, i int) error { _, err := talliesAndRecords(s, i); return err },
		effect: func(*stores, int) (any, error) { return nil, nil },
	},
	{
		name: "add a choice",
		call: func(s *stores, i int) error { return s.choices.Add(ctx, choiceOf(i)) },
		effect: func(s *stores, i int) (any, error) {
			return drain(s.choices.List(ctx, strategy.ChoiceFilter{}))
		},
	},
	{
		name:    "settle a choice",
		prepare: func(s *stores, i int) error { return s.choices.Add(ctx, choiceOf(1000+i)) },
		call: func(s *stores, i int) error {
			_, err := s.choices.Settle(ctx, choiceOf(1000+i).ID, strategy.Result{ID: "r"})
			return err
		},
		effect: func(s *stores, i int) (any, error) {
			r, err := s.choices.Get(ctx, choiceOf(1000+i).ID)
			return r.Stage, err
		},
	},
	{
		name:    "end a session",
		prepare: func(s *stores, i int) error { return s.choices.Add(ctx, choiceOf(2000+i)) },
		call:    func(s *stores, i int) error { return s.choices.EndSession(ctx, "", "s") },
		effect: func(s *stores, i int) (any, error) {
			r, err := s.choices.Get(ctx, choiceOf(2000+i).ID)
			return r.Ended, err
		},
	},
	{
		name: "publish",
		call: func(s *stores, i int) error {
			return s.stream.Publish(ctx, evidence.Event{ID: fmt.Sprint(i), Topic: "t", At: time.Now()})
		},
		effect: inStream,
	},
	{
		name: "receive and acknowledge",
		prepare: func(s *stores, i int) error {
			return s.stream.Publish(ctx, evidence.Event{ID: fmt.Sprint("in", i), Topic: "t", At: time.Now()})
		},
		call: func(s *stores, i int) error {
			d, err := s.stream.Receive(ctx)
			if err != nil {
				return err
			}
			return d.Ack(ctx)
		},
		effect: inStream,
	},
}

func (s *stores) add(b evidence.Batch) error {
	_, err := s.evidence.Commit(ctx, b)
	return err
}

// talliesAndRecords is all that can be seen of the evidence.
func talliesAndRecords(s *stores, _ int) (any, error) {
	parts, err := s.evidence.Read(ctx, nil, arm)
	if err != nil {
		return nil, err
	}
	seen := []any{parts}
	for _, count := range []func() (int, error){
		func() (int, error) { return drain(s.evidence.List(ctx, arm.Kind, arm.Scope)) },
		func() (int, error) { return drain(s.evidence.Scopes(ctx, arm.Kind)) },
		func() (int, error) { return drain(s.evidence.History(ctx, arm)) },
		func() (int, error) { return drain(s.evidence.Audit(ctx)) },
		func() (int, error) { return drain(s.evidence.Outbox(ctx)) },
	} {
		n, err := count()
		if err != nil {
			return nil, err
		}
		seen = append(seen, n)
	}
	return seen, nil
}

// inStream counts what a stream holds.
func inStream(s *stores, _ int) (n any, err error) {
	err = s.handle.QueryRow("SELECT count(*) FROM heed_stream").Scan(&n)
	return n, err
}

// TestFaults has the first operation of the file system fail in each method, then the second, and so on until none is left:
// each time the method has done all or nothing, says which, and the stores go on.
func TestFaults(t *testing.T) {
	skipRaced(t)
	base := newDisk(t)
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			d := base.snapshot(nil)
			handle, done := d.on(t)
			defer done()
			db, err := sqlstore.New(ctx, handle, sqlstore.SQLite)
			require.NoError(t, err)
			s := newStores(t, handle, db)
			require.NoError(t, s.stream.Publish(ctx, evidence.Event{ID: "first", Topic: "t", At: time.Now()}))
			require.NoError(t, s.add(outcome("first")))
			failed := 0
			for n := 1; ; n++ {
				if m.prepare != nil {
					require.NoError(t, m.prepare(s, n))
				}
				before, err := m.effect(s, n)
				require.NoError(t, err)
				_, err = handle.Exec("PRAGMA cache_size = 0; PRAGMA shrink_memory") // so that there is something to read
				require.NoError(t, err)
				d.arm(n)
				failure := m.call(s, n)
				hit := d.hit()
				d.arm(0)
				after, err := m.effect(s, n)
				require.NoError(t, err, "the store is of no use after operation %d failed", n)
				if failure != nil {
					failed++
					require.Equal(t, before, after, "operation %d failed, and there is something of it: %v", n, failure)
				}
				if !hit {
					require.NoError(t, failure)
					break
				}
				require.Less(t, n, 2000)
			}
			t.Logf("%d operations failed the method", failed)
			require.Greater(t, failed, 2)
			var sound string
			require.NoError(t, handle.QueryRow("PRAGMA integrity_check").Scan(&sound))
			require.Equal(t, "ok", sound)
		})
	}
}
