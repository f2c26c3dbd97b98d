// Ownstore keeps the errors of tasks in a file: a store of one's own for package patterns, and the suite that says whether
// it keeps the contract.
//
// The file is a log of changes, so that a crash leaves at worst half a line at its end, which the next start drops.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/patterns"
)

// A FileStore is a [patterns.ErrorStore] in a file of one process. It is safe for concurrent use.
type FileStore struct {
	mu   sync.Mutex
	file *os.File
	size int64 // of the log
	all  []patterns.ErrorEntry
}

var _ patterns.ErrorStore = (*FileStore)(nil)

// A change is a line of the log: one of its fields is set.
type change struct {
	Add     *patterns.ErrorEntry `json:"add,omitempty"`
	Resolve string               `json:"resolve,omitempty"`
	Forget  *string              `json:"forget,omitempty"`
}

// Open opens a store, or makes an empty one.
func Open(name string) (*FileStore, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s := &FileStore{file: file}
	for lines := json.NewDecoder(file); ; s.size = lines.InputOffset() {
		var c change
		err := lines.Decode(&c)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return s, file.Truncate(s.size)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
		}
		s.apply(c)
	}
}

// Close closes the file.
func (s *FileStore) Close() error { return s.file.Close() }

// Add implements [patterns.ErrorStore].
func (s *FileStore) Add(ctx context.Context, e patterns.ErrorEntry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	e.At = e.At.UTC().Truncate(time.Microsecond)
	return s.commit(ctx, change{Add: &e})
}

// Resolve implements [patterns.ErrorStore].
func (s *FileStore) Resolve(ctx context.Context, id string) error {
	return s.commit(ctx, change{Resolve: id})
}

// Forget implements [patterns.ErrorStore].
func (s *FileStore) Forget(ctx context.Context, task string) error {
	return s.commit(ctx, change{Forget: &task})
}

// Errors implements [patterns.ErrorStore]. The loop has a copy, so that it may call the store.
func (s *FileStore) Errors(ctx context.Context, task string) iter.Seq2[patterns.ErrorEntry, error] {
	return func(yield func(patterns.ErrorEntry, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(patterns.ErrorEntry{}, err)
			return
		}
		s.mu.Lock()
		all := slices.Clone(s.all)
		s.mu.Unlock()
		for _, e := range all {
			if (task == "" || e.Task == task) && !yield(e, nil) {
				return
			}
		}
	}
}

// commit writes a change, and only then makes it. What was written in part is taken back.
func (s *FileStore) commit(ctx context.Context, c change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.Add != nil && s.find(c.Add.ID) >= 0:
		return nil // it counts once
	case c.Add == nil && c.Forget == nil && s.find(c.Resolve) < 0:
		return heed.ErrNotFound
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := s.file.Write(append(line, '\n')); err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(len(line)) + 1
	s.apply(c)
	return nil
}

func (s *FileStore) apply(c change) {
	switch i := s.find(c.Resolve); {
	case c.Add != nil:
		s.all = append(s.all, *c.Add)
	case c.Forget != nil:
		s.all = slices.DeleteFunc(s.all, func(e patterns.ErrorEntry) bool { return e.Task == *c.Forget })
	case i >= 0:
		s.all[i].Resolved = true
	}
}

func (s *FileStore) find(id string) int {
	return slices.IndexFunc(s.all, func(e patterns.ErrorEntry) bool { return e.ID == id })
}

// attempt is what a host does in each of its runs: it opens the store, asks what went wrong before, and reports what does.
func attempt(ctx context.Context, name, failure string) error {
	store, err := Open(name)
	if err != nil {
		return err
	}
	failures, err := patterns.NewAccumulator(patterns.AccumulatorConfig{Store: store})
	if err != nil {
		return err
	}
	stats, err := failures.Stats(ctx, "add OAuth")
	if err != nil {
		return err
	}
	fmt.Printf("before this attempt: %d failures of tools\n", stats.ByType[patterns.ToolFailure])
	_, err = failures.Record(ctx, patterns.Report{
		Task: "add OAuth", Err: &patterns.ToolError{Tool: "go vet", Err: errors.New(failure)},
	})
	return errors.Join(err, store.Close())
}

func main() {
	dir, err := os.MkdirTemp("", "ownstore")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system removes it sooner or later
	for _, failure := range []string{"undefined: Token", "unused import", "missing return"} {
		if err := attempt(context.Background(), filepath.Join(dir, "errors.log"), failure); err != nil {
			panic(err)
		}
	}
}
