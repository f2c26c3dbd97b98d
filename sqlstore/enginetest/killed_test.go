package enginetest_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// openKilled opens the agent whose processes are killed. Its clock stands still, so that two runs
// of a call leave the same.
func openKilled(st store.Store, now time.Time) (*loop.Agent, error) {
	says := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "Look at the logs."}, nil
	}
	always := 1.
	cfg := loop.Config{
		Store: st, Model: decision.LLMFunc(says), Arms: []loop.Arm{{ID: "only"}},
		Testing: loop.Testing{Now: func() time.Time { return now }},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{
			{ID: "h", Condition: "the disk is full", Action: "Rotate the logs.", Initial: 0.8},
			{ID: "agrees", Condition: "the mail is late", Action: "Look at the logs."},
			{ID: "differs", Condition: "the mail is late", Action: "Restart the server."},
		}},
	}
	cfg.Tuning.Decision.Withhold = &always
	return loop.New(ctx, cfg)
}

// answerOnce answers an event, and checks the text of the answer.
func answerOnce(a *loop.Agent, id, text, session, want string) error {
	given, err := a.Answer(ctx, loop.Event{
		ID: id, Text: text, Session: session, Person: "ann", Domain: "d", Task: "mail",
	})
	if err == nil && given.Text != want {
		err = fmt.Errorf("the answer is %q", given.Text)
	}
	return err
}

// prepareKilled makes two answers: "h" is a heuristic's, and "m" the model's. Bob has praised both.
func prepareKilled(a *loop.Agent) error {
	if err := answerOnce(a, "h", "The disk is full", "h", "Rotate the logs."); err != nil {
		return err
	}
	if err := answerOnce(a, "m", "The mail is late", "m", "Look at the logs."); err != nil {
		return err
	}
	praise := loop.Reaction{Person: "bob", Value: 1}
	return errors.Join(a.React(ctx, "h", praise), a.React(ctx, "m", praise))
}

// A killedCall is a call during which a process is killed.
type killedCall struct {
	name  string
	short bool // part of the short form of the test
	do    func(a *loop.Agent) error
}

func killedCalls() []killedCall {
	complaint := loop.Reaction{Person: "cid", Value: -1}
	failure := loop.Outcome{Source: "ci", Success: new(bool)}
	return []killedCall{
		{"Answer by a heuristic", false, func(a *loop.Agent) error {
			return answerOnce(a, "new", "The disk is full", "s", "Rotate the logs.")
		}},
		{"Answer by the model", false, func(a *loop.Agent) error {
			return answerOnce(a, "new", "The mail is late", "s", "Look at the logs.")
		}},
		{"Answer to an undo", true, func(a *loop.Agent) error {
			return answerOnce(a, "new", "Undo that.", "m", "Look at the logs.")
		}},
		{"React to a heuristic", false, func(a *loop.Agent) error {
			return a.React(ctx, "h", complaint)
		}},
		{"React to the model", true, func(a *loop.Agent) error {
			return a.React(ctx, "m", complaint)
		}},
		{"Outcome of a heuristic", true, func(a *loop.Agent) error {
			return a.Outcome(ctx, "h", failure)
		}},
		{"Outcome of the model", false, func(a *loop.Agent) error {
			return a.Outcome(ctx, "m", failure)
		}},
		{"Correct", true, func(a *loop.Agent) error {
			c := loop.Correction{Reviewer: "cid", Text: "Look at the disk."}
			_, err := a.Correct(ctx, "m", c)
			return err
		}},
	}
}

// hookedStore opens a place as a process does, through a driver that has hooks.
func (p place) hookedStore() (h *hooked, st *sqlstore.Store, handle *sql.DB, err error) {
	plain, err := p.open()
	if err != nil {
		return nil, nil, nil, err
	}
	h = &hooked{engine: plain.Driver(), dsn: p.dsn}
	if err := plain.Close(); err != nil {
		return nil, nil, nil, err
	}
	handle = sql.OpenDB(h)
	if st, err = sqlstore.Open(ctx, handle, p.dialect); err != nil {
		_ = handle.Close()
		return nil, nil, nil, err
	}
	return h, st, handle, nil
}

// callHooked opens a place and an agent as a process does, and makes a call. hook is called before
// each statement of the call, and after each commit.
func callHooked(at place, now time.Time, call string, hook func(statement string)) error {
	h, st, handle, err := at.hookedStore()
	if err != nil {
		return err
	}
	defer func() { _ = handle.Close() }()
	a, err := openKilled(st, now)
	if err != nil {
		return err
	}
	h.set(func(statement string) error { hook(statement); return nil })
	for _, c := range killedCalls() {
		if c.name == call {
			return c.do(a)
		}
	}
	return fmt.Errorf("no call %q", call)
}

// killAfter returns a hook that kills its process when it is called for the n-th time.
func killAfter(n int) func(string) {
	return func(string) {
		if n--; n > 0 {
			return
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {} // until it is dead
	}
}

func init() {
	processes["be killed"] = func() int {
		now, hook := time.UnixMicro(number("HEED_TEST_NOW")), killAfter(int(number("HEED_TEST_KILL")))
		return exitCode(callHooked(placeOfProcess(), now, os.Getenv("HEED_TEST_NAME"), hook))
	}
}

// accidental is what differs between two runs of the same call.
var accidental = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|` +
	`"(revision|recorded|sample)":[0-9.e-]+`)

// everythingIn returns all that a store has, except for what is accidental.
func everythingIn(t testing.TB, st dumper) string {
	all := lines(t, st)
	for i := range all {
		all[i] = accidental.ReplaceAllString(all[i], "$2#")
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// A restorable is a place that is put back to the same state before each process.
type restorable struct {
	at   place
	now  time.Time
	st   *sqlstore.Store
	base []byte // a dump
}

func newRestorable(t *testing.T, at place) *restorable {
	r := &restorable{at: at, now: time.Now().Truncate(time.Microsecond)}
	r.st = at.store(t, sqlstore.Config{NoCache: true})
	a, err := openKilled(r.st, r.now)
	require.NoError(t, err)
	require.NoError(t, prepareKilled(a))
	var dump bytes.Buffer
	require.NoError(t, r.st.Dump(ctx, &dump))
	r.base = dump.Bytes()
	return r
}

// reset puts the place back.
func (r *restorable) reset(t *testing.T) {
	handle, err := r.at.open()
	require.NoError(t, err)
	wipe(t, handle)
	require.NoError(t, handle.Close())
	require.NoError(t, r.st.Load(ctx, bytes.NewReader(r.base)))
}

// states returns the states through which a call goes if its process lives on, and its statements.
func (r *restorable) states(t *testing.T, call string) (all []string, statements []string) {
	r.reset(t)
	all = []string{everythingIn(t, r.st)}
	look := func() {
		if now := everythingIn(t, r.st); now != all[len(all)-1] {
			all = append(all, now)
		}
	}
	require.NoError(t, callHooked(r.at, r.now, call, func(statement string) {
		look()
		statements = append(statements, statement)
	}))
	look()
	return all, statements
}

// kill makes a call in a process that is killed before its n-th statement. It reports whether the
// call had that many.
func (r *restorable) kill(t *testing.T, call string, n int) bool {
	cmd := child(t, "be killed", append(r.at.env(), "HEED_TEST_NAME="+call,
		fmt.Sprint("HEED_TEST_KILL=", n), fmt.Sprint("HEED_TEST_NOW=", r.now.UnixMicro()))...)
	err := cmd.Run()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "a signal ends it")
	return true
}

// onlyAnswers returns the records of answers in a state.
func onlyAnswers(state string) (all []string) {
	for line := range strings.SplitSeq(state, "\n") {
		if strings.HasPrefix(line, `{"record":{"kind":"loop.answer"`) {
			all = append(all, line)
		}
	}
	return all
}

// killPoints returns before which statements of a call processes are killed: in the short form
// around each commit and once among the reads, and in the long form everywhere.
func killPoints(statements []string) (all []int) {
	for i, statement := range statements {
		commits := statement == "COMMIT" || statement == "COMMITTED"
		if long || commits || i == len(statements)/3 {
			all = append(all, i+1)
		}
	}
	return all
}

// Processes are killed between any two statements of a call. Afterwards the store is as before the
// call, as after it, or as after one of its commits, and each answer is as before the call or as
// after it. If the call is repeated then, the store is as after one call.
func TestKilledBetweenStatements(t *testing.T) {
	skipRaced(t)
	onTwo(t, func(t *testing.T, at place) {
		r := newRestorable(t, at)
		for _, call := range killedCalls() {
			if call.short || long {
				t.Run(call.name, func(t *testing.T) { r.killsEverywhere(t, call.name) })
			}
		}
	})
}

func (r *restorable) killsEverywhere(t *testing.T, call string) {
	states, statements := r.states(t, call)
	before, after := states[0], states[len(states)-1]
	require.NotEqual(t, before, after)
	whole := append(onlyAnswers(before), onlyAnswers(after)...)
	kills := 0
	for _, n := range killPoints(statements) {
		r.reset(t)
		if r.kill(t, call, n) {
			kills++
		}
		left := everythingIn(t, r.st)
		require.Contains(t, states, left, "killed before %s", statements[n-1])
		require.Subset(t, whole, onlyAnswers(left), "killed before %s", statements[n-1])
		require.NoError(t, callHooked(r.at, r.now, call, func(string) {}))
		require.Equal(t, after, everythingIn(t, r.st), "killed before %s", statements[n-1])
	}
	// A process may have a statement less, because it reads again if another has written.
	assert.Greater(t, 2*kills, len(killPoints(statements)))
	t.Logf("%d processes were killed before %d statements, in %d states", kills, len(statements),
		len(states))
}

// The n-th call of a store fails, before it took effect or afterwards. The method of the agent
// returns the error, but not the error of a commit that took effect. If it is called again, the
// store is as after one call. Answer is left out,
// because it goes on with the default arm if it can't read what is believed of the arms.
func TestTheNthCallOfADatabaseFails(t *testing.T) {
	skipRaced(t)
	onTwo(t, func(t *testing.T, at place) {
		r := newRestorable(t, at)
		for _, call := range killedCalls() {
			if (call.short || long) && !strings.HasPrefix(call.name, "Answer") {
				t.Run(call.name, func(t *testing.T) { r.failsEverywhere(t, call) })
			}
		}
	})
}

func (r *restorable) failsEverywhere(t *testing.T, call killedCall) {
	states, _ := r.states(t, call.name)
	runs := 0
	storetest.FailEach(func(at int, after bool) bool {
		runs++
		r.reset(t)
		st := &storetest.Failing{Store: r.st}
		a, err := openKilled(st, r.now)
		require.NoError(t, err)
		st.Fail(at, after)
		err = call.do(a)
		failed := st.Failed()
		st.Fail(0, false)
		if failed && after && err == nil { // a commit, whose result the caller gets
			require.Equal(t, states[len(states)-1], everythingIn(t, r.st), "call %d", at)
		} else if failed {
			require.ErrorIs(t, err, storetest.ErrFailed, "call %d, after %t", at, after)
		}
		require.Contains(t, states, everythingIn(t, r.st), "call %d, after %t", at, after)
		for range 2 {
			require.NoError(t, call.do(a), "call %d, after %t", at, after)
		}
		require.Equal(t, states[len(states)-1], everythingIn(t, r.st), "call %d, after %t", at,
			after)
		return failed
	})
	t.Logf("%d runs", runs)
}
