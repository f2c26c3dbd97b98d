package strategy

import (
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/internal/ids"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// A ChoiceRecord is a choice with what is known of it since.
type ChoiceRecord struct {
	Choice Choice `json:"choice"`
	Stage  Stage  `json:"stage"`
	// Result is its outcome; nil unless it is Observed. Of several it is the last by At, and of one moment the one with the
	// greater id, in whatever order they were observed.
	Result *Result `json:"result,omitempty"`
	// Mean is the mean of the values of its last outcomes, 17 at most, weighed by their confidences: several people may say how one choice turned out.
	Mean float64 `json:"-"`
	// Mass is the sum of the confidences of these outcomes, and Reports is their number.
	Mass    float64 `json:"-"`
	Reports int     `json:"-"`
}

// Stage says how far a choice has come.
type Stage string

// How far a choice can have come.
const (
	Pending  Stage = "pending"  // its outcome may still come
	Observed Stage = "observed" // an outcome came
	Expired  Stage = "expired"  // none came in time; one that comes late makes it Observed
)

// A Result is what came of a choice: an [Outcome] without it.
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

// before reports whether a result gives way to another, by the rule of Record.Result.
func (r Result) before(o Result) bool {
	if n := r.At.Compare(o.At); n != 0 {
		return n < 0
	}
	return r.ID < o.ID
}

// A ChoiceFilter lets choices pass that have all the properties it names. The zero filter lets all pass.
type ChoiceFilter struct {
	Session  string
	Item     string
	Category string
	Context  string
	Stage    Stage
	Since    time.Time // made then or later
	Until    time.Time // made before
	Limit    int       // at most this number, the newest. 0: all
}

// passes reports whether the filter lets a record pass. Times and the limit are left to the query.
func (f *ChoiceFilter) passes(r *choiceRow) bool {
	c := &r.Choice
	return (f.Session == "" || f.Session == c.Session) &&
		(f.Item == "" || f.Item == c.Item) &&
		(f.Category == "" || f.Category == c.Category) &&
		(f.Context == "" || f.Context == c.Context) &&
		(f.Stage == "" || f.Stage == r.Stage)
}

// query returns the query that finds what the filter lets pass, and more.
func (f *ChoiceFilter) query(learner string) store.Query {
	q := store.Query{Since: f.Since, Until: f.Until}
	if f.Session != "" {
		q.Keys = append(q.Keys, sessionKey(f.Session))
	}
	if f.Item != "" {
		q.Keys = append(q.Keys, itemKey(f.Item))
	}
	if f.Stage == Pending {
		q.Keys = append(q.Keys, pendingKey(learner))
	}
	return q
}

// A choiceRow is a choice as a store has it.
type choiceRow struct {
	ChoiceRecord
	Epoch  uint64 `json:"epoch,omitempty"`  // of its session, when it was made
	Number uint64 `json:"number,omitempty"` // how many choices its session had made before for its item
	Silent bool   `json:"silent,omitempty"` // silence was counted for it, as evidence
	// Own tells that the record has the id of the choice. The last choice of an item in a session has an id that is made of the
	// two. So it is read without a search, and is there once however many processes choose at the same time.
	Own bool `json:"own,omitempty"`
	// Others are its outcomes beside the result. nil: there never was any.
	Others *others `json:"others,omitempty"`

	place []string // the keys of its session and item, once they are made
}

// others are further outcomes of a choice. Of both sorts, the last maxOutcomes are kept.
type others struct {
	Earlier []Result `json:"earlier,omitempty"` // those that count, the last by At at the end
	Taken   []string `json:"taken,omitempty"`   // the ids of those that were taken back
}

// others returns the further outcomes of the choice. They are not to be changed.
func (r *choiceRow) others() (earlier []Result, taken []string) {
	if r.Others == nil {
		return nil, nil
	}
	return r.Others.Earlier, r.Others.Taken
}

// keptChoice is the record of a choice with its revision.
type keptChoice = store.Row[*choiceRow]

// choices are the records of choices, of all learners.
var choices = store.View[*choiceRow]{
	Kind: store.Kind{
		Name:   "strategy.choice",
		Limits: store.Limits{For: 30 * 24 * time.Hour, Most: 100_000},
		Caused: []string{"result.source", "others.earlier.*.source"},
	},
	Place: func(r *choiceRow) (id string, at time.Time, keys []string) {
		c := &r.Choice
		if r.Own || c.Session == "" {
			return c.ID.String(), c.At, r.keys()
		}
		return lastID(c.Learner(), c.Session, nameInSession(c.Item, c.Category, c.Context)), c.At, r.keys()
	},
}

// keys returns what the record is found by.
func (r *choiceRow) keys() []string {
	c, keys := &r.Choice, r.place
	if keys == nil {
		keys = make([]string, 0, 3)
		if c.Session != "" {
			keys = append(keys, sessionKey(c.Session))
		}
		if c.Item != "" {
			keys = append(keys, itemKey(c.Item))
		}
	}
	if r.Stage == Pending {
		keys = append(keys, pendingKey(c.Learner()))
	}
	if r.Result != nil && r.Result.Source != "" {
		keys = append(keys, store.PersonKey(r.Result.Source))
	}
	earlier, _ := r.others()
	for i := range earlier {
		if source := earlier[i].Source; source != "" && !slices.Contains(keys, store.PersonKey(source)) {
			keys = append(keys, store.PersonKey(source))
		}
	}
	return keys
}

// write returns the row as a record whose id is known.
func (r *choiceRow) write(id string, revision uint64) store.Record {
	return store.Record{Ref: choices.Ref(id), Revision: revision, At: r.Choice.At, Keys: r.keys(), Body: store.Of(r)}
}

func sessionKey(session string) string { return store.Key("session", session) }
func itemKey(item string) string       { return store.Key("item", item) }
func pendingKey(learner string) string { return store.Key("pending", learner) }

// A madeRow is the row of a choice that was just made, with what the choice will know of it.
type madeRow struct {
	choiceRow
	kept keptChoice
}

// newRow returns the row of a choice that was just made, and its keys, in as little memory as it takes.
func (l *Learner) newRow(c *Choice) (row *madeRow, keys []string) {
	row = &madeRow{choiceRow: choiceRow{ChoiceRecord: ChoiceRecord{Choice: *c, Stage: Pending}}}
	keys = make([]string, 0, 3)
	text := "session=" + c.Session + "item=" + c.Item // one text that the keys are cut from
	n := len("session=") + len(c.Session)
	if c.Session != "" {
		keys = append(keys, text[:n])
	}
	if c.Item != "" {
		keys = append(keys, text[n:])
	}
	row.place = keys[:len(keys):len(keys)]
	return row, append(keys, l.pending)
}

// lastID names the record of the last choice of a name in a session.
func lastID(learner, session, name string) string {
	return store.IDOf("choice", learner, session, name)
}

// A sessionRow says how often a session has ended. Choices of an earlier epoch have ended with it.
type sessionRow struct {
	ID    string    `json:"id"`
	Epoch uint64    `json:"epoch"`
	At    time.Time `json:"at"` // when it ended last
}

// sessions are the records of sessions that have ended. One is kept for longer than the choices that it ends.
var sessions = store.View[sessionRow]{
	Kind: store.Kind{
		Name:   "strategy.session",
		Limits: store.Limits{For: 31 * 24 * time.Hour, Most: 100_000},
	},
	Place: func(r sessionRow) (id string, at time.Time, keys []string) { return r.ID, r.At, nil },
}

func sessionID(learner, session string) string { return store.IDOf("session", learner, session) }

// bothIDs returns the ids of a session and of the last choice of a name in it.
func bothIDs(learner, session, name string) (ofSession, ofChoice string) {
	return ids.Both(ids.Of("session", learner, session), ids.Of("choice", learner, session, name))
}

// record returns the record as users have it, a copy.
func (r *choiceRow) record() ChoiceRecord {
	record := r.ChoiceRecord
	if r.Result != nil {
		result := *r.Result
		record.Result = &result
		record.Mean, record.Mass, record.Reports = r.sum()
	}
	return record
}

// sum returns the mean value of the outcomes that the row has, the sum of their confidences, and their number.
func (r *choiceRow) sum() (mean, mass float64, n int) {
	earlier, _ := r.others()
	value, mass, n := r.Result.Value*r.Result.Confidence, r.Result.Confidence, 1+len(earlier)
	for i := range earlier {
		value += earlier[i].Value * earlier[i].Confidence
		mass += earlier[i].Confidence
	}
	if len(earlier) == 0 || mass == 0 {
		return r.Result.Value, mass, n
	}
	return value / mass, mass, n
}

// maxOutcomes bounds the outcomes that a row has beside the last, and those that were taken back.
const maxOutcomes = 16

// knows reports whether the row has an outcome of this id, or has it no more.
func (r *choiceRow) knows(id string) bool {
	earlier, taken := r.others()
	return r.Result != nil && r.Result.ID == id || slices.Contains(taken, id) ||
		slices.ContainsFunc(earlier, func(o Result) bool { return o.ID == id })
}

// settled returns the row with an outcome. A row that knows the outcome stays as it is.
func (r *choiceRow) settled(result Result) *choiceRow {
	if r.knows(result.ID) {
		return r
	}
	settled := &struct {
		choiceRow
		result Result
	}{*r, result}
	next := &settled.choiceRow
	next.Stage, next.Silent = Observed, false
	if r.Result == nil {
		next.Result = &settled.result
		return next
	}
	earlier, taken := r.others()
	all := append(slices.Clone(earlier), *r.Result, result)
	slices.SortStableFunc(all, func(a, b Result) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	last := len(all) - 1
	next.Result, next.Others = &all[last], &others{all[max(last-maxOutcomes, 0):last], taken}
	return next
}

// without returns the row without an outcome, which was taken back, and the outcome if the row had it. Without any other, the
// choice is at this stage. A row that had lost the outcome before stays as it is.
func (r *choiceRow) without(id string, left Stage) (*choiceRow, *Result) {
	earlier, taken := r.others()
	if slices.Contains(taken, id) {
		return r, nil
	}
	next := *r
	taken = append(slices.Clone(taken), id)
	next.Others = &others{earlier, taken[max(len(taken)-maxOutcomes, 0):]}
	if r.Result != nil && r.Result.ID == id {
		if n := len(earlier); n > 0 {
			next.Result, next.Others.Earlier = &earlier[n-1], earlier[:n-1]
		} else {
			next.Stage, next.Result = left, nil
		}
		return &next, r.Result
	}
	i := slices.IndexFunc(earlier, func(o Result) bool { return o.ID == id })
	if i < 0 {
		return &next, nil
	}
	next.Others.Earlier = slices.Delete(slices.Clone(earlier), i, i+1)
	return &next, &earlier[i]
}

// Damaged returns the records of the learner that hold something that this package has not written.
func (l *Learner) Damaged(ctx context.Context) (_ []store.Ref, err error) {
	defer because(&err, "damaged")
	return records.Damaged(ctx, l.cfg.Store, &choices, &sessions)
}

// places returns where the record of a choice may be.
func (c *Choice) places() []store.Ref {
	own := choices.Ref(c.ID.String())
	if c.Session == "" {
		return []store.Ref{own}
	}
	return []store.Ref{choices.Ref(lastID(c.Learner(), c.Session, nameInSession(c.Item, c.Category, c.Context))), own}
}

// among returns the record of the choice among those that were read from its places. Revision 0: there is none.
func (c *Choice) among(read []store.Record) (keptChoice, error) {
	for _, r := range read {
		kept, err := choices.Of(r)
		if err != nil || kept.Revision > 0 && kept.Value.Choice.ID == c.ID {
			return kept, err
		}
	}
	return keptChoice{}, nil
}

// remember has the choice know its record.
func (c *Choice) remember(kept keptChoice) {
	if c.details != nil && kept.Revision > 0 {
		c.details.kept.Store(&kept)
	}
}
