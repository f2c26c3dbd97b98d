package learning_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// TestAnotherModuleFindsWhatWaits lets one module show answers, and another on the same store hear
// the reactions. That is a second process, or the same one after a restart.
func TestAnotherModuleFindsWhatWaits(t *testing.T) {
	cfg := learning.Config{Expectations: []learning.Expectation{{Trigger: "rain",
		Outcome: "window closed"}}}
	f := newFixture(t, cfg, "h")
	f.put(learning.Heuristic{ID: "rain", Condition: "it rains", Initial: 0.5})
	for i := range 3 {
		f.fire("h", fmt.Sprint(i), "s")
		f.event("s", "next")
	}
	f.clock.Advance(31 * time.Second)
	f.fire("h", "undone", "t")
	assert.Equal(t, []string{"negative h"}, types(f.another(cfg).event("elsewhere", "undo")))
	f.fire("rain", "noon", "")
	assert.Equal(t, []string{"positive rain"}, types(f.another(cfg).event("", "the window closed")))
	f.fire("h", "silent", "")
	f.clock.Advance(31 * time.Second)
	assert.Equal(t, []string{"positive h"}, types(f.another(cfg).sweep()))
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "lost", Stream: "s",
		Session: "room", Unheard: true}))
	f.event("s", "next")
	f.clock.Advance(time.Hour)
	assert.Empty(t, f.sweep(), "the person has not seen the answer")
	assert.Equal(t, map[string][]float64{"implicit_ignored": {-1}, "implicit_undo": {-1},
		"implicit_timeout": {1}}, f.counted("h"))
	assert.Zero(t, f.waiting())
}

// An undo takes back what was shown in its session, or to whom it comes from, but in no other
// session.
func TestUndoOfASessionAndOfAPerson(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for i, in := range [][2]string{{"mine", ""}, {"yours", "ann"}, {"yours", "bob"}, {"mine", "ann"},
		{"", ""}, {"", "ann"}} {
		require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: fmt.Sprint(i),
			Session: in[0], Person: in[1]}))
		f.clock.Advance(time.Second)
	}
	undo := func(session, person string) (events string) {
		changes, err := f.Hear(ctx, learning.Message{Session: session, Person: person, Text: "undo"})
		require.NoError(t, err)
		for _, c := range changes {
			events += c.Signal.EventID
		}
		return events
	}
	assert.Empty(t, undo("another", "carol"))
	assert.Equal(t, "5", undo("mine", "ann"), "the newest: ann was shown it in no session")
	assert.Equal(t, "3", undo("mine", "ann"), "the newest of those that are left")
	assert.Equal(t, "0", undo("mine", "ann"))
	assert.Empty(t, undo("mine", "ann"))
	assert.Empty(t, undo("", ""), "from nowhere and nobody, it takes nothing back")
	assert.Equal(t, "1", undo("", "ann"), "in no session, it is about all that ann was shown")
	assert.Equal(t, "2", undo("yours", ""))
}

// An answer that was shown both in the session of an undo and to its person is asked about once.
func TestAnAnswerIsAskedAboutOnce(t *testing.T) {
	var asked int
	strategy := moody{Strategy: silenceIsNeutral,
		undo: func(answers []learning.Answer) ([]learning.Signal, error) {
			asked = len(answers)
			return nil, nil
		}}
	f := newFixture(t, learning.Config{Strategy: strategy}, "h")
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Session: "s",
		Person: "ann"}))
	_, err := f.Hear(ctx, learning.Message{Session: "s", Person: "ann", Text: "undo"})
	require.NoError(t, err)
	assert.Equal(t, 1, asked)
}

// It happened within the window, and came after the sweep that has heard the silence.
func TestALateUndoIsHeard(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	f.clock.Advance(31 * time.Second)
	f.sweep()
	f.clock.Advance(12 * time.Minute)
	f.sweep()
	changes, err := f.Hear(ctx, learning.Message{Text: "undo", At: start.Add(9 * time.Minute),
		Session: "room"})
	require.NoError(t, err)
	assert.Equal(t, []string{"negative h"}, types(changes))
	assert.Equal(t, map[string][]float64{"implicit_undo": {-1}}, f.counted("h"))
	f.fire("h", "f", "s")
	f.clock.Advance(time.Minute)
	f.sweep()
	f.clock.Advance(15 * time.Minute)
	f.sweep()
	changes, err = f.Hear(ctx, learning.Message{Text: "undo",
		At: f.clock.Now().Add(-16*time.Minute + time.Second), Session: "room"})
	require.NoError(t, err)
	assert.Empty(t, changes, "but not for ever")
}

// meddling is a store in which something else happens while a commit is on its way.
type meddling struct {
	store.Store
	mu     sync.Mutex
	before func() // the next commit
}

func (m *meddling) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	m.mu.Lock()
	before := m.before
	m.before = nil
	m.mu.Unlock()
	if before != nil {
		before()
	}
	return m.Store.Commit(ctx, batches...)
}

// A sweep, an undo and a complaint come at the same moment. Each sees the effects of those before
// it, in any order.
func TestWhoeverIsSecondReadsAgain(t *testing.T) {
	cfg := windows(60, 30)
	sweep := func(f *fixture) { f.sweep() }
	undo := func(f *fixture) { f.event("x", "undo") }
	complain := func(f *fixture) { f.say(thumb("h", "e", false)) }
	hear := func(f *fixture) { f.event("s", "next") }
	for name, test := range map[string]struct {
		first, second func(f *fixture) // the first happens while the second commits
		want          map[string][]float64
		after         time.Duration
	}{
		"a sweep while an undo commits": {first: sweep, second: undo,
			want: map[string][]float64{"implicit_undo": {-1}}},
		"an undo while a sweep commits": {first: undo, second: sweep,
			want: map[string][]float64{"implicit_undo": {-1}}},
		"a sweep while a complaint commits": {first: sweep, second: complain,
			want: map[string][]float64{"user_explicit": {-0.8}}},
		"a complaint while a sweep commits": {first: complain, second: sweep,
			want: map[string][]float64{"user_explicit": {-0.8}}},
		"a complaint while an undo commits": {first: complain, second: undo,
			want: map[string][]float64{"user_explicit": {-0.8}, "implicit_undo": {-1}}},
		"an undo while a complaint commits": {first: undo, second: complain,
			want: map[string][]float64{"user_explicit": {-0.8}, "implicit_undo": {-1}}},
		"another undo while an undo commits": {first: undo, second: undo,
			want: map[string][]float64{"implicit_undo": {-1}}},
		"another sweep while a sweep does": {first: sweep, second: sweep,
			want: map[string][]float64{"implicit_timeout": {1}}},
		"a complaint while it is ignored": {first: complain, second: hear,
			want: map[string][]float64{"user_explicit": {-0.8}}, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, cfg, "h")
			test.after = cmp.Or(test.after, 31*time.Second)
			between := &meddling{Store: f.store.Store}
			f.store.Store = between
			f.fire("h", "e", "s")
			f.clock.Advance(test.after)
			between.before = func() { test.first(f) }
			test.second(f)
			assert.Equal(t, test.want, f.counted("h"))
			f.clock.Advance(time.Hour)
			f.sweep()
			assert.Equal(t, test.want, f.counted("h"))
		})
	}
}

// A lock comes between the reading and the commit of a signal. The signal does not count.
func TestALockHoldsAtOnce(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	between := &meddling{Store: f.store.Store}
	f.store.Store = between
	between.before = func() {
		require.NoError(t, f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: "ops",
			Constraints: learning.Constraints{Lock: "locked"}}))
	}
	assert.Equal(t, []string{learning.LimitLocked}, f.apply("1", "h", 1).Limits)
	assert.Empty(t, f.counted("h"))

	between.before = func() { // and the end of a lock
		require.NoError(t, f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: "ops"}))
	}
	assert.Empty(t, f.say(thumb("h", "e", true)).Limits)
	assert.Equal(t, map[string][]float64{"user_explicit": {0.8}}, f.counted("h"))
}

// The store has forgotten the silence. The undo counts beside it, and says so.
func TestSilenceThatCannotBeTakenBack(t *testing.T) {
	for _, twoWeeks := range []bool{false, true} {
		f := newFixtureOver(t, memstore.Config{Retention: store.Retention{HistoryPerCell: 1}},
			learning.Config{Strategy: windows(3600, 30).Strategy}, "h")
		f.fire("h", "e", "s")
		f.clock.Advance(31 * time.Second)
		f.sweep()
		if twoWeeks {
			// its silence pushes the other one out of the history
			require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "f"}))
			f.clock.Advance(31 * time.Second)
			f.sweep()
		}
		changes := f.event("x", "undo")
		require.Len(t, changes, 1)
		if twoWeeks {
			assert.Equal(t, []string{"kept"}, changes[0].Limits)
		} else {
			assert.Empty(t, changes[0].Limits)
		}
		assert.InDelta(t, f.confidence("h"), changes[0].New, 1e-12)
	}
}

// A forgotten person is in no record. Their answers stay, without the name, and can still be taken
// back.
func TestForget(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for i, name := range []string{"Ann", "bob"} {
		fire := learning.Fire{HeuristicID: "h", EventID: fmt.Sprint(i), Person: name, Session: "s"}
		require.NoError(t, f.Fire(ctx, fire))
		_, err := f.Judge(ctx, learning.Judgement{HeuristicID: "h", EventID: "e", Person: name,
			Value: -1})
		require.NoError(t, err)
		require.NoError(t, f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: name,
			Constraints: learning.Constraints{FeedbackWeight: 1}}))
	}
	require.NoError(t, f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: "Ann"}))
	err := store.Run(ctx, f.store, store.Job{Forget: []string{"Ann"}})
	require.NoError(t, err)
	kinds, _ := learning.RecordKinds("learning")
	for _, kind := range append(kinds, store.Audit) {
		for r, err := range f.store.Find(ctx, store.Query{Kind: kind.Name}) {
			require.NoError(t, err)
			text, err := r.Body.JSON()
			require.NoError(t, err)
			assert.NotContains(t, string(text)+fmt.Sprint(r.ID, r.Keys), "Ann", kind.Name)
			assert.NotContains(t, fmt.Sprint(r.Keys), "ann", kind.Name)
		}
	}
	assert.Equal(t, 2, f.waiting(), "the answers are still there")
	assert.Empty(t, answers.People(f.answer("0")))
	assert.Equal(t, []float64{-0.8}, f.counted("h")["user_explicit"])

	judged := f.answer("e")
	known := answers.ReceptionOf(judged, "h")
	assert.Equal(t, 1, known.Complaint.N, "the statement of a forgotten person does not count")
	f.clock.Advance(time.Second)
	changes := f.hear(learning.Message{Session: "s", Text: "undo that"})
	assert.Equal(t, []string{"negative h", "negative h"}, types(append(changes,
		f.hear(learning.Message{Session: "s", Text: "undo that"})...)))
	assert.Equal(t, []float64{-1, -1}, f.counted("h")["implicit_undo"])
}

// A person whose name differs in case is somebody else. Their last click still replaces the one
// before, and their undo is still heard.
func TestForgetInAnotherCase(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Person: "ann",
		Stream: "s", Session: "room"}))
	_, err := f.Judge(ctx, learning.Judgement{HeuristicID: "h", EventID: "x", Person: "ann",
		Value: -1})
	require.NoError(t, err)
	err = store.Run(ctx, f.store, store.Job{Forget: []string{"Ann"}})
	require.NoError(t, err)
	_, err = f.Judge(ctx, learning.Judgement{HeuristicID: "h", EventID: "x", Person: "ann",
		Value: 1})
	require.NoError(t, err)
	assert.Len(t, f.counted("h")["user_explicit"], 1)
	changes, err := f.Hear(ctx, learning.Message{Text: "undo", Stream: "s", Person: "ann",
		Session: "room"})
	require.NoError(t, err)
	assert.Len(t, changes, 1)
}

// The zero time is the module's clock.
func TestSweepNow(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	require.NoError(t, f.Module.Sweep(ctx, time.Time{}))
	require.NoError(t, f.store.Sweep(ctx, time.Time{}))
	assert.Equal(t, 1, f.waiting())
	f.clock.Advance(time.Minute)
	require.NoError(t, f.Module.Sweep(ctx, time.Time{}))
	require.NoError(t, f.store.Sweep(ctx, time.Time{}))
	assert.Zero(t, f.waiting())
	assert.Equal(t, map[string][]float64{"implicit_timeout": {1}}, f.counted("h"))
}

// TestASweepAheadOfTheClock counts no silence that has not ended by the module's clock, and so
// loses no undo.
func TestASweepAheadOfTheClock(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	changes, err := f.Timeouts(ctx, start.Add(time.Hour))
	require.NoError(t, err)
	assert.Empty(t, changes)
	require.NoError(t, f.Sweep(ctx, start.Add(time.Hour)))
	assert.Equal(t, 1, f.waiting())
	assert.Equal(t, []string{"negative h"}, types(f.event("s", "undo")))
	assert.Equal(t, map[string][]float64{"implicit_undo": {-1}}, f.counted("h"))

	f.fire("h", "before", "s")
	f.clock.Advance(time.Hour)
	f.fire("h", "after", "s")
	changes, err = f.Timeouts(ctx, start.Add(time.Minute))
	require.NoError(t, err)
	assert.Equal(t, []string{"positive h"}, types(changes), "a time before the clock is what it says")
	assert.Equal(t, 1, f.waiting())
}

// TestASweepOfMany works in steps, and hears of each answer once.
func TestASweepOfMany(t *testing.T) {
	f := crowded(t, learning.Config{})
	f.fill(1000, "")
	f.clock.Advance(time.Minute)
	counting := &storetest.Failing{Store: f.store.Store}
	f.store.Store = counting
	assert.Len(t, f.sweep(), 1000)
	assert.LessOrEqual(t, counting.Calls(), 65)
	assert.Equal(t, 16, counting.Calls("Commit"))
	assert.Empty(t, f.sweep())
	f.clock.Advance(10*time.Minute + evidence.MaxSkew)
	assert.Empty(t, f.sweep())
	n, err := learning.Waiting(ctx, f.Module)
	require.NoError(t, err)
	assert.Zero(t, n)
}

// With a store as it comes, what needs history works beyond a hundred observations of a heuristic.
func TestTheDefaultHistoryIsEnough(t *testing.T) {
	f := newFixture(t, learning.Tuned(learning.Config{},
		learning.Tuning{Bounds: learning.Range{Floor: 0, Ceiling: 1}}), "h")
	for i := range 150 {
		f.fire("h", fmt.Sprint(i), "")
		f.say(thumb("h", fmt.Sprint("judged ", i), true))
	}
	f.clock.Advance(time.Minute)
	f.sweep()
	f.say(thumb("h", "judged 0", false))
	changes, err := f.Undo(ctx, learning.Undo{EventID: "0"})
	require.NoError(t, err)
	assert.NotContains(t, changes[0].Limits, "kept")
	assert.InDelta(t, (1+149+149*0.8)/(2+150+150*0.8), f.confidence("h"), 1e-9)
	s := f.standing("h")
	assert.Equal(t, []uint64{149, 1}, []uint64{s.Successes, s.Failures})
	_, err = learning.Rebuild(ctx, learning.Config{Store: f.store, Now: f.clock.Now,
		HalfLife: time.Hour}, "ops", "")
	require.NoError(t, err)
}

// An interrupted store does something before one of its calls, once.
type interrupted struct {
	store.Store
	at int // the number of calls before
	do func()
}

func (s *interrupted) call() {
	if s.at--; s.at == -1 {
		s.do()
	}
}

func (s *interrupted) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	s.call()
	return s.Store.Find(ctx, q)
}

func (s *interrupted) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	s.call()
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

func (s *interrupted) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	s.call()
	return s.Store.Commit(ctx, batches...)
}

// Whenever the other process hears the message, it takes back one answer, and does not ignore that
// one as well.
func TestOneMessageInTwoProcesses(t *testing.T) {
	for name, message := range map[string]learning.Message{
		"with an ID": {ID: "m1", Session: "room", Stream: "s", Text: "undo that"},
		"with a time": {Session: "room", Stream: "s", Text: "undo that",
			At: start.Add(3 * time.Second)},
	} {
		for at := 0; ; at++ {
			f := newFixture(t, learning.Config{}, "h")
			for i := range 3 {
				f.clock.Advance(time.Second)
				f.fire("h", fmt.Sprint(i), "")
			}
			require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "newest", Stream: "s",
				Session: "room", At: start.Add(3 * time.Second)}))
			first := f.another(learning.Config{})
			between := &interrupted{Store: f.store, at: at, do: func() { first.hear(message) }}
			cfg := plain(learning.Config{Store: between, Now: f.clock.Now})
			between.at = -1
			second, err := learning.New(ctx, cfg)
			require.NoError(t, err)
			between.at = at
			_, err = second.Hear(ctx, message)
			require.NoError(t, err)
			if between.at >= 0 {
				require.Greater(t, at, 2, "the calls of one message")
				break
			}
			assert.Equal(t, map[string][]float64{"implicit_undo": {-1}}, f.counted("h"),
				"%s, before the call %d", name, at)
			newest := f.answer("newest")
			known := answers.ReceptionOf(newest, "h")
			assert.Nil(t, known.Ignored, name)
		}
	}
}

// TestTheSameWordsAgain are another undo, where no ID and no time says that they are the same
// message.
func TestTheSameWordsAgain(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for i := range 2 {
		f.clock.Advance(time.Second)
		f.fire("h", fmt.Sprint(i), "")
	}
	f.hear(learning.Message{Session: "room", Text: "undo that", At: f.clock.Now()})
	f.hear(learning.Message{Session: "room", Text: "undo that",
		At: f.clock.Now().Add(time.Microsecond)})
	assert.Equal(t, map[string][]float64{"implicit_undo": {-1, -1}}, f.counted("h"))
}

// The first person to take an answer back does not stand for the others. Each person's undo counts
// for itself, once.
func TestEachPersonsUndoCounts(t *testing.T) {
	after := func(texts bool) float64 {
		f := newFixtureDefault(t, learning.Config{})
		f.put(learning.Heuristic{ID: "h"})
		for i := range 20 {
			event, person := fmt.Sprint(i), fmt.Sprint("person ", i)
			require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: event, Person: person,
				Session: "room"}))
			for range 2 {
				for _, who := range []string{"spammer", person} {
					f.clock.Advance(time.Second)
					if texts {
						f.hear(learning.Message{ID: event + who, Person: who, Session: "room",
							Text: "undo that"})
						continue
					}
					_, err := f.Undo(ctx, learning.Undo{EventID: event, Person: who})
					require.NoError(t, err)
				}
			}
		}
		return f.confidence("h")
	}
	for _, texts := range []bool{false, true} {
		assert.InDelta(t, 0.6/(2+20+2), after(texts), 0.03, "the floor is 0.05")
	}
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "")
	for i := range 60 {
		f.clock.Advance(time.Second)
		_, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: fmt.Sprint("person ", i)})
		require.NoError(t, err)
	}
	assert.Len(t, f.counted("h")["implicit_undo"], 41)
	err := store.Run(ctx, f.store, store.Job{Forget: []string{"person 7"}})
	require.NoError(t, err)
	forgotten := f.answer("e")
	assert.Len(t, forgotten.Statements, 41, "the answer and the other undos are still there")
	assert.NotContains(t, answers.People(forgotten), "person 7")
	assert.Len(t, f.counted("h")["implicit_undo"], 40)
}

// TestConcurrentUse fires, undoes, judges and sweeps from many goroutines: each answer earns one
// implicit signal at most, all are counted, and none is held in the end.
func TestConcurrentUse(t *testing.T) {
	f := newFixture(t, learning.Config{})
	const workers, fires = 8, 24
	var wait sync.WaitGroup
	for w := range workers {
		id := fmt.Sprint("h", w%4)
		if w < 4 {
			f.put(learning.Heuristic{ID: id})
		}
		wait.Go(func() {
			for i := range fires {
				event := fmt.Sprint(w, "-", i)
				assert.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: id, EventID: event, Stream: id,
					Session: "room"}))
				switch i % 4 {
				case 0:
					_, err := f.Hear(ctx, learning.Message{Stream: id, Text: "undo", Session: "room"})
					assert.NoError(t, err)
				case 1:
					_, err := f.Judge(ctx, learning.Judgement{HeuristicID: id, EventID: event,
						Value: value(i%8 < 4)})
					assert.NoError(t, err)
				case 2:
					_, err := f.Hear(ctx, learning.Message{Stream: id, Text: "hello", Session: "room"})
					assert.NoError(t, err)
				default:
					err := f.Sweep(ctx, f.clock.Now())
					assert.NoError(t, err)
					_, err = f.Explain(ctx, id)
					assert.NoError(t, err)
				}
			}
		})
	}
	wait.Wait()
	f.clock.Advance(time.Minute)
	f.sweep()
	assert.Zero(t, f.waiting())
	var shown, ended uint64
	for i := range 4 {
		s := f.standing(fmt.Sprint("h", i))
		shown += s.Fires
		ended += s.Successes + s.Failures
	}
	assert.EqualValues(t, workers*fires, shown)
	assert.LessOrEqual(t, ended, shown)
	assert.Positive(t, ended)
}

// TestASweepOfADamagedRecord reports it, and counts the silence of the answers after it.
func TestASweepOfADamagedRecord(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "bad", "s")
	f.clock.Advance(time.Second)
	f.fire("h", "good", "s")
	var s store.Snapshot
	require.NoError(t, f.store.Read(ctx, &s, nil, []store.Ref{{
		Kind: "learning.answer", ID: answers.ID("bad"),
	}}))
	r := s.Records[0]
	r.Body = store.Raw([]byte(`{"id": 5}`))
	_, err := f.store.Commit(ctx, store.Batch{Records: []store.Record{r}})
	require.NoError(t, err)
	f.clock.Advance(time.Hour)
	for range 2 {
		require.ErrorIs(t, f.Sweep(ctx, time.Time{}), heed.ErrDamaged)
	}
	assert.Equal(t, map[string][]float64{"implicit_timeout": {1}}, f.counted("h"))
}
