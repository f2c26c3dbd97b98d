package feedback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
)

const (
	paraphrased = "Way too wordy. Cut it in half."
	paraphrase  = "pls shorten this by about 50%, it rambles"
)

func by(actor, id string) feedback.Act {
	return feedback.Act{ID: id, Actor: actor, Reason: "I have read them"}
}

// TestAPersonJoins what words keep apart. Whoever joins is an author, and no more.
func TestAPersonJoins(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", paraphrased)
	require.NotEqual(t, "d1", w.says("bob", paraphrase).Cluster)
	r, err := w.Join(ctx, by("Cleo", "d2"), "d1")
	require.NoError(t, err)
	assert.Equal(t, w.get("d2"), r)
	assert.Equal(t, []any{"d1", "cleo", feedback.GeneralizableHigh},
		[]any{r.Cluster, r.Joiner, r.Class})
	assert.Equal(t, feedback.GeneralizableHigh, w.get("d1").Class)
	assert.Equal(t, []string{"evaluate:", "join:cleo"}, w.audit("d2"))
	assert.Empty(t, w.proposals(""), "nothing is proposed at once by one person's word")
	again, err := w.Join(ctx, by("cleo", "d2"), "d1")
	require.NoError(t, err)
	assert.Equal(t, r, again)

	w.flush()
	p := w.pending()
	assert.Equal(t, []string{"d1", "d2"}, p.Evidence)
	assert.Equal(t, []int{2, 2}, []int{p.Occurrences, p.Reviewers})
	assert.Equal(t, []string{"ann", "bob", "cleo"}, p.Authors)
	assert.Contains(t, p.Warnings, feedback.WarnWords)
	assert.Less(t, p.Confidence, 0.7)
	err = store.Run(ctx, w.store, store.Job{Forget: []string{"cleo"}})
	require.NoError(t, err)
	p = w.approve(w.pending(), "cleo", "ann")
	assert.Equal(t, feedback.StatePending, p.Status, "none of them is an outsider")
	assert.Equal(t, feedback.StateApproved, w.approve(p, "dan").Status)

	assert.Equal(t, "d1", w.says("eve", paraphrase+"!").Cluster, "the same words join, too")
	assert.Equal(t, "d1", w.says("eve", "way too wordy: cut it in half").Cluster)
}

// TestJoiningIsNoSupport of the person who joins.
func TestJoiningIsNoSupport(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", paraphrased)
	w.says("ann", paraphrase)
	r, err := w.Join(ctx, by("bob", "d2"), "d1")
	require.NoError(t, err)
	assert.Equal(t, feedback.GeneralizableLow, r.Class, "one reviewer said it twice")
	w.flush()
	p := w.pending()
	assert.Equal(t, []int{2, 1}, []int{p.Occurrences, p.Reviewers})
	assert.Contains(t, p.Warnings, feedback.WarnSingle)
}

// TestAPersonOverrulesTheWords of a correction that seems to contradict another.
func TestAPersonOverrulesTheWords(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", "Never be terse in answers")
	r := w.says("bob", "Be less terse in answers")
	require.Equal(t, feedback.Ambiguous, r.Class)
	require.Equal(t, []string{"d1"}, r.Contradicts)
	r, err := w.Join(ctx, by("cleo", "d2"), "d1")
	require.NoError(t, err)
	assert.Equal(t, []any{"d1", feedback.GeneralizableHigh}, []any{r.Cluster, r.Class})
	assert.Empty(t, r.Contradicts)
	assert.Empty(t, r.Dispute)
}

// TestAPersonSplits what does not belong, and it stays apart until somebody joins it.
func TestAPersonSplits(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", "name the owner of the table")
	w.says("ann", "Please name the owner of that table")
	require.Equal(t, "d1", w.get("d2").Cluster)
	r, err := w.Split(ctx, by("cleo", "d2"))
	require.NoError(t, err)
	assert.Equal(t, w.get("d2"), r)
	assert.NotEqual(t, "d1", r.Cluster)
	assert.Equal(t, feedback.EdgeCase, r.Class)
	assert.Equal(t, []string{"d1"}, r.Apart)
	assert.Equal(t, []string{"evaluate:", "split:cleo"}, w.audit("d2"))
	again, err := w.Split(ctx, by("cleo", "d2"))
	require.NoError(t, err)
	assert.Equal(t, r, again, "a repeated call has no effect")

	r, err = w.Join(ctx, by("dan", "d2"), "d1")
	require.NoError(t, err)
	assert.Equal(t, "d1", r.Cluster)
	assert.Empty(t, r.Apart)
	r, err = w.Split(ctx, by("cleo", "d1"))
	require.NoError(t, err)
	assert.NotEqual(t, "d1", r.Cluster, "also the one that the cluster is named for")
	assert.Equal(t, "d1", w.get("d2").Cluster)
}

// TestTakingOutEndsAJoin as splitting does: from then on, who joined is no author of what it leads
// to.
func TestTakingOutEndsAJoin(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", paraphrased)
	w.says("bob", paraphrase)
	_, err := w.Join(ctx, by("cleo", "d2"), "d1")
	require.NoError(t, err)
	w.flush()
	require.Contains(t, w.pending().Evidence, "d2")
	_, err = w.Split(ctx, by("dan", "d2"))
	require.NoError(t, err)
	assert.Empty(t, w.get("d2").Joiner)
}

func TestJoinAndSplitAreRefused(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", long)
	w.says("bob", paraphrase)
	other := w.correction("ann", paraphrased)
	other.Agent = "coder"
	w.add(other)
	w.add(w.approval("ann", "that is right"))
	private := w.correction("ann", "say nothing")
	private.Private = true
	w.add(private)
	untexted := w.correction("ann", "")
	untexted.Decision = feedback.Rejected
	require.Equal(t, feedback.EdgeCase, w.add(untexted).Class)
	for name, test := range map[string]struct {
		id, with string
		refusal  string
	}{
		"of another agent":      {"d3", "d1", "ineligible"},
		"an approval":           {"d4", "d1", "state"},
		"with an approval":      {"d1", "d4", "state"},
		"what is kept out":      {"d5", "d1", "state"},
		"with what is kept out": {"d1", "d5", "state"},
		"without a text":        {"d6", "d1", "state"},
	} {
		_, err := w.Join(ctx, by("cleo", test.id), test.with)
		assert.Equal(t, test.refusal, feedback.Refusal(err), name)
	}
	for _, with := range []string{"", "d1"} {
		_, err := w.Join(ctx, by("cleo", "d1"), with)
		assert.ErrorAs(t, err, new(*heed.InputError), with)
	}
	for _, ids := range [][2]string{{"d1", "unknown"}, {"unknown", "d1"}} {
		_, err := w.Join(ctx, by("cleo", ids[0]), ids[1])
		assert.ErrorIs(t, err, heed.ErrNotFound)
	}
	_, err := w.Join(ctx, by("", "d1"), "d2")
	assert.ErrorAs(t, err, new(*heed.InputError))
	_, err = w.Split(ctx, by("cleo", "d4"))
	assert.Equal(t, "state", feedback.Refusal(err))

	w.says("bob", long) // which makes a proposal
	require.Contains(t, w.pending().Evidence, "d1")
	_, err = w.Join(ctx, by("cleo", "d1"), "d2")
	assert.Equal(t, "ineligible", feedback.Refusal(err), "its approvers have seen it there")
}

// A join writes only the corrections that it changes.
func TestAJoinLeavesTheOthersAlone(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", long)
	w.says("bob", long)
	w.says("dan", "cut it down to one page")
	before := w.get("d1")
	require.Equal(t, feedback.GeneralizableHigh, before.Class)
	r, err := w.Join(ctx, order("d3"), "d2")
	require.NoError(t, err)
	require.Equal(t, before.Cluster, r.Cluster)
	assert.Equal(t, before, w.get("d1"))
	_, err = w.Split(ctx, order("d3"))
	require.NoError(t, err)
	_, err = w.Join(ctx, order("d3"), "d1")
	require.NoError(t, err)
	assert.Equal(t, before, w.get("d1"), "only the one that was taken out knows that")
}
