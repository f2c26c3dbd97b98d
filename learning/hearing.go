package learning

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A Message is something that came in. Its text may show how an earlier answer turned out, or take
// it back.
type Message struct {
	// ID may be empty. A message does not concern the answer to the event of its ID. If it comes
	// again, it takes back no second answer. A message without an ID is recognised by its other
	// fields, if it has an At.
	ID string
	// Stream is where the message came from, for example a chat channel. Answers on the stream that
	// are open are ignored by it.
	Stream string
	// Session is the conversation. An undo looks for answers in it, and never in another one.
	Session string
	// Person is who wrote the message. If it is empty, an undo counts as one by the person to whom
	// the answer was shown.
	Person string
	// Text is what the strategy interprets, and where the phrases of expectations are looked for.
	Text string
	// At is when the message was written. The zero time means now. Windows are compared with this
	// time, so a message that arrives late still counts.
	At time.Time
}

// known returns what the message is recognised by if it comes again, "" if it is not.
func (e *Message) known() string {
	if e.ID != "" || e.At.IsZero() {
		return e.ID
	}
	at := strconv.FormatInt(e.At.UnixMicro(), 10)
	return store.IDOf("message", e.Stream, e.Session, e.Person, e.Text, at)
}

// Hear interprets what a message shows about earlier answers, and returns what it counted. It may
// show the outcome of an expectation, take back answers of its session or to its person, or show
// that answers on its stream were ignored; a message of thanks does not. An answer takes one of the
// three from a message at most, and counts one implicit signal at most: docs/trust.md has the
// rules. Call Hear before the answers to the message itself fire.
//
// Hear reads only the open answers that wait for a phrase of the text, or that were shown in its
// session, to its person or on its stream. All that the message means is one commit. If the
// strategy fails for some answers, these stay open, and Hear returns what it counted with the
// error.
//
// An undo has no effect if there is no answer to take back.
func (m *Module) Hear(ctx context.Context, e Message) (_ []Change, err error) {
	defer doing("hear", &err)
	h, err := m.Steps().Hearing(e)
	if err != nil {
		return nil, err
	}
	var changes []*Change
	var failed error
	err = store.Do(ctx, m.cfg.Store, func(tx *store.Tx) (err error) {
		_, changes, err = h.In(tx)
		failed = m.Steps().FailuresIn(tx)
		return err
	})
	return valuesOf(changes, err), errors.Join(failed, err)
}

// A hearing is a message as the strategy understands it, before it counts. It must not be used
// concurrently.
type hearing struct {
	m             *Module
	message       Message
	known         string   // what the message is recognised by, or ""
	phrases       []string // of expectations, in the text
	command       bool
	thanks, doubt bool  // as in [Strategy].IsThanks
	failure       error // of the strategy, which was asked for these
	unknown       error // of a run of a step that may have taken effect
}

// Hearing asks the strategy once whether a message is a command to undo or thanks, and looks for
// the phrases of expectations. Invalid input is a [*heed.InputError].
func (m steps) Hearing(e Message) (*hearing, error) {
	if err := valid.Texts(evidence.MaxText, "ID", e.ID, "Stream", e.Stream, "Session", e.Session,
		"Person", e.Person); err != nil {
		return nil, err
	}
	h := &hearing{m: m.Module, message: e, known: e.known()}
	h.message.At = m.orNow(e.At)
	if err := valid.Time("At", h.message.At, m.cfg.Now()); err != nil {
		return nil, err
	}
	words := strings.ToLower(e.Text)
	for _, phrase := range m.phrases {
		if strings.Contains(words, phrase) {
			h.phrases = append(h.phrases, phrase)
		}
	}
	_, h.failure = ask(func() (any, error) {
		if h.command = m.cfg.Strategy.IsUndo(e.Text); e.Stream != "" {
			h.thanks, h.doubt = m.cfg.Strategy.IsThanks(e.Text)
		}
		return nil, nil
	})
	return h, nil
}

// Command reports whether the message is a command to undo.
func (h *hearing) Command() bool { return h.command }

// Wants names the open answers that the message can concern. The result is empty if the message
// cannot change any answer.
func (h *hearing) Wants() (w store.Wants) {
	for _, phrase := range h.phrases {
		w.Queries = append(w.Queries, h.query(answers.OpenPhrase(phrase)))
	}
	if h.command {
		w.Queries = append(append(w.Queries, h.undoes()...), h.undone()...)
	}
	return store.Wants{Queries: append(w.Queries, h.ignores()...)}
}

// query finds the open answers with a key, the oldest first.
func (h *hearing) query(key string) store.Query {
	return store.Query{Kind: h.m.kinds.answers.Name, Keys: []string{key}, Oldest: true}
}

// undoes finds what the message may take back: in its session, and among what was shown to its
// person.
func (h *hearing) undoes() (all []store.Query) {
	if e := &h.message; e.Session != "" {
		all = append(all, h.query(answers.OpenSession(e.Session)))
	}
	if e := &h.message; e.Person != "" {
		all = append(all, h.query(answers.OpenTo(e.Person)))
	}
	return all
}

// undone finds what the message took back before.
func (h *hearing) undone() []store.Query {
	if h.known == "" {
		return nil
	}
	return []store.Query{h.query(answers.UndoneBy(h.known))}
}

// ignores finds what the message passes over.
func (h *hearing) ignores() []store.Query {
	if h.failure != nil || h.message.Stream == "" {
		return nil
	}
	return []store.Query{h.query(answers.OpenStream(h.message.Stream))}
}

// In is [Module.Hear] within a step: it counts what the message means, and puts the answers that it
// changes. It returns these answers, so that the caller can change more of them and put them again.
// The changes are complete after the commit. Failures of the strategy are in FailuresIn of
// [Module.Steps].
func (h *hearing) In(tx *store.Tx) (rows []store.Row[answer.Answer], changes []*Change, err error) {
	if h.unknown != nil && h.known == "" { // to repeat the message may take another answer back
		return nil, nil, store.Final(h.unknown)
	}
	tx.Then(func(_ store.Receipt, err error) {
		if errors.Is(err, heed.ErrOutcomeUnknown) && h.command {
			h.unknown = err
		}
	})
	r := h.m.newRun(tx, h.message.At)
	if h.failure != nil { // the rest of the message counts
		r.failures = append(r.failures, h.failure)
	}
	tx.Want(h.Wants())
	ended, err := r.outcomes(h)
	if err != nil {
		return nil, nil, err
	}
	undone, understood, err := r.undo(h)
	if err != nil {
		return nil, nil, err
	}
	ended = append(ended, undone...)
	var ignored []*waiting
	if understood && h.failure == nil {
		if ignored, err = r.ignored(h); err != nil {
			return nil, nil, err
		}
	}
	// Ignored answers come last, because the strategy needs the accounts of their heuristics.
	if err := r.readFor(ended, ignored); err != nil {
		return nil, nil, err
	}
	for _, w := range ended {
		r.observe(w)
	}
	for _, w := range ignored {
		r.ignore(w)
	}
	for _, on := range r.heard {
		if on.edited {
			row := store.Row[answer.Answer]{Value: *on.Value, ID: on.id, Revision: on.revision}
			h.m.kinds.answers.Put(tx, row.Value, row.Revision)
			rows = append(rows, row)
		}
	}
	return rows, r.changes(r.first), nil
}

// A run is one call that may end several fires. Each fire gets at most one meaning from a message,
// and the order of the looks decides which: first the outcome of an expectation, because it is the
// most specific, then an undo, and then that the answer was ignored. For example, a message that
// takes an answer back does not ignore it as well.
type run struct {
	*ledger
	at    time.Time
	first int // the number of entries before
	heard []*heard
	byID  map[string]*heard
	seen  map[fireOf]*waiting
}

func (m *Module) newRun(tx *store.Tx, at time.Time) *run {
	l := m.ledger(tx)
	return &run{
		ledger: l, at: at, first: len(l.entries),
		byID: make(map[string]*heard), seen: make(map[fireOf]*waiting),
	}
}

// A heard is an answer that a run looks at.
type heard struct {
	Value    *answer.Answer
	id       string
	revision uint64
	edited   bool
}

// A fireOf names a fire by its answer and its heuristic.
type fireOf struct{ id, heuristic string }

// A waiting is a fire that a run looks at.
type waiting struct {
	on        *heard
	heuristic string
	how       answer.How // which implicit signal the strategy was asked for; "" if it was not asked
	signal    Signal
	by        string // who caused it; "": the person to whom the answer was shown
	session   string // where, if not in the answer's session
	message   string // the id of the message that takes the answer back
}

func (w *waiting) fire() *answer.Fire { return answers.FireOf(w.on.Value, w.heuristic) }

// question is what the strategy is asked about a fire.
func (w *waiting) question(at time.Time) Answer {
	f := w.fire()
	return Answer{
		HeuristicID: f.Heuristic, EventID: w.on.Value.ID, Domain: f.Domain,
		Age: max(at.Sub(f.Shown), 0),
	}
}

// sortByShown puts the oldest answers first, which is the order that a strategy expects.
func sortByShown(all []*waiting) {
	slices.SortStableFunc(all, func(a, b *waiting) int {
		return a.fire().Shown.Compare(b.fire().Shown)
	})
}

// readFor reads the accounts that fires need.
func (r *run) readFor(all ...[]*waiting) error {
	var ids []string
	for _, w := range slices.Concat(all...) {
		ids = append(ids, concerned(w.fire())...)
	}
	return r.read(ids...)
}

// find returns the fires of answers that either query finds, which are wanted and were not asked
// for yet, each once, the oldest first.
func (r *run) find(
	wanted func(a *answer.Answer, f *answer.Fire) bool, either ...store.Query,
) (found []*waiting, err error) {
	if len(either) == 0 {
		return nil, nil
	}
	var s store.Snapshot
	if err := r.tx.Read(&s, nil, nil, either...); err != nil {
		return nil, err
	}
	for _, record := range slices.Concat(s.Found...) {
		on, err := r.hear(record)
		if err != nil {
			return nil, err
		}
		for i := range on.Value.Fires {
			f := &on.Value.Fires[i]
			key := fireOf{on.id, f.Heuristic}
			w := r.seen[key]
			if w == nil {
				w = &waiting{on: on, heuristic: f.Heuristic}
				r.seen[key] = w
			}
			twice := len(either) > 1 && slices.Contains(found, w)
			if w.how == "" && !twice && wanted(on.Value, f) {
				found = append(found, w)
			}
		}
	}
	sortByShown(found)
	return found, nil
}

// hear returns the answer of a record that was found, as the step changed it.
func (r *run) hear(record store.Record) (*heard, error) {
	if on := r.byID[record.ID]; on != nil {
		return on, nil
	}
	if r.tx.Writes(record.Ref) {
		var err error
		if record, err = r.tx.Get(record.Ref); err != nil {
			return nil, err
		}
	}
	row, err := r.m.kinds.answers.Of(record)
	if err != nil {
		return nil, err
	}
	on := &heard{Value: &row.Value, id: row.ID, revision: row.Revision}
	r.heard, r.byID[record.ID] = append(r.heard, on), on
	return on, nil
}

// mayJudge reports whether a message may concern an answer: not one to the message itself.
func (e *Message) mayJudge(a *answer.Answer) bool { return e.ID == "" || a.ID != e.ID }

// mayTakeBack reports whether a message can take an answer back: not from another session, even if
// the person is the same.
func (e *Message) mayTakeBack(a *answer.Answer) bool {
	return e.mayJudge(a) && (e.Session == "" || a.Session == "" || e.Session == a.Session)
}

// mayIgnore reports whether a message can show that an answer was ignored: not one by somebody
// else.
func (e *Message) mayIgnore(a *answer.Answer) bool {
	return e.mayJudge(a) && (e.Person == "" || a.Person == "" || e.Person == a.Person)
}

// outcomes judges the fires that wait for a phrase of the text.
func (r *run) outcomes(h *hearing) (ended []*waiting, err error) {
	e, strategy := &h.message, r.m.cfg.Strategy
	for _, phrase := range h.phrases {
		found, err := r.find(func(a *answer.Answer, f *answer.Fire) bool {
			known := answers.ReceptionOf(a, f.Heuristic)
			return !f.Closed && f.Phrase == phrase && awaits(f, &known, e.At) && e.mayJudge(a)
		}, h.query(answers.OpenPhrase(phrase)))
		if err != nil {
			return nil, err
		}
		for _, w := range found {
			question := w.question(e.At)
			question.Success = !w.fire().Failure
			s, err := ask(func() (Signal, error) { return strategy.InterpretOutcome(question) })
			if r.note(w, answers.Expected, s, err) {
				ended = append(ended, w)
			}
		}
	}
	return ended, nil
}

// note keeps how the strategy ends a fire. It reports false, and collects the reason, if it does
// not.
func (r *run) note(w *waiting, how answer.How, s Signal, err error) bool {
	w.how, w.signal = how, s
	foreign := s.HeuristicID != w.heuristic || s.EventID != "" && s.EventID != w.on.Value.ID
	if err == nil && foreign {
		err = errForeign
	}
	if err != nil {
		r.failures = append(r.failures, err)
	}
	return err == nil
}

var errForeign = errors.New("the strategy answered with a signal for something else")

// undo judges the fires that the message takes back. It reports whether the message was understood.
func (r *run) undo(h *hearing) (ended []*waiting, understood bool, err error) {
	e := &h.message
	if !h.command {
		return nil, true, nil
	}
	found, err := r.find(func(a *answer.Answer, f *answer.Fire) bool {
		return !f.Closed && undoable(f, e.At) && e.mayTakeBack(a) && e.means(a, f)
	}, h.undoes()...)
	if err != nil {
		return nil, true, err
	}
	found = shownBy(found, e.At)
	// If another process counts this message first, either this look finds what it took back, or
	// the commit finds that an answer changed. So the answers are read before.
	earlier, err := r.undoneBefore(h)
	if err != nil || earlier || len(found) == 0 {
		return nil, true, err
	}
	ended, understood = r.takeBack(found, e.Text)
	for _, w := range ended {
		w.message, w.by = h.known, e.Person
	}
	return ended, understood, nil
}

// shownBy returns the fires that were shown by a moment, because a message that arrives late means
// what its author had seen then. Without such fires, clocks may differ, and all are returned.
func shownBy(found []*waiting, at time.Time) []*waiting {
	later := func(w *waiting) bool { return w.fire().Shown.After(at) }
	if seen := slices.DeleteFunc(slices.Clone(found), later); len(seen) > 0 {
		return seen
	}
	return found
}

// undoneBefore reports whether the message took back an answer before. The message then does not
// ignore that answer.
func (r *run) undoneBefore(h *hearing) (bool, error) {
	earlier, err := r.find(func(a *answer.Answer, f *answer.Fire) bool {
		return slices.ContainsFunc(a.Statements, func(s answer.Statement) bool {
			return s.How == answers.Undo && s.Of == f.Heuristic && s.Message == h.known
		})
	}, h.undone()...)
	for _, w := range earlier {
		w.how = answers.Undo
	}
	return len(earlier) > 0, err
}

// means reports whether a message that is an undo means this answer. After an undo of somebody
// else, only the person to whom the answer was shown means this answer by "undo that"; all others
// mean the one before.
func (e *Message) means(a *answer.Answer, f *answer.Fire) bool {
	return answers.ReceptionOf(a, f.Heuristic).Undo == nil ||
		e.Person != "" && e.Person == a.Person && recordsUndo(a, f, e.Person)
}

// takeBack asks the strategy which of these answers an undo takes back. The text is empty for a
// command of the host's.
func (r *run) takeBack(found []*waiting, text string) (ended []*waiting, understood bool) {
	recent, shown := make([]Answer, len(found)), make(map[fireOf]*waiting, len(found))
	for i, w := range found {
		recent[i], shown[fireOf{w.on.Value.ID, w.heuristic}] = w.question(r.at), w
	}
	strategy := r.m.cfg.Strategy
	signals, err := ask(func() ([]Signal, error) { return strategy.InterpretUndo(text, recent) })
	if err != nil {
		r.failures = append(r.failures, err)
		return nil, false
	}
	for _, s := range signals {
		w := shown[fireOf{s.EventID, s.HeuristicID}]
		err := s.Validate()
		if w == nil {
			err = errForeign
		}
		switch {
		case err != nil:
			r.failures = append(r.failures, err)
		case s.Worth != 0 && w.how == "" && r.note(w, answers.Undo, s, nil):
			ended = append(ended, w)
		}
	}
	return ended, true
}

// ignored returns the fires that the message passes over.
func (r *run) ignored(h *hearing) ([]*waiting, error) {
	e := &h.message
	found, err := r.find(func(a *answer.Answer, f *answer.Fire) bool {
		known := answers.ReceptionOf(a, f.Heuristic)
		return !f.Closed && ignorable(f, &known, e.At) && e.mayIgnore(a)
	}, h.ignores()...)
	if err != nil {
		return nil, err
	}
	if h.thanks { // no later message ignores them either
		for _, w := range found {
			answers.OwnFires(w.on.Value)
			f := w.fire()
			f.Ignore, w.on.edited = time.Time{}, true
			if h.doubt {
				f.Silence = time.Time{}
				r.m.schedule(f, false)
			}
		}
		return nil, nil
	}
	return found, nil
}

// ignore counts one more ignore of a heuristic in a row. An answer that people praised is not part
// of the row. Complaints and undos leave it there. The row ends when its signal counts in full,
// which an undo or a failure prevents.
func (r *run) ignore(w *waiting) {
	question := w.question(r.at)
	question.Consecutive = 1
	a := r.accounts[w.heuristic]
	if a != nil {
		question.Consecutive = a.ignores + 1
	}
	s, err := ask(func() (Signal, error) { return r.m.cfg.Strategy.InterpretIgnore(question) })
	if a == nil { // the model answered
		s = Signal{HeuristicID: "", EventID: w.on.Value.ID, Channel: ChannelIgnored}
	}
	independent := r.m.cfg.tuning.Independent
	known := answers.ReceptionOf(w.on.Value, w.heuristic)
	inFull := known.Sign(known.Implicit(independent)) >= 0
	praised := known.Praise.N > 0 && known.Complaint.N == 0
	if !r.note(w, answers.Ignored, s, err) || !r.observe(w) || a == nil || praised {
		return
	}
	known = answers.ReceptionOf(w.on.Value, w.heuristic)
	n := question.Consecutive
	if s.Worth != 0 && inFull && known.Implicit(independent) == answers.Ignored {
		n = 0
	}
	r.ledger.ignored(a, n)
}

// observe adds an implicit signal to an answer, and counts what its statements amount to then. It
// reports whether it does. If not, the fire stays open, unless its heuristic was deleted.
func (r *run) observe(w *waiting) bool {
	a, s := w.on.Value, &w.signal
	unchanged, f := *a, w.fire()
	at := r.at
	if w.how == answers.Silence {
		at = f.Silence // whenever it is swept
	}
	by := cmp.Or(w.by, a.Person)
	first := answers.ReceptionOf(a, w.heuristic).Undo
	further := w.how == answers.Undo && first != nil && !first.Forgotten()
	each := further && w.heuristic != ""
	on, _, effect := answers.Say(a, answer.Statement{
		How: w.how, By: by, Kind: r.m.cfg.kindOf(by), Session: w.session, Channel: s.Channel,
		Target: s.Target, Of: w.heuristic, Worth: s.Worth, At: at, Message: w.message,
	})
	if effect != answers.Holds {
		return false
	}
	known := answers.ReceptionOf(a, w.heuristic)
	answers.OwnFires(a)
	r.m.schedule(w.fire(), known.Silence != nil)
	w.on.edited = true
	if w.how == answers.Silence && known.Implicit(r.m.cfg.tuning.Independent) != answers.Silence {
		return true
	}
	e := &entry{signal: *s, person: by, session: a.Session, at: at, idle: true, on: a, how: w.how}
	if further {
		e.how = ""
	}
	if each { // each person's undo counts for itself, within that person's limit
		e.idle, e.cell = false, cellSeen
		e.id = "undo:" + r.m.answerID(w.heuristic, a.ID) + ":" + store.IDOf(by)
	}
	err := r.count(e)
	switch {
	case err != nil:
		*a = unchanged
		r.lose(w, err)
	case further && !each: // the first one counts for all, because no limit applies to the model
		e.limit(limitOutweighed)
	case each && e.counted != nil:
		answers.Edit(a, on.N, func(s *answer.Statement) { s.Credit = credit(e.counted) })
	}
	return err == nil
}

// lose collects an error, and closes a fire whose heuristic was deleted.
func (r *run) lose(w *waiting, err error) {
	r.failures = append(r.failures, err)
	if !errors.Is(err, heed.ErrNotFound) {
		return
	}
	answers.OwnFires(w.on.Value)
	f := w.fire()
	f.Lost, w.on.edited = true, true
	r.m.schedule(f, false)
}
