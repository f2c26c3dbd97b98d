package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop/looptest"
)

// A script is a model behind the server.
type script interface {
	Generate(ctx context.Context, r looptest.Request) (looptest.Piece, error)
	Stream(ctx context.Context, r looptest.Request) iter.Seq2[looptest.Piece, error]
}

// A request is the part of a request that the server reads.
type request struct {
	Model    string
	System   []struct{ Text string }
	Messages []struct {
		Role    string
		Content []struct {
			Type, Text, ID string
			Use            string `json:"tool_use_id"`
			Content        []struct{ Text string }
		}
	}
	Tools       []struct{ Name string }
	MaxTokens   int `json:"max_tokens"`
	Temperature *float64
	Stream      bool
}

// serve returns a client of a server that speaks as the API of messages is documented.
func serve(
	t *testing.T, handle func(w http.ResponseWriter, r *http.Request, in *request),
) sdk.Client {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in request
		err := json.NewDecoder(r.Body).Decode(&in)
		if err != nil || r.URL.Path != "/v1/messages" ||
			r.Header.Get("X-Api-Key") != "key" {
			http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		handle(w, r, &in)
	})
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the suite has models that panic
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("ANTHROPIC_BASE_URL", server.URL)
	t.Setenv("ANTHROPIC_API_KEY", "key")
	return sdk.NewClient(option.WithMaxRetries(0))
}

func fails(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"type": "error", "error": {"type": "api_error", "message": "internal"}}`))
}

// failsBy fails in the way of an error.
func failsBy(w http.ResponseWriter, err error) {
	status, ok := map[llm.Failure]int{
		llm.Unreachable: http.StatusForbidden, llm.RateLimited: http.StatusTooManyRequests,
		llm.TimedOut: http.StatusRequestTimeout, llm.Unusable: http.StatusOK,
	}[llm.FailureOf(err)]
	switch {
	case !ok:
		fails(w, http.StatusInternalServerError)
	case status == http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		say(w, decision.LLMResponse{}, nil)
	default:
		fails(w, status)
	}
}

// plays has scripts answer by the name of the model.
func plays(models func(name string) script) func(http.ResponseWriter, *http.Request, *request) {
	return func(w http.ResponseWriter, r *http.Request, in *request) {
		lines, ok := linesOf(in)
		if !ok {
			fails(w, http.StatusBadRequest)
			return
		}
		model := models(in.Model)
		if !in.Stream {
			piece, err := model.Generate(r.Context(), lines)
			if err != nil {
				failsBy(w, err)
				return
			}
			say(w, decision.LLMResponse{
				Text: piece.Text, Thoughts: piece.Thought, Model: in.Model,
			}, piece.Calls)
			return
		}
		stream(w, in.Model, model.Stream(r.Context(), lines))
	}
}

// linesOf returns the messages, or false if a call has no result, or a result no call.
func linesOf(in *request) (lines looptest.Request, ok bool) {
	for _, s := range in.System {
		lines = append(lines, looptest.Line{Role: looptest.System, Text: s.Text})
	}
	open := map[string]bool{} // calls without a result
	for _, m := range in.Messages {
		for _, c := range m.Content {
			switch c.Type {
			case "text":
				lines = append(lines, looptest.Line{Role: m.Role, Text: c.Text})
			case "tool_use":
				open[c.ID] = true
			case "tool_result":
				if !open[c.Use] || len(c.Content) != 1 {
					return nil, false
				}
				delete(open, c.Use)
				lines = append(lines, looptest.Line{Role: looptest.ToolRole, Text: c.Content[0].Text})
			}
		}
	}
	return lines, len(open) == 0
}

// stream sends the pieces of a reply as events, each piece of text as a block.
func stream(w http.ResponseWriter, name string, pieces iter.Seq2[looptest.Piece, error]) {
	send := func(kind string, data map[string]any) {
		data["type"] = kind
		text, _ := json.Marshal(data)
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, text)
		_ = http.NewResponseController(w).Flush()
	}
	index := 0
	block := func(start, delta map[string]any) {
		send("content_block_start", map[string]any{"index": index, "content_block": start})
		send("content_block_delta", map[string]any{"index": index, "delta": delta})
		send("content_block_stop", map[string]any{"index": index})
		index++
	}
	begun, stop := false, "end_turn"
	for piece, err := range pieces {
		empty := llm.FailureOf(err) == llm.Unusable // a reply without a text
		if err != nil && !begun && !empty {
			failsBy(w, err)
			return
		}
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			send("message_start", map[string]any{"message": map[string]any{
				"id": "msg_1", "type": "message", "role": "assistant", "model": name,
				"content": []any{}, "usage": map[string]any{"input_tokens": 57, "output_tokens": 1},
			}})
			send("ping", map[string]any{})
			begun = true
		}
		if err != nil && !empty {
			send("error", map[string]any{"error": map[string]any{"type": "overloaded_error",
				"message": "overloaded"}})
			return
		}
		if piece.Thought != "" {
			block(map[string]any{"type": "thinking", "thinking": "", "signature": "s"},
				map[string]any{"type": "thinking_delta", "thinking": piece.Thought})
		}
		if piece.Text != "" {
			block(map[string]any{"type": "text", "text": ""},
				map[string]any{"type": "text_delta", "text": piece.Text})
		}
		for _, call := range piece.Calls {
			block(map[string]any{"type": "tool_use", "id": call.ID, "name": call.Tool,
				"input": map[string]any{}},
				map[string]any{"type": "input_json_delta", "partial_json": call.Input})
			stop = "tool_use"
		}
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop},
		"usage": map[string]any{"output_tokens": 6}})
	send("message_stop", map[string]any{})
}

// say sends a whole reply.
func say(w http.ResponseWriter, got decision.LLMResponse, calls []looptest.Call) {
	content, stop := []any{}, "end_turn"
	if got.Thoughts != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": got.Thoughts,
			"signature": "s"})
	}
	if got.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": got.Text})
	}
	for _, call := range calls {
		content = append(content, map[string]any{"type": "tool_use", "id": call.ID, "name": call.Tool,
			"input": json.RawMessage(call.Input)})
		stop = "tool_use"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": got.Model,
		"stop_reason": stop, "content": content,
		"usage": map[string]any{"input_tokens": got.InputTokens, "output_tokens": got.OutputTokens},
	})
}
