package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// An Event is something that came in. Its text may show how an earlier answer turned out, or take it back.
type Message struct {
	ID      string // may be empty; the fires for this event are not judged by it
	Stream  string // where it came from
	Session string
	Person  string // whom it came from; may be empty
	Text    string
	At      time.Time // the zero time means now
}

// Event looks at what was shown before in the light of a new event: first whether a [Expectation]'s outcome has come, then
// whether the event takes answers back, and at last which answers were ignored, as the event is from where they were shown
// and nobody has judged them. An answer that was ignored earns no other implicit signal. Call it before the answers to the
// event itself are fired.
//
// It reads the fires that wait for a phrase of the text, in its session, for its person or from its source, and not those
// that wait elsewhere. All that the event means is one commit.
//
// It returns what was counted, also where the strategy failed for some of it. What failed is waited for as before.
func (m *Module) Hear(ctx context.Context, e Message) (changes []Change, err error) {
	if err := checkTexts(text{"ID", e.ID}, text{"Stream", e.Stream}, text{"Session", e.Session}, text{"Person", e.Person}); err != nil {
		return nil, fmt.Errorf("learning: hear: %w", err)
	}
	e.At = m.orNow(e.At)
	r := m.newRun(e.At)
	err = m.retry(ctx, nil, func() (err error) {
		r = m.newRun(e.At)
		changes, err = r.hear(ctx, &e)
		return err
	})
	if err := errors.Join(append(r.failures, err)...); err != nil {
		return changes, fmt.Errorf("learning: hear: %w", err)
	}
	return changes, nil
}

// retry is records.Retry with more patience: many events at once may be about the same answers. With batches of the caller's,
// do is called once.
func (m *Module) retry(ctx context.Context, with []store.Batch, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(with) > 0 {
		return do()
	}
	return records.Retry(ctx, func() error { return records.Retry(ctx, do) })
}

// A run is one call that may end several fires. It must not be used concurrently.
type run struct {
	*ledger
	at       time.Time
	seen     map[string]*waiting // by id
	failures []error
}

// waiting is a fire that a run looks at.
type waiting struct {
	records.Kept[fired]
	judged bool // in this run, or the strategy has failed to
}

// A verdict is what the strategy has made of a fire.
type verdict struct {
	w      *waiting
	how    string
	signal Signal
}

func (m *Module) newRun(at time.Time) *run {
	return &run{ledger: m.newLedger(), at: at, seen: make(map[string]*waiting)}
}

func (r *run) hear(ctx context.Context, e *Message) ([]Change, error) {
	verdicts, err := r.outcomes(ctx, e)
	if err != nil {
		return nil, err
	}
	undone, understood, err := r.undo(ctx, e)
	if err != nil {
		return nil, err
	}
	verdicts = append(verdicts, undone...)
	var ignored []*waiting
	if understood {
		if ignored, err = r.ignored(ctx, e); err != nil {
			return nil, err
		}
	}
	var heuristics []string
	for _, v := range verdicts {
		heuristics = append(heuristics, v.w.Value.Heuristic)
	}
	for _, w := range ignored {
		heuristics = append(heuristics, w.Value.Heuristic)
	}
	if len(heuristics) == 0 {
		return nil, nil
	}
	if err := r.read(ctx, heuristics, nil); err != nil {
		return nil, err
	}
	for _, v := range verdicts {
		r.end(v)
	}
	for _, w := range ignored {
		r.ignore(w)
	}
	return r.commit(ctx)
}

// find returns the open fires with these keys that are wanted, the oldest first.
func (r *run) find(ctx context.Context, wanted func(w *fired) bool, keys ...[]string) (found []*waiting, err error) {
	for _, keys := range keys {
		for kept, err := range r.m.kinds.fires.Find(ctx, r.m.cfg.Store, store.Query{Keys: keys, Oldest: true}) {
			if err != nil {
				return nil, err
			}
			w := r.seen[kept.ID]
			if w == nil {
				w = &waiting{Kept: kept}
				r.seen[kept.ID] = w
			}
			if !w.judged && wanted(&w.Value) && !(len(keys) > 1 && slices.Contains(found, w)) {
				found = append(found, w)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b *waiting) int { return a.Value.Shown.Compare(b.Value.Shown) })
	return found, nil
}

func (e *Message) mayJudge(w *fired) bool { return e.ID == "" || w.Event != e.ID }

// outcomes judges the fires for whose phrases the text has.
func (r *run) outcomes(ctx context.Context, e *Message) (verdicts []verdict, err error) {
	words := strings.ToLower(e.Text)
	for _, phrase := range r.m.phrases {
		if !strings.Contains(words, phrase) {
			continue
		}
		found, err := r.find(ctx, func(w *fired) bool { return w.awaits(e.At) && w.Phrase == phrase && e.mayJudge(w) }, []string{phraseKey(phrase)})
		if err != nil {
			return nil, err
		}
		for _, w := range found {
			s, err := r.m.interpretOutcome(Outcome{w.Value.Heuristic, w.Value.Event, w.Value.Domain, !w.Value.Failure})
			verdicts = r.judge(verdicts, w, endOutcome, s, err)
		}
	}
	return verdicts, nil
}

func (m *Module) interpretOutcome(o Outcome) (Signal, error) {
	if strategy, ok := m.cfg.Strategy.(OutcomeInterpreter); ok {
		return ask(func() (Signal, error) { return strategy.InterpretOutcome(o) })
	}
	t := Negative
	if o.Success {
		t = Positive
	}
	return NewSignal(t, o.HeuristicID, o.EventID, ChannelOutcome), nil
}

// judge adds a verdict, or notes why there is none.
func (r *run) judge(verdicts []verdict, w *waiting, how string, s Signal, err error) []verdict {
	w.judged = true
	if err == nil && (s.HeuristicID != w.Value.Heuristic || s.EventID != "" && s.EventID != w.Value.Event) {
		err = errForeign("a question")
	}
	if err != nil {
		r.failures = append(r.failures, err)
		return verdicts
	}
	return append(verdicts, verdict{w, how, s})
}

// undo judges the fires that the event takes back. It reports whether the event could be interpreted.
func (r *run) undo(ctx context.Context, e *Message) (verdicts []verdict, understood bool, err error) {
	m := r.m
	if strategy, ok := m.cfg.Strategy.(UndoRecognizer); ok {
		is, err := ask(func() (bool, error) { return strategy.IsUndo(e.Text), nil })
		if err != nil { // which is told when the rest of the event has counted
			r.failures = append(r.failures, err)
			return nil, false, nil
		}
		if !is {
			return nil, true, nil
		}
	}
	found, err := r.find(ctx, func(w *fired) bool { return w.undoable(e.At) && e.mayJudge(w) }, m.undoKeys(e)...)
	if err != nil || len(found) == 0 {
		return nil, true, err
	}
	recent := make([]RecentFire, len(found))
	shown := make(map[answer]*waiting, len(found))
	for i, w := range found {
		recent[i] = RecentFire{w.Value.Heuristic, w.Value.Event, w.Value.Domain, e.At.Sub(w.Value.Shown)}
		shown[w.Value.answer()] = w
	}
	signals, err := ask(func() ([]Signal, error) { return m.cfg.Strategy.InterpretUndo(Undo{Text: e.Text, Fires: recent}) })
	if err != nil {
		r.failures = append(r.failures, err)
		return nil, false, nil
	}
	for _, s := range signals {
		w := shown[answer{s.HeuristicID, s.EventID}]
		err := s.Validate()
		if w == nil {
			err = errForeign("an undo")
		}
		switch {
		case err != nil:
			r.failures = append(r.failures, err)
		case !s.neutral() && !w.judged:
			verdicts = r.judge(verdicts, w, endUndo, s, nil)
		}
	}
	return verdicts, true, nil
}

// undoKeys says where to look for what an event may take back.
func (m *Module) undoKeys(e *Message) [][]string {
	if !m.cfg.UndoWithinSession {
		return [][]string{{waitingKey()}}
	}
	keys := [][]string{{sessionKey(e.Session)}}
	if e.Person != "" {
		keys = append(keys, []string{shownToKey(e.Person)})
	}
	return keys
}

func errForeign(what string) error {
	return fmt.Errorf("the strategy answered %s with a signal for something else", what)
}

// ignored returns the fires that the event goes on from without a word.
func (r *run) ignored(ctx context.Context, e *Message) ([]*waiting, error) {
	if e.Stream == "" {
		return nil, nil
	}
	return r.find(ctx, func(w *fired) bool { return w.ignorable(e.At) && e.mayJudge(w) }, []string{streamKey(e.Stream)})
}

// ignore counts one more ignore of a heuristic in a row.
func (r *run) ignore(w *waiting) {
	a := r.accounts[w.Value.Heuristic]
	n := a.ignores + 1
	s, err := ask(func() (Signal, error) {
		return r.m.cfg.Strategy.InterpretIgnore(Ignore{w.Value.Heuristic, w.Value.Event, w.Value.Domain, n})
	})
	for _, v := range r.judge(nil, w, endIgnored, s, err) {
		if r.end(v) && v.signal.neutral() {
			a.ignores = n
		}
	}
}

// end counts the one implicit signal of a fire. It reports whether that goes into the commit; else the fire is waited for as
// before, unless its heuristic is no more.
func (r *run) end(v verdict) bool {
	w := v.w.Value // a copy, as nobody may change what the store has
	at := r.at
	if v.how == endSilence {
		at = w.Silence // whenever it is swept
	}
	e := r.m.ending(&w, v.how, v.signal, at)
	a, err := r.accountOf(&w)
	if err == nil {
		err = r.count(e)
	}
	switch {
	case err == nil:
		w.End, w.Silent = v.how, nil
		if v.how == endSilence && e.facts && !r.m.cfg.DryRun {
			w.Silent = cmp.Or(e.counted, &said{ID: e.id})
		}
		a.ignores = 0
	case errors.Is(err, heed.ErrNotFound):
		w.End = endLost
		fallthrough
	default:
		r.failures = append(r.failures, err)
	}
	if w.End != v.w.Value.End {
		w.schedule(r.at)
		r.batch.Records = append(r.batch.Records, r.m.kinds.fires.Record(w, v.w.Revision))
	}
	return err == nil
}

// accountOf returns the account of a fire's heuristic, or an empty one where the host's model has answered.
func (r *run) accountOf(w *fired) (*account, error) {
	if w.Heuristic == "" {
		return &account{}, nil
	}
	return r.account(w.Heuristic)
}

// ending is what the end of a fire adds to the evidence.
func (m *Module) ending(w *fired, how string, s Signal, at time.Time) *entry {
	e := &entry{
		signal: s, cell: cellSeen, id: "implicit:" + m.answerID(w.answer()) + ":" + how,
		person: w.Person, session: w.Session, at: at, silence: w.Silent,
	}
	if s.neutral() {
		return e
	}
	ended := evidence.Observation{ID: e.id, Source: w.Person, Session: w.Session, Channel: s.Channel, Reward: s.reward(), Weight: 1, At: at}
	if w.Heuristic != "" {
		ended.Cell = m.fireCell(w.Heuristic, cellEnded)
		e.extra = append(e.extra, ended)
	}
	if w.Prediction != nil {
		ended.Cell, ended.Reward = m.calibrationCell(w, s.Type == Positive), *w.Prediction
		e.extra = append(e.extra, ended)
	}
	return e
}
