package past_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/cmd/heed/internal/past"
)

func read(t testing.TB, file, name string) *past.File {
	in, err := os.Open("testdata/" + file)
	require.NoError(t, err)
	defer in.Close()
	f, err := past.Read(name, in, "")
	require.NoError(t, err)
	return f
}

func TestALog(t *testing.T) {
	for _, file := range []string{"log.csv", "log.jsonl"} {
		f := read(t, file, file)
		assert.Equal(t, past.Log, f.Format)
		assert.Equal(t, []string{"large", "small"}, f.Arms)
		require.Len(t, f.Requests, 3)
		assert.Equal(t, past.Request{
			Text: "Is a contract, once signed, binding?", Item: "contracts", Category: "law", Context: "short", At: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC),
			Tries: []past.Try{{Arm: "large", Reward: 1, Cost: 0.012, Latency: 1500 * time.Millisecond, Tokens: 420, Propensity: 0.5}},
		}, f.Requests[0], file)
		assert.Equal(t, past.Request{Item: "contracts", Category: "law", Tries: []past.Try{{Arm: "small", Reward: 0}}}, f.Requests[1], file)
		assert.InDelta(t, 0.25, f.Requests[2].Tries[0].Reward, 0)
	}
}

func TestRouterBench(t *testing.T) {
	f := read(t, "routerbench.csv", "routerbench.csv")
	assert.Equal(t, past.RouterBench, f.Format)
	assert.Equal(t, []string{"gpt-4-1106-preview", "mistralai/mistral-7b-chat"}, f.Arms)
	require.Len(t, f.Requests, 3)
	assert.Equal(t, "grade-school-math", f.Requests[0].Item)
	assert.Equal(t, []past.Try{{Arm: "gpt-4-1106-preview", Reward: 1, Cost: 0.0051}, {Arm: "mistralai/mistral-7b-chat", Reward: 0.25, Cost: 0.00003}}, f.Requests[0].Tries)
}

func TestLLMRouterBench(t *testing.T) {
	f := read(t, "llmrouterbench.json", "llmrouterbench.json")
	assert.Equal(t, past.LLMRouterBench, f.Format)
	assert.Equal(t, []string{"Qwen3-8B"}, f.Arms)
	require.Len(t, f.Requests, 2)
	assert.Equal(t, past.Request{ID: "1", Text: "What is 2+2?", Item: "aime", Tries: []past.Try{{Arm: "Qwen3-8B", Reward: 1, Cost: 0.0001, Tokens: 20}}}, f.Requests[0])
	assert.Zero(t, f.Requests[1].Tries[0].Reward, "a score of null")

	by, err := past.Read("bench/gpqa/test/GPT-5/20250101_000000.json", strings.NewReader(`{"records": [{"index": 1, "score": 0.5}]}`), "")
	require.NoError(t, err)
	assert.Equal(t, "gpqa", by.Requests[0].Item)
	assert.Equal(t, []string{"GPT-5"}, by.Arms)
}

func TestRouteLLM(t *testing.T) {
	f := read(t, "routellm_mmlu_geometry.csv", "mmlu_geometry.csv")
	assert.Equal(t, past.RouteLLM, f.Format)
	assert.Equal(t, []string{"mixtral-8x7b-instruct-v0.1", "gpt-4-1106-preview"}, f.Arms)
	require.Len(t, f.Requests, 2)
	assert.Equal(t, "geometry", f.Requests[0].Item)
	assert.Contains(t, f.Requests[0].Text, "\nA. 3\n")
	assert.InDelta(t, 1, f.Requests[0].Tries[1].Reward, 0)
	g := read(t, "routellm_gsm8k.csv", "gsm8k_responses.csv")
	assert.Len(t, g.Arms, 2, "responses are no arms")
	assert.Equal(t, "gsm8k", g.Requests[0].Item)
}

// A question that two models answered is one request with two tries.
func TestFilesOfOneBenchmarkAreOneTable(t *testing.T) {
	one, two := read(t, "llmrouterbench.json", "a.json"), read(t, "llmrouterbench.json", "b.json")
	two.Arms[0] = "GPT-5"
	for i := range two.Requests {
		two.Requests[i].Tries[0].Arm = "GPT-5"
	}
	all := past.Merge(one, two, one)
	assert.Equal(t, []string{"Qwen3-8B", "GPT-5"}, all.Arms)
	require.Len(t, all.Requests, 2)
	assert.Len(t, all.Requests[0].Tries, 2)
}

// File, line and column.
func TestAFaultHasItsPlace(t *testing.T) {
	for name, test := range map[string]struct{ format, text, want string }{
		"nothing":           {"", " \n", "f:1:1: is empty"},
		"something":         {"", "a,b\n1,2\n", "f:1:1: looks like none of the formats"},
		"no format":         {"x", "a\n1\n", `f: the format "x" is none of log,`},
		"only a header":     {"", "arm,outcome\n", "f:1:1: has no requests"},
		"outcome":           {"", "arm,outcome\na,1\nb,2\n", `f:3:3: outcome is "2", must be true, false or a number in [0, 1]`},
		"propensity":        {"", "arm,outcome,propensity\na,1,0\n", "f:2:5: propensity must be at least 1e-6"},
		"time":              {"", "arm,outcome,at\na,1,today\n", "f:2:5: at is no time"},
		"fields":            {"", "arm,outcome\na\n", "f:2:1: has more or fewer fields than the header"},
		"quote":             {"", "arm,outcome\n\"a,1\n", `f:3:0`},
		"column":            {"", "arm,outcome,colour\na,1,red\n", "f:1:13: colour is none of the columns"},
		"twice":             {"", "arm,outcome,arm\na,1,a\n", "f:1:13: arm is there twice"},
		"missing column":    {"log", "arm,cost\na,1\n", "f:1:1: the column outcome is missing"},
		"upper case":        {"", "Arm,Outcome\na,1\n", "f:1:1: the column arm is missing: there is Arm; names are in lower case"},
		"mixed case":        {"log", "arm,Outcome\na,1\n", "f:1:5: Outcome is none of the columns arm, outcome, "},
		"spaces":            {"", "outcome, arm\n1,a\n", "f:1:1: the columns must have their names alone"},
		"semicolons":        {"", "arm;outcome\na;1\n", `f:1:1: the column arm is missing: the header is separated by ";"; a log is separated by commas`},
		"no arm":            {"", "model,outcome\na,1\n", "f:1:1: the column arm is missing"},
		"text alone":        {"", "text,cost\na,1\n", "f:1:1: the column arm is missing"},
		"empty arm":         {"", "arm,outcome\n,1\n", "f:2:1: arm must not be empty"},
		"JSON":              {"", `{"arm": "a", "outcome": 1}` + "\n" + `{"arm": "a", "outcome": "good"}`, `f:2:14: outcome is "good"`},
		"JSON that is none": {"", `{"arm": "a", "outcome": }`, "f:1:25: invalid character '}'"},
		"JSON key":          {"", `{"arm": "a", "outcome": 1, "x": 1}`, "f:1:28: x is none of the keys"},
		"JSON missing":      {"", `{"arm": "a"}`, "f:1:1: outcome is missing"},
		"JSON as CSV":       {"routellm", `{"arm": "a"}`, "f:1:1: is JSON, but the format routellm is CSV"},
		"cost":              {"", "sample_id,eval_name,m,m|total_cost\n1,e,1,free\n", `f:2:7: m|total_cost is "free"`},
		"no model":          {"routerbench", "sample_id,eval_name\n1,e\n", "f:1:1: no model has a column"},
		"no eval":           {"", "sample_id,m,m|total_cost\n1,1,1\n", "f:1:1: the column eval_name is missing"},
		"right or wrong":    {"", "prompt,m\nx,maybe\n", `f:2:3: m is "maybe"`},
		"score":             {"", "{\"model_name\": \"m\",\n \"records\": [\n{\"score\": 7}]}", "f:3:1: score is 7"},
		"no model name":     {"", `{"records": [{"score": 1}]}`, "f:1:1: model_name is missing"},
		"no array":          {"", `{"model_name": "m", "records": 5}`, "records must be an array"},
		"cut off":           {"", `{"model_name": "m", "records": [{"score": 1}`, "f:1:"},
		"a wrong kind":      {"", `{"model_name": "m", "records": [{"score": "good"}]}`, "record 0: cannot unmarshal string"},
	} {
		_, err := past.Read("f", strings.NewReader(test.text), test.format)
		var fault *past.Error
		require.ErrorAs(t, err, &fault, name)
		want := test.want
		if name == "quote" {
			want = "f:"
		}
		assert.Contains(t, err.Error(), want, name)
	}
}

// fuzz reads anything, and checks what every table promises.
func fuzz(f *testing.F, format string, fixtures ...string) {
	for _, file := range fixtures {
		text, err := os.ReadFile("testdata/" + file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := past.Read("a/b/c/d", bytes.NewReader(text), format)
		if err != nil {
			var fault *past.Error
			require.ErrorAs(t, err, &fault)
			require.True(t, fault.Line == 0 || fault.Line > 0 && fault.Column > 0, "%v", fault)
			return
		}
		require.NotEmpty(t, file.Requests)
		for _, q := range file.Requests {
			require.NotEmpty(t, q.Tries)
			for _, try := range q.Tries {
				require.Contains(t, file.Arms, try.Arm)
				require.True(t, try.Reward >= 0 && try.Reward <= 1 && try.Cost >= 0 && try.Tokens >= 0 && try.Latency >= 0, "%+v", try)
				require.True(t, try.Propensity == 0 || try.Propensity >= 1e-6 && try.Propensity <= 1, "%+v", try)
			}
		}
	})
}

func FuzzLog(f *testing.F)            { fuzz(f, past.Log, "log.csv", "log.jsonl") }
func FuzzRouterBench(f *testing.F)    { fuzz(f, past.RouterBench, "routerbench.csv") }
func FuzzLLMRouterBench(f *testing.F) { fuzz(f, past.LLMRouterBench, "llmrouterbench.json") }
func FuzzRouteLLM(f *testing.F) {
	fuzz(f, past.RouteLLM, "routellm_mmlu_geometry.csv", "routellm_gsm8k.csv")
}
