package openaicompat

import (
	"cmp"
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/prompt"
)

// A completion is the part of an endpoint's answer that is read.
type completion struct {
	Model   maybe[string]   `json:"model"`
	Choices maybe[[]choice] `json:"choices"`
	Usage   maybe[usage]    `json:"usage"`
	Error   maybe[failure]  `json:"error"`
}

type choice struct {
	Message struct {
		Content maybe[string] `json:"content"`
		Refusal maybe[string] `json:"refusal"`
	} `json:"message"`
	FinishReason maybe[string]  `json:"finish_reason"`
	Error        maybe[failure] `json:"error"`
}

type usage struct {
	Prompt     maybe[int] `json:"prompt_tokens"`
	Completion maybe[int] `json:"completion_tokens"`
}

// A maybe is a value, or nothing if the endpoint sent null or another type. Endpoints differ in what they send beside the
// answer, and the answer must not be lost over it.
type maybe[T any] struct {
	value T
	ok    bool
}

func (m *maybe[T]) UnmarshalJSON(b []byte) error {
	var p *T
	*m = maybe[T]{}
	if json.Unmarshal(b, &p) == nil && p != nil {
		*m = maybe[T]{*p, true}
	}
	return nil
}

// maxName is how much is believed to be the name of a model, in characters.
const maxName = 200

// answer reads the answer of a response.
func (c *Config) answer(res *http.Response) (decision.LLMResponse, error) {
	body, more, err := read(res.Body, c.MaxResponse)
	switch {
	case err != nil:
		return decision.LLMResponse{}, c.APIKey.connectionError(err)
	case more:
		return decision.LLMResponse{}, &AnswerError{Fault: "too large"}
	}
	var got completion
	if json.Unmarshal(body, &got) != nil {
		mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
		return decision.LLMResponse{}, &AnswerError{Fault: "no JSON object", ContentType: c.APIKey.token(mediaType)}
	}
	out := decision.LLMResponse{
		Model:        cmp.Or(prompt.Line(c.APIKey.redact(got.Model.value, false), maxName), c.Model),
		InputTokens:  max(got.Usage.value.Prompt.value, 0),
		OutputTokens: max(got.Usage.value.Completion.value, 0),
	}
	if got.Error.ok {
		return out, c.failureInside(got.Error.value, body)
	}
	if len(got.Choices.value) == 0 {
		return out, &AnswerError{Fault: "no choice"}
	}
	first := got.Choices.value[0]
	if first.Error.ok {
		return out, c.failureInside(first.Error.value, body)
	}
	text := first.Message.Content.value
	switch finish := first.FinishReason.value; {
	case first.Message.Refusal.value != "", finish == "content_filter":
		return out, &AnswerError{Fault: Refused}
	case finish == "length":
		out.Text = text
		return out, &AnswerError{Fault: CutOff}
	case finish == "error", strings.TrimSpace(text) == "":
		return out, &AnswerError{Fault: "no text"}
	}
	out.Text = text
	return out, nil
}
