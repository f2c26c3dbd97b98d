package memstore

import (
	"cmp"
	"iter"
	"slices"

	"github.com/heedhq/heed/evidence"
)

// A position is where a record stands among others: by its time, and of one moment in the order of first writing.
type position struct {
	at  evidence.Instant
	seq uint64
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(p.seq, q.seq))
}

// A timeline holds rows by position, in blocks of at most blockSize, none of them empty. Adding and removing cost about
// the same at every place. The zero timeline is empty. It must not be used concurrently.
type timeline struct {
	blocks [][]*row
	size   int
}

const blockSize = 256

// seek returns the place of the first row that is at the position or behind it.
func (t *timeline) seek(p position) (block, i int) {
	block, _ = slices.BinarySearchFunc(t.blocks, p, func(b []*row, p position) int { return b[len(b)-1].compare(p) })
	if block < len(t.blocks) {
		i, _ = slices.BinarySearchFunc(t.blocks[block], p, func(r *row, p position) int { return r.compare(p) })
	}
	return block, i
}

func (t *timeline) add(r *row) {
	t.size++
	last := len(t.blocks) - 1
	block, i := last+1, 0
	if last >= 0 && t.blocks[last][len(t.blocks[last])-1].compare(r.position) >= 0 {
		block, i = t.seek(r.position)
	}
	if block == len(t.blocks) { // behind all: the usual case
		if block == 0 || len(t.blocks[block-1]) == blockSize {
			room := 1
			if block > 0 {
				room = blockSize // it will be full, as the one before
			}
			t.blocks = append(t.blocks, append(make([]*row, 0, room), r))
			return
		}
		block--
		i = len(t.blocks[block])
	}
	rows := slices.Insert(t.blocks[block], i, r)
	if len(rows) > blockSize {
		half := slices.Clone(rows[blockSize/2:])
		clear(rows[blockSize/2:])
		rows = rows[:blockSize/2]
		t.blocks = slices.Insert(t.blocks, block+1, half)
	}
	t.blocks[block] = rows
}

// remove takes out a row that is there.
func (t *timeline) remove(r *row) {
	t.size--
	block, i := t.seek(r.position)
	rows := t.blocks[block]
	if i == 0 { // the usual case: the oldest goes
		rows[0] = nil
		rows = rows[1:]
	} else {
		rows = slices.Delete(rows, i, i+1)
	}
	t.blocks[block] = rows
	if next := block + 1; next < len(t.blocks) && len(rows)+len(t.blocks[next]) <= blockSize/2 {
		t.blocks[block] = append(rows, t.blocks[next]...)
		t.blocks = slices.Delete(t.blocks, next, next+1)
	} else if len(rows) == 0 {
		t.blocks = slices.Delete(t.blocks, block, next)
	}
}

// up yields the rows from a position on, in order.
func (t *timeline) up(from position) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		block, i := t.seek(from)
		for ; block < len(t.blocks); block, i = block+1, 0 {
			for _, r := range t.blocks[block][i:] {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// down yields the rows before a position, the last first.
func (t *timeline) down(before position) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		block, i := t.seek(before)
		if block == len(t.blocks) {
			block, i = block-1, blockSize
		}
		for ; block >= 0; block, i = block-1, blockSize {
			rows := t.blocks[block]
			for _, r := range slices.Backward(rows[:min(i, len(rows))]) {
				if !yield(r) {
					return
				}
			}
		}
	}
}
