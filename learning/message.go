package learning

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// A Message is something that came in. Its text may show how an earlier answer turned out, or take it back.
type Message struct {
	ID      string // may be empty. A message says nothing about fires whose EventID is its ID
	Stream  string // where it came from
	Session string
	Person  string // who wrote it; may be empty
	Text    string
	At      time.Time // the zero time means now
}

// Hear interprets what a message says about earlier answers, and returns what it counted. First come the outcomes of expectations, then
// undos, and then ignored answers: those shown on the message's stream that nobody has judged. An answer earns one of the three at most.
// Call it before the answers to the message itself fire.
//
// Hear reads only the open answers that wait for a phrase of the text, or that were shown in its session, to its person or on its stream.
// All that the message means is one commit. If the strategy fails for some answers, these stay open, and Hear returns what it
// counted with the error.
func (m *Module) Hear(ctx context.Context, e Message) (changes []Change, err error) {
	defer doing("hear", &err)
	if err := checkTexts(text{"ID", e.ID}, text{"Stream", e.Stream}, text{"Session", e.Session}, text{"Person", e.Person}); err != nil {
		return nil, err
	}
	e.At = m.orNow(e.At)
	r := m.newRun(e.At)
	err = m.retry(ctx, nil, func() (err error) {
		r = m.newRun(e.At)
		changes, err = r.hear(ctx, &e)
		return err
	})
	m.failed(ctx, r)
	return changes, errors.Join(append(r.failures, err)...)
}

// failed tells the observer of the answers that stay open, as the strategy failed.
func (m *Module) failed(ctx context.Context, r *run) {
	for _, err := range r.failures {
		m.watch.Failed(ctx, "strategy", err)
	}
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
	how    string // how the strategy ends it, or has failed to; "" if it was not asked in this run
	signal *Signal
}

// question is what the strategy is asked about the fire.
func (w *waiting) question(at time.Time) Answer {
	return Answer{HeuristicID: w.Value.Heuristic, EventID: w.Value.Event, Domain: w.Value.Domain, Age: at.Sub(w.Value.Shown)}
}

func (m *Module) newRun(at time.Time) *run {
	return &run{ledger: m.newLedger(), at: at, seen: make(map[string]*waiting)}
}

// hear reads the fires that the message may end, has the strategy interpret what it means for them, and counts that. Ignored fires
// are interpreted last, as their heuristics must be read before.
func (r *run) hear(ctx context.Context, e *Message) ([]Change, error) {
	ended, err := r.outcomes(ctx, e)
	if err != nil {
		return nil, err
	}
	undone, understood, err := r.undo(ctx, e)
	if err != nil {
		return nil, err
	}
	ended = append(ended, undone...)
	var ignored []*waiting
	if understood && e.Stream != "" {
		ignored, err = r.find(ctx, func(w *fired) bool { return w.ignorable(e.At) && e.mayJudge(w) }, []string{streamKey(e.Stream)})
		if err != nil {
			return nil, err
		}
	}
	var heuristics []string
	for _, w := range slices.Concat(ended, ignored) {
		heuristics = append(heuristics, w.Value.Heuristic)
	}
	if heuristics == nil {
		return nil, nil
	}
	if err := r.read(ctx, heuristics, nil); err != nil {
		return nil, err
	}
	for _, w := range ended {
		r.end(w)
	}
	for _, w := range ignored {
		r.ignore(w)
	}
	return r.commit(ctx)
}

// find returns the open fires with either of the keys that are wanted and not judged yet, each once, the oldest first.
func (r *run) find(ctx context.Context, wanted func(w *fired) bool, either ...[]string) (found []*waiting, err error) {
	for _, keys := range either {
		for kept, err := range r.m.kinds.fires.Find(ctx, r.m.cfg.Store, store.Query{Keys: keys, Oldest: true}) {
			if err != nil {
				return nil, err
			}
			w := r.seen[kept.ID]
			if w == nil {
				w = &waiting{Kept: kept}
				r.seen[kept.ID] = w
			}
			if w.how == "" && wanted(&w.Value) && !(len(either) > 1 && slices.Contains(found, w)) {
				found = append(found, w)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b *waiting) int { return a.Value.Shown.Compare(b.Value.Shown) })
	return found, nil
}

// mayJudge reports whether a message is about other answers than those to itself.
func (e *Message) mayJudge(w *fired) bool { return e.ID == "" || w.Event != e.ID }

// outcomes judges the fires that wait for a phrase of the text.
func (r *run) outcomes(ctx context.Context, e *Message) (ended []*waiting, err error) {
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
			question := w.question(e.At)
			question.Success = !w.Value.Failure
			s, err := ask(func() (Signal, error) { return r.m.cfg.Strategy.InterpretOutcome(question) })
			if r.judge(w, endOutcome, s, err) {
				ended = append(ended, w)
			}
		}
	}
	return ended, nil
}

// judge notes how the strategy ends a fire. It reports false, and notes why, if it does not.
func (r *run) judge(w *waiting, how string, s Signal, err error) bool {
	w.how, w.signal = how, &s
	if err == nil && (s.HeuristicID != w.Value.Heuristic || s.EventID != "" && s.EventID != w.Value.Event) {
		err = errForeign
	}
	if err != nil {
		r.failures = append(r.failures, err)
	}
	return err == nil
}

var errForeign = errors.New("the strategy answered with a signal for something else")

// undo judges the fires that the message takes back. It reports whether the message was understood.
func (r *run) undo(ctx context.Context, e *Message) (ended []*waiting, understood bool, err error) {
	strategy := r.m.cfg.Strategy
	is, err := ask(func() (bool, error) { return strategy.IsUndo(e.Text), nil })
	if err != nil { // the rest of the message counts
		r.failures = append(r.failures, err)
		return nil, false, nil
	}
	if !is {
		return nil, true, nil
	}
	found, err := r.find(ctx, func(w *fired) bool { return w.undoable(e.At) && e.mayJudge(w) }, r.m.undoKeys(e)...)
	if err != nil || len(found) == 0 {
		return nil, true, err
	}
	recent, shown := make([]Answer, len(found)), make(map[answer]*waiting, len(found))
	for i, w := range found {
		recent[i], shown[w.Value.answer()] = w.question(e.At), w
	}
	signals, err := ask(func() ([]Signal, error) { return strategy.InterpretUndo(Undo{e.Text, recent}) })
	if err != nil {
		r.failures = append(r.failures, err)
		return nil, false, nil
	}
	for _, s := range signals {
		w := shown[answer{s.HeuristicID, s.EventID}]
		err := s.Validate()
		if w == nil {
			err = errForeign
		}
		switch {
		case err != nil:
			r.failures = append(r.failures, err)
		case !s.neutral() && w.how == "" && r.judge(w, endUndo, s, nil):
			ended = append(ended, w)
		}
	}
	return ended, true, nil
}

// undoKeys says where to look for what a message may take back.
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

// ignore counts one more ignore of a heuristic in a row.
func (r *run) ignore(w *waiting) {
	a, question := r.accounts[w.Value.Heuristic], w.question(r.at)
	question.Consecutive = a.ignores + 1
	s, err := ask(func() (Signal, error) { return r.m.cfg.Strategy.InterpretIgnore(question) })
	if r.judge(w, endIgnored, s, err) && r.end(w) && s.neutral() {
		a.ignores = question.Consecutive
	}
}

// end counts the one implicit signal of a fire. It reports whether that goes into the commit. If not, the fire stays open, unless its
// heuristic was deleted.
func (r *run) end(kept *waiting) bool {
	w, at := kept.Value, r.at // a copy, as nobody may change what the store has
	if kept.how == endSilence {
		at = w.Silence // whenever it is swept
	}
	e := r.m.ending(&w, kept.how, *kept.signal, at)
	a, err := &account{}, error(nil) // without a heuristic, the host's model answered
	if w.Heuristic != "" {
		a, err = r.account(w.Heuristic)
	}
	if err == nil {
		err = r.count(e)
	}
	switch {
	case err == nil:
		w.End, w.Silent = kept.how, nil
		if w.End == endSilence && e.facts && !r.m.cfg.DryRun {
			w.Silent = cmp.Or(e.counted, &evidence.Observation{ID: e.id})
		}
		a.ignores = 0
	case errors.Is(err, heed.ErrNotFound):
		w.End = endLost
	}
	if err != nil {
		r.failures = append(r.failures, err)
	}
	if w.End != kept.Value.End {
		w.schedule(r.at)
		r.batch.Records = append(r.batch.Records, r.m.kinds.fires.Record(w, kept.Revision))
	}
	return err == nil
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
