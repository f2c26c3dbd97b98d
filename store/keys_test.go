package store_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// Keys are in the order of the cells, and of the moments and first writings of records.
func TestKeysInOrder(t *testing.T) {
	texts := []string{"", "a", "a\x01", "ab", "a/b", "b", "é", "\U0010ffff"}
	var cells []evidence.Cell
	for _, scope := range texts {
		for _, item := range texts {
			cells = append(cells, evidence.Cell{Kind: "k", Scope: scope, Item: item})
		}
	}
	keyOf := func(c evidence.Cell) []byte {
		return store.AppendText(store.AppendText(nil, c.Scope), c.Item)
	}
	slices.SortFunc(cells, func(a, b evidence.Cell) int { return bytes.Compare(keyOf(a), keyOf(b)) })
	assert.True(t, slices.IsSortedFunc(cells, func(a, b evidence.Cell) int {
		if n := strings.Compare(a.Scope, b.Scope); n != 0 {
			return n
		}
		return strings.Compare(a.Item, b.Item)
	}))
	start := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	var last []byte
	for _, at := range []time.Time{time.Unix(0, 0), start, start.Add(time.Microsecond)} {
		for seq := range uint64(3) {
			key := binary.BigEndian.AppendUint64(store.AppendTime(nil, at), seq)
			assert.Negative(t, bytes.Compare(last, key), "%v, %d", at, seq)
			last = key
		}
	}
}
