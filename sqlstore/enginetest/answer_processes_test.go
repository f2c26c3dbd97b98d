package enginetest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

const (
	answerProcesses  = 8 // processes
	answersOfEach    = 5 // goroutines of each
	crowdOfOneAnswer = 100
)

// openArms opens the agent of two arms that tests share with other processes.
func openArms(st store.Store) (*loop.Agent, error) {
	says := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "Look at the logs."}, nil
	}
	return loop.New(ctx, loop.Config{
		Store: st, Model: decision.LLMFunc(says), Arms: []loop.Arm{{ID: "a"}, {ID: "b"}},
	})
}

// ratingOf returns what a person of the crowd makes of the answer. The mean is 0.5.
func ratingOf(person int) float64 {
	if person%4 == 0 {
		return -1
	}
	return 1
}

func init() {
	armed := func(do func(a *loop.Agent, number int) error) func() int {
		return func() int {
			return inStoreProcess(func(st *sqlstore.Store) error {
				number, err := strconv.Atoi(os.Getenv("HEED_TEST_NAME"))
				if err != nil {
					return err
				}
				a, err := openArms(st)
				if err != nil {
					return err
				}
				fmt.Println("ready")
				_, _ = io.ReadAll(os.Stdin) // until all are there
				return do(a, number)
			})
		}
	}
	processes["answer in one session"] = armed(func(a *loop.Agent, number int) error {
		return together(answersOfEach, func(i int) error {
			given, err := a.Answer(ctx, loop.Event{
				ID: fmt.Sprint(number, "-", i), Text: "Why?", Session: "s", Item: "i", Domain: "d",
			})
			if err == nil {
				fmt.Println(given.Plan.Choice.ID, given.Plan.Choice.Arm)
			}
			return err
		})
	})
	processes["react to one answer"] = armed(func(a *loop.Agent, number int) error {
		began := time.Now()
		err := together((crowdOfOneAnswer-number+answerProcesses-1)/answerProcesses, func(i int) error {
			person := number + i*answerProcesses
			return a.React(ctx, "e", loop.Reaction{
				Person: fmt.Sprint("person ", person), Value: ratingOf(person),
			})
		})
		fmt.Println("took", time.Since(began).Round(time.Millisecond))
		return err
	})
}

// together calls do n times at once.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { errs[i] = do(i) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// A crew is processes that have begun the same, and wait for each other.
type crew struct {
	t        *testing.T
	commands []*exec.Cmd
	begin    []io.Closer
	lines    []*bufio.Scanner
}

// newCrew starts processes, and returns when all are ready.
func newCrew(t *testing.T, at place, what string) *crew {
	c := &crew{t: t}
	for i := range answerProcesses {
		cmd := child(t, what, append(at.env(), fmt.Sprint("HEED_TEST_NAME=", i))...)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		c.commands, c.begin = append(c.commands, cmd), append(c.begin, in)
		c.lines = append(c.lines, bufio.NewScanner(out))
	}
	for _, lines := range c.lines {
		require.True(t, lines.Scan())
		require.Equal(t, "ready", lines.Text())
	}
	return c
}

// run has all processes begin, and returns what they print, and how long they took.
func (c *crew) run() (printed []string, took time.Duration) {
	began := time.Now()
	for _, in := range c.begin {
		require.NoError(c.t, in.Close())
	}
	for i, lines := range c.lines {
		for lines.Scan() {
			printed = append(printed, lines.Text())
		}
		assert.NoError(c.t, c.commands[i].Wait())
	}
	return printed, time.Since(began)
}

// onTwo runs a test on SQLite and PostgreSQL.
func onTwo(t *testing.T, test func(*testing.T, place)) {
	t.Run("sqlite", func(t *testing.T) { test(t, sqliteFile(t, lites[0])) })
	t.Run("postgres", func(t *testing.T) { test(t, postgresSchema(t)) })
}

// Eight processes answer in one session at the same time. All answers have the same choice.
func TestASessionOfProcessesHasOneArm(t *testing.T) {
	skipRaced(t)
	onTwo(t, func(t *testing.T, at place) {
		_, err := openArms(at.store(t, sqlstore.Config{}))
		require.NoError(t, err)
		choices, took := newCrew(t, at, "answer in one session").run()
		t.Logf("%d answers of %d processes took %v", len(choices), answerProcesses, took)
		require.Len(t, choices, answerProcesses*answersOfEach)
		for _, c := range choices {
			assert.Equal(t, choices[0], c)
		}
	})
}

// A hundred people in eight processes react to one answer at the same time. Nothing is lost: each
// of them is on the record, and has a hundredth of what the arm learns.
func TestACrowdOfProcessesReactsToOneAnswer(t *testing.T) {
	skipRaced(t)
	onTwo(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{})
		a, err := openArms(st)
		require.NoError(t, err)
		given, err := a.Answer(ctx, loop.Event{
			ID: "e", Text: "Why?", Person: "asker", Item: "i", Domain: "d",
		})
		require.NoError(t, err)
		printed, took := newCrew(t, at, "react to one answer").run()
		t.Logf("%d reactions to one answer took %v: each process %s", crowdOfOneAnswer, took,
			strings.Join(printed, ", "))

		view := answers.View("loop.answer")
		row, err := view.Get(ctx, st, answers.ID("e"))
		require.NoError(t, err)
		require.Len(t, row.Value.Statements, crowdOfOneAnswer)
		text, err := json.Marshal(row.Value)
		require.NoError(t, err)
		t.Logf("the record has %d bytes", len(text))
		assert.LessOrEqual(t, len(text), 32<<10)

		outcomes := evidenceOf(t, a.Strategy(), strategy.Query{Item: "i", Category: "d"})
		require.Len(t, outcomes, crowdOfOneAnswer)
		var mass, mean float64
		people := make(map[string]bool)
		for _, r := range outcomes {
			o := r.Result
			assert.Equal(t, given.Plan.Arm.ID, string(r.Choice.Arm))
			assert.InDelta(t, 1./crowdOfOneAnswer, o.Confidence, 1e-9, o.Source)
			mass, mean, people[o.Source] = mass+o.Confidence, mean+o.Confidence*o.Value, true
		}
		assert.Len(t, people, crowdOfOneAnswer)
		assert.InDelta(t, 1, mass, 1e-9)
		assert.InDelta(t, 0.5, mean, 1e-9)
		parts, err := gather(st.List(ctx, store.CellQuery{Kind: "strategy.arm", Scope: "d/"}))
		require.NoError(t, err)
		mass, mean = 0, 0
		for _, p := range parts {
			mass, mean = mass+p.Tally.Mass, mean+p.Tally.Reward
		}
		assert.InDelta(t, 1, mass, 1e-9, "the sums")
		assert.InDelta(t, 0.75, mean, 1e-9, "in [0, 1]")
		account, err := a.Explain(ctx, "e")
		require.NoError(t, err)
		assert.Len(t, account.Statements, crowdOfOneAnswer)
		assert.InDelta(t, 0.5, account.Worth, 1e-9)
	})
}
