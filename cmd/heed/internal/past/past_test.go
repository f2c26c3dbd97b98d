package past_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/cmd/heed/internal/past"
	"github.com/heedhq/heed/loop"
)

// read returns the rows and faults of a log, with a proposed mapping.
func read(t testing.TB, log string) (m past.Mapping, rows []past.Row, faults []string) {
	m, err := past.Propose(strings.NewReader(log))
	require.NoError(t, err)
	for row, err := range past.Read(strings.NewReader(log), m) {
		if fault := (*past.Fault)(nil); errors.As(err, &fault) {
			faults = append(faults, fault.Error())
			continue
		}
		require.NoError(t, err)
		rows = append(rows, row)
	}
	return m, rows, faults
}

var at = time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)

func up(who string) []loop.Reaction { return []loop.Reaction{{Person: who, Value: 1}} }

// The forms that other programs write are read with the mapping that is proposed.
func TestLogsOfOtherPrograms(t *testing.T) {
	full := loop.Past{
		Event: loop.Event{ID: "t1", Text: "why?", Person: "ann", Session: "s1", At: at},
		Text:  "because", Arm: "gpt-4o",
		Spent: answer.Spent{Cost: 0.25, Latency: 1500 * time.Millisecond},
	}
	with := func(change func(*loop.Past)) loop.Past {
		p := full
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		log  string
		want loop.Past
	}{
		"CSV": {"id;at;question;answer;user_id;session_id;model;cost;latency_ms;thumb\n" +
			"t1;2026-01-31T15:04:05Z;why?;because;ann;s1;gpt-4o;0.25;1500;up\n",
			with(func(p *loop.Past) { p.Reactions = up("ann") })},
		"Langfuse, enriched observations": {`{"id":"o1","trace_id":"t1","type":"GENERATION",` +
			`"start_time":"2026-01-31 15:04:05.000000","end_time":"2026-01-31 15:04:06.500000",` +
			`"user_id":"ann","session_id":"s1","provided_model_name":"gpt-4o","input":` +
			`"[{\"role\":\"system\",\"content\":\"short\"},{\"role\":\"user\",\"content\":\"why?\"}]",` +
			`"output":"{\"role\":\"assistant\",\"content\":\"because\"}","total_cost":0.25}` + "\n" +
			`{"id":"o2","trace_id":"t1","type":"SPAN","start_time":"2026-01-31 15:04:05.000000"}`, full},
		"Langfuse, scores": {`{"id":"x","trace_id":"t1","timestamp":"2026-01-31 15:04:05.000000",` +
			`"name":"thumb","value":1,"data_type":"BOOLEAN","author_user_id":"ann"}`,
			loop.Past{Event: loop.Event{ID: "t1", At: at}, Reactions: up("ann")}},
		"Langfuse, traces": {`[{"id":"t1","timestamp":"2026-01-31T15:04:05.000Z","userId":"ann",` +
			`"sessionId":"s1","input":{"messages":[{"role":"user","content":"why?"}]},` +
			`"output":"because","latency":1.5,"totalCost":0.25,"metadata":{"model":"gpt-4o"},"scores":[{"value":1}]}]`,
			with(func(p *loop.Past) { p.Arm, p.Reactions = "", up("ann") })},
		"LangSmith": {`{"id":"t1","run_type":"chain","parent_run_id":null,` +
			`"start_time":"2026-01-31T15:04:05","end_time":"2026-01-31T15:04:06.5",` +
			`"inputs":{"question":"why?"},"outputs":{"output":"because"},"total_cost":"0.25",` +
			`"extra":{"metadata":{"user_id":"ann","session_id":"s1","ls_model_name":"gpt-4o"}},` +
			`"feedback_stats":{"user_score":{"n":1,"avg":1}}}` + "\n" +
			`{"id":"c","parent_run_id":"t1","run_type":"llm","start_time":"2026-01-31T15:04:05"}`,
			with(func(p *loop.Past) { p.Reactions = up("ann") })},
		"OpenAI, requests and responses": {`{"request":{"model":"gpt-4o","user":"ann","messages":` +
			`[{"role":"user","content":"why?"}]},"response":{"id":"t1","created":1769871845,"choices":` +
			`[{"message":{"role":"assistant","content":"because"}}],"usage":{"total_tokens":7}}}`,
			loop.Past{
				Event: loop.Event{ID: "t1", Text: "why?", Person: "ann", At: at}, Text: "because",
				Arm: "gpt-4o", Spent: answer.Spent{Tokens: 7},
			}},
		"OpenAI, a batch": {`{"custom_id":"t1","response":{"status_code":200,"body":{` +
			`"model":"gpt-4o","created":1769871845,"choices":[{"message":{"content":"because"}}]}}}`,
			loop.Past{Event: loop.Event{ID: "t1", At: at}, Text: "because", Arm: "gpt-4o"}},
		"CSV of Excel": {"\ufeff\"id\";\"question\"\r\n\"t1\";\"why?\"\r\n",
			loop.Past{Event: loop.Event{ID: "t1", Text: "why?"}}},
		"a rating of five": {"question,reply,rating,user\nwhy?,because,5,ann\nhow?,so,1,bob\n",
			loop.Past{Event: loop.Event{Text: "why?", Person: "ann"}, Text: "because",
				Reactions: up("ann")}},
		"a time in a column of another name": {"id,when,question\nt1,2026-01-31T15:04:05Z,why?\n",
			loop.Past{Event: loop.Event{ID: "t1", Text: "why?", At: at}}},
		"a correction": {"question,answer,user,reviewer,correction\nwhy?,because,ann,kim,Say why\n",
			loop.Past{Event: loop.Event{Text: "why?", Person: "ann"}, Text: "because",
				Corrections: []loop.Correction{{Reviewer: "kim", Text: "Say why"}}}},
	} {
		m, rows, faults := read(t, test.log)
		require.Empty(t, faults, name)
		require.NotEmpty(t, rows, name)
		assert.Equal(t, test.want, rows[0].Past, "%s\n%s", name, m.String())
	}
}

// A log of what all arms answered has what each was worth.
func TestALogOfAllArms(t *testing.T) {
	m, rows, faults := read(t, "prompt,small,large\nwhy?,True,False\nhow?,False,True\n")
	assert.Empty(t, faults)
	assert.Equal(t, map[string]string{"small": "small", "large": "large"}, m.Arms)
	assert.Equal(t, map[string]float64{"small": 1, "large": -1}, rows[0].Values)
}

// A row at fault is named by its line and column, and the others are read.
func TestRowsAtFault(t *testing.T) {
	for log, want := range map[string][]string{
		"at,text,thumb\n2026-01-31,a,up\n2026-01-31,\"b\n\",up\n2026-01-31,a,perhaps\n2026-01-31,a\n": {
			"line 5, thumb: is \"perhaps\", must be a number, or a word such as up or down, or be " +
				"among \"values\"",
			"line 6, byte 1: wrong number of fields"},
		"at,text,thumb\n2026-01-31,a,up\nsoon,a,up\n": {
			"line 3, at: is \"soon\", must be a time such as 2026-01-31T15:04:05Z"},
		"{\"text\":\"a\",\"cost\":1}\n{\"text\":\n{\"text\":\"b\",\"cost\":-1}\n[1]\n": {
			"line 2, byte 9: unexpected end of JSON input",
			"line 3, cost: is -1, must be in [0, 1e+06]", "line 4: must be a JSON object"},
		"[{\"text\":\"a\"},\n 7,\n {\"text\":\"b\"}]": {"element 2: must be a JSON object"},
		"[{\"text\":\"a\"},\n {\"text\":\"b\"},\n {\"text\":": {
			"after element 2: unexpected EOF"},
	} {
		m := past.Mapping{Fields: map[string]string{
			"at": "at", "text": "text", "value": "thumb", "cost": "cost",
		}}
		var faults []string
		rows := 0
		for _, err := range past.Read(strings.NewReader(log), m) {
			if err != nil {
				faults = append(faults, err.Error())
			} else {
				rows++
			}
		}
		assert.Equal(t, want, faults, log)
		assert.Positive(t, rows, log)
	}
}

// What the agent would refuse is a fault of its row, which --skip can leave out.
func TestLimitsOfRows(t *testing.T) {
	m := past.Mapping{Fields: make(map[string]string)}
	for _, f := range past.Fields {
		m.Fields[f.Name] = f.Name
	}
	long := strings.Repeat("x", 1025)
	for field, value := range map[string]string{
		"id": long[:901], "person": long, "session": long, "domain": long, "item": long,
		"context": long, "task": long[:513], "arm": long, "answer": strings.Repeat("x", 512<<10+1),
		"correction": long, "at": "1890-01-01T00:00:00Z", "cost": "1e400",
		"rater": long, "source": long, "reviewer": long,
	} {
		row := map[string]any{
			"id": 1, "value": 1, "outcome": 1, "correction": "No.", "person": "ann", field: value,
		}
		text, err := json.Marshal(row)
		require.NoError(t, err)
		log, n := string(text)+"\n{\"id\":2}", 0
		for row, err := range past.Read(strings.NewReader(log), m) {
			fault := (*past.Fault)(nil)
			if n++; n == 1 {
				require.ErrorAs(t, err, &fault, field)
				assert.Equal(t, field, fault.Column)
				continue
			}
			require.NoError(t, err, field)
			assert.Equal(t, "2", row.Event.ID)
		}
		assert.Equal(t, 2, n, field)
	}
}

// A line that is too long is one row at fault, and so are the rows that an open quote takes in.
func TestRowsThatTakeInOthers(t *testing.T) {
	_, rows, faults := read(t, "{\"text\":\"a\"}\n{\"text\":\""+strings.Repeat("x", 17<<20)+
		"\"}\n{\"text\":\"b\"}\n")
	assert.Len(t, rows, 2)
	assert.Equal(t, []string{"line 2: is longer than 16 MiB"}, faults)
	_, rows, faults = read(t, "text,thumb\na,up\n\"b,up\nc,up\nd,up\n")
	assert.Len(t, rows, 1)
	assert.Equal(t, []string{
		"line 3: extraneous or missing \" in quoted-field, up to line 5",
	}, faults)
}

// Numbers that are ids keep their digits, and other numbers have no needless ones.
func TestNumbersThatAreIDs(t *testing.T) {
	for log, want := range map[string]string{
		`{"id":1234567890123456789,"text":"a"}`:   "1234567890123456789",
		`[{"id":1234567890123456788,"text":"a"}]`: "1234567890123456788",
		`{"id":12.0,"text":"a"}`:                  "12",
	} {
		_, rows, faults := read(t, log)
		assert.Empty(t, faults)
		require.Len(t, rows, 1)
		assert.Equal(t, want, rows[0].Event.ID)
	}
}

// A mapping goes to a file and back, and the error of a wrong mapping names the field.
func TestAMappingIsWrittenDown(t *testing.T) {
	m, _, _ := read(t, "id;at;question;thumb;latency_ms\nt1;2026-01-31;why?;1;3\n")
	text, err := json.Marshal(m)
	require.NoError(t, err)
	back, err := past.ReadMapping(bytes.NewReader(text))
	require.NoError(t, err)
	assert.Equal(t, m, back)
	for text, want := range map[string]string{
		`{"fields":{"texts":"a"}}`:                 "fields.texts",
		`{"fields":{"text":"a"},"scale":[5,1]}`:    "scale",
		`{"fields":{"text":"a"},"values":{"x":2}}`: "values.x",
		`{"fields":{"text":"a"},"comma":";;"}`:     "comma",
		`{"fields":{"text":"a"},"seconds":-1}`:     "seconds",
		`{}`:                                       "no fields",
		`{"field":{}}`:                             "field",
	} {
		_, err := past.ReadMapping(strings.NewReader(text))
		assert.ErrorContains(t, err, want)
	}
	_, err = past.Propose(strings.NewReader("a,b\n1,x\n"))
	assert.ErrorContains(t, err, "--map")
	_, err = past.Propose(strings.NewReader(""))
	assert.Error(t, err)
}

// FuzzRead reads any text as a log. Every row is one that a host may import, and faults are named.
func FuzzRead(f *testing.F) {
	f.Add("id,at,question,thumb\nt1,2026-01-31,why?,up\n")
	f.Add(`{"request":{"messages":[{"role":"user","content":"a"}]},"scores":[{"value":3}]}`)
	f.Add(`[{"text":"a","cost":1},{"text":null}, 3]`)
	f.Add("prompt,small,large\nwhy?,True,False\n")
	f.Fuzz(func(t *testing.T, log string) {
		m, err := past.Propose(strings.NewReader(log))
		if err != nil {
			return
		}
		m.Fields["latency"], m.Fields["at"] = "latency", "at"
		for row, err := range past.Read(strings.NewReader(log), m) {
			if err != nil {
				require.NotEmpty(t, err.Error())
				continue
			}
			require.NotEmpty(t, row.At)
			require.GreaterOrEqual(t, row.Spent.Latency, time.Duration(0))
			for _, r := range row.Reactions {
				require.True(t, r.Value >= -1 && r.Value <= 1, r.Value)
			}
			require.True(t, row.Propensity >= 0 && row.Propensity <= 1)
			for x := range maps.Values(row.Values) {
				require.True(t, x >= -1 && x <= 1, x)
			}
		}
	})
}

// A column without a use is listed, because its values are not imported.
func TestUnusedColumnsAreListed(t *testing.T) {
	m, err := past.Propose(strings.NewReader("text,answer,arm,thumb,mood\nHi,Yo,a,up,good\n"))
	require.NoError(t, err)
	assert.Contains(t, m.String(), "not used    mood")
}
