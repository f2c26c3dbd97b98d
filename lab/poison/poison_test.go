package poison

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// runs is how often a test does each trial, and in its long form.
func runs(short, long int) int {
	if os.Getenv("HEED_LONG") != "" {
		return long
	}
	return short
}

// One person alone teaches as without limits, and so does an instrument.
func TestWhoeverIsAloneIsBelieved(t *testing.T) {
	for seed := range uint64(runs(20, 1000)) { //nolint:gosec // it is small
		for _, who := range []string{"ann", ci} {
			alone := trial{liar: &liars[0], items: 5, alone: who}
			limited := play(t.Context(), settings[0], alone, seed)
			require.Equal(t, play(t.Context(), settings[2], alone, seed), limited)
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
