// Package turn has what the adapters of frameworks share: a message on its way through an agent.
package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/thoughts"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
)

// A Turn is the answering of one message. Frameworks call models and tools at once, so hold its
// lock for its fields and methods. [Turn.Refusal] and [Turn.Tool] take it. It is
// safe for concurrent use that way.
type Turn struct {
	sync.Mutex

	Agent    *loop.Agent
	Enforce  bool // calls of tools that break a rule are refused
	Event    loop.Event
	Said     string // the person's message
	Prepared bool
	Plan     loop.Plan
	Reply    loop.Reply
	Failed   error // of a tool, since the model's last call
	Lost     error // why a tool's result could not be reported to heed
	Told     bool  // of the answer
}

// Prepare prepares the turn, once.
func (t *Turn) Prepare(ctx context.Context) (err error) {
	if t.Prepared {
		return nil
	}
	t.Plan, err = t.Agent.Prepare(ctx, t.Event)
	t.Prepared = err == nil
	return err
}

// Open reports whether the model's answer is awaited.
func (t *Turn) Open() bool { return t.learns() && !t.Told }

func (t *Turn) learns() bool { return t.Prepared && !t.Plan.Ready }

// Count keeps how a call of the model ended, and what it took.
func (t *Turn) Count(in, out int, took time.Duration, cut bool, err error) {
	t.Reply.InputTokens += max(in, 0)
	t.Reply.OutputTokens += max(out, 0)
	t.Reply.Latency += max(took, 0)
	t.Reply.Cut, t.Reply.Err = cut, err
}

// Answered reports the answer to heed.
func (t *Turn) Answered(ctx context.Context, text string) (loop.Answer, error) {
	if t.Lost != nil {
		return loop.Answer{}, t.Lost
	}
	t.Reply.Text = text
	answer, err := t.Agent.Answered(ctx, t.Plan, t.Reply)
	if err != nil {
		return loop.Answer{}, err
	}
	t.Told = true
	if answer.Text == "" {
		return loop.Answer{}, errors.New("heed has no answer: " + answer.Result.Reason)
	}
	return answer, nil
}

// Fail reports to heed that the model failed, unless the context ended.
func (t *Turn) Fail(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the model did not fail, but the caller left
	}
	t.Told = true
	_, err := t.Agent.Answered(ctx, t.Plan, t.Reply)
	return err
}

// ToolFailed makes the failure of a tool the reason for the missing answer, if the model did not
// fail. It does not count against the model, whatever the tool's error is.
func (t *Turn) ToolFailed() {
	if t.Reply.Err == nil && t.Failed != nil {
		t.Reply.Err = &llm.Error{Failure: llm.Unrecognised, Err: t.Failed}
	}
}

// The replies to the model if its arm does not list the tool, and if a call could not be checked.
const (
	refused = "This tool is not available."
	unasked = "The call is not made, because the rules can't be checked."
)

// Refusal returns why a call of a tool is not made, or "". Rules hold in each turn, whether heed
// prepared it or not.
func (t *Turn) Refusal(ctx context.Context, id, name string, input any) string {
	t.Lock()
	defer t.Unlock()
	if t.learns() && !t.lists(name) {
		return refused
	}
	if !t.Enforce {
		return ""
	}
	text, err := encode(input)
	if err != nil {
		return unasked
	}
	broken, err := t.Agent.Tool(ctx, cmp.Or(t.Plan.Event.ID, t.Event.ID, id, "call"),
		loop.ToolResult{ID: id, Name: name, Input: text, Before: true})
	if err != nil {
		t.Lost = errors.Join(t.Lost, err)
		return unasked
	}
	if len(broken) == 0 {
		return ""
	}
	reasons := []string{"The call is not made. It breaks a rule:"}
	for _, v := range broken {
		reasons = append(reasons, "- "+v.Text+" ("+v.Reason+")")
	}
	return strings.Join(reasons, "\n")
}

// lists reports whether the plan's arm lets the model call a tool.
func (t *Turn) lists(tool string) bool {
	return t.Plan.Arm.Tools == nil || slices.Contains(t.Plan.Arm.Tools, tool)
}

// Offered returns the tools that the plan's arm lets the model call.
func Offered[T any](t *Turn, tools []T, name func(T) string) []T {
	if t.Plan.Arm.Tools == nil {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(tool T) bool { return !t.lists(name(tool)) })
}

// Tool reports a tool's result to heed, if heed can learn from it. Because of the call's id, the
// result counts once.
func (t *Turn) Tool(ctx context.Context, id, name string, input, result any, failure error) {
	t.Lock()
	defer t.Unlock()
	if !t.learns() {
		return
	}
	t.Failed = cmp.Or(t.Failed, failure)
	given := loop.ToolResult{ID: id, Name: name, Err: failure, Task: t.Plan.Event.Task}
	given.Input, _ = encode(input) // what JSON can't express is left out
	given.Text, _ = encode(result)
	if _, err := t.Agent.Tool(ctx, t.Plan.Event.ID, given); err != nil {
		t.Lost = errors.Join(t.Lost,
			fmt.Errorf("heed did not get the result of tool %s: %w", name, err))
	}
}

// encode returns a text as it is, and any other value as JSON. Without a value it returns "".
func encode(v any) (string, error) {
	if text, ok := v.(string); ok {
		return text, nil
	}
	text, err := json.Marshal(v)
	if err != nil || string(text) == "null" {
		return "", err
	}
	return string(text), nil
}

// ModelOf returns the model that an arm names, or main if the arm names no model.
func ModelOf[M comparable](models map[string]M, main M, arm *loop.Arm) (M, error) {
	var none M
	if arm.ModelName == "" {
		return main, nil
	}
	if named := models[arm.ModelName]; named != none {
		return named, nil
	}
	return none, fmt.Errorf("the arm %q names the model %q, which the adapter does not know",
		arm.ID, arm.ModelName)
}

// The keys of a message's metadata.
const (
	idKey    = "heed.answer"
	rulesKey = "heed.breaks"
)

// ID returns the id of the answer that a message of this metadata is, or "".
func ID(metadata map[string]any) string {
	id, _ := metadata[idKey].(string)
	return id
}

// Metadata returns metadata with the id of an answer, and the ids of the rules that it breaks with
// spaces between them.
func Metadata(m map[string]any, id string, broken []feedback.Violation) map[string]any {
	m = maps.Clone(m)
	if m == nil {
		m = make(map[string]any)
	}
	m[idKey] = id
	if len(broken) > 0 {
		rules := make([]string, len(broken))
		for i, v := range broken {
			rules[i] = v.Rule
		}
		m[rulesKey] = strings.Join(rules, " ")
	}
	return m
}

// Speech leaves thoughts in tags out of what a model streams. It must not be used concurrently.
type Speech struct{ reader thoughts.Reader }

// Say returns what may be shown after the next piece.
func (s *Speech) Say(text string) string {
	shown, _ := s.reader.Write(text)
	return shown
}

// Rest returns what was held back. The next piece then begins another text.
func (s *Speech) Rest() string {
	rest, _ := s.reader.Close()
	s.reader = thoughts.Reader{}
	return rest
}
