package openaicompat

import (
	"encoding/json"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
)

type request struct {
	Model               string    `json:"model,omitempty"`
	Messages            []message `json:"messages"`
	MaxTokens           int       `json:"max_tokens,omitempty"`
	MaxCompletionTokens int       `json:"max_completion_tokens,omitempty"`
	Temperature         *float64  `json:"temperature,omitempty"`
	ResponseFormat      any       `json:"response_format,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

var (
	jsonObject = json.RawMessage(`{"type":"json_object"}`)
	jsonSchema = json.RawMessage(`{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}}`)
)

// request returns the body to send, or an [*heed.InputError].
func (c *Config) request(r decision.LLMRequest) ([]byte, error) {
	if r.MaxTokens < 1 {
		return nil, &heed.InputError{Field: "MaxTokens", Reason: fmt.Sprintf("is %d, must be at least 1", r.MaxTokens)}
	}
	if t := r.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		return nil, &heed.InputError{Field: "Temperature", Reason: fmt.Sprintf("is %v, must be in [0, 2]", *t)}
	}
	body := request{Model: c.Model, Temperature: r.Temperature}
	if r.System != "" {
		body.Messages = append(body.Messages, message{"system", r.System})
	}
	body.Messages = append(body.Messages, message{"user", r.Prompt})
	if c.MaxCompletionTokens {
		body.MaxCompletionTokens = r.MaxTokens
	} else {
		body.MaxTokens = r.MaxTokens
	}
	if r.JSON && c.JSON == "json_object" {
		body.ResponseFormat = jsonObject
	} else if r.JSON && c.JSON == "json_schema" {
		body.ResponseFormat = jsonSchema
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err // it has nothing in it that could fail
	}
	if len(b) > c.MaxRequest {
		return nil, &heed.InputError{Field: "Prompt", Reason: fmt.Sprintf("makes a request of %d bytes, may be %d", len(b), c.MaxRequest)}
	}
	return b, nil
}
