package openaicompat

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
)

// The bounds of a request for embeddings.
const (
	// maxTexts is how many texts a request has at most. A longer list is sent in several requests.
	maxTexts   = 64
	maxRequest = 1 << 20 // bytes
)

// Embed returns the vectors of texts, in their order, from the endpoint's "/embeddings".
// Config.Model is the model for embeddings. The method is a [heed.Embedder]: client.Embed. Texts
// are sent at most 64 at a time. Config.Timeout holds for each of these requests.
//
// The errors are the same as those [Client.Generate] returns. A text that makes a request of more
// than 1 MiB is a [*heed.InputError]. An [*AnswerError] reports that the vectors are not one for
// each text, not all of one length, or not of numbers, not all of them 0, that a float32 can hold.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		body, n, err := c.config().embedding(texts, len(vectors))
		if err != nil {
			return nil, err
		}
		var got [][]float32
		_, err = c.repeat(ctx, asking{c.embeddings, body, "application/json",
			func(res *http.Response) (none decision.LLMResponse, err error) {
				got, err = c.config().vectors(res, n)
				return none, err
			}})
		if err != nil {
			return nil, err
		}
		if len(vectors) > 0 && len(got[0]) != len(vectors[0]) {
			return nil, fmt.Errorf("openaicompat: %w", errVectors)
		}
		vectors, texts = append(vectors, got...), texts[n:]
	}
	return vectors, nil
}

// embedding returns the body of a request for the first of the texts, and how many they are. before
// is how many there were before them. If the request is too long, it is tried with half of the
// texts.
func (c *Config) embedding(texts []string, before int) (body []byte, n int, err error) {
	texts = texts[:min(len(texts), maxTexts)]
	for ; ; texts = texts[:(len(texts)+1)/2] {
		body, err = json.Marshal(struct {
			Model    string   `json:"model,omitempty"`
			Input    []string `json:"input"`
			Encoding string   `json:"encoding_format"`
		}{c.Model, texts, "float"})
		switch {
		case err != nil || len(body) <= maxRequest:
			return body, len(texts), err
		case len(texts) == 1:
			return nil, 0, &heed.InputError{Field: fmt.Sprintf("texts[%d]", before),
				Reason: fmt.Sprintf("makes a request of %d bytes, may be 1 MiB", len(body))}
		}
	}
}

// An embedded is the part of an answer with vectors that matters here.
type embedded struct {
	Data  []place        `json:"data"`
	Error maybe[failure] `json:"error"`
}

// A place is one vector with the index of its text. Endpoints may answer in another order, and some
// leave the index out.
type place struct {
	Index  maybe[int]        `json:"index"`
	Vector maybe[[]*float64] `json:"embedding"`
}

var (
	// errCount and errVectors do not repeat what the endpoint sent, because it may be long.
	errCount   = &AnswerError{Fault: "not one vector for each text"}
	errVectors = &AnswerError{Fault: "bad vector"}
)

// vectors reads the vectors of n texts. The limit on the body is for each vector, because a vector
// in JSON has tens of kilobytes.
func (c *Config) vectors(res *http.Response, n int) ([][]float32, error) {
	var got embedded
	body, err := c.object(res, c.tuning.MaxResponse*n, &got)
	switch {
	case err != nil:
		return nil, err
	case got.Error.ok:
		return nil, c.failureInside(got.Error.value, body)
	case len(got.Data) != n:
		return nil, errCount
	}
	vectors := make([][]float32, n)
	for i, p := range got.Data {
		at := i
		if p.Index.ok {
			at = p.Index.value
		}
		if at < 0 || at >= n || vectors[at] != nil {
			return nil, errCount
		}
		vector, ok := narrow(p.Vector.value)
		if !ok {
			return nil, errVectors
		}
		vectors[at] = vector
	}
	for _, v := range vectors {
		if len(v) != len(vectors[0]) {
			return nil, errVectors
		}
	}
	return vectors, nil
}

// narrow returns a vector in single precision, which is what similarities are computed in. It
// returns false where a number is missing or too great, or all are 0.
func narrow(numbers []*float64) ([]float32, bool) {
	vector, some := make([]float32, len(numbers)), false
	for i, x := range numbers {
		if x == nil || math.IsInf(float64(float32(*x)), 0) {
			return nil, false
		}
		vector[i] = float32(*x)
		some = some || vector[i] != 0
	}
	return vector, some
}
