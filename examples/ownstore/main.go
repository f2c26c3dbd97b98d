// Ownstore keeps all that heed learns in one file: a store of one's own, and the suite that tests
// whether it keeps the contract.
//
// It holds the store in memory, and writes all of it again after each change. That is for a program
// that learns little. One thing holds for any store: a commit is there wholly or not at all, also
// where the disk is full.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// A FileStore is a [store.Store] in a file of one process. It is safe for concurrent use.
type FileStore struct {
	name string
	cfg  memstore.Config
	sync func(*os.File) error

	write sync.Mutex   // held by those that change something
	text  []byte       // what the file has; guarded by write
	kinds []store.Kind // that were declared; guarded by write

	mu   sync.RWMutex
	held *memstore.Store // guarded by mu
}

var _ store.Store = (*FileStore)(nil)

// Open opens a store, or makes an empty one.
func Open(ctx context.Context, name string, cfg memstore.Config) (*FileStore, error) {
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := &FileStore{name: name, cfg: cfg, text: text, sync: (*os.File).Sync}
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// load takes what the file has.
func (s *FileStore) load(ctx context.Context) error {
	held, err := memstore.New(s.cfg)
	if err == nil {
		err = held.Declare(ctx, s.kinds...)
	}
	if err == nil && len(s.text) > 0 {
		err = held.Load(ctx, bytes.NewReader(s.text))
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return nil
}

func (s *FileStore) memory() *memstore.Store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.held
}

// save writes all of it to a new file, which then takes the place of the old one. Where that fails,
// the store goes back to what the old one has.
func (s *FileStore) save(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // what began is finished
	var text bytes.Buffer
	err := s.memory().Dump(ctx, &text)
	if err == nil {
		err = s.replace(text.Bytes())
	}
	if err != nil {
		return errors.Join(err, s.load(ctx))
	}
	s.text = text.Bytes()
	return nil
}

func (s *FileStore) replace(text []byte) error {
	// which only the owner may read
	file, err := os.CreateTemp(filepath.Dir(s.name), filepath.Base(s.name))
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, s.sync(file), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), s.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// Commit implements [store.Store].
func (s *FileStore) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	s.write.Lock()
	defer s.write.Unlock()
	receipts, err := s.memory().Commit(ctx, batches...)
	if err == nil {
		err = s.save(ctx)
	}
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// Declare implements [store.Store].
func (s *FileStore) Declare(ctx context.Context, kinds ...store.Kind) error {
	s.write.Lock()
	defer s.write.Unlock()
	err := s.memory().Declare(ctx, kinds...)
	if err == nil {
		s.kinds = append(s.kinds, kinds...)
	}
	return err
}

// Sweep implements [store.Store].
func (s *FileStore) Sweep(ctx context.Context, now time.Time) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.memory().Sweep(ctx, now); err != nil {
		return err
	}
	return s.save(ctx)
}

// Read implements [store.Store].
func (s *FileStore) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	return s.memory().Read(ctx, into, cells, refs, finds...)
}

// Find implements [store.Store].
func (s *FileStore) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	return s.memory().Find(ctx, q)
}

// List implements [store.Store].
func (s *FileStore) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	return s.memory().List(ctx, q)
}

// Scopes implements [store.Store].
func (s *FileStore) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return s.memory().Scopes(ctx, kind)
}

// History implements [store.Store].
func (s *FileStore) History(
	ctx context.Context, c evidence.Cell,
) iter.Seq2[evidence.Observation, error] {
	return s.memory().History(ctx, c)
}

// attempt is what a host does in each of its runs: it opens the store, asks what went wrong before,
// and reports what does.
func attempt(ctx context.Context, name, failure string) error {
	st, err := Open(ctx, name, memstore.Config{})
	if err != nil {
		return err
	}
	recorder, err := patterns.New(ctx, patterns.Config{Store: st})
	if err != nil {
		return err
	}
	known, err := recorder.Errors(ctx, patterns.HistoryQuery{About: "add OAuth"})
	if err != nil {
		return err
	}
	fmt.Printf("before this attempt: %d failures of tools\n", known.ByType["tool_failure"])
	_, err = recorder.RecordError(ctx, patterns.TaskError{Task: "add OAuth", Tool: "go vet",
		Err: errors.New(failure)})
	return err
}

func main() {
	dir, err := os.MkdirTemp("", "ownstore")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system removes it sooner or later
	for _, failure := range []string{"undefined: Token", "unused import", "missing return"} {
		if err := attempt(context.Background(), filepath.Join(dir, "heed.jsonl"), failure); err != nil {
			panic(err)
		}
	}
}
