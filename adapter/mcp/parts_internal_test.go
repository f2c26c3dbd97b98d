package mcp

import (
	"bufio"
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// Messages come through without blanks around them, in pieces of any size, also the last one
// without an end of its line. Each request of a batch is refused by its id, and nothing else is
// answered.
func TestLinesThatAreMessages(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"x"}`
	in := one + "\n" + "no message\n" + "  " + two + "  \r\n" +
		`[` + one + `,` + two + `,7,{"jsonrpc":"2.0","id":3,"result":{}},` +
		`{"jsonrpc":"2.0","id":"b","method":"ping"}]` + "\n[]\n[7\n\n" + one
	const refused = `,"error":{"code":-32600,"message":"a batch is not supported: send each ` +
		`message alone"}}`
	for _, size := range []int{1, 7, 4096} {
		var out bytes.Buffer
		m := &messages{from: bufio.NewReader(strings.NewReader(in)), to: &out}
		var got []byte
		for p := make([]byte, size); ; {
			n, err := m.Read(p)
			if got = append(got, p[:n]...); err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
		}
		assert.Equal(t, []string{one, two, one, ""}, strings.Split(string(got), "\n"))
		assert.Equal(t, []string{
			`{"jsonrpc":"2.0","id":1` + refused, `{"jsonrpc":"2.0","id":"b"` + refused, "",
		}, strings.Split(out.String(), "\n"))
	}
}

// endless is a line without an end, up to a number of bytes, and then a message.
type endless struct {
	left int
	then *strings.Reader
}

var brackets = strings.Repeat("[", 4096)

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return e.then.Read(p)
	}
	n := copy(p[:min(len(p), e.left)], brackets)
	e.left -= n
	return n, nil
}

// A line that is too long is not kept, and what follows is read.
func TestALineThatIsTooLong(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	var out bytes.Buffer
	m := &messages{to: &out, from: bufio.NewReader(
		&endless{12 * maxLine, strings.NewReader("]\n" + ping)})}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := make([]byte, 100)
	n, err := m.Read(p)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	assert.Len(t, ping, n)
	assert.JSONEq(t, ping, string(p[:n]))
	assert.JSONEq(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,
		"message":"a message has 16 MiB at most: send a shorter text"}}`, out.String())
	// Growing slices make a line of maxLine cost several times its length, and 12 lines far more.
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(10*maxLine))
}

// A broken writer takes nothing.
type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, io.ErrClosedPipe
}

func (*broken) Close() error { return nil }

// A batch that can't be refused ends the reading, at once.
func TestABatchThatCannotBeRefused(t *testing.T) {
	const one = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	to := &broken{}
	m := &messages{
		from: bufio.NewReader(strings.NewReader("[" + one + "," + one + "]\n" + one + "\n")),
		to:   &lines{WriteCloser: to},
	}
	_, err := m.Read(make([]byte, 100))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	assert.Equal(t, 1, to.writes)
}

// With a token, the person is the token's, and sessions are the person's own. Without one, the
// person is the server's, and sessions are as they are called. Messages have names of their own.
func TestWhoCalls(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	s := &server{agent, "ann"}
	local := s.caller(nil)
	assert.Equal(t, "ann", local.Person)
	assert.True(t, local.Model)
	assert.Equal(t, "ann", s.caller(&sdk.RequestExtra{}).Person)
	bob := s.caller(&sdk.RequestExtra{TokenInfo: &auth.TokenInfo{UserID: "bob"}})
	assert.Equal(t, "bob", bob.Person)

	id, in := local.Names("", "")
	assert.Equal(t, []string{"", ""}, []string{id, in})
	id, in = local.Names("m", "c")
	assert.Equal(t, []string{"mcp-" + digest("ann", "c", "m"), "c"}, []string{id, in})
	id, in = bob.Names("", "")
	assert.Equal(t, []string{"", ""}, []string{id, in})
	id, in = bob.Names("m", "c")
	session := "mcp-" + digest("bob", "c")
	assert.Equal(t, []string{"mcp-" + digest("bob", session, "m"), session}, []string{id, in})
	assert.NotEqual(t, digest("ab", "c"), digest("a", "bc"))
	assert.Len(t, digest(), 32)
}
