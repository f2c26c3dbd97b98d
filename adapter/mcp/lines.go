package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stdio returns the transport of a client that writes to in and reads from out. Lines that are not
// messages, or longer than 16 MiB, are skipped, and each request in a batch gets an error, because
// the protocol has no batches any more. The SDK's own transport ends the session with the first of
// any of these.
func Stdio(in io.ReadCloser, out io.WriteCloser) sdk.Transport {
	to := &lines{WriteCloser: out}
	return &sdk.IOTransport{
		Reader: &messages{from: bufio.NewReader(in), Closer: in, to: to}, Writer: to,
	}
}

// lines writes one line at a time. It is safe for concurrent use.
type lines struct {
	io.WriteCloser

	one sync.Mutex
}

func (l *lines) Write(p []byte) (int, error) {
	l.one.Lock()
	defer l.one.Unlock()
	return l.WriteCloser.Write(p)
}

// messages reads the lines that are messages.
type messages struct {
	io.Closer

	from *bufio.Reader
	to   io.Writer // where batches are refused
	rest []byte    // of a line that was not read to its end
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.readLine()
		one := bytes.TrimSpace(line)
		_, wrong := jsonrpc.DecodeMessage(one)
		if wrong == nil && json.Valid(one) { // decoding takes more behind a message, the SDK does not
			m.rest = append(append(m.rest, one...), '\n')
			break
		}
		if failed := cmp.Or(m.refuse(line), err); failed != nil {
			return 0, failed
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// maxLine bounds a line, in bytes. The texts that tools take are shorter.
const maxLine = 16 << 20

// readLine reads a line to its end. It returns no text of a line that is too long.
func (m *messages) readLine() (line []byte, err error) {
	for {
		piece, err := m.from.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > maxLine {
			line = nil
		}
		return line, err
	}
}

// refuse answers each request of a line that is a batch with an error.
func (m *messages) refuse(line []byte) error {
	var batch []json.RawMessage
	_ = json.Unmarshal(line, &batch) // what is no batch has no requests
	for _, one := range batch {
		message, _ := jsonrpc.DecodeMessage(one) // nil if it is none
		request, is := message.(*jsonrpc.Request)
		if !is || !request.IsCall() {
			continue
		}
		refusal, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: request.ID, Error: errBatch})
		if err == nil {
			_, err = m.to.Write(append(refusal, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errBatch = &jsonrpc.Error{
	Code: jsonrpc.CodeInvalidRequest, Message: "a batch is not supported: send each message alone",
}
