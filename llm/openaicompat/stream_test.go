package openaicompat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/internal/thoughts"
	"github.com/heedhq/heed/llm/openaicompat"
	"github.com/heedhq/heed/loop"
)

var _ loop.Streamer = (*openaicompat.Client)(nil)

// piece is an event with a piece of a text.
func piece(text string) string {
	b, _ := json.Marshal(text)
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", b)
}

const (
	stopped = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	done    = "data: [DONE]\n\n"
)

// streamed returns a client of an endpoint whose responses are these, in turn, and the number of
// requests.
func streamed(t testing.TB, bodies ...io.Reader) (*openaicompat.Client, *int) {
	asked := new(int)
	return newClient(t, reading(4096, openaicompat.Config{
		BaseURL: "http://endpoint.example", Model: "m", APIKey: secret,
		HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			body := bodies[min(*asked, len(bodies)-1)]
			*asked++
			return &http.Response{StatusCode: 200, Body: io.NopCloser(body), Request: r,
				Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}}, nil
		})},
	})), asked
}

func TestStream(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for name, tt := range map[string]struct {
		body   string
		pieces []string
		want   decision.LLMResponse
		err    string
	}{
		"OpenAI": {
			body: "data: {\"model\":\"gpt\",\"choices\":[{\"index\":0,\"delta\":" +
				"{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\n" +
				piece("Turn it") + piece(" off.") + stopped +
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n" +
				done,
			pieces: []string{"Turn it", " off."}, want: decision.LLMResponse{Text: "Turn it off.",
				Model: "gpt", InputTokens: 7, OutputTokens: 3},
		},
		"thoughts apart": {
			body: "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm \"}}]}\n\ndata: " +
				"{\"choices\":[{\"delta\":{\"reasoning\":\"so\"}}]}\n\n" +
				piece("Yes.") + stopped + done,
			pieces: []string{"Yes."}, want: decision.LLMResponse{Text: "Yes.", Thoughts: "hm so",
				Model: "m"},
		},
		"thoughts in tags": {
			body:   piece("<think>hm") + piece("</think>Yes.") + stopped,
			pieces: []string{"<think>hm", "</think>Yes."},
			want:   decision.LLMResponse{Text: "Yes.", Thoughts: "hm", Model: "m"},
		},
		"comments, other fields, returns and a mark": {
			body: "\ufeff: OPENROUTER PROCESSING\r\n\r\nevent: message\rid: 1\r" + strings.ReplaceAll(
				piece("Yes."), "\n", "\r\n") + "retry: 3\n\n" + done,
			pieces: []string{"Yes."}, want: decision.LLMResponse{Text: "Yes.", Model: "m"},
		},
		"data on two lines": {
			body:   "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"Yes.\"}}]}\n\n" + done,
			pieces: []string{"Yes."}, want: decision.LLMResponse{Text: "Yes.", Model: "m"}},
		"no space, no last newline": {body: strings.Replace(piece("Yes."), "data: ", "data:",
			1) + "data:[DONE]", pieces: []string{"Yes."},
			want: decision.LLMResponse{Text: "Yes.", Model: "m"}},
		"no end but a reason": {body: piece("Yes.") + stopped, pieces: []string{"Yes."},
			want: decision.LLMResponse{Text: "Yes.", Model: "m"}},
		"other choices": {body: strings.Replace(piece("No."), `"index":0`, `"index":1`, 1) + piece("Yes.") + done, pieces: []string{"Yes."}, want: decision.LLMResponse{Text: "Yes.", Model: "m"}},
		"what comes after the end": {body: piece("Yes.") + done + piece("No."),
			pieces: []string{"Yes."}, want: decision.LLMResponse{Text: "Yes.", Model: "m"}},
		"cut off": {
			body:   piece("Turn") + strings.Replace(stopped, "stop", "length", 1) + done,
			pieces: []string{"Turn"},
			want:   decision.LLMResponse{Text: "Turn", Model: "m", Cut: true},
		},
		"cut off in its thoughts": {body: piece("<think>Hm") + strings.Replace(stopped, "stop",
			"length", 1), pieces: []string{"<think>Hm"},
			want: decision.LLMResponse{Model: "m", Thoughts: "Hm"}, err: "unusable answer: cut off"},
		"refused by the model": {
			body: "data: {\"choices\":[{\"delta\":{\"refusal\":\"No.\"}}]}\n\n" + stopped,
			want: decision.LLMResponse{Model: "m"}, err: "unusable answer: refused"},
		"refused by a filter": {body: piece("Turn") + strings.Replace(stopped, "stop",
			"content_filter", 1), pieces: []string{"Turn"}, want: decision.LLMResponse{Model: "m"},
			err: "unusable answer: refused"},
		"nothing said": {body: stopped + done, want: decision.LLMResponse{Model: "m"},
			err: "unusable answer: no text"},
		"thoughts alone": {body: piece("<think>hm</think>") + done,
			pieces: []string{"<think>hm</think>"}, want: decision.LLMResponse{Model: "m", Thoughts: "hm"},
			err: "unusable answer: no text"},
		"no events": {body: "<html>", want: decision.LLMResponse{Model: "m"},
			err: "unusable answer: no JSON object (text/event-stream)"},
		"not JSON": {body: piece("Turn") + "data: it\n\n", pieces: []string{"Turn"},
			want: decision.LLMResponse{Model: "m"},
			err:  "unusable answer: no JSON object (text/event-stream)"},
		"fails in the middle": {body: piece("Turn") +
			"data: {\"error\":{\"code\":429,\"message\":\"" + secret + "\"}}\n\n" + piece(" it"),
			pieces: []string{"Turn"}, want: decision.LLMResponse{Text: "Turn", Model: "m"},
			err: "status 429"},
		"a choice fails": {body: piece("Turn") +
			"data: {\"choices\":[{\"error\":{\"code\":\"overloaded\"}}]}\n\n", pieces: []string{"Turn"},
			want: decision.LLMResponse{Text: "Turn", Model: "m"},
			err:  "status 502 Bad Gateway: overloaded"},
		"breaks off": {body: piece("Turn"), pieces: []string{"Turn"},
			want: decision.LLMResponse{Text: "Turn", Model: "m"}, err: "unexpected EOF"},
		"one event is too long": {body: piece("Turn") + piece(long+long), pieces: []string{"Turn"},
			want: decision.LLMResponse{Model: "m"}, err: "unusable answer: too large"},
		"lines without an end": {body: piece("Turn") + "data: " + long + "\ndata: " + long,
			pieces: []string{"Turn"}, want: decision.LLMResponse{Model: "m"},
			err: "unusable answer: too large"},
		"the whole is too long": {body: piece(long) + piece(long), pieces: []string{long, long},
			want: decision.LLMResponse{Model: "m"}, err: "unusable answer: too large"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, body := range []io.Reader{strings.NewReader(tt.body),
				iotest.OneByteReader(strings.NewReader(tt.body))} {
				client, asked := streamed(t, body, strings.NewReader(piece("Asked again.")+done))
				var pieces []string
				got, err := client.Stream(ctx, ask, func(text string) { pieces = append(pieces, text) })
				assert.Equal(t, tt.pieces, pieces)
				assert.Equal(t, tt.want, got)
				assert.Equal(t, 1, *asked)
				if tt.err == "" {
					require.NoError(t, err)
					continue
				}
				require.ErrorContains(t, err, tt.err)
				assert.NotContains(t, err.Error(), secret)
			}
		})
	}
}

// Before the first piece a failure is tried again, and after it never: a person may have read it.
func TestStreamAsksAgain(t *testing.T) {
	broken := iotest.ErrReader(errors.New("reset"))
	for name, tt := range map[string]struct {
		first io.Reader
		asked int
	}{
		"at once":          {broken, 2},
		"after a comment":  {io.MultiReader(strings.NewReader(": hi\n\n"), broken), 2},
		"an error at once": {strings.NewReader("data: {\"error\":{\"code\":503}}\n\n"), 2},
		"after a piece":    {io.MultiReader(strings.NewReader(piece("Turn")), broken), 1},
		"an error after piece": {strings.NewReader(
			piece("Turn") + "data: {\"error\":{\"code\":503}}\n\n"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			client, asked := streamed(t, tt.first, strings.NewReader(piece("Yes.")+done))
			said := ""
			got, err := client.Stream(ctx, ask, func(text string) { said += text })
			assert.Equal(t, tt.asked, *asked)
			assert.Equal(t, said, got.Text)
			if tt.asked == 2 {
				require.NoError(t, err)
				assert.Equal(t, "Yes.", said)
			} else {
				assert.Error(t, err)
			}
		})
	}
}

func TestStreamRequest(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "text/event-stream, application/json", r.Header.Get("Accept"))
		body := sent(t, r)
		assert.Equal(t, true, body["stream"])
		assert.Equal(t, map[string]any{"include_usage": true}, body["stream_options"])
		answer(http.StatusOK, fine)(w, r) // it does not stream
	})
	said := ""
	client := newClient(t, openaicompat.Config{BaseURL: server.URL})
	got, err := client.Stream(ctx, ask, func(text string) { said += text })
	require.NoError(t, err)
	assert.Equal(t, "Fine.", got.Text)
	assert.Equal(t, "Fine.", said)
}

// slowly streams pieces as they are asked for, until the request ends.
func slowly(pieces <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case text := <-pieces:
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}

// The loop streams from it: pieces come before the answer is whole, and a context that ends leaves
// no answer behind.
func TestTheLoopStreams(t *testing.T) {
	events, later := make(chan string), make(chan string) // of each request
	server := serve(t, inTurn(slowly(events), slowly(later)))
	agent, err := loop.New(ctx, loop.Config{Model: newClient(t,
		openaicompat.Config{BaseURL: server.URL})})
	require.NoError(t, err)

	heard := make(chan string, 10)
	answers := make(chan loop.Answer, 1)
	run := func(ctx context.Context, id string) {
		answer, err := agent.Answer(ctx, loop.Event{ID: id, Text: "Why?",
			OnChunk: func(_ context.Context, text string, _ bool) { heard <- text }})
		assert.NoError(t, err)
		answers <- answer
	}
	go run(ctx, "whole")
	events <- piece("<think>hm</think>Turn")
	assert.Equal(t, "Turn", <-heard, "before the rest is there")
	events <- piece(" it off.")
	assert.Equal(t, " it off.", <-heard)
	events <- stopped + done
	assert.Equal(t, "Turn it off.", (<-answers).Text)

	ending, cancel := context.WithCancel(ctx)
	go run(ending, "ended")
	later <- piece("Turn")
	assert.Equal(t, "Turn", <-heard)
	cancel()
	assert.Equal(t, decision.LLMStopped, (<-answers).Result.Reason)
	_, err = agent.Explain(ctx, "ended")
	assert.ErrorIs(t, err, loop.ErrNoAnswer)
	assert.EqualValues(t, 2, server.asked.Load())
}

func TestStreamEndsWithItsTime(t *testing.T) {
	events := make(chan string, 1)
	server := serve(t, slowly(events))
	events <- piece("Turn")
	begin := time.Now()
	got, err := newClient(t, openaicompat.Config{BaseURL: server.URL,
		Timeout: 50 * time.Millisecond}).Stream(ctx, ask, func(string) {})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, "Turn", got.Text)
	assert.Less(t, time.Since(begin), time.Minute)
}

// streamer has the suite of adapters judge what streams.
type streamer struct{ *openaicompat.Client }

func (s streamer) Generate(
	ctx context.Context, r decision.LLMRequest,
) (decision.LLMResponse, error) {
	return s.Stream(ctx, r, func(string) {})
}

func TestStreamingAdapter(t *testing.T) {
	llmtest.Run(t, func(provider decision.LLM) (decision.LLM, error) {
		return streamer{newClient(t, openaicompat.Config{BaseURL: serve(t,
			chunked(chat(provider))).URL + "/v1"})}, nil
	})
}

// chunked turns an endpoint's answer into a stream of two-rune pieces.
func chunked(whole http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kept := &keeper{header: http.Header{}}
		whole(kept, r)
		var got struct {
			Model   string
			Choices []struct{ Message struct{ Content string } }
			Usage   json.RawMessage
		}
		if kept.status != 0 || json.Unmarshal(kept.body.Bytes(), &got) != nil {
			w.WriteHeader(max(kept.status, 500))
			_, _ = w.Write(kept.body.Bytes())
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		text := []rune(got.Choices[0].Message.Content)
		for len(text) > 0 {
			n := min(len(text), 2)
			_, _ = io.WriteString(w, piece(string(text[:n])))
			text = text[n:]
		}
		_, _ = fmt.Fprintf(w, "%sdata: {\"model\":%q,\"choices\":[],\"usage\":%s}\n\n%s", stopped,
			got.Model, got.Usage, done)
	}
}

type keeper struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *keeper) Header() http.Header         { return k.header }
func (k *keeper) WriteHeader(status int)      { k.status = status }
func (k *keeper) Write(b []byte) (int, error) { return k.body.Write(b) }

// dumb reads the pieces of a stream without regard to limits, from what has only newlines.
func dumb(body string) (pieces []string) {
	for _, event := range strings.Split(strings.TrimPrefix(body, "\ufeff"), "\n\n") {
		var data []string
		for _, line := range strings.Split(event, "\n") {
			if rest, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(rest, " "))
			} else if line == "data" {
				data = append(data, "")
			}
		}
		text := strings.Join(data, "\n")
		if strings.TrimSpace(text) == "[DONE]" {
			break
		}
		var got struct {
			Choices []struct {
				Index *int
				Delta struct{ Content string }
			}
		}
		_ = json.Unmarshal([]byte(text), &got)
		for _, c := range got.Choices {
			if (c.Index == nil || *c.Index == 0) && c.Delta.Content != "" {
				pieces = append(pieces, c.Delta.Content)
			}
		}
	}
	return pieces
}

// FuzzStream reads anything as a stream. An answer without an error is what its pieces say, and a
// dumb reader agrees. How the bytes come does not matter. An error is of a documented kind and
// without the key.
func FuzzStream(f *testing.F) {
	for _, body := range []string{
		piece("Turn") + piece(" it off.") + stopped + done,
		"\ufeff: hi\n\n" + piece("<think>x</think>y") + done,
		piece("a") + "data: {\"error\":{\"code\":500}}\n\n",
		"data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"Yes.\"}}]}\n\n", "data\ndata:\n\n",
		"data: null\n\n" + done, piece(secret), "data: [1]\r\rdata: {}\r\n\r\n",
		"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"a\"}}," +
			"{\"delta\":{\"content\":\"b\",\"reasoning\":\"c\"}," +
			"\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":-1}}\n\n",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		read := func(r io.Reader) (pieces []string, got decision.LLMResponse, err error) {
			client, _ := streamed(t, r, strings.NewReader(stopped))
			got, err = client.Stream(ctx, ask, func(text string) { pieces = append(pieces, text) })
			return pieces, got, err
		}
		pieces, got, err := read(strings.NewReader(body))
		again, gotAgain, errAgain := read(iotest.OneByteReader(strings.NewReader(body)))
		assert.Equal(t, pieces, again)
		assert.Equal(t, got, gotAgain)
		assert.Equal(t, err == nil, errAgain == nil)
		assert.GreaterOrEqual(t, min(got.InputTokens, got.OutputTokens), 0)
		if err != nil {
			assert.LessOrEqual(t, len(err.Error()), 400)
			assert.NotContains(t, err.Error(), secret)
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		said, _ := thoughts.Split(strings.Join(pieces, ""))
		assert.Equal(t, said, got.Text)
		assert.NotEmpty(t, strings.TrimSpace(got.Text))
		if !strings.Contains(body, "\r") {
			assert.Equal(t, dumb(body), pieces)
		}
	})
}
