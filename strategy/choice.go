package strategy

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/winner"
)

// ChoiceID names a choice. It is a UUID.
type ChoiceID = uuid.UUID

// A Query asks for an arm.
type Query struct {
	// Session is where the arm will be used. Within it an item keeps the arm that was chosen for it
	// first, even if another query has another category or context. If it is empty, every query is a
	// new session.
	Session string
	// Key keys the randomness of the draws if Session is empty, for example with the id of an
	// event. Queries of one key and item then draw the same as long as the beliefs stay the same,
	// so a step that is run again chooses the same arm. If Session is set, Key has no effect. If
	// both are empty, each query draws for itself.
	Key string
	// Item is what the arm is chosen for: a learning, a kind of task, a user. It may be empty if
	// the segment has no items. Then the session remembers the choice of the segment.
	Item string
	// Category and Context make the segment. Its items learn from each other. Both may be empty.
	Category string
	Context  string
	// Vector is what the request is like, for example an embedding of its text, of at most 65,536
	// numbers, which must be finite. The learner finds out whether the best arm depends on it, and
	// uses it as far as it predicted better than the beliefs without it. Only its direction counts,
	// so add a constant to features that have no fixed length. Set it if requests of one item
	// differ, or have no item. It has no effect if Config.Unrecorded is set. nil: no vector.
	Vector []float32
	// Arms are permitted now, each once. Empty: all are.
	Arms []ArmID
	// Shares, if there are any, are the probabilities with which a new choice takes each of Arms,
	// or of [Config].Arms if Arms is empty, in place of the beliefs. They sum to 1.
	// [Choice].Propensity returns the share.
	Shares []float64
	// Frozen chooses by what was learned and leaves the store as it is: the choice is neither
	// recorded nor remembered, and no race ends. Set it while learning is suspended.
	Frozen bool
}

// name returns the name by which a session remembers the choice.
func (q *Query) name() string { return answers.InSession(q.Item, q.Category, q.Context) }

func (q *Query) validate() error {
	if len(q.Vector) > longestVector {
		return valid.Input("Vector", "has %d numbers, may have %d", len(q.Vector), longestVector)
	}
	for _, x := range q.Vector {
		if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) {
			return valid.Input("Vector", "must be finite")
		}
	}
	return valid.Texts(evidence.MaxText, "Session", q.Session, "Key", q.Key, "Item", q.Item,
		"Category", q.Category, "Context", q.Context)
}

// A Choice is an arm that was chosen, with all that is needed to credit it later, in this process
// or another. It goes through JSON and back. [Choice.Record] and [ChoiceOf] convert it to and from
// the part of an [answer.Answer]. It is immutable.
type Choice struct {
	ID       ChoiceID
	Arm      ArmID
	Session  string
	Item     string
	Category string
	Context  string
	At       time.Time

	details *details
}

// details is what a choice shares with the cache. Only kept changes after the choice is made.
type details struct {
	made answer.Choice
	// given reports whether the item had its copy of the segment when the arm was chosen. It is false
	// if that is not known; then the copy is looked for once more after an outcome.
	given bool
	// drawn reports whether this process made the choice, and did not read it from its record.
	drawn bool
	// kept is the choice's record with its revision, if this process read or wrote it, and nil
	// otherwise. A step that has it writes the record without a reading.
	kept atomic.Pointer[keptChoice]
}

// choice returns the choice of these details.
func (d *details) choice() Choice {
	m := &d.made
	return Choice{m.ID, m.Arm, m.Session, m.Item, m.Category, m.Context, m.At, d}
}

// resets counts how often a segment and an item were reset. It is in the id of evidence that is
// derived from other evidence, so that this can be derived again after a reset.
type resets [2]uint64

// atLeast returns the greater count of each, because counts only grow and a reading may be older
// than what the process learned since.
func (r resets) atLeast(o resets) resets { return resets{max(r[0], o[0]), max(r[1], o[1])} }

// unknown is what is known of a choice that no learner made.
var unknown answer.Choice

// facts returns what the choice is written with.
func (c *Choice) facts() *answer.Choice {
	if c.details == nil {
		return &unknown
	}
	return &c.details.made
}

// Record returns the choice for an answer's record, unchanged since the arm was chosen. It also has
// which learner chose, what was drawn, and whether that was a fallback.
func (c Choice) Record() *answer.Choice {
	f := c.facts()
	return &answer.Choice{
		ID: c.ID, Learner: f.Learner, Arm: c.Arm, Session: c.Session, Item: c.Item,
		Category: c.Category, Context: c.Context, At: c.At,
		Parameters: f.Parameters, Draws: f.Draws, Fallback: f.Fallback, Propensity: f.Propensity,
		Resets: f.Resets, Linear: f.Linear,
	}
}

// ChoiceOf returns the choice that is a part of an answer's record, and the zero Choice for nil.
func ChoiceOf(r *answer.Choice) Choice {
	if r == nil {
		return Choice{}
	}
	return (&details{made: *r}).choice()
}

// Parameter returns the value of a parameter of the arm, and "" if the arm does not have it.
func (c Choice) Parameter(name string) string {
	for _, p := range c.facts().Parameters {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// Parameters returns the arm's parameters and their values, in their order.
func (c Choice) Parameters() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, p := range c.facts().Parameters {
			if !yield(p.Name, p.Value) {
				return
			}
		}
	}
}

// leastPropensity is the least distance of a propensity that is integrated from 0 and 1.
const leastPropensity = 1e-12

// propensityDraws bounds the standard error of a propensity that is counted: √(¼/n) is 0.0028.
// propensityWork bounds the draws of all arms together, which take a second.
const (
	propensityDraws = 1 << 15
	propensityWork  = 64 * propensityDraws
)

// Propensity returns the probability with which the arm was chosen, given what was believed, for
// off-policy evaluation. Beliefs that are drawn as they are, without a bonus, have the one of
// winner.ProbBest. All others are integrated, and are never 0: over all arms the integrals sum
// to 1 within 1e-6. If the query had a vector, it is the mean of that and of the linear level's, by
// the probability that either chose. A fallback has 1. A choice of [Learner.Record] has the
// probability that the host gave, or NaN. A choice without its draws, for example in later events,
// has NaN. Package offpolicy refuses NaN.
//
// A propensity is counted over draws like the choice's own, always the same ones, if the
// distribution that is drawn from has a shape below 0.01 or above 1e6. It then has a standard error
// of at most 0.0028 for 64 arms, and 0.011 for 1,000, and is at least half a draw.
//
// Integrating takes less than a millisecond for a few arms, about 5 for 100, and some seconds for
// 1,000 with bonuses. Counting takes up to a second. Do it where choices are logged, and not where
// they are made.
func (c Choice) Propensity() float64 {
	f := c.facts()
	switch {
	case f.Fallback:
		return 1
	case f.Propensity > 0 && f.Propensity <= 1:
		return f.Propensity
	}
	p := c.ofTables(f)
	if f.Linear == nil || !(f.Linear.Weight > 0) || math.IsNaN(p) {
		return p
	}
	return p + f.Linear.Weight*(greatestNormal(f.Draws, c.Arm)-p)
}

// ofTables returns the probability of the arm if the pooling's beliefs chose.
func (c *Choice) ofTables(f *answer.Choice) float64 {
	plain := true
	beliefs, chosen := make([]evidence.Beta, len(f.Draws)), -1
	for i := range f.Draws {
		d := &f.Draws[i]
		plain = plain && d.Belief.Concentration == 0 && d.Bonus == 0
		beliefs[i] = d.Belief.Level
		if d.Arm == c.Arm {
			chosen = i
		}
	}
	switch {
	case chosen < 0:
		return math.NaN()
	case len(beliefs) == 1:
		return 1
	case plain:
		return winner.ProbBest(beliefs)[chosen]
	}
	if p, ok := bestOf(f.Draws, chosen); ok {
		return min(max(p, leastPropensity), 1-leastPropensity)
	}
	return c.count(f.Draws, chosen)
}

// drawArms draws every arm and returns which has the greatest sample, the earlier of equals, or one
// whose sample is NaN.
func drawArms(draws []answer.Draw, rng *chance.Rand) (best int) {
	for i := range draws {
		d := &draws[i]
		d.Sample = winner.Draw(&d.Belief, rng) + d.Bonus
		if d.Sample > draws[best].Sample || math.IsNaN(d.Sample) {
			best = i
		}
	}
	return best
}

// MarshalJSON implements [json.Marshaler].
func (c Choice) MarshalJSON() ([]byte, error) { return json.Marshal(c.Record()) }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Choice) UnmarshalJSON(data []byte) error {
	var r answer.Choice
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("strategy: choice: %w", err)
	}
	if n := len(r.Draws); n > maxArms {
		return fmt.Errorf("strategy: choice: %w", valid.Input("draws", "are %d, may be %d", n, maxArms))
	}
	*c = ChoiceOf(&r)
	return nil
}

// kinds are the kinds of a learner's cells.
type kinds struct{ arm, given, sessions, resets, parameter string }

func kindsOf(learner string) kinds {
	return kinds{answers.ArmKind(learner), learner + ".given", learner + ".sessions",
		answers.ResetsKind(learner), learner + ".parameter"}
}

// A space is where a learner's cells of one segment are.
type space struct {
	kinds kinds
	scope string
}

func (s *space) arm(item string, arm ArmID) evidence.Cell {
	return evidence.Cell{Kind: s.kinds.arm, Scope: s.scope, Item: item, Name: string(arm)}
}

func (s *space) given(item string, arm ArmID) evidence.Cell {
	return evidence.Cell{Kind: s.kinds.given, Scope: s.scope, Item: item, Name: string(arm)}
}

func (s *space) sessions(item string) evidence.Cell {
	return evidence.Cell{Kind: s.kinds.sessions, Scope: s.scope, Item: item, Name: "sessions"}
}

func (s *space) resets(item string) evidence.Cell {
	return evidence.Cell{Kind: s.kinds.resets, Scope: s.scope, Item: item, Name: "resets"}
}

func (s *space) parameter(arm ArmID, setting answer.Setting) evidence.Cell {
	return evidence.Cell{Kind: s.kinds.parameter, Scope: s.scope, Item: string(arm),
		Name: setting.Name + "=" + setting.Value}
}
