package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/heedhq/heed/internal/view"
)

// pieces sends an answer while it arrives, in server-sent events: "piece", and at the end "answer"
// or "problem". It is used by one goroutine at a time. nil drops them.
type pieces struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	ctx   context.Context //nolint:containedctx // of the request that it answers
	begun bool
}

// A piece is a part of an answer.
type piece struct {
	Text string `json:"text"`
	// the pieces before are no part of the answer, which begins with this one
	Restart bool `json:"restart"`
}

// piece sends a part of the answer. A client that does not read is cut off when the time of its
// request ends.
func (p *pieces) piece(_ context.Context, text string, restart bool) {
	data, _ := json.Marshal(piece{text, restart}) // a text and a word
	p.send("piece", data)
}

// end sends the whole answer.
func (p *pieces) end(answer []byte) { p.send("answer", answer) }

// problem sends a problem, if the answer began. Else the caller does.
func (p *pieces) problem(why *view.Fault) bool {
	if p == nil || !p.begun {
		return false
	}
	data, _ := json.Marshal(troubleOf(why)) // texts and a number
	p.send("problem", data)
	return true
}

func (p *pieces) send(event string, data []byte) {
	if !p.begun {
		p.begun = true
		if deadline, ok := p.ctx.Deadline(); ok {
			_ = p.rc.SetWriteDeadline(deadline) // a writer without deadlines waits for its client
		}
		p.w.Header().Set("Content-Type", "text/event-stream")
		p.w.Header().Set("X-Accel-Buffering", "no") // has nginx pass on each piece
		p.w.WriteHeader(http.StatusOK)
	}
	_, _ = p.w.Write([]byte("event: " + event + "\ndata: "))
	_, _ = p.w.Write(bytes.TrimSpace(data)) // JSON has no line feed
	_, _ = p.w.Write([]byte("\n\n"))
	_ = p.rc.Flush()
}
