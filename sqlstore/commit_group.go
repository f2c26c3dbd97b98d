package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/store"
)

// A queue makes commits of concurrent callers together. The first caller commits at once. Those
// that come in the meantime wait. Then one of them, a leader, commits for all that wait, in one
// transaction on its own goroutine, and the next leader is one of those that came in the meantime.
// A caller that waited for longer than patience leads next to those who do, if there may be more.
//
// Calls do not depend on each other. If the context of one ends, the transaction is taken back and
// made again without it. If one has a conflict, it is made alone, and the others again. If the
// transaction fails for another reason, each is made alone. Only an error at the very end is one
// for all, because it leaves open whether they were applied.
//
// A transaction costs a wait for the disk, or a round trip and the server's wait for its disk.
// Commits that share it share that cost, so the throughput grows with the number of callers, while
// a single caller never waits for others.
type queue struct {
	line[*member]
	// store commits what the queue gathers.
	store *Store
}

// mostTogether is how many calls may be in one transaction.
const mostTogether = 128

// A member is a call of Commit.
type member struct {
	ctx context.Context
	// change is the call's own, for the case that it is committed alone.
	change *change
	turn   chan turn // gets one value for each time that the member waits

	// The fields below are guarded by the queue's mutex.
	stage stage
	in    *joint // while stage is joined
	ended bool   // its context has, and that was noted
	// receipts and err are set before the turn toReturn.
	receipts []store.Receipt
	err      error
}

// stage is how far a member came.
type stage int

const (
	queued stage = iota
	joined       // a leader commits for it
	called       // it has its turn
)

// turn is what a member must do next.
type turn int

const (
	toLead turn = iota
	toCommitAlone
	toReturn // its receipts or its error
)

// A joint is a transaction for several members. The first one leads. Its context ends if a member's
// context ends before the last statement, or if all of them have ended.
type joint struct {
	// members are in the order of their calls, and change has the batches of all of them, one after
	// the other.
	members []*member
	change  *change
	ctx     context.Context
	cancel  context.CancelFunc
	// all statements have succeeded, and the transaction ends: written by the leader alone
	closing bool
	ended   int // how many contexts have
}

// commit commits a call, together with others that wait or by itself. The receipts are the same
// whichever way it takes.
func (q *queue) commit(ctx context.Context, c *change) ([]store.Receipt, error) {
	m := &member{ctx: ctx, change: c}
	m.turn = make(chan turn, 1)
	if q.enter(m) {
		m.stage = called
		return q.leadFor(m)
	}
	next, err := q.await(m)
	if err != nil {
		return nil, err
	}
	switch next {
	case toLead:
		return q.leadFor(m)
	case toCommitAlone:
		return q.store.commitAlone(ctx, c)
	case toReturn:
	}
	return m.receipts, m.err
}

// await waits for the member's turn. It returns an error if the context ended, and then the member
// is not committed. What an ended context means depends on how far the member came. If it still
// waits, it leaves. If a leader has it in a transaction that is not about to end, that transaction
// is taken back. If the transaction is about to end, the outcome is unknown, because the end can't
// be called off.
func (q *queue) await(m *member) (turn, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for waits := true; waits; {
		select {
		case next := <-m.turn:
			return next, nil
		case <-late.C:
			if q.goAhead(m) {
				m.stage = called
				return toLead, nil
			}
			late.Reset(longPatience)
		case <-m.ctx.Done():
			waits = false
		}
	}
	q.mu.Lock()
	switch m.stage {
	case queued:
		q.leave(m)
		q.mu.Unlock()
		return 0, m.ctx.Err()
	case joined:
		closing := m.in != nil && m.in.closing
		m.end()
		q.mu.Unlock()
		if closing {
			return 0, fmt.Errorf("%w: the end of the transaction was not waited for: %w",
				heed.ErrOutcomeUnknown, m.ctx.Err())
		}
	case called:
		q.mu.Unlock()
	}
	next := <-m.turn // which comes soon, or is there
	if next == toLead {
		q.pass(leads)
	}
	if next != toReturn {
		return 0, m.ctx.Err()
	}
	return next, nil
}

// end notes once that the context of a member ended. The caller holds the queue's mutex. A member
// that ends twice counts once.
func (m *member) end() {
	if !m.ended && m.in != nil {
		m.in.end()
	}
	m.ended = true // the next transaction for this member learns of it
}

// end notes that the context of one more member ended. The caller holds the queue's mutex.
func (j *joint) end() {
	if j.ended++; !j.closing || j.ended == len(j.members) {
		j.cancel()
	}
}

// call gives a member its turn. The caller holds the queue's mutex. The channel has room for one
// value, so this never waits.
func (m *member) call(next turn) {
	m.stage, m.in = called, nil
	m.turn <- next
}

// leads has a member lead next.
func leads(m *member) { m.call(toLead) }

// leadFor commits for a member and for those that wait. The next leader has its turn when this one
// is done, whatever happens. A leader without company commits alone, at no cost.
func (q *queue) leadFor(m *member) ([]store.Receipt, error) {
	defer q.pass(leads)
	if members := q.gather(m); len(members) > 1 && q.commitAll(members) == toReturn {
		return m.receipts, m.err
	}
	return q.store.commitAlone(m.ctx, m.change)
}

// gather takes from the queue those that can be in one transaction with the leader: no two may
// write the same record, or rely on what another writes. A call that does not fit stays in the
// queue, in its place.
func (q *queue) gather(leader *member) []*member {
	members := []*member{leader}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return members
	}
	// The leader's own records come first, so those that conflict with it wait for the next
	// transaction, where they see what it wrote.
	touched := make(touched)
	touched.take(leader.change.batches)
	room := store.MaxChanges - changesOf(leader.change.batches)
	q.waiting = slices.DeleteFunc(q.waiting, func(m *member) bool {
		n := changesOf(m.change.batches)
		if len(members) == mostTogether || n > room || !touched.take(m.change.batches) {
			return false
		}
		room -= n
		m.stage = joined // from now on it must not lead itself
		members = append(members, m)
		return true
	})
	return members
}

// changesOf counts the changes of a call, which one transaction may only have so many of. The limit
// is [store.MaxChanges].
func changesOf(batches []store.Batch) (n int) {
	for i := range batches {
		n += batches[i].Changes()
	}
	return n
}

// touched are the records that a transaction writes, true, or relies on.
type touched map[store.Ref]bool

// take adds the records of a call, if it does not overwrite a record of the group or rely on one.
func (t touched) take(batches []store.Batch) bool {
	// All records of the call are compared before any is added, because a call is taken as a whole,
	// and its own batches may rely on the same records.
	for i := range batches {
		for k := range batches[i].Records {
			if _, ok := t[batches[i].Records[k].Ref]; ok {
				return false
			}
		}
		for _, e := range batches[i].Expect {
			if t[e.Ref] {
				return false
			}
		}
	}
	for i := range batches {
		for k := range batches[i].Records {
			t[batches[i].Records[k].Ref] = true
		}
		for _, e := range batches[i].Expect {
			if _, known := t[e.Ref]; !known {
				t[e.Ref] = false
			}
		}
	}
	return true
}

// commitAll commits for members. The first member is the caller. commitAll gives the others their
// turns, and returns the caller's. Each round of the loop either decides about all members that are
// left or has fewer of them, so it ends. A member with a conflict of its record is found by blamed,
// and commits alone after the others.
func (q *queue) commitAll(members []*member) turn {
	next := make(map[*member]turn, len(members))
	for _, m := range members {
		next[m] = toCommitAlone // unless it turns out otherwise
	}
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, m := range members[1:] {
			m.call(next[m])
		}
	}()
	for left := members; len(left) > 1; {
		// One transaction for all that are left. The map keeps toCommitAlone for those that it does not
		// decide about.
		j := q.join(left)
		err := j.commit(q)
		q.mu.Lock()
		var again []*member
		for i, m := range left {
			m.in = nil
			switch {
			case err == nil, j.closing:
				next[m] = toReturn
				m.receipts, m.err = j.receipts(i), err
				m.change.cached = j.change.cached
			case m.ctx.Err() != nil:
				next[m] = toReturn
				m.err = because(m.ctx, err)
			// The fault was another member's, so this one is tried again with those that are left.
			case j.ended > 0 || j.change.blamed >= 0 && j.change.call(j.change.blamed) != i:
				again = append(again, m)
			}
		}
		q.mu.Unlock()
		left = again
	}
	return next[members[0]]
}

// join makes a transaction for members, and notes those whose contexts have ended since they were
// gathered. The earliest of the assumed times holds for all.
func (q *queue) join(members []*member) *joint {
	j := &joint{members: members, change: &change{store: members[0].change.store,
		assumed: members[0].change.assumed, blamed: -1}}
	for _, m := range members {
		j.change.calls = append(j.change.calls, len(j.change.batches))
		j.change.batches = append(j.change.batches, m.change.batches...)
		if m.change.assumed.Before(j.change.assumed) {
			j.change.assumed = m.change.assumed
		}
	}
	j.change.known = make([]bool, len(j.change.batches))
	// The context of the leader must not end the work for the others, so only its values are kept.
	// It ends when end notes that a member's context ended.
	j.ctx, j.cancel = context.WithCancel(context.WithoutCancel(members[0].ctx))
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range members {
		if m.in = j; m.ended {
			j.end()
		}
	}
	return j
}

// errEnded takes a transaction back because the context of one of its members ended. It is made
// again without that member.
var errEnded = errors.New("the context of another call has ended")

// commit commits the transaction. The leader's context is watched as well: it has no goroutine that
// waits for a turn. The lock of the queue is not held while the statements run. A panic of the
// driver is an error, and if the transaction was about to end, its outcome is unknown. It tries the
// one call of PostgreSQL first, and then the steps.
func (j *joint) commit(q *queue) error {
	defer j.cancel()
	noted := make(chan struct{})
	stop := context.AfterFunc(j.members[0].ctx, func() {
		defer close(noted)
		q.mu.Lock()
		defer q.mu.Unlock()
		j.members[0].end()
	})
	defer func() {
		if !stop() {
			<-noted
		}
	}()
	err := host.Call("the driver of the database", func() error {
		if done, err := q.store.call(j.ctx, j.change, func() error { return j.close(q) }); done {
			return err
		}
		return j.change.retry(func() error {
			return q.store.db.enter(j.ctx, j.enter, func(t *tx) error { return j.run(q, t) })
		})
	})
	_, err = j.change.result(err)
	if j.closing && errors.As(err, new(*heed.PanicError)) {
		err = fmt.Errorf("%w: %w", heed.ErrOutcomeUnknown, err)
	}
	return err
}

// enter is the first statement. There is no other try once the transaction was about to end,
// because members may have left since.
func (j *joint) enter(t *tx) error {
	if j.closing {
		return errEnded
	}
	return j.change.enter(t)
}

// run runs all statements but the last, which ends the transaction.
func (j *joint) run(q *queue, t *tx) error {
	if err := j.change.run(t); err != nil {
		return err
	}
	return j.close(q)
}

// close notes that the transaction is about to end. It is the last moment at which a member may
// leave.
func (j *joint) close(q *queue) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.ended > 0 {
		return errEnded
	}
	j.closing = true
	return nil
}

// receipts returns the receipts of a member's batches. A transaction that failed has no receipts.
func (j *joint) receipts(member int) []store.Receipt {
	if j.change.receipts == nil {
		return nil
	}
	first := j.change.calls[member]
	return slices.Clip(j.change.receipts[first : first+len(j.members[member].change.batches)])
}

// call returns which call a batch is of. c.calls has the first batch of each call, in order.
func (c *change) call(batch int) int {
	if len(c.calls) == 0 {
		return 0
	}
	i, found := slices.BinarySearch(c.calls, batch)
	// The search returns where the batch would be inserted: behind the first batch of its call.
	if !found {
		i--
	}
	return i
}

// partsAfter returns the parts of a cell as they are after the call of a batch: without what later
// calls in the same transaction have added. So the receipt of a call is the same, whether the call
// was committed alone or with others.
func (c *change) partsAfter(batch int, cell evidence.Cell, all []addition) []evidence.Part {
	key := hashOfCell(cell)
	parts := c.parts[key]
	if len(c.calls) == 0 {
		return parts
	}
	// The parts are shared by all receipts of the transaction, so they are copied before something
	// is taken out of them.
	own, copied := c.call(batch), false
	for i := range all {
		a := &all[i]
		if a.key != key || !a.counts || c.call(a.batch) <= own {
			continue
		}
		if !copied {
			parts, copied = slices.Clone(parts), true
		}
		k := slices.IndexFunc(parts, func(p evidence.Part) bool {
			return p.Channel == a.from.channel && p.Source == a.from.source
		})
		if k < 0 {
			continue
		}
		if parts[k].Tally.Take(a.Weight, a.Share, a.Reward,
			evidence.InstantOf(a.At)); parts[k].Tally.N() == 0 {
			parts = slices.Delete(parts, k, k+1)
		}
	}
	return parts
}
