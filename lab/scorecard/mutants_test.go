//go:build mutants

package scorecard

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests are lines of the scorecard without their controls, for the mutants.

func TestMain(m *testing.M) {
	code := m.Run()
	if err := closeCluster(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// faults has each operation on the disk fail once in the episodes from one to another.
func faults(t *testing.T, from, to string) {
	f := sweep{harms: []harm{once}, rng: rand.New(rand.NewPCG(1, 2))}
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
	faults(t, "Store.Commit", "Store.Commit of a batch that is known in part")
}

func TestFaultsInTaking(t *testing.T) {
	faults(t, "Store.Commit, retract", "Store.Commit, expunge")
}

func TestFaultsInForgetting(t *testing.T) {
	faults(t, "Store.Commit, forget", "Store.Commit, forget")
}

func TestFaultsInSweepAndLoad(t *testing.T) { faults(t, "Store.Sweep", "Store.Load") }

func TestFaultsInReads(t *testing.T) {
	r, err := readFaults(t.Context(), false)
	require.NoError(t, err)
	assert.Zero(t, r.Values[silentBar], r.Notes)
}
