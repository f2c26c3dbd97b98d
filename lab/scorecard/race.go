package scorecard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
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
			r := race{place: p, job: "apply", habit: h, model: counting, moves: card.Pick(s, short, long),
				rng: s.Rand(0), next: nextApply}
			return r.run(ctx)
		})
	}
	return card.Line{
		Name: "S5 " + engine,
		Promise: "Several processes apply and read outcomes at once. All answers fit one order, and " +
			"each outcome counts once, also when processes are killed.",
		Attack: "Three processes apply the same outcomes and read their counts, twelve calls at a " +
			"time, and are killed now and then. Porcupine must " +
			"find an order that explains all answers.",
		Bars:     card.None(illegalBar),
		Short:    card.Form{Work: 1500, Faults: 4, Budget: 3 * time.Minute},
		Long:     card.Form{Work: 18_000, Faults: 40, Budget: 40 * time.Minute},
		Run:      run(sound, 2000, 20_000),
		Controls: []card.Control{{Name: string(looking), Run: run(looking, 1200, 1200)}},
	}
}

func nextApply(rng *rand.Rand, done int) move {
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
	place place
	job   string
	habit habit
	model porcupine.Model
	moves int
	rng   *rand.Rand
	next  func(rng *rand.Rand, done int) move

	mu      sync.Mutex
	history map[string][]porcupine.Operation
	kills   atomic.Int64
	made    atomic.Int64
	client  atomic.Int64
	began   time.Time
}

const (
	racers  = 3 // processes
	callers = 4 // calls at a time, of each
)

func (r *race) run(ctx context.Context) (result card.Result, err error) {
	r.history, r.began = make(map[string][]porcupine.Operation), time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range racers {
		rng := rand.New(rand.NewPCG(r.rng.Uint64(), r.rng.Uint64()))
		all.Go(func() {
			for int(r.made.Load()) < r.moves && ctx.Err() == nil {
				if err := r.life(ctx, rng); err != nil {
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
		if verdict := porcupine.CheckOperationsTimeout(r.model, operations,
			time.Minute); verdict != porcupine.Ok {
			illegal++
			result.Note("%s: %s: %s", key, verdict, stuckAt(r.model, operations))
		}
	}
	result.Faults = r.kills.Load()
	result.Note("%d histories, %d moves, %d kills", len(r.history), result.Work, result.Faults)
	result.Values = map[string]float64{illegalBar: float64(illegal)}
	return result, nil
}

// stuckAt describes the moves that no order explains after the longest one that explains others,
// the earliest first.
func stuckAt(model porcupine.Model, operations []porcupine.Operation) (text string) {
	_, info := porcupine.CheckOperationsVerbose(model, operations, time.Minute)
	var longest []int
	for _, some := range info.PartialLinearizations()[0] {
		if len(some) > len(longest) {
			longest = some
		}
	}
	state := model.Init()
	for _, i := range longest {
		_, state = model.Step(state, operations[i].Input, operations[i].Output)
	}
	text = fmt.Sprintf("%d of %d explained, then %v; not explained:", len(longest), len(operations),
		state)
	var left []porcupine.Operation
	for i, o := range operations {
		if !slices.Contains(longest, i) {
			left = append(left, o)
		}
	}
	slices.SortFunc(left, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, o := range left[:min(len(left), 8)] {
		text += fmt.Sprintf("\n%+v %+v from %d to %d", o.Input, o.Output, o.Call, o.Return)
	}
	return text
}

// A lifetime is how long one process of a race lives.
type lifetime struct {
	*race
	process *process
	waiting sync.Map // by client: where the answer goes
	write   sync.Mutex
	left    atomic.Int64 // moves until it is killed
	dead    atomic.Bool
	ended   chan struct{}
}

// life is the lifetime of one process: it is killed after some moves, unless all are made.
func (r *race) life(ctx context.Context, rng *rand.Rand) error {
	p, err := order{Place: r.place, Job: r.job, Habit: r.habit}.start(ctx)
	if err != nil {
		return err
	}
	defer p.in.Close() //nolint:errcheck // it may be dead
	l := &lifetime{race: r, process: p, ended: make(chan struct{})}
	l.left.Store(int64(100 + rng.IntN(300)))
	var all sync.WaitGroup
	for range callers {
		client := int(r.client.Add(1)) // one that was cut off makes no more moves
		moves := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		answer := make(chan told, 1)
		l.waiting.Store(client, answer)
		all.Go(func() { l.call(client, moves, answer) })
	}
	go func() {
		all.Wait()
		_ = p.in.Close()
	}()
	err = l.listen()
	close(l.ended)
	if err != nil {
		_ = p.Process.Kill()
	}
	all.Wait()
	switch failure := p.Wait(); {
	case err != nil:
		return err
	case l.dead.Load():
		r.kills.Add(1)
		return nil
	default:
		return failure
	}
}

// listen hands answers to those who wait for them, until the process ends.
func (l *lifetime) listen() error {
	for l.process.lines.Scan() {
		var a reply
		if err := json.Unmarshal(l.process.lines.Bytes(), &a); err != nil {
			return fmt.Errorf("%w: %s", err, l.process.lines.Text())
		}
		if a.Failed != "" {
			return errors.New(a.Failed)
		}
		answer, _ := l.waiting.Load(a.Client)
		answer.(chan told) <- a.Told
	}
	return nil
}

// call makes moves, one after the other, until one is cut off or all are made.
func (l *lifetime) call(client int, moves *rand.Rand, answer <-chan told) {
	for !l.dead.Load() && int(l.made.Load()) < l.moves {
		m := l.next(moves, int(l.made.Add(1)-1))
		op := porcupine.Operation{ClientId: client, Input: m, Call: time.Since(l.began).Nanoseconds()}
		text, _ := json.Marshal(request{client, m}) //nolint:errchkjson // it has texts and numbers
		l.write.Lock()
		_, err := l.process.in.Write(append(text, '\n'))
		l.write.Unlock()
		out := told{Open: true}
		if err == nil {
			select {
			case out = <-answer:
			case <-l.ended:
			}
		}
		if op.Output, op.Return = out, time.Since(l.began).Nanoseconds(); out.Open {
			op.Return = math.MaxInt64
		}
		l.mu.Lock()
		l.history[m.Key] = append(l.history[m.Key], op)
		l.mu.Unlock()
		if out.Open {
			return
		}
		if l.left.Add(-1) == 0 {
			l.dead.Store(true)
			_ = l.process.Process.Kill()
		}
	}
}

type request struct {
	Client int
	Move   move
}

type reply struct {
	Client int
	Told   told
	Failed string
}

// serves answers requests, each on its own goroutine.
func serves(make func(context.Context, *sqlstore.Store) (func(move) (told, error), error)) job {
	return func(ctx context.Context, st *sqlstore.Store, in io.Reader, out io.Writer) error {
		play, err := make(ctx, st)
		if err != nil {
			return err
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		answers := json.NewEncoder(out)
		for requests := json.NewDecoder(in); ; {
			var r request
			if err := requests.Decode(&r); err != nil {
				all.Wait()
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			all.Go(func() {
				told, err := play(r.Move)
				a := reply{Client: r.Client, Told: told}
				if err != nil {
					a.Failed = err.Error()
				}
				mu.Lock()
				defer mu.Unlock()
				_ = answers.Encode(a)
			})
		}
	}
}
