package poison

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/lab/internal/raced"
)

// runs is how often a test does each trial, and in its long form.
func runs(short, long int) int {
	if os.Getenv("HEED_LONG") != "" {
		return long
	}
	return short
}

// points returns how many points more of the choices the worst arm gets, and how many fewer the
// best, with false accounts than without.
func points(t *testing.T, s setting, lies trial, runs int) (worst, best float64) {
	honest := lies
	honest.accounts = 0
	for seed := range uint64(runs) { //nolint:gosec // it is small
		with, err := play(t.Context(), s, lies, seed)
		require.NoError(t, err)
		without, err := play(t.Context(), s, honest, seed)
		require.NoError(t, err)
		worst += 100 * (with.worst - without.worst) / float64(runs)
		best += 100 * (without.best - with.best) / float64(runs)
	}
	return worst, best
}

// Three accounts with 100 outcomes each, beside forty people with 5 each, get the worst arm at most
// five points more choices.
func TestThreeAccountsDecideLittle(t *testing.T) {
	raced.Skip(t)
	for _, items := range []int{1, 5, 20, 100} {
		worst, _ := points(t, settings[0], trial{liar: &liars[0], accounts: 3, items: items},
			runs(10, 100))
		assert.LessOrEqual(t, worst, 5., "%d items", items)
	}
	worst, _ := points(t, settings[2], trial{liar: &liars[0], accounts: 3, items: 5}, 5)
	assert.Greater(t, worst, 50., "where people have no names")
}

// One account beside forty people, which reacts to everything with lies, takes at most five points
// of the best arm's choices after 500 of the people's.
func TestOneLoudAccountDecidesLittle(t *testing.T) {
	raced.Skip(t)
	loud := &liars[len(liars)-1]
	for _, items := range []int{1, 20} {
		_, best := points(t, settings[0], trial{liar: loud, accounts: 1, items: items}, runs(20, 200))
		assert.LessOrEqual(t, best, 5., "%d items", items)
	}
	_, best := points(t, settings[2], trial{liar: loud, accounts: 1, items: 1}, 5)
	assert.Greater(t, best, 50., "where people have no names")
}

// One person alone teaches as without limits, and so does an instrument.
func TestWhoeverIsAloneIsBelieved(t *testing.T) {
	for seed := range uint64(runs(50, 1000)) { //nolint:gosec // it is small
		for _, who := range []string{"ann", ci} {
			alone := trial{liar: &liars[0], items: 5, alone: who}
			limited, err := play(t.Context(), settings[0], alone, seed)
			require.NoError(t, err)
			free, err := play(t.Context(), settings[2], alone, seed)
			require.NoError(t, err)
			require.Equal(t, free, limited)
		}
	}
}

func TestReport(t *testing.T) {
	was, few := settings, liars
	defer func() { settings, liars = was, few }()
	brief := liar{"brief", "each is brief", 5, func(int) int { return 1 }, (*world).praise}
	settings, liars = settings[:1], []liar{brief}
	var out bytes.Buffer
	require.NoError(t, Run(context.Background(), kit.NewCall("poison", &out, "-runs", "1")))
	assert.Contains(t, out.String(), "brief: each is brief")
	assert.Contains(t, out.String(), "| 20, and CI")
	for _, args := range [][]string{{"more"}, {"-runs", "0"}} {
		require.ErrorIs(t, Run(context.Background(), kit.NewCall("poison", &out, args...)),
			kit.ErrUsage)
	}
}
