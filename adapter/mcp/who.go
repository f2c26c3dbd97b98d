package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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

// A speaker is who calls a tool.
type speaker struct {
	person string // "" if the person is unknown
	token  bool   // a token identifies the person, so others may use this server as well
}

func (s *server) speaker(extra *sdk.RequestExtra) speaker {
	if extra != nil && extra.TokenInfo != nil {
		return speaker{extra.TokenInfo.UserID, true}
	}
	return speaker{s.person, false}
}

// names returns what heed calls a message and a conversation of the client's. The people who speak
// to one server can't enter each other's conversations.
func (w speaker) names(message, session string) (id, in string) {
	if w.token && session != "" {
		session = "mcp-" + digest(w.person, session)
	}
	if message != "" {
		id = "mcp-" + digest(w.person, session, message)
	}
	return id, session
}

// digest names a list of texts.
func digest(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text) //nolint:errcheck // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
