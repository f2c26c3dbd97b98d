package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

func TestList(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), []string{"list"}, &out, io.Discard))
	assert.Equal(t, len(programs), strings.Count(out.String(), "\n"))
	for _, p := range programs {
		assert.Contains(t, out.String(), p.name)
	}
}

// Without a name it is the scorecard.
func TestTheScorecardIsTheDefault(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), []string{"-list"}, &out, io.Discard))
	for _, line := range []string{"S1 ", "limits", "incidents", "gain", "choosing", "forgetting"} {
		assert.Contains(t, out.String(), line)
	}
}

// Each program has help, and refuses flags that it does not have.
func TestEachProgramReadsItsFlags(t *testing.T) {
	for _, p := range programs {
		var help bytes.Buffer
		err := run(context.Background(), []string{p.name, "-help"}, io.Discard, &help)
		require.ErrorIs(t, err, flag.ErrHelp, p.name)
		assert.Equal(t, 0, kit.ExitCode(err), p.name)
		assert.Contains(t, help.String(), "-long", p.name)
		err = run(context.Background(), []string{p.name, "-nonsense"}, io.Discard, io.Discard)
		require.ErrorContains(t, err, "flag provided but not defined", p.name)
		assert.Equal(t, 2, kit.ExitCode(err), p.name)
	}
	err := run(context.Background(), []string{"nonsense"}, io.Discard, io.Discard)
	assert.Equal(t, 2, kit.ExitCode(err))
}
