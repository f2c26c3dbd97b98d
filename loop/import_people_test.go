//go:build !race

// The race detector makes these tests ten times slower, and they do one thing at a time.

package loop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// The people of an arm are kept apart up to a limit, whether one process knows them from the
// commits before or reads them for each.
func TestAPastOfManyPeople(t *testing.T) {
	rows := past(14_000, func(i int) string { return fmt.Sprint("p", i/2%6000) })
	once, often := importer(t), importer(t)
	done, err := once.Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	assert.Equal(t, 14_000, done.Reactions)
	for some := range slices.Chunk(rows, 2000) {
		_, err := agentOf(t, often.Store()).Import(ctx, each(some), "", "")
		require.NoError(t, err)
	}
	people := func(a *loop.Agent) map[string]uint64 {
		found := make(map[string]uint64)
		arms := store.CellQuery{Kind: "strategy.arm", Scope: answers.Scope("d", "")}
		for p, err := range a.Store().List(ctx, arms) {
			require.NoError(t, err)
			if p.Cell.Name == "a" {
				found[p.Source] += p.Tally.N()
			}
		}
		return found
	}
	found := people(once)
	assert.Equal(t, people(often), found)
	assert.Greater(t, len(found), fair.MostParts)
	assert.LessOrEqual(t, len(found), fair.MostParts+2000+1024, "a commit's people, and places")
	n := uint64(0)
	for _, of := range found {
		n += of
	}
	assert.EqualValues(t, 7000, n)
}

// armsOfD lists the arms of the domain that past answers are of.
var armsOfD = store.CellQuery{Kind: "strategy.arm", Scope: answers.Scope("d", "")}

// namedSources counts the sources that an arm keeps apart by their names.
func namedSources(t *testing.T, a *loop.Agent) (named int) {
	found := map[string]bool{}
	for p, err := range a.Store().List(ctx, armsOfD) {
		require.NoError(t, err)
		if p.Cell.Name == "a" && p.Tally.N() > 0 {
			found[p.Source] = true
		}
	}
	for s := range found {
		if !strings.HasPrefix(s, "heed:others/") {
			named++
		}
	}
	return named
}

// peopleFrom returns an answer each of so many people, with a thumb.
func peopleFrom(from, n int) []loop.Past {
	rows := past(2*n, func(i int) string { return fmt.Sprint("p", from+i/2) })
	rows = slices.DeleteFunc(rows, func(p loop.Past) bool { return p.Arm == "b" })
	for i := range rows {
		rows[i].Event.ID = fmt.Sprint("x", from+i)
	}
	return rows
}

// After an import and a reset the cell is empty, so the next people keep their names.
func TestAResetAfterAnImport(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		a := importer(t)
		_, err := a.Import(ctx, each(peopleFrom(0, 5000)), "", "")
		require.NoError(t, err)
		reset := strategy.Reset{Category: "d", Actor: "kim", Reason: "another prompt"}
		require.NoError(t, a.Strategy().Reset(ctx, reset))
		if fresh {
			a = agentOf(t, a.Store())
		}
		_, err = a.Import(ctx, each(peopleFrom(10_000, 60)), "", "")
		require.NoError(t, err)
		named := namedSources(t, a)
		assert.Equal(t, 60, named)
		require.NoError(t, store.Run(ctx, a.Store(), store.Job{Forget: []string{"p10001"}}))
		n := uint64(0)
		for p, err := range a.Store().List(ctx, armsOfD) {
			require.NoError(t, err)
			n += p.Tally.N()
		}
		assert.EqualValues(t, 59, n, "the forgotten person's outcome is gone")
	}
}

// After an import, whether its step is one in bulk or not, further people in small commits are kept
// apart up to the limit. Another process has brought the cell near to that.
func TestPeopleAfterAnImport(t *testing.T) {
	for _, bulk := range []int{100, 200} {
		a := importer(t)
		_, err := a.Import(ctx, each(peopleFrom(0, fair.MostParts-400)), "", "")
		require.NoError(t, err)
		a = agentOf(t, a.Store())
		_, err = a.Import(ctx, each(peopleFrom(10_000, bulk)), "", "")
		require.NoError(t, err)
		for i := range 8 {
			_, err := a.Import(ctx, each(peopleFrom(11_000+100*i, 100)), "", "")
			require.NoError(t, err)
			if i%4 == 3 {
				require.NoError(t, a.Strategy().Refresh(ctx))
			}
		}
		named := namedSources(t, a)
		assert.LessOrEqual(t, named, fair.MostParts+200)
	}
}
