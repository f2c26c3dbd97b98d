package openaicompat

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
)

// A completion is the part of an answer that matters here, or of an event of a streamed answer.
type completion struct {
	// Model is the model that answered, which may be another name than was asked for. Usage is what
	// it cost, and Error a failure that came with a status of success.
	Model   maybe[string]   `json:"model"`
	Choices maybe[[]choice] `json:"choices"`
	Usage   maybe[usage]    `json:"usage"`
	Error   maybe[failure]  `json:"error"`
}

// A choice is one of the answers that an endpoint may give. Only the first is read, because one is
// asked for.
type choice struct {
	Index   maybe[int]     `json:"index"`
	Message message        `json:"message"`
	Delta   maybe[message] `json:"delta"` // of a streamed answer
	// FinishReason is "stop" if the answer is whole, and "length" if MaxTokens cut it off.
	FinishReason maybe[string]  `json:"finish_reason"`
	Error        maybe[failure] `json:"error"`
}

// A message is the model's reply, or a piece of it.
type message struct {
	// Content is the answer's text. Refusal is the model's reason for giving no answer.
	Content maybe[string] `json:"content"`
	Refusal maybe[string] `json:"refusal"`
	// Endpoints name the model's thoughts in either way.
	ReasoningContent maybe[string] `json:"reasoning_content"`
	Reasoning        maybe[string] `json:"reasoning"`
}

// A usage is how many tokens the prompt and the answer have, by the endpoint's count.
type usage struct {
	Prompt     maybe[int] `json:"prompt_tokens"`
	Completion maybe[int] `json:"completion_tokens"`
}

// A maybe is a value, or no value for null and values of another type. Endpoints differ in the
// details around an answer, and the answer must not be lost over them.
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

// answer reads the answer of a response. An answer that comes at once is read as a stream of one
// piece, so both are judged by the same rules.
func (c *Config) answer(res *http.Response) (decision.LLMResponse, error) {
	var got completion
	body, err := c.object(res, c.tuning.MaxResponse, &got)
	if err != nil {
		return decision.LLMResponse{}, err
	}
	t := c.partial(func(string) {})
	err = t.begin(&got, body)
	switch {
	case err != nil:
	case len(got.Choices.value) == 0:
		err = &AnswerError{Fault: "no choice"}
	default:
		first := &got.Choices.value[0]
		err = t.add(first, &first.Message, body)
	}
	return t.answer(err)
}

// object reads the body of a response, which must be a JSON object of at most this number of bytes.
// One byte more than the limit is read, which shows that there is more.
func (c *Config) object(res *http.Response, most int, into any) ([]byte, error) {
	body, more, err := read(res.Body, most)
	switch {
	case err != nil:
		return nil, c.APIKey.connectionError(err)
	case more:
		return nil, &AnswerError{Fault: "too large"}
	case json.Unmarshal(body, into) != nil:
		return nil, c.noObject(res)
	}
	return body, nil
}

// noObject reports that a response is not a JSON object.
func (c *Config) noObject(res *http.Response) error {
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return &AnswerError{Fault: "no JSON object", ContentType: c.APIKey.token(mediaType)}
}

// finished reports whether an answer that ended can be used. An answer that was cut off behind its
// first words can be used, and the caller learns that it is cut.
func finished(finish string, refused bool, text string) error {
	switch {
	case refused, finish == "content_filter":
		return &AnswerError{Fault: Refused}
	case finish == "length" && strings.TrimSpace(text) == "":
		return &AnswerError{Fault: "cut off"}
	case finish == "error", strings.TrimSpace(text) == "":
		return &AnswerError{Fault: "no text"}
	}
	return nil
}

// An AnswerError reports that an endpoint's answer is not usable. Its text may go into a log.
type AnswerError struct {
	// Fault is [Refused], "cut off" (before the first word of the answer, for example because
	// thoughts took all of the request's MaxTokens), "no JSON object", "too large" (more than 1 MiB),
	// "no choice" (the list of choices is missing, empty or malformed) or "no text" (it is missing,
	// null, blank or of another type). Of embeddings it is "not one vector for each text" or "bad
	// vector".
	Fault string
	// ContentType is the media type of an answer that is no JSON object. "text/html" hints at a
	// proxy.
	ContentType string
}

// Refused means that the model, or a filter of the provider, refused to answer. A host may want to
// handle it.
const Refused = "refused"

// Unwrap returns [llm.Unusable] if the model gave the answer. It returns [llm.ServerError] if the
// endpoint answered in another form, for example with the page of a proxy.
func (e *AnswerError) Unwrap() error {
	switch e.Fault {
	case Refused, "cut off", "no text", "too large":
		return llm.Unusable
	default:
		return llm.ServerError
	}
}

func (e *AnswerError) Error() string {
	text := "unusable answer: " + e.Fault
	if e.ContentType != "" {
		text += " (" + e.ContentType + ")"
	}
	return text
}
