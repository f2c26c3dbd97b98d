package feedback_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store/storetest"
)

// notices is what an observer was told.
type notices struct {
	mu  sync.Mutex
	all []heed.Notice
}

func (n *notices) observe(_ context.Context, notice heed.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, notice)
}

// take returns what was told of a type since the last call of take, without its time, which must be
// set.
func take[T heed.Notice](t *testing.T, n *notices, timeless func(*T) *time.Time) (found []T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, notice := range n.all {
		if notice, ok := notice.(T); ok {
			at := timeless(&notice)
			assert.False(t, at.IsZero())
			*at = time.Time{}
			found = append(found, notice)
		}
	}
	n.all = nil
	return found
}

func counts(n *heed.Counted) *time.Time       { return &n.At }
func duplicates(n *heed.Duplicate) *time.Time { return &n.At }
func swept(n *heed.Swept) *time.Time          { return &n.At }

// changes returns the changes of a kind among what was told since the last call of take.
func changes(t *testing.T, n *notices, what string) (found []heed.Changed) {
	t.Helper()
	for _, c := range take(t, n, func(c *heed.Changed) *time.Time { return &c.At }) {
		if c.What == what {
			c.What = ""
			found = append(found, c)
		}
	}
	return found
}

func deadLetters(n *heed.DeadLettered) *time.Time { return &n.At }
func failures(n *heed.Failed) *time.Time          { return &n.At }

func watched(t *testing.T, cfg feedback.Config) (*world, *notices) {
	n := &notices{}
	cfg.Observer = n.observe
	return newWorld(t, cfg), n
}

func TestTheObserverIsToldOfFeedback(t *testing.T) {
	w, n := watched(t, feedback.Config{})
	f := w.correction("ann", long)
	w.add(f)
	assert.Equal(t, []heed.Counted{{Component: "feedback", Subject: f.ID, Channel: f.Gate,
		Weight: 1}}, take(t, n, counts))
	w.add(w.approval("ann", ""))
	assert.Equal(t, []heed.Counted{{Component: "feedback", Subject: "d2", Channel: f.Gate, Weight: 1,
		Reward: 1}}, take(t, n, counts))
	_, err := w.Record(ctx, f)
	require.NoError(t, err)
	assert.Equal(t, []heed.Duplicate{{Component: "feedback", What: "feedback", ID: f.ID}},
		take(t, n, duplicates))
	_, err = w.Record(ctx, feedback.Feedback{})
	require.Error(t, err)
	assert.Empty(t, n.all, "what is refused counts nowhere")
}

func TestTheObserverIsToldOfProposals(t *testing.T) {
	w, n := watched(t, feedback.Config{})
	p := w.propose("paul", rule("Be brief"))
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: p.ID}}, changes(t, n, "proposed"))
	w.says("ann", long)
	w.says("bob", long)
	cluster := w.proposals(feedback.StatePending)[0]
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: cluster.ID}},
		changes(t, n, "proposed"), "of a cluster")
	edited, err := w.rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: rule("Be terse"),
		Actor: "eve", Reason: "x"})
	require.NoError(t, err)
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: edited.ID, Quorum: 2}},
		changes(t, n, "needs_approval"), "of a new version")
	w.approve(edited, "cleo")
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: edited.ID, Approvals: 1,
		Quorum: 2}}, changes(t, n, "needs_approval"))
	_, err = w.review(edited, approve, "eve")
	require.Error(t, err)
	assert.Empty(t, n.all, "a refusal changes nothing")
	w.propose("paul", feedback.Draft{Action: feedback.DocumentOnly, Text: "Noted",
		Agents: []string{"prd"}})
	assert.Empty(t, changes(t, n, "needs_approval"), "nobody has to approve it")

	first, second := w.activate(rule("Keep the introduction short")),
		w.activate(rule("Keep the introductions short"))
	n.all = nil
	opened, err := w.rules.Consolidate(ctx)
	require.NoError(t, err)
	require.Len(t, opened, 1)
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: opened[0].ID}},
		changes(t, n, "proposed"))
	merged := w.approve(opened[0], "cleo")
	n.all = nil
	w.approve(merged, "dan")
	left := changes(t, n, "retired")
	assert.ElementsMatch(t, []heed.Changed{
		{Component: "feedback", Subject: first.ID, Reason: "superseded"},
		{Component: "feedback", Subject: second.ID, Reason: "superseded"},
	}, left)
}

func TestTheObserverIsToldOfRules(t *testing.T) {
	w, n := watched(t, feedback.Config{})
	r := w.activate(rule("Be brief"))
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: r.ID}},
		changes(t, n, "activated"))
	move := func(to feedback.State) {
		_, err := w.rules.Move(ctx, order(r.ID), to)
		require.NoError(t, err)
	}
	move(feedback.StateRetired)
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: r.ID, Reason: "retired"}},
		changes(t, n, "retired"))
	w.change(r.ID, feedback.Restore)
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: r.ID}},
		changes(t, n, "activated"))
	w.change(r.ID, feedback.Pin)
	assert.Empty(t, changes(t, n, "activated"))
	move(feedback.StateRevoked)
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: r.ID, Reason: "revoked"}},
		changes(t, n, "retired"))
}

// TestTheObserverIsToldOfAmbiguousFeedback, once, whoever had it evaluated.
func TestTheObserverIsToldOfAmbiguousFeedback(t *testing.T) {
	w, n := watched(t, feedback.Config{})
	w.says("ann", long)
	assert.Empty(t, changes(t, n, "ambiguous"))
	f := w.says("bob", "the summary is not too long")
	require.Equal(t, feedback.Ambiguous, f.Class)
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: f.ID}},
		changes(t, n, "ambiguous"))
	_, err := w.Evaluate(ctx, f.ID)
	require.NoError(t, err)
	assert.Empty(t, changes(t, n, "ambiguous"))
	_, err = w.Record(ctx, w.correction("eve", "?!"))
	require.NoError(t, err)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: "d3"}},
		changes(t, n, "ambiguous"))
}

// TestTheObserverIsToldOfASweepThatFails, and in which part: nobody reads what heed.Run returns.
func TestTheObserverIsToldOfASweepThatFails(t *testing.T) {
	st := &storetest.Failing{Store: newStore(t, nil)}
	w, n := watched(t, feedback.Config{Store: st})
	storetest.FailEach(func(at int, after bool) bool {
		if after {
			return true
		}
		p := w.propose("paul", rule(fmt.Sprint("Say why in line ", at)))
		w.clock.advance(8 * day)
		n.all = nil
		st.Fail(at, false)
		err := w.Sweep(ctx, time.Time{})
		done := slices.Clone(n.all)
		told := take(t, n, failures)
		if !st.Failed() {
			require.NoError(t, err)
			assert.Empty(t, told)
			return false
		}
		require.ErrorIs(t, err, storetest.ErrFailed)
		expired := slices.Contains(w.audit(p.ID), "expire:")
		for _, notice := range done {
			if s, is := notice.(heed.Swept); is && !expired {
				assert.Zero(t, s.Count, "what failed is not counted")
			}
		}
		require.NoError(t, w.Sweep(ctx, time.Time{}), "which leaves the next nothing to expire")
		n.all = nil
		require.Len(t, told, 1)
		assert.Equal(t, "sweep", told[0].What)
		assert.ErrorIs(t, told[0].Err, storetest.ErrFailed)
		assert.Regexp(t, "^feedback: sweep: (expire|flush|measure): ", err.Error())
		return true
	})
}

func TestTheObserverIsToldOfSweeps(t *testing.T) {
	w, n := watched(t, feedback.Config{})
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Empty(t, n.all, "there was nothing to do")
	w.propose("paul", rule("Be brief"))
	f := w.correction("ann", long)
	_, err := w.Record(ctx, f)
	require.NoError(t, err)
	w.clock.advance(8 * day)
	n.all = nil
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Equal(t, []heed.Swept{{Component: "feedback", Count: 2}}, take(t, n, swept),
		"one expired, one was evaluated")

	r := w.activate(rule("Say why"))
	for i := range 40 {
		at, decision := r.Since.Add(-day), feedback.Approved
		if i%2 == 0 {
			at = r.Since.Add(8 * day)
		}
		if i%2 == 0 || i == 1 {
			decision = feedback.Rejected
		}
		f := w.correction("ann", "")
		f.At, f.Decision = at.Add(time.Duration(i)*time.Second), decision
		f.Evaluation, f.Recorded = feedback.Evaluation{Class: feedback.Archived}, f.At
		w.put(f)
	}
	w.clock.advance(31 * day)
	n.all = nil
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Equal(t, []heed.Changed{{Component: "feedback", Subject: r.ID,
		Reason: "harmful: improvement -9.500"}}, changes(t, n, "harmful"))
}

func TestTheObserverIsToldOfTheStream(t *testing.T) {
	w, n := watched(t, feedback.Config{Similarity: &flaky{failing: true}})
	w.says("ann", "") // without a text, which needs no similarity
	n.all = nil
	require.NoError(t, w.consume(&queue{messages: [][]byte{[]byte("no JSON")}}, &dead{}, nil))
	found := take(t, n, deadLetters)
	require.Len(t, found, 1)
	assert.Equal(t, heed.DeadLettered{Component: "feedback", ID: found[0].ID,
		Reason: "event: is not the JSON of a decision"}, found[0])
	require.NoError(t, w.consume(&queue{messages: [][]byte{message("1", "ann", long),
		message("2", "ann", long)}}, &dead{}, nil))
	failed := take(t, n, failures)
	require.NotEmpty(t, failed)
	assert.Equal(t, "evaluation", failed[0].What)
	assert.ErrorIs(t, failed[0].Err, errFlaky)
}

// The reason for putting an event aside is in the error, and in no notice.
func TestANoticeQuotesNobody(t *testing.T) {
	w, n := watched(t, feedback.Config{})
	d := &dead{}
	messages := [][]byte{message("1", " mallory", long), message("2", "ann", long),
		message("2", "ann", "other words")}
	require.NoError(t, w.consume(&queue{messages: messages}, d, nil))
	require.Len(t, d.reasons, 2)
	assert.Equal(t, "feedback: record: Reviewer: can't be the name of a person: "+
		"must not begin or end with a blank, or have two in a row", d.reasons[0])
	assert.Equal(t, []heed.DeadLettered{
		{Component: "feedback", ID: "x", Reason: "Reviewer: can't be the name of a person"},
		{Component: "feedback", ID: "x", Reason: "another decision has this id"},
	}, take(t, n, deadLetters))
}

// TestTheObserverMayCallBack holds that it is told outside of locks.
func TestTheObserverMayCallBack(t *testing.T) {
	var w *world
	var read []string
	w = newWorld(t, feedback.Config{Observer: func(ctx context.Context, n heed.Notice) {
		if n, ok := n.(heed.Changed); ok && n.What == "activated" {
			p, err := w.asks("olga", n.Subject, feedback.Pin)
			assert.NoError(t, err)
			w.approve(p, "cleo", "dan")
			read = append(read, n.Subject)
		}
	}})
	r := w.activate(rule("Be brief"))
	assert.Equal(t, []string{r.ID}, read)
	assert.True(t, w.rule(r.ID).Pinned)
}
