package answer

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed/evidence"
)

// An ArmID names an arm: one of the ways of answering that package strategy chooses among.
type ArmID string

// A Choice is an arm that was chosen, with what was believed then. Package strategy keeps here how
// far the arm was credited.
type Choice struct {
	ID       uuid.UUID `json:"id"`
	Learner  string    `json:"learner"`
	Arm      ArmID     `json:"arm"`
	Session  string    `json:"session,omitempty"`
	Item     string    `json:"item,omitempty"`
	Category string    `json:"category,omitempty"`
	Context  string    `json:"context,omitempty"`
	At       time.Time `json:"at"`

	Parameters []Setting `json:"parameters,omitempty"`
	Draws      []Draw    `json:"draws,omitempty"`
	Linear     *Linear   `json:"linear,omitempty"` // nil without a vector
	// Fallback reports that the arm is the default, because no arm could be drawn.
	Fallback bool `json:"fallback,omitempty"`
	// IgnoreSilence reports that silence is no approval of the arm.
	IgnoreSilence bool `json:"ignore_silence,omitempty"`
	// Propensity is the probability of a choice that the host made, in (0, 1]. 0 means unknown:
	// then the draws have it.
	Propensity float64 `json:"propensity,omitempty"`
	// Resets count how often the segment and the item had been reset.
	Resets [2]uint64 `json:"resets,omitzero"`

	// Told is the number of the last credit. Credits are the observations of the arm that follow
	// from the statements.
	Told    uint64      `json:"told,omitempty"`
	Credits []ArmCredit `json:"credits,omitempty"`

	// Of choices that package strategy keeps by itself.
	Epoch   uint64   `json:"epoch,omitempty"`   // how often the session had ended
	Number  uint64   `json:"number,omitempty"`  // of choices for the item before, in the session
	Own     bool     `json:"own,omitempty"`     // the record has the id of the choice
	Silent  bool     `json:"silent,omitempty"`  // silence was counted as evidence
	Expired bool     `json:"expired,omitempty"` // no outcome came in time
	Taken   []string `json:"taken,omitempty"`   // the ids of outcomes that were taken back
}

// A Setting is the value that was chosen for a parameter of an arm.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Linear is what the linear level of package strategy knew of a choice. It must not be changed.
type Linear struct {
	// Vector is the direction of the request's vector, in at most 32 numbers: four bytes each, the
	// lowest first.
	Vector []byte `json:"vector"`
	// Weight is the probability that the level chose, and not the tables.
	Weight float64 `json:"weight,omitempty"`
	// Tables and Level are the reward that either expected of the arm. Common is how much more the
	// tables would have expected if they knew what the vector shows of all arms alike, and Above is
	// how far the item lay above its segment for the tables.
	Tables float64 `json:"tables"`
	Common float64 `json:"common,omitempty"`
	Level  float64 `json:"level"`
	Above  float64 `json:"above,omitempty"`
}

// A Draw is what was drawn for one of the permitted arms. The arm with the greatest sample was
// chosen.
type Draw struct {
	Arm    ArmID           `json:"arm"`
	Sample float64         `json:"sample"`          // with the bonus
	Bonus  float64         `json:"bonus,omitempty"` // the part that was added for exploration
	Belief evidence.Belief `json:"belief"`
	// Mean and Deviation are what the linear level believed, if the choice has one: its sample is
	// normal.
	Mean      float64 `json:"mean,omitempty"`
	Deviation float64 `json:"deviation,omitempty"`
}

// An ArmCredit is a part of the answer's worth as the arm was credited with it. It must not be used
// concurrently.
type ArmCredit struct {
	Number uint64 // among the credits of the choice
	Of     string // the statement
	Value  float64
	Trust  float64
	Share  float64
	Cost   float64
	// Dropped reports that the outcome was too uncertain to count, so there is no credit to take
	// back.
	Dropped bool
}

// MarshalJSON encodes a credit as a list of its fields, because a record can have 100 of them.
func (c ArmCredit) MarshalJSON() ([]byte, error) {
	list := []any{c.Number, c.Of, c.Value, c.Trust, c.Share, c.Cost, c.Dropped}
	if !c.Dropped {
		if list = list[:6]; c.Cost == 0 {
			list = list[:5]
		}
	}
	return json.Marshal(list)
}

// UnmarshalJSON decodes what MarshalJSON encodes.
func (c *ArmCredit) UnmarshalJSON(text []byte) error {
	*c = ArmCredit{}
	return json.Unmarshal(text, &[...]any{
		&c.Number, &c.Of, &c.Value, &c.Trust, &c.Share, &c.Cost, &c.Dropped,
	})
}
