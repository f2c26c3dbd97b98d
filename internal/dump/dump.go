// Package dump has the format in which a store is written to a file and read again. Every store
// reads the files of every other.
//
// A dump is lines of JSON. The first has the version of the format. Each other line is a row: an
// object with one member, whose name is the kind of the row. Kinds come first, then cells, then
// what belongs to cells, then ids, then records in the order of first writing. The last line has
// the number of rows and the SHA-256 of all lines before it.
//
// Moments are microseconds since 1970-01-01 UTC, and 0 is no moment. Ids and cells are written as a
// [text.Hash].
package dump

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// version is the version of the format. Dumps of version 2 have other hashes of ids, and dumps of
// version 1 the records of an earlier layout.
const version = 3

// MaxLine is how many bytes a line may have. A record's body has at most 4 MiB, so a line of a dump
// is never longer.
const MaxLine = 16 << 20

// HashOfCell returns the hash of a cell.
func HashOfCell(c evidence.Cell) text.Hash { return text.HashOf(c.Kind, c.Scope, c.Item, c.Name) }

// A Row is what a line holds. One of the fields is set.
type Row struct {
	// Kind is a kind that the store declared, with its limits.
	Kind *store.Kind `json:"kind,omitempty"`
	// Cell, Tally, Observation and Lost are the evidence of one cell, in this order.
	Cell        *Cell        `json:"cell,omitempty"`
	Tally       *Tally       `json:"tally,omitempty"`
	Observation *Observation `json:"observation,omitempty"`
	Lost        *Lost        `json:"lost,omitempty"`
	// ID is an id that counted once.
	ID *ID `json:"id,omitempty"`
	// Record is a record with its body.
	Record *Record `json:"record,omitempty"`
}

// A Cell records how a cell is kept.
type Cell struct {
	// Hash names the cell in later rows. It follows from the texts below.
	Hash text.Hash `json:"hash"`
	// Kind, Scope, Item and Name are the cell's, as in [evidence.Cell]. The kind has the tenant's
	// name.
	Kind  string `json:"kind"`
	Scope string `json:"scope,omitempty"`
	Item  string `json:"item,omitempty"`
	Name  string `json:"name,omitempty"`
	// HalfLife is in microseconds, and 0 if the cell does not fade. ByOrigin reports that it keeps a
	// tally for each origin.
	HalfLife int64 `json:"halfLife,omitempty"`
	ByOrigin bool  `json:"byOrigin,omitempty"`
	// Restart is the moment before which observations do not count.
	Restart evidence.Instant `json:"restart,omitempty"`
}

// A Tally is the sum of one origin of a cell.
type Tally struct {
	// Cell is the cell's hash. Channel and Source are the origin, and empty if the cell keeps origins
	// together.
	Cell    text.Hash `json:"cell"`
	Channel string    `json:"channel,omitempty"`
	Source  string    `json:"source,omitempty"`
	// Landmark is the moment at which the sums are stated, a whole number of steps of the half-life.
	Landmark evidence.Instant `json:"landmark,omitempty"`
	// The sums are the ones of [evidence.Tally], as of the landmark.
	Mass          float64 `json:"mass"`
	Squares       float64 `json:"squares"`
	Reward        float64 `json:"reward"`
	RewardSquares float64 `json:"rewardSquares"`
	// The counts are by the sign of the reward. They do not fade.
	Positive Count `json:"positive,omitzero"`
	Negative Count `json:"negative,omitzero"`
	Neutral  Count `json:"neutral,omitzero"`
	// LostSource reports that an observation was lost whose source the tally does not distinguish. A
	// store then can't forget that source exactly.
	LostSource bool `json:"lostSource,omitempty"`
}

// A Count is how many observations of one sign there were.
type Count struct {
	// N is the number, at most 2³²-1, and Last is when the last of them happened.
	N    uint64           `json:"n"`
	Last evidence.Instant `json:"last"` // when the last of them happened
	// Lost is when the last one happened that counts and is not in the history.
	Lost evidence.Instant `json:"lost,omitempty"`
}

// An Observation is one of a cell's history. The observations of one cell are in the order in which
// they were recorded.
type Observation struct {
	Cell     text.Hash        `json:"cell"`
	ID       string           `json:"id"`
	Channel  string           `json:"channel,omitempty"`
	Source   string           `json:"source,omitempty"`
	Session  string           `json:"session,omitempty"`
	Reward   float64          `json:"reward"`
	Weight   float64          `json:"weight"`
	Share    float64          `json:"share,omitempty"`
	At       evidence.Instant `json:"at"`
	Recorded evidence.Instant `json:"recorded"`
}

// A Lost records that an observation of an id counts in a cell but is not in the history.
type Lost struct {
	ID       text.Hash        `json:"id"`
	Cell     text.Hash        `json:"cell"`
	Recorded evidence.Instant `json:"recorded"`
	// Origin is the tally that it counts in, of a cell that has several. nil: that is not known, and
	// it may be any.
	Origin *Origin `json:"origin,omitempty"`
}

// An Origin distinguishes the tallies of a cell. Both are empty where the cell has one.
type Origin struct {
	Channel string `json:"channel,omitempty"`
	Source  string `json:"source,omitempty"`
}

// An ID is the known id of an observation or of a batch.
type ID struct {
	// ID is the hash of the id, Recorded is when it came, and Retracted reports that its observation
	// was taken back. A retracted id stays, so that a late delivery does not count.
	ID        text.Hash        `json:"id"`
	Recorded  evidence.Instant `json:"recorded"`
	Retracted bool             `json:"retracted,omitempty"`
	// Untraced reports that no history was kept when it came.
	Untraced bool `json:"untraced,omitempty"`
}

// A Record is a record as it was written last.
type Record struct {
	// Kind and ID name the record. Kind has the tenant's name.
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// Revision is the one that the store gave, and stays after a load: steps compare it.
	Revision uint64           `json:"revision"`
	At       evidence.Instant `json:"at"`
	// Keys are the keys by which queries find it, and Body is its JSON.
	Keys []string        `json:"keys,omitempty"`
	Body json.RawMessage `json:"body"`
	// Seq is the number of its first writing, if the dump is to keep places: see [WithPlaces]. 0: the
	// next number.
	Seq int64 `json:"seq,omitempty"`
}

// WithPlaces is a writer of a dump that is for a store of the same kind. The Place of a record is
// the same after a load.
type WithPlaces struct{ io.Writer }

// A header is what a reader must know before the first row.
type header struct {
	Version  int    `json:"version"`
	Revision uint64 `json:"revision"` // the greatest that the store ever gave
}

// A firstLine has a name for the format, by which people and programs know the file.
type firstLine struct {
	Header header `json:"heed"`
}

// lastLine returns the last line of a dump, with its number of rows. It is compared byte for byte
// when the dump is read, so its form must not change within a version.
func lastLine(rows int, sum hash.Hash) []byte {
	return fmt.Appendf(nil, `%s{"rows":%d,"sha256":"%s"}}`+"\n", endPrefix, rows,
		hex.EncodeToString(sum.Sum(nil)))
}

// endPrefix begins the last line, and no row.
const endPrefix = `{"end":`

// A Writer writes a dump. It must not be used concurrently. An error leaves the dump without its
// last line, and no reader accepts it.
type Writer struct {
	// sum is the hash of all lines so far, and rows is their number without the first line.
	out  *bufio.Writer
	line lineBuffer
	json *json.Encoder
	sum  hash.Hash
	rows int
}

// A lineBuffer collects a line, because its length must be known before it is written.
type lineBuffer []byte

func (b *lineBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// NewWriter writes the first line. The revision is the greatest that the store ever gave, to
// whatever record. A load continues with it, so that a revision is never given twice.
func NewWriter(to io.Writer, revision uint64) (*Writer, error) {
	w := &Writer{out: bufio.NewWriterSize(to, 1<<16), sum: sha256.New()}
	w.json = json.NewEncoder(&w.line)
	w.json.SetEscapeHTML(false)
	return w, w.write(firstLine{header{version, revision}})
}

// Write writes a row, by one of whose fields it is known.
func (w *Writer) Write(row Row) error {
	w.rows++
	return w.write(row)
}

// write writes a line and adds it to the sum. HTML is not escaped, so that bodies stay as short as
// they were.
func (w *Writer) write(line any) error {
	w.line = w.line[:0]
	if err := w.json.Encode(line); err != nil {
		return err
	}
	if len(w.line) > MaxLine {
		return fmt.Errorf("a line has %d bytes and may have %d", len(w.line), MaxLine)
	}
	w.sum.Write(w.line)
	_, err := w.out.Write(w.line)
	return err
}

// Close writes the last line and what is buffered.
func (w *Writer) Close() error {
	if _, err := w.out.Write(lastLine(w.rows, w.sum)); err != nil {
		return err
	}
	return w.out.Flush()
}

// Only writes the rows of one tenant, which it reads from a dump. Of the ids, which are hashes, it
// keeps the ids of observations. It serves to move a tenant to a separate store. Ids of batches do
// not name their tenant, so they are left out, and a batch that is delivered again after the move
// may count again. It reads the dump once, and keeps the hashes of the tenant's cells and ids in
// memory.
func Only(to io.Writer, from io.Reader, tenant string) error {
	in, err := NewReader(from)
	if err != nil {
		return err
	}
	out, err := NewWriter(to, in.Revision)
	if err != nil {
		return err
	}
	own := make(map[text.Hash]bool) // cells and ids
	for {
		row, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out.Close()
		case err == nil && row.of(tenant, own):
			err = out.Write(row)
		}
		if err != nil {
			return err
		}
	}
}

// of reports whether a row is of a tenant. own has the tenant's cells and ids in the rows before.
// The order of a dump makes this possible: a cell comes before what belongs to it, and an id after
// its observations.
func (r *Row) of(tenant string, own map[text.Hash]bool) bool {
	is := func(kind string) bool {
		_, of := store.KindOf(kind)
		return of == tenant
	}
	switch {
	case r.Kind != nil:
		return true
	case r.Cell != nil:
		own[r.Cell.Hash] = is(r.Cell.Kind)
		return own[r.Cell.Hash]
	case r.Tally != nil:
		return own[r.Tally.Cell]
	case r.Observation != nil:
		id := text.HashOfID(r.Observation.ID)
		own[id] = own[id] || own[r.Observation.Cell]
		return own[r.Observation.Cell]
	case r.Lost != nil:
		own[r.Lost.ID] = own[r.Lost.ID] || own[r.Lost.Cell]
		return own[r.Lost.Cell]
	case r.ID != nil:
		return own[r.ID.ID]
	}
	keyed := slices.Contains(r.Record.Keys, store.Key("tenant", tenant)) // such as a job
	return keyed || is(r.Record.Kind)
}
