package tenants

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestANewTenant has at most half of the regret where tenants are alike, and at most 5 % more where
// they are not. One tenant that lies leaves sharing better than none.
func TestANewTenant(t *testing.T) {
	for name, most := range map[string]float64{
		"alike": 0.5, "alike, 5 others": 0.5, "not alike": 1.05, "alike, 1 of 10 lies": 1,
	} {
		for _, w := range worlds {
			if w.name != name {
				continue
			}
			var sums [2]float64
			for seed := range uint64(25) {
				regrets := play(context.Background(), &w, seed)
				sums[0] += regrets[0]
				sums[1] += regrets[1]
			}
			assert.Less(t, sums[1], most*sums[0], name)
		}
	}
}
