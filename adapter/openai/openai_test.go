package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/adapter/openai"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop/looptest"
)

// provider is the API of chat completions.
var provider = adaptertest.Provider{
	Name: "OPENAI", Base: "/v1", Path: "/chat/completions",
	Header: "Authorization", Key: "Bearer key",
	New: func(name, system string, tools []openai.Tool) adaptertest.Model {
		client := sdk.NewClient(option.WithMaxRetries(0))
		return &openai.Model{Client: client, Name: name, System: system, Tools: tools}
	},
	Read: read, Say: say, Stream: stream,
	Failure: `{"error": {"message": "internal", "type": "server_error"}}`,
	Broken:  "data: {\"error\": {\"message\": \"overloaded\"}}\n\n",
	Half:    "data: {\"id\":\"c\"\n\n",
	Done:    "data: [DONE]\n\n",
	Unusable: map[string]string{
		"a refusal": `{"choices": [{"message": {"refusal": "No."}}]}`,
	},
}

func TestOpenAI(t *testing.T) { provider.Test(t) }

func read(body io.Reader) (r adaptertest.Request, _ error) {
	var in struct {
		Model    string
		Messages []struct {
			Role, Content string
			Calls         []struct{ ID string } `json:"tool_calls"`
			Call          string                `json:"tool_call_id"`
		}
		MaxCompletionTokens int `json:"max_completion_tokens"`
		Temperature         *float64
		ResponseFormat      *struct{ Type string } `json:"response_format"`
		Stream              bool
	}
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		return r, err
	}
	r.Model, r.Streams, r.JSON = in.Model, in.Stream, in.ResponseFormat != nil
	r.MaxTokens, r.Temperature = in.MaxCompletionTokens, in.Temperature
	open := map[string]bool{} // calls without a result
	for _, m := range in.Messages {
		for _, call := range m.Calls {
			open[call.ID] = true
		}
		if m.Role == "tool" && !open[m.Call] {
			return r, errors.New("a result without a call")
		}
		delete(open, m.Call)
		if m.Content != "" {
			r.Lines = append(r.Lines, looptest.Line{Role: m.Role, Text: m.Content})
		}
	}
	if len(open) > 0 {
		return r, errors.New("a call without a result")
	}
	return r, nil
}

func stream(
	send adaptertest.Send, model string,
) (piece func(looptest.Piece), end func()) {
	chunk := func(data map[string]any) {
		data["id"], data["object"], data["model"] = "c1", "chat.completion.chunk", model
		send("", data)
	}
	choice := func(delta map[string]any, finish any) {
		chunk(map[string]any{"choices": []any{
			map[string]any{"index": 0, "delta": delta, "finish_reason": finish},
		}})
	}
	call := func(index int, fields map[string]any) {
		fields["index"] = index
		choice(map[string]any{"tool_calls": []any{fields}}, nil)
	}
	choice(map[string]any{"role": "assistant", "content": ""}, nil)
	finish, calls := "stop", 0
	return func(p looptest.Piece) {
			if p.Text != "" {
				choice(map[string]any{"content": p.Text}, nil)
			}
			for _, c := range p.Calls {
				half := len(c.Input) / 2
				call(calls, map[string]any{"id": c.ID, "type": "function",
					"function": map[string]any{"name": c.Tool, "arguments": c.Input[:half]}})
				call(calls, map[string]any{
					"function": map[string]any{"arguments": c.Input[half:]}})
				finish, calls = "tool_calls", calls+1
			}
		}, func() {
			choice(map[string]any{}, finish)
			chunk(map[string]any{"choices": []any{}, "usage": map[string]any{
				"prompt_tokens": 57, "completion_tokens": 6, "total_tokens": 63,
			}})
		}
}

func say(w io.Writer, got decision.LLMResponse, calls []looptest.Call) {
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
