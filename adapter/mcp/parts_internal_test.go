package mcp

import (
	"errors"
	"runtime/debug"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

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

// The version is the one of this module, whether it is the program or a part of it.
func TestTheVersionOfAProgram(t *testing.T) {
	other := &debug.Module{Path: "example.com/x", Version: "v9.0.0"}
	heed := debug.Module{Path: module, Version: "v1.2.3"}
	assert.Equal(t, "devel", version(nil, false))
	assert.Equal(t, "devel", version(&debug.BuildInfo{Deps: []*debug.Module{other}}, true))
	assert.Equal(t, "devel", version(&debug.BuildInfo{Main: debug.Module{Path: module}}, true))
	assert.Equal(t, "v1.2.3", version(&debug.BuildInfo{Deps: []*debug.Module{other, &heed}}, true))
	assert.Equal(t, "v1.2.3", version(&debug.BuildInfo{
		Main: heed, Deps: []*debug.Module{other},
	}, true))
}

// A failure inside keeps its words, and a fault of the caller's names the field.
func TestWhatAModelIsTold(t *testing.T) {
	down := errors.New("down")
	assert.Equal(t, down, told(down, nil))
}
