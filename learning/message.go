package learning

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/ahead"
	"github.com/heedhq/heed/store"
)

// A Message is something that came in. Its text may show how an earlier answer turned out, or take it back.
type Message struct {
	// ID may be empty. A message says nothing about fires whose EventID is its ID. Heard again, it takes nothing more back. A message without
	// an ID is known by its other fields, if it has an At.
	ID      string
	Stream  string // where it came from
	Session string
	Person  string // who wrote it; may be empty
	Text    string
	At      time.Time // the zero time means now
	told    string    // identifies it, where it takes something back; "" if nothing does
}

// Hear interprets what a message says about earlier answers, and returns what it counted. It may show the outcome of an expectation, take
// back answers of its session or to its person, or show that answers on its stream were ignored; a message of thanks does not. An answer
// takes one of the three from a message at most, and counts one implicit signal at most: docs/confidence.md has the table. Call Hear
// before the answers to the message itself fire.
//
// Hear reads only the open answers that wait for a phrase of the text, or that were shown in its session, to its person or on its stream.
// All that the message means is one commit. If the strategy fails for some answers, these stay open, and Hear returns what it
// counted with the error.
//
// An undo for which there is nothing to take back changes nothing. Config().Strategy.IsUndo tells it from other messages.
//
// Each function of with is given the signals, before anything is committed, and returns a batch for the same commit. It is called again if
// another process was quicker.
func (m *Module) Hear(ctx context.Context, e Message, with ...func(ctx context.Context, signals []Signal) (store.Batch, error)) (changes []Change, err error) {
	defer doing("hear", &err)
	if err := checkTexts(text{"ID", e.ID}, text{"Stream", e.Stream}, text{"Session", e.Session}, text{"Person", e.Person}); err != nil {
		return nil, err
	}
	e.identify()
	e.At = m.orNow(e.At)
	r := m.newRun(e.At)
	err = m.retry(ctx, nil, func() (err error) {
		r = m.newRun(e.At)
		changes, err = r.hear(ctx, &e, with)
		return err
	})
	m.failed(ctx, r)
	return changes, errors.Join(append(r.failures, err)...)
}

// identify sets what the message is known by when it is heard again.
func (e *Message) identify() {
	switch {
	case e.ID != "":
		e.told = e.ID
	case !e.At.IsZero():
		e.told = store.IDOf("message", e.Stream, e.Session, e.Person, e.Text, strconv.FormatInt(e.At.UnixMicro(), 10))
	}
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
	store.Row[fired]
	how    string // which implicit signal the strategy made, or has failed to make; "" if it was not asked in this run
	signal *Signal
	by     string // who caused it, if that is not the one to whom it was shown
	told   string // the id of the message that takes it back
}

// question is what the strategy is asked about the fire.
func (w *waiting) question(at time.Time) Answer {
	return Answer{HeuristicID: w.Value.Heuristic, EventID: w.Value.Event, Domain: w.Value.Domain, Age: max(at.Sub(w.Value.Shown), 0)}
}

func (m *Module) newRun(at time.Time) *run {
	return &run{ledger: m.newLedger(), at: at, seen: make(map[string]*waiting)}
}

// hear reads the fires that the message may end, has the strategy interpret what it means for them, and counts that. Ignored fires
// are interpreted last, as their heuristics must be read before.
func (r *run) hear(ctx context.Context, e *Message, with []func(context.Context, []Signal) (store.Batch, error)) ([]Change, error) {
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
		if ignored, err = r.ignored(ctx, e); err != nil {
			return nil, err
		}
	}
	if len(ended)+len(ignored) == 0 {
		return nil, nil
	}
	if err := r.read(ctx, heuristicsOf(slices.Concat(ended, ignored)), nil); err != nil {
		return nil, err
	}
	for _, w := range ended {
		r.end(w)
	}
	for _, w := range ignored {
		r.ignore(w)
	}
	signals := make([]Signal, len(r.entries))
	for i, entry := range r.entries {
		signals[i] = entry.change.Signal
	}
	batches := make([]store.Batch, 0, len(with))
	for _, f := range with {
		b, err := f(ctx, signals)
		if err != nil {
			return nil, err
		}
		batches = append(batches, b)
	}
	return r.commit(ctx, batches...)
}

// ignored returns the fires that the message passes over.
func (r *run) ignored(ctx context.Context, e *Message) ([]*waiting, error) {
	found, err := r.find(ctx, func(w *fired) bool { return w.ignorable(e.At) && e.mayIgnore(w) }, []string{streamKey(e.Stream)})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	thanks, failure := ask(func() (bool, error) { return r.m.cfg.Strategy.IsThanks(e.Text), nil })
	switch {
	case failure != nil:
		r.failures = append(r.failures, failure)
		found = nil
	case thanks:
		found = nil
	}
	return found, nil
}

// heuristicsOf returns the heuristics whose accounts answers need.
func heuristicsOf(all []*waiting) (ids []string) {
	for _, w := range all {
		ids = append(ids, w.Value.heuristics()...)
	}
	return ids
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
				w = &waiting{Row: kept}
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

// mayTakeBack reports whether a message can take an answer back: not from another session, though the person be the same.
func (e *Message) mayTakeBack(w *fired) bool {
	return e.mayJudge(w) && (e.Session == "" || w.Session == "" || e.Session == w.Session)
}

// mayIgnore reports whether a message can show that an answer was ignored: not one by somebody else.
func (e *Message) mayIgnore(w *fired) bool {
	return e.mayJudge(w) && (e.Person == "" || w.Person == "" || e.Person == w.Person)
}

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
			if r.judge(w, slotOutcome, s, err) {
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
	is, err := ahead.Once(ctx, ahead.IsUndo{Of: r.m, Text: e.Text}, func() (bool, error) {
		return ask(func() (bool, error) { return r.m.cfg.Strategy.IsUndo(e.Text), nil })
	})
	if err != nil { // the rest of the message counts
		r.failures = append(r.failures, err)
		return nil, false, nil
	}
	if !is {
		return nil, true, nil
	}
	found, err := r.find(ctx, func(w *fired) bool { return w.undoable(e.At) && e.mayTakeBack(w) && r.m.countsMessage(w, e) }, undoKeys(e)...)
	if err != nil {
		return nil, true, err
	}
	// If another process counts this message first, either this look finds what it took back, or the commit finds that an answer has changed.
	// So the answers are read before.
	if before, err := r.undoneBefore(ctx, e); err != nil || before || len(found) == 0 {
		return nil, true, err
	}
	ended, understood = r.takeBack(found, e.Text)
	for _, w := range ended {
		if w.told = e.told; e.Person != w.Value.Person {
			w.by = e.Person
		}
	}
	return ended, understood, nil
}

// undoneBefore reports whether the message has taken back an answer before. That answer is none that the message ignores.
func (r *run) undoneBefore(ctx context.Context, e *Message) (bool, error) {
	if e.told == "" {
		return false, nil
	}
	before, err := r.find(ctx, func(*fired) bool { return true }, []string{undoneKey(e.told)})
	for _, w := range before {
		w.how = slotUndo
	}
	return len(before) > 0, err
}

// countsMessage reports whether a message's undo of an answer counts. After an undo of somebody else, only the one to whom the answer was shown
// means this answer by "undo that"; all others mean the one before.
func (m *Module) countsMessage(w *fired, e *Message) bool {
	return w.Facts.Undo == nil || e.Person != "" && e.Person == w.Person && m.countsUndo(w, e.Person)
}

// takeBack asks the strategy which of these answers an undo takes back. The text is empty for a command of the host's.
func (r *run) takeBack(found []*waiting, text string) (ended []*waiting, understood bool) {
	recent, shown := make([]Answer, len(found)), make(map[answer]*waiting, len(found))
	for i, w := range found {
		recent[i], shown[w.Value.answer()] = w.question(r.at), w
	}
	signals, err := ask(func() ([]Signal, error) { return r.m.cfg.Strategy.InterpretUndo(text, recent) })
	if err != nil {
		r.failures = append(r.failures, err)
		return nil, false
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
		case !s.neutral() && w.how == "" && r.judge(w, slotUndo, s, nil):
			ended = append(ended, w)
		}
	}
	return ended, true
}

// undoKeys says where to look for what a message may take back: in its session, and among what was shown to its person.
func undoKeys(e *Message) (keys [][]string) {
	if e.Session != "" {
		keys = append(keys, []string{sessionKey(e.Session)})
	}
	if e.Person != "" {
		keys = append(keys, []string{shownToKey(e.Person)})
	}
	return keys
}

// ignore counts one more ignore of a heuristic in a row. An answer that people praised is not part of the row. Complaints and undos leave it
// there. The row goes on until its signal counts in full, as it does not beside an undo or a failure.
func (r *run) ignore(w *waiting) {
	question := w.question(r.at)
	question.Consecutive = 1
	a := r.accounts[w.Value.Heuristic]
	if a != nil {
		question.Consecutive = a.ignores + 1
	}
	s, err := ask(func() (Signal, error) { return r.m.cfg.Strategy.InterpretIgnore(question) })
	if a == nil { // the model answered, and nobody has approved of it
		s = NewSignal(Neutral, "", w.Value.Event, ChannelIgnored)
	}
	f := w.Value.Facts
	if !r.judge(w, slotIgnore, s, err) || !r.end(w) || a == nil || f.Praise.N > 0 && f.Complaint.N == 0 {
		return
	}
	inFull := f.of(f.slot(r.m.cfg.Independent)).sign() >= 0
	f.Ignore = &seen{Type: s.Type, Magnitude: s.Magnitude}
	if a.ignores = question.Consecutive; !s.neutral() && inFull && f.slot(r.m.cfg.Independent) == slotIgnore {
		a.ignores = 0
	}
}

// end notes an implicit signal of a fire, and counts what the fire's facts say then. It reports whether that goes into the commit. If
// not, the fire stays open, unless its heuristic was deleted.
func (r *run) end(kept *waiting) bool {
	w, at := kept.Row, r.at // a copy, as nobody may change what the store has
	if kept.how == slotSilence {
		at = w.Value.Silence // whenever it is swept
	}
	s := kept.signal
	it := &seen{Type: s.Type, Channel: s.Channel, Magnitude: s.Magnitude, Target: s.Target, At: at, Person: kept.by, Message: kept.told}
	note := &entry{signal: *s, person: it.by(&w.Value), session: w.Value.Session, at: at, idle: true, answer: &w, slot: kept.how}
	if further := kept.how == slotUndo && w.Value.Facts.Undo != nil; further {
		it.Person = note.person
		w.Value.Undos = append(slices.Clone(w.Value.Undos), *it)
		note.idle, note.slot, note.cell, note.id = false, "", cellSeen, "undo:"+r.m.answerID(w.Value.answer())+":"+store.IDOf(note.person)
	} else {
		*w.Value.Facts.at(kept.how) = it
	}
	w.Value.schedule(r.m.orNow(time.Time{}))
	if kept.how == slotSilence && w.Value.Facts.slot(r.m.cfg.Independent) != slotSilence {
		r.batch.Records = append(r.batch.Records, r.m.kinds.fires.Record(w.Value, w.Revision))
		return true
	}
	err := r.count(note)
	if errors.Is(err, heed.ErrNotFound) {
		w = kept.Row
		w.Value.Lost = true
		w.Value.schedule(r.m.orNow(time.Time{}))
		r.batch.Records = append(r.batch.Records, r.m.kinds.fires.Record(w.Value, w.Revision))
	}
	if err != nil {
		r.failures = append(r.failures, err)
	}
	return err == nil
}
