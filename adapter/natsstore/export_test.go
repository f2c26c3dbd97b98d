package natsstore

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/store"
)

// SetLongLog sets how many bytes a log may have, of handles that are opened then. It returns what
// ends that.
func SetLongLog(bytes int) (end func()) {
	before := longLog
	longLog = bytes
	return func() { longLog = before }
}

// Rotate begins the next generation.
func (s *Store) Rotate() error {
	return s.do(context.Background(), &call{rotate: rotateKept}).err
}

// Generation returns the number of the generation.
func (s *Store) Generation() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state.Generation
}

// Dumped returns the lines of the state in order, without the sum of all lines.
func (s *Store) Dumped() ([]string, error) {
	if err := s.sync(context.Background()); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	s.mu.RLock()
	defer s.mu.RUnlock()
	err := s.state.mem.Dump(context.Background(), &text)
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	slices.Sort(lines)
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, `{"end"`)
	}), err
}

// SetClock sets the machine's clock of a handle that nobody calls, when its last round has ended.
func (s *Store) SetClock(now func() time.Time) { s.idle(func() { s.clock = now }) }

// PutBack puts the clock back by which a handle knows how old its state is.
func (s *Store) PutBack(by time.Duration) {
	s.idle(func() { s.tick = func() time.Time { return time.Now().Add(-by) } })
}

// Sleep has the machine sleep for a time, which it does not count.
func (s *Store) Sleep(d time.Duration) {
	s.idle(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = s.told.Add(-d)
	})
}

// idle changes a handle that no one calls, when its last round has ended.
func (s *Store) idle(change func()) {
	for {
		s.queue.Lock()
		idle := !s.working
		if idle {
			change()
		}
		s.queue.Unlock()
		if idle {
			return
		}
		runtime.Gosched()
	}
}

// DieAt does of a commit that forgets what a program does that is killed on its way: before the
// log ends (0), before it goes on in the next generation (1), and before the streams of before are
// deleted (2).
func (s *Store) DieAt(step int, batches ...store.Batch) error {
	c := &call{action: &action{At: s.moment()}}
	var err error
	if c.action.Batches, err = encode(batches); err != nil {
		return err
	}
	ctx := context.Background()
	if err = s.do(ctx, c).err; err == nil && step > 0 {
		kept := s.state.Kept
		_, err = s.append(ctx, nil, &kept)
	}
	if err == nil && step > 1 {
		err = s.find(ctx)
	}
	return err
}
