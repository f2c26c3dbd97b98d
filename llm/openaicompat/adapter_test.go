package openaicompat_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/llm/openaicompat"
)

func TestAdapter(t *testing.T) {
	for name, cfg := range map[string]openaicompat.Config{
		"as it is": {},
		"all is set": {Model: "m", APIKey: "secret", JSON: "json_schema",
			MaxCompletionTokens: true},
		"asks only once": attempts(1, openaicompat.Config{}),
		"a client of its": {HTTPClient: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			llmtest.Run(t, func(provider decision.LLM) (decision.LLM, error) {
				cfg := cfg
				cfg.BaseURL = serve(t, chat(provider)).URL + "/v1"
				return newClient(t, cfg), nil
			})
		})
	}
}

// chat is a chat-completions endpoint before a model.
func chat(model decision.LLM) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages            []struct{ Role, Content string }
			MaxTokens           int `json:"max_tokens"`
			MaxCompletionTokens int `json:"max_completion_tokens"`
			Temperature         *float64
			ResponseFormat      *struct{ Type string } `json:"response_format"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil ||
			r.URL.Path != "/v1/chat/completions" {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		req := decision.LLMRequest{
			MaxTokens: body.MaxTokens + body.MaxCompletionTokens, Temperature: body.Temperature,
			JSON: body.ResponseFormat != nil,
		}
		for _, m := range body.Messages {
			switch m.Role {
			case "system":
				req.System = m.Content
			case "user":
				req.Prompt = m.Content
			}
		}
		got, err := model.Generate(r.Context(), req)
		if err != nil {
			http.Error(w, `{"error": {"message": "internal", "type": "server_error", "code": null}}`, http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"object": "chat.completion", "model": got.Model,
			"choices": []any{map[string]any{
				"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant",
					"content": got.Text},
			}},
			"usage": map[string]any{"prompt_tokens": got.InputTokens,
				"completion_tokens": got.OutputTokens},
		})
	}
}
