package answer

import (
	"encoding/json"
	"time"
)

type (
	plainStatement Statement
	plainCredit    Credit

	// statementJSON is a statement as it is stored. If 100 people judge an answer, its record has
	// 100 credits, so a credit leaves out the moment and channel that it shares with its statement.
	statementJSON struct {
		plainStatement
		Credit *creditJSON `json:"credit,omitempty"`
	}
	creditJSON struct {
		plainCredit
		Channel *string    `json:"channel,omitempty"` // nil: the statement's
		At      *time.Time `json:"at,omitempty"`      // nil: the statement's
	}
)

// MarshalJSON encodes a statement. The credit's channel and moment are left out if they equal the
// statement's.
func (s Statement) MarshalJSON() ([]byte, error) {
	stored := statementJSON{plainStatement: plainStatement(s)}
	if c := s.Credit; c != nil {
		stored.Credit = &creditJSON{plainCredit: plainCredit(*c)}
		if c.Channel != s.Channel {
			stored.Credit.Channel = &c.Channel
		}
		if !c.At.Equal(s.At) {
			stored.Credit.At = &c.At
		}
	}
	return json.Marshal(stored)
}

// UnmarshalJSON decodes what MarshalJSON encodes.
func (s *Statement) UnmarshalJSON(text []byte) error {
	var stored statementJSON
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	*s = Statement(stored.plainStatement)
	if from := stored.Credit; from != nil {
		c := Credit(from.plainCredit)
		c.Channel, c.At = s.Channel, s.At
		if from.Channel != nil {
			c.Channel = *from.Channel
		}
		if from.At != nil {
			c.At = *from.At
		}
		s.Credit = &c
	}
	return nil
}
