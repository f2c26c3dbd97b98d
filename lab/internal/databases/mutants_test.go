//go:build mutants

package databases

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/card"
)

// These tests are lines of the scorecard without their controls, for .ci/mutants.

func TestMain(m *testing.M) {
	code := m.Run()
	if err := Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// faults has each operation on the disk fail once in the episodes from one to another.
func faults(t *testing.T, from, to string, stride int) {
	f := sweep{stride: stride, harms: []harm{once}, rng: rand.New(rand.NewPCG(1, 2))}
	within, done := false, false
	for _, e := range storeEpisodes() {
		if within = within || e.name == from; !within || done {
			continue
		}
		require.NoError(t, f.episode(t.Context(), e), e.name)
		done = e.name == to
	}
	require.True(t, done, "there is no such episode")
	assert.Equal(t, [3]int{}, [3]int{f.half, f.silent, f.stuck}, f.result.Notes)
}

func TestFaultsInCommits(t *testing.T) {
	faults(t, "Store.Commit", "Store.Commit of a batch that is known in part", 1)
}

func TestFaultsInTaking(t *testing.T) {
	faults(t, "Store.Commit, retract", "Store.Commit, expunge", 1)
}

func TestFaultsInForgetting(t *testing.T) {
	faults(t, "Store.Commit, forget", "Store.Commit, forget", 10)
}

func TestFaultsInSweepAndLoad(t *testing.T) { faults(t, "Store.Sweep", "Store.Load", 1) }

func TestFaultsInReads(t *testing.T) {
	r, err := readFaults(t.Context(), false)
	require.NoError(t, err)
	assert.Zero(t, r.Values[silentBar], r.Notes)
}

func TestLivesAgree(t *testing.T) {
	r, err := livesAgree(t.Context(), card.Settings{Seed: 1}, false, 1)
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{answersBar: 0, statesBar: 0}, r.Values, r.Notes)
}

func TestAnyOrder(t *testing.T) {
	r, err := orders(t.Context(), card.Settings{Seed: 1}, false, 1)
	require.NoError(t, err)
	assert.Zero(t, r.Values[orderBar], r.Notes)
}
