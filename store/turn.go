package store

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Steps of one process that conflict over one store run one after the other from their second try
// on. Otherwise a crowd that changes one record would mostly conflict with itself, and the more
// steps there are, the more of them would use up their tries.
//
// A turn is a courtesy and not a lock: a step goes on without it if another step has had it for
// longestTurn. So a step that calls Do itself does not block itself for longer.
var turns = struct {
	sync.Mutex
	of map[Store]*turn
}{of: make(map[Store]*turn)}

// A turn is what the steps of one store wait for. It is there as long as a step has it or waits.
type turn struct {
	taken chan struct{}
	left  atomic.Int64 // how often a step left it
	users int
}

const longestTurn = 5 * time.Second

// takeTurn waits for the turn of a store. The caller must call the function that it returns.
func takeTurn(ctx context.Context, st Store) (leave func(), err error) {
	if !reflect.ValueOf(st).Comparable() {
		return func() {}, nil
	}
	t := enter(st)
	timer := time.NewTimer(longestTurn)
	defer timer.Stop()
	for {
		left := t.left.Load()
		select {
		case t.taken <- struct{}{}:
			return func() { t.left.Add(1); <-t.taken; exit(st, t) }, nil
		case <-ctx.Done():
			exit(st, t)
			return func() {}, ctx.Err()
		case <-timer.C:
			if left == t.left.Load() {
				return func() { exit(st, t) }, nil
			}
			timer.Reset(longestTurn)
		}
	}
}

func enter(st Store) *turn {
	turns.Lock()
	defer turns.Unlock()
	t := turns.of[st]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		turns.of[st] = t
	}
	t.users++
	return t
}

func exit(st Store, t *turn) {
	turns.Lock()
	defer turns.Unlock()
	if t.users--; t.users == 0 {
		delete(turns.of, st)
	}
}
