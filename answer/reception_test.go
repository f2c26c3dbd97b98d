package answer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/answer"
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
		"silence":                     {all(silent()), answer.Silence, 1},
		"silence that is worth 0":     {all(observed(answer.Silence, 0, 1)), answer.Silence, 0},
		"praise":                      {all(praise), "", 1},
		"praise, silence":             {all(praise, silent()), "", 1},
		"praise, an ignore":           {all(praise, ignored()), "", 1},
		"praise, a failure":           {all(praise, failure()), "", 1},
		"praise, an undo":             {all(praise, undo("ann", 3)), answer.Undo, -1},
		"praise, a success":           {all(praise, success()), answer.Expected, 1},
		"a complaint":                 {all(complaint), "", -1},
		"a complaint, silence":        {all(complaint, silent()), "", -1},
		"a complaint, a success":      {all(complaint, success()), "", -1},
		"a complaint, an ignore":      {all(complaint, ignored()), answer.Ignored, -1},
		"a complaint, a failure":      {all(complaint, failure()), answer.Expected, -1},
		"a complaint, both":           {all(complaint, ignored(), failure()), answer.Expected, -1},
		"a complaint, an undo":        {all(complaint, undo("ann", 3)), answer.Undo, -1},
		"both":                        {all(praise, complaint), "", 0},
		"both, silence":               {all(praise, complaint, silent()), "", 0},
		"both, an ignore":             {all(praise, complaint, ignored()), answer.Ignored, -1},
		"both, a success":             {all(praise, complaint, success()), "", 0},
		"both, an ignore and success": {all(praise, complaint, success(), ignored()), "", 0},
		"an undo":                     {all(undo("ann", 1)), answer.Undo, -1},
		"an undo, a success":          {all(undo("ann", 1), success()), answer.Undo, -1},
		"an undo, an ignore":          {all(undo("ann", 1), ignored()), answer.Undo, -1},
		"an undo, a failure":          {all(undo("ann", 1), failure()), answer.Undo, -1},
		"an undo, a worse failure": {
			all(undo("ann", 1), observed(answer.Expected, -2, 1)), answer.Expected, -1,
		},
		"a failure":                  {all(failure()), answer.Expected, -1},
		"a failure, silence":         {all(failure(), silent()), answer.Expected, -1},
		"an ignore":                  {all(ignored()), answer.Ignored, -1},
		"an ignore, silence":         {all(ignored(), silent()), answer.Ignored, -1},
		"an ignore worth 0, silence": {all(observed(answer.Ignored, 0, 1), silent()), "", 0},
		"an ignore, a failure":       {all(ignored(), failure()), answer.Expected, -1},
		"a success":                  {all(success()), answer.Expected, 1},
		"a success, silence":         {all(success(), silent()), answer.Expected, 1},
		"a success, an ignore":       {all(success(), ignored()), answer.Expected, 1},
		"a success, bad silence": {
			all(success(), observed(answer.Silence, -1, 1)), answer.Expected, 1,
		},
		"praise that was withdrawn": {all(praise, judged("ann", 0, 3), silent()), answer.Silence,
			1},
		"an outcome":           {all(outcome("ci", 1, 1), ignored()), "", 1},
		"a bad outcome":        {all(outcome("ci", -1, 1), silent()), "", -1},
		"outcomes that differ": {all(outcome("ci", -1, 1), outcome("qa", 1, 2)), "", 0},
		"an outcome that is withdrawn": {
			all(outcome("ci", -1, 1), withdrawn("ci", 2), silent()), answer.Silence, 1,
		},
		"one of two is withdrawn": {
			all(outcome("ci", -1, 1), outcome("qa", 1, 2), withdrawn("qa", 3)), "", -1,
		},
		"a judgement worth nothing": {
			all(answer.Statement{By: "ann", Value: 1, At: at(1)}, silent()), answer.Silence, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := said(test.known...).Reception("")
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
		r := said(s, praise, complaint).Reception("")
		assert.Equal(t, s.How, r.Implicit(true))
		assert.Equal(t, r.Sign(s.How), r.Fate(true))
	}
	r := said(praise).Reception("")
	assert.Zero(t, r.Fate(true))
}

// A Reception is about one heuristic, or about the model.
func TestAReceptionIsOfOneHeuristic(t *testing.T) {
	praise := judged("ann", 1, 1)
	praise.Of = "h"
	a := said(praise, silent())
	model, h, other := a.Reception(""), a.Reception("h"), a.Reception("other")
	assert.Equal(t, answer.Silence, model.Implicit(false))
	assert.Equal(t, 1, h.Praise.N)
	assert.Zero(t, model.Praise.N)
	assert.False(t, other.Known())
}

func TestSums(t *testing.T) {
	half := judged("ann", 0.5, 1)
	mark := answer.Statement{By: "bob", Scale: "dev", Score: 2, Weight: 2, Worth: -0.3, At: at(1)}
	r := said(half, mark, weighing(3, judged("cid", 1, 1)), outcome("ci", -1, 2)).Reception("")
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
	r := a.Reception("")
	assert.Zero(t, r.Praise)
	assert.Equal(t, answer.Undo, r.Implicit(false))
	assert.Empty(t, r.Undo.By)
}

// A statement of a kind that is not known yet is no implicit signal.
func TestAnUnknownStatement(t *testing.T) {
	a := said(answer.Statement{How: "dreamt", By: "ann", Worth: -1, At: at(1)})
	r := a.Reception("")
	assert.False(t, r.Known())
	assert.Nil(t, r.Of("dreamt"))
	assert.Zero(t, r.Sign("dreamt"))
	assert.Empty(t, a.Parts())
}

func TestOfReturnsTheSignal(t *testing.T) {
	r := said(undo("ann", 1), success(), ignored(), silent(), judged("ann", 1, 1),
		outcome("ci", 1, 1)).
		Reception("")
	for _, how := range []answer.How{answer.Undo, answer.Expected, answer.Ignored, answer.Silence} {
		assert.Equal(t, how, r.Of(how).How)
	}
	assert.Nil(t, r.Of(answer.Judged))
	assert.Nil(t, r.Of(answer.Outcome))
	assert.True(t, r.Observed())
	only := said(silent()).Reception("")
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
	}{
		"nothing":          {nil, 0, 0},
		"praise":           {all(praise), agreement, -disagreement},
		"half a thumb":     {all(judged("ann", 0.5, 1)), 0.12, -0.036},
		"three thumbs":     {all(weighing(3, praise)), agreement, -disagreement},
		"a success":        {all(success()), agreement, -disagreement},
		"silence":          {all(silent()), agreement, -disagreement},
		"a complaint":      {all(complaint), -disagreement, -disagreement},
		"a weak complaint": {all(weighing(0.05, complaint)), -0.04, -disagreement},
		"an undo":          {all(undo("ann", 1)), -disagreement, -disagreement},
		"a failure":        {all(failure()), -disagreement, -disagreement},
		"ignored, worth 0": {all(observed(answer.Ignored, 0, 1)), 0, -disagreement},
		"people disagree":  {all(praise, complaint), 0, -disagreement},
		"half, and an undo": {all(judged("ann", 0.5, 1), undo("bob", 1)), -disagreement,
			-disagreement},
		"half, and a result": {all(judged("ann", 0.5, 1), success()), agreement, -disagreement},
	} {
		t.Run(name, func(t *testing.T) {
			r := said(test.known...).Reception("")
			assert.InDelta(t, test.agrees, r.Agreement(true, false, agreement, disagreement), 1e-12)
			assert.InDelta(t, test.disagrees, r.Agreement(false, false, agreement, disagreement),
				1e-12)
		})
	}
}
