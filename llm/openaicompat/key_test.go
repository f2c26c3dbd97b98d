package openaicompat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/llm/openaicompat"
)

const secret = "sk-canary/0123+456=789"

// The key is in no error, and in no part of one, whatever the endpoint sends back.
func TestKeyIsNotEchoed(t *testing.T) {
	echoes := map[string]string{
		"as it is":                      secret,
		"with its scheme":               "Incorrect key: Bearer " + secret,
		"often":                         strings.Repeat(secret, 20),
		"as a code":                     `{"error": {"code": "` + secret + `", "message": "x"}}`,
		"as a type":                     `{"type": "` + secret + `"}`,
		"in JSON, by PHP":               `{"error": "` + strings.ReplaceAll(secret, "/", `\/`) + `"}`,
		"in a query":                    "https://x/?key=" + url.QueryEscape(secret),
		"in a path":                     "https://x/" + url.PathEscape(secret),
		"with unseen parts":             strings.Join(strings.Split(secret, ""), "\u200b"),
		"at the end of what is read":    strings.Repeat(" ", 8<<10-15) + secret,
		"at the end of what is shown":   strings.Repeat("a", 290) + secret,
		"unseen up to where it is read": strings.Repeat("\u200b", (8<<10)/3-4) + secret,
	}
	for name, body := range echoes {
		for _, status := range []int{200, 302, 400, 401, 429} {
			t.Run(fmt.Sprint(name, ", ", status), func(t *testing.T) {
				server := serve(t, func(w http.ResponseWriter, r *http.Request) {
					assert.Equal(t, "Bearer "+secret, r.Header.Get("Authorization"))
					w.Header().Set("Content-Type", secret)
					w.Header().Set("Location", "/"+secret)
					answer(status, body)(w, r)
				})
				client := newClient(t, attempts(1,
					openaicompat.Config{BaseURL: server.URL, APIKey: secret}))
				_, err := client.Generate(ctx, ask)
				require.Error(t, err)
				noKey(t, err)
			})
		}
	}
	t.Run("as the model", func(t *testing.T) {
		server := serve(t, answer(http.StatusOK, `{"model": "`+secret+`", "choices": [{"message": {"content": "Fine."}}]}`))
		got, err := newClient(t, openaicompat.Config{BaseURL: server.URL, APIKey: secret}).Generate(ctx,
			ask)
		require.NoError(t, err)
		assert.Equal(t, "[redacted]", got.Model)
	})
	t.Run("as a code that looks like one", func(t *testing.T) {
		server := serve(t, answer(http.StatusUnauthorized, `{"error": {"code": "sk-canary"}}`))
		_, err := newClient(t, openaicompat.Config{BaseURL: server.URL, APIKey: "sk-canary"}).Generate(
			ctx, ask)
		assert.EqualError(t, err, "openaicompat: status 401 Unauthorized")
	})
	t.Run("in what is no HTTP", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close() //nolint:errcheck // nobody connects any more
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 "+secret+" is no status\r\n\r\n")
				_ = conn.Close()
			}
		}()
		client := newClient(t, openaicompat.Config{BaseURL: "http://" + listener.Addr().String(), APIKey: secret})
		_, err = client.Generate(ctx, ask)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "canary")
	})
}

// noKey fails if an error, or what can be read of it, has the key, or more than a few characters of
// it.
func noKey(t *testing.T, err error) {
	t.Helper()
	shown := fmt.Sprintf("%v %+v %#v", err, err, err)
	if status := (*openaicompat.StatusError)(nil); errors.As(err, &status) {
		shown += fmt.Sprintf("%+v", *status)
		assert.LessOrEqual(t, len([]rune(status.Excerpt)), 300)
		assert.NotContains(t, status.Excerpt, "\n")
	}
	if fault := (*openaicompat.AnswerError)(nil); errors.As(err, &fault) {
		shown += fmt.Sprintf("%+v", *fault)
	}
	assert.NotContains(t, shown, "canary")
	assert.NotContains(t, shown, "sk-c")
}

// The key, and the prompt, go to the configured host and to no other.
func TestRedirect(t *testing.T) {
	other := serve(t, answer(http.StatusOK, fine))
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{other.URL + "/v1/chat/completions", "/v2/chat/completions", "//" + strings.TrimPrefix(other.URL, "http://")} {
			server := serve(t, func(w http.ResponseWriter,
				r *http.Request) {
				http.Redirect(w, r, to, status)
			})
			follow := &http.Client{CheckRedirect: func(*http.Request,
				[]*http.Request) error {
				return nil
			}}
			client := newClient(t, openaicompat.Config{BaseURL: server.URL, APIKey: secret,
				HTTPClient: follow})
			_, err := client.Generate(ctx, ask)
			assert.EqualError(t, err,
				fmt.Sprintf("openaicompat: status %d %s (redirects are not followed)", status,
					http.StatusText(status)))
			assert.EqualValues(t, 1, server.asked.Load())
			assert.NotNil(t, follow.CheckRedirect, "the host's client stays as it is")
		}
	}
	assert.Zero(t, other.asked.Load())
}

// An endpoint may repeat the prompt. The prompt is then in the excerpt, and in no text that goes
// into a log.
func TestPromptIsNotInErrors(t *testing.T) {
	for _, status := range []int{200, 400, 500} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			answer(status, fmt.Sprintf(`{"error": {"message": %q, "code": %q, "type": %[1]q}}`, body, "the canary is in it"))(w, r)
		})
		r := ask
		r.Prompt = "the canary"
		_, err := newClient(t, openaicompat.Config{BaseURL: server.URL}).Generate(ctx, r)
		var fault *openaicompat.StatusError
		require.ErrorAs(t, err, &fault)
		assert.Contains(t, fault.Excerpt, "canary")
		assert.NotContains(t, err.Error(), "canary")
	}
}

func TestKeyDoesNotShow(t *testing.T) {
	cfg := openaicompat.Config{BaseURL: "http://localhost/v1", APIKey: secret}
	client := newClient(t, cfg)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", cfg.APIKey, "cfg", cfg, "client",
		client)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", cfg.APIKey)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s"} {
		for _, v := range []any{cfg.APIKey, &cfg.APIKey, cfg, &cfg, client, []any{cfg.APIKey}} {
			_, _ = fmt.Fprintf(&log, verb, v)
		}
	}
	text, err := json.Marshal(map[string]any{"key": cfg.APIKey})
	require.NoError(t, err)
	assert.JSONEq(t, `{"key": "[redacted]"}`, string(text))
	assert.NotContains(t, log.String(), "canary")
	assert.NotContains(t, log.String(), fmt.Sprintf("%x", "canary"))
	assert.Contains(t, log.String(), "[redacted]")
	assert.Empty(t, fmt.Sprint(openaicompat.APIKey("")))
	assert.Equal(t, secret, string(cfg.APIKey))
}
