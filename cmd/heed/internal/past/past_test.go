package past_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"
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
		assert.Equal(t, test.want, rows[0].Past, "%s\n%s", name, m.Fields)
	}
}

// A log of what all arms answered has what each was worth.
func TestALogOfAllArms(t *testing.T) {
	m, rows, faults := read(t, "prompt,small,large\nwhy?,True,False\nhow?,False,True\n")
	assert.Empty(t, faults)
	assert.Equal(t, map[string]string{"small": "small", "large": "large"}, m.Arms)
	assert.Equal(t, map[string]float64{"small": 1, "large": -1}, rows[0].Values)

	log := "person,cost,large\nann,1,0\nann,0,1\nann,0,\n"
	m, err := past.Propose(strings.NewReader("person,cost,large\nann,1,0\nann,0,1\n"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"person": "person"}, m.Fields, "a column of an arm is no field")
	assert.Equal(t, map[string]string{"cost": "cost", "large": "large"}, m.Arms)
	n := 0
	for row, err := range past.Read(strings.NewReader(log), m) {
		require.NoError(t, err)
		assert.Equal(t, "ann", row.Event.Person)
		if n++; n == 3 {
			assert.Equal(t, map[string]float64{"cost": -1}, row.Values, "the other is open")
		}
	}
	assert.Equal(t, 3, n)
}

// In a cell that holds JSON, the import looks for a question or an answer, and otherwise takes the
// cell as text. A text in quotes is without them.
func TestCellsThatHoldJSON(t *testing.T) {
	m := past.Mapping{Fields: map[string]string{"text": "q", "session": "s", "cost": "c"}}
	cell := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	for in, want := range map[string]string{
		`"why?"`: "why?", `"\"why?\""`: `"why?"`, `{"text": "why?"}`: "why?", " ": " ", `{"a`: `{"a`,
	} {
		row, fault := one(t, "q,s,c\n"+cell(in)+","+cell(in)+",1\n", m)
		assert.Empty(t, fault)
		assert.Equal(t, want, row.Event.Text, in)
		assert.Equal(t, in, row.Event.Session)
	}
	for _, cost := range []string{"inf", "-inf", "NaN", "1e999"} {
		_, fault := one(t, "q,s,c\na,b,"+cost+"\n", m)
		assert.Contains(t, fault, "must be a number", cost)
	}
}

// What is not whole is a fault of its line, or the end of the log.
func TestLogsThatAreNotWhole(t *testing.T) {
	m := past.Mapping{Fields: map[string]string{"text": "text"}}
	require.ErrorContains(t, first(`[{"text":"a"}`, m), "after element 1")
	require.ErrorContains(t, first("a\"b,text\n1,2\n", m), "names of the columns")
	require.ErrorContains(t, first("{\"text\":\"a\"}\n1\n", m), "line 2: must be a JSON object")
	_, err := past.ReadMapping(strings.NewReader("{\n\"fields\": {\n\"text\" \"a\"}}"))
	require.ErrorContains(t, err, "line 3")
	_, err = past.ReadMapping(strings.NewReader("{fields"))
	require.ErrorContains(t, err, "line 1")
	proposed, err := past.Propose(strings.NewReader("{\"text\n{\"text\":\"why?\"}\n"))
	require.NoError(t, err, "a line at fault is passed over")
	assert.Equal(t, "text", proposed.Fields["text"])
	proposed, err = past.Propose(strings.NewReader("text,answer,id\nwhy?,,1\n"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"text": "text", "id": "id"}, proposed.Fields, "an empty column")
	for in, want := range map[string]string{ // the latency has a bound of a hundred years
		"3153600000": "", "3153600001": "must be in [0, 3.1536e+09]",
	} {
		_, fault := one(t, "latency\n"+in+"\n",
			past.Mapping{Fields: map[string]string{"latency": "latency"}})
		assert.Contains(t, fault, want)
		assert.Equal(t, want == "", fault == "", in)
	}
}

// A row at fault is named by its line and column, and the others are read.
func TestRowsAtFault(t *testing.T) {
	for log, want := range map[string][]string{
		"at,text,thumb,cost\n2026-01-31,a,up,\n2026-01-31,\"b\n\",up,\n2026-01-31,a,perhaps,\n1,a\n": {
			"line 5, thumb: is \"perhaps\", must be a number, or a word such as up or down, or be " +
				"among \"values\"",
			"line 6, byte 1: wrong number of fields"},
		"at,text,thumb,cost\n2026-01-31,a,up,\nsoon,a,up,\n": {
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

// Names that are no UTF-8 could become one name, and texts only lose a letter.
func TestNamesOfAnotherEncoding(t *testing.T) {
	m := past.Mapping{Fields: map[string]string{"person": "who", "text": "text"}}
	for _, log := range []string{"who,text\nJ\xfcrgen,a\n", "{\"who\":\"J\xfcrgen\"}"} {
		_, fault := one(t, log, m)
		assert.Contains(t, fault, ", who: must be UTF-8")
	}
	row, fault := one(t, "who,text\nann,\xfcber\n", m)
	assert.Empty(t, fault)
	assert.Equal(t, "\ufffdber", row.Event.Text)
}

// A mistyped column, or another separator, would import rows without what people asked. A constant
// is no column, and the lines of JSON need not have all fields.
func TestAColumnThatIsMissing(t *testing.T) {
	for log, want := range map[string]string{
		"id,question\n1,a\n":     `the mapping: the log has no column "text", only ["id" "question"]`,
		"id;text\n1;a\n":         `the mapping: the log has no column "id", only ["id;text"]`,
		"id,text\n1,a\n":         "",
		"id,text,text\n1,a,b\n":  `the mapping: the log has two columns "text"`,
		"id,text,x,x\n1,a,b,c\n": "",
		"{\"id\":1}\n":           "",
	} {
		var faults []string
		rows := 0
		for _, err := range past.Read(strings.NewReader(log), past.Mapping{
			Fields: map[string]string{"id": "id", "text": "text", "source": "=ci", "person": ""},
		}) {
			if rows++; err != nil {
				faults = append(faults, err.Error())
			}
		}
		assert.Equal(t, want, strings.Join(faults, "; "), log)
		assert.Equal(t, 1, rows)
	}
	err := first("id,text\n1,a\n", past.Mapping{
		Fields: map[string]string{"id": "id"}, Only: map[string]string{"org": "acme"},
	})
	assert.ErrorContains(t, err, `no column "org"`)
	err = first("id,a\n1,1\n", past.Mapping{Arms: map[string]string{"a": "a", "b": "b"}})
	assert.ErrorContains(t, err, `no column "b"`)
}

// first returns the first error of a log.
func first(log string, m past.Mapping) error {
	for _, err := range past.Read(strings.NewReader(log), m) {
		if err != nil {
			return err
		}
	}
	return nil
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
	within := "{\"text\":\"" + strings.Repeat("x", 16<<20-12) + "\"}\n"
	_, rows, faults = read(t, within)
	assert.Len(t, rows, 1)
	assert.Empty(t, faults)
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
		`{"id":1e999,"text":"a"}`:                 "1e999",
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
		`{"fields":{"texts":"a"}}`:                  "fields.texts",
		`{"fields":{"text":"a"},"scale":[5,1]}`:     "scale",
		`{"fields":{"text":"a"},"values":{"x":2}}`:  "values.x",
		`{"fields":{"text":"a"},"comma":";;"}`:      "comma",
		`{"fields":{"text":"a"},"comma":"\""}`:      "comma",
		`{"fields":{"text":"a"},"values":{"x":-2}}`: "values.x",
		`{"fields":{"text":"a"},"seconds":-1}`:      "seconds",
		`{}`:                                        "no fields",
		`{"field":{}, "fields":{"text":"a"}}`:       "unknown field",
	} {
		_, err := past.ReadMapping(strings.NewReader(text))
		assert.ErrorContains(t, err, want)
	}
	for _, text := range []string{
		`{"fields":{"text":"a"},"values":{"x":1,"y":-1},"scale":[2,2],"comma":";","seconds":0}`,
		`{"arms":{"a":"a"}}`, `{"fields":{"text":"a"},"comma":"☃"}`,
	} {
		_, err := past.ReadMapping(strings.NewReader(text))
		require.NoError(t, err)
	}
	_, err = past.Propose(strings.NewReader("a,b\n1,x\n"))
	assert.ErrorContains(t, err, "--map")
	_, err = past.Propose(strings.NewReader(""))
	assert.ErrorContains(t, err, "no row")
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

// A person who rated or corrected an answer is named, or is the one who asked.
func TestWhoJudges(t *testing.T) {
	fields := map[string]string{"person": "p", "value": "v", "rater": "r", "correction": "c",
		"reviewer": "w"}
	for log, want := range map[string][2]string{
		`{"p":"ann","v":1,"c":"No."}`:                     {"ann", "ann"},
		`{"p":"ann","v":1,"c":"No.","r":"bob","w":"kim"}`: {"bob", "kim"},
		`{"v":1,"c":" No. ","r":"bob","w":"kim"}`:         {"bob", "kim"},
	} {
		row, fault := one(t, log, past.Mapping{Fields: fields})
		require.Empty(t, fault)
		assert.Equal(t, want, [2]string{row.Reactions[0].Person, row.Corrections[0].Reviewer}, log)
		assert.Equal(t, "No.", row.Corrections[0].Text)
	}
	row, fault := one(t, `{"p":"ann","c":" "}`, past.Mapping{Fields: fields})
	assert.Empty(t, fault)
	assert.Empty(t, row.Corrections)
	_, fault = one(t, `{"p":"`+strings.Repeat("x", 2000)+`","v":7}`, past.Mapping{Fields: fields})
	assert.Contains(t, fault, "line 1, p: has 2000 bytes", "the first fault")
}

// A proposal looks at the first 1,000 rows and 500 columns.
func TestProposalsAreBounded(t *testing.T) {
	for n, want := range map[int][2]float64{998: {1, 5}, 999: {1, 5}, 1000: {0, 1}} {
		log := "text,rating\n" + strings.Repeat("a,1\n", n) + "a,2\n"
		m, err := past.Propose(strings.NewReader(log))
		require.NoError(t, err)
		assert.Equal(t, want, m.Scale, n)
	}
	for n, known := range map[int]bool{499: true, 500: false} {
		row := map[string]string{"text": "a"}
		for i := range n {
			row[fmt.Sprint("a", i)] = "b"
		}
		log, err := json.Marshal(row)
		require.NoError(t, err)
		_, err = past.Propose(bytes.NewReader(log))
		assert.Equal(t, known, err == nil, n)
	}
}

// A log that can't be read to its end is an error, and what was read before is there.
func TestALogThatEndsEarly(t *testing.T) {
	for log, rows := range map[string]int{
		"text\na\nb\n": 2, "{\"text\":\"a\"}\n{\"text\":\"b\"}\n": 2,
		"[{\"text\":\"a\"},{\"text\":\"b\"},": 2, "{\"text\":\"a\"}\n{\"te": 1, "text": 0, "": 0,
		"\n": 0,
	} {
		from := func() io.Reader {
			return io.MultiReader(strings.NewReader(log), iotest.ErrReader(io.ErrNoProgress))
		}
		n, m := 0, past.Mapping{Fields: map[string]string{"text": "text"}}
		var last error
		for row, err := range past.Read(from(), m) {
			if last = err; err == nil {
				n++
				assert.NotEmpty(t, row.Event.Text)
			}
		}
		assert.Equal(t, rows, n, log)
		require.ErrorIs(t, last, io.ErrNoProgress, log)
		_, err := past.Propose(from())
		require.ErrorIs(t, err, io.ErrNoProgress, log)
	}
}

// Who has read enough of a log may stop.
func TestALogIsReadAsFarAsIsWanted(t *testing.T) {
	for _, log := range []string{"text\na\nb\n", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n",
		"[{\"text\":\"a\"},{\"text\":\"b\"}]"} {
		m := past.Mapping{Fields: map[string]string{"text": "text"}}
		for row, err := range past.Read(strings.NewReader(log), m) {
			require.NoError(t, err)
			assert.Equal(t, "a", row.Event.Text)
			break
		}
	}
}

// A proposal looks into lists and objects, also if they are empty, however deep they are.
func TestProposalsLookInside(t *testing.T) {
	m, rows, faults := read(t, `{"none":[],"empty":{},"text":"x",`+
		`"a":{"b":[{"c":{"metadata":{"user_id":"ann"}}},7]}}`)
	assert.Empty(t, faults)
	assert.Equal(t, "a.b.0.c.metadata.user_id", m.Fields["person"])
	assert.Equal(t, "ann", rows[0].Event.Person)
}

// A fault has the number of its line in the file, which also counts the lines before the log.
func TestLinesOfFaults(t *testing.T) {
	_, _, faults := read(t, "\n \ntext,thumb\na,up\nb\n\"c,up\nd,up\n")
	assert.Equal(t, []string{"line 5, byte 1: wrong number of fields",
		"line 6: extraneous or missing \" in quoted-field, up to line 7"}, faults)
	_, _, faults = read(t, "\n{\"text\":\"a\"}\n{\"text\":\"a\"} {}\n null\n")
	assert.Equal(t, []string{"line 3, byte 14: invalid character '{' after top-level value",
		"line 4: must be a JSON object"}, faults)
}

// A column without a use is listed, because its values are not imported.
func TestUnusedColumnsAreListed(t *testing.T) {
	m, err := past.Propose(strings.NewReader("text,answer,arm,thumb,mood\nHi,Yo,a,up,good\n"))
	require.NoError(t, err)
	assert.Equal(t, []string{"mood"}, m.Unused)
}

// one returns the only row of a log that is read with a mapping, or its fault.
func one(t *testing.T, log string, m past.Mapping) (row past.Row, fault string) {
	t.Helper()
	n := 0
	for r, err := range past.Read(strings.NewReader(log), m) {
		if n++; err != nil {
			fault = err.Error()
		}
		row = r
	}
	require.Equal(t, 1, n, log)
	return row, fault
}

// A rating is on the scale that the ratings of the log are on.
func TestScales(t *testing.T) {
	for ratings, want := range map[string]struct {
		scale [2]float64
		last  float64 // what the last one is worth
	}{
		"up,down":          {[2]float64{}, -1},
		"-1,0,1":           {[2]float64{}, 1},
		"-0.5,0.25":        {[2]float64{}, 0.25},
		"0,1":              {[2]float64{0, 1}, 1},
		"0.25,0.75":        {[2]float64{0, 1}, 0.5},
		"2,4":              {[2]float64{1, 5}, 0.5},
		"0,1.5,5":          {[2]float64{0, 5}, 1},
		"0.5,5,2.5":        {[2]float64{0, 5}, 0},
		"1,6":              {[2]float64{1, 10}, 1. / 9},
		"0,10,5":           {[2]float64{0, 10}, 0},
		"10.5,50":          {[2]float64{0, 100}, 0},
		"1,100":            {[2]float64{0, 100}, 1},
		"20,100.5":         {[2]float64{0, 101}, 2*100.5/101 - 1},
		"-2,1":             {[2]float64{-2, 2}, 0.5},
		"-2,-4,3":          {[2]float64{-4, 4}, 0.75},
		"-3,6":             {[2]float64{-6, 6}, 1},
		"up,1,perhaps,2,3": {[2]float64{1, 5}, 0},
	} {
		log := "text,rating\na," + strings.ReplaceAll(ratings, ",", "\na,") + "\n"
		m, rows, _ := read(t, log)
		assert.Equal(t, want.scale, m.Scale, ratings)
		assert.InDelta(t, want.last, rows[len(rows)-1].Reactions[0].Value, 1e-12, ratings)
		above, _, _ := strings.Cut(log, "\na")
		_, fault := one(t, above+"\na,1e9\n", m)
		assert.Contains(t, fault, "rating: is 1e+09, must be in [", ratings)
		_, fault = one(t, above+"\na,-1e9\n", m)
		assert.Contains(t, fault, "rating: is -1e+09, must be in [", ratings)
	}
}

// Words of the mapping come first, and words count on each scale.
func TestWordsForWorth(t *testing.T) {
	m := past.Mapping{Fields: map[string]string{"value": "v"}, Scale: [2]float64{0, 10},
		Values: map[string]float64{"meh": -0.25, "good": 0.5}}
	for value, want := range map[string]float64{
		`"meh"`: -0.25, `"good"`: 0.5, `"Thumbs-Up"`: 1, `"thumbs_down"`: -1, `"neutral"`: 0,
		`true`: 1, `false`: -1, `10`: 1, `"2.5"`: -0.5, `0`: -1,
	} {
		row, fault := one(t, `{"v":`+value+`}`, m)
		require.Empty(t, fault, value)
		require.Len(t, row.Reactions, 1, value)
		assert.InDelta(t, want, row.Reactions[0].Value, 1e-12, value)
	}
	for _, missing := range []string{`{"v":null}`, `{"v":""}`, `{}`} {
		row, fault := one(t, missing, m)
		assert.Empty(t, fault+strings.Repeat("x", len(row.Reactions)), missing)
	}
	for value, fault := range map[string]string{
		`"Meh"`: "must be a number", `11`: "must be in [0, 10]", `-1`: "must be in [0, 10]",
		`"NaN"`: "must be a number", `"1e999"`: "must be a number",
	} {
		_, got := one(t, `{"v":`+value+`}`, m)
		assert.Contains(t, got, fault, value)
	}
}

// One moment is read in each form, and in each unit since 1970.
func TestMoments(t *testing.T) {
	m := past.Mapping{Fields: map[string]string{"at": "at"}}
	for _, form := range []string{
		`"2026-01-31T15:04:05Z"`, `"2026-01-31T16:04:05+01:00"`, `"2026-01-31T15:04:05.000"`,
		`"2026-01-31 15:04:05"`, `"2026-01-31 17:04:05+02:00"`, `"2026-01-31 17:04:05.0+02"`,
		`"2026-01-31 15:04:05.5 +0000 UTC"`, `"Sat, 31 Jan 2026 15:04:05 GMT"`,
		`"Sat, 31 Jan 2026 16:04:05 +0100"`, `1769871845`, `"1769871845.25"`, `1769871845000`,
		`1769871845000000`, `1769871845000000000`,
	} {
		row, fault := one(t, `{"at":`+form+`}`, m)
		require.Empty(t, fault, form)
		assert.True(t, row.Event.At.Truncate(time.Second).Equal(at), "%s is %v", form, row.Event.At)
	}
	for form, want := range map[string]time.Time{
		`"2026-01-31T15:04"`: at.Add(-5 * time.Second), `"2026-01-31 15:04"`: at.Add(-5 * time.Second),
		`"2026-01-31"`: at.Truncate(24 * time.Hour), `"1970-01-01"`: time.Unix(0, 0), `0`: time.Unix(0, 0), `1.5`: time.UnixMilli(1500),
		`253402300799`: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		`253402300800`: time.UnixMilli(253402300800), `"0001-01-01T00:00:00Z"`: {}, `null`: {},
	} {
		row, fault := one(t, `{"at":`+form+`}`, m)
		require.Empty(t, fault, form)
		assert.True(t, row.Event.At.Truncate(time.Millisecond).Equal(want), "%s is %v", form,
			row.Event.At)
	}
	for _, form := range []string{`-1`, `"1969-12-31T23:59:59Z"`, `"noon"`, `253402300800e9`} {
		_, fault := one(t, `{"at":`+form+`}`, m)
		assert.Contains(t, fault, "line 1, at: is ", form)
	}
}

// How long an answer took is its latency, in the unit of the mapping, or the time from its
// beginning to its end.
func TestLatencies(t *testing.T) {
	fields := map[string]string{"at": "at", "end": "end", "latency": "took"}
	for log, want := range map[string]time.Duration{
		`{"took":3.1e9}`: 3.1e9 * time.Second,
		`{"took":2}`:     2 * time.Second, `{"took":"0.5"}`: time.Second / 2, `{}`: 0,
		`{"at":100,"end":103}`: 3 * time.Second, `{"at":100,"end":100}`: 0, `{"at":100,"end":99}`: 0,
		`{"at":100}`: 0, `{"at":100,"end":103,"took":1}`: time.Second,
	} {
		row, fault := one(t, log, past.Mapping{Fields: fields})
		assert.Empty(t, fault, log)
		assert.Equal(t, want, row.Spent.Latency, log)
	}
	row, _ := one(t, `{"took":2}`, past.Mapping{Fields: fields, Seconds: 0.001})
	assert.Equal(t, 2*time.Millisecond, row.Spent.Latency)
	row, _ = one(t, `{"took":5e9}`, past.Mapping{Fields: fields, Seconds: 0.001})
	assert.Equal(t, 5e6*time.Second, row.Spent.Latency)
	for took, unit := range map[string]float64{"3.2e9": 1, "-1": 1, "3.2e12": 0.001} {
		_, fault := one(t, `{"took":`+took+`}`, past.Mapping{Fields: fields, Seconds: unit})
		assert.Contains(t, fault, "took: is ", took)
	}
}

// Of a conversation, the last message of the user is what was asked, and the last one of the
// assistant what was answered. A cell of CSV may have it in JSON.
func TestConversations(t *testing.T) {
	m := past.Mapping{Fields: map[string]string{"text": "t", "answer": "t", "id": "t"}}
	for value, want := range map[string][2]string{
		`"plain"`: {"plain", "plain"},
		`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},` +
			`{"role":"user","content":"c"}]`: {
			"c", "b"},
		`[{"type":"human","content":"a"},{"type":"ai","content":"b"}]`:             {"a", "b"},
		`[{"role":"system","content":"a"},{"role":"tool","content":"b"}]`:          {"b", "b"},
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`:    {"a", "a"},
		`{"choices":[{"message":{"role":"assistant","content":"a"}}],"data":"no"}`: {"a", "a"},
		`{"kwargs":{"content":"a"},"message":null}`:                                {"a", "a"},
		`{"other":1}`: {`{"other":1}`, `{"other":1}`}, `[]`: {"[]", "[]"}, `true`: {"true", "true"},
		`"{\"question\":\"a\"}"`: {"a", "a"}, `"[\"a\",\"b\"]"`: {"b", "b"}, `" \"a\" "`: {"a", "a"},
		`"{no JSON"`: {"{no JSON", "{no JSON"}, `1.50`: {"1.5", "1.5"}, `1e3`: {"1000", "1000"},
	} {
		row, fault := one(t, `{"t":`+value+`}`, m)
		require.Empty(t, fault, value)
		assert.Equal(t, want, [2]string{row.Event.Text, row.Text}, value)
	}
	row, _ := one(t, `{"t":"[{\"role\":\"user\",\"content\":\"a\"}]"}`, m)
	assert.True(t, strings.HasPrefix(row.Event.ID, "[{"), "a name stays as it is written")
	row, _ = one(t, `{"t":[{"role":"user"}]}`, m)
	assert.JSONEq(t, `[{"role":"user"}]`, row.Event.ID)
	row, _ = one(t, `{"t":"a\u0000b"}`, m)
	assert.Equal(t, "ab", row.Event.Text, "no store keeps a NUL")
}

// What is as long as the agent takes is read.
func TestRowsWithinTheLimits(t *testing.T) {
	m := past.Mapping{Fields: make(map[string]string)}
	for _, f := range past.Fields {
		m.Fields[f.Name] = f.Name
	}
	long := strings.Repeat("x", 1024)
	for field, value := range map[string]any{
		"id": long[:900], "person": long, "session": long, "domain": long, "item": long,
		"context": long, "task": long[:512], "arm": long, "answer": strings.Repeat("x", 512<<10),
		"correction": strings.Repeat("ß", 500), "cost": 1e6, "tokens": 1e12, "propensity": 1,
		"rater": long, "source": long, "reviewer": long,
	} {
		text, err := json.Marshal(map[string]any{"value": 1, "correction": "No.", "person": "ann",
			field: value})
		require.NoError(t, err)
		_, fault := one(t, string(text), m)
		assert.Empty(t, fault, field)
	}
	for field, fault := range map[string]string{
		"cost": "cost: is 1e+13, must be in [0, 1e+06]", "propensity": "must be in [0, 1]",
		"tokens": "tokens: is 1e+13, must be in [0, 1e+12]",
	} {
		_, got := one(t, `{"`+field+`":1e13}`, m)
		assert.Contains(t, got, fault)
	}
	_, fault := one(t, `{"correction":"No."}`, m)
	assert.Contains(t, fault, "needs a reviewer")
}

// A field may be a text of the mapping, and rows of other kinds are passed over.
func TestConstantsAndOtherRows(t *testing.T) {
	m := past.Mapping{Fields: map[string]string{"text": "q.0.a", "outcome": "ok", "source": "=ci"},
		Only: map[string]string{"kind": "answer", "test": ""}}
	row, fault := one(t, `{"kind":"step","q":"no"}
		{"kind":"answer","test":true}
		{"kind":"answer","q":[{"a":"yes"}],"ok":"up"}`, m)
	require.Empty(t, fault)
	assert.Equal(t, "yes", row.Event.Text)
	require.Len(t, row.Outcomes, 1)
	assert.Equal(t, "ci", row.Outcomes[0].Source)
	for _, path := range []string{"q.1.a", "q.-1.a", "q.x.a", "q.0.a.b", "q.0.b", "q", "kind.x"} {
		m := past.Mapping{Fields: map[string]string{"person": path}}
		row, fault := one(t, `{"kind":"answer","q":[{"a":"yes"}]}`, m)
		require.Empty(t, fault)
		assert.Equal(t, path == "q", row.Event.Person != "", path)
	}
	row, _ = one(t, `{"a.b":{"c":"x"},"a":{"b":"y"}}`,
		past.Mapping{Fields: map[string]string{"person": "a.b.c", "item": "a.b"}})
	assert.Equal(t, [2]string{"", `{"c":"x"}`}, [2]string{row.Event.Person, row.Event.Item},
		"a name may have dots")
}

// Of a trace's steps, only those are answers that the program marks as such.
func TestStepsOfTraces(t *testing.T) {
	for log, want := range map[string]map[string]string{
		"trace_id,type,input\nt,GENERATION,a\nt,SPAN,b\n": {"type": "GENERATION"},
		"type,trace_id,input\nGENERATION,t,a\n":           {"type": "GENERATION"},
		"trace_id,type,input\nt,SPAN,b\n":                 nil,
		"trace_id,input\nt,b\n":                           nil,
		"type,input\nGENERATION,b\n":                      nil,
		"run_type,parent_run_id,input\nllm,,a\n":          {"parent_run_id": ""},
		"parent_run_id,run_type,input\np,llm,a\n":         {"parent_run_id": ""},
		"run_type,input\nllm,a\n":                         nil,
	} {
		m, err := past.Propose(strings.NewReader(log))
		require.NoError(t, err)
		assert.Equal(t, want, m.Only, log)
	}
}

// CSV may have other separators. Blanks before a log, and a byte order mark, are no part of it.
func TestSeparatorsAndBeginnings(t *testing.T) {
	for comma, log := range map[string]string{
		"": "text,thumb,x;y\na,up,z\n", ";": "text;thumb;x,y\na;up;z\n", "\t": "text\tthumb\na\tup\n",
		"|": "text|thumb\na|up\n",
	} {
		for _, before := range []string{"", "\ufeff", "\n \t\r\n"} {
			m, rows, faults := read(t, before+log)
			assert.Equal(t, comma, m.Comma)
			assert.Empty(t, faults)
			require.Len(t, rows, 1)
			assert.Equal(t, "a", rows[0].Event.Text)
			assert.Equal(t, fmt.Sprint("line ", 2+strings.Count(before, "\n")), rows[0].At)
		}
	}
	for _, log := range []string{
		"\n{\"text\":\"a;b|c\"}\n\n{\"text\":\"b\"}", "\ufeff[{\"text\":\"a;b\"},{\"text\":\"b\"}]",
	} {
		m, rows, faults := read(t, log)
		assert.Empty(t, m.Comma)
		assert.Empty(t, faults)
		require.Len(t, rows, 2)
		assert.Equal(t, "b", rows[1].Event.Text)
	}
	_, rows, _ := read(t, "\n{\"text\":\"a\"}\n\n{\"text\":\"b\"}")
	assert.Equal(t, []string{"line 2", "line 4"}, []string{rows[0].At, rows[1].At})
}

// A column is proposed for a field only if more than half of its values can be one, and the columns
// of a log of all arms only if each row has all of them.
func TestProposals(t *testing.T) {
	fields := func(log string) map[string]string {
		m, err := past.Propose(strings.NewReader(log))
		require.NoError(t, err)
		return m.Fields
	}
	for name, rows := range map[string]string{
		"":        "0.5\nx,\nx,soon\nx,later\nx,0.25\n",
		"latency": "0.5\nx,\nx,soon\nx,0.25\n",
	} {
		assert.Equal(t, map[bool]string{true: "latency"}[name != ""],
			fields("text,latency\nx," + rows)["latency"], rows)
	}
	assert.Empty(t, fields(`{"text":"a","user":{"x":"ann"}}`)["person"], "an object is no name")
	m, err := past.Propose(strings.NewReader("text,latency_ms\na,3\n"))
	require.NoError(t, err)
	assert.InDelta(t, 0.001, m.Seconds, 0)
	for log, arms := range map[string]int{
		"text,small,large\na,1,0\nb,0,1\n": 2, "text,small,large\na,1,\nb,0,1\n": 0,
		"text,small,large\na,2,3\nb,0,1\n": 0, "text,small\na,1\nb,0\n": 0,
		"text,thumb,small,large\na,up,1,0\nb,down,0,1\n": 0, "text,arm,a,b\nx,a,1,0\ny,b,0,1\n": 0,
	} {
		m, err := past.Propose(strings.NewReader(log))
		require.NoError(t, err)
		assert.Len(t, m.Arms, arms, log)
	}
	var wide strings.Builder
	wide.WriteString("text")
	for i := range 20 {
		fmt.Fprintf(&wide, ",z%d", i)
	}
	m, err = past.Propose(strings.NewReader(wide.String() + "\na" + strings.Repeat(",b", 20) + "\n"))
	require.NoError(t, err)
	assert.Equal(t, "z11", m.Unused[len(m.Unused)-1], "twelve are enough")
}
