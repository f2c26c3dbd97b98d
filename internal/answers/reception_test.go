package answers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

// TestReception has the rows of the package's table of what counts for a heuristic.
func TestReception(t *testing.T) {
	praise, complaint := judged("ann", 1, 1), judged("bob", -1, 2)
	type row struct {
		known []answer.Statement
		how   answer.How
		fate  int
	}
	all := func(s ...answer.Statement) []answer.Statement { return s }
	for name, test := range map[string]row{
		"nothing":                     {nil, "", 0},
		"silence":                     {all(silent()), answers.Silence, 1},
		"silence that is worth 0":     {all(observed(answers.Silence, 0, 1)), answers.Silence, 0},
		"praise":                      {all(praise), "", 1},
		"praise, silence":             {all(praise, silent()), "", 1},
		"praise, an ignore":           {all(praise, ignored()), "", 1},
		"praise, a failure":           {all(praise, failure()), "", 1},
		"praise, an undo":             {all(praise, undo("ann", 3)), answers.Undo, -1},
		"praise, a success":           {all(praise, success()), answers.Expected, 1},
		"a complaint":                 {all(complaint), "", -1},
		"a complaint, silence":        {all(complaint, silent()), "", -1},
		"a complaint, a success":      {all(complaint, success()), "", -1},
		"a complaint, an ignore":      {all(complaint, ignored()), answers.Ignored, -1},
		"a complaint, a failure":      {all(complaint, failure()), answers.Expected, -1},
		"a complaint, both":           {all(complaint, ignored(), failure()), answers.Expected, -1},
		"a complaint, an undo":        {all(complaint, undo("ann", 3)), answers.Undo, -1},
		"both":                        {all(praise, complaint), "", 0},
		"both, silence":               {all(praise, complaint, silent()), "", 0},
		"both, an ignore":             {all(praise, complaint, ignored()), answers.Ignored, -1},
		"both, a success":             {all(praise, complaint, success()), "", 0},
		"both, an ignore and success": {all(praise, complaint, success(), ignored()), "", 0},
		"an undo":                     {all(undo("ann", 1)), answers.Undo, -1},
		"an undo, a success":          {all(undo("ann", 1), success()), answers.Undo, -1},
		"an undo, an ignore":          {all(undo("ann", 1), ignored()), answers.Undo, -1},
		"an undo, a failure":          {all(undo("ann", 1), failure()), answers.Undo, -1},
		"an undo, a worse failure": {
			all(undo("ann", 1), observed(answers.Expected, -2, 1)), answers.Expected, -1,
		},
		"a failure":                  {all(failure()), answers.Expected, -1},
		"a failure, silence":         {all(failure(), silent()), answers.Expected, -1},
		"an ignore":                  {all(ignored()), answers.Ignored, -1},
		"an ignore, silence":         {all(ignored(), silent()), answers.Ignored, -1},
		"an ignore worth 0, silence": {all(observed(answers.Ignored, 0, 1), silent()), "", 0},
		"an ignore, a failure":       {all(ignored(), failure()), answers.Expected, -1},
		"a success":                  {all(success()), answers.Expected, 1},
		"a success, silence":         {all(success(), silent()), answers.Expected, 1},
		"a success, an ignore":       {all(success(), ignored()), answers.Expected, 1},
		"a success, bad silence": {
			all(success(), observed(answers.Silence, -1, 1)), answers.Expected, 1,
		},
		"praise that was withdrawn": {all(praise, judged("ann", 0, 3), silent()), answers.Silence,
			1},
		"an outcome":           {all(outcome("ci", 1, 1), ignored()), "", 1},
		"a bad outcome":        {all(outcome("ci", -1, 1), silent()), "", -1},
		"outcomes that differ": {all(outcome("ci", -1, 1), outcome("qa", 1, 2)), "", 0},
		"an outcome that is withdrawn": {
			all(outcome("ci", -1, 1), withdrawn("ci", 2), silent()), answers.Silence, 1,
		},
		"one of two is withdrawn": {
			all(outcome("ci", -1, 1), outcome("qa", 1, 2), withdrawn("qa", 3)), "", -1,
		},
		"a judgement worth nothing": {
			all(answer.Statement{By: "ann", Value: 1, At: at(1)}, silent()), answers.Silence, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := answers.ReceptionOf(said(test.known...), "")
			assert.Equal(t, test.how, r.Implicit(false))
			assert.Equal(t, test.fate, r.Fate(false))
			assert.Equal(t, len(test.known) > 0, r.Known())
		})
	}
}

// If judgements are independent of what was observed, they change nothing in it.
func TestIndependentReception(t *testing.T) {
	praise, complaint := judged("ann", 1, 1), judged("bob", -1, 2)
	for _, s := range []answer.Statement{undo("ann", 1), success(), failure(), ignored(),
		silent()} {
		r := answers.ReceptionOf(said(s, praise, complaint), "")
		assert.Equal(t, s.How, r.Implicit(true))
		assert.Equal(t, r.Sign(s.How), r.Fate(true))
	}
	r := answers.ReceptionOf(said(praise), "")
	assert.Zero(t, r.Fate(true))
}

// A Reception is about one heuristic, or about the model.
func TestAReceptionIsOfOneHeuristic(t *testing.T) {
	praise := judged("ann", 1, 1)
	praise.Of = "h"
	a := said(praise, silent())
	model, h := answers.ReceptionOf(a, ""), answers.ReceptionOf(a, "h")
	other := answers.ReceptionOf(a, "other")
	assert.Equal(t, answers.Silence, model.Implicit(false))
	assert.Equal(t, 1, h.Praise.N)
	assert.Zero(t, model.Praise.N)
	assert.False(t, other.Known())
}

func TestSums(t *testing.T) {
	half := judged("ann", 0.5, 1)
	mark := answer.Statement{By: "bob", Scale: "dev", Score: 2, Weight: 2, Worth: -0.3, At: at(1)}
	r := answers.ReceptionOf(
		said(half, mark, weighing(3, judged("cid", 1, 1)), outcome("ci", -1, 2)), "")
	assert.Equal(t, 2, r.Praise.N)
	assert.InDelta(t, 0.4+2.4, r.Praise.Weight, 1e-12)
	assert.InDelta(t, 0.5+3, r.Praise.Share, 1e-12)
	assert.Equal(t, 2, r.Complaint.N)
	assert.InDelta(t, 0.3+0.8, r.Complaint.Weight, 1e-12)
	assert.InDelta(t, 0.5*2+1, r.Complaint.Share, 1e-12)
}

// A forgotten person's judgement does not count. Their undo goes on being known, without its
// source: the observation it made is gone from the evidence, and nothing takes its place.
func TestAForgottenReception(t *testing.T) {
	a := said(judged("ann", 1, 1), undo("ann", 2), outcome("ann", 1, 3), silent())
	forget(a, "ann")
	r := answers.ReceptionOf(a, "")
	assert.Zero(t, r.Praise)
	assert.Equal(t, answers.Undo, r.Implicit(false))
	assert.Empty(t, r.Undo.By)
}

// A statement of a kind that is not known yet is no implicit signal.
func TestAnUnknownStatement(t *testing.T) {
	a := said(answer.Statement{How: "dreamt", By: "ann", Worth: -1, At: at(1)})
	r := answers.ReceptionOf(a, "")
	assert.False(t, r.Known())
	assert.Nil(t, r.Of("dreamt"))
	assert.Zero(t, r.Sign("dreamt"))
	assert.Empty(t, answers.Parts(a))
}

func TestOfReturnsTheSignal(t *testing.T) {
	r := answers.ReceptionOf(said(undo("ann", 1), success(), ignored(), silent(), judged("ann", 1, 1),
		outcome("ci", 1, 1)), "")
	for _, how := range []answer.How{answers.Undo, answers.Expected, answers.Ignored,
		answers.Silence} {
		assert.Equal(t, how, r.Of(how).How)
	}
	assert.Nil(t, r.Of(answers.Judged))
	assert.Nil(t, r.Of(answers.Outcome))
	assert.True(t, r.Observed())
	only := answers.ReceptionOf(said(silent()), "")
	assert.False(t, only.Observed())
	assert.True(t, only.Known())
}

// TestAgreement has the table of docs/trust.md of how a heuristic starts.
func TestAgreement(t *testing.T) {
	const agreement, disagreement = 0.24, 0.072
	praise, complaint := judged("ann", 1, 1), judged("bob", -1, 2)
	all := func(s ...answer.Statement) []answer.Statement { return s }
	for name, test := range map[string]struct {
		known             []answer.Statement
		agrees, disagrees float64
		decider           string
	}{
		"nothing":          {nil, 0, 0, ""},
		"praise":           {all(praise), agreement, -disagreement, "ann"},
		"half a thumb":     {all(judged("ann", 0.5, 1)), 0.12, -0.036, "ann"},
		"three thumbs":     {all(weighing(3, praise)), agreement, -disagreement, "ann"},
		"a success":        {all(success()), agreement, -disagreement, "asker"},
		"silence":          {all(silent()), agreement, -disagreement, "asker"},
		"a complaint":      {all(complaint), -disagreement, -disagreement, "bob"},
		"a weak complaint": {all(weighing(0.05, complaint)), -0.04, -disagreement, "bob"},
		"an undo":          {all(undo("ann", 1)), -disagreement, -disagreement, "ann"},
		"a failure":        {all(failure()), -disagreement, -disagreement, "asker"},
		"ignored, worth 0": {all(observed(answers.Ignored, 0, 1)), 0, -disagreement, ""},
		"people disagree":  {all(praise, complaint), 0, -disagreement, ""},
		"half, and an undo": {all(judged("ann", 0.5, 1), undo("bob", 1)), -disagreement,
			-disagreement, "bob"},
		"half, and a result": {all(judged("ann", 0.5, 1), success()), agreement, -disagreement, "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			r := answers.ReceptionOf(said(test.known...), "")
			assert.InDelta(t, test.agrees, r.Agreement(true, false, agreement, disagreement), 1e-12)
			assert.InDelta(t, test.disagrees, r.Agreement(false, false, agreement, disagreement),
				1e-12)
			for agrees, want := range map[bool]float64{true: test.agrees, false: test.disagrees} {
				sum, sources := 0., map[string]bool{}
				for _, part := range r.AgreementParts(agrees, false, agreement, disagreement) {
					sum += part.Worth
					assert.False(t, sources[part.Source], part.Source)
					sources[part.Source] = true
				}
				assert.InDelta(t, want, sum, 1e-12)
			}
			decider := ""
			if s := r.Decider(false); s != nil {
				decider = s.By
			}
			assert.Equal(t, test.decider, decider)
		})
	}
	r := answers.ReceptionOf(said(praise, success()), "")
	assert.Equal(t, "asker", r.Decider(true).By, "judgements do not decide")
	r = answers.ReceptionOf(said(complaint, success()), "")
	assert.Equal(t, []answer.Credit{{Source: "asker", Worth: agreement}},
		r.AgreementParts(true, true, agreement, disagreement), "and have no part in it")
}
