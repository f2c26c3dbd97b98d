package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// lossy returns a workshop whose agent answers without the store.
func lossy(t *testing.T) *workshop {
	w := newWorkshop(t)
	w.cfg.RequireStore = false
	w.Agent = w.again()
	_, err := w.Prepare(ctx, loop.Event{Text: full, AskModel: true}) // it reads the heuristic
	require.NoError(t, err)
	w.plan, err = w.Prepare(ctx, loop.Event{
		ID: "p", Text: "The mail is late", Session: "u", Person: "cid", Domain: "d",
	})
	require.NoError(t, err)
	return w
}

// Every store call of an answer fails, before its effect or after it. There is an answer each time,
// which says what it lacks. What is told afterwards makes up for all of it, except for silence.
func TestAnAnswerWithoutTheNthStoreCall(t *testing.T) {
	heuristic := loop.Event{ID: "e", Text: full, Session: "s", Person: "ann", Stream: "x",
		At: start.Add(time.Second)}
	model := loop.Event{ID: "e", Text: "The mail is late", Session: "t", Person: "bob", Task: "mail",
		At: start.Add(time.Second)}
	answer := func(e loop.Event) func(w *workshop) (loop.Answer, error) {
		return func(w *workshop) (loop.Answer, error) { return w.Answer(ctx, e) }
	}
	for name, test := range map[string]struct {
		text string
		call func(w *workshop) (loop.Answer, error)
		e    loop.Event
	}{
		"heuristic": {rotate, answer(heuristic), heuristic},
		"model":     {"Look at the logs.", answer(model), model},
		"answered": {"Wait.", func(w *workshop) (loop.Answer, error) {
			return w.Answered(ctx, w.plan, loop.Reply{Text: "Wait."})
		}, loop.Event{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := lossy(t)
			given, err := test.call(whole)
			require.NoError(t, err)
			require.Nil(t, given.Degraded)
			want := whole.learned()
			failEach(t, func(t *testing.T, at int, after bool) bool {
				where := fmt.Sprintf("call %d, after %v", at, after)
				w := lossy(t)
				w.fails.Fail(at, after)
				given, err := test.call(w)
				failed := w.fails.Failed()
				w.fails.Fail(0, false)
				require.NoError(t, err, where)
				require.Equal(t, test.text, given.Text, where)
				if d := given.Degraded; d != nil {
					require.True(t, failed, where)
					for _, err := range []error{d.Before, d.After} {
						if err != nil {
							require.ErrorIs(t, err, heed.ErrUnavailable, where)
						}
					}
					w.share(given, test.e)
				}
				require.Equal(t, want, w.learned(), where)
				return failed
			})
		})
	}
}

// share tells an agent afterwards of what was answered while the store was away.
func (w *workshop) share(given loop.Answer, e loop.Event) {
	if given.Degraded.After != nil {
		for range 2 { // counts once
			again, err := w.Answered(ctx, given.Plan, loop.Reply{})
			require.NoError(w.t, err)
			require.NoError(w.t, again.Degraded.After)
			require.Equal(w.t, given.Text, again.Text)
		}
	}
	if given.Degraded.Before != nil {
		_, err := w.Hear(ctx, learning.Message{
			ID: e.ID, Stream: e.Stream, Session: e.Session, Person: e.Person, Text: e.Text, At: e.At,
		})
		require.NoError(w.t, err)
	}
}

// learned returns the evidence and the texts of the answers.
func (w *workshop) learned() (all []string) {
	for _, kind := range []string{"learning.heuristic", "learning.fire", "strategy.arm"} {
		for scope, err := range w.kept.Scopes(ctx, kind) {
			require.NoError(w.t, err)
			for p, err := range w.kept.List(ctx, store.CellQuery{Kind: kind, Scope: scope}) {
				require.NoError(w.t, err)
				all = append(all, fmt.Sprintf("%v %q %q %.9f %.9f %d",
					p.Cell, p.Channel, p.Source, p.Tally.Mass, p.Tally.Reward, p.Tally.N()))
			}
		}
	}
	for _, id := range []string{"e", "h", "m", "p"} {
		account, err := w.Explain(ctx, id)
		if err == nil {
			all = append(all, id, account.Text, account.Heuristic, account.Channel)
		} else {
			require.ErrorIs(w.t, err, loop.ErrNoAnswer)
		}
	}
	return all
}

// An island is an agent whose store can be taken away, with two arms, a rule, a note and a
// heuristic, and everything that the observer was told of outages.
type island struct {
	*world
	sea     *storetest.Failing
	notices []heed.Notice
}

func newIsland(t *testing.T, cfg loop.Config) *island {
	i := &island{sea: &storetest.Failing{Store: new(memstore.Store)}}
	cfg.Store = i.sea
	cfg.Arms = []loop.Arm{{ID: "poor"}, {ID: "good", System: "Answer well."}}
	cfg.Lessons = loop.Lessons{
		Notes:      []loop.Note{{ID: "n", Topic: "the mail is late", Text: "See room 3."}},
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}
	cfg.Observer = func(_ context.Context, n heed.Notice) {
		switch n.(type) {
		case heed.Outage, heed.Restored, heed.Failed:
			i.notices = append(i.notices, n)
		}
	}
	i.world = newWorld(t, cfg)
	approved(t, i.Feedback(), "Name the ticket.")
	return i
}

// teach shows which arm is good.
func (i *island) teach() {
	for n := range 60 {
		a := i.answer(loop.Event{Text: "The mail is late", Item: "x"})
		value := -1.
		if a.Plan.Arm.ID == "good" {
			value = 1
		}
		require.NoError(i.t, i.React(ctx, a.ID, loop.Reaction{Person: fmt.Sprint("p", n),
			Value: value}))
		i.clock.Advance(time.Second)
	}
}

// Without the store, the agent goes on by what it has read last: the best arm, the rules, the
// notes, the heuristics. The observer is told once when that begins, and once when it ends.
func TestWithoutTheStore(t *testing.T) {
	w := newIsland(t, loop.Config{})
	w.teach()
	w.answer(loop.Event{Text: full})
	w.sea.SetAway(true)
	began, good := w.clock.Now(), 0
	var given []loop.Answer
	for range 50 {
		w.clock.Advance(time.Minute) // which is longer than beliefs are fresh
		a := w.answer(loop.Event{Text: "The mail is late", Item: "x"})
		if a.Plan.Arm.ID == "good" {
			good++
		}
		assert.Equal(t, "Look at the logs.", a.Text)
		assert.Len(t, a.Plan.Rules, 1)
		assert.Contains(t, a.Plan.System, "Name the ticket.")
		assert.Contains(t, a.Plan.System, "See room 3.")
		require.NotNil(t, a.Degraded)
		assert.ErrorIs(t, a.Degraded.Before, storetest.ErrFailed)
		assert.ErrorIs(t, a.Degraded.After, heed.ErrUnavailable)
		assert.Empty(t, a.Degraded.Unread)
		assert.ErrorIs(t, w.React(ctx, a.ID, loop.Reaction{Value: 1}), heed.ErrUnavailable)
		given = append(given, a)
	}
	assert.Greater(t, good, 40, "the last beliefs choose")
	byHeuristic := w.answer(loop.Event{Text: full})
	assert.Equal(t, decision.Heuristic, byHeuristic.Result.Path)
	assert.Equal(t, rotate, byHeuristic.Text)

	w.sea.SetAway(false)
	w.clock.Advance(time.Minute)
	a := w.answer(loop.Event{Text: "The mail is late", Item: "x"})
	assert.Nil(t, a.Degraded)
	require.Len(t, w.notices, 2)
	assert.Equal(t, heed.Outage{
		Component: "loop", At: began.Add(time.Minute), What: "store", Err: storetest.ErrFailed,
	}, w.notices[0])
	assert.Equal(t, heed.Restored{
		Component: "loop", At: w.clock.Now(), What: "store", Since: began.Add(time.Minute),
	}, w.notices[1])

	_, err := w.Explain(ctx, given[0].ID)
	require.ErrorIs(t, err, loop.ErrNoAnswer, "it is lost, unless it is told")
	for _, a := range append(given, byHeuristic) {
		told, err := w.Answered(ctx, a.Plan, loop.Reply{})
		require.NoError(t, err)
		require.NoError(t, told.Degraded.After)
		account, err := w.Explain(ctx, a.ID)
		require.NoError(t, err)
		assert.Equal(t, a.Text, account.Text)
	}
	before := w.mean("", "good")
	w.clock.Advance(time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	for _, a := range given {
		account, err := w.Explain(ctx, a.ID)
		require.NoError(t, err)
		assert.False(t, account.Known, "nobody could react, so silence is no approval")
	}
	require.NoError(t, w.React(ctx, given[0].ID, loop.Reaction{Person: "z", Value: -1}))
	assert.NotEqual(t, before, w.mean("", "good"), "a reaction counts")
}

// A process that has read nothing yet answers with the default arm, and says that it knows no
// rules.
func TestWithoutTheStoreFromTheBeginning(t *testing.T) {
	w := newIsland(t, loop.Config{Tuning: loop.Tuning{Strategy: strategy.Config{Default: "good"}}})
	w.Agent = w.again()
	w.sea.SetAway(true)
	a := w.answer(loop.Event{Text: "The mail is late", Item: "x"})
	assert.Equal(t, "Look at the logs.", a.Text)
	assert.Equal(t, "good", a.Plan.Arm.ID)
	assert.Nil(t, a.Plan.Choice, "nothing is learned of it")
	assert.Contains(t, a.Degraded.Unread, "rules")
	assert.Contains(t, a.Degraded.Unread, "candidates")
	assert.Contains(t, a.Degraded.Unread, "arm")
	assert.Empty(t, a.Violations)
	_, err := w.Tool(ctx, a.ID, loop.ToolResult{Name: "rm", Before: true})
	require.ErrorIs(t, err, heed.ErrUnavailable,
		"a call is not permitted by rules that are not known")
}

// A heuristic whose trust was not read before the store went away may have been the answer.
func TestATrustThatIsNotRemembered(t *testing.T) {
	w := newIsland(t, loop.Config{})
	w.Agent = w.again()
	w.answer(loop.Event{Text: "The mail is late", Item: "x"})
	w.sea.SetAway(true)
	a := w.answer(loop.Event{Text: full})
	assert.Equal(t, decision.Model, a.Result.Path)
	assert.Equal(t, []string{"candidates"}, a.Degraded.Unread)
}

// The error of a tool that can't be recorded is a typed error, in bounded time. Told again when the
// store is back, it counts once, and the next prompt of the task has it.
func TestAToolsErrorWithoutTheStore(t *testing.T) {
	w := newIsland(t, loop.Config{})
	failed := loop.ToolResult{ID: "1", Name: "imap", Task: "mail", Err: errors.New("login refused")}
	w.sea.SetAway(true)
	for range 2 {
		_, err := w.Tool(ctx, "e", failed)
		require.ErrorIs(t, err, heed.ErrUnavailable)
	}
	w.sea.SetAway(false)
	for range 2 {
		_, err := w.Tool(ctx, "e", failed)
		require.NoError(t, err)
	}
	p, err := w.Prepare(ctx, loop.Event{Text: "The mail is late", Task: "mail"})
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(p.System, "login refused"), p.System)

	synctest.Test(t, func(t *testing.T) {
		sea := &tide{Store: new(memstore.Store)}
		agent, err := loop.New(ctx, loop.Config{Store: sea, Model: &mouth{says: "Wait."}})
		require.NoError(t, err)
		sea.out.Store(true)
		began := time.Now()
		_, err = agent.Tool(ctx, "e", failed)
		require.ErrorIs(t, err, heed.ErrUnavailable)
		assert.Equal(t, 5*time.Second, time.Since(began))
	})
}

// Without the store, rules are enforced as they were read last.
func TestRulesAreEnforcedWithoutTheStore(t *testing.T) {
	w := newIsland(t, loop.Config{})
	w.enforce("Never name prices.", feedback.Check{Forbid: "logs"})
	w.answer(loop.Event{Text: "The mail is late"})
	w.sea.SetAway(true)
	a := w.answer(loop.Event{Text: "The mail is late"})
	assert.Equal(t, []string{"Never name prices."}, broken(a.Violations))
	assert.Empty(t, a.Degraded.Unread)
}

// What is no outage is an error: bad input, a context that has ended, and everything if the host
// requires the store.
func TestWhatIsNoOutage(t *testing.T) {
	w := newIsland(t, loop.Config{RequireStore: true})
	w.sea.SetAway(true)
	for range 2 {
		a, err := w.Answer(ctx, loop.Event{Text: full})
		require.ErrorIs(t, err, heed.ErrUnavailable)
		require.ErrorIs(t, err, storetest.ErrFailed)
		assert.Empty(t, a.Text)
		require.ErrorIs(t, second(w.Prepare(ctx, loop.Event{Text: full})), heed.ErrUnavailable)
	}
	assert.Len(t, w.notices, 1, "the observer is told of the outage all the same")

	w = newIsland(t, loop.Config{})
	w.sea.SetAway(true)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, second(w.Answer(ended, loop.Event{Text: full})), context.Canceled)
	require.ErrorAs(t, second(w.Answer(ctx, loop.Event{Text: full, Person: "\xff"})),
		new(*heed.InputError))
	assert.Empty(t, w.notices)
}

// A leaving store begins to fail while the model thinks.
func TestTheStoreFailsDuringTheAnswer(t *testing.T) {
	var w *island
	w = newIsland(t, loop.Config{Model: decision.LLMFunc(
		func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			w.sea.SetAway(true)
			return decision.LLMResponse{Text: "Wait."}, nil
		},
	)})
	a := w.answer(loop.Event{Text: "The mail is late"})
	assert.Equal(t, "Wait.", a.Text)
	require.NoError(t, a.Degraded.Before)
	require.ErrorIs(t, a.Degraded.After, heed.ErrUnavailable)
	assert.NoError(t, a.Plan.Result.Err)
}

// What is known of a model's availability and cannot be stored is reported.
func TestAnOutageThatIsNotStored(t *testing.T) {
	var w *island
	w = newIsland(t, loop.Config{Model: decision.LLMFunc(
		func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			w.sea.SetAway(true)
			return decision.LLMResponse{}, llm.Unreachable
		},
	)})
	for range 3 {
		_, _ = w.Answer(ctx, loop.Event{Text: "The mail is late"})
	}
	assert.True(t, slices.ContainsFunc(w.notices, func(n heed.Notice) bool {
		f, is := n.(heed.Failed)
		return is && strings.HasPrefix(f.What, "store the availability of ")
	}), w.notices)
}

// Silence that was waited for while the store was away is no approval, because a complaint could
// not be recorded.
func TestSilenceDuringAnOutage(t *testing.T) {
	w := newIsland(t, loop.Config{})
	before := w.answer(loop.Event{Text: "The mail is late"})
	w.clock.Advance(time.Hour)
	during := w.answer(loop.Event{Text: "The mail is late"})
	w.clock.Advance(time.Second)
	w.sea.SetAway(true)
	require.Error(t, w.React(ctx, during.ID, loop.Reaction{Value: -1}))
	w.clock.Advance(time.Minute)
	w.sea.SetAway(false)
	after := w.answer(loop.Event{Text: "The mail is late"})
	w.clock.Advance(time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	for id, known := range map[string]bool{before.ID: true, during.ID: false, after.ID: true} {
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		assert.Equal(t, known, account.Known, id)
	}
}

// A tide is a store that hangs while it is out: each call lasts until its context ends.
type tide struct {
	store.Store
	out   atomic.Bool
	calls atomic.Int64
}

func (s *tide) hang(ctx context.Context) error {
	if !s.out.Load() {
		return nil
	}
	s.calls.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func (s *tide) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if err := s.hang(ctx); err != nil {
		return err
	}
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

func (s *tide) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if err := s.hang(ctx); err != nil {
		return nil, errors.Join(heed.ErrOutcomeUnknown, err)
	}
	return s.Store.Commit(ctx, batches...)
}

// A store that hangs holds an answer for six seconds once, or half of the caller's time if that is
// less. The answers after that do not wait, until as much time has passed again.
func TestAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sea := &tide{Store: new(memstore.Store)}
		model := &mouth{says: "Look at the logs."}
		agent, err := loop.New(ctx, loop.Config{Store: sea, Model: model, Arms: []loop.Arm{{ID: "a"}}})
		require.NoError(t, err)
		answer := func(ctx context.Context) (loop.Answer, time.Duration) {
			began := time.Now()
			a, err := agent.Answer(ctx, loop.Event{Text: "Hi"})
			require.NoError(t, err)
			assert.Equal(t, "Look at the logs.", a.Text)
			return a, time.Since(began)
		}
		answer(ctx)
		sea.out.Store(true)
		limited, cancel := context.WithTimeout(ctx, 4*time.Second)
		defer cancel()
		a, took := answer(limited)
		assert.Equal(t, 2*time.Second, took)
		require.ErrorIs(t, a.Degraded.Before, heed.ErrUnavailable)
		time.Sleep(2 * time.Second)
		calls := sea.calls.Load()
		_, took = answer(ctx)
		assert.Equal(t, 6*time.Second, took)
		assert.Equal(t, calls+1, sea.calls.Load())
		for range 5 {
			_, took = answer(ctx)
			assert.Zero(t, took)
		}
		assert.Equal(t, calls+1, sea.calls.Load())
		sea.out.Store(false)
		time.Sleep(6 * time.Second)
		a, took = answer(ctx)
		assert.Zero(t, took)
		assert.Nil(t, a.Degraded)
	})
}

// However many events come while a store hangs, only those before the first failure wait, and then
// one at a time, which finds out whether the store is back.
func TestAStoreThatHangsForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sea := &tide{Store: new(memstore.Store)}
		model := &mouth{says: "Look."}
		agent, err := loop.New(ctx, loop.Config{Store: sea, Model: model, Arms: twoArms})
		require.NoError(t, err)
		var waited atomic.Int64
		var all sync.WaitGroup
		answer := func() {
			began := time.Now()
			a, err := agent.Answer(ctx, loop.Event{Text: "Hi"})
			assert.NoError(t, err)
			assert.Equal(t, "Look.", a.Text)
			if time.Since(began) > 0 {
				waited.Add(1)
			}
		}
		answer()
		sea.out.Store(true)
		for range 60 {
			all.Go(answer)
			time.Sleep(time.Second)
		}
		sea.out.Store(false)
		all.Wait()
		assert.LessOrEqual(t, waited.Load(), int64(6+60/5))
		time.Sleep(6 * time.Second)
		a, err := agent.Answer(ctx, loop.Event{Text: "Hi"})
		require.NoError(t, err)
		assert.Nil(t, a.Degraded)
	})
}

// A store that refuses commits can be read by all callers at once.
func TestReadsOfAStoreThatRefusesCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &readOnly{Store: new(memstore.Store)}
		model := &mouth{says: "Look."}
		agent, err := loop.New(ctx, loop.Config{Store: st, Model: model, Arms: twoArms})
		require.NoError(t, err)
		st.refuses.Store(true)
		a, err := agent.Answer(ctx, loop.Event{Text: "Hi"})
		require.NoError(t, err)
		require.Error(t, a.Degraded.After)
		time.Sleep(time.Second)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				p, err := agent.Prepare(ctx, loop.Event{Text: "Hi"})
				assert.NoError(t, err)
				assert.Nil(t, p.Degraded)
			})
		}
		all.Wait()
	})
}

// A readOnly store takes its time, and may refuse commits.
type readOnly struct {
	store.Store
	refuses atomic.Bool
}

func (s *readOnly) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	time.Sleep(10 * time.Millisecond)
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

func (s *readOnly) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if s.refuses.Load() {
		time.Sleep(200 * time.Millisecond)
		return nil, errors.New("read-only")
	}
	return s.Store.Commit(ctx, batches...)
}

// An answer that the person has not seen is recorded as such, and silence about it is no approval.
func TestSilenceAfterAnAnswerThatWasNotShown(t *testing.T) {
	panics := func(context.Context, string, bool) { panic("gone") }
	for name, test := range map[string]struct {
		text      string
		onChunk   func(context.Context, string, bool)
		cancels   bool
		undeliver bool
		seen      bool
	}{
		"shown":                    {text: "The mail is late", seen: true},
		"heuristic, shown":         {text: full, seen: true},
		"the caller has gone":      {text: "The mail is late", cancels: true},
		"the host says so":         {text: "The mail is late", undeliver: true},
		"heuristic, host says so":  {text: full, undeliver: true},
		"heuristic, stream broken": {text: full, onChunk: panics},
	} {
		t.Run(name, func(t *testing.T) {
			limited, cancel := context.WithCancel(ctx)
			defer cancel()
			w := newIsland(t, loop.Config{Model: decision.LLMFunc(
				func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
					if test.cancels {
						cancel()
					}
					return decision.LLMResponse{Text: "Wait."}, nil
				},
			)})
			given, err := w.Answer(limited, loop.Event{ID: "e", Text: test.text, Stream: "x",
				OnChunk: test.onChunk})
			if test.cancels && given.Text == "" {
				require.ErrorIs(t, err, context.Canceled)
				return // the model was given up before it returned: there is no answer to record
			}
			assert.Equal(t, test.onChunk != nil, err != nil, "%v", err)
			if test.undeliver {
				require.NoError(t, w.Undelivered(ctx, "e"))
			}
			confidence := w.confidence("rotate")
			w.clock.Advance(time.Hour)
			require.NoError(t, w.Sweep(ctx, time.Time{}))
			account, err := w.Explain(ctx, "e")
			require.NoError(t, err)
			assert.Equal(t, test.seen, account.Known)
			assert.Equal(t, !test.seen, account.Undelivered)
			if test.text == full {
				assert.Equal(t, test.seen, confidence != w.confidence("rotate"))
			}
			require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: -1}))
			account, err = w.Explain(ctx, "e")
			require.NoError(t, err)
			assert.True(t, account.Known, "a statement counts")
			assert.True(t, slices.ContainsFunc(account.Statements, func(s loop.Statement) bool {
				return s.Source == "ann" && s.Confidence > 0
			}))
		})
	}
}

// An outage is reported as one, and not as a failure of what could not be read because of it.
func TestAnOutageIsNoFailureOfAPart(t *testing.T) {
	w := newIsland(t, loop.Config{})
	w.answer(loop.Event{Text: "The mail is late", Task: "mail"})
	w.sea.SetAway(true)
	a := w.answer(loop.Event{Text: "The mail is late", Task: "mail"})
	assert.NotNil(t, a.Degraded)
	require.Len(t, w.notices, 1)
	assert.IsType(t, heed.Outage{}, w.notices[0])
}

// A contested store lets others win each commit.
type contested struct {
	store.Store
	on bool
}

func (c *contested) Commit(ctx context.Context, b ...store.Batch) ([]store.Receipt, error) {
	if c.on {
		time.Sleep(time.Second) // of the bubble
		return nil, heed.ErrConflict
	}
	return c.Store.Commit(ctx, b...)
}

// A store in which each commit of an answer fails until its time is over can't keep the answer. It
// is given all the same, unless the host requires the store.
func TestACommitThatNeverWins(t *testing.T) {
	for _, require := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := &contested{Store: new(memstore.Store)}
			agent, err := loop.New(ctx, loop.Config{
				Store: st, Model: &mouth{says: "Wait."}, RequireStore: require,
			})
			assert.NoError(t, err)
			st.on = true
			a, err := agent.Answer(ctx, loop.Event{Text: "Why?"})
			if require {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, "Wait.", a.Text)
			assert.ErrorIs(t, a.Degraded.After, heed.ErrUnavailable)
		})
	}
}

// A record that was damaged while the store was away is an error of what is recorded late, and
// stays as it is.
func TestALateAnswerOverADamagedRecord(t *testing.T) {
	w := newWorld(t, loop.Config{Store: &storetest.Failing{Store: new(memstore.Store)}})
	sea := w.store.(*storetest.Failing)
	w.answer(loop.Event{Text: "Why?"})
	sea.SetAway(true)
	given := w.answer(loop.Event{ID: "e", Text: "Why?"})
	require.False(t, given.Degraded.Recorded())
	sea.SetAway(false)
	body := store.Raw([]byte("[7]"))
	_, err := sea.Commit(ctx, store.Batch{Records: []store.Record{{
		Ref: store.Ref{Kind: "loop.answer", ID: answers.ID("e")}, At: start, Body: body,
	}}})
	require.NoError(t, err)
	for range 2 {
		_, err = w.Answered(ctx, given.Plan, loop.Reply{})
		require.ErrorIs(t, err, heed.ErrDamaged)
	}
}
