package memstore

import (
	"sync"

	"github.com/heedhq/heed/internal/export"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
)

// heuristicsPart is what an export holds of a [Heuristics].
type heuristicsPart struct {
	store *Heuristics
	all   map[string]learning.Heuristic
}

func (p *heuristicsPart) read(r *checkedRow) {
	h := decoded[learning.Heuristic](r, "body")
	r.valid("body", h.Validate())
	r.same(h.ID, h.Revision)
	p.all[h.ID] = h
}

func (p *heuristicsPart) locker() sync.Locker { return &p.store.mu }

func (p *heuristicsPart) check() error { return checkEmpty(len(p.store.all) == 0, "heuristics") }

func (p *heuristicsPart) fill() { p.store.all = p.all }

// leftOut is what an export holds for a store that there is no longer.
type leftOut struct{}

func (leftOut) read(*checkedRow) {}

func (leftOut) locker() sync.Locker { return nil }

func (leftOut) check() error { return nil }

func (leftOut) fill() {}

// patternsPart is what an export holds of a [Patterns].
type patternsPart struct {
	store *Patterns
	all   patterns.Changes
}

func (p *patternsPart) read(r *checkedRow) {
	var one patterns.Changes
	var id string
	switch r.Text("sort") {
	case export.Pattern:
		pattern := decoded[patterns.Pattern](r, "body")
		r.same(string(pattern.ID), pattern.Revision)
		id, one.Patterns = string(pattern.ID), []patterns.Pattern{pattern}
		p.all.Patterns = append(p.all.Patterns, pattern)
	case export.Transition:
		transition := decoded[patterns.Transition](r, "body")
		id, one.Transitions = transition.ID, []patterns.Transition{transition}
		p.all.Transitions = append(p.all.Transitions, transition)
	case export.Entry:
		entry := decoded[patterns.Entry](r, "body")
		id, one.Entries = entry.ID(), []patterns.Entry{entry}
		p.all.Entries = append(p.all.Entries, entry)
	}
	r.check(r.Text("id") == id, "id", "must be that of the body")
	r.valid("body", one.Validate())
}

func (p *patternsPart) locker() sync.Locker { return &p.store.mu }

func (p *patternsPart) check() error {
	s := p.store
	if err := checkEmpty(len(s.order)+len(s.transitions.byID)+len(s.entries.byID) == 0, "patterns"); err != nil {
		return err
	}
	return checkRoom(len(p.all.Patterns), s.Config().MaxPatterns, "patterns")
}

func (p *patternsPart) fill() {
	for _, pattern := range p.all.Patterns {
		p.store.put(&pattern)
	}
	p.store.record(&p.all)
}

// errorsPart is what an export holds of an [Errors].
type errorsPart struct {
	store *Errors
	all   []patterns.ErrorEntry
}

func (p *errorsPart) read(r *checkedRow) {
	e := decoded[patterns.ErrorEntry](r, "body")
	r.check(r.Text("id") == e.ID, "id", "must be that of the body")
	r.valid("body", e.Validate())
	p.all = append(p.all, e)
}

func (p *errorsPart) locker() sync.Locker { return &p.store.mu }

func (p *errorsPart) check() error { return checkEmpty(len(p.store.byID) == 0, "errors") }

func (p *errorsPart) fill() {
	for _, e := range p.all {
		p.store.add(e)
	}
}
