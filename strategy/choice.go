package strategy

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed/evidence"
)

// ChoiceID names a choice: a UUID, kept as its 16 bytes.
type ChoiceID [16]byte

// newChoiceID returns a random UUID (version 4). It reads its bytes itself, as uuid.New would put them on the heap.
func newChoiceID() (id ChoiceID) {
	_, _ = rand.Read(id[:]) // which never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseChoiceID reads what String has written.
func ParseChoiceID(s string) (ChoiceID, error) {
	id, err := uuid.Parse(s)
	return ChoiceID(id), err
}

// String returns the id as a UUID is written.
func (id ChoiceID) String() string { return uuid.UUID(id).String() }

// MarshalText implements [encoding.TextMarshaler].
func (id ChoiceID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (id *ChoiceID) UnmarshalText(text []byte) error { return (*uuid.UUID)(id).UnmarshalText(text) }

// A Query asks for an arm.
type Query struct {
	// Session is where the arm will be used: within it, an item keeps the arm that was chosen for it first, also if it is
	// asked for with another category or context. An empty session remembers nothing, and every query is a session of its
	// own.
	Session string
	// Item is what the arm is chosen for: a learning, a kind of task, a user. It may be empty, where a segment has no items;
	// then the session remembers the choice of the segment.
	Item string
	// Category and Context make the segment, whose items learn from each other. Both may be empty.
	Category string
	Context  string
	// Arms are those that are permitted now. Empty: all.
	Arms []ArmID
}

func (q *Query) validate() error {
	for _, text := range [...]struct{ field, value string }{
		{"Session", q.Session}, {"Item", q.Item}, {"Category", q.Category}, {"Context", q.Context},
	} {
		if err := evidence.CheckText(text.field, text.value); err != nil {
			return err
		}
	}
	return nil
}

// A Choice is an arm that was chosen, with all that is needed to credit it later, in this process or another: it goes
// through JSON and back. It is immutable.
type Choice struct {
	ID  ChoiceID
	Arm ArmID

	Session  string
	Item     string
	Category string
	Context  string
	At       time.Time

	details *details
}

// details is what a choice shares with the cache. But for kept it does not change once the choice is made.
type details struct {
	learner    string
	parameters []Setting
	draws      []Draw
	fallback   bool   // whether the arm is the default, as nothing could be drawn
	resets     resets // of the item, when the choice was made
	given      bool   // whether the item had its copy of the segment then; false where that is not known

	kept atomic.Pointer[keptChoice] // its record, as this process knows it; nil: it does not
}

// resets says how often a segment and an item were reset. Evidence that is derived from other evidence has it in its id, so
// that it can be derived once more after a reset.
type resets [2]uint64

func (r resets) atLeast(o resets) resets { return resets{max(r[0], o[0]), max(r[1], o[1])} }

func (r resets) String() string { return fmt.Sprint([2]uint64(r)) }

// A Setting is the value that was chosen for a parameter of the arm.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Draw is what was drawn for one of the permitted arms. The arm with the greatest sample was chosen.
type Draw struct {
	Arm    ArmID   `json:"arm"`
	Sample float64 `json:"sample"`          // with the bonus
	Bonus  float64 `json:"bonus,omitempty"` // of which so much was added for exploration
	Belief Belief  `json:"belief"`
}

// Learner returns the name of the learner that made the choice.
func (c Choice) Learner() string {
	if c.details == nil {
		return ""
	}
	return c.details.learner
}

// Parameter returns the value of a parameter of the arm, and "" where the arm has none of this name.
func (c Choice) Parameter(name string) string {
	for n, value := range c.Parameters() {
		if n == name {
			return value
		}
	}
	return ""
}

// Parameters returns the arm's parameters and their values, in their order.
func (c Choice) Parameters() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if c.details == nil {
			return
		}
		for _, p := range c.details.parameters {
			if !yield(p.Name, p.Value) {
				return
			}
		}
	}
}

// Draws returns what was drawn, in the order of the arms. There are none where the choice is a fallback.
func (c Choice) Draws() iter.Seq[Draw] {
	return func(yield func(Draw) bool) {
		if c.details == nil {
			return
		}
		for _, d := range c.details.draws {
			if !yield(d) {
				return
			}
		}
	}
}

// Fallback reports whether the arm is the default, or the first that was permitted, as nothing could be drawn.
func (c Choice) Fallback() bool { return c.details != nil && c.details.fallback }

// propensityDraws bounds the standard error of a propensity that is counted: √(¼/n) is 0.0028.
const propensityDraws = 1 << 15

// Propensity returns the probability with which the arm was chosen, given what was believed, as off-policy evaluation
// needs it. For plain beliefs without a bonus it is exact ([evidence.ProbBest]). For others it is counted over draws like
// the choice's own, with a standard error of at most 0.0028, always the same ones; it is then never 0, but at least half
// a draw. Of a fallback it is 1, and of a choice without its draws, as events after the first have it, it is NaN.
//
// Counting takes milliseconds: do it where choices are logged, and not where they are made.
func (c Choice) Propensity() float64 {
	if c.details == nil {
		return math.NaN()
	}
	if c.details.fallback {
		return 1
	}
	plain := true
	beliefs, chosen := make([]evidence.Beta, len(c.details.draws)), -1
	for i := range c.details.draws {
		d := &c.details.draws[i]
		plain = plain && d.Belief.Strength == 0 && d.Bonus == 0
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
	return c.countPropensity(chosen)
}

func (c Choice) countPropensity(chosen int) float64 {
	draws := make([]Draw, len(c.details.draws))
	for i, d := range c.details.draws {
		draws[i] = d
		draws[i].Belief = d.Belief.Keep()
	}
	rng := evidence.Key{A: propensityDraws, B: uint64(len(draws))}.Rand(0, string(c.ID[:]))
	wins := 0.
	for range propensityDraws {
		if drawArms(draws, &rng) == chosen {
			wins++
		}
	}
	return min(max(wins, 0.5), propensityDraws-0.5) / propensityDraws
}

// drawArms draws every arm and returns which has the greatest sample, the earlier of equals, or one whose sample is NaN.
func drawArms(draws []Draw, rng *evidence.Rand) (best int) {
	for i := range draws {
		d := &draws[i]
		d.Sample = d.Belief.draw(rng) + d.Bonus
		if d.Sample > draws[best].Sample || math.IsNaN(d.Sample) {
			best = i
		}
	}
	return best
}

// storedChoice is how a choice is written. Fields are added and dropped, and never renamed or given another type.
type storedChoice struct {
	ID         ChoiceID  `json:"id"`
	Arm        ArmID     `json:"arm"`
	Session    string    `json:"session,omitempty"`
	Item       string    `json:"item,omitempty"`
	Category   string    `json:"category,omitempty"`
	Context    string    `json:"context,omitempty"`
	At         time.Time `json:"at"`
	Learner    string    `json:"learner"`
	Parameters []Setting `json:"parameters,omitempty"`
	Draws      []Draw    `json:"draws,omitempty"`
	Fallback   bool      `json:"fallback,omitempty"`
	Resets     *resets   `json:"resets,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (c Choice) MarshalJSON() ([]byte, error) {
	d := c.details
	if d == nil {
		d = &details{}
	}
	var counted *resets
	if d.resets != (resets{}) {
		counted = &d.resets
	}
	return json.Marshal(storedChoice{
		c.ID, c.Arm, c.Session, c.Item, c.Category, c.Context, c.At,
		d.learner, d.parameters, d.draws, d.fallback, counted,
	})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Choice) UnmarshalJSON(data []byte) error {
	var s storedChoice
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("strategy: choice: %w", err)
	}
	*c = Choice{
		s.ID, s.Arm, s.Session, s.Item, s.Category, s.Context, s.At,
		&details{learner: s.Learner, parameters: s.Parameters, draws: s.Draws, fallback: s.Fallback},
	}
	if s.Resets != nil {
		c.details.resets = *s.Resets
	}
	return nil
}

// kinds are the kinds of a learner's cells.
type kinds struct{ arm, given, sessions, resets, parameter string }

func kindsOf(learner string) kinds {
	return kinds{learner + ".arm", learner + ".given", learner + ".sessions", learner + ".resets", learner + ".parameter"}
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

// segmentScope writes category and context as one text from which both can be told.
func segmentScope(category, context string) string {
	if strings.ContainsAny(category, `/"`) || category == "" && context == "" {
		category = strconv.Quote(category)
	}
	return category + "/" + context
}

// parseScope tells the category and the context of what segmentScope has written.
func parseScope(scope string) (category, context string, ok bool) {
	quoted, err := strconv.QuotedPrefix(scope)
	if err != nil {
		return strings.Cut(scope, "/")
	}
	category, err = strconv.Unquote(quoted)
	context, ok = strings.CutPrefix(scope[len(quoted):], "/")
	return category, context, ok && err == nil
}
