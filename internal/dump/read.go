package dump

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"

	"github.com/heedhq/heed"
)

// A Reader reads a dump. It must not be used concurrently.
//
// It reads one line at a time, so its memory does not grow with the dump, unless it checks rows
// against each other.
type Reader struct {
	// Revision is the greatest that the store ever gave. Records written after a load must get a
	// greater one.
	Revision uint64

	// line is the buffer of the present line, and sum the hash of the lines before it.
	in    *bufio.Reader
	line  []byte
	sum   hash.Hash
	lines int // read so far
	// done reports that the last line was read and was right.
	done  bool
	check *checker // nil: rows need not fit together
}

// NewReader reads the first line. A line that is no dump's, or of a newer version, is a
// [*heed.InputError]. The version is checked before the form, because a newer version should be
// named as such, and not as a faulty file.
func NewReader(from io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(from, 1<<16), sum: sha256.New()}
	text, err := r.next()
	if err != nil {
		return nil, err
	}
	var first firstLine
	if err := decode(text, &first); err != nil {
		// A newer version may have more members.
		if json.Unmarshal(text, &first) != nil || first.Header.Version <= version {
			return nil, r.fault("is not the first line of a dump")
		}
	}
	if v := first.Header.Version; v != version {
		return nil, r.fault(fmt.Sprintf("the dump is of version %d, and this program reads %d", v,
			version))
	}
	if first.Header.Revision >= math.MaxInt64 {
		return nil, r.fault("the revision is not one that a store gives")
	}
	r.sum.Write(text)
	r.Revision = first.Header.Revision
	return r, nil
}

// Next returns the next row, and [io.EOF] after the last one, when the dump has proved to be whole.
// A row that is not valid, and a dump that was changed or cut off, is a [*heed.InputError] that
// names the line. A caller that stored rows must take them back on any error but io.EOF. The next
// call may change what a row refers to. A row is checked by itself first, and then against the rows
// before it.
func (r *Reader) Next() (Row, error) {
	if r.done {
		return Row{}, io.EOF
	}
	text, err := r.next()
	if err != nil {
		return Row{}, err
	}
	if bytes.HasPrefix(text, []byte(endPrefix)) {
		return Row{}, r.end(text)
	}
	r.sum.Write(text)
	var row Row
	if err := decode(text, &row); err != nil {
		return Row{}, r.fault(err.Error())
	}
	if err := row.validate(); err != nil {
		return Row{}, r.Fault(err)
	}
	if r.check != nil {
		if err := r.check.row(&row); err != nil {
			return Row{}, r.Fault(err)
		}
	}
	return row, nil
}

// end checks the last line against what was read. It counts rows without the first line and itself.
// One comparison covers the number of rows, the hash and the form of the line. Two dumps in one
// file are refused, because the second one would be lost.
func (r *Reader) end(text []byte) error {
	if !bytes.Equal(text, lastLine(r.lines-2, r.sum)) {
		return r.fault("the dump was changed: its lines are not those that were written")
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		if err != nil {
			return err
		}
		return r.fault("something comes after the end")
	}
	r.done = true
	return io.EOF
}

// next returns the next line with its end. A line without its end is the sign of a file that was
// cut off. The length is checked while the line is read, so a file without line ends takes no more
// memory than the limit.
func (r *Reader) next() ([]byte, error) {
	r.line = r.line[:0]
	r.lines++
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.line)+len(part) > MaxLine {
			return nil, r.fault(fmt.Sprintf("has more than %d bytes", MaxLine))
		}
		r.line = append(r.line, part...)
		switch {
		case err == nil:
			return r.line, nil
		case errors.Is(err, io.EOF):
			return nil, r.fault("the dump was cut off")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (r *Reader) fault(reason string) error { return r.Fault(errors.New(reason)) }

// Line returns the number of the line of the last Next.
func (r *Reader) Line() int { return r.lines }

// Fault is [FaultAt] for the row of the last Next.
func (r *Reader) Fault(err error) error { return FaultAt(r.lines, err) }

// FaultAt returns the error that the row of a line can't be taken: a [*heed.InputError] that names
// the line.
func FaultAt(line int, err error) error {
	return &heed.InputError{Field: fmt.Sprintf("line %d", line), Reason: err.Error()}
}

// decode reads JSON and refuses unknown members. An unknown member means a newer format or a typing
// error; passing it by would lose what it has.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if rest := text[d.InputOffset():]; len(rest) != 1 {
		return errors.New("a line must be one value")
	}
	return nil
}
