package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/internal/view"
)

// Handler serves a server over streamable HTTP. Each request needs a bearer token, and who returns
// the person that it belongs to, or false if the token is unknown. Compare tokens in constant time.
// The conversations, plans and message ids of two people are kept apart. A client of an older
// version of the protocol gets no session, because no tool needs one.
//
// Requests that reach a local address under another host's name are refused, and so are those that
// a browser sends from another site.
func Handler(server *sdk.Server, who func(token string) (person string, ok bool)) http.Handler {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		person, ok := who(token)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: person}, nil
	}
	this := func(*http.Request) *sdk.Server { return server }
	served := sdk.NewStreamableHTTPHandler(this,
		&sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	guarded := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{
		AllowMissingExpiration: true})(served)
	return http.NewCrossOriginProtection().Handler(guarded)
}

// caller returns who calls a tool. If a token identifies the person, others may use this server as
// well, and the people who speak to it can't enter each other's conversations.
func (s *server) caller(extra *sdk.RequestExtra) *view.Caller {
	c := &view.Caller{Person: s.person, Model: true, View: s.view()}
	token := extra != nil && extra.TokenInfo != nil
	if token {
		c.Person = extra.TokenInfo.UserID
	}
	c.Names = func(message, session string) (id, in string) {
		if token && session != "" {
			session = "mcp-" + digest(c.Person, session)
		}
		if message != "" {
			id = "mcp-" + digest(c.Person, session, message)
		}
		return id, session
	}
	return c
}

// digest names a list of texts.
func digest(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text) //nolint:errcheck // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
