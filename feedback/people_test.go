package feedback_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
)

// isName says of each text that is kept whether it is a person's name. The texts that people wrote
// are no names.
var isName = map[string]bool{
	"record.decision_id": false, "record.gate_id": false, "record.agent": false,
	"record.epic_id": false, "record.task_id": false,
	"record.decision": false, "record.reviewer_id": true, "record.agent_output_sha": false,
	"record.approved_output_sha":  false,
	"record.correction_diff_path": false, "record.correction_summary": false,
	"record.reviewer_comment": false,
	"record.severity":         false, "record.tags": false, "record.injected_rules": false,
	"record.classification": false,
	"record.rationale":      false, "record.apart": false, "record.contradicts": false,
	"record.dispute": false, "record.similar_feedback_ids": false, "record.cluster": false,
	"record.proposed_action":   false,
	"record.near_feedback_ids": false, "record.unanswered.reason": false,
	"record.resolution": false, "record.resolver": true, "record.joiner": true,

	"proposal.proposal_id": false, "proposal.action": false, "proposal.rule_type": false,
	"proposal.rule_content":    false,
	"proposal.affected_agents": false, "proposal.insertion_point": false,
	"proposal.supersedes": false, "proposal.cluster": false,
	"proposal.created_from_feedback_ids": false, "proposal.evidence_summary": false,
	"proposal.authors": true,
	"proposal.writers": true, "proposal.warnings": false, "proposal.conflicts.*.kind": false,
	"proposal.conflicts.*.id":          false,
	"proposal.conflicts.*.explanation": false, "proposal.status": false,
	"proposal.approvals.*.actor":  true,
	"proposal.approvals.*.reason": false, "proposal.approvals.*.approved_hash": false,
	"proposal.approvals.*.override": false, "proposal.approvals.*.withhold": false,
	"proposal.previous": false, "proposal.decided_by": true, "proposal.reason": false,
	"proposal.proposer": true,
	"proposal.change":   false, "proposal.of": false,
	"proposal.check.tool": false, "proposal.check.forbid": false, "proposal.check.require": false,

	"rule.rule_id": false, "rule.action": false, "rule.rule_type": false, "rule.rule_content": false,
	"rule.affected_agents": false,
	"rule.insertion_point": false, "rule.supersedes": false, "rule.clusters": false,
	"rule.authors": true, "rule.writers": true,
	"rule.approvals.*.actor": true, "rule.approvals.*.reason": false,
	"rule.approvals.*.approved_hash": false,
	"rule.approvals.*.override":      false, "rule.approvals.*.withhold": false,
	"rule.status": false, "rule.superseded_by": false,
	"rule.effect.status": false,
	"rule.change":        false, "rule.of": false,
	"rule.check.tool": false, "rule.check.forbid": false, "rule.check.require": false,
}

// Each text of each record is known to be a name or to be none, and a record that has a name is
// found by it.
func TestEveryNameCanBeForgotten(t *testing.T) {
	found := map[string]bool{}
	for kind, value := range map[string]any{"record": feedback.Feedback{},
		"proposal": feedback.Proposal{}, "rule": feedback.Rule{}} {
		walk(reflect.TypeOf(value), kind, nil, func(path string, index []int) {
			person, known := isName[path]
			require.True(t, known, "%s: is it a person's name?", path)
			found[path] = true
			below := strings.TrimPrefix(path, kind+".")
			if !person {
				assert.NotContains(t, feedback.Kinds[kind].Decided, below)
				return
			}
			assert.Contains(t, feedback.Kinds[kind].Decided, below)
			of := reflect.New(reflect.TypeOf(value)).Elem()
			set(of, index, "Ann")
			assert.Contains(t, feedback.Stored(of.Interface())[0].Keys, store.PersonKey("ann"), path)
		})
	}
	assert.Len(t, found, len(isName), "each path is there")
}

// walk calls with the path of each text, and where it is.
func walk(of reflect.Type, path string, index []int, do func(path string, index []int)) {
	switch of.Kind() {
	case reflect.String:
		do(path, index)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Struct {
			path += ".*"
		}
		walk(of.Elem(), path, slices.Concat(index, []int{0}), do)
	case reflect.Struct:
		if of == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range of.NumField() {
			f := of.Field(i)
			below := slices.Concat(index, []int{i})
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == "-" {
				continue
			} else if name != "" {
				walk(f.Type, path+"."+name, below, do)
			} else {
				walk(f.Type, path, below, do)
			}
		}
	default: // holds no text
	}
}

func set(v reflect.Value, index []int, text string) {
	for _, i := range index {
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		if v.Kind() == reflect.Struct {
			v = v.Field(i)
		} else {
			v = v.Index(i)
		}
	}
	v.SetString(text)
}

func TestForgettingLeavesNoName(t *testing.T) {
	w := full(t)
	w.says("ann", "the summary is not too long")
	ambiguous, _, err := w.List(ctx, feedback.Listing{Class: feedback.Ambiguous})
	require.NoError(t, err)
	require.NotEmpty(t, ambiguous)
	_, err = w.Resolve(ctx, feedback.Act{ID: ambiguous[0].ID, Actor: "Cleo", Reason: "no"},
		feedback.EdgeCase)
	require.NoError(t, err)
	all := func() string {
		var texts strings.Builder
		for _, kind := range []string{"feedback.record", "feedback.proposal", "feedback.rule",
			"feedback.mark", store.Audit.Name} {
			for r, err := range w.store.Find(ctx, store.Query{Kind: kind}) {
				require.NoError(t, err)
				text, err := r.Body.JSON()
				require.NoError(t, err)
				fmt.Fprintln(&texts, r.ID, r.Keys, string(text))
			}
		}
		return texts.String()
	}
	require.Contains(t, all(), "ann")
	require.Contains(t, all(), "cleo")
	prompt := w.inject("prd", "").Prompt
	err = store.Run(ctx, w.store, store.Job{Forget: []string{"ann", "cleo"}})
	require.NoError(t, err)
	assert.NotContains(t, all(), "ann")
	assert.NotContains(t, all(), "cleo")
	assert.Equal(t, prompt, w.inject("prd", "").Prompt, "the rules stay")

	waiting := w.pending()
	require.Len(t, waiting.Approvals, 1)
	assert.Equal(t, feedback.StateApproved, w.approve(waiting, "dan").Status,
		"what somebody approved counts on")
}

// TestADecisionOfSomebodyForgottenIsKnown when it is delivered again, and brings no name back.
func TestADecisionOfSomebodyForgottenIsKnown(t *testing.T) {
	w, n := watched(t, feedback.Config{})
	f := w.correction("Ann", long)
	w.add(f)
	require.NoError(t, w.consume(&queue{messages: [][]byte{message("event", "Ann", "too long")}},
		&dead{}, nil))
	err := store.Run(ctx, w.store, store.Job{Forget: []string{"ann"}})
	require.NoError(t, err)
	n.all = nil

	duplicate, err := w.Record(ctx, f)
	require.NoError(t, err)
	assert.True(t, duplicate)
	assert.Equal(t, []heed.Duplicate{{Component: "feedback", What: "feedback", ID: f.ID}},
		take(t, n, duplicates))
	d := &dead{}
	require.NoError(t, w.consume(&queue{messages: [][]byte{message("event", "Ann", "too long")}}, d,
		nil))
	assert.Empty(t, d.reasons)
	assert.Equal(t, []heed.Duplicate{{Component: "feedback", What: "feedback", ID: "event"}},
		take(t, n, duplicates))
	for _, id := range []string{f.ID, "event"} {
		assert.True(t, strings.HasPrefix(w.get(id).Reviewer, "forgotten-"))
	}

	f.Summary = "other words"
	for _, reviewer := range []string{"Ann", "bob"} {
		f.Reviewer = reviewer
		_, err = w.Record(ctx, f)
		assert.ErrorIs(t, err, heed.ErrConflict, reviewer)
	}
	f = w.correction("forgotten-bob", long)
	w.add(f)
	f.Reviewer = "cleo"
	_, err = w.Record(ctx, f)
	assert.ErrorIs(t, err, heed.ErrConflict, "that is a name like any other")
}

// Why an authorizer refuses is the host's text, and may name anybody.
func TestNoNameOfARefusalIsKept(t *testing.T) {
	w := newWorld(t, feedback.Config{Authorize: admins{"cleo"}.authorize})
	p := w.propose("paul", rule("Be brief"))
	_, err := w.review(p, approve, "mallory")
	require.ErrorContains(t, err, "mallory is no admin")
	entries, err := w.Audit(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"refusal": "not authorized"}, entries[0].Details)
	assert.Equal(t, "mallory", entries[0].Actor)
}
