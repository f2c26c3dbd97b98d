package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// Any body is read as what it says, or refused as the client's fault. The same goes for a choice that a client hands back.
func FuzzRequest(f *testing.F) {
	learner, err := strategy.New(f.Context(), strategy.Config{Store: &memstore.Store{}, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}})
	require.NoError(f, err)
	choice, err := learner.Select(f.Context(), strategy.Query{Session: "s", Item: "i"})
	require.NoError(f, err)
	for _, valid := range []any{
		choice, selectCall{Session: "s", Item: "i", Arms: []string{"a"}},
		observeCall{Choice: base64.RawURLEncoding.EncodeToString([]byte("{}")), Value: 0.5, Confidence: 1, At: choice.At},
	} {
		text, err := json.Marshal(valid)
		require.NoError(f, err)
		f.Add(text)
	}
	for _, text := range []string{`{"answer":"x","value":-1}`, `{"text":"Why?","history":[{"role":"user","text":"\ud800"}]}`, `{"value":1e999,"Value":1}`, `[{}]`, "\xff"} {
		f.Add([]byte(text))
	}
	a := &api{view: func() *view.Source { return &view.Source{Strategy: learner} }}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, call := range routes() {
			if call.method == http.MethodPost {
				readsTheSame(t, call.in, body)
			}
		}
		given := observeCall{Choice: base64.RawURLEncoding.EncodeToString(body), Value: 1, Confidence: 1}
		if _, err := a.observe(t.Context(), nil, &given); err != nil && explainError(err, nil).Type == problemsAt+failure {
			t.Fatal(err)
		}
	})
}

// readsTheSame fails if a body is read that would be another one when it is written again.
func readsTheSame(t *testing.T, of reflect.Type, body []byte) {
	t.Helper()
	once, again := reflect.New(of).Interface(), reflect.New(of).Interface()
	if err := decode(body, once); err != nil {
		if explainError(err, of).Type == problemsAt+failure {
			t.Fatal(err)
		}
		return
	}
	text, err := json.Marshal(once)
	require.NoError(t, err)
	require.NoError(t, decode(text, again))
	same, err := json.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, string(text), string(same))
}
