package scorecard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const illegalBar = "histories that are not linearizable"

// A move is what a process is asked to do.
type move struct {
	Verb  string // "apply" or "read"
	Key   string // of the cell
	Event int    // 0 to 63
}

// A told is the result of a move. An open one was cut off: it happened or not.
type told struct {
	Open  bool
	Count int  // of the outcomes that the cell has
	Known bool // the outcome counted before
}

// counting is a cell in its right state: the set of the outcomes that it has, one bit each.
var counting = porcupine.Model{
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		has, in, out := state.(uint64), input.(move), output.(told)
		next := has
		if in.Verb == "apply" {
			next |= 1 << in.Event
		}
		if out.Open {
			return true, next
		}
		return out.Count == bits.OnesCount64(next) && (in.Verb == "read" || out.Known == (next == has)),
			next
	},
	Equal: func(a, b any) bool { return a == b },
}

func appliesLine(engine string) card.Line {
	run := func(h habit, short, long int) card.Attempt {
		return on(engine, func(ctx context.Context, s card.Settings, p place) (card.Result, error) {
			r := race{order: order{Place: p, Job: "apply", Habit: h}, moves: card.Pick(s, short, long),
				rng: s.Rand(0)}
			return r.run(ctx)
		})
	}
	return card.Line{
		Name: "S5 " + engine,
		Promise: "Several processes apply and read outcomes at once. All answers fit one order, and " +
			"each outcome counts once, also when processes are killed.",
		Attack: "Eight processes apply the same outcomes and read their counts, and are killed now " +
			"and then, in the middle of a call. Porcupine must find an order that explains all answers.",
		Bars:     card.None(illegalBar),
		Short:    card.Form{Work: 1500, Faults: 4, Budget: 3 * time.Minute},
		Long:     card.Form{Work: 18_000, Faults: 40, Budget: 40 * time.Minute},
		Run:      run(sound, 2000, 20_000),
		Controls: []card.Control{{Name: string(looking), Run: run(looking, 1200, 1200)}},
	}
}

func nextMove(rng *rand.Rand, done int) move {
	m := move{Verb: "apply", Key: fmt.Sprint(done / 40), Event: rng.IntN(24)}
	if rng.IntN(4) == 0 {
		m.Verb = "read"
	}
	return m
}

// applies are the moves of a process on cells.
func applies(ctx context.Context, st *sqlstore.Store, m move) (t told, err error) {
	of := cell
	of.Item = m.Key
	o := evidence.Observation{ID: fmt.Sprint(m.Key, " ", m.Event), Cell: of, Reward: 1, Weight: 1,
		At: time.Now()}
	if given.Habit == looking && m.Verb == "apply" {
		for seen, err := range st.History(ctx, of) {
			if err != nil {
				return t, err
			}
			if seen.Channel == o.ID {
				m.Verb, t.Known = "read", true
			}
		}
		o.Channel, o.ID = o.ID, fmt.Sprint(o.ID, time.Now().UnixNano(), rand.Uint64())
	}
	var parts []evidence.Part
	if m.Verb == "apply" {
		receipts, err := st.Commit(ctx, store.Batch{
			Observations: []evidence.Observation{o}, PartsOf: []evidence.Cell{o.Cell},
		})
		if err != nil {
			return t, err
		}
		t.Known, parts = len(receipts[0].Duplicates) > 0, receipts[0].Parts
	} else {
		var s store.Snapshot
		if err := st.Read(ctx, &s, []evidence.Cell{of}, nil); err != nil {
			return t, err
		}
		parts = s.Parts
	}
	for _, p := range parts {
		t.Count += int(p.Tally.N())
	}
	return t, nil
}

// A race has processes make moves at once and kills some.
type race struct {
	order order
	moves int // in all
	rng   *rand.Rand

	mu      sync.Mutex
	history map[string][]porcupine.Operation
	kills   int64
	made    atomic.Int64
	clients atomic.Int64 // a process is a client
	began   time.Time
}

const racers = 8 // processes at a time

func (r *race) run(ctx context.Context) (result card.Result, err error) {
	r.history, r.began = make(map[string][]porcupine.Operation), time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range racers {
		all.Go(func() {
			for int(r.made.Load()) < r.moves && ctx.Err() == nil {
				if err := r.life(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return result, err
	}
	illegal := 0
	for key, operations := range r.history {
		result.Work += int64(len(operations))
		verdict := porcupine.CheckOperationsTimeout(counting, operations, time.Minute)
		if verdict != porcupine.Ok {
			illegal++
			result.Note("%s: %s: %.2000v", key, verdict, operations)
		}
	}
	result.Faults = r.kills
	result.Note("%d histories, %d moves, %d kills", len(r.history), result.Work, result.Faults)
	result.Values = map[string]float64{illegalBar: float64(illegal)}
	return result, nil
}

// life has a process make moves until it is killed in one, or all are made.
func (r *race) life(ctx context.Context) error {
	r.mu.Lock()
	rng := rand.New(rand.NewPCG(r.rng.Uint64(), r.rng.Uint64()))
	r.mu.Unlock()
	p, err := r.order.start(ctx)
	if err != nil {
		return err
	}
	defer p.in.Close() //nolint:errcheck // it may be dead
	client := int(r.clients.Add(1))
	for left := 50 + rng.IntN(200); int(r.made.Load()) < r.moves; left-- {
		m := nextMove(rng, int(r.made.Add(1)-1))
		if left == 0 {
			time.AfterFunc(time.Duration(rng.IntN(2000))*time.Microsecond,
				func() { _ = p.Process.Kill() })
		}
		op := porcupine.Operation{ClientId: client, Input: m, Call: time.Since(r.began).Nanoseconds()}
		out, err := p.asks(m)
		if err != nil {
			return err
		}
		if op.Output, op.Return = out, time.Since(r.began).Nanoseconds(); out.Open {
			op.Return = math.MaxInt64
		}
		r.mu.Lock()
		r.history[m.Key] = append(r.history[m.Key], op)
		if out.Open {
			r.kills++
		}
		r.mu.Unlock()
		if left <= 0 && out.Open {
			_ = p.Wait() // which was killed
			return nil
		}
		if out.Open {
			return fmt.Errorf("a process ended by itself: %w", p.Wait())
		}
	}
	_ = p.in.Close()
	_ = p.Wait() // it may be killed
	return nil
}

// asks has a process make a move. It is open if the process ends before it answers.
func (p *process) asks(m move) (t told, err error) {
	text, err := json.Marshal(m)
	if err != nil {
		return t, err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil || !p.lines.Scan() {
		return told{Open: true}, nil //nolint:nilerr // life reports it
	}
	if err := json.Unmarshal(p.lines.Bytes(), &t); err != nil {
		return t, fmt.Errorf("%w: %s", err, p.lines.Text())
	}
	return t, nil
}

// playMoves answers each move with what it came to.
func playMoves(ctx context.Context, st *sqlstore.Store, in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	for moves := json.NewDecoder(in); ; {
		var m move
		if err := moves.Decode(&m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		t, err := applies(ctx, st, m)
		if err == nil {
			err = answers.Encode(t)
		}
		if err != nil {
			return err
		}
	}
}
