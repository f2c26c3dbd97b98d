package natsstore_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/natsstore"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A load counts by many callers, until it is stopped, and notes what was acknowledged.
type load struct {
	mu      sync.Mutex
	acked   []string
	failed  []error
	longest time.Duration // between two acknowledgements
	last    time.Time
}

func (l *load) run(until <-chan struct{}, handles []*natsstore.Store, callers int) *sync.WaitGroup {
	var wait sync.WaitGroup
	l.last = time.Now()
	for caller := range callers {
		wait.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-until:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", caller, i)
				err := count(ctx, handles[caller%len(handles)], id)
				l.mu.Lock()
				if err != nil {
					l.failed = append(l.failed, err)
				} else {
					l.longest = max(l.longest, time.Since(l.last))
					l.last = time.Now()
					l.acked = append(l.acked, id)
				}
				l.mu.Unlock()
			}
		})
	}
	return &wait
}

func (l *load) done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// TestKilledServer kills the server that leads the log while nine callers of three handles write.
// Then it stops the two servers that are left, one after the other, so that no majority is there.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	c := startNodes(t, false)
	cfg := natsstore.Config{Name: "load", Timeout: 40 * time.Second}
	var handles []*natsstore.Store
	var js jetstream.JetStream
	for i := range 3 {
		js = c.connect(t, []int{i, (i + 1) % 3, (i + 2) % 3})
		handles = append(handles, open(t, js, cfg))
	}
	var l load
	until := make(chan struct{})
	wait := l.run(until, handles, 9)
	reach := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return l.done() >= n }, up, 20*time.Millisecond)
	}
	reach(100)
	dead := c.leader(t, js, "load")
	require.NoError(t, c.nodes[dead].Process.Kill())
	before := l.done()
	reach(before + 200)
	close(until)
	wait.Wait()
	acked := len(l.acked)
	t.Logf("%d acknowledged, %d of them before the kill; %v without any; %d calls failed", acked,
		before, l.longest, len(l.failed))
	for _, err := range l.failed {
		require.ErrorIs(t, err, heed.ErrUnavailable)
	}

	live := slices.Delete([]int{0, 1, 2}, dead, dead+1)
	fresh := open(t, c.connect(t, live), cfg)
	for _, st := range append(handles, fresh) {
		n, observations := counted(t, st)
		require.EqualValues(t, n, observations)
		require.GreaterOrEqual(t, n, acked, "acknowledged steps are lost")
		require.LessOrEqual(t, n, acked+len(l.failed), "steps are doubled")
	}
	same(t, append(handles, fresh)...)
	for _, id := range l.acked {
		row, err := notes.Get(ctx, fresh, id)
		require.NoError(t, err)
		require.NotZero(t, row.Revision)
	}

	// The last server but one does not answer: neither may anybody read, because others may write.
	away := c.nodes[live[1]].Process
	require.NoError(t, away.Signal(syscall.SIGSTOP))
	alone := c.connect(t, live[:1])
	cfg.Timeout = 3 * time.Second
	_, err := natsstore.Open(ctx, alone, cfg)
	require.ErrorIs(t, err, heed.ErrUnavailable)
	require.NoError(t, away.Signal(syscall.SIGCONT))
	c.start(t, dead)
	cfg.Timeout = 40 * time.Second
	require.NoError(t, count(ctx, open(t, alone, cfg), "at last"))
}

// TestPartition cuts a handle off from its server, and another handle goes on.
func TestPartition(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	proxy := newProxy(t, c.clients[0])
	direct := open(t, c.connect(t, []int{1}), natsstore.Config{Name: "cut"})
	c.clients[0] = proxy.port
	st := open(t, c.connect(t, []int{0}), natsstore.Config{Name: "cut", Timeout: 2 * time.Second})
	require.NoError(t, count(ctx, st, "before"))

	proxy.set(true)
	b := store.Batch{Observations: []evidence.Observation{
		{ID: "during", Cell: cell, Reward: 1, Weight: 1, At: time.Now()}}}
	_, err := st.Commit(ctx, b)
	require.ErrorIs(t, err, heed.ErrUnavailable)
	require.ErrorIs(t, err, heed.ErrOutcomeUnknown)
	err = st.Read(ctx, &store.Snapshot{}, nil, []store.Ref{notes.Ref("counter")})
	require.ErrorIs(t, err, heed.ErrUnavailable)
	require.NotErrorIs(t, err, heed.ErrOutcomeUnknown)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = st.Commit(short, b)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for i := range 20 {
		require.NoError(t, count(ctx, direct, fmt.Sprint("others ", i)))
	}

	proxy.set(false)
	require.Eventually(t, func() bool { _, err := st.Commit(ctx, b); return err == nil },
		up, 10*time.Millisecond)
	for _, one := range []*natsstore.Store{st, direct} {
		n, observations := counted(t, one)
		assert.Equal(t, 21, n)
		assert.EqualValues(t, 22, observations, "what was repeated counts once")
	}
	same(t, st, direct)
}

// TestAReplyThatIsLostForLong loses the reply to a commit for so many generations that the log no
// longer knows the handle. The handle does not make the commit again.
func TestAReplyThatIsLostForLong(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	proxy := newProxy(t, c.clients[0])
	direct := open(t, c.connect(t, []int{1}), natsstore.Config{Name: "deaf"})
	c.clients[0] = proxy.port
	st := open(t, c.connect(t, []int{0}), natsstore.Config{Name: "deaf"})
	proxy.setMute(true)
	done := make(chan error, 1)
	go func() {
		once := notes.Record(note{ID: "once"}, 0)
		_, err := st.Commit(ctx, store.Batch{Records: []store.Record{once}})
		done <- err
	}()
	require.Eventually(t, func() bool {
		row, err := notes.Get(ctx, direct, "once")
		return err == nil && row.Revision > 0
	}, up, time.Millisecond)
	for range 18 {
		require.NoError(t, direct.Rotate())
	}
	proxy.setMute(false)
	require.ErrorIs(t, <-done, heed.ErrOutcomeUnknown)
	require.NoError(t, count(ctx, st, "later"))
}

// TestSlowNetwork opens a handle whose replies take longer than it waits for all of them.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	proxy := newProxy(t, c.clients[0])
	direct := open(t, c.connect(t, []int{1}), natsstore.Config{Name: "slow"})
	text := strings.Repeat("long ", 180_000)
	for i := range 8 {
		_, err := direct.Commit(ctx, store.Batch{
			Records: []store.Record{notes.Record(note{ID: fmt.Sprint(i), Text: text}, 0)}})
		require.NoError(t, err)
	}
	c.clients[0] = proxy.port
	js := c.connect(t, []int{0})
	proxy.mu.Lock()
	proxy.pause = 25 * time.Millisecond // 2.6 MB a second at most, of 7.2 MB
	proxy.mu.Unlock()
	same(t, direct, open(t, js, natsstore.Config{Name: "slow", Timeout: time.Minute}))
}

// TestAMessageIsMissing deletes a message of the log: a handle that needs it reports that at once.
func TestAMessageIsMissing(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	js := c.connect(t, []int{0})
	st := open(t, js, natsstore.Config{Name: "hole"})
	for i := range 5 {
		require.NoError(t, count(ctx, st, fmt.Sprint(i)))
	}
	names := js.StreamNames(ctx, jetstream.WithStreamListSubject("heed.hole.*"))
	for name := range names.Name() {
		if strings.HasSuffix(name, "_place") {
			continue
		}
		stream, err := js.Stream(ctx, name)
		require.NoError(t, err)
		require.NoError(t, stream.DeleteMsg(ctx, 4))
	}
	require.NoError(t, names.Err())
	require.NoError(t, count(ctx, st, "which has read it"))
	_, err := natsstore.Open(ctx, js, natsstore.Config{Name: "hole", Timeout: 5 * time.Second})
	require.ErrorIs(t, err, heed.ErrDamaged)
	require.ErrorContains(t, err, "message 4 of hole_1_")
}

// TestForgetting looks for a name in all files of all servers.
func TestForgetting(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	st := open(t, c.connect(t, []int{0}), natsstore.Config{Name: "forget"})
	other := open(t, c.connect(t, []int{1}), natsstore.Config{Name: "forget"})
	const name = "Wilhelmine Quastenflosser"
	for i := range 200 {
		id := fmt.Sprint(i)
		_, err := st.Commit(ctx, store.Batch{
			Records:  []store.Record{notes.Record(note{ID: id, Author: name, Text: "kept " + id}, 0)},
			Policies: map[string]evidence.Policy{"origin": {ByOrigin: true}},
			Observations: []evidence.Observation{{ID: id, Source: name, Reward: 1, Weight: 1,
				Cell: evidence.Cell{Kind: "origin", Item: "item"}, At: time.Now()}},
		})
		require.NoError(t, err)
	}
	found := func(text string) (servers int) {
		for _, dir := range c.dirs {
			if holds(t, dir, text) {
				servers++
			}
		}
		return servers
	}
	on := func(servers int) func() bool { return func() bool { return found(name) == servers } }
	require.Eventually(t, on(3), up, 100*time.Millisecond)
	forget(t, st, name)
	require.Eventually(t, on(0), up, 100*time.Millisecond)
	require.Equal(t, 3, found("kept 7"))
	for _, one := range []*natsstore.Store{other, st} {
		row, err := notes.Get(ctx, one, "7")
		require.NoError(t, err)
		require.Equal(t, note{ID: "7", Text: "kept 7"}, row.Value)
		require.NoError(t, count(ctx, one, "after"))
	}
}

// TestKilledWhileForgetting ends a program between the last commit of a Forget and each step by
// which the log loses the name. The next sweep of any handle does the rest.
func TestKilledWhileForgetting(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for step := range 3 {
		name, person := fmt.Sprint("killed", step), fmt.Sprint("Wilhelmine the ", step, ".")
		st := open(t, c.connect(t, []int{0}), natsstore.Config{Name: name})
		_, err := st.Commit(ctx, store.Batch{
			Records: []store.Record{notes.Record(note{ID: "1", Author: person}, 0)},
		})
		require.NoError(t, err)
		found := func() (servers int) {
			for _, dir := range c.dirs {
				if holds(t, dir, person) {
					servers++
				}
			}
			return servers
		}
		require.Eventually(t, func() bool { return found() == 3 }, up, 50*time.Millisecond)
		row, err := notes.Get(ctx, st, "1")
		require.NoError(t, err)
		require.NoError(t, st.DieAt(step, store.Batch{
			Records:   []store.Record{notes.Record(note{ID: "1", Text: "kept"}, row.Revision)},
			Forgotten: []string{person},
		}))
		require.Equal(t, 3, found(), "killed at step %d, the name is still there", step)
		next := open(t, c.connect(t, []int{1}), natsstore.Config{Name: name})
		require.NoError(t, next.Sweep(ctx, time.Time{}))
		require.Eventually(t, func() bool { return found() == 0 }, up, 50*time.Millisecond,
			"killed at step %d", step)
		row, err = notes.Get(ctx, next, "1")
		require.NoError(t, err)
		require.Equal(t, "kept", row.Value.Text)
	}
}

// TestClockAhead expects refusals if the clock of a handle is more than five minutes ahead.
func TestClockAhead(t *testing.T) {
	c := startCluster(t)
	st := open(t, c.connect(t, []int{0}), natsstore.Config{Name: "clock"})
	require.NoError(t, count(ctx, st, "1"))
	for ahead, refused := range map[time.Duration]bool{
		-time.Hour: false, 4 * time.Minute: false, 6 * time.Minute: true, 24 * time.Hour: true,
	} {
		st.SetClock(func() time.Time { return time.Now().Add(ahead) })
		_, err := st.Commit(ctx, store.Batch{
			Records: []store.Record{notes.Record(note{ID: ahead.String()}, 0)},
		})
		for _, err := range []error{err, st.Sweep(ctx, time.Time{})} {
			if !refused {
				require.NoError(t, err, ahead)
				continue
			}
			fault := (*heed.ConfigError)(nil)
			require.ErrorAs(t, err, &fault)
			require.Equal(t, "Kept.Now", fault.Field)
			require.InDelta(t, ahead, fault.Value, float64(5*time.Second))
		}
	}
}

// A handle asks the servers again before it refuses a call for its clock, because the machine may
// have slept, or its clock was set right.
func TestAMachineThatSlept(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	st := open(t, c.connect(t, []int{0}), natsstore.Config{Name: "slept"})
	require.NoError(t, count(ctx, st, "before"))
	st.Sleep(time.Hour)
	require.NoError(t, count(ctx, st, "after"))
	st.Sleep(time.Hour)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
}

// A clock that is put back keeps no old state: what others commit is seen within a second.
func TestAStateIsNotYoungerThanItsClock(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	cfg := natsstore.Config{Name: "back"}
	reader, writer := open(t, c.connect(t, []int{0}), cfg), open(t, c.connect(t, []int{1}), cfg)
	seen := func() (n uint64) {
		var s store.Snapshot
		require.NoError(t, reader.Read(ctx, &s, []evidence.Cell{cell}, nil))
		for _, p := range s.Parts {
			n += p.Tally.N()
		}
		return n
	}
	require.Zero(t, seen())
	reader.PutBack(10 * time.Second)
	require.NoError(t, count(ctx, writer, "1"))
	require.EqualValues(t, 1, seen())
}

// holds reports whether a file below a directory has a text.
func holds(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // it was removed in between
		}
		content, _ := os.ReadFile(path)
		folded := strings.ToLower(string(content)) // as keys are
		found = found || strings.Contains(folded, strings.ToLower(text))
		return nil
	})
	require.NoError(t, err)
	return found
}

func forget(t *testing.T, st store.Store, name string) {
	t.Helper()
	require.NoError(t, store.Run(ctx, st, store.Job{Forget: []string{name}}))
}
