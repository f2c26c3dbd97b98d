package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A line is where a command reaches PostgreSQL. Of all statements, the server can't run one.
type line struct {
	server        string
	passed, fails atomic.Int64 // statements; the one that fails, or 0
}

// newLine returns a line to a database, and the DSN at its near end.
func newLine(t *testing.T, dsn string) (*line, string) {
	address, err := url.Parse(dsn)
	require.NoError(t, err)
	l := &line{server: address.Host}
	door, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, door.Close()) })
	go func() {
		for {
			client, err := door.Accept()
			if err != nil {
				return
			}
			go l.pass(client)
		}
	}()
	address.Host = door.Addr().String()
	return l, address.String()
}

func (l *line) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(client, server) }()
	for kind := 0; ; kind = 1 { // only the first message has no kind
		head := make([]byte, kind+4)
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		rest := make([]byte, binary.BigEndian.Uint32(head[kind:])-4)
		if _, err := io.ReadFull(client, rest); err != nil {
			return
		}
		of := string(head[:kind])
		if strings.ContainsAny(of, "EQ") && l.passed.Add(1) == l.fails.Load() {
			rest = []byte("nothing\x00\x00\x00\x00\x00")[:map[string]int{"E": 12, "Q": 8}[of]]
			binary.BigEndian.PutUint32(head[kind:], uint32(4+len(rest)))
		}
		if _, err := server.Write(append(head, rest...)); err != nil {
			return
		}
	}
}

// within runs a command in this process.
func within(args []string) (string, error) {
	var c commands
	parser, err := newParser(&c, os.Stdout, os.Stderr)
	if err != nil {
		return "", err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = parsed.Run(&session{&c, ctx, parsed.Selected().Name, &printer{w: &out}, nil,
		false})
	return out.String(), err
}

// Whichever statement fails, a command shows all of what it shows, or fails. It never shows a part
// as if that were all.
func TestAStatementThatFails(t *testing.T) {
	t.Parallel()
	dsn := cluster.database(t, "heed_failing")
	require.Zero(t, call{args: []string{"--db", dsn, "store", "import"},
		input: call{args: []string{"--db", sqliteFile(t), "store", "export"}}.run(t).out}.run(t).code)
	l, at := newLine(t, dsn)
	opening := int64(0) // statements of every command
	for _, command := range []string{
		"patterns tests-first", "overview", "doctor", "strategy --agent strategy show correction",
		"strategy --agent strategy learning prefer-tabs", "rules list --agent coder",
		"strategy --agent strategy history prefer-tabs", "confidence greet-by-name",
		"rules show 7d0c2b13-rule", "store audit",
	} {
		args := append([]string{"--db", at, "--now", asOf, "--json"}, strings.Fields(command)...)
		show := func(fails int64) (string, error) {
			l.passed.Store(0)
			l.fails.Store(fails)
			return within(args)
		}
		whole, err := show(0)
		require.NoError(t, err, command)
		all, failing := l.passed.Load(), 0
		for n := opening + 1; n <= all; n++ {
			out, err := show(n)
			if err != nil {
				failing++
			} else {
				require.Equal(t, whole, out, "%s without statement %d", command, n)
			}
		}
		require.Greater(t, failing, int(all-opening)/2, command)
		opening = 5
	}
}
