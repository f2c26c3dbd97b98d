package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// idle is how long a session over HTTP may be silent.
const idle = time.Hour

// withoutSessions is the first version of the protocol that has no sessions over HTTP.
const withoutSessions = "2026-07-28"

// Handler serves a server over streamable HTTP. Each request needs a bearer token, and who returns
// the person that it belongs to, or false if the token is unknown. Compare tokens in constant time.
// The sessions, plans and message ids of two people are kept apart. A session that is silent for an
// hour ends.
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
	sessions := sdk.NewStreamableHTTPHandler(this, &sdk.StreamableHTTPOptions{SessionTimeout: idle})
	requests := sdk.NewStreamableHTTPHandler(this,
		&sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= withoutSessions {
			requests.ServeHTTP(w, r)
		} else { // the version is still to be negotiated, or has sessions, which carry the forms
			sessions.ServeHTTP(w, r)
		}
	})
	guarded := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{
		AllowMissingExpiration: true})(served)
	return http.NewCrossOriginProtection().Handler(guarded)
}

// A speaker is who calls a tool.
type speaker struct {
	person  string // "" if the person is unknown
	session string // of the transport; "" without one
	token   bool   // a token identifies the person, so others may use this server as well
}

func (s *server) speaker(session *sdk.ServerSession, extra *sdk.RequestExtra) speaker {
	who := speaker{person: s.person}
	if session != nil {
		who.session = session.ID()
	}
	if extra != nil && extra.TokenInfo != nil {
		who.person, who.token = extra.TokenInfo.UserID, true
	}
	return who
}

// names returns what heed calls a message and a conversation of the client's. The people who speak
// to one server can't enter each other's conversations.
func (w speaker) names(message, conversation string) (id, session string) {
	session = cmp.Or(conversation, w.session)
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
