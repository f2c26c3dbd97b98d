package memstore

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/patterns"
)

// ErrorsConfig says how much an [Errors] keeps. The zero value means the defaults.
type ErrorsConfig struct {
	PerTask  int // errors of a task, those added last. 0 means 1,000
	MaxTasks int // tasks, those that last had an error. 0 means 10,000
}

func (c ErrorsConfig) withDefaults() ErrorsConfig {
	c.PerTask = cmp.Or(c.PerTask, 1_000)
	c.MaxTasks = cmp.Or(c.MaxTasks, 10_000)
	return c
}

// Errors is a [patterns.ErrorStore] in memory. The zero value is ready to use, with the defaults of [ErrorsConfig]; it
// must not be copied after first use. Errors is safe for concurrent use.
type Errors struct {
	cfg ErrorsConfig

	mu    sync.RWMutex
	byID  map[string]*numbered
	tasks map[string]*failedTask
	order list.List // of the names of tasks, by their last error, the oldest first
	next  uint64
}

// failedTask has the errors of a task, the first added first, and its place in the order.
type failedTask struct {
	errors []*numbered
	place  *list.Element
}

// numbered is an error with its place among all.
type numbered struct {
	patterns.ErrorEntry
	number uint64
}

var _ patterns.ErrorStore = (*Errors)(nil)

// NewErrors returns an empty store.
func NewErrors(cfg ErrorsConfig) (*Errors, error) {
	cfg = cfg.withDefaults()
	var found faults.List
	found.Check(cfg.PerTask > 0, "PerTask", cfg.PerTask, "must not be negative")
	found.Check(cfg.MaxTasks > 0, "MaxTasks", cfg.MaxTasks, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	return &Errors{cfg: cfg}, nil
}

// Config returns the configuration in force.
func (s *Errors) Config() ErrorsConfig { return s.cfg.withDefaults() }

// Add implements [patterns.ErrorStore].
func (s *Errors) Add(ctx context.Context, e patterns.ErrorEntry) error {
	if err := errors.Join(ctx.Err(), e.Validate()); err != nil {
		return fmt.Errorf("memstore: add error: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(e)
	return nil
}

// add keeps an error unless its id is known.
func (s *Errors) add(e patterns.ErrorEntry) {
	if _, known := s.byID[e.ID]; known {
		return
	}
	if s.byID == nil {
		s.byID, s.tasks = make(map[string]*numbered), make(map[string]*failedTask)
	}
	e.At = micro(e.At)
	one := &numbered{e, s.next}
	s.next++
	s.byID[e.ID] = one
	task, known := s.tasks[e.Task]
	if known {
		s.order.MoveToBack(task.place)
	} else {
		task = &failedTask{place: s.order.PushBack(e.Task)}
		s.tasks[e.Task] = task
	}
	task.errors = append(task.errors, one)
	cfg := s.cfg.withDefaults()
	if len(task.errors) > cfg.PerTask {
		delete(s.byID, task.errors[0].ID)
		task.errors = task.errors[1:]
	}
	if s.order.Len() > cfg.MaxTasks {
		s.forget(s.order.Front().Value.(string))
	}
}

func (s *Errors) forget(name string) {
	task, known := s.tasks[name]
	if !known {
		return
	}
	for _, one := range task.errors {
		delete(s.byID, one.ID)
	}
	s.order.Remove(task.place)
	delete(s.tasks, name)
}

// Resolve implements [patterns.ErrorStore].
func (s *Errors) Resolve(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.byID[id]
	if !ok {
		return fmt.Errorf("memstore: resolve error: %w", heed.ErrNotFound)
	}
	one.Resolved = true
	return nil
}

// Errors implements [patterns.ErrorStore].
func (s *Errors) Errors(ctx context.Context, task string) iter.Seq2[patterns.ErrorEntry, error] {
	return listing(ctx, func() []patterns.ErrorEntry {
		s.mu.RLock()
		defer s.mu.RUnlock()
		var found []*numbered
		if of, known := s.tasks[task]; known {
			found = of.errors
		}
		if task == "" {
			for _, one := range s.byID {
				found = append(found, one)
			}
			slices.SortFunc(found, func(a, b *numbered) int { return cmp.Compare(a.number, b.number) })
		}
		all := make([]patterns.ErrorEntry, len(found))
		for i, one := range found {
			all[i] = one.ErrorEntry
		}
		return all
	})
}

// Forget implements [patterns.ErrorStore].
func (s *Errors) Forget(ctx context.Context, task string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(task)
	return nil
}
