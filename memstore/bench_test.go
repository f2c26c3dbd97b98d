package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A choice is about what package strategy records of a choice.
type choice struct {
	ID, Learner, Session, Item, Arm string
	At                              time.Time
	Probabilities                   map[string]float64
}

var choices = store.Kind{Name: "choice", Limits: store.Limits{Most: 10_000}}

// BenchmarkCommit has what a store is asked for all day: an outcome, and a choice with its record.
func BenchmarkCommit(b *testing.B) {
	b.Run("observe", func(b *testing.B) {
		st := newStore(b, memstore.Config{}, choices)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			if _, err := st.Commit(ctx, store.Batch{Observations: outcome(i)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("record", func(b *testing.B) {
		st := newStore(b, memstore.Config{}, choices)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			if _, err := st.Commit(ctx, store.Batch{Records: []store.Record{choose(i, 0)}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("settle", func(b *testing.B) { // a choice, its outcome, and the choice as it is then
		st := newStore(b, memstore.Config{}, choices)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			receipts, err := st.Commit(ctx, store.Batch{Records: []store.Record{choose(i, 0)}})
			if err != nil {
				b.Fatal(err)
			}
			settled := choose(i, receipts[0].Revision)
			settled.Keys[0] = "state=settled"
			if _, err := st.Commit(ctx, store.Batch{ID: settled.ID, Observations: outcome(i),
				Records: []store.Record{settled}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func outcome(i int) []evidence.Observation {
	o := observe(fmt.Sprint("an-outcome-of-some-length-", i), start)
	o.Cell.Item = fmt.Sprint(i % 1000)
	return []evidence.Observation{o}
}

func choose(i int, revision uint64) store.Record {
	c := choice{ID: fmt.Sprint("a-choice-of-some-length-", i), Learner: "learner",
		Session: fmt.Sprint("session-", i/10), At: start.Add(time.Duration(i) * time.Millisecond)}
	return store.Record{
		Ref: store.Ref{Kind: "choice", ID: c.ID}, Revision: revision, At: c.At, Body: store.Of(c),
		Keys: []string{"state=open", store.Key("learner", c.Learner), store.Key("session", c.Session),
			store.Key("item", fmt.Sprint(i))},
	}
}

func BenchmarkRead(b *testing.B) {
	cells := make([]evidence.Cell, 5)
	var observed []evidence.Observation
	for i := range cells {
		cells[i] = evidence.Cell{Kind: "kind", Scope: "scope", Item: "item", Name: fmt.Sprint(i)}
		o := observe(fmt.Sprint(i), start)
		o.Cell = cells[i]
		observed = append(observed, o)
	}
	st := newStore(b, memstore.Config{}, choices)
	put(b, st, store.Batch{Observations: observed, Records: []store.Record{choose(1, 0)}})
	for name, refs := range map[string][]store.Ref{"cells": nil, "cells+record": {choose(1, 0).Ref}} {
		b.Run(name, func(b *testing.B) {
			var s store.Snapshot
			b.ReportAllocs()
			for b.Loop() {
				s.Records, s.Parts = s.Records[:0], s.Parts[:0]
				if err := st.Read(ctx, &s, cells, refs); err != nil || len(s.Parts) != 5 ||
					len(s.Records) != len(refs) {
					b.Fatal(s, err)
				}
			}
		})
	}
}

// BenchmarkFind looks for one session's ten records, with few and with many others waiting.
func BenchmarkFind(b *testing.B) {
	for _, others := range []int{1000, 100_000} {
		st := newStore(b, memstore.Config{}, store.Kind{Name: "choice"})
		for i := range others {
			put(b, st, store.Batch{Records: []store.Record{choose(i, 0)}})
		}
		q := store.Query{Kind: "choice", Keys: []string{"state=open", "session=session-7"}}
		b.Run(fmt.Sprint("session/", others), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range st.Find(ctx, q) {
					if n++; err != nil {
						b.Fatal(err)
					}
				}
				if n != 10 {
					b.Fatal(n)
				}
			}
		})
		b.Run(fmt.Sprint("newest/", others), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for range st.Find(ctx, store.Query{Kind: "choice", Keys: []string{"state=open"}}) {
					break
				}
			}
		})
	}
}
