package enginetest_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// methods are all that write.
var methods = []method{
	{name: "commit that adds", call: commit(outcome("o"))},
	{name: "commit that retracts", prepare: commit(outcome("o")), call: commit(evidence.Batch{Retract: []string{"o"}})},
	{name: "commit that expunges", prepare: commit(anns("o")), call: commit(evidence.Batch{Expunge: []string{"ann"}})},
	{
		name:    "commit that resets, restarts and adds",
		prepare: commit(outcome("before")),
		call: func(s *stores) error {
			b := outcome("o")
			b.ID = "batch"
			b.Reset = []evidence.Selection{{Kind: arm.Kind, Scope: arm.Scope}}
			b.Restart = []evidence.Restart{{Cell: arm, At: time.Now().Add(-time.Hour)}}
			return commit(b)(s)
		},
	},
	{
		name: "commit in the host's transaction",
		call: func(s *stores) error {
			tx, err := s.handle.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() //nolint:errcheck // of no account after Commit
			if _, err := s.evidence.CommitTx(ctx, tx, outcome("o")); err != nil {
				return err
			}
			return tx.Commit()
		},
	},
	{
		name:    "sweep history and audit that are over their number",
		prepare: many(5, func(id string) step { return commit(outcome(id)) }),
		call:    func(s *stores) error { return s.evidence.Sweep(ctx) },
		keeps:   sums,
	},
	{
		name: "sweep history, ids and cells that are past their time",
		prepare: func(s *stores) error {
			s.ahead = -longAgo
			defer func() { s.ahead = 0 }()
			old := func(id, item string) step {
				o := observe(id, time.Now().Add(-longAgo))
				o.Cell = evidence.Cell{Kind: arm.Kind, Scope: arm.Scope, Item: item, Name: arm.Name}
				return commit(evidence.Batch{Observations: []evidence.Observation{o}})
			}
			return steps(old("1", arm.Item), old("2", "gone"), commit(evidence.Batch{Retract: []string{"2"}}))(s)
		},
		call:  func(s *stores) error { return s.evidence.Sweep(ctx) },
		keeps: func(s *stores) (any, error) { return s.evidence.Read(ctx, nil, arm) },
	},

	{name: "add a choice", call: choose},
	{name: "settle a choice", prepare: choose, call: settle},
	{
		name: "expire a choice", prepare: choose,
		call: func(s *stores) error { _, err := s.choices.Expire(ctx, choiceOf(1).ID); return err },
	},
	{
		name: "end a session", prepare: choose,
		call: func(s *stores) error { return s.choices.EndSession(ctx, "", "s") },
	},
	{
		name: "sweep choices",
		prepare: steps(choose, func(s *stores) error {
			old := choiceOf(2)
			old.At = time.Now().Add(-longAgo)
			return s.choices.Add(ctx, old)
		}),
		call:  func(s *stores) error { return s.choices.Sweep(ctx) },
		keeps: func(s *stores) (any, error) { return s.choices.Get(ctx, choiceOf(1).ID) },
	},

	{name: "publish", call: publish},
	{name: "receive", prepare: publish, call: receive},
	{name: "acknowledge", prepare: steps(publish, receive), call: func(s *stores) error { return s.delivery.Ack(ctx) }},
	{name: "reject", prepare: steps(publish, receive), call: func(s *stores) error { return s.delivery.Reject(ctx, time.Hour) }},

	{name: "put a heuristic", call: put(learning.Heuristic{ID: "h"})},
	{
		name: "replace a heuristic", prepare: put(learning.Heuristic{ID: "h"}),
		call: put(learning.Heuristic{ID: "h", Revision: 1, Condition: "c"}),
	},
	{
		name: "delete a heuristic", prepare: put(learning.Heuristic{ID: "h"}),
		call: func(s *stores) error { return s.heuristics.Delete(ctx, "h") },
	},

	{name: "commit patterns", prepare: commitPattern("p", 0), call: commitPattern("p", 1)},
	{
		name:    "sweep patterns",
		prepare: many(4, func(id string) step { return commitPattern(id, 0) }),
		call:    func(s *stores) error { return s.patterns.Sweep(ctx) },
		keeps:   func(s *stores) (any, error) { return collect(s.patterns.Patterns(ctx, patterns.PatternQuery{})) },
	},

	{name: "add an error", call: fail("t")},
	{name: "resolve an error", prepare: fail("t"), call: func(s *stores) error { return s.errors.Resolve(ctx, "t") }},
	{name: "forget errors", prepare: fail("t"), call: func(s *stores) error { return s.errors.Forget(ctx, "t") }},
	{name: "sweep errors", prepare: many(4, fail), call: func(s *stores) error { return s.errors.Sweep(ctx) }},

	{
		name: "import",
		prepare: steps(annDoes("e"), func(s *stores) error {
			var out strings.Builder
			err := s.db.Export(ctx, &out)
			s.exported = out.String()
			return err
		}, empty),
		call: func(s *stores) error { return s.db.Import(ctx, strings.NewReader(s.exported)) },
	},
	{name: "forget", prepare: annDoes("e"), call: func(s *stores) error { return s.db.Forget(ctx, "ann") }},
}

// A reader is what reads from stores.
type reader struct {
	name string
	read func(*stores) (any, error)
}

// readers are all that read.
var readers = []reader{
	{"cells", func(s *stores) (any, error) { return s.evidence.Read(ctx, nil, arm) }},
	{"a list of cells", func(s *stores) (any, error) { return collect(s.evidence.List(ctx, arm.Kind, arm.Scope)) }},
	{"scopes", func(s *stores) (any, error) { return collect(s.evidence.Scopes(ctx, arm.Kind)) }},
	{"kinds", func(s *stores) (any, error) { return collect(s.evidence.Kinds(ctx)) }},
	{"history", func(s *stores) (any, error) { return collect(s.evidence.History(ctx, arm)) }},
	{"audit", func(s *stores) (any, error) { return collect(s.evidence.Audit(ctx)) }},
	{"outbox", func(s *stores) (any, error) { return collect(s.evidence.Outbox(ctx)) }},
	{"choice", func(s *stores) (any, error) { return s.choices.Get(ctx, choiceOf(1).ID) }},
	{"choices", func(s *stores) (any, error) { return collect(s.choices.List(ctx, strategy.ChoiceFilter{})) }},
	{"heuristic", func(s *stores) (any, error) { return s.heuristics.Get(ctx, "e") }},
	{"heuristics", func(s *stores) (any, error) { return collect(s.heuristics.All(ctx)) }},
	{"pattern", func(s *stores) (any, error) { return s.patterns.Pattern(ctx, "e") }},
	{"patterns", func(s *stores) (any, error) { return collect(s.patterns.Patterns(ctx, patterns.PatternQuery{})) }},
	{"transitions", func(s *stores) (any, error) { return collect(s.patterns.Transitions(ctx, "e")) }},
	{"entry", func(s *stores) (any, error) { return s.patterns.Entry(ctx, "e:0") }},
	{"entries", func(s *stores) (any, error) { return collect(s.patterns.Entries(ctx, patterns.EntryQuery{})) }},
	{"errors", func(s *stores) (any, error) { return collect(s.errors.Errors(ctx, "")) }},
	{"export", func(s *stores) (any, error) {
		var out strings.Builder
		err := s.db.Export(ctx, &out)
		return out.String(), err
	}},
}

func collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for value, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, value)
	}
	return all, nil
}

// longAgo is before all that the stores keep.
const longAgo = 100 * 24 * time.Hour

// count returns what a query counts.
func (s *stores) count(query string) (n int, err error) {
	err = s.handle.QueryRow(query).Scan(&n)
	return n, err
}

// sums are those of the arm, and whether each observation that they hold is in its history, or known to have left it.
func sums(s *stores) (any, error) {
	parts, err := s.evidence.Read(ctx, nil, arm)
	if err != nil {
		return nil, err
	}
	traced, err := s.count("SELECT (SELECT count(*) FROM heed_history) + (SELECT count(*) FROM heed_forgotten)")
	var n uint64
	for _, p := range parts {
		n += p.Tally.N()
	}
	return []any{parts, n == uint64(traced)}, err
}

// A step is something done with the stores.
type step = func(*stores) error

func steps(all ...step) step {
	return func(s *stores) (err error) {
		for _, do := range all {
			err = errors.Join(err, do(s))
		}
		return err
	}
}

// many is a step that is done for each of so many ids.
func many(n int, of func(id string) step) step {
	var all []step
	for i := range n {
		all = append(all, of(fmt.Sprint(i)))
	}
	return steps(all...)
}

func empty(s *stores) (err error) {
	for _, table := range tables {
		_, failure := s.handle.Exec("DELETE FROM " + table)
		err = errors.Join(err, failure)
	}
	return err
}

// annDoes has ann leave something in every store.
func annDoes(id string) step {
	return steps(commit(anns(id)), choose, settle, publish, put(learning.Heuristic{ID: id}),
		commitPattern(id, 0), fail(id))
}

func commit(b evidence.Batch) step {
	return func(s *stores) error {
		_, err := s.evidence.Commit(ctx, b)
		return err
	}
}

// anns is an outcome that ann has caused, and another that waits.
func anns(id string) evidence.Batch {
	b := outcome(id)
	b.Observations[0].Source, b.Audit[0].Actor = "ann", "ann"
	b.Events[0].Payload = []byte(`{"session":"s","source":"ann"}`)
	return b
}

func choose(s *stores) error { return s.choices.Add(ctx, choiceOf(1)) }

func settle(s *stores) error {
	_, err := s.choices.Settle(ctx, choiceOf(1).ID, strategy.Result{ID: "r", Source: "ann"})
	return err
}

func publish(s *stores) error { return s.stream.Publish(ctx, anns("e").Events[0]) }

func receive(s *stores) (err error) {
	s.delivery, err = s.stream.Receive(ctx)
	return err
}

func put(h learning.Heuristic) step {
	return func(s *stores) error {
		_, err := s.heuristics.Put(ctx, h)
		return err
	}
}

// commitPattern commits a pattern that was read with a revision, and what comes with that.
func commitPattern(id string, revision uint64) step {
	return func(s *stores) error {
		of := fmt.Sprint(id, ":", revision)
		return s.patterns.Commit(ctx, patterns.Changes{
			Patterns: []patterns.Pattern{{
				ID: patterns.PatternID(id), Kind: patterns.Positive, State: patterns.Candidate, Content: of, Revision: revision,
			}},
			Transitions: []patterns.Transition{{
				ID: of, Pattern: patterns.PatternID(id), From: patterns.Candidate, To: patterns.Established, Actor: "ann", At: time.Now(),
			}},
			Entries: []patterns.Entry{{Outcome: patterns.Outcome{ID: of, Task: id, Source: "ann", At: time.Now()}}},
		})
	}
}

func fail(id string) step {
	return func(s *stores) error {
		return s.errors.Add(ctx, patterns.ErrorEntry{ID: id, Task: id, Type: patterns.Timeout, Message: "m", At: time.Now()})
	}
}
