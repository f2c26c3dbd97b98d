package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/examples/internal/raced"
	"github.com/heedhq/heed/examples/internal/show"
)

func Example() {
	if err := command(context.Background(), nil, os.Stdout, nil); err != nil {
		panic(err)
	}
	// Output:
	// as it is  245 outcomes  success 0.69  calls of the model 1 a decision
	// bolder    255 outcomes  success 0.88  calls of the model 0 a decision
	// better with probability 1.000, by 0.11 to 0.25; keep "bolder" (by probability)
}

func TestTheNextRunGoesOn(t *testing.T) {
	raced.Skip(t)
	t.Parallel()
	db := filepath.Join(t.TempDir(), "experiment.db")
	run := func() string {
		var out bytes.Buffer
		require.NoError(t, command(context.Background(), []string{"-db", db, "-events", "150"}, &out, nil))
		return out.String()
	}
	for i, want := range []string{"bolder     76 outcomes", "bolder    152 outcomes", "bolder    228 outcomes", "bolder    228 outcomes"} {
		got := run()
		assert.Contains(t, got, want)
		if i < 2 {
			assert.Contains(t, got, "too early to tell")
		} else {
			assert.Contains(t, got, `keep "bolder"`, "and nobody is asked any more")
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	err := command(context.Background(), []string{"-db", ":memory:"}, nil, nil)
	assert.ErrorIs(t, err, show.ErrUsage)
}
