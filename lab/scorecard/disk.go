package scorecard

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/heedhq/heed/sqlstore"
)

// A disk is a file system for SQLite that can fail, and whose power can be cut: what was written
// and not synced is then torn, sector by sector. Files appear and disappear at once, which means
// that their directory is synced each time.
type disk struct {
	mu    sync.Mutex
	rng   *rand.Rand
	files map[string]*image
	ops   int // reads, writes, syncs and the like so far
	// fault returns the error of the operation with a number, or nil. nil: none fails.
	fault   func(op int, writes bool) error
	options string // more of the data source name
	deaf    bool   // a sync has no effect, like synchronous=OFF
}

// An image is a file as the programs see it, and as it is on the medium for sure.
type image struct{ seen, synced []byte }

const sector = 512

// snapshot returns a disk that begins where this one is, all of it synced.
func (d *disk) snapshot(rng *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	copied := &disk{rng: rng, files: make(map[string]*image), deaf: d.deaf}
	for name, f := range d.files {
		copied.files[name] = &image{slices.Clone(f.seen), slices.Clone(f.seen)}
	}
	return copied
}

// torn returns a disk as it is found after the power was cut.
func (d *disk) torn() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := &disk{rng: d.rng, files: make(map[string]*image)}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		size := len(f.synced)
		if d.rng.IntN(2) == 0 {
			size = len(f.seen)
		}
		data := make([]byte, size)
		copy(data, f.synced)
		for at := 0; at < min(size, len(f.seen)); at += sector {
			if d.rng.IntN(2) == 0 {
				copy(data[at:min(at+sector, size)], f.seen[at:])
			}
		}
		found.files[name] = &image{data, slices.Clone(data)}
	}
	return found
}

// op counts an operation, and returns its error if it is one that fails.
func (d *disk) op(writes bool) error {
	if d.ops++; d.fault == nil {
		return nil
	}
	return d.fault(d.ops, writes)
}

// powerCut is the fault of a disk without power from the n-th operation on.
func powerCut(n int) func(int, bool) error {
	return func(op int, _ bool) error {
		if op >= n {
			return sqlite3.IOERR
		}
		return nil
	}
}

func (d *disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(false); err != nil {
		return nil, flags, sqlite3.CANTOPEN
	}
	if name == "" {
		name = fmt.Sprint("temp", d.ops)
	}
	f := d.files[name]
	if f == nil {
		if flags&vfs.OPEN_CREATE == 0 {
			return nil, flags, sqlite3.CANTOPEN
		}
		f = &image{}
		d.files[name] = f
	}
	return &file{d, f}, flags, nil
}

func (d *disk) Delete(name string, _ bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(false); err != nil {
		return err
	}
	if d.files[name] == nil {
		return sqlite3.IOERR_DELETE_NOENT
	}
	delete(d.files, name)
	return nil
}

func (d *disk) Access(name string, _ vfs.AccessFlag) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[name] != nil, d.op(false)
}

func (d *disk) FullPathname(name string) (string, error) { return name, nil }

// file is an open file of a disk. There is one connection, so that locks are not needed.
type file struct {
	disk *disk
	*image
}

func (f *file) do(writes bool, what func()) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.op(writes); err != nil {
		return err
	}
	what()
	return nil
}

func (f *file) ReadAt(b []byte, at int64) (n int, err error) {
	err = f.do(false, func() {
		if at < int64(len(f.seen)) {
			n = copy(b, f.seen[at:])
		}
	})
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

func (f *file) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.do(true, func() {
		if over := int(at) + len(b) - len(f.seen); over > 0 {
			f.seen = append(f.seen, make([]byte, over)...)
		}
		n = copy(f.seen[at:], b)
	})
	return n, err
}

func (f *file) Truncate(size int64) error {
	return f.do(false, func() { f.seen = f.seen[:min(size, int64(len(f.seen)))] })
}

func (f *file) Sync(vfs.SyncFlag) error {
	return f.do(false, func() {
		if !f.disk.deaf {
			f.synced = slices.Clone(f.seen)
		}
	})
}

func (f *file) Size() (size int64, err error) {
	err = f.do(false, func() { size = int64(len(f.seen)) })
	return size, err
}

func (f *file) Close() error                                    { return nil }
func (f *file) Lock(vfs.LockLevel) error                        { return nil }
func (f *file) Unlock(vfs.LockLevel) error                      { return nil }
func (f *file) CheckReservedLock() (bool, error)                { return false, nil }
func (f *file) SectorSize() int                                 { return sector }
func (f *file) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }

var disks atomic.Int64

// on opens the database of a disk, with one connection. The caller calls done.
func (d *disk) on() (handle *sql.DB, done func(), err error) {
	name := fmt.Sprint("disk", disks.Add(1))
	vfs.Register(name, d)
	handle, err = sql.Open("sqlite3",
		"file:heed.db?vfs="+name+"&_pragma=locking_mode(exclusive)"+d.options)
	if err != nil {
		vfs.Unregister(name)
		return nil, nil, err
	}
	handle.SetMaxOpenConns(1)
	return handle, func() {
		_ = handle.Close() // which fails where there is no power
		vfs.Unregister(name)
	}, nil
}

// newDisk returns a disk with heed's tables on it, in pages of the given size in bytes.
func newDisk(ctx context.Context, page int) (*disk, error) {
	d := &disk{files: make(map[string]*image)}
	handle, done, err := d.on()
	if err != nil {
		return nil, err
	}
	defer done()
	if _, err := handle.ExecContext(ctx, fmt.Sprint("PRAGMA page_size = ", page)); err != nil {
		return nil, err
	}
	_, err = sqlstore.Open(ctx, handle, sqlstore.SQLite)
	return d, err
}
