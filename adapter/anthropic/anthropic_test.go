package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/heedhq/heed/adapter/anthropic"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop/looptest"
)

// provider is the API of messages.
var provider = adaptertest.Provider{
	Name: "ANTHROPIC", Path: "/v1/messages", Header: "X-Api-Key", Key: "key",
	New: func(name, system string, tools []anthropic.Tool) adaptertest.Model {
		client := sdk.NewClient(option.WithMaxRetries(0))
		return &anthropic.Model{Client: client, Name: name, System: system, Tools: tools}
	},
	Read: read, Say: say, Stream: stream,
	Failure: `{"type": "error", "error": {"type": "api_error", "message": "internal"}}`,
	Broken: "event: error\n" +
		"data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
	Half: "event: content_block_delta\ndata: {\"type\n\n",
	Unusable: map[string]string{
		"a long text": `{"content": [{"type": "text", "text": "` + strings.Repeat("x", 1<<20+1) +
			`"}], "stop_reason": "end_turn"}`,
		"a refusal": `{"content": [{"type": "text", "text": "I"}], "stop_reason": "refusal"}`,
	},
}

func TestAnthropic(t *testing.T) { provider.Test(t) }

func read(body io.Reader) (r adaptertest.Request, _ error) {
	var in struct {
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
		MaxTokens   int `json:"max_tokens"`
		Temperature *float64
		Stream      bool
	}
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		return r, err
	}
	r.Model, r.Streams = in.Model, in.Stream
	r.MaxTokens, r.Temperature = in.MaxTokens, in.Temperature
	for _, s := range in.System {
		if r.JSON = s.Text == "Answer with JSON alone."; !r.JSON {
			r.Lines = append(r.Lines, looptest.Line{Role: looptest.System, Text: s.Text})
		}
	}
	open := map[string]bool{} // calls without a result
	for _, m := range in.Messages {
		for _, c := range m.Content {
			switch c.Type {
			case "text":
				r.Lines = append(r.Lines, looptest.Line{Role: m.Role, Text: c.Text})
			case "tool_use":
				open[c.ID] = true
			case "tool_result":
				if !open[c.Use] || len(c.Content) != 1 {
					return r, errors.New("a result without a call")
				}
				delete(open, c.Use)
				r.Lines = append(r.Lines,
					looptest.Line{Role: looptest.ToolRole, Text: c.Content[0].Text})
			}
		}
	}
	if len(open) > 0 {
		return r, errors.New("a call without a result")
	}
	return r, nil
}

// stream sends each piece of text as a block.
func stream(
	send adaptertest.Send, model string,
) (piece func(looptest.Piece), end func()) {
	event := func(kind string, data map[string]any) {
		data["type"] = kind
		send(kind, data)
	}
	index := 0
	block := func(start, delta map[string]any) {
		event("content_block_start", map[string]any{"index": index, "content_block": start})
		event("content_block_delta", map[string]any{"index": index, "delta": delta})
		event("content_block_stop", map[string]any{"index": index})
		index++
	}
	event("message_start", map[string]any{"message": map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": model,
		"content": []any{}, "usage": map[string]any{"input_tokens": 57, "output_tokens": 1},
	}})
	event("ping", map[string]any{})
	stop := "end_turn"
	return func(p looptest.Piece) {
			if p.Thought != "" {
				block(map[string]any{"type": "thinking", "thinking": "", "signature": "s"},
					map[string]any{"type": "thinking_delta", "thinking": p.Thought})
			}
			if p.Text != "" {
				block(map[string]any{"type": "text", "text": ""},
					map[string]any{"type": "text_delta", "text": p.Text})
			}
			for _, call := range p.Calls {
				block(map[string]any{"type": "tool_use", "id": call.ID, "name": call.Tool,
					"input": map[string]any{}},
					map[string]any{"type": "input_json_delta", "partial_json": call.Input})
				stop = "tool_use"
			}
		}, func() {
			event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop},
				"usage": map[string]any{"output_tokens": 6}})
			event("message_stop", map[string]any{})
		}
}

func say(w io.Writer, got decision.LLMResponse, calls []looptest.Call) {
	content, stop := []any{}, "end_turn"
	if got.Thoughts != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": got.Thoughts,
			"signature": "s"})
	}
	if got.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": got.Text})
	}
	for _, call := range calls {
		content = append(content, map[string]any{"type": "tool_use", "id": call.ID,
			"name": call.Tool, "input": json.RawMessage(call.Input)})
		stop = "tool_use"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": got.Model,
		"stop_reason": stop, "content": content,
		"usage": map[string]any{"input_tokens": got.InputTokens, "output_tokens": got.OutputTokens},
	})
}
