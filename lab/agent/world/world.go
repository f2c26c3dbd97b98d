// Package world simulates what an operations assistant lives in: what comes in, a model that makes
// mistakes, users who seldom react, reviewers and their leads. Everything in it follows from a
// seed, and from the tables in truth.json.
//
// Whatever is drawn is drawn by what it is about (an event, a person) and not in order, so that two
// assistants in worlds of one seed meet the same events with the same luck.
package world

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/lab/agent/assistant"
	"github.com/heedhq/heed/loop"
)

// A World hands out one happening after the other. It must not be used concurrently.
type World struct {
	key    chance.Key
	events int
	made   int // events
	now    time.Time
	turns  time.Time // when what was good turns bad
	agenda []entry   // what is to come, the earliest first
}

var start = time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)

// New returns a world with this many events. The answers that turn bad do so half-way.
func New(seed uint64, events int) *World {
	w := &World{key: chance.Key{A: seed, B: 0x776f726c64}, events: events, now: start}
	w.turns = start.Add(time.Duration(events) * pace / 2)
	w.plan(w.now.Add(pace), w.event)
	w.plan(w.now.Add(24*time.Hour), w.morning)
	return w
}

// Now is the world's clock.
func (w *World) Now() time.Time { return w.now }

// Next returns what happens next, in the form of package assistant, and nil at the end.
func (w *World) Next() any {
	if len(w.agenda) == 0 {
		return nil
	}
	next := w.agenda[0]
	w.agenda, w.now = w.agenda[1:], next.at
	return next.make()
}

// event makes the next event, and plans the one after it.
func (w *World) event() any {
	n := w.made
	w.made++
	id := fmt.Sprintf("event-%05d", n)
	if w.made < w.events {
		w.plan(w.now.Add(time.Duration(float64(pace)*(0.5+w.draw("pace", id)))), w.event)
	}
	k := w.kind(id)
	text := strings.NewReplacer("{host}", fmt.Sprintf("%s-%02d", pick(w.draw("host", id), "web", "db",
		"cache", "build", "mail"), int(w.draw("number", id)*60)), "{n}", fmt.Sprint(2+int(w.draw("n",
		id)*90))).Replace(pick(w.draw("text", id), k.Texts...))
	person := fmt.Sprintf("user-%02d", int(w.draw("person", id)*users))
	e := loop.Event{
		ID: id, Domain: k.Domain, Session: id, Stream: "channel of " + person, Person: person,
		Context: "interactive", At: w.now,
		Text: fmt.Sprintf("%s #%d", text, n),
	}
	if k.Domain == assistant.Changes {
		e.Task = id
	}
	return e
}

// kind draws what kind of event it is.
func (w *World) kind(id string) *Kind {
	var total float64
	for _, k := range truth.Kinds {
		total += k.Share
	}
	left := w.draw("kind", id) * total
	for _, k := range truth.Kinds {
		if left -= k.Share; left < 0 {
			return k
		}
	}
	return truth.Kinds[len(truth.Kinds)-1]
}

// kindOf returns the kind of an event by its text.
func kindOf(text string) *Kind {
	for _, k := range truth.Kinds {
		if strings.Contains(text, k.Cue) {
			return k
		}
	}
	return nil
}

func (w *World) morning() any {
	if w.made < w.events {
		w.plan(w.now.Add(24*time.Hour), w.morning)
	}
	return assistant.Morning{At: w.now}
}

// draw returns a number in (0, 1) for a purpose and what it is about.
func (w *World) draw(parts ...string) float64 {
	r := w.key.Rand(0, parts...)
	return r.Float64()
}

func pick(u float64, from ...string) string {
	return from[int(math.Min(u*float64(len(from)), float64(len(from)-1)))]
}

// plan puts something on the agenda, behind what comes at the same time.
func (w *World) plan(at time.Time, what func() any) {
	i, _ := slices.BinarySearchFunc(w.agenda, at, func(e entry, at time.Time) int {
		if e.at.After(at) {
			return 1
		}
		return -1
	})
	w.agenda = slices.Insert(w.agenda, i, entry{at, what})
}

// say plans a happening that is known already.
func (w *World) say(at time.Time, happening any) { w.plan(at, func() any { return happening }) }

type entry struct {
	at   time.Time
	make func() any
}
