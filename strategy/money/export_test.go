package money

import "github.com/heedhq/heed/strategy"

// Propensity is the propensity that Saved counts with.
func Propensity(c strategy.Choice) float64 { return propensity(c) }
