package sqlstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// The checksum of a row is the CRC-32C of its texts, each after its length, plus its numbers. So SQL can keep it when it changes a
// number. A flip of one bit always changes it. It is against accidents, as anybody can compute it.
//
// Sums are added to in SQL alone. The database itself keeps the checksum of a tally and a copy of each sum, and adds only to a tally that
// matches them. SQLite generates these columns. PostgreSQL would prepare their expressions for each statement, so the statements set them
// there. See docs/stores.md for what each table has.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var sumBuffers = sync.Pool{New: func() any { return new([]byte) }}

// checksum returns the checksum of a row that has these texts and numbers.
func checksum(numbers int64, texts ...string) int64 {
	buffer, _ := sumBuffers.Get().(*[]byte)
	all := (*buffer)[:0]
	for _, text := range texts {
		all = binary.AppendUvarint(all, uint64(len(text)))
		all = append(all, text...)
	}
	numbers += int64(crc32.Checksum(all, castagnoli))
	const most = 1 << 16 // bytes to keep
	if *buffer = all; cap(all) <= most {
		sumBuffers.Put(buffer)
	}
	return numbers
}

// namedCell is the part of a cell's checksum that is of its texts.
func namedCell(c evidence.Cell) int64 { return checksum(0, c.Kind, c.Scope, c.Item, c.Name) }

// namedTally is the part of a tally's checksum that is of its texts.
func namedTally(key, channel, source string) int64 { return checksum(0, key, channel, source) }

func sumOfID(id string, recorded, traced, retracted int64) int64 {
	return checksum(recorded+traced+retracted, id)
}

func sumOfObservation(key, id, source, text string, happened, recorded evidence.Instant) int64 {
	return checksum(int64(happened)+int64(recorded), key, id, source, text)
}

func sumOfLost(id, key, source string, recorded evidence.Instant) int64 {
	return checksum(int64(recorded), id, key, source)
}

func sumOfRecord(ref store.Ref, at evidence.Instant, revision int64, keys, body string) int64 {
	return checksum(int64(at)+revision, ref.Kind, ref.ID, keys, body)
}

// sumOfEvent leaves out what changes while an event waits. The database keeps a copy of that.
func sumOfEvent(inbox, id, topic, happened string, payload []byte) int64 {
	return checksum(0, inbox, id, topic, happened, string(payload))
}

// The columns of a tally that are added to its checksum, and those that the database keeps a copy of.
var (
	tallyNumbers = []string{
		"landmark", "n_positive", "n_negative", "n_neutral", "last_positive", "last_negative", "last_neutral",
		"lost_positive", "lost_negative", "lost_neutral", "lost_source",
	}
	tallyCopied = []string{"mass", "squares", "reward", "reward_squares"}
)

// numbersFit is a condition: the numbers of a tally, without its sums, match its checksum.
func numbersFit(t string) string {
	return t + `checksum = ` + t + `named + ` + t + strings.Join(tallyNumbers, ` + `+t)
}

// tallyFits is a condition: all of a tally but its texts matches its checksum and its copies.
func tallyFits(t string) string {
	text := numbersFit(t)
	for _, name := range tallyCopied {
		text += ` AND ` + t + name + ` = ` + t + name + `_copy`
	}
	return text
}

// namedIfFits is the namedTally of a tally that fits, and -1 for any other.
func namedIfFits(t string) string {
	return `CASE WHEN ` + tallyFits(t) + ` THEN ` + t + `named ELSE -1 END`
}

// named is the namedCell of a cell that is as it was written.
func named(c string) string {
	return c + `checksum - ` + c + `half_life - ` + c + `by_origin - ` + c + `restart`
}

// damage counts a row that does not match its checksum, and returns the error that names it.
func (db *database) damage(format string, args ...any) error {
	db.damaged.Add(1)
	return fmt.Errorf("%w: %s", heed.ErrDamaged, fmt.Sprintf(format, args...))
}

// A damage notes the damaged rows that a change passes over.
type damage struct {
	people []string // whom the change forgets: their own sums go as they are
	known  map[string]bool
	first  []error
}

// pass notes a row.
func (d *damage) pass(err error) {
	const most = 10 // to name
	if text := err.Error(); !d.known[text] {
		if d.known == nil {
			d.known = make(map[string]bool)
		}
		d.known[text] = true
		if len(d.first) < most {
			d.first = append(d.first, err)
		}
	}
}

// passes reports whether a row is damaged and may be passed over. Then it notes it.
func (c *change) passes(err error) bool {
	if c.damage == nil || !errors.Is(err, heed.ErrDamaged) {
		return false
	}
	c.damage.pass(err)
	return true
}

// err names the first rows that were passed over.
func (d *damage) err() error {
	err := errors.Join(d.first...)
	if more := len(d.known) - len(d.first); more > 0 {
		err = errors.Join(err, fmt.Errorf("and %d more", more))
	}
	return err
}

// nameOf names a cell for people.
func nameOf(c evidence.Cell) string {
	text := "kind " + strconv.Quote(c.Kind) + ", scope " + strconv.Quote(c.Scope) + ", item " + strconv.Quote(c.Item)
	if c.Name != "" {
		text += ", name " + strconv.Quote(c.Name)
	}
	return text
}
