package valid

import (
	"fmt"
	"time"

	"github.com/heedhq/heed"
)

// The limits of evidence that stores and the formats of dumps must agree on.
const (
	// LandmarkStep is how many half-lives the landmarks of tallies are apart, counted from 1970. Sums
	// then stay within 2^256 times what was added.
	LandmarkStep = 256
	// MaxSkew is how far ahead of the store's clock an observation may be.
	MaxSkew = 5 * time.Minute
	// MinHalfLife and MaxHalfLife are the bounds of a half-life other than 0.
	MinHalfLife = time.Minute
	MaxHalfLife = 100 * 365 * 24 * time.Hour
)

// Time returns a [*heed.InputError] of this field for the zero time, a year outside of 1970 to
// 9999, and a time more than [MaxSkew] ahead of the clock.
func Time(field string, t, now time.Time) error {
	switch {
	case t.IsZero():
		return &heed.InputError{Field: field, Reason: "must be set"}
	case t.Unix() < 0 || t.Year() > 9999:
		return &heed.InputError{Field: field, Reason: "must be in the years 1970 to 9999"}
	case t.Sub(now) > MaxSkew:
		return &heed.InputError{Field: field, Reason: fmt.Sprintf("is more than %v ahead of the clock",
			MaxSkew)}
	}
	return nil
}

// HalfLife returns a half-life for people to read: "none" without fading.
func HalfLife(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

// Due returns the moment by which a sweep decides what is due: the one that its caller gave or, if
// that is zero or later, the clock's. Before 1970, nothing is due.
func Due(given, clock time.Time) time.Time {
	switch {
	case given.IsZero() || given.After(clock):
		return clock
	case given.Unix() < 0:
		return time.Unix(0, 0)
	}
	return given
}
