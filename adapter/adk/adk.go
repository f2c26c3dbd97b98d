// Package adk lets the agents of Google's Agent Development Kit (ADK) learn through a [loop.Agent].
//
//	heeding, err := adk.New(adk.Config{Agent: agent})
//	root, err := llmagent.New(llmagent.Config{Name: "ops", Model: heeding.Model(gemini, nil)})
//	plugins := runner.PluginConfig{Plugins: []*plugin.Plugin{heeding.Plugin()}}
//	r, err := runner.New(runner.Config{Agent: root, PluginConfig: plugins})
//
// If a trusted heuristic applies, the plugin answers a run of the runner with it. Otherwise it adds
// what was learned to the model's request. It reports the model's answer and the results of tools
// to heed. [ID] returns the id of an answer, for [loop.Agent.React] and the others.
package adk

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/loop"
)

// A Config configures an adapter.
type Config struct {
	// Agent is what learns. It must be set.
	Agent *loop.Agent
	// Agents are the names of ADK's agents that learn. nil means all of them. In a run in which
	// several agents give a final answer, the first one of these counts.
	Agents []string
	// Enforce refuses calls of tools that break an active rule, or that could not be checked: in each
	// turn, also in one without words, or one that goes on after a pause. The model receives the rule
	// instead of a result.
	Enforce bool
}

// An Adapter joins a [loop.Agent] to the runners of ADK. Make one with [New]. It is safe for
// concurrent use by multiple goroutines, and any number of runners may share it.
type Adapter struct {
	cfg    Config
	plugin *plugin.Plugin

	mu    sync.Mutex
	turns map[string]*run // by the id of the invocation
}

// New returns an adapter. A fault of the configuration is a [*heed.ConfigError].
func New(cfg Config) (*Adapter, error) {
	if cfg.Agent == nil {
		return nil, &heed.ConfigError{Field: "Agent", Reason: "must be set"}
	}
	a := &Adapter{cfg: cfg, turns: make(map[string]*run)}
	var err error
	a.plugin, err = plugin.New(plugin.Config{
		Name:                 "heed",
		BeforeRunCallback:    a.beforeRun,
		AfterRunCallback:     a.afterRun,
		BeforeModelCallback:  a.beforeModel,
		AfterModelCallback:   a.afterModel,
		OnModelErrorCallback: a.onModelError,
		BeforeToolCallback:   a.beforeTool,
		AfterToolCallback:    a.afterTool,
		OnToolErrorCallback:  a.onToolError,
		OnEventCallback:      a.onEvent,
	})
	return a, err
}

// Plugin returns the plugin for runner.PluginConfig. Plugins before it that answer in its place
// keep heed out of the run.
func (a *Adapter) Plugin() *plugin.Plugin { return a.plugin }

type eventKey struct{}

// WithEvent returns a context for Run of the runner. The fields of e that are set describe the
// message to heed, in place of the message's text, the id of the invocation, and the ids of the
// session and the user. Set the ID to the message's id, so that a message that is delivered again
// gets the same answer.
func WithEvent(ctx context.Context, e loop.Event) context.Context {
	return context.WithValue(ctx, eventKey{}, e)
}

// ID returns the id of the answer that an event of ADK's is, or "" if heed has no answer of that
// id. The id is in the event's CustomMetadata, which the session keeps.
func ID(e *session.Event) string {
	if e == nil {
		return ""
	}
	return turn.ID(e.CustomMetadata)
}

// eventOf returns the event that heed gets for a run, and the person's message. A run that goes on
// after a pause has the message that it began with.
func eventOf(ctx agent.InvocationContext) (e loop.Event, said string, resumed bool) {
	e, _ = ctx.Value(eventKey{}).(loop.Event)
	if said = textOf(ctx.UserContent()); said == "" {
		for past := range ctx.Session().Events().All() {
			if past.InvocationID == ctx.InvocationID() && past.Author == "user" && said == "" {
				said = textOf(past.Content)
				resumed = said != ""
			}
		}
	}
	e.Text = cmp.Or(e.Text, said)
	e.ID = cmp.Or(e.ID, ctx.InvocationID())
	e.Session = cmp.Or(e.Session, ctx.Session().ID())
	e.Person = cmp.Or(e.Person, ctx.Session().UserID())
	return e, said, resumed
}

// textOf returns the text of a message, without thoughts.
func textOf(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var text strings.Builder
	for _, part := range c.Parts {
		if part != nil && !part.Thought {
			text.WriteString(part.Text)
		}
	}
	return text.String()
}
