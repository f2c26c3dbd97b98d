package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
)

// A desk is a client of the protocol, with the process that it has started.
type desk struct {
	t       *testing.T
	process *exec.Cmd
	*sdk.ClientSession
}

func startDesk(t *testing.T, version string, args ...string) desk {
	t.Helper()
	process := exec.Command(command, args...)
	process.Env, process.Stderr = environ(), t.Output()
	client := sdk.NewClient(&sdk.Implementation{Name: "desk", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: process},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	return desk{t, process, session}
}

func (d desk) do(tool string, in map[string]any) map[string]any {
	d.t.Helper()
	result, err := d.CallTool(d.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	require.NoError(d.t, err)
	require.False(d.t, result.IsError, "%v", result.Content)
	return result.StructuredContent.(map[string]any)
}

// TestMCP starts the command as adapter/mcp/README.md has it in a client's configuration. The next
// process and the other commands know what the first one learned.
func TestMCP(t *testing.T) {
	t.Parallel()
	db, args := filepath.Join(t.TempDir(), "heed.db"), configured(t)
	lessons := filepath.Join(t.TempDir(), "lessons.json")
	note := `{"notes": [{"id": "db-1", "text": "db-1 is the billing database."}]}`
	require.NoError(t, os.WriteFile(lessons, []byte(note), 0o600))
	paths := strings.NewReplacer("/home/ann/heed.db", db, "/home/ann/lessons.json", lessons)
	for i := range args {
		args[i] = paths.Replace(args[i])
	}
	first := startDesk(t, "", args...)
	plan := first.do("prepare", map[string]any{"text": "The disk of db-1 is full."})
	assert.Contains(t, plan["system"], "db-1 is the billing database.")
	id := plan["id"].(string)
	first.do("answered", map[string]any{"id": id, "text": "Rotate its logs."})
	made := first.do("correct", map[string]any{"answer": id, "text": "Name the server."})
	require.NoError(t, first.Close())

	second := startDesk(t, "2025-11-25", args...)
	second.do("react", map[string]any{"answer": id, "value": 1})
	require.NoError(t, second.process.Process.Signal(syscall.SIGTERM))
	require.NoError(t, second.Close(), "a signal ends it well")

	r := call{args: []string{"--db", db, "answers", id, "--agent", "mcp"}}.run(t)
	require.Zero(t, r.code, r.err)
	assert.Contains(t, r.out, "Rotate its logs.")
	kept, err := feedback.Open(ctx, feedback.Config{Store: host(t, db).store})
	require.NoError(t, err)
	correction, err := kept.Feedback(ctx, made["id"].(string))
	require.NoError(t, err)
	assert.Equal(t, "ann", correction.Reviewer)
}

// configured returns the arguments of the command in adapter/mcp/README.md.
func configured(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../adapter/mcp/README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, block)
	var file struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	require.NoError(t, json.Unmarshal(block[1], &file))
	require.Equal(t, "heed", file.Servers["heed"].Command)
	return file.Servers["heed"].Args
}

// TestMCPLeavesTheGate of rules as the application has it.
func TestMCPLeavesTheGate(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	_, err := feedback.New(ctx, feedback.Config{Store: w.store, Now: w.clock,
		Gate: feedback.Gate{Quorum: 4}})
	require.NoError(t, err)
	require.NoError(t, startDesk(t, "", "--db", db, "mcp").Close())
	kept, err := feedback.Open(ctx, feedback.Config{Store: host(t, db).store})
	require.NoError(t, err)
	assert.Equal(t, 4, kept.Config().Gate.Quorum)
}

func TestMCPMisused(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "heed.db")
	for says, args := range map[string][]string{
		"--now is for looking": {"--db", db, "--now", "2026-01-09", "mcp"},
		"which store":          {"mcp"},
	} {
		assertFails(t, call{args: args}.run(t), misuse, says)
	}
	assert.NoFileExists(t, db)
}

// An agent that opens a store in place of its application keeps the application's settings.
func TestTheSettingsStay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.db")
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	cfg := loop.Config{DB: db, Arms: []loop.Arm{{ID: "short"}}, Instruments: []string{"ci"}}
	cfg.Tuning.Learning.Initial = 0.4
	cfg.Tuning.Strategy.Prior = evidence.Beta{Alpha: 2, Beta: 1}
	cfg.Tuning.Feedback.Gate.Quorum = 3
	_, err = loop.New(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	r := call{args: []string{"--db", file, "mcp"}}.run(t)
	require.Zero(t, r.code, r.err)
	r = call{args: []string{"--db", file, "--tenant", "acme", "mcp", "--new"}}.run(t)
	require.Zero(t, r.code, r.err)
	r = call{args: []string{"--db", file, "--agent", "lop", "mcp"}}.run(t)
	assert.Equal(t, 1, r.code, "a mistyped agent is no new one")
	assert.Contains(t, r.err, `no agent "lop"`)
	audit := call{args: []string{"--db", file, "store", "audit"}}.run(t)
	assert.NotContains(t, audit.out, "settings", audit.err)
	lessons := filepath.Join(t.TempDir(), "lessons.json")
	require.NoError(t, os.WriteFile(lessons, []byte(`{"arms": [{"id": "short"}]}`), 0o600))
	r = call{args: []string{"--db", file, "mcp", "--lessons", lessons}}.run(t)
	require.Zero(t, r.code, r.err)
	audit = call{args: []string{"--json", "--db", file, "store", "audit"}}.run(t)
	assert.NotContains(t, audit.out, "Instruments", audit.err)
	assert.NotContains(t, audit.out, "Prior", audit.err)
}
