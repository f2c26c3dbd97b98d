package patterns

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

func inputError(field, reason string) error { return &heed.InputError{Field: field, Reason: reason} }

// inside puts the place of an element before the field of its fault.
func inside(list string, i int, err error) error {
	if fault := (*heed.InputError)(nil); errors.As(err, &fault) {
		return inputError(fmt.Sprintf("%s[%d].%s", list, i, fault.Field), fault.Reason)
	}
	return err
}

type field struct{ name, value string }

// checkIDs reports the first of some names that is empty or that not every store can keep.
func checkIDs(fields ...field) error {
	for _, f := range fields {
		if f.value == "" {
			return inputError(f.name, "must not be empty")
		}
		if err := checkText(f.name, f.value, MaxID); err != nil {
			return err
		}
	}
	return nil
}

func checkText(name, value string, limit int) error {
	switch {
	case len(value) > limit:
		return inputError(name, fmt.Sprintf("is %d bytes long, may be %d", len(value), limit))
	case strings.IndexByte(value, 0) >= 0 || !utf8.ValidString(value):
		return inputError(name, "must be valid UTF-8 without NUL")
	}
	return nil
}

// checkTime refuses what lies before 1970, after 9999, or in the future.
func checkTime(name string, at, now time.Time) error {
	switch {
	case at.Unix() < 0 || at.Year() > 9999:
		return inputError(name, "must be in the years 1970 to 9999")
	case at.Sub(now) > evidence.MaxSkew:
		return inputError(name, fmt.Sprintf("is more than %v ahead of the clock", evidence.MaxSkew))
	}
	return nil
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// tame makes text fit to be kept: valid UTF-8 without NUL, of at most so many runes, the last of them "…" where some were
// cut off.
func tame(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	n := 0
	for i := range text {
		if n++; n > limit {
			return text[:lastRune(text[:i])] + "…"
		}
	}
	return text
}

// lastRune returns where the last rune of a text begins.
func lastRune(text string) int {
	_, size := utf8.DecodeLastRuneInString(text)
	return len(text) - size
}

// stored is a time as stores keep it.
func stored(t time.Time) time.Time { return evidence.InstantOf(t).Time() }
