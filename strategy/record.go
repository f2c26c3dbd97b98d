package strategy

import (
	"context"
	"slices"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/valid"
)

// An ownChoice is an arm that the host chose by itself.
type ownChoice struct {
	arm ArmID
	// propensity is the probability that the host stated, or 0 if it is unknown.
	propensity float64
	parameters []answer.Setting // in the order of the arm's
}

// is reports whether a choice is of the same arm with the same parameters. Without a choice of the
// host's own, any is.
func (o *ownChoice) is(c *answer.Choice) bool {
	if o == nil {
		return true
	}
	return c.Arm == o.arm && !c.Fallback && slices.Equal(c.Parameters, o.parameters)
}

func (o *ownChoice) into(c *answer.Choice) {
	c.Arm, c.Parameters, c.Propensity = o.arm, o.parameters, o.propensity
}

// Record makes a choice of an arm that the host chose by itself, so that its outcomes are learned
// from: to observe before heed chooses, or along with a rule of the host's. Such a choice counts as
// any other. Within a session, the same arm for the same item is the same choice, and another arm
// replaces it. The query's permitted arms are ignored.
//
// The propensity is the probability with which the host chose the arm, in (0, 1]; 0: unknown. It is
// what [Choice].Propensity returns, and NaN if it is unknown. Parameters that are not given are not
// learned from. If the store fails, Record returns the error and the choice, which is neither
// remembered nor recorded, but its outcome may be observed.
func (l *Learner) Record(
	ctx context.Context, q Query, arm ArmID, propensity float64, parameters ...answer.Setting,
) (c Choice, err error) {
	defer because(&err, "record")
	if err := ctx.Err(); err != nil {
		return Choice{}, err
	}
	q.Arms = nil
	if err := l.validateQuery(&q); err != nil {
		return Choice{}, err
	}
	own := &ownChoice{arm: arm, propensity: propensity}
	if own.parameters, err = l.ownParameters(own, parameters); err != nil {
		return Choice{}, err
	}
	now := l.cfg.Now()
	if !l.cfg.Disabled {
		c, err = l.remember(ctx, nil, &q, now, own)
		if err == nil || isInputError(err) {
			return c, err
		}
	}
	d := l.begin(&q, now, l.cfg.NewID())
	own.into(&d.made)
	return d.choice(), err
}

// ownParameters checks what the host chose, and returns the parameters in the order of the arm's.
func (l *Learner) ownParameters(own *ownChoice, parameters []answer.Setting) (
	ordered []answer.Setting, err error,
) {
	at, ok := l.index[own.arm]
	if !ok {
		return nil, valid.Input("Arm", "is %q, which is not one of the learner's arms", own.arm)
	}
	if !(own.propensity >= 0 && own.propensity <= 1) {
		return nil, valid.Input("Propensity",
			"is %v, must be in (0, 1], or 0 if it is unknown", own.propensity)
	}
	for _, p := range l.cfg.Arms[at].Parameters {
		i := slices.IndexFunc(parameters, func(s answer.Setting) bool { return s.Name == p.Name })
		if i >= 0 && slices.Contains(p.Values, parameters[i].Value) {
			ordered = append(ordered, parameters[i])
		}
	}
	if len(ordered) != len(parameters) {
		return nil, valid.Input("Parameters",
			"must be of the arm, each with one of its values, and once")
	}
	return ordered, nil
}
