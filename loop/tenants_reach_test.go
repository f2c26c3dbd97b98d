//go:build !race

package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// secret is in all texts of the tenant acme, and in none of its ids.
const secret = " 5ecret"

// furnish has a tenant learn something of each sort, and returns the ids of that.
func furnish(t *testing.T, a *loop.Agent) (ids []string) {
	event := loop.Event{ID: "acme-event", Text: "Why is the build slow?" + secret, Session: "acme-s",
		Person: "acme-ann", Item: "acme-item", Task: "acme-task", Domain: "acme-domain"}
	_, err := a.Answer(ctx, event)
	require.NoError(t, err)
	require.NoError(t, a.React(ctx, event.ID, loop.Reaction{Person: "acme-ann", Value: 1}))
	good := true
	require.NoError(t, a.Outcome(ctx, event.ID, loop.Outcome{Success: &good,
		Ways: []patterns.PatternID{"acme-way"}, Failure: "it was late" + secret}))
	given, err := a.Correct(ctx, event.ID, loop.Correction{Reviewer: "acme-ann",
		Text: "Name the ticket" + secret})
	require.NoError(t, err)
	_, err = a.Learning().Put(ctx, learning.Heuristic{ID: "acme-heuristic",
		Condition: "the disk is full" + secret, Action: "Rotate the logs" + secret})
	require.NoError(t, err)
	_, err = a.Patterns().Define(ctx, patterns.Pattern{ID: "acme-pattern", Content: "tests" + secret})
	require.NoError(t, err)
	_, err = a.Patterns().RecordError(ctx, patterns.TaskError{ID: "acme-error", Task: "acme-task",
		Message: "no such file" + secret, At: start})
	require.NoError(t, err)
	rules := a.Feedback().Rules()
	p, err := rules.Propose(ctx, feedback.Submission{Actor: "kim", Reason: "r" + secret,
		Draft: feedback.Draft{Text: "Answer briefly" + secret, AllAgents: true}})
	require.NoError(t, err)
	for _, actor := range []string{"lee", "max"} {
		_, err = rules.Review(ctx, feedback.Review{Proposal: p.ID, Decision: feedback.Approved,
			Hash: p.Hash(), Actor: actor, Reason: "r" + secret})
		require.NoError(t, err)
	}
	_, err = a.Prepare(ctx, loop.Event{ID: "acme-waits", Text: "Why?" + secret, Person: "acme-ann"})
	require.NoError(t, err)
	return []string{event.ID, event.Session, event.Person, event.Item, event.Task, event.Domain,
		given.ID, p.ID, "acme-heuristic", "acme-way", "acme-pattern", "acme-error", "acme-waits", "a",
		"loop", ""}
}

// filled returns a value whose texts are all the id.
func filled(of reflect.Type, id string) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.String:
		v.SetString(id)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.String || of.Elem().Kind() == reflect.Struct {
			v.Set(reflect.Append(v, filled(of.Elem(), id)))
		}
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(filled(of.Field(i).Type, id))
			}
		}
	case reflect.Float64:
		v.SetFloat(1)
	default:
	}
	return v
}

// seen returns all that a result shows, with the elements of sequences.
func seen(v reflect.Value) string {
	if v.Kind() == reflect.Func && v.Type().CanSeq2() {
		all := ""
		for a, b := range v.Seq2() {
			all += seen(a) + seen(b)
		}
		return all
	}
	if !v.CanInterface() || v.Kind() == reflect.Func {
		return ""
	}
	if files, ok := v.Interface().(map[string][]byte); ok { // as text, or nothing is found in them
		all := ""
		for name, content := range files {
			all += name + " " + string(content) + "\n"
		}
		return all
	}
	text, _ := json.Marshal(v.Interface())
	return fmt.Sprintf("%+v ", v.Interface()) + string(text)
}

// reach calls all methods of a part that take a context or a step, and returns what they show. It
// leaves out those that take functions, and a sweep, which is for all tenants.
func reach(part any, st store.Store, id string) (all string, calls int) {
	v := reflect.ValueOf(part)
	for i := range v.NumMethod() {
		m := v.Method(i)
		name := v.Type().Method(i).Name
		if slices.Contains([]string{"Run", "Sweep", "Tenant"}, name) || m.Type().NumIn() == 0 {
			continue
		}
		args, ok := []reflect.Value{reflect.ValueOf(ctx)}, true
		switch m.Type().In(0) {
		case reflect.TypeFor[context.Context]():
		case reflect.TypeFor[*store.Tx]():
			args[0] = reflect.ValueOf(store.Reading(ctx, st))
		default:
			continue
		}
		for k := 1; k < m.Type().NumIn(); k++ {
			in := m.Type().In(k)
			ok = ok && in.Kind() != reflect.Func && in.Kind() != reflect.Interface &&
				in.Kind() != reflect.Pointer
			if m.Type().IsVariadic() && k == m.Type().NumIn()-1 {
				in = in.Elem()
			}
			args = append(args, filled(in, id))
		}
		if !ok {
			continue
		}
		calls++
		for _, result := range m.Call(args) {
			all += fmt.Sprintf("%s(%s): %s\n", name, id, seen(result))
		}
	}
	return all, calls
}

// TestNoReadOfATenantReturnsAnothers goes through the methods of all parts of an agent, with the
// ids of another tenant in each text. None returns anything of it, and none changes it.
func TestNoReadOfATenantReturnsAnothers(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a"}},
		Choosing: loop.Choosing{ByText: true}})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	ids := furnish(t, acme)
	of := func() string {
		var all, own bytes.Buffer
		require.NoError(t, w.store.(*memstore.Store).Dump(ctx, &all))
		require.NoError(t, dump.Only(&own, &all, "acme"))
		lines := strings.SplitAfter(own.String(), "\n")
		lines = lines[1 : len(lines)-2] // without the store's revision and the sum
		kept := lines[:0]
		for _, line := range lines {
			if !strings.HasPrefix(line, `{"kind":`) { // all tenants declare kinds
				kept = append(kept, line)
			}
		}
		slices.Sort(kept)
		return strings.Join(kept, "")
	}
	parts := func(a *loop.Agent) map[string]any {
		return map[string]any{"agent": a, "learning": a.Learning(), "decision": a.Decision(),
			"strategy": a.Strategy(), "patterns": a.Patterns(), "feedback": a.Feedback(),
			"rules": a.Feedback().Rules(), "partition": a.Partition()}
	}
	most := 0
	before := of()
	require.Contains(t, before, secret)
	for _, tenant := range []string{"", "umbrella"} {
		other, err := w.Tenant(ctx, tenant)
		require.NoError(t, err)
		for name, part := range parts(other) {
			for _, id := range ids {
				all, calls := reach(part, other.Store(), id)
				assert.NotContains(t, all, secret, "%s of %q with %s", name, tenant, id)
				most += calls
			}
		}
	}
	assert.Equal(t, before, of())
	assert.Greater(t, most/len(ids)/2, 90, "methods that were called")
	for name, part := range parts(acme) { // the test sees what it looks for
		shown := ""
		for _, id := range ids {
			all, _ := reach(part, acme.Store(), id)
			shown += all
		}
		if name != "strategy" && name != "partition" { // which have no texts
			assert.Contains(t, shown, secret, name)
		}
	}
}
