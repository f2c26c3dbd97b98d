package view

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
	"time"

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
		choice, map[string]any{"session": "s", "item": "i", "arms": []strategy.ArmID{"a"}},
		map[string]any{
			"choice": base64.RawURLEncoding.EncodeToString([]byte("{}\n")), "value": 0.5, "confidence": 1,
			"latency_ms": 1.5, "at": choice.At,
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
	caller := &Caller{View: &Source{Strategy: learner}}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, o := range Operations() {
			if o.Method == http.MethodPost {
				readsTheSame(t, o.In, body)
			}
		}
		given := Observation{
			Choice:  base64.RawURLEncoding.EncodeToString(append(body, '\n')),
			Outcome: strategy.Outcome{Value: 1, Confidence: 1},
		}
		_, err := caller.observe(t.Context(), &given)
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
	text, err := json.Marshal(written(once))
	require.NoError(t, err)
	require.NoError(t, decode(text, again, false), "%s", text)
	require.Equal(t, written(once), written(again))
}

// written returns an input as it stands in JSON.
func written(in any) map[string]any {
	all, v := make(map[string]any), reflect.ValueOf(in).Elem()
	for _, f := range FieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		switch of := value.Interface().(type) {
		case time.Duration:
			all[f.Name] = float64(of) / float64(time.Millisecond)
		case error:
			all[f.Name] = of.Error()
		default:
			if f.Required || !value.IsZero() {
				all[f.Name] = of
			}
		}
	}
	return all
}
