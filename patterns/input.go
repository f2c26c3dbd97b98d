package patterns

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

func inputError(field, reason string) error { return &heed.InputError{Field: field, Reason: reason} }

type field struct{ name, value string }

// checkIDs reports the first of some names that is empty or that not every store can keep.
func checkIDs(fields ...field) error {
	for _, f := range fields {
		if f.value == "" {
			return inputError(f.name, "must not be empty")
		}
		if err := checkText(f.name, f.value, maxID); err != nil {
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

// checkTime refuses times before 1970, after 9999, and in the future.
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

// maxDetail is how many runes of a detail, of a description and of the texts of an error are kept.
const maxDetail = 2000

// tame makes text fit for every store: valid UTF-8 without NUL, of at most maxDetail runes. The last rune of a text that was
// cut is "…".
func tame(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if utf8.RuneCountInString(text) > maxDetail {
		return string([]rune(text)[:maxDetail-1]) + "…"
	}
	return text
}

// stored is a time as stores keep it.
func stored(t time.Time) time.Time { return evidence.InstantOf(t).Time() }
