package evidence

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
)

// A Policy sets how the evidence of a cell is kept. It is stored with the cell's first observation.
// Later batches with another policy are refused until the cell is reset or rebuilt, or all of its
// evidence was taken back.
type Policy struct {
	// HalfLife is the time after which evidence counts half: whole microseconds, from a minute to a
	// hundred years. With 0, evidence never fades.
	HalfLife time.Duration
	// ByOrigin keeps a tally for each channel and source. [Trust] needs it, and with it a source can
	// be expunged at any time.
	ByOrigin bool
}

// Validate returns a [*heed.ConfigError] if the policy is invalid.
func (p Policy) Validate() error {
	if h := p.HalfLife; h != 0 && (h < valid.MinHalfLife || h > valid.MaxHalfLife ||
		h%time.Microsecond != 0) {
		return &heed.ConfigError{Field: "HalfLife", Value: h,
			Reason: "must be 0 or whole microseconds between a minute and a hundred years"}
	}
	return nil
}

// ErrForgotten reports that the evidence to be taken back or counted again is no longer kept.
var ErrForgotten = errors.New("no longer kept")

// ErrFull reports that a bounded store is full.
var ErrFull = errors.New("full")

// Conflict returns the error of a store that keeps cells of a kind under policy p and is given
// another one: a [*heed.SettingsError], which is a [heed.ErrConflict].
func (p Policy) Conflict(kind string, wanted Policy) error {
	kind, _, _ = strings.Cut(kind, "@") // without the name of a tenant: see store.KindOf
	e := &heed.SettingsError{
		Component: "cells of kind " + kind, Field: "HalfLife", Stored: valid.HalfLife(p.HalfLife),
		Wanted: valid.HalfLife(wanted.HalfLife),
	}
	if p.HalfLife == wanted.HalfLife {
		e.Field, e.Stored, e.Wanted = "ByOrigin", strconv.FormatBool(p.ByOrigin),
			strconv.FormatBool(wanted.ByOrigin)
	}
	return e
}
