package scorecard

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

type call func(context.Context, store.Store) error

// An episode is a call in the life of a store. before makes ready for it. Both are deterministic: a
// fixed clock, seeds and ids.
type episode struct {
	name         string
	before, call call
	// steps reports that the call makes several commits, such as a sweep that takes one thing after
	// the other. It may then stop between two of them; called again, it comes to the same end.
	steps bool
}

var (
	fixedNow = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	noteKind = store.Kind{Name: "note", Limits: store.Limits{For: time.Hour}, Caused: []string{"Of"},
		Decided: []string{"By"}}
)

func calls(all ...call) call {
	return func(ctx context.Context, st store.Store) error {
		for _, do := range all {
			if err := do(ctx, st); err != nil {
				return err
			}
		}
		return nil
	}
}

func commits(batches ...store.Batch) call {
	return func(ctx context.Context, st store.Store) error {
		_, err := st.Commit(ctx, batches...)
		return err
	}
}

func declares(ctx context.Context, st store.Store) error { return st.Declare(ctx, noteKind) }

func note(id string, revision uint64, keys ...string) store.Record {
	return store.Record{
		Ref: store.Ref{Kind: "note", ID: id}, Revision: revision, At: fixedNow,
		Keys: append(keys, "k", store.PersonKey("ann")),
		Body: store.Of(map[string]string{"Of": "ann", "By": "ann", "Text": strings.Repeat("x", 300)}),
	}
}

func seen(ids ...string) (b store.Batch) {
	for _, id := range ids {
		o := observed(id, fixedNow)
		o.Source = "ann"
		b.Observations = append(b.Observations, o)
	}
	return b
}

// revised commits what a function makes of the revision of a note.
func revised(id string, do func(revision uint64) store.Batch) call {
	return func(ctx context.Context, st store.Store) error {
		var s store.Snapshot
		if err := st.Read(ctx, &s, nil, []store.Ref{{Kind: "note", ID: id}}); err != nil {
			return err
		}
		return calls(declares, commits(do(s.Records[0].Revision)))(ctx, st)
	}
}

func storeEpisodes() []episode {
	filled := calls(declares, commits(seen("1"), seen("2"),
		store.Batch{Records: []store.Record{note("a", 0), note("b", 0, "other")}}))
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprint("more", i))
	}
	dumped, empty := dumpOf(filled)
	one := func(b store.Batch) call { return calls(declares, commits(b)) }
	return []episode{
		{name: "Store.Declare", call: declares},
		{name: "Store.Commit", before: filled, call: revised("a", func(revision uint64) store.Batch {
			return store.Batch{
				ID: "batch", Observations: seen("3").Observations,
				PartsOf: store.CellsOf(seen("3").Observations...),
				Records: []store.Record{note("a", revision, "new"), note("c", store.Once),
					note("b", store.Once)},
			}
		})},
		{name: "Store.Commit of two batches", before: filled, call: calls(declares, commits(
			store.Batch{ID: "x", Observations: seen("3").Observations,
				Records: []store.Record{note("c", store.Once)}},
			store.Batch{ID: "y", Observations: seen("4").Observations,
				Records: []store.Record{note("d", store.Once)}}))},
		{name: "Store.Commit of a batch that is known in part",
			before: calls(filled, commits(store.Batch{ID: "x"})), call: commits(
				store.Batch{ID: "x", Observations: seen("3").Observations}, seen("4"))},
		{name: "Store.Commit, retract", before: filled, call: one(store.Batch{Retract: []string{"1"}})},
		{name: "Store.Commit, withdraw", before: filled,
			call: one(store.Batch{Withdraw: []string{"1", "unknown"}})},
		{name: "Store.Commit, reset", before: filled,
			call: one(store.Batch{Reset: []evidence.Cell{cell}})},
		{name: "Store.Commit, rebuild", before: filled, call: one(store.Batch{
			Rebuild: []evidence.Cell{cell}, Policies: map[string]evidence.Policy{
				cell.Kind: {ByOrigin: true}},
		})},
		{name: "Store.Commit, restart", before: filled,
			call: one(store.Batch{Restart: []store.Restart{{Cell: cell, At: fixedNow.Add(-time.Hour)}}})},
		{name: "Store.Commit, expunge", before: filled,
			call: one(store.Batch{Expunge: []store.SourceOf{{Cell: cell, Source: "ann"}}})},
		{name: "Run, forget", before: filled, steps: true, call: calls(declares,
			func(ctx context.Context, st store.Store) error {
				return store.Run(ctx, st, store.Job{Forget: []string{"ann"}})
			})},
		{name: "Store.Sweep", before: calls(filled, commits(seen(many...))), steps: true,
			call: func(ctx context.Context, st store.Store) error {
				return st.Sweep(ctx, time.Time{})
			}},
		{name: "Store.Load", call: func(ctx context.Context, st store.Store) error {
			if empty != nil {
				return empty
			}
			return st.(*sqlstore.Store).Load(ctx, bytes.NewReader(dumped))
		}},
	}
}

// dumpOf returns the file of a store in which something was done.
func dumpOf(do call) ([]byte, error) {
	ctx := context.Background()
	d, err := newDisk(ctx, 512)
	if err != nil {
		return nil, err
	}
	st, _, done, err := d.store(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var out bytes.Buffer
	if err := do(ctx, st); err != nil {
		return nil, err
	}
	err = st.Dump(ctx, &out)
	return out.Bytes(), err
}
