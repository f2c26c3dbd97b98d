package strategy

import (
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// A ChoiceRecord is a choice with what is known of it since.
type ChoiceRecord struct {
	Choice Choice `json:"choice"`
	Stage  Stage  `json:"stage"`
	// Result is its outcome; nil unless the choice is Observed. Of several it is the last by At,
	// and of one moment the one with the greater id, in whatever order they were observed.
	Result *Result `json:"result,omitempty"`
	// Mean is the mean of the values of its last outcomes, 17 at most, weighed by their
	// confidences: several people may report how one choice turned out.
	Mean float64 `json:"-"`
	// Mass is the sum of the confidences of these outcomes, and Reports is their number.
	Mass    float64 `json:"-"`
	Reports int     `json:"-"`
}

// Stage is how far a choice came.
type Stage string

// How far a choice can have come.
const (
	Pending  Stage = "pending"  // its outcome may still come
	Observed Stage = "observed" // an outcome came
	Expired  Stage = "expired"  // no outcome in time; a late outcome makes it Observed
)

// A Result is what came of a choice: an [Outcome] without the choice.
type Result struct {
	ID         string    `json:"id,omitempty"`
	Value      float64   `json:"value"`
	Confidence float64   `json:"confidence"` // times its share
	Channel    string    `json:"channel,omitempty"`
	Source     string    `json:"source,omitempty"`
	At         time.Time `json:"at"`

	Cost    float64       `json:"cost,omitempty"`
	Latency time.Duration `json:"latency,omitempty"` // in nanoseconds
	Tokens  int           `json:"tokens,omitempty"`
}

// statement returns the result as a record has it.
func (r *Result) statement() answer.Statement {
	s := answer.Statement{
		How: answers.Outcome, ID: r.ID, By: r.Source, Named: r.Source != "", Channel: r.Channel,
		Value: r.Value, Sure: r.Confidence, At: r.At,
	}
	spent := answer.Spent{Cost: r.Cost, Latency: r.Latency, Tokens: r.Tokens}
	if spent != (answer.Spent{}) {
		s.Spent = &spent
	}
	return s
}

// resultOf returns the outcome that a statement of a record is.
func resultOf(s *answer.Statement) Result {
	r := Result{
		ID: s.ID, Value: s.Value, Confidence: s.Sure, Channel: s.Channel, Source: s.By, At: s.At,
	}
	if s.Spent != nil {
		r.Cost, r.Latency, r.Tokens = s.Spent.Cost, s.Spent.Latency, s.Spent.Tokens
	}
	return r
}

// later orders outcomes by the rule of ChoiceRecord.Result.
func later(at time.Time, id string, otherAt time.Time, other string) bool {
	if n := at.Compare(otherAt); n != 0 {
		return n > 0
	}
	return id > other
}

// first returns the place of the first outcome.
func first(all []answer.Statement) (at int) {
	for i := range all {
		if later(all[at].At, all[at].ID, all[i].At, all[i].ID) {
			at = i
		}
	}
	return at
}

// A ChoiceFilter lets choices pass that have all the properties it names. The zero filter lets all
// pass.
type ChoiceFilter struct {
	// Evidence has the outcomes listed that the evidence of one item still has, one for each record,
	// in place of the records of choices. They go back further, and are there without records. Item,
	// Category and Context are then exact, and times are the outcomes'. Of a choice only its arm, its
	// session and its id are known.
	Evidence bool
	Session  string
	Item     string
	Category string
	Context  string
	Stage    Stage
	Since    time.Time // made then or later
	Until    time.Time // made before
	Limit    int       // at most this number, the newest. 0: all
}

// passes reports whether the filter lets a record pass. Times are left to the store's query. The
// stage and the limit are left to the caller, because they depend on the record after it was
// decoded.
func (f *ChoiceFilter) passes(a *answer.Answer) bool {
	c := a.Choice
	return (f.Session == "" || f.Session == c.Session) && (f.Item == "" || f.Item == c.Item) &&
		(f.Category == "" || f.Category == c.Category) &&
		(f.Context == "" || f.Context == c.Context)
}

// query returns the query that finds what the filter lets pass, and more. A session and an item are
// keys of the record, so an index serves them. Category and context are not, and passes looks at
// them.
func (l *Learner) query(f *ChoiceFilter) store.Query {
	q := store.Query{Since: f.Since, Until: f.Until}
	if f.Session != "" {
		q.Keys = append(q.Keys, answers.Session(f.Session))
	}
	if f.Item != "" {
		q.Keys = append(q.Keys, answers.Item(f.Item))
	}
	if f.Stage == Pending && l.cfg.expires() { // answers of a host have no such key
		q.Keys = append(q.Keys, l.pending)
	}
	return q
}

// answersKind returns the kind in which a learner keeps its choices by default.
func answersKind(learner string) string { return learner + ".answer" }

// A keptChoice is the record of a choice that was read or written. It is immutable once others can
// reach it: a change makes another one.
type keptChoice struct {
	*answer.Answer
	revision uint64 // 0: there is no record
	written  bool   // by this step
}

// write returns the record of a choice as it replaces the one that was read.
func (l *Learner) write(k *keptChoice) store.Record {
	k.written = true
	return l.answers.Record(*k.Answer, k.revision)
}

// kept returns a record that was read. Its revision is 0 without a record, or if the record is not
// a choice of this package alone. A record of package loop has more than a choice; the loop writes
// it, and the learner must not.
func (l *Learner) kept(r store.Record) (keptChoice, error) {
	row, err := l.answers.Of(r) // on the heap
	if err != nil || row.Revision == 0 || !answers.Alone(&row.Value) {
		return keptChoice{}, err
	}
	return keptChoice{Answer: &row.Value, revision: row.Revision}, nil
}

// A sessionRow counts how often a session ended, or has the choice that a session's answers share.
type sessionRow struct {
	ID string `json:"id"`
	// Epoch counts how often the session ended. Choices of an earlier epoch have ended with it.
	Epoch uint64    `json:"epoch,omitempty"`
	At    time.Time `json:"at"` // when the session ended last, or when the arm was chosen
	// Ends are the ids by which the session ended last, each once.
	Ends []string `json:"ends,omitempty"`
	// Choice is what [Learner.SelectIn] chose for one item of the session.
	Choice *answer.Choice `json:"choice,omitempty"`
}

// sessions are the records of sessions. One is kept for longer than the choices that it ends.
var sessions = store.View[sessionRow]{
	Kind: store.Kind{
		Name: "strategy.session", Limits: store.Limits{For: answers.Kept + 24*time.Hour},
	},
	Place: func(r sessionRow) (id string, at time.Time, keys []string) { return r.ID, r.At, nil },
}

func sessionID(learner, session string) string { return store.IDOf("session", learner, session) }

// record returns a record as users have it. The outcomes of an answer with more than a choice
// follow from what people stated about it, so they are computed and are not stored twice.
func (l *Learner) record(a *answer.Answer) ChoiceRecord {
	r := ChoiceRecord{Choice: ChoiceOf(a.Choice), Stage: Pending}
	switch {
	case !answers.Alone(a):
		r.Stage = l.stageAt(a.At, l.cfg.Now())
	case a.Choice.Expired:
		r.Stage = Expired
	}
	var results []Result
	for o := range l.outcomesIn(a, false) {
		results = append(results, o.result())
	}
	if len(results) == 0 {
		return r
	}
	r.Stage, r.Result, r.Reports = Observed, &results[0], len(results)
	var value float64
	for i := range results {
		o := &results[i]
		if later(o.At, o.ID, r.Result.At, r.Result.ID) {
			r.Result = o
		}
		value, r.Mass = value+o.Value*o.Confidence, r.Mass+o.Confidence
	}
	if r.Mean = r.Result.Value; len(results) > 1 && r.Mass > 0 {
		r.Mean = value / r.Mass
	}
	return r
}

// outcomesIn yields the outcomes in a record, in the order of the record. With credited, it leaves
// out outcomes of people who were forgotten and outcomes that were not credited. Of a record of
// this package alone, the outcomes are its statements. A record of a host has credits, by which
// each statement counts.
func (l *Learner) outcomesIn(a *answer.Answer, credited bool) iter.Seq[Outcome] {
	return func(yield func(Outcome) bool) {
		choice := ChoiceOf(a.Choice)
		if answers.Alone(a) {
			for i := range a.Statements {
				s, r := &a.Statements[i], resultOf(&a.Statements[i])
				if credited && s.Named && s.By == "" {
					continue
				}
				if !yield(Outcome{
					Choice: choice, ID: r.ID, Value: r.Value, Confidence: r.Confidence, Channel: r.Channel,
					Source: r.Source, At: r.At, Cost: r.Cost, Latency: r.Latency, Tokens: r.Tokens,
				}) {
					return
				}
			}
			return
		}
		for _, p := range answers.ForArm(a) {
			i := slices.IndexFunc(a.Choice.Credits, func(c answer.ArmCredit) bool { return c.Of == p.Of })
			if credited && (i < 0 || a.Choice.Credits[i].Dropped) || !credited && l.drops(p.Trust) {
				continue
			}
			o := l.outcomeOf(a, &p)
			if o.Choice = choice; i >= 0 {
				o.ID = creditID(a, a.Choice.Credits[i].Number)
			}
			if !yield(o) {
				return
			}
		}
	}
}

// creditedIn returns the outcomes in a record that count for the arm, silence among them. They
// follow the same rules as the evidence of the tables, so the linear level learns from the same
// outcomes.
func (l *Learner) creditedIn(a *answer.Answer) []Outcome {
	all := slices.Collect(l.outcomesIn(a, true))
	if answers.Alone(a) && a.Choice.Silent {
		all = append(all, Outcome{
			Choice: ChoiceOf(a.Choice), ID: silenceID, Value: -1, Confidence: l.cfg.Silence.Confidence,
			Channel: silenceChannel, At: a.At.Add(l.cfg.Silence.After),
		})
	}
	return all
}

// maxOutcomes bounds the outcomes that a record has besides the last, and those that were taken
// back.
const maxOutcomes = 16

// knows reports whether a record has, or had, an outcome of this id.
func knows(a *answer.Answer, id string) bool {
	return slices.Contains(a.Choice.Taken, id) ||
		slices.ContainsFunc(a.Statements, func(s answer.Statement) bool { return s.ID == id })
}

// settled returns the record with an outcome that it does not know. An outcome ends silence and
// expiry. If there are too many outcomes, the first by time is left out of the record, but stays in
// the evidence.
func settled(a *answer.Answer, result Result) *answer.Answer {
	next := *a
	if c := a.Choice; c.Expired { // silent choices have expired as well
		changed := *c
		changed.Silent, changed.Expired = false, false
		next.Choice = &changed
	}
	next.Numbers++
	s := result.statement()
	s.N = next.Numbers
	next.Statements = append(slices.Clip(a.Statements), s)
	if len(next.Statements) > 1+maxOutcomes {
		out := first(next.Statements)
		next.Statements = slices.Delete(next.Statements, out, out+1)
	}
	return &next
}

// without returns the record without an outcome that was taken back, and the outcome if the record
// had it. If no other is left, the choice is at this stage. A record that had lost the outcome
// before stays as it is. The id is remembered in Taken, so that a late delivery of the same outcome
// is recognised.
func without(a *answer.Answer, id string, left Stage) (*answer.Answer, *Result) {
	if slices.Contains(a.Choice.Taken, id) {
		return a, nil
	}
	next, choice := *a, *a.Choice
	choice.Taken = append(slices.Clip(choice.Taken), id)
	choice.Taken = choice.Taken[max(len(choice.Taken)-maxOutcomes, 0):]
	next.Choice = &choice
	i := slices.IndexFunc(a.Statements, func(s answer.Statement) bool { return s.ID == id })
	if i < 0 {
		return &next, nil
	}
	result := resultOf(&a.Statements[i])
	next.Statements = slices.Delete(slices.Clone(a.Statements), i, i+1)
	if len(next.Statements) == 0 {
		next.Statements, choice.Expired = nil, left == Expired
	}
	return &next, &result
}

// places returns where the record of a choice may be. A choice in a session may be in the record of
// the session's last answer for its item, or in a record with the choice's own id. Both are read in
// one round trip, and the id decides.
func (l *Learner) places(c *Choice) []store.Ref {
	own := l.answers.Ref(c.ID.String())
	if c.Session == "" {
		return []store.Ref{own}
	}
	name := answers.InSession(c.Item, c.Category, c.Context)
	return []store.Ref{l.answers.Ref(answers.LastID(c.facts().Learner, c.Session, name)), own}
}
