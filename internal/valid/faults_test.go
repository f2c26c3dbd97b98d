package valid_test

import (
	"testing"
	"time"

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

func TestInputs(t *testing.T) {
	now := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, good := range []time.Time{now, time.Unix(0, 0), now.Add(-time.Hour)} {
		assert.NoError(t, valid.Time("At", good, now), good)
	}
	early := time.Unix(1e9, 0)
	assert.NoError(t, valid.Time("At", early.Add(valid.MaxSkew), early))
	for _, bad := range []error{
		valid.Time("At", time.Time{}, now), valid.Time("At", time.Unix(-1, 0), now),
		valid.Time("At", now.Add(time.Minute), now),
		valid.Time("At", early.Add(valid.MaxSkew+1), early),
		valid.List("At", []string{"a", "b", "c"}, 2, 5),
	} {
		var fault *heed.InputError
		if assert.ErrorAs(t, bad, &fault) {
			assert.Equal(t, "At", fault.Field)
		}
	}
	assert.NoError(t, valid.List("Names", []string{"a", "b"}, 2, 5))
	assert.ErrorContains(t, valid.List("Names", []string{"a", "long name"}, 2, 5), "Names[1]")
}

// A sweep decides by the earlier of two clocks.
func TestDue(t *testing.T) {
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	for given, want := range map[time.Time]time.Time{
		{}: now, now: now, now.Add(1): now, now.Add(-time.Hour): now.Add(-time.Hour),
		// Its microseconds since 1970 are more than an int64 has.
		time.Date(-292500, 1, 1, 0, 0, 0, 0, time.UTC): time.Unix(0, 0),
	} {
		assert.Equal(t, want, valid.Due(given, now), given)
	}
}

func TestHalfLife(t *testing.T) {
	assert.Equal(t, "none", valid.HalfLife(0))
	assert.Equal(t, "1h30m0s", valid.HalfLife(90*time.Minute))
}

// A text is refused that is too long, or that some store could not keep. A name is not empty.
func TestTexts(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "12345": true, "123456": false, "\x00": false, "a\x00": false, "\xff": false,
		"ß": true,
	} {
		assert.Equal(t, ok, valid.Texts(5, "A", "", "B", text) == nil, "%q", text)
		assert.Equal(t, ok && text != "", valid.Names(5, "A", "a", "B", text) == nil, "%q", text)
		if !ok {
			assert.ErrorContains(t, valid.Texts(5, "A", text, "B", text), "A")
			assert.ErrorContains(t, valid.Names(5, "A", "a", "B", text), "B")
		}
	}
}
