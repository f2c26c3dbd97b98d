package openaicompat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/thoughts"
	"github.com/heedhq/heed/llm/openaicompat"
)

// FuzzAnswer reads anything as an endpoint's response. There is an answer only where the first
// choice has a text and nothing says that it is none; an error is of a documented type, short, in
// one line and without the key.
func FuzzAnswer(f *testing.F) {
	vectors, err := os.ReadFile("testdata/answers.json")
	require.NoError(f, err)
	var cases []struct {
		Body json.RawMessage
		Raw  string
	}
	require.NoError(f, json.Unmarshal(vectors, &cases))
	for i, c := range cases {
		f.Add([]int{400, 429, 503}[i%3], "application/json", "7", append([]byte(c.Raw), c.Body...))
		f.Add(200, "application/json", "", append([]byte(c.Raw), c.Body...))
	}
	f.Add(401, secret, "Sat, 21 Nov 2026 10:00:20 GMT", []byte(secret))
	f.Fuzz(func(t *testing.T, status int, contentType, retryAfter string, body []byte) {
		client := newClient(t, attempts(1, openaicompat.Config{
			BaseURL: "http://endpoint.example", APIKey: secret,
			HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: status, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
					Header: http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter},
						"Date": {"Sat, 21 Nov 2026 10:00:00 GMT"}},
				}, nil
			})},
		}))
		got, err := client.Generate(ctx, ask)
		assert.GreaterOrEqual(t, min(got.InputTokens, got.OutputTokens), 0)
		assert.LessOrEqual(t, utf8.RuneCountInString(got.Model), 200)
		assert.NotContains(t, got.Model, secret)
		if err == nil {
			var same struct {
				Choices []struct{ Message struct{ Content string } }
			}
			_ = json.Unmarshal(body, &same) // other fields may be of other types
			require.NotEmpty(t, same.Choices)
			said, _ := thoughts.Split(same.Choices[0].Message.Content)
			assert.Equal(t, said, got.Text)
			assert.NotEmpty(t, strings.TrimSpace(got.Text))
			return
		}
		var fault *openaicompat.AnswerError
		var failure *openaicompat.StatusError
		switch {
		case errors.As(err, &fault):
		case errors.As(err, &failure):
			assert.LessOrEqual(t, utf8.RuneCountInString(failure.Excerpt), 300)
			assert.NotContains(t, failure.Excerpt, "\n")
			assert.NotContains(t, failure.Excerpt, secret)
			assert.GreaterOrEqual(t, failure.RetryAfter.Seconds(), 0.0)
		default:
			t.Errorf("%T: %v", err, err)
		}
		assert.LessOrEqual(t, len(err.Error()), 200)
		assert.NotContains(t, err.Error(), "\n")
		assert.NotContains(t, err.Error(), secret)
	})
}
