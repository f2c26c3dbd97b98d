package enginetest_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// patientModule opens the module that tests share with other processes. Its answers can be taken
// back as long as a test runs, all at once.
func patientModule(st *sqlstore.Store) (*learning.Module, error) {
	b, err := learning.NewBayesian(learning.BayesianConfig{UndoWindow: time.Hour,
		SilenceWindow: time.Microsecond})
	if err != nil {
		return nil, err
	}
	return learning.New(ctx, learning.Config{Store: st, Strategy: undoesAll{b}})
}

// undoesAll takes back all open answers, and not only those to the newest event.
type undoesAll struct{ learning.Strategy }

func (u undoesAll) InterpretUndo(text string, answers []learning.Answer) (
	all []learning.Signal, err error,
) {
	for i := range answers {
		signals, err := u.Strategy.InterpretUndo(text, answers[i:i+1])
		if err != nil {
			return nil, err
		}
		all = append(all, signals...)
	}
	return all, nil
}

const shownAtOnce = 20

func init() {
	act := func(do func(m *learning.Module, name string) error) func() int {
		return func() int {
			return inStoreProcess(func(st *sqlstore.Store) error {
				m, err := patientModule(st)
				if err != nil {
					return err
				}
				return do(m, os.Getenv("HEED_TEST_NAME"))
			})
		}
	}
	processes["show"] = act(func(m *learning.Module, name string) error {
		for i := range shownAtOnce {
			f := learning.Fire{HeuristicID: "h", EventID: fmt.Sprint(name, " ", i), Session: name,
				At: time.Now().Add(-time.Second)}
			if err := m.Fire(ctx, f); err != nil {
				return err
			}
		}
		os.Exit(0) // closes nothing
		return nil
	})
	processes["undo"] = act(func(m *learning.Module, name string) error {
		_, err := m.Hear(ctx, learning.Message{Session: name, Text: "undo"})
		return err
	})
	processes["hear silence"] = act(func(m *learning.Module,
		_ string) error {
		return m.Sweep(ctx, time.Time{})
	})
}

// One process shows answers and is gone; others take them back and hear their silence at the
// same moment. Each answer has one end, and an undo is never lost.
func TestLearningOfSeveralProcesses(t *testing.T) {
	skipRaced(t)
	onEach(t, func(t *testing.T, at place) {
		m, err := patientModule(at.store(t,
			sqlstore.Config{NoCache: true, Retention: store.Retention{HistoryPerCell: 1000}}))
		require.NoError(t, err)
		_, err = m.Put(ctx, learning.Heuristic{ID: "h", Initial: 0.5})
		require.NoError(t, err)
		for round := range 3 {
			name := fmt.Sprint("round ", round)
			env := append(at.env(), "HEED_TEST_NAME="+name)
			require.NoError(t, child(t, "show", env...).Run())
			at := []string{"undo", "hear silence", "hear silence"}
			done := make(chan error, len(at))
			for _, what := range at {
				cmd := child(t, what, env...)
				require.NoError(t, cmd.Start())
				go func() { done <- cmd.Wait() }()
			}
			for range at {
				require.NoError(t, <-done)
			}
		}
		e, err := m.Explain(ctx, "h")
		require.NoError(t, err)
		assert.EqualValues(t, 3*shownAtOnce, e.Standing.Fires)
		assert.EqualValues(t, 3*shownAtOnce, e.Standing.Failures)
		assert.Zero(t, e.Standing.Successes)
		for _, o := range e.History {
			assert.Equal(t, learning.ChannelUndo, o.Channel, o.ID)
		}
		assert.Len(t, e.History, 3*shownAtOnce)
	})
}
