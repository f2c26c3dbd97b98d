package natsstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A call is a call of a method that waits for its place in the log.
type call struct {
	action *action // nil: it reads
	text   json.RawMessage
	since  time.Time
	rotate rotation
	done   chan result
}

// A rotation is the reason why a call may begin another generation.
type rotation int

const (
	rotateFull rotation = iota // the log is long
	rotateOld                  // or it is old, or has bytes that must go
	rotateKept                 // the configuration is another one
)

// sync waits until the handle applied all that was in the log when it was called.
func (s *Store) sync(ctx context.Context) error { return s.do(ctx, &call{}).err }

// do puts a call into the log, and waits for its result.
func (s *Store) do(ctx context.Context, c *call) result {
	if c.action != nil {
		text, err := json.Marshal(c.action)
		if most := s.partSize() * (maxParts - 1); err == nil && len(text) > most {
			err = &heed.SizeError{What: "Batches", Size: len(text), Most: most}
		}
		if err != nil {
			return result{err: err}
		}
		c.text = text
	}
	c.since, c.done = s.tick(), make(chan result, 1)
	s.queue.Lock()
	s.waiting = append(s.waiting, c)
	if !s.working {
		s.working = true
		go s.work()
	}
	s.queue.Unlock()
	select {
	case r := <-c.done:
		return r
	case <-ctx.Done():
		return s.leave(c, ctx.Err())
	}
}

// leave ends the wait for a call whose context ended.
func (s *Store) leave(c *call, ended error) result {
	s.queue.Lock()
	i := slices.Index(s.waiting, c)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.queue.Unlock()
	select {
	case r := <-c.done:
		return r
	default:
	}
	if i < 0 && c.action != nil {
		ended = fmt.Errorf("%w: %w", heed.ErrOutcomeUnknown, ended)
	}
	return result{err: ended}
}

// work makes rounds until no call waits.
func (s *Store) work() {
	for {
		s.queue.Lock()
		size, n := 0, 0
		for n < len(s.waiting) && (n == 0 || size+len(s.waiting[n].text) < s.partSize()/2) {
			size += len(s.waiting[n].text)
			n++
		}
		calls := slices.Clone(s.waiting[:n])
		s.waiting = slices.Delete(s.waiting, 0, n)
		s.working = n > 0
		s.queue.Unlock()
		if n == 0 {
			return
		}
		s.round(calls)
	}
}

// round puts calls into the log as one entry, and gives them their results.
func (s *Store) round(calls []*call) {
	asked := s.tick()
	ctx, cancel := context.WithDeadline(context.Background(), calls[0].since.Add(s.cfg.Timeout))
	defer cancel()
	var texts []json.RawMessage
	why := rotateFull
	for _, c := range calls {
		if c.action != nil && c.text != nil {
			texts = append(texts, c.text)
		}
		why = max(why, c.rotate)
	}
	sent, err := s.append(ctx, texts, nil)
	if err == nil {
		s.fresh.Store(asked.UnixNano())
	}
	results := s.results
	if err == nil && why > rotateFull {
		err = s.rotate(ctx, why)
	}
	next := 0
	for _, c := range calls {
		r := result{err: err}
		switch {
		case c.action == nil:
		case err != nil && sent:
			r.err = fmt.Errorf("%w: %w", heed.ErrOutcomeUnknown, err)
		case err == nil && results == nil: // it took effect, and another handle ended the log then
			r.err = heed.ErrOutcomeUnknown
		case err == nil:
			r = results[next]
			next++
		}
		c.done <- r
	}
	if err == nil && why == rotateFull {
		_ = s.rotate(ctx, why) // else the next call tries
	}
}

// rotate begins another generation if there is a reason.
func (s *Store) rotate(ctx context.Context, why rotation) error {
	st, next := s.state, s.state.Kept
	age := s.moment() - st.Since
	switch {
	case why == rotateKept:
		next = s.cfg.Kept.Retention
	case why == rotateOld && (st.erase || age > day && st.size > 0):
	case st.size > max(s.long, 2*st.begun):
	default:
		if why == rotateOld {
			return s.clean(ctx)
		}
		return nil
	}
	if _, err := s.append(ctx, nil, &next); err != nil {
		return err
	}
	for {
		err := s.find(ctx) // which goes on to the next generation
		if err == nil {
			err = s.clean(ctx)
		}
		if err == nil || s.pause(ctx, longPause) != nil {
			return err
		}
	}
}

const day = evidence.Instant(24 * time.Hour / time.Microsecond)

// longLog is how many bytes a log may have, or twice as many as the state, before the next
// generation begins. Tests set it.
var longLog = 64 << 20
