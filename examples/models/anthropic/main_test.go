package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
)

// serve returns a model of the SDK's against a server.
func serve(t *testing.T, handler http.HandlerFunc) decision.LLM {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return modelOf(anthropic.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey("key"),
		option.WithMaxRetries(0)), "m")
}

// TestModel runs heed's suite through the SDK, against a server that speaks as the API does.
func TestModel(t *testing.T) {
	llmtest.Run(t, func(provider decision.LLM) (decision.LLM,
		error) {
		return serve(t, messages(provider)), nil
	})
}

func messages(model decision.LLM) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			System   []struct{ Text string }
			Messages []struct {
				Content []struct{ Text string }
			}
			MaxTokens   int `json:"max_tokens"`
			Temperature *float64
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/messages" ||
			len(body.Messages) != 1 {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		ask := decision.LLMRequest{MaxTokens: body.MaxTokens, Temperature: body.Temperature}
		for _, s := range body.System {
			if s.Text == inJSON {
				ask.JSON = true
			} else {
				ask.System += s.Text
			}
		}
		for _, c := range body.Messages[0].Content {
			ask.Prompt += c.Text
		}
		got, err := model.Generate(r.Context(), ask)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			http.Error(w, `{"type": "error", "error": {"type": "api_error", "message": "internal"}}`, http.StatusInternalServerError)
			return
		}
		say(w, got, "end_turn")
	}
}

func say(w http.ResponseWriter, got decision.LLMResponse, reason string) {
	content := []any{map[string]any{"type": "text", "text": got.Text}}
	if got.Thoughts != "" {
		content = append([]any{map[string]any{"type": "thinking", "thinking": got.Thoughts,
			"signature": "s"}}, content...)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": got.Model,
		"stop_reason": reason, "content": content,
		"usage": map[string]any{"input_tokens": got.InputTokens, "output_tokens": got.OutputTokens},
	})
}

// TestThoughts are told apart from the answer, and a refusal is none.
func TestThoughts(t *testing.T) {
	reason := "end_turn"
	model := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		say(w, decision.LLMResponse{Text: "Rotate its logs.", Thoughts: "Which disk?", Model: "m"},
			reason)
	})
	got, err := model.Generate(context.Background(), decision.LLMRequest{Prompt: "p", MaxTokens: 10})
	if err != nil || got.Text != "Rotate its logs." || got.Thoughts != "Which disk?" {
		t.Errorf("got %+v, %v", got, err)
	}
	reason = "refusal"
	if _, err = model.Generate(context.Background(),
		decision.LLMRequest{Prompt: "p", MaxTokens: 10}); err == nil {
		t.Error("a refusal is taken for an answer")
	}
}
