package natsstore

import (
	"bytes"
	"context"
	"slices"
	"strings"
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
