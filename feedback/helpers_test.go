package feedback_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
)

const day = 24 * time.Hour

// thorough has tests run their long variants.
var thorough = os.Getenv("HEED_LONG") != ""

// clock is a clock that a test sets. It moves on by a microsecond whenever it is read, so that what
// comes later is later.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.IsZero() {
		c.now = start
	}
	c.now = c.now.Add(time.Microsecond)
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a service with all that a test needs around it.
type world struct {
	*feedback.Service
	t     testing.TB
	rules *feedback.Rules
	store store.Store
	clock *clock
	count int
	// subject and last are proposals that a test is about.
	subject, last feedback.Proposal
}

// newWorld makes a service whose ids are numbers, "n1", "n2" and so on.
func newWorld(t testing.TB, cfg feedback.Config) *world {
	w := &world{t: t, clock: &clock{}}
	if cfg.Now == nil {
		cfg.Now = w.clock.Now
	}
	if cfg.Store == nil {
		cfg.Store = newStore(t, cfg.Now)
	}
	if cfg.NewID == nil {
		var mu sync.Mutex
		n := 0
		cfg.NewID = func() string {
			mu.Lock()
			defer mu.Unlock()
			n++
			return fmt.Sprint("n", n)
		}
	}
	service, err := feedback.New(ctx, cfg)
	require.NoError(t, err)
	w.Service, w.rules, w.store = service, service.Rules(), cfg.Store
	return w
}

func newStore(t testing.TB, now func() time.Time) *memstore.Store {
	st, err := memstore.New(memstore.Config{Now: now})
	require.NoError(t, err)
	return st
}

// put puts values straight into the store.
func (w *world) put(values ...any) {
	w.t.Helper()
	_, err := w.store.Commit(ctx, store.Batch{Records: feedback.Stored(values...)})
	require.NoError(w.t, err)
}

// correction is a feedback by a reviewer that corrects an agent's output.
func (w *world) correction(reviewer, summary string) feedback.Feedback {
	w.count++
	return feedback.Feedback{
		ID: fmt.Sprint("d", w.count), Gate: "HITL-1", Agent: "prd",
		Decision: feedback.ApprovedWithChanges, Reviewer: reviewer,
		At: w.clock.Now(), Summary: summary, OutputSHA: fmt.Sprint("sha", w.count),
	}
}

func (w *world) approval(reviewer, summary string) feedback.Feedback {
	f := w.correction(reviewer, summary)
	f.Decision = feedback.Approved
	return f
}

// add records a feedback and evaluates it.
func (w *world) add(f feedback.Feedback) feedback.Feedback {
	w.t.Helper()
	_, err := w.Record(ctx, f)
	require.NoError(w.t, err)
	r, err := w.Evaluate(ctx, f.ID)
	require.NoError(w.t, err)
	return r
}

func (w *world) says(reviewer, summary string) feedback.Feedback {
	w.t.Helper()
	return w.add(w.correction(reviewer, summary))
}

func (w *world) get(id string) feedback.Feedback {
	w.t.Helper()
	r, err := w.Feedback(ctx, id)
	require.NoError(w.t, err)
	return r
}

func (w *world) proposals(status feedback.State) []feedback.Proposal {
	w.t.Helper()
	all, _, err := w.rules.Proposals(ctx, feedback.ProposalQuery{Status: status}, 0)
	require.NoError(w.t, err)
	return all
}

func (w *world) pending() feedback.Proposal {
	w.t.Helper()
	all := w.proposals(feedback.StatePending)
	require.Len(w.t, all, 1)
	return all[0]
}

func rule(text string, agents ...string) feedback.Draft {
	if len(agents) == 0 {
		agents = []string{"prd"}
	}
	return feedback.Draft{Text: text, Agents: agents}
}

func (w *world) propose(actor string, d feedback.Draft, evidence ...string) feedback.Proposal {
	w.t.Helper()
	p, err := w.rules.Propose(ctx, feedback.Submission{Draft: d, Evidence: evidence, Actor: actor,
		Reason: "seen often"})
	require.NoError(w.t, err)
	return p
}

func (w *world) review(p feedback.Proposal, decision feedback.Decision, actor string,
	override ...string) (feedback.Proposal, error) {
	return w.rules.Review(ctx, feedback.Review{
		Proposal: p.ID, Decision: decision, Actor: actor, Reason: "it is right", Hash: p.Hash(),
		Override: override,
	})
}

func (w *world) approve(p feedback.Proposal, actors ...string) feedback.Proposal {
	w.t.Helper()
	for _, actor := range actors {
		var err error
		p, err = w.review(p, approve, actor)
		require.NoError(w.t, err)
	}
	return p
}

// The words of a review.
const (
	approve = feedback.Approved
	reject  = feedback.Rejected
)

// activate makes a rule of a draft.
func (w *world) activate(d feedback.Draft) feedback.Rule {
	w.t.Helper()
	p := w.approve(w.propose("paul", d), "cleo", "dan")
	require.Equal(w.t, feedback.StateApproved, p.Status)
	r, err := w.rules.Rule(ctx, p.ID)
	require.NoError(w.t, err)
	return r
}

// asks proposes a change of a rule.
func (w *world) asks(actor, id string, c string) (feedback.Proposal, error) {
	w.t.Helper()
	d := w.rule(id).Draft
	d.Change, d.Of = c, id
	return w.rules.Propose(ctx, feedback.Submission{Draft: d, Actor: actor, Reason: "it has to be"})
}

// change makes a change of a rule: olga proposes it, and two approve.
func (w *world) change(id string, c string) feedback.Rule {
	w.t.Helper()
	p, err := w.asks("olga", id, c)
	require.NoError(w.t, err)
	require.Equal(w.t, feedback.StateApproved, w.approve(p, "cleo", "dan").Status)
	return w.rule(id)
}

func (w *world) rule(id string) feedback.Rule {
	w.t.Helper()
	r, err := w.rules.Rule(ctx, id)
	require.NoError(w.t, err)
	return r
}

func (w *world) inject(agent, base string) feedback.Injection {
	w.t.Helper()
	in, err := w.rules.Inject(ctx, agent, base, "")
	require.NoError(w.t, err)
	return in
}

// Audit returns the audit log, the newest entry first, and at most that many, or all where limit is
// 0.
func (w *world) Audit(ctx context.Context, limit int) (entries []store.AuditEntry, err error) {
	for entry, err := range store.AuditEntries(ctx, w.store, store.Query{Limit: limit}) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// audit lists the actions on a subject, the first first.
func (w *world) audit(subject string) (actions []string) {
	w.t.Helper()
	entries, err := w.Audit(ctx, 0)
	require.NoError(w.t, err)
	for _, e := range entries {
		if e.Subject == subject {
			actions = append([]string{strings.TrimPrefix(e.Action, "feedback.") + ":" + e.Actor},
				actions...)
		}
	}
	return actions
}

func order(id string) feedback.Act {
	return feedback.Act{ID: id, Actor: "cleo", Reason: "it has to be"}
}

// topics is a similarity that a test dictates: texts with the same word before a colon are as alike
// as the map says.
type topics map[string]float64

func (t topics) Similar(_ context.Context, text string, others []string) ([]float64, error) {
	scores := make([]float64, len(others))
	mine, _, _ := strings.Cut(text, ":")
	for i, other := range others {
		if theirs, _, _ := strings.Cut(other, ":"); mine == theirs {
			scores[i] = t[mine]
		}
	}
	return scores, nil
}

// flaky is a similarity that fails as long as it is told to.
type flaky struct {
	heed.Trigrams
	failing bool
}

var errFlaky = errors.New("no embedder")

func (f *flaky) Similar(ctx context.Context, text string, others []string) ([]float64, error) {
	if f.failing {
		return nil, errFlaky
	}
	return f.Trigrams.Similar(ctx, text, others)
}

// judge is a similarity of two texts.
type judge func(a, b string) (float64, error)

func (j judge) Similar(_ context.Context, one string, others []string) ([]float64, error) {
	scores := make([]float64, len(others))
	for i, other := range others {
		var err error
		if scores[i], err = j(one, other); err != nil {
			return nil, err
		}
	}
	return scores, nil
}
