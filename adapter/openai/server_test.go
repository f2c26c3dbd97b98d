package openai_test

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

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

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
	Messages []struct {
		Role, Content string
		Calls         []struct{ ID string } `json:"tool_calls"`
		Call          string                `json:"tool_call_id"`
	}
	Tools []struct {
		Type     string
		Function struct{ Name string }
	}
	MaxCompletionTokens int `json:"max_completion_tokens"`
	Temperature         *float64
	ResponseFormat      *struct{ Type string } `json:"response_format"`
	Stream              bool
}

// serve returns a client of a server that speaks as the API of chat completions is documented.
func serve(
	t *testing.T, handle func(w http.ResponseWriter, r *http.Request, in *request),
) sdk.Client {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in request
		err := json.NewDecoder(r.Body).Decode(&in)
		if err != nil || r.URL.Path != "/v1/chat/completions" ||
			r.Header.Get("Authorization") != "Bearer key" {
			http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		handle(w, r, &in)
	})
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the suite has models that panic
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "key")
	return sdk.NewClient(option.WithMaxRetries(0))
}

func fails(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"error": {"message": "internal", "type": "server_error"}}`))
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
		var lines looptest.Request
		open := map[string]bool{} // calls without a result
		for _, m := range in.Messages {
			for _, call := range m.Calls {
				open[call.ID] = true
			}
			if m.Role == "tool" && !open[m.Call] {
				fails(w, http.StatusBadRequest)
				return
			}
			delete(open, m.Call)
			if m.Content != "" {
				lines = append(lines, looptest.Line{Role: m.Role, Text: m.Content})
			}
		}
		if len(open) > 0 {
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
			say(w, decision.LLMResponse{Text: piece.Text, Model: in.Model}, piece.Calls)
			return
		}
		stream(w, in.Model, model.Stream(r.Context(), lines))
	}
}

// stream sends the pieces of a reply as chunks.
func stream(w http.ResponseWriter, name string, pieces iter.Seq2[looptest.Piece, error]) {
	send := func(chunk map[string]any) {
		chunk["id"], chunk["object"], chunk["model"] = "c1", "chat.completion.chunk", name
		text, _ := json.Marshal(chunk)
		_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
		_ = http.NewResponseController(w).Flush()
	}
	choice := func(delta map[string]any, finish any) {
		send(map[string]any{"choices": []any{
			map[string]any{"index": 0, "delta": delta, "finish_reason": finish},
		}})
	}
	begun, finish, calls := false, "stop", 0
	for piece, err := range pieces {
		empty := llm.FailureOf(err) == llm.Unusable // a reply without a text
		if err != nil && !begun && !empty {
			failsBy(w, err)
			return
		}
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			choice(map[string]any{"role": "assistant", "content": ""}, nil)
			begun = true
		}
		if err != nil && !empty {
			_, _ = fmt.Fprint(w, "data: {\"error\": {\"message\": \"overloaded\"}}\n\n")
			return
		}
		if piece.Text != "" {
			choice(map[string]any{"content": piece.Text}, nil)
		}
		for _, call := range piece.Calls {
			half := len(call.Input) / 2
			choice(map[string]any{"tool_calls": []any{map[string]any{"index": calls, "id": call.ID,
				"type":     "function",
				"function": map[string]any{"name": call.Tool, "arguments": call.Input[:half]}}}}, nil)
			choice(map[string]any{"tool_calls": []any{map[string]any{"index": calls,
				"function": map[string]any{"arguments": call.Input[half:]}}}}, nil)
			finish, calls = "tool_calls", calls+1
		}
	}
	choice(map[string]any{}, finish)
	send(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": 57,
		"completion_tokens": 6, "total_tokens": 63}})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// say sends a whole reply.
func say(w http.ResponseWriter, got decision.LLMResponse, calls []looptest.Call) {
	message := map[string]any{"role": "assistant", "content": got.Text}
	finish := "stop"
	var asked []any
	for _, call := range calls {
		finish = "tool_calls"
		asked = append(asked, map[string]any{"id": call.ID, "type": "function",
			"function": map[string]any{"name": call.Tool, "arguments": call.Input}})
	}
	if asked != nil {
		message["tool_calls"] = asked
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "c1", "object": "chat.completion", "model": got.Model,
		"choices": []any{map[string]any{"index": 0, "finish_reason": finish, "message": message}},
		"usage": map[string]any{"prompt_tokens": got.InputTokens,
			"completion_tokens": got.OutputTokens},
	})
}
