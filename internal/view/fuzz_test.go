package view

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// Any input is read as what it says, or refused as the caller's fault. The same goes for a choice
// that a caller hands back.
func FuzzRequest(f *testing.F) {
	learner, err := strategy.New(f.Context(), strategy.Config{
		Store: &memstore.Store{}, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}},
	})
	require.NoError(f, err)
	choice, err := learner.Select(f.Context(), strategy.Query{Session: "s", Item: "i"})
	require.NoError(f, err)
	for _, valid := range []any{
		choice, Selection{Session: "s", Item: "i", Arms: []strategy.ArmID{"a"}},
		Observation{
			Choice: base64.RawURLEncoding.EncodeToString([]byte("{}")), Value: 0.5, Confidence: 1,
			At: choice.At,
		},
	} {
		text, err := json.Marshal(valid)
		require.NoError(f, err)
		f.Add(text)
	}
	for _, text := range []string{
		`{"answer":"x","value":-1}`, `{"text":"Why?","history":[{"role":"user","text":"\ud800"}]}`,
		`{"value":1e999,"Value":1}`, `[{}]`, "\xff",
	} {
		f.Add([]byte(text))
	}
	s := NewServer(func() *Source { return &Source{Strategy: learner} })
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, o := range Operations() {
			if o.Method == http.MethodPost {
				readsTheSame(t, o.In, body)
			}
		}
		given := Observation{
			Choice: base64.RawURLEncoding.EncodeToString(body), Value: 1, Confidence: 1,
		}
		_, err := s.observe(t.Context(), nil, &given)
		if err != nil && FaultOf(err, reflect.TypeOf(given)).Sort == Failure {
			t.Fatal(err)
		}
	})
}

// readsTheSame fails if an input is read that would be another one when it is written again.
func readsTheSame(t *testing.T, of reflect.Type, body []byte) {
	t.Helper()
	once, again := reflect.New(of).Interface(), reflect.New(of).Interface()
	if err := decode(body, once, false); err != nil {
		if FaultOf(err, of).Sort == Failure {
			t.Fatal(err)
		}
		return
	}
	text, err := json.Marshal(once)
	require.NoError(t, err)
	require.NoError(t, decode(text, again, false))
	same, err := json.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, string(text), string(same))
}
