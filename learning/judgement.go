package learning

import (
	"cmp"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
)

// The scales of scores.
const (
	// UserScale has three scores: 1 is bad, 2 neither, 3 good.
	UserScale = "user"
	// DevScale has five scores, 1 is the worst. It is for the developers of an application.
	DevScale = "dev"
)

// A Judgement is what a person states about an answer, or an outcome that a source reports. It can
// come at any time. It is immutable.
type Judgement struct {
	// HeuristicID is the heuristic that answered. If it is empty, the model answered, and the
	// judgement counts for what agreed with that: see [Fire].Compared.
	HeuristicID string
	// EventID is the event that was answered. It must not be empty.
	EventID string
	// Person is an opaque name. All without a name are one person.
	Person string
	// Session is where the person judged, if it is not the answer's session.
	Session string
	// Channel is how the judgement is known. [ChannelDev] marks a developer's judgement. A person's
	// last judgement holds by channel.
	Channel string
	// Target is the part of the answer that is meant, for example its rule. "" means all of it.
	Target answer.Target
	// Value is how good the answer was, in [-1, 1]. 0 withdraws what the person stated before.
	// Weight multiplies what the strategy makes of it, in [0, 10]; 0 means 1.
	Value, Weight float64
	// At is when the person judged. The zero time means now. The later of two judgements holds.
	At time.Time
	// Scale and Score replace the value: a score is from 1 to 3 of [UserScale], or from 1 to 5 of
	// [DevScale]. The strategy decides how much evidence a score is: see [BayesianConfig].
	Scale string
	Score int
	// Domain is the heuristic's. The module sets it for the strategy, and ignores the caller's.
	Domain string
}

// statement returns the judgement as a record of the answer keeps it.
func (j *Judgement) statement() answer.Statement {
	return answer.Statement{
		By: j.Person, Session: j.Session, Channel: j.Channel, Target: j.Target,
		Of: j.HeuristicID, Value: j.Value, Weight: j.Weight, Scale: j.Scale, Score: j.Score,
		At: j.At,
	}
}

// judgementOf returns what the strategy is asked about a statement.
func judgementOf(a *answer.Answer, s *answer.Statement) Judgement {
	j := Judgement{
		HeuristicID: s.Of, EventID: a.ID, Person: s.By, Session: s.Session, Channel: s.Channel,
		Target: s.Target, Value: s.Value, Weight: s.Weight, At: s.At,
		Scale: s.Scale, Score: s.Score,
	}
	if s.Withdrawn {
		j.Value, j.Scale, j.Score = 0, "", 0
	}
	return j
}

// Validate reports the first fault of the judgement as a [*heed.InputError].
func (j Judgement) Validate() error {
	s := j.statement()
	return cmp.Or(valid.Names(evidence.MaxText, "EventID", j.EventID), answers.Validate(&s),
		evidence.CheckText("Domain", j.Domain))
}
