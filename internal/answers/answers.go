// Package answers defines how answers are kept as records: under which id, how long, and by which
// keys they are found; in which cells package strategy keeps the evidence that they are; and what
// follows from the statements about an answer.
//
// # Statements
//
// A statement is one fact about the quality of an answer: a person judged it, somebody reported
// an outcome, a message took it back, the user went on without comment, or the time for a reaction
// passed in silence. [Say] adds one. The latest statement of one source holds, by its
// channel and target, in whatever order statements arrive. A statement about the whole answer
// replaces statements about a part of it, and the reverse. A judgement of value 0, and an outcome
// with Withdrawn set, take back what their source stated before.
//
// The order of arrival matters in these cases only:
//
//   - Of two statements that one source made at the same moment, the last to arrive holds. If two
//     sources reported outcomes at the same moment, the last to arrive counts for the arm.
//   - If a source judges a part, then the whole, and then the other part, the second judgement
//     replaces the first only if both arrive before the third.
//   - If a source repeats a statement, its evidence fades from the moment of the first to arrive.
//   - If an implicit signal is observed again, the first observation to arrive holds. If several
//     people undo an answer, ReceptionOf has the undo that arrived first.
//   - If there is no room, the statements that arrived decide which one goes or is refused.
//
// # What counts for a heuristic
//
// [ReceptionOf] collects the statements about the heuristic that answered (or about the
// model), and decides which of them count:
//
//	known of the answer      implicit signal that counts       received
//	nothing                  none                              unknown
//	silence                  silence                           by the silence
//	praise                   an undo, else a success, if any   well; badly if it was undone
//	a complaint              the strongest negative one        badly
//	praise and a complaint   the strongest negative one        by that signal, else unknown
//	an undo                  the strongest negative one        badly
//	a failure or an ignore   the strongest negative one        badly
//	an expected success      the success                       well
//
// Judgements count each for themselves. At most one implicit signal counts as well. An ignore and
// silence give way to an expected success, silence gives way to every other observation. An undo
// always counts, because it is a command.
//
// # What counts for the arm
//
// [Parts] divides one whole observation among the statements, so that an answer counts once
// for the arm that was chosen, however many people react:
//
//	known of the answer                    shares
//	an undo by the person who asked        all of it
//	judgements, undos by others            all of it, divided by people and their weights
//	judgements and a reported outcome      half each
//	a reported or expected outcome         all of it
//	an ignore                              all of it, as -0.5 with confidence 0.5
//	silence                                all of it, as +0.8 with confidence 0.3
//
// A statement in a higher row sets aside those in lower rows. Each person has a part by the
// greatest weight of their judgements; within it, their judgements count by their weights. An undo
// by another person than the one who asked is a judgement of -1 with the weight 1, in the place of
// that person's other judgements. If it is not known who asked, each undo is the asker's.
//
// # What counts for ways of working
//
// The first outcome to arrive that reports whether a task succeeded: see package patterns. Ways
// keep it if a source reports differently later, because a task succeeds or fails once.
package answers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// Kept is how long an answer is kept by default, from its At.
const Kept = 30 * 24 * time.Hour

// View returns the view of a kind of records that hold answers.
func View(kind string) store.View[answer.Answer] {
	return store.View[answer.Answer]{
		Kind:  store.Kind{Name: kind, Limits: store.Limits{For: Kept}, Caused: Caused()},
		Place: place,
	}
}

// waits are the least times of the classes by which open answers are kept apart. A class ends at
// twice its least time at most, and the usual windows are among them.
var waits = [...]time.Duration{
	0, minute / 4, minute / 3, minute / 2, 3 * minute / 4, minute, 2 * minute, 3 * minute, 5 * minute,
	10 * minute, 15 * minute, 20 * minute, 30 * minute, 45 * minute, hour, 2 * hour, 3 * hour,
	6 * hour, 12 * hour, day, 2 * day, 3 * day, 5 * day, 7 * day, 10 * day, 14 * day, 20 * day,
}

const (
	minute = time.Minute
	hour   = time.Hour
	day    = 24 * time.Hour
)

// wait finds the open answers of a class.
func wait(class int) string { return "wait=" + strconv.Itoa(int(waits[class].Seconds())) }

// waiting returns the key of an answer that waits until a moment.
func waiting(a *answer.Answer, until time.Time) string {
	class, found := slices.BinarySearch(waits[:], until.Sub(a.At))
	if !found {
		class = max(class-1, 0)
	}
	return wait(class)
}

// due returns queries for the open answers that may be due at a moment: those whose silence is
// still to be counted, and those that a late message can still change. The records are ordered by
// the answers, and an answer is found once it is as old as the least time of its class. So the
// queries leave out those in the first half of their time, and with the usual windows all that
// still must wait. due reads the store once, and leaves out queries without a result.
//
// The queries of all classes are one round trip, with a limit of one record each.
func due(ctx context.Context, st store.Store, kind string, now time.Time) ([]store.Query, error) {
	var all []store.Query
	for class, least := range waits {
		all = append(all, store.Query{
			Kind: kind, Keys: []string{wait(class)}, Oldest: true, Limit: 1,
			Until: now.Add(time.Microsecond - least),
		})
	}
	var s store.Snapshot
	if err := st.Read(ctx, &s, nil, nil, all...); err != nil {
		return nil, err
	}
	var found []store.Query
	for i, q := range all {
		if q.Limit = sweepStep; len(s.Found[i]) > 0 {
			found = append(found, q)
		}
	}
	return found, nil
}

// sweepStep is how many answers one step of a sweep reads.
const sweepStep = 64

// Sweep finds the answers that are due at a moment, page by page, and has do take each page through
// one step. do gets the ids of their records and returns how many it changed. If a step fails, each
// of its answers is tried again alone, and a damaged record is passed over, so that one answer does
// not hold up the others. It ends early if the store is not available or the context is done. Sweep
// returns how many answers were changed, and the errors, joined.
func Sweep(
	ctx context.Context, st store.Store, view store.View[answer.Answer], now time.Time,
	isDue func(*answer.Answer) bool, do func(ids []string) (changed int, err error),
) (swept int, err error) {
	queries, err := due(ctx, st, view.Name, now)
	if err != nil {
		return 0, err
	}
	var errs []error
	var away bool // the store or the caller
	step := func(ids ...string) (ok bool) {
		n, err := do(ids)
		if errs = append(errs, err); err == nil {
			swept += n
		}
		away = errors.Is(err, heed.ErrUnavailable) || ctx.Err() != nil
		return err == nil
	}
	for _, q := range queries {
		for more := true; more; {
			var ids []string
			n := 0
			for record, err := range st.Find(ctx, q) {
				if err != nil {
					return swept, errors.Join(append(errs, err)...)
				}
				n, q.After = n+1, record.Place
				if row, err := view.Of(record); err != nil {
					errs = append(errs, err)
				} else if isDue(&row.Value) {
					ids = append(ids, row.ID)
				}
			}
			more = n == sweepStep
			if len(ids) == 0 || step(ids...) || len(ids) == 1 && !away {
				continue
			}
			for _, id := range ids {
				if away {
					return swept, errors.Join(errs...)
				}
				step(id)
			}
		}
	}
	return swept, errors.Join(errs...)
}

// Arrival returns the moment of a statement that comes without a time: now or, up to
// [evidence.MaxSkew] later, the moment of the answer or of the latest statement about it. So the
// last statement to arrive holds, although the clocks of replicas differ or a clock was set back.
func Arrival(a *answer.Answer, now time.Time) time.Time {
	moments := []time.Time{now, a.At}
	for i := range a.Statements {
		moments = append(moments, a.Statements[i].At)
	}
	at := slices.MaxFunc(moments, time.Time.Compare)
	if latest := now.Add(evidence.MaxSkew); at.After(latest) {
		return latest
	}
	return at
}

// Session finds all answers of a session. The keys below that begin with "open" find an answer only
// while a late message can still change it, so that a search costs as much as there are open ones.
func Session(id string) string { return store.Key("session", id) }

// Item finds the answers whose arm was chosen for an item.
func Item(item string) string { return store.Key("item", item) }

// Vectors finds the answers whose arm was chosen in a segment by a vector, among other things.
func Vectors(learner, scope string) string {
	return store.Key("vectors", store.IDOf(learner, scope))
}

// Pending finds the choices of a learner that is used alone, while they have no outcome.
func Pending(learner string) string { return store.Key("pending", learner) }

// OpenSession finds the open answers of a session that can be taken back, OpenTo those that were
// shown to a person.
func OpenSession(id string) string { return store.Key("open-session", id) }

// OpenTo finds the open answers that were shown to a person and can be taken back.
func OpenTo(person string) string { return store.Key("open-to", store.IDOf(person)) }

// OpenStream finds the open answers of a stream that can be ignored.
func OpenStream(name string) string { return store.Key("open-stream", name) }

// OpenPhrase finds the open answers that wait for a phrase.
func OpenPhrase(phrase string) string { return store.Key("open-phrase", store.IDOf(phrase)) }

// UndoneBy finds the answers that a message took back.
func UndoneBy(message string) string { return store.Key("undone", store.IDOf(message)) }

// Bad finds the answers with a negative worth, for pages that list what went wrong. A choice that
// is used alone has no text, so it is not among them.
const Bad = "bad"

// ID returns the id of the record of an event's answer. It is a hash, because an event's id may be
// longer than an id of a record may be.
func ID(event string) string { return store.IDOf(event) }

// Alone reports whether the record is a choice of package strategy, which is used alone.
func Alone(a *answer.Answer) bool { return a.Choice != nil && a.Reply == nil && len(a.Fires) == 0 }

// InSession returns the name by which a session remembers a choice: its item, or its segment. No
// item has a NUL.
func InSession(item, category, context string) string {
	if item != "" {
		return item
	}
	return "\x00" + Scope(category, context)
}

// LastID returns the id of the record of the last choice of a name in a session.
func LastID(learner, session, name string) string {
	return store.IDOf("choice", learner, session, name)
}

// place returns where an answer is kept. Its keys change with its statements.
func place(a answer.Answer) (id string, at time.Time, keys []string) {
	return recordID(&a), a.At, keysOf(&a)
}

// recordID returns the id of an answer's record. A choice that a session remembers has the id of
// its name in the session, so that several processes give one session one arm.
func recordID(a *answer.Answer) string {
	if !Alone(a) {
		return ID(a.ID)
	}
	c := a.Choice
	if c.Own || c.Session == "" {
		return c.ID.String()
	}
	return LastID(c.Learner, c.Session, InSession(c.Item, c.Category, c.Context))
}

// keysOf returns what the record of an answer is found by.
func keysOf(a *answer.Answer) (keys []string) {
	add := func(key string) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	named := func(key func(string) string, name string) {
		if name != "" {
			add(key(name))
		}
	}
	named(Session, a.Session)
	if c := a.Choice; c != nil {
		named(Session, c.Session)
		named(Item, c.Item)
		if c.Linear != nil {
			add(Vectors(c.Learner, Scope(c.Category, c.Context)))
		}
		if Alone(a) && len(a.Statements) == 0 && !c.Expired {
			add(Pending(c.Learner))
		}
	}
	for i := range a.Fires {
		if f := &a.Fires[i]; !f.Closed {
			add(waiting(a, f.Due))
			open(a, f, named)
		}
	}
	for _, name := range People(a) {
		add(store.PersonKey(name))
	}
	if worth, _, known := WorthOf(a); known && worth < 0 && a.Reply != nil {
		add(Bad)
	}
	for i := range a.Statements {
		named(UndoneBy, a.Statements[i].Message)
	}
	return keys
}

// open adds the keys by which a fire that is open is found while messages can change it. A fire
// that no message can change any more has no such key, and so costs no search.
func open(a *answer.Answer, f *answer.Fire, named func(key func(string) string, name string)) {
	r := ReceptionOf(a, f.Heuristic)
	if undoable := r.Undo == nil || a.Person != "" && !TookBack(a, f.Heuristic, a.Person); undoable {
		named(OpenSession, a.Session)
		named(OpenTo, a.Person)
	}
	if r.Ignored == nil {
		named(OpenStream, a.Stream)
	}
	if r.Expected == nil {
		named(OpenPhrase, f.Phrase)
	}
}
