package memstore

import (
	"maps"
	"slices"
	"sync"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

// choicesPart is what an export holds of a [Choices].
type choicesPart struct {
	store *Choices
	known map[strategy.ChoiceID]bool
	all   []*strategy.Record
}

func (p *choicesPart) read(r *checkedRow) {
	record := &strategy.Record{
		Choice: decoded[strategy.Choice](r, "choice"), Stage: strategy.Stage(r.Text("stage")), Ended: r.flag("ended"),
	}
	id := record.Choice.ID
	r.check(id.String() == r.Text("id"), "id", "must be that of the choice")
	r.check(!p.known[id], "id", "must not stand twice")
	r.check(record.Stage.Valid(), "stage", "must be pending, observed or expired")
	r.check(r.Null("result") == (record.Stage != strategy.Observed), "result", "must be there when the stage is observed, and only then")
	if !r.Null("result") {
		result := decoded[strategy.Result](r, "result")
		record.Result = &result
	}
	p.known[id] = true
	p.all = append(p.all, record)
}

func (p *choicesPart) locker() sync.Locker {
	p.store.start()
	return &p.store.mu
}

func (p *choicesPart) check() error {
	p.store.expire(p.store.oldest())
	return checkEmpty(len(p.store.all) == 0, "choices")
}

// fill adds the choices in the order in which they were made, as they are exported by their ids.
func (p *choicesPart) fill() {
	slices.SortFunc(p.all, func(a, b *strategy.Record) int { return b.Compare(*a) })
	for _, r := range p.all {
		p.store.add(r)
	}
}

// streamsPart is what an export holds of all streams.
type streamsPart struct {
	named  map[string]*Stream
	stores []*Stream // each once
	known  map[[2]string]bool
	all    map[*Stream][]evidence.Event
}

func newStreamsPart(named map[string]*Stream) *streamsPart {
	p := &streamsPart{named: maps.Clone(named), known: make(map[[2]string]bool), all: make(map[*Stream][]evidence.Event)}
	for _, s := range named {
		if s != nil && !slices.Contains(p.stores, s) {
			s.start()
			p.stores = append(p.stores, s)
		}
	}
	return p
}

func (p *streamsPart) read(r *checkedRow) {
	event := r.event()
	key := [2]string{r.id("stream"), event.ID}
	r.check(!p.known[key], "id", "must not stand twice in a stream")
	p.known[key] = true
	if s := p.named[r.Text("stream")]; s != nil {
		p.all[s] = append(p.all[s], event)
	}
}

func (p *streamsPart) locker() sync.Locker { return p }

// Lock locks all streams.
func (p *streamsPart) Lock() {
	for _, s := range p.stores {
		s.mu.Lock()
	}
}

func (p *streamsPart) Unlock() {
	for _, s := range p.stores {
		s.mu.Unlock()
	}
}

func (p *streamsPart) check() error {
	for _, s := range p.stores {
		if s.closed {
			return strategy.ErrClosed
		}
		if err := checkEmpty(len(s.held) == 0, "a stream"); err != nil {
			return err
		}
		if err := checkRoom(len(p.all[s]), s.cfg.Max, "events of a stream"); err != nil {
			return err
		}
	}
	return nil
}

// fill lets the streams hold their events. Where two names are of one stream, it delivers an id once.
func (p *streamsPart) fill() {
	for s, events := range p.all {
		for _, e := range events {
			s.hold(e)
		}
		s.notify()
	}
}
