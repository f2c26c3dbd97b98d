package mcp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
	"github.com/heedhq/heed/patterns"
)

var update = flag.Bool("update", false, "write testdata/exchange.txt")

// Long numbers are written with six digits, because processors round differently.
var long = regexp.MustCompile(`\d+\.\d{7,}`)

// calls lists what a client calls, in order: a tool and its arguments.
var calls = [][2]string{
	{"prepare", `{"text":"The disk of db-1 is full.","session":"c1","task":"t1","id":"m1"}`},
	{"prepare", `{"text":"A certificate has expired.","id":"m2"}`},
	{"prepare", `{"text":" "}`}, {"prepare", `{"text":"x","person":"bob"}`},
	{"tool_result", `{"answer":"m1","call":"1","name":"df","error":"no such host"}`},
	{"tool_result", `{"answer":"m1","call":"2","name":"df","input":"{}","before":true}`},
	{"answered", `{"id":"m1","text":"<think>Hm.</think>Rotate its logs.","latency_ms":12.5}`},
	{"answered", `{"id":"other","text":"x"}`},
	{"react", `{"answer":"m1","value":1}`}, {"react", `{"answer":"m1","value":1.5}`},
	{"react", `{"answer":"other","value":1}`}, {"react", `{"answer":"m1","value":1,"weight":2}`},
	{"outcome", `{"answer":"m1","success":false,"retries":2,"duration_ms":1500}`},
	{"outcome", `{"answer":"m1"}`},
	{"correct", `{"answer":"m1","text":"Name the server in the first line."}`},
	{"correct", `{"answer":"m1","text":""}`},
	{"undo", `{"answer":"m1"}`}, {"undo", `{"answer":"other"}`},
	{"propose", `{"text":"Answer in English.","reason":"Tickets were mixed up."}`},
	{"propose", `{"text":"two\nlines","reason":"x"}`},
	{"explain", `{"answer":"m2"}`}, {"explain", `{"answer":"other"}`}, {"explain", `{}`},
}

// A client sees exactly the tools, results and errors of testdata/exchange.txt. After a
// change, run the test with -update and read the difference.
func TestTheWholeExchange(t *testing.T) {
	cfg := taught()
	cfg.Lessons.Arms = append(cfg.Lessons.Arms[:1:1], loop.Arm{ID: "long", System: "Explain."})
	agent, _ := looptest.New(t, cfg)
	_, err := agent.Patterns().Define(t.Context(), patterns.Pattern{
		ID: "edits", Anti: true, Reason: "It broke the build.", Content: "Edit before reading.",
	})
	require.NoError(t, err)
	c := inMemory(t, mcp.Config{Agent: agent, Person: "ann"}, newest)
	var b strings.Builder
	write := func(heading string, value any) {
		text, err := json.MarshalIndent(value, "", " ")
		require.NoError(t, err)
		fmt.Fprintf(&b, "# %s\n%s\n", heading, text)
	}
	server := c.InitializeResult()
	require.NotEmpty(t, server.ServerInfo.Version)
	write("server", []any{server.ServerInfo.Name, server.ServerInfo.Title, server.Capabilities})
	require.Equal(t, mcp.Instructions, server.Instructions)
	for tool, err := range c.Tools(t.Context(), nil) {
		require.NoError(t, err)
		schema := tool.InputSchema.(arguments)
		tool.InputSchema = arguments{"required": schema["required"], "type": schema["type"],
			"additionalProperties": schema["additionalProperties"]}
		write("tool", tool)
	}
	names := strings.NewReplacer() // what heed calls the client's messages, by what the client does
	var pairs []string
	for _, call := range calls {
		var in arguments
		require.NoError(t, json.Unmarshal([]byte(names.Replace(call[1])), &in))
		got, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: call[0], Arguments: in})
		require.NoError(t, err)
		if out, is := got.StructuredContent.(arguments); is && call[0] == "prepare" {
			pairs = append(pairs, `"`+in["id"].(string)+`"`, `"`+out["id"].(string)+`"`)
			names = strings.NewReplacer(pairs...)
		}
		got.Meta = nil // it has the version
		if text := got.Content[0].(*sdk.TextContent); !got.IsError {
			structured, err := json.Marshal(got.StructuredContent)
			require.NoError(t, err)
			require.JSONEq(t, string(structured), text.Text)
			text.Text = "the same"
		}
		write(call[0]+" "+call[1], got)
	}
	written := long.ReplaceAllStringFunc(b.String(), func(number string) string {
		value, err := strconv.ParseFloat(number, 64)
		require.NoError(t, err)
		return strconv.FormatFloat(value, 'g', 6, 64)
	})
	const file = "testdata/exchange.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(written), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(written, "\n") {
		require.Less(t, i, len(lines))
		require.Equal(t, lines[i], line, "%s:%d", file, i+1)
	}
	require.Len(t, written, len(want))
}
