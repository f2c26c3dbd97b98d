package scorecard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/heedhq/heed/sqlstore"
)

const task = "HEED_SCORECARD_TASK"

// A job is what another process does with a store. It prints lines, and reads lines.
type job func(ctx context.Context, st *sqlstore.Store, in io.Reader, out io.Writer) error

var jobs = map[string]job{"write": writeOutcomes, "apply": playMoves}

// An order is a job for another process.
type order struct {
	Place  place
	Job    string
	Name   string // of the ids that it writes
	Again  int    // how many outcomes of the process before it were acknowledged
	Before string // the name of that process
	Habit  habit
}

var given order

// Child does the job of this process, if another one started it for one, and reports whether it
// has. A program that runs the lines calls it first.
func Child() bool {
	text := os.Getenv(task)
	if text == "" {
		return false
	}
	if err := obey(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func obey(text string) error {
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return err
	}
	ctx := context.Background()
	st, handle, err := given.Place.store(ctx, sqlstore.Config{NoCache: true})
	if err != nil {
		return err
	}
	defer handle.Close() //nolint:errcheck // the process ends
	return jobs[given.Job](ctx, st, os.Stdin, os.Stdout)
}

// A process is another process with an order.
type process struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// start starts this program as another process.
func (o order) start(ctx context.Context) (*process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), task+"="+string(text))
	cmd.Stderr = os.Stderr
	p := &process{Cmd: cmd}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(out)
	return p, cmd.Start()
}
