package lives

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// person names people such that learning counts them all: each has a place of their own there.
func person(n int) string { return fmt.Sprint("person ", n) }

// packages is the mind that packages learning and decision make, with all at its default.
type packages struct {
	store    store.Store
	learning *learning.Module
	decide   *decision.Decider
	model    decision.LLM
	now      time.Time
	between  time.Duration // two events
	events   int
	says     string // the model's next answer
	path     decision.Path
}

const (
	action    = "Restart the service and tell the people on call."
	otherwise = "Look for a full disk; rotate its logs."
)

func newPackages(t *testing.T, between time.Duration) *packages {
	t.Helper()
	return newPackagesOver(t, between, learning.Config{})
}

func newPackagesOver(t *testing.T, between time.Duration, cfg learning.Config) *packages {
	t.Helper()
	ctx := context.Background()
	p := &packages{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), between: between}
	now := func() time.Time { return p.now }
	st, err := memstore.New(memstore.Config{Now: now})
	require.NoError(t, err)
	p.store, cfg.Store, cfg.Now = st, st, now
	p.learning, err = learning.New(ctx, cfg)
	require.NoError(t, err)
	_, err = p.learning.Put(ctx, learning.Heuristic{ID: "h", Condition: "The service hangs.",
		Action: action})
	require.NoError(t, err)
	p.model = decision.LLMFunc(func(
		context.Context, decision.LLMRequest,
	) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: p.says}, nil
	})
	p.decide, err = decision.New(ctx, decision.Config{Store: st, Now: now})
	require.NoError(t, err)
	return p
}

func (p *packages) confidence() (float64, error) {
	s, err := p.learning.Standings(context.Background(), "h")
	return s["h"].Confidence, err
}

func (p *packages) event() string { return "event " + strconv.Itoa(p.events) }

func (p *packages) answers(e *event) (bool, error) {
	ctx := context.Background()
	confidence, err := p.confidence()
	if err != nil {
		return false, err
	}
	p.events++
	if p.says = otherwise; e.agrees() {
		p.says = action
	}
	r := decision.Request{
		EventID: p.event(), Text: "The service hangs.",
		Candidates: []decision.Candidate{{
			HeuristicID: "h", Condition: "The service hangs.", Action: action, Confidence: confidence,
		}},
	}
	result, trusted := p.decide.Trusted(r)
	if !trusted {
		ask, err := p.decide.Ask(r)
		if err != nil {
			return false, err
		}
		if result, err = p.decide.Reply(ctx, r, ask, p.model); err != nil {
			return false, err
		}
	}
	p.path = result.Path
	return trusted, p.fire(ctx, r, result, person(e.person))
}

// fire records an answer and its trace in one commit.
func (p *packages) fire(
	ctx context.Context, r decision.Request, result decision.Result, person string,
) error {
	shown := answer.Answer{ID: r.EventID, At: p.now, Person: person, Session: r.EventID}
	view := p.learning.Steps().Answers()
	return store.Do(ctx, p.store, func(tx *store.Tx) error {
		made := shown
		if err := p.decide.TraceIn(tx, r, &result); err != nil {
			return err
		}
		err := p.learning.FireIn(tx, &made, learning.Fire{
			HeuristicID: result.CreditID, Compared: result.Compared,
		})
		view.Put(tx, made, 0)
		return err
	})
}

func (p *packages) hears(e *event, said float64) error {
	ctx := context.Background()
	if said != 0 {
		j := learning.Judgement{
			EventID: p.event(), Person: person(e.person), Value: said,
			At: p.now.Add(5 * time.Second),
		}
		if p.path == decision.Heuristic {
			j.HeuristicID = "h"
		}
		if _, err := p.learning.Judge(ctx, j); err != nil {
			return err
		}
	}
	p.now = p.now.Add(p.between)
	return p.learning.Sweep(ctx, p.now)
}

// both plays a book and the packages side by side.
type both struct {
	t        *testing.T
	book     *book
	packages *packages
}

func (b *both) answers(e *event) (bool, error) {
	known, err := b.packages.confidence()
	require.NoError(b.t, err)
	require.InDelta(b.t, b.book.confidence(), known, 1e-9, "after %d events", b.packages.events)
	own, err := b.packages.answers(e)
	require.NoError(b.t, err)
	require.Equal(b.t, math.Round(known*1e9)/1e9 >= threshold, own)
	return own, err
}

func (b *both) hears(e *event, said float64) error {
	require.NoError(b.t, b.book.hears(e, said))
	return b.packages.hears(e, said)
}

// TestThePackagesDoWhatTheArithmeticSays holds the program's arithmetic, and its defaults, to
// packages learning and decision: the same confidence after each event, and the same decisions.
func TestThePackagesDoWhatTheArithmeticSays(t *testing.T) {
	t.Parallel()
	for _, c := range append(starts(), quiet.team(), complaining.team()) {
		for i, sub := range []subject{good, bad, letIn, turning} {
			between := []time.Duration{time.Minute, time.Hour}[i%2]
			_, err := play(&both{t, defaults.open(c.people), newPackages(t, between)}, &c, &sub, 120,
				uint64(i))
			require.NoError(t, err)
		}
	}
}
