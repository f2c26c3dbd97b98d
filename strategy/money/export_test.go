package money

import (
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

// Charge is a choice with its outcome.
type Charge = charge

// Compare compares choices with what each arm alone would have done.
var Compare = compare

// Refresh reads costs from the newest records, or from records before a time.
var Refresh = (*Frugal).refresh

// CostsOf returns what each arm is taken to cost in the place of a query.
func (f *Frugal) CostsOf(q strategy.Query) (costs []float64) {
	for _, e := range f.expenses(&q) {
		costs = append(costs, e.cost)
	}
	return costs
}

// SharesOf returns the shares of all arms for these beliefs.
func (f *Frugal) SharesOf(beliefs []evidence.Belief) []float64 {
	return f.shares(nil, beliefs, make([]expense, len(beliefs)))
}
