package valid_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
)

// TestErr is one line, so that a prefix holds for all faults, and finds each of them.
func TestErr(t *testing.T) {
	var none, part, all valid.Faults
	assert.NoError(t, none.Err())
	part.Check(false, "Alpha", -1, "must be positive")
	all.Check(true, "Name", "n", "must be short")
	all.Check(false, "Store", nil, "must be set")
	all.Add("Prior", part.Err())
	all.Join(nil)
	all.Join(part.Err())
	err := all.Err()
	assert.EqualError(t, err,
		"config: Store is <nil>: must be set; config: Prior.Alpha is -1: must be positive; config: "+
			"Alpha is -1: must be positive")
	var fault *heed.ConfigError
	assert.ErrorAs(t, err, &fault)
	n := 0
	for range heed.ConfigErrors(err) {
		n++
	}
	assert.Equal(t, 3, n)
}
