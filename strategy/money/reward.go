package money

import "github.com/heedhq/heed/strategy"

// A Reward states what a unit of cost and a second are worth, in units of value. Its Value goes
// into [strategy.Config].Reward. Values go from -1 to 1: if one more answer in a hundred that is
// good instead of bad may cost a cent, a cent is worth 0.02.
type Reward struct {
	// Cost is how much the value falls for each unit of cost. At least 0. 0: cost does not count.
	Cost float64
	// Second is how much the value falls for each second of latency. At least 0. 0: time does not
	// count.
	Second float64
}

// Value returns the value of an outcome less what it cost, in [-1, 1].
func (r Reward) Value(o strategy.Outcome) float64 {
	return min(max(o.Value-r.Cost*o.Cost-r.Second*o.Latency.Seconds(), -1), 1)
}
