package feedback_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
)

const long = "the summary is too long"

func TestClassification(t *testing.T) {
	type by = []string
	for name, test := range map[string]struct {
		by     by // reviewers of corrections that say the same
		last   feedback.Classification
		single bool
	}{
		"one alone":                     {by: by{"ann"}, last: feedback.EdgeCase},
		"two by one reviewer":           {by: by{"ann", "ann"}, last: feedback.GeneralizableLow},
		"two by two reviewers":          {by: by{"ann", "bob"}, last: feedback.GeneralizableHigh},
		"one reviewer in two spellings": {by: by{"ann", "ANN"}, last: feedback.GeneralizableLow},
		"three by one reviewer": {by: by{"ann", "ann", "ann"}, last: feedback.GeneralizableHigh,
			single: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, feedback.Config{})
			var r feedback.Feedback
			for _, reviewer := range test.by {
				r = w.says(reviewer, long)
			}
			assert.Equal(t, test.last, r.Class)
			for id := range w.count { // earlier ones are promoted with it
				assert.Equal(t, test.last, w.get(fmt.Sprint("d", id+1)).Class)
			}
			assert.Equal(t, test.single, strings.Contains(r.Rationale, "single reviewer"))
			assert.Len(t, r.Similar, len(test.by)-1)
			assert.Equal(t, "d1", r.Cluster)
		})
	}
}

func TestPromotionIsAudited(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	assert.Equal(t, feedback.DocumentOnly, w.says("ann", long).Action)
	w.says("bob", long)
	assert.Equal(t, []string{"evaluate:", "promote:"}, w.audit("d1"))
	assert.Equal(t, feedback.CreateRule, w.get("d1").Action)
}

func TestApprovalsArePositiveAndMakeNoRule(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	for _, by := range []string{"ann", "bob", "cleo"} {
		f := w.approval(by, "")
		f.Comment = "looks good to me"
		assert.Equal(t, feedback.Positive, w.add(f).Class)
	}
	proposed, _, err := w.Flush(ctx)
	require.NoError(t, err)
	assert.Empty(t, proposed)
	assert.Empty(t, w.proposals(""))
}

func TestWithoutATextNothingIsLearned(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	for range 3 {
		f := w.correction("ann", "")
		f.Comment = " !? "
		r := w.add(f)
		assert.Equal(t, feedback.Ambiguous, r.Class)
		assert.Contains(t, r.Rationale, "insufficient detail")
		f = w.correction("bob", "")
		f.Decision = feedback.Rejected
		r = w.add(f)
		assert.Equal(t, feedback.EdgeCase, r.Class)
		assert.Less(t, r.Confidence, 0.2)
	}
	_, _, err := w.Flush(ctx)
	require.NoError(t, err)
	assert.Empty(t, w.proposals(""))
}

func TestPrivateFeedbackIsKeptOut(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	f := w.correction("ann", long)
	f.Private = true
	assert.Equal(t, feedback.Archived, w.add(f).Class)
	assert.Equal(t, feedback.EdgeCase, w.says("bob", long).Class)
}

func TestContradictionsAreAmbiguous(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	approved := w.approval("ann", "")
	w.add(approved)
	f := w.correction("bob", "something else entirely")
	f.OutputSHA = approved.OutputSHA
	r := w.add(f)
	assert.Equal(t, feedback.Ambiguous, r.Class, "it was approved as it is")
	assert.Contains(t, r.Rationale, approved.ID)

	elsewhere := f
	elsewhere.ID, elsewhere.Gate = "elsewhere", "HITL-2"
	assert.Equal(t, feedback.EdgeCase, w.add(elsewhere).Class, "at another gate")
	w = newWorld(t, feedback.Config{Evaluator: func(context.Context, feedback.Case) (
		feedback.Evaluation, error,
	) {
		t.Error("an evaluator is not asked about it")
		return feedback.Evaluation{}, errors.New("asked")
	}})
	w.add(approved)
	assert.Equal(t, feedback.Ambiguous, w.add(f).Class)

	// However often one person says it, the opposite makes it a matter for another person.
	w = newWorld(t, feedback.Config{})
	w.add(w.approval("ann", "Naming the database in the PRD is right"))
	for range 4 {
		r = w.says("bob", "Naming the database in the PRD is not right")
		assert.Equal(t, feedback.Ambiguous, r.Class)
	}
	assert.Len(t, r.Similar, 3)
	assert.Equal(t, []string{"d1"}, r.Contradicts)
	_, _, err := w.Flush(ctx)
	require.NoError(t, err)
	assert.Empty(t, w.proposals(""))

	// So do corrections that oppose each other.
	w = newWorld(t, feedback.Config{})
	assert.Equal(t, feedback.EdgeCase, w.says("ann", "enable caching").Class)
	assert.Equal(t, feedback.Ambiguous, w.says("bob", "disable caching").Class)
	// Other numbers are other matters.
	assert.Equal(t, feedback.EdgeCase, w.says("ann", "keep functions under 50 lines").Class)
	assert.Equal(t, feedback.EdgeCase, w.says("bob", "keep functions under 80 lines").Class)
}

// TestTwoWhoSayTheSameCount although others say the opposite. The proposal shows what contradicts
// it, and the others still wait for a person until two of them say the same.
func TestTwoWhoSayTheSameCount(t *testing.T) {
	const always, never = "Always add a test for the parser", "Never add a test for the parser"
	w := newWorld(t, feedback.Config{})
	w.says("ann", always)
	assert.Equal(t, feedback.Ambiguous, w.says("bob", never).Class)
	again := w.says("ann", always)
	assert.Equal(t, feedback.Ambiguous, again.Class, "it is the same person")
	third := w.says("cleo", "always add a test for the parser.")
	assert.Equal(t, feedback.GeneralizableHigh, third.Class)
	assert.Contains(t, third.Rationale, "it contradicts d2")
	assert.Equal(t, []string{"d2"}, third.Contradicts)
	p := w.pending()
	assert.Equal(t, []string{"d1", "d3", "d4"}, p.Evidence, "the one that was ambiguous counts, too")
	assert.Equal(t, []string{"evaluate:", "promote:"}, w.audit("d3"))
	assert.Equal(t, feedback.Ambiguous, w.get("d2").Class)
	shown, err := w.rules.Conflicts(ctx, rule(always))
	require.NoError(t, err)
	shown = slices.DeleteFunc(shown, func(c feedback.Conflict) bool { return c.ID == p.ID })
	assert.Equal(t, p.Conflicts, shown)
	require.Len(t, shown, 1)
	assert.Equal(t, []any{"contradiction", "d2", true},
		[]any{shown[0].Kind, shown[0].ID, shown[0].Correction})

	assert.Equal(t, feedback.GeneralizableHigh, w.says("dan", never).Class)
	assert.Equal(t, feedback.GeneralizableHigh, w.get("d2").Class, "it is no longer alone")
	opposite := w.proposals(feedback.StatePending)
	require.Len(t, opposite, 2)
	assert.Equal(t, feedback.StateApproved, w.approve(p, "eve", "fay").Status, "approvers decide")
	for _, other := range opposite {
		if other.ID != p.ID {
			_, err = w.review(other, approve, "eve")
			assert.Equal(t, "conflict", feedback.Refusal(err),
				"from then on the rule has to be overridden")
		}
	}
}

// TestAResolutionHoldsForThePairOfTexts, for what came before it and what comes after it, and for
// no other text.
func TestAResolutionHoldsForThePairOfTexts(t *testing.T) {
	const on, off = "enable caching of pages", "disable caching of pages"
	for as, want := range map[feedback.Classification]feedback.Classification{
		feedback.GeneralizableLow: feedback.GeneralizableLow, feedback.EdgeCase: feedback.EdgeCase,
		feedback.Archived: feedback.EdgeCase,
	} {
		w := newWorld(t, feedback.Config{})
		w.says("ann", on)
		first, second := w.says("bob", off), w.says("bob", off)
		require.Equal(t, feedback.Ambiguous, second.Class)
		_, err := w.Resolve(ctx, order(first.ID), as)
		require.NoError(t, err)
		assert.Equal(t, want, w.get(second.ID).Class, as)
		assert.Equal(t, []string{"evaluate:", "promote:cleo"}, w.audit(second.ID))
		assert.NotEqual(t, feedback.Ambiguous, w.says("bob", off).Class, as)
		assert.NotEqual(t, feedback.Ambiguous, w.says("ann", on).Class, as)
		assert.Equal(t, feedback.Ambiguous, w.says("eve", "do not enable caching of pages").Class,
			"nobody resolved these words")
	}
}

// A third text that contradicts one of a pair is another matter.
func TestAResolutionHoldsForNoThirdText(t *testing.T) {
	var answer feedback.Evaluation
	w := newWorld(t, feedback.Config{Evaluator: func(
		context.Context, feedback.Case,
	) (feedback.Evaluation, error) {
		return answer, nil
	}})
	for _, one := range []struct {
		text, contradicts string
		class             feedback.Classification
	}{
		{"cache the pages", "", feedback.EdgeCase}, {"read each page", "d1", feedback.Ambiguous},
		{"keep no copies", "d2", feedback.Ambiguous}, {"read each page", "d1", feedback.EdgeCase},
	} {
		answer = feedback.Evaluation{Class: feedback.EdgeCase}
		if one.contradicts != "" {
			answer.Contradicts = []string{one.contradicts}
		}
		r := w.says("ann", one.text)
		assert.Equal(t, one.class, r.Class, r.ID)
		if r.ID == "d2" {
			_, err := w.Resolve(ctx, order("d2"), feedback.EdgeCase)
			require.NoError(t, err)
		}
	}
}

func TestWhatOpposesAMemberStaysOutOfItsCluster(t *testing.T) {
	w := newWorld(t, feedback.Config{Similarity: everything{}})
	w.says("ann", "limit the retries")
	w.says("ann", "cap how often an upload is tried in API")
	assert.Equal(t, "d1", w.get("d2").Cluster)
	r := w.says("ann", "cap how often an upload is tried in gRPC")
	assert.Equal(t, "d3", r.Cluster, "it opposes the second, though not the first")
	assert.Equal(t, "d1", w.says("ann", "limit the retries").Cluster)
	r = w.says("ann", "cap how often uploads are tried in gRPC")
	assert.Equal(t, "d3", r.Cluster, "the cluster of the nearest has what it opposes")
}

// everything finds all texts alike.
type everything struct{}

func (everything) Similar(_ context.Context, _ string, others []string) ([]float64, error) {
	scores := make([]float64, len(others))
	for i := range scores {
		scores[i] = 0.9
	}
	return scores, nil
}

func TestWindow(t *testing.T) {
	w := newWorld(t, feedback.Windowed(2))
	w.says("ann", long)
	w.says("ann", "something about tests")
	w.says("ann", "a matter of licences")
	assert.Equal(t, feedback.EdgeCase, w.says("bob", long).Class, "the first is out of the window")
}

// TestConfidence is a formula whose parts each only raise it.
func TestConfidence(t *testing.T) {
	assert.InDelta(t, 0.891, feedback.Confidence(2, 3), 5e-4)
	assert.Zero(t, feedback.Confidence(0, 0))
	rapid.Check(t, func(t *rapid.T) {
		reviewers := rapid.IntRange(1, 50).Draw(t, "reviewers")
		strength := rapid.Float64Range(0, 1e6).Draw(t, "strength")
		c := feedback.Confidence(reviewers, strength)
		others := feedback.Confidence(reviewers+1, strength)
		more := feedback.Confidence(reviewers, strength+rapid.Float64Range(0, 1).Draw(t, "link"))
		if !(c >= 0 && c <= 1) || more < c || others < c {
			t.Fatalf("%v, %v: %v, %v, %v", reviewers, strength, c, more, others)
		}
	})
}

// TestConfidenceNeverFalls as a cluster grows, whoever adds whatever is alike, and stays below 1.
func TestConfidenceNeverFalls(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var similarity heed.Similarity = heed.Trigrams{}
		if rapid.Bool().Draw(rt, "model") {
			similarity = everything{}
		}
		w := newWorld(t, feedback.Config{Similarity: similarity})
		last, proposed := 0., 0.
		for range rapid.IntRange(1, 8).Draw(rt, "n") {
			r := w.says(rapid.SampledFrom([]string{"ann", "bob", "cleo"}).Draw(rt, "by"),
				rapid.SampledFrom([]string{long, long + " for it", "The summary is much too long"}).Draw(rt,
					"says"))
			if r.Confidence < last || r.Confidence > 1 {
				rt.Fatalf("%v after %v", r.Confidence, last)
			}
			last = r.Confidence
			for _, p := range w.proposals(feedback.StatePending) {
				if p.Confidence < proposed {
					rt.Fatalf("proposed with %v after %v", p.Confidence, proposed)
				}
				proposed = p.Confidence
			}
		}
	})
}

func TestEvaluateIsIdempotentAndDeterministic(t *testing.T) {
	var exports []string
	for range 2 {
		w := newWorld(t, feedback.Config{})
		for i := range 12 {
			f := w.correction([]string{"ann", "bob"}[i%2],
				[]string{long, "tests are missing", "tests are not missing", "PRD"}[i%4])
			w.add(f)
			again, err := w.Evaluate(ctx, f.ID)
			require.NoError(t, err)
			again.Proposal = ""
			assert.Equal(t, w.get(f.ID), again)
		}
		a, err := feedback.Export(ctx, w.Service)
		require.NoError(t, err)
		exports = append(exports, fmt.Sprintf("%+v", a))
	}
	assert.Equal(t, exports[0], exports[1])
}

func TestWhatFailsIsEvaluatedLater(t *testing.T) {
	similarity := &flaky{}
	w := newWorld(t, feedback.Config{Similarity: similarity})
	w.says("ann", long)
	similarity.failing = true
	f := w.correction("bob", long)
	_, err := w.Record(ctx, f)
	require.NoError(t, err)
	_, err = w.Evaluate(ctx, f.ID)
	require.ErrorIs(t, err, errFlaky)
	assert.Empty(t, w.get(f.ID).Class)
	w.add(w.approval("cleo", "")) // what needs no similarity goes on
	done, err := w.EvaluateAll(ctx)
	assert.ErrorIs(t, err, errFlaky)
	assert.Empty(t, done)
	similarity.failing = false
	done, err = w.EvaluateAll(ctx)
	require.NoError(t, err)
	require.Len(t, done, 1)
	assert.Equal(t, w.pending().ID, done[0].Proposal)
	done[0].Proposal = ""
	assert.Equal(t, w.get(f.ID), done[0])
	done, err = w.EvaluateAll(ctx)
	require.NoError(t, err)
	assert.Empty(t, done)
}

// TestEvaluationNamesTheProposal that the feedback speaks for, to whoever asks again too.
func TestEvaluationNamesTheProposal(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	assert.Empty(t, w.says("ann", long).Proposal)
	f := w.says("bob", long)
	require.NotEmpty(t, f.Proposal)
	assert.Equal(t, w.pending().ID, f.Proposal)
	again, err := w.Evaluate(ctx, f.ID)
	require.NoError(t, err)
	assert.Equal(t, f, again)
	assert.Empty(t, w.get(f.ID).Proposal, "it is not stored")
	third := w.says("cleo", long)
	assert.Equal(t, f.Proposal, third.Proposal, "what gives a proposal more evidence speaks for it")
	assert.Empty(t, w.says("dan", "another thing altogether").Proposal)

	ambiguous := w.says("eve", "the summary is not too long")
	require.Equal(t, feedback.Ambiguous, ambiguous.Class)
	_, err = w.review(w.pending(), reject, "cleo")
	require.NoError(t, err)
	again, err = w.Evaluate(ctx, f.ID)
	require.NoError(t, err)
	assert.Empty(t, again.Proposal, "nothing waits any more")
	first := w.says("ann", "name the owner")
	second := w.correction("bob", "do not name the owner")
	require.Equal(t, feedback.Ambiguous, w.add(second).Class)
	resolved, err := w.Resolve(ctx, order(second.ID), feedback.GeneralizableLow)
	require.NoError(t, err)
	assert.NotEqual(t, first.Cluster, resolved.Cluster)
	assert.Equal(t, w.pending().ID, resolved.Proposal)
}

func TestAnEvaluatorsNonsenseIsContained(t *testing.T) {
	good := feedback.Evaluation{Class: feedback.EdgeCase, Confidence: 0.5}
	for name, spoil := range map[string]func(*feedback.Evaluation){
		"no class":          func(v *feedback.Evaluation) { v.Class = "" },
		"unknown class":     func(v *feedback.Evaluation) { v.Class = "great" },
		"positive":          func(v *feedback.Evaluation) { v.Class = feedback.Positive },
		"archived":          func(v *feedback.Evaluation) { v.Class = feedback.Archived },
		"not a number":      func(v *feedback.Evaluation) { v.Confidence = math.NaN() },
		"too sure":          func(v *feedback.Evaluation) { v.Confidence = 85 },
		"less than nothing": func(v *feedback.Evaluation) { v.Confidence = -0.1 },
		"unknown action":    func(v *feedback.Evaluation) { v.Action = "DEPLOY" },
		"invented feedback": func(v *feedback.Evaluation) { v.Similar = []string{"d1", "d99"} },
		"twice":             func(v *feedback.Evaluation) { v.Similar = []string{"d1", "d1"} },
		"same and opposite": func(v *feedback.Evaluation) {
			v.Similar, v.Contradicts = []string{"d2"}, []string{"d2"}
		},
		"invented dispute": func(v *feedback.Evaluation) { v.Contradicts = []string{"d99"} },
		"too much to say": func(v *feedback.Evaluation) {
			v.Rationale = string(make([]byte,
				feedback.MaxComment+1))
		},
		"a panic": func(*feedback.Evaluation) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			silly := false
			w := newWorld(t, feedback.Config{Evaluator: func(context.Context,
				feedback.Case) (feedback.Evaluation, error) {
				v := good
				if silly {
					spoil(&v)
				}
				return v, nil
			}})
			w.says("ann", "keep it under 10 pages")
			w.says("ann", "keep it under 20 pages")
			silly = true
			f := w.correction("bob", "keep it under 10 pages")
			_, err := w.Record(ctx, f)
			require.NoError(t, err)
			_, err = w.Evaluate(ctx, f.ID)
			require.Error(t, err)
			assert.Empty(t, w.get(f.ID).Class)
			silly = false
			_, err = w.Evaluate(ctx, f.ID)
			require.NoError(t, err)
		})
	}
}

func TestAnEvaluatorDecidesWithinItsSupport(t *testing.T) {
	var asked feedback.Case
	verdict := feedback.Evaluation{Class: feedback.GeneralizableHigh, Confidence: 1,
		Rationale: "obvious"}
	w := newWorld(t, feedback.Config{Evaluator: func(
		_ context.Context, c feedback.Case,
	) (feedback.Evaluation, error) {
		asked = c
		for i := range c.Candidates {
			c.Candidates[i].Tags, c.Candidates[i].ID = nil, "spoilt"
		}
		c.Feedback.Summary = "spoilt"
		return verdict, nil
	}})
	r := w.says("ann", "leave the choice of a database to engineers")
	assert.Equal(t, feedback.EdgeCase, r.Class, "one alone is an edge case, whoever says otherwise")
	verdict.Similar = []string{"d1"}
	r = w.says("ann", "PRDs must be silent about PostgreSQL")
	assert.Equal(t, feedback.GeneralizableLow, r.Class, "two of one reviewer are not many")
	assert.Equal(t, "d1", r.Cluster, "the evaluator knows that they say the same")
	assert.Len(t, asked.Candidates, 1)
	assert.Equal(t, "leave the choice of a database to engineers", w.get("d1").Summary,
		"what it is given is its own")
	verdict.Similar = []string{"d2"}
	r = w.says("bob", "those who build it choose its storage")
	assert.Equal(t, feedback.GeneralizableHigh, r.Class)
	assert.Equal(t, "d1", r.Cluster)
	verdict = feedback.Evaluation{Class: feedback.Ambiguous, Similar: []string{}}
	r = w.says("bob", "what a strange document")
	assert.Equal(t, feedback.Ambiguous, r.Class)
	assert.Empty(t, r.Cluster)
}

func TestQuotedRulesAreNotEvidence(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.activate(rule("The summary must be short"))
	prompt := w.inject("prd", "").Prompt
	f := w.correction("ann", "")
	f.Comment = prompt + "this ignores the reader"
	r := w.add(f)
	assert.Equal(t, "this ignores the reader", feedback.Said(r))
	f = w.correction("bob", "")
	f.Comment = "see:\n\n" + prompt
	assert.Equal(t, feedback.EdgeCase, w.add(f).Class, "two quotations are not alike")
	f = w.correction("bob", "")
	f.Comment = prompt
	assert.Contains(t, w.add(f).Rationale, "insufficient detail")
}

func TestResolve(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", "enable caching of pages")
	contested := w.says("bob", "disable caching of pages")
	require.Equal(t, feedback.Ambiguous, contested.Class)
	resolve := func(id string, as feedback.Classification, reason string) (feedback.Feedback, error) {
		return w.Resolve(ctx, feedback.Act{ID: id, Actor: "Cleo", Reason: reason}, as)
	}
	for _, as := range []feedback.Classification{"", feedback.Positive, feedback.Ambiguous} {
		_, err := resolve(contested.ID, as, "because")
		assert.ErrorAs(t, err, new(*heed.InputError))
	}
	_, err := resolve(contested.ID, feedback.Archived, "")
	assert.ErrorAs(t, err, new(*heed.InputError), "a reason is needed")
	_, err = resolve("d1", feedback.Archived, "it is an edge case")
	assert.Equal(t, "state", feedback.Refusal(err))
	_, err = resolve("unknown", feedback.Archived, "why")
	assert.ErrorIs(t, err, heed.ErrNotFound)

	r, err := resolve(contested.ID, feedback.GeneralizableLow, "caching was decided against")
	require.NoError(t, err)
	assert.Equal(t, "cleo", r.Resolver)
	p := w.pending()
	assert.Equal(t, p.ID, r.Proposal)
	r.Proposal = ""
	assert.Equal(t, w.get(contested.ID), r)
	assert.Equal(t, []string{contested.ID}, p.Evidence)
	assert.Equal(t, "disable caching of pages", p.Text)
	assert.Equal(t, []string{"evaluate:", "resolve:cleo"}, w.audit(contested.ID))
	_, err = resolve(contested.ID, feedback.Archived, "again")
	var state *feedback.RefusedError
	require.ErrorAs(t, err, &state)
	assert.Equal(t, "generalizable_low", state.State)
	assert.ErrorIs(t, err, heed.ErrConflict)
	assert.Equal(t, []string{"evaluate:", "resolve:cleo", "resolve.refused:cleo"},
		w.audit(contested.ID))

	third := w.says("eve", "do not enable caching of pages")
	require.Equal(t, feedback.Ambiguous, third.Class)
	r, err = resolve(third.ID, feedback.Archived, "settled")
	require.NoError(t, err)
	assert.Equal(t, feedback.Archived, r.Class)
	assert.Empty(t, r.Cluster, "it leaves the clusters")

	blank := w.correction("eve", "")
	w.add(blank)
	_, err = resolve(blank.ID, feedback.GeneralizableHigh, "x")
	assert.ErrorAs(t, err, new(*heed.InputError), "no text makes no rule")
	r, err = resolve(blank.ID, feedback.EdgeCase, "x")
	require.NoError(t, err)
	assert.Equal(t, feedback.DocumentOnly, r.Action)
}

func TestClustersDoNotDependOnWhoEvaluates(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	other, err := feedback.New(ctx, feedback.Config{Store: w.store, Now: w.clock.Now})
	require.NoError(t, err)
	var failures []error
	results := make(chan error)
	for i := range 40 {
		f := w.correction([]string{"ann", "bob"}[i%2], long)
		_, err := w.Record(ctx, f)
		require.NoError(t, err)
		go func() {
			service := []*feedback.Service{w.Service, other}[i%2]
			_, err := service.Evaluate(ctx, f.ID)
			results <- err
		}()
	}
	for range 40 {
		failures = append(failures, <-results)
	}
	require.NoError(t, errors.Join(failures...))
	first := w.get("d1").Cluster
	for i := range 40 {
		r := w.get(fmt.Sprint("d", i+1))
		assert.Equal(t, first, r.Cluster)
		assert.Equal(t, feedback.GeneralizableHigh, r.Class)
	}
	_, _, err = w.Flush(ctx)
	require.NoError(t, err)
	assert.Equal(t, 40, w.pending().Occurrences, "one proposal, with all of them")
}

func TestEvaluateOfNothing(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	_, err := w.Evaluate(ctx, "unknown")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.EqualError(t, err, "feedback: evaluate: feedback.record: not found")
}
