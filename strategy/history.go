package strategy

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A Credit is one outcome that was counted.
type Credit struct {
	Arm        ArmID
	Session    string
	Value      float64
	Confidence float64
	Channel    string
	Source     string
	At         time.Time
}

// History returns the outcomes of an item that the store still keeps, the last first: at most limit of them, or all where
// limit is 0. The query's session and permitted arms are of no account.
func (l *Learner) History(ctx context.Context, q Query, limit int) ([]Credit, error) {
	if err := q.validate(); err != nil {
		return nil, fmt.Errorf("strategy: history: %w", err)
	}
	space := space{l.kinds, segmentScope(q.Category, q.Context)}
	var credits []Credit
	for _, arm := range l.cfg.Arms {
		n := 0
		for o, err := range l.cfg.Store.History(ctx, space.arm(q.Item, arm.ID)) {
			if err != nil {
				return nil, fmt.Errorf("strategy: history: %w", err)
			}
			credits = append(credits, Credit{
				Arm: arm.ID, Session: o.Session, Value: 2*o.Reward - 1, Confidence: o.Weight,
				Channel: o.Channel, Source: o.Source, At: o.At,
			})
			if n++; n == limit {
				break
			}
		}
	}
	slices.SortStableFunc(credits, func(a, b Credit) int { return b.At.Compare(a.At) })
	if limit > 0 && len(credits) > limit {
		credits = credits[:limit]
	}
	return credits, nil
}
