package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stdio returns the transport of a client that writes to in and reads from out. Lines that are not
// messages are skipped, while the SDK's own transport ends the session with the first one.
func Stdio(in io.ReadCloser, out io.WriteCloser) sdk.Transport {
	return &sdk.IOTransport{Reader: &messages{from: bufio.NewReader(in), Closer: in}, Writer: out}
}

// Messages reads the lines that are messages.
type messages struct {
	io.Closer

	from *bufio.Reader
	rest []byte // of a line that was not read to its end
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.from.ReadBytes('\n')
		if isMessage(line) {
			m.rest = line
		} else if err != nil {
			return 0, err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// isMessage reports whether the SDK can read a line: a message, or a batch of them.
func isMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil {
		batch = []json.RawMessage{line}
	}
	for _, one := range batch {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			return false
		}
	}
	return len(batch) > 0
}
