package store

import (
	"encoding/binary"
	"time"

	"github.com/heedhq/heed/evidence"
)

// AppendText appends a text to the key of an engine that keeps keys in order, such as bbolt. Keys
// of several texts are in the order of their first text, and then of the next: as [Store.List]
// yields cells, for example. The text must have no NUL, which [Validate] checks.
func AppendText(key []byte, text string) []byte { return append(append(key, text...), 0) }

// AppendTime appends a moment, in whole microseconds, to such a key. Keys are in the order of time.
// For the order of [Store.Find], append the number of the record's first writing as well, by
// encoding/binary in big endian.
func AppendTime(key []byte, at time.Time) []byte {
	return binary.BigEndian.AppendUint64(key, uint64(evidence.InstantOf(at))+1<<63)
}
