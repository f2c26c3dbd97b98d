package loop

import (
	"cmp"
	"context"
	"strings"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// Tool checks a call of a tool against the rules before it is made, if r.Before is set, and returns
// the rules that the call breaks: see [feedback.Check]. The caller decides what to do then. If the
// store can't be reached, the rules are those that were read last; if they were never read, that is
// an error.
//
// Otherwise it records the result of a tool that was called while an event was answered. An error
// counts once for its task: the prompt of the next event of that task has the newest 20, and the
// task's score falls. Output of a tool is never taken for a person's words, and is not kept. If the
// store can't be reached, the result is not recorded and Tool returns a [heed.ErrUnavailable]: call
// Tool again with the same result, which counts once.
//
// The id is the event's, which need not have its answer yet. Then r.Task names the task that an
// error belongs to.
func (a *Agent) Tool(ctx context.Context, id string, r ToolResult) ([]feedback.Violation, error) {
	if err := checkID(id); err != nil {
		return nil, wrap("tool", err)
	}
	if r.Before {
		if r.Name == "" {
			return nil, wrap("tool", valid.Input("Name", "must not be empty, before a call"))
		}
		call := store.IDOf(id, cmp.Or(r.ID, store.IDOf(r.Input)))
		violations, err := a.violations(ctx, feedback.Checked{ID: call, Tool: r.Name, Text: r.Input})
		return violations, wrap("tool", err)
	}
	limited, cancel := patient(ctx, storeTimeout)
	defer cancel()
	err := a.tool(limited, id, r)
	return nil, wrap("tool", cmp.Or(a.down(ctx, limited, err), err))
}

// violations asks the rules about an answer or a call. A check counts for the rule that it broke,
// once by its ID. A frozen agent checks and does not count.
func (a *Agent) violations(ctx context.Context, c feedback.Checked) ([]feedback.Violation, error) {
	c.Agent = a.cfg.Name
	rules := a.feedback.Rules()
	limited, cancel := patient(ctx, storeTimeout)
	defer cancel()
	var found []feedback.Violation
	err := store.Do(limited, a.cfg.Store, func(tx *store.Tx) error {
		tx.Want(rules.Wants(c.Agent))
		counted := c
		frozen, err := a.isFrozen(tx)
		if err != nil {
			return err
		} else if frozen {
			counted.ID = ""
		}
		found, err = rules.CheckIn(tx, counted)
		return err
	})
	if a.down(ctx, limited, err) != nil { // by the rules that were read last
		found, err = rules.CheckIn(store.Reading(ctx, recalled{a.lifeline}), c)
	}
	return found, err
}

// tool records the error of a tool. The id of the error is derived from the call or from its
// content, so a report that is repeated counts once.
func (a *Agent) tool(ctx context.Context, id string, r ToolResult) error {
	if r.Err == nil {
		return nil
	}
	tx := store.Reading(ctx, a.cfg.Store)
	a.wantFrozen(tx)
	row, err := a.answers.In(tx, answers.ID(id))
	if err != nil {
		return err
	}
	if frozen, err := a.isFrozen(tx); err != nil || frozen {
		return err
	}
	// An event's id may be longer than a task.
	of := strings.ToValidUTF8(id[:min(len(id), maxTask)], "")
	r.Task = cmp.Or(r.Task, answers.TaskOf(&row.Value), of)
	var message string
	if err := host.Call("ToolResult.Err", func() error {
		message = r.Err.Error()
		return nil
	}); err != nil {
		return err
	}
	name := store.IDOf("tool", a.cfg.Name, id, cmp.Or(r.ID, store.IDOf(r.Name, r.Text, message)))
	if err = a.redact(&message); err == nil {
		_, err = a.patterns.RecordError(ctx, patterns.TaskError{
			ID: name, Task: r.Task, Err: r.Err, Message: message, Tool: r.Name, At: r.At,
		})
	}
	return err
}
