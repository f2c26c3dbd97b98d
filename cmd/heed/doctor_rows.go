package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// A holder reports whether a row holds what heed has written there.
type holder func(row) bool

// holders have, by what a row is of, how it is read.
var holders = map[string]holder{
	"history": holds("observation", func(o *evidence.Observation) string { return o.ID }),
	"audit":   holds[evidence.AuditEntry]("entry", nil),
	"choices": func(r row) bool { return isChoice(r) && (r.Columns["result"] == nil || isResult(r)) },
	"outbox":  hasHappened,
	"stream":  hasHappened,

	"documents (heuristic)":  holds("body", func(h *learning.Heuristic) string { return h.ID }),
	"documents (pattern)":    holds("body", func(p *patterns.Pattern) string { return string(p.ID) }),
	"documents (transition)": holds("body", func(t *patterns.Transition) string { return t.ID }),
	"documents (entry)":      holds("body", func(e *patterns.Entry) string { return e.ID() }),
	"documents (error)":      holds("body", func(e *patterns.ErrorEntry) string { return e.ID }),
}

var (
	isChoice = holds("choice", func(c *strategy.Choice) string { return c.ID.String() })
	isResult = holds[strategy.Result]("result", nil)
)

// holds returns the holder of the JSON of a T, which has the id of its row, if any.
func holds[T any](column string, id func(*T) string) holder {
	return func(r row) bool {
		var value T
		return json.Unmarshal([]byte(r.text(column)), &value) == nil && (id == nil || id(&value) == r.text("id"))
	}
}

func hasHappened(r row) bool {
	_, err := time.Parse(time.RFC3339Nano, r.text("happened"))
	return err == nil
}

// of says what a row is of: its table, and for documents their sort.
func (r row) of() string {
	if r.Table == "documents" {
		return fmt.Sprintf("documents (%s)", r.text("sort"))
	}
	return r.Table
}

// A stay is how long rows are kept where a host says nothing else, and what takes them out then.
type stay struct {
	column string
	unit   time.Duration // of the column
	long   time.Duration
	sweep  string
}

const day, month = 24 * time.Hour, 30 * day

var stays = map[string]stay{
	"history": {"recorded", time.Microsecond, month, "Evidence.Sweep"},
	"ids":     {"recorded", time.Microsecond, month, "Evidence.Sweep"},
	"choices": {"made", time.Nanosecond, month, "Choices.Sweep"},
}

// over reports whether a row should have been taken out a day ago.
func (s stay) over(r row, now time.Time) bool {
	return s.long > 0 && r.number(s.column)*float64(s.unit) < float64(now.Add(-s.long-day).UnixNano())
}

// A census is what doctor learns of a store row by row.
type census struct {
	now        time.Time
	unreadable map[string]int // rows, by what they are of
	stale      map[string]int // likewise
	overdue    int            // choices that wait for an outcome
	events     int
	oldest     time.Time // of the events
	deliveries map[string]float64
}

// rows looks at every row.
func (d *diagnosis) rows(s *session, st *opened) error {
	c := &census{now: s.now(), unreadable: make(map[string]int), stale: make(map[string]int), deliveries: make(map[string]float64)}
	for r, err := range st.rows(s) {
		if err != nil {
			return err
		}
		c.count(r)
	}
	c.report(d)
	return nil
}

func (c *census) count(r row) {
	of := r.of()
	if read, ok := holders[of]; ok && !read(r) {
		c.unreadable[of]++
		return
	}
	if stays[of].over(r, c.now) {
		c.stale[of]++
	}
	switch r.Table {
	case "choices":
		if r.text("stage") == string(strategy.Pending) && r.number("made") < float64(c.now.Add(-2*day).UnixNano()) {
			c.overdue++
		}
	case "outbox":
		if c.events++; c.events == 1 {
			c.oldest, _ = time.Parse(time.RFC3339Nano, r.text("happened"))
		}
	case "stream":
		c.deliveries[r.text("stream")] = max(c.deliveries[r.text("stream")], math.Abs(r.number("deliveries")))
	}
}

// waiting is how long an event may wait before somebody should look, and deliveries how often it may be delivered.
const waiting, deliveries = time.Hour, 3

func (c *census) report(d *diagnosis) {
	for _, of := range slices.Sorted(maps.Keys(c.unreadable)) {
		d.fault("%s of %s can't be read, as heed has not written what is in there: restore from a copy",
			plural(c.unreadable[of], "row", "rows"), show(of))
	}
	if c.events > 0 && c.now.Sub(c.oldest) > waiting {
		d.warning("%s in the outbox, the first since %s: does a relay run?", plural(c.events, "event waits", "events wait"), moment(c.oldest))
	}
	if c.overdue > 0 {
		d.warning("%s for an outcome for more than two days: does the host call Learner.Sweep?", plural(c.overdue, "choice waits", "choices wait"))
	}
	for _, of := range slices.Sorted(maps.Keys(c.stale)) {
		kept := stays[of]
		d.warning("%s kept in %s for longer than %s, which is the default: does the host call %s, or is its time longer?",
			plural(c.stale[of], "row is", "rows are"), of, plural(int(kept.long/day), "day", "days"), kept.sweep)
	}
	for _, stream := range slices.Sorted(maps.Keys(c.deliveries)) {
		if n := c.deliveries[stream]; n > deliveries {
			d.warning("stream %s has an event that was delivered %.0f times: see what its consumer logs", show(stream), n)
		}
	}
}
