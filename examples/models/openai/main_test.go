package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
)

// TestModel runs heed's suite through the SDK, against a server that speaks as the API does.
func TestModel(t *testing.T) {
	llmtest.Run(t, func(provider decision.LLM) (decision.LLM, error) {
		server := httptest.NewServer(chat(provider))
		t.Cleanup(server.Close)
		return modelOf(openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("key"),
			option.WithMaxRetries(0)), "m"), nil
	})
}

func chat(model decision.LLM) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages            []struct{ Role, Content string }
			MaxCompletionTokens int `json:"max_completion_tokens"`
			Temperature         *float64
			ResponseFormat      *struct{ Type string } `json:"response_format"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil ||
			r.URL.Path != "/v1/chat/completions" {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		ask := decision.LLMRequest{MaxTokens: body.MaxCompletionTokens, Temperature: body.Temperature,
			JSON: body.ResponseFormat != nil}
		for _, m := range body.Messages {
			if m.Role == "system" {
				ask.System = m.Content
			} else {
				ask.Prompt = m.Content
			}
		}
		got, err := model.Generate(r.Context(), ask)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			http.Error(w, `{"error": {"message": "internal", "type": "server_error"}}`, http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"object": "chat.completion", "model": got.Model,
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop",
				"message": map[string]any{"role": "assistant", "content": got.Text}}},
			"usage": map[string]any{"prompt_tokens": got.InputTokens,
				"completion_tokens": got.OutputTokens},
		})
	}
}
