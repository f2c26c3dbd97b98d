package openaicompat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm/openaicompat"
)

// endpointThatSays stands in for an endpoint, so that the examples run.
func endpointThatSays(status int, body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
}

// A local model answers what no heuristic does.
func Example() {
	endpoint := endpointThatSays(http.StatusOK, `{
		"model": "llama3.2:3b",
		"choices": [{"message": {"content": "Turn the oven off."}, "finish_reason": "stop"}],
		"usage": {"prompt_tokens": 57, "completion_tokens": 6}
	}`)
	defer endpoint.Close()
	model, err := openaicompat.New(openaicompat.Config{
		BaseURL: endpoint.URL + "/v1", // of Ollama: "http://localhost:11434/v1"
		Model:   "llama3.2",
	})
	if err != nil {
		panic(err)
	}
	strategy, err := decision.New(context.Background(), decision.Config{LLM: model})
	if err != nil {
		panic(err)
	}
	res, err := strategy.Decide(context.Background(), decision.Request{
		EventID: "e-1", Text: "The oven is on, and everybody has left.", Source: "kitchen",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Path, "of", res.LLM+":", res.Text)
	// Output: llm of llama3.2:3b: Turn the oven off.
}

// The key comes from the environment. It does not show where the configuration does.
func ExampleConfig() {
	_ = os.Setenv("OPENAI_API_KEY", "sk-1234567890")
	cfg := openaicompat.Config{
		BaseURL: "https://api.openai.com/v1",
		Model:   "gpt-4o-mini",
		APIKey:  openaicompat.APIKey(os.Getenv("OPENAI_API_KEY")),
	}
	_, err := openaicompat.New(cfg)
	fmt.Println(cfg.Model, cfg.APIKey, err)
	// Output: gpt-4o-mini [redacted] <nil>
}

// Azure may want an API version.
func ExampleConfig_azure() {
	_, err := openaicompat.New(openaicompat.Config{
		BaseURL: "https://example.openai.azure.com/openai/deployments/mini?api-version=2024-10-21",
		APIKey:  openaicompat.APIKey(os.Getenv("AZURE_OPENAI_API_KEY")),
	})
	fmt.Println(err)
	// Output: <nil>
}

// The text of an error may go into a log. The endpoint's own text is in another field, and may
// repeat the prompt.
func ExampleStatusError() {
	endpoint := endpointThatSays(http.StatusNotFound, `{"error": {"message": "The model 'gpt-5o' does not exist", "code": "model_not_found"}}`)
	defer endpoint.Close()
	client, err := openaicompat.New(openaicompat.Config{BaseURL: endpoint.URL + "/v1",
		Model: "gpt-5o"})
	if err != nil {
		panic(err)
	}
	_, err = client.Generate(context.Background(),
		decision.LLMRequest{Prompt: "How are you?", MaxTokens: 100})
	fmt.Println(err)
	if status := (*openaicompat.StatusError)(nil); errors.As(err, &status) {
		fmt.Println(status.Status, status.Code)
		fmt.Println(status.Excerpt)
	}
	// Output:
	// openaicompat: status 404 Not Found: model_not_found
	// 404 model_not_found
	// {"error": {"message": "The model 'gpt-5o' does not exist", "code": "model_not_found"}}
}

// An answer that was cut off at MaxTokens is marked.
func ExampleClient_Generate_cut() {
	endpoint := endpointThatSays(http.StatusOK, `{"choices": [{"message": {"content": "Turn the oven"}, "finish_reason": "length"}]}`)
	defer endpoint.Close()
	client, err := openaicompat.New(openaicompat.Config{BaseURL: endpoint.URL + "/v1"})
	if err != nil {
		panic(err)
	}
	got, err := client.Generate(context.Background(),
		decision.LLMRequest{Prompt: "What now?", MaxTokens: 3})
	fmt.Printf("%q, %v, %v\n", got.Text, got.Cut, err)
	// Output: "Turn the oven", true, <nil>
}
