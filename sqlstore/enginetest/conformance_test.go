package enginetest_test

import (
	"testing"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/evidence/evidencetest"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/learning/learningtest"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/patterns/patternstest"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/consumertest"
	"github.com/heedhq/heed/strategy/strategytest"
)

func TestEvidenceKeepsTheContract(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			evidencetest.Run(t, func(now func() time.Time) (evidence.Store, error) {
				return sqlstore.NewEvidence(b.empty(t), sqlstore.EvidenceConfig{Now: now})
			})
		})
	}
}

func TestChoicesKeepTheContract(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			strategytest.RunChoices(t, func(now func() time.Time) (strategy.Choices, error) {
				return sqlstore.NewChoices(b.empty(t), sqlstore.ChoicesConfig{Now: now})
			})
		})
	}
}

func TestStreamKeepsTheContract(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			consumertest.Run(t, func() (consumertest.Harness, error) {
				at := b.place(t)
				open := func() (*sqlstore.Stream, error) {
					return sqlstore.NewStream(ctx, at.db(t), sqlstore.StreamConfig{Name: "inbox", Holder: "test"})
				}
				stream, err := open()
				if err != nil {
					return consumertest.Harness{}, err
				}
				reopen := func() (strategy.Source, error) { return open() }
				return consumertest.Harness{Source: stream, Sink: stream, Close: stream.Close, Reopen: reopen}, nil
			})
		})
	}
}

func TestHeuristicsKeepTheContract(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			learningtest.RunStore(t, func() (learning.Store, error) { return sqlstore.NewHeuristics(b.empty(t)), nil })
		})
	}
}

func TestPatternsKeepTheContract(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			patternstest.RunStore(t, func() (patterns.Store, error) {
				return sqlstore.NewPatterns(b.empty(t), sqlstore.PatternsConfig{})
			})
			patternstest.RunErrorStore(t, func() (patterns.ErrorStore, error) {
				return sqlstore.NewErrors(b.empty(t), sqlstore.ErrorsConfig{})
			})
		})
	}
}
