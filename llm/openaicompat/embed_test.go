package openaicompat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/llm/openaicompat"
)

var _ heed.Embedder = (&openaicompat.Client{}).Embed

// embedLengths answers with the length of each text and 1, in the reverse order.
func embedLengths(t *testing.T, asked *[]int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model    string
			Input    []string
			Encoding string `json:"encoding_format"`
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		assert.Equal(t, "/v1/embeddings", r.URL.Path)
		assert.Equal(t, "version=2", r.URL.RawQuery)
		assert.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
		assert.Equal(t, "small", body.Model)
		assert.Equal(t, "float", body.Encoding)
		*asked = append(*asked, len(body.Input))
		var data []string
		for i, text := range body.Input {
			data = append([]string{fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d,1]}`, i, len(text))}, data...)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","model":"small","usage":{"prompt_tokens":1,"total_tokens":1},"data":[`+strings.Join(data, ",")+`]}`)
	}
}

func TestEmbed(t *testing.T) {
	var asked []int
	e := serve(t, embedLengths(t, &asked))
	client := newClient(t, openaicompat.Config{BaseURL: e.URL + "/v1?version=2", Model: "small",
		APIKey: "secret"})
	vectors, err := client.Embed(ctx, nil)
	require.NoError(t, err)
	assert.Empty(t, vectors)
	assert.Empty(t, asked, "nothing is asked about nothing")

	texts := make([]string, 150)
	for i := range texts {
		texts[i] = strings.Repeat("x", i)
	}
	vectors, err = client.Embed(ctx, texts)
	require.NoError(t, err)
	require.Len(t, vectors, 150)
	for i, v := range vectors {
		assert.Equal(t, []float32{float32(i), 1}, v, "in the order of the texts")
	}
	assert.Equal(t, []int{64, 64, 22}, asked)

	asked = nil
	large := strings.Repeat("x", 600_000)
	_, err = client.Embed(ctx, []string{large, large, large})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1, 1}, asked, "a request is at most 1 MiB")
	_, err = client.Embed(ctx, []string{"x", large + large})
	var input *heed.InputError
	require.ErrorAs(t, err, &input)
	assert.Equal(t, "texts[1]", input.Field)
}

func TestEmbedFaults(t *testing.T) {
	data := func(items ...string) string { return `{"data":[` + strings.Join(items, ",") + `]}` }
	for body, fault := range map[string]string{
		data():                    "not one vector for each text",
		data(`{"embedding":[1]}`): "not one vector for each text",
		data(`{"embedding":[1]}`, `{"embedding":[1]}`, `{"embedding":[1]}`): "not one vector for each text",
		data(`{"index":0,"embedding":[1]}`, `{"index":0,"embedding":[1]}`):  "not one vector for each text",
		data(`{"index":0,"embedding":[1]}`, `{"index":2,"embedding":[1]}`):  "not one vector for each text",
		data(`{"index":0,"embedding":[1]}`, `{"index":-1,"embedding":[1]}`): "not one vector for each text",
		data(`{"embedding":[1]}`, `{"embedding":[1,2]}`):                    "bad vector",
		data(`{"embedding":[1]}`, `{"embedding":[null]}`):                   "bad vector",
		data(`{"embedding":[1]}`, `{"embedding":[0]}`):                      "bad vector",
		data(`{"embedding":[1]}`, `{"embedding":[]}`):                       "bad vector",
		data(`{"embedding":[1]}`, `{}`):                                     "bad vector",
		data(`{"embedding":[1]}`, `{"embedding":[1e39]}`):                   "bad vector",
		data(`{"embedding":[1]}`, `{"embedding":"AACAPw=="}`):               "bad vector",
		data(`{"embedding":[1]}`, `{"embedding":["1"]}`):                    "bad vector",
		data(`{"embedding":[1]}`, `{"embedding":[NaN]}`):                    "no JSON object",
		`{}`:     "not one vector for each text",
		`[]`:     "no JSON object",
		`<html>`: "no JSON object",
		`{"data":"` + strings.Repeat("x", 3000) + `"}`: "too large",
	} {
		e := serve(t, answer(200, body))
		client := newClient(t, reading(1000, openaicompat.Config{BaseURL: e.URL}))
		vectors, err := client.Embed(ctx, []string{"one", "two"})
		var bad *openaicompat.AnswerError
		if assert.ErrorAs(t, err, &bad, body) {
			assert.Equal(t, fault, bad.Fault, body)
		}
		assert.Nil(t, vectors)
		assert.Equal(t, int64(1), e.asked.Load(), "an unusable answer is final")
	}

	lengths := inTurn(answer(200, data(strings.Repeat(`{"embedding":[1]},`, 63)+`{"embedding":[1]}`)), answer(200, data(`{"embedding":[1,2]}`)))
	_, err := newClient(t, openaicompat.Config{BaseURL: serve(t, lengths).URL}).Embed(ctx,
		make([]string, 65))
	assert.ErrorAs(t, err, new(*openaicompat.AnswerError), "all requests must agree on the length")
}

func TestEmbedAsksAgain(t *testing.T) {
	e := serve(t, inTurn(answer(503, ""), answer(429, `{"error":{"code":"slow_down"}}`), answer(200, `{"data":[{"embedding":[0.5]}]}`)))
	vectors, err := newClient(t, openaicompat.Config{BaseURL: e.URL}).Embed(ctx, []string{"one"})
	require.NoError(t, err)
	assert.Equal(t, [][]float32{{0.5}}, vectors)

	var status *openaicompat.StatusError
	e = serve(t, answer(401, `{"error":{"code":"invalid_api_key","message":"secret"}}`))
	_, err = newClient(t, openaicompat.Config{BaseURL: e.URL, APIKey: "secret"}).Embed(ctx,
		[]string{"one"})
	require.ErrorAs(t, err, &status)
	assert.Equal(t, "invalid_api_key", status.Code)
	assert.NotContains(t, err.Error()+status.Excerpt, "secret")
	e = serve(t, answer(200, `{"error":{"code":"model_not_found"}}`))
	_, err = newClient(t, openaicompat.Config{BaseURL: e.URL}).Embed(ctx, []string{"one"})
	require.ErrorAs(t, err, &status)
	assert.Equal(t, "model_not_found", status.Code)

	over, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	e = serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client has gone
		<-r.Context().Done()
	})
	_, err = newClient(t, openaicompat.Config{BaseURL: e.URL}).Embed(over, []string{"one"})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}
