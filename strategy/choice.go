package strategy

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/cells"
)

// ChoiceID names a choice. It is a UUID.
type ChoiceID = uuid.UUID

// newChoiceID returns a random UUID (version 4). It reads its bytes itself, as uuid.New would put them on the heap.
func newChoiceID() (id ChoiceID) {
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// A Query asks for an arm.
type Query struct {
	// Session is where the arm will be used. Within it an item keeps the arm that was chosen for it first, even if another query
	// has another category or context. An empty session remembers nothing: every query is a session of its own.
	Session string
	// Item is what the arm is chosen for: a learning, a kind of task, a user. It may be empty if the segment has no items. Then
	// the session remembers the choice of the segment.
	Item string
	// Category and Context make the segment. Its items learn from each other. Both may be empty.
	Category string
	Context  string
	// Arms are permitted now. Empty: all are.
	Arms []ArmID
	// Shares, if there are any, are the probabilities with which a new choice takes each of Arms, or of [Config].Arms where that is empty,
	// in place of the beliefs. They sum to 1. [Choice].Propensity returns the share.
	Shares []float64
}

func (q *Query) validate() error {
	return checkTexts("Session", q.Session, "Item", q.Item, "Category", q.Category, "Context", q.Context)
}

// checkTexts returns the fault of the first text that a store can't keep, of pairs of a field and a text.
func checkTexts(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := evidence.CheckText(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// A Choice is an arm that was chosen, with all that is needed to credit it later, in this process or another. It goes through
// JSON and back. It is immutable.
type Choice struct {
	ID       ChoiceID  `json:"id"`
	Arm      ArmID     `json:"arm"`
	Session  string    `json:"session,omitempty"`
	Item     string    `json:"item,omitempty"`
	Category string    `json:"category,omitempty"`
	Context  string    `json:"context,omitempty"`
	At       time.Time `json:"at"`

	details *details
}

// details is what a choice shares with the cache. Only kept changes after the choice is made.
type details struct {
	facts
	kept atomic.Pointer[keptChoice] // its record, as this process knows it; nil: it does not
}

// facts are what a choice is written with, beside its fields.
type facts struct {
	Learner    string    `json:"learner"`
	Parameters []Setting `json:"parameters,omitempty"`
	Draws      []Draw    `json:"draws,omitempty"`
	Fallback   bool      `json:"fallback,omitempty"` // whether the arm is the default, as nothing could be drawn
	given      bool      // whether the item had its copy of the segment then; false if that is not known
	drawn      bool      // whether it was made here, and not read from its record
	Propensity float64   `json:"propensity,omitempty"` // of a choice of the host's own, as it was told; 0: unknown
	Resets     resets    `json:"resets,omitzero"`      // of the item, when the choice was made
}

// resets says how often a segment and an item were reset. It is in the id of evidence that is derived from other evidence, so
// that this can be derived again after a reset.
type resets [2]uint64

func (r resets) atLeast(o resets) resets { return resets{max(r[0], o[0]), max(r[1], o[1])} }

func (r resets) String() string {
	if r == (resets{}) {
		return "[0 0]" // which it mostly is
	}
	return fmt.Sprint([2]uint64(r))
}

// A Setting is the value that was chosen for a parameter of the arm.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Draw is what was drawn for one of the permitted arms. The arm with the greatest sample was chosen.
type Draw struct {
	Arm    ArmID   `json:"arm"`
	Sample float64 `json:"sample"`          // with the bonus
	Bonus  float64 `json:"bonus,omitempty"` // the part of the sample that was added for exploration
	Belief Belief  `json:"belief"`
}

// facts returns what the choice is written with.
func (c *Choice) facts() *facts {
	if c.details == nil {
		return &facts{}
	}
	return &c.details.facts
}

// Learner returns the name of the learner that made the choice.
func (c Choice) Learner() string { return c.facts().Learner }

// Parameter returns the value of a parameter of the arm, and "" if the arm has none of this name.
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

// Draws returns what was drawn, in the order of the arms. A fallback has no draws.
func (c Choice) Draws() iter.Seq[Draw] { return slices.Values(c.facts().Draws) }

// Fallback reports whether the arm is the default, or the first that was permitted, as nothing could be drawn.
func (c Choice) Fallback() bool { return c.facts().Fallback }

// leastPropensity is the least distance of a propensity that is integrated from 0 and 1.
const leastPropensity = 1e-12

// propensityDraws bounds the standard error of a propensity that is counted: √(¼/n) is 0.0028. propensityWork bounds the draws
// of all arms together, which take a second.
const (
	propensityDraws = 1 << 15
	propensityWork  = 64 * propensityDraws
)

// Propensity returns the probability with which the arm was chosen, given what was believed, as off-policy evaluation needs
// it. Plain beliefs without a bonus have that of [evidence.ProbBest], and so has an item without evidence of its own. That of others is
// integrated, and is never 0: over all arms the integrals sum to 1 within 1e-6. A fallback has 1. A choice of [Learner.Record] has what the host has told, and NaN if
// that was nothing. A choice without its draws, as later events have it, has NaN. Package offpolicy refuses NaN.
//
// A propensity is counted over draws like the choice's own, always the same ones, if the Level of an arm has a shape below 0.01 or above 1e6, or an
// Alpha below ¼ beside successes, or if Strength times Sharpness is so great that counting is faster. It then has a standard error of at most 0.0028
// for 64 arms, and 0.011 for 1,000, and is at least half a draw.
//
// Integrating and counting take milliseconds: do it where choices are logged, and not where they are made.
func (c Choice) Propensity() float64 {
	f := c.facts()
	switch {
	case f.Fallback:
		return 1
	case f.Propensity > 0 && f.Propensity <= 1:
		return f.Propensity
	}
	plain := true
	beliefs, chosen := make([]evidence.Beta, len(f.Draws)), -1
	for i := range f.Draws {
		d := &f.Draws[i]
		plain = plain && d.Belief.Plain() && d.Bonus == 0
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
		return evidence.ProbBest(beliefs)[chosen]
	}
	if p, ok := bestOf(f.Draws, chosen); ok {
		return min(max(p, leastPropensity), 1-leastPropensity)
	}
	return c.count(f.Draws, chosen)
}

// drawArms draws every arm and returns which has the greatest sample, the earlier of equals, or one whose sample is NaN.
func drawArms(draws []Draw, rng *evidence.Rand) (best int) {
	for i := range draws {
		d := &draws[i]
		d.Sample = d.Belief.Draw(rng) + d.Bonus
		if d.Sample > draws[best].Sample || math.IsNaN(d.Sample) {
			best = i
		}
	}
	return best
}

// plainChoice is a choice without methods. Its fields and facts are added and dropped, and never renamed or given another type.
type plainChoice Choice

// MarshalJSON implements [json.Marshaler].
func (c Choice) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainChoice
		*facts
	}{plainChoice(c), c.facts()})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Choice) UnmarshalJSON(data []byte) error {
	var s struct {
		plainChoice
		facts
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("strategy: choice: %w", err)
	}
	if len(s.Draws) > maxArms {
		return fmt.Errorf("strategy: choice: %w", &heed.InputError{Field: "draws", Reason: fmt.Sprintf("are %d, may be %d", len(s.Draws), maxArms)})
	}
	*c = Choice(s.plainChoice)
	c.details = &details{facts: s.facts}
	return nil
}

// kinds are the kinds of a learner's cells.
type kinds struct{ arm, given, sessions, resets, parameter string }

func kindsOf(learner string) kinds {
	return kinds{cells.ArmKind(learner), learner + ".given", learner + ".sessions", cells.ResetsKind(learner), learner + ".parameter"}
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

func (s *space) parameter(arm ArmID, setting Setting) evidence.Cell {
	return evidence.Cell{Kind: s.kinds.parameter, Scope: s.scope, Item: string(arm), Name: setting.Name + "=" + setting.Value}
}
