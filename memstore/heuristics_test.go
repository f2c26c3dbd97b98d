package memstore_test

import (
	"testing"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/learning/learningtest"
	"github.com/heedhq/heed/memstore"
)

func TestHeuristicsKeepTheContract(t *testing.T) {
	learningtest.RunStore(t, func() (learning.Store, error) { return &memstore.Heuristics{}, nil })
}
