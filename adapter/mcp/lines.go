package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stdio returns the transport of a client that writes to in and reads from out. Lines that are not
// messages are skipped. A request longer than 16 MiB gets an error, and so does each request in a
// batch, because the protocol has no batches any more. The SDK's own transport ends the session
// with the first of any of these.
func Stdio(in io.ReadCloser, out io.WriteCloser) sdk.Transport {
	to := &lines{WriteCloser: out}
	return &sdk.IOTransport{
		Reader: &messages{from: bufio.NewReader(in), Closer: in, to: to}, Writer: to}
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
		line, long, err := m.readLine()
		one, refuse := bytes.TrimSpace(line), m.refuse
		if long {
			refuse = m.refuseLong
		} else if _, wrong := jsonrpc.DecodeMessage(one); wrong == nil && json.Valid(one) {
			// decoding takes more behind a message, the SDK does not
			m.rest = append(append(m.rest, one...), '\n')
			break
		}
		if failed := cmp.Or(refuse(line), err); failed != nil {
			return 0, failed
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// maxLine bounds a line, in bytes. The texts that tools take are shorter.
const maxLine = 16 << 20

// ends is how much is kept of each end of a line that is too long, in bytes.
const ends = 4 << 10

// readLine reads a line to its end. Of a line that is too long, some of the middle is missing.
func (m *messages) readLine() (line []byte, long bool, err error) {
	for {
		piece, err := m.from.ReadSlice('\n')
		if line = append(line, piece...); len(line) > maxLine || long && len(line) > 2*ends {
			line, long = append(line[:ends], line[len(line)-ends:]...), true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// idIn finds a message's id before the first value that is no text, or at the end, where most
// clients write it. unanswered finds the beginning of a response or a notification.
var (
	idIn = regexp.MustCompile(strings.ReplaceAll(`^\s*\{(?:\s*"\w+"\s*:\s*"[^"\\]*"\s*,)*ID,|`+
		`[{,]ID(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`, "ID", `\s*"id"\s*:\s*(-?\d+|"[^"\\]*")\s*`))
	unanswered = regexp.MustCompile(`^\s*\{(?:\s*"\w+"\s*:\s*(?:-?\d+|"[^"\\]*")\s*,)*\s*` +
		`"(?:result"|error"|method"\s*:\s*"notifications/)`)
)

// refuseLong answers a line that is too long with an error, unless it needs no answer.
func (m *messages) refuseLong(line []byte) error {
	if unanswered.Match(line) {
		return nil
	}
	id := "null"
	if found := idIn.FindSubmatch(line); found != nil {
		id = string(found[1]) + string(found[2])
	}
	return m.fail(id, "a message has 16 MiB at most: send a shorter text")
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
		id, _ := json.Marshal(request.ID.Raw()) // a number or a text
		if err := m.fail(string(id), "a batch is not supported: send each message alone"); err != nil {
			return err
		}
	}
	return nil
}

// fail answers the request of an id with an error.
func (m *messages) fail(id, why string) error {
	_, err := fmt.Fprintf(m.to, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n",
		id, jsonrpc.CodeInvalidRequest, why)
	return err
}
