package databases

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

const (
	answersBar = "answers that differ"
	statesBar  = "exported states that differ"
	orderBar   = "states that depend on order, repetition or batches"
)

func agreeLine() card.Line {
	bars := []card.Bar{card.AtMost(answersBar, 0), card.AtMost(statesBar, 0)}
	run := func(forgetful bool, short, long int) card.Attempt {
		return func(ctx context.Context, s card.Settings) (card.Result, error) {
			return livesAgree(ctx, s, forgetful, card.Pick(s, short, long))
		}
	}
	return card.Line{
		Name:    "Stores agree",
		Promise: "Memory, SQLite and PostgreSQL give the same answers and hold the same, after any life of a learner and any restarts.",
		Attack: "Random lives of a learner: choices, outcomes, revisions, retractions, resets, people forgotten, sources expunged, sessions ended, sweeps, and " +
			"clocks that are off by an hour, a day or years for a while. Each store is opened again at places of its own. All answers and exported states are compared.",
		Short:    card.Form{Bars: bars, Work: 1400, Faults: 80, Budget: 8 * time.Minute},
		Long:     card.Form{Bars: bars, Work: 12_000, Faults: 500, Budget: 60 * time.Minute},
		Run:      run(false, 6, 50),
		Controls: []card.Control{{Name: "a store that keeps the old history at a revision", Run: run(true, 2, 2)}},
	}
}

// A deed is one thing in a life. It is drawn before anybody lives it, so that all stores live the same.
type deed struct {
	verb          string
	session, item string
	choice        int // which choice, of those that were made
	id, old       string
	value         float64
	person        string
	after         time.Duration // how much time goes by
	skew          time.Duration // by how much the clock is off
}

var skews = []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, 3 * 365 * 24 * time.Hour, -3 * 365 * 24 * time.Hour}

// drawLife draws a life.
func drawLife(rng *rand.Rand, length int) (life []deed) {
	verbs := []string{"select", "select", "select", "observe", "observe", "observe", "observe", "revise", "revise", "retract", "reset", "reset source", "forget", "expunge", "end", "sweep"}
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	skewed := 0
	for range length {
		d := deed{
			verb: verbs[rng.IntN(len(verbs))], session: fmt.Sprint("session ", rng.IntN(8)), item: pick(items...), choice: rng.IntN(1 << 20),
			id: pick("", "first", "second", "third"), old: pick("", "first", "second", "third"), value: float64(rng.IntN(9)-4) / 4,
			person: pick("ann", "bob", "cleo"), after: time.Duration(rng.IntN(40)) * time.Minute,
		}
		if skewed > 0 {
			skewed--
			d.skew = life[len(life)-1].skew
		} else if rng.IntN(12) == 0 {
			skewed, d.skew = rng.IntN(3), skews[rng.IntN(len(skews))]
		}
		life = append(life, d)
	}
	return life
}

// A being is a store in which a life is lived, with the learner over it.
type being struct {
	name  string
	open  func(context.Context, *being) error
	store interface {
		store.Store
		Dump(ctx context.Context, to io.Writer) error
	}
	forgetful bool
	handle    *sql.DB
	learner   *strategy.Learner
	choices   []strategy.Choice
	time      time.Time // by the right clock
	skew      time.Duration
	ids       uint32
}

func (b *being) now() time.Time { return b.time.Add(b.skew) }

// close closes the handle of a being that has one.
func (b *being) close() error {
	if b.handle == nil {
		return nil
	}
	return b.handle.Close()
}

// begin opens the learner over the store.
func (b *being) begin(ctx context.Context) (err error) {
	if err := b.open(ctx, b); err != nil {
		return err
	}
	var st store.Store = b.store
	if b.forgetful {
		st = keeping{b.store}
	}
	b.learner, err = strategy.New(ctx, strategy.Config{
		Store: st, Arms: []strategy.Arm{{ID: "x"}, {ID: "y"}, {ID: "z"}}, BySource: true, HalfLife: 240 * time.Hour, Seed: rand.NewPCG(1, 2), Now: b.now,
		Silence: strategy.Silence{After: 5 * time.Hour, Confidence: 0.5}, Refresh: 1, // or else a belief may be older in one that was not opened again
		NewID: func() strategy.ChoiceID {
			b.ids++
			return strategy.ChoiceID{12: byte(b.ids >> 24), 13: byte(b.ids >> 16), 14: byte(b.ids >> 8), 15: byte(b.ids)}
		},
	})
	for _, item := range items { // a learner that has not asked for an item does not know that it was reset
		if err == nil {
			_, err = b.learner.Beliefs(ctx, strategy.Query{Item: item})
		}
	}
	return err
}

var items = []string{"a", "b", "c"}

// keeping is a store with one fault: where outcomes take the place of others, the others stay.
type keeping struct{ store.Store }

func (k keeping) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	for i := range batches {
		if b := &batches[i]; len(b.Observations) > 0 {
			b.Retract, b.Withdraw = nil, nil
		}
	}
	return k.Store.Commit(ctx, batches...)
}

// beings opens a new store of each sort.
func (s *site) beings(ctx context.Context) (all []*being, err error) {
	began := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	const long = 40 * 365 * 24 * time.Hour
	memory := &being{name: "memory", time: began}
	kept, err := memstore.New(memstore.Config{Now: memory.now, HistoryPerCell: 10_000, HistoryFor: long, IDsFor: long})
	if err != nil {
		return nil, err
	}
	memory.open = func(context.Context, *being) error { memory.store = kept; return nil }
	all = append(all, memory)
	for _, engine := range []string{modernc, ncruces, postgres} {
		at, err := s.place(ctx, engine)
		if err != nil {
			return nil, err
		}
		b := &being{name: engine, time: began}
		b.open = func(ctx context.Context, b *being) error {
			if err := b.close(); err != nil {
				return err
			}
			st, handle, err := at.store(ctx, sqlstore.Config{Now: b.now, HistoryPerCell: 10_000, HistoryFor: long, IDsFor: long})
			b.store, b.handle = st, handle
			return err
		}
		all = append(all, b)
	}
	return all, nil
}

// livesAgree lives random lives in all stores. Work counts deeds of a store, and faults those with a wrong clock and new openings.
func livesAgree(ctx context.Context, s card.Settings, forgetful bool, lives int) (result card.Result, err error) {
	different, states := 0, 0
	for n := range lives {
		one, two, err := liveOnce(ctx, s, n, forgetful, &result)
		if err != nil {
			return result, fmt.Errorf("life %d: %w", n, err)
		}
		different += one
		states += two
	}
	result.Values = map[string]float64{answersBar: float64(different), statesBar: float64(states)}
	return result, nil
}

func liveOnce(ctx context.Context, s card.Settings, n int, forgetful bool, result *card.Result) (different, states int, err error) {
	where, err := newSite()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, where.close()) }()
	all, err := where.beings(ctx)
	if err != nil {
		return 0, 0, err
	}
	for i, b := range all {
		b.forgetful = forgetful && i == 1
		if err := b.begin(ctx); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", b.name, err)
		}
		defer b.close() //nolint:errcheck // it is removed
	}
	rng := s.Rand(n)
	for i, d := range drawLife(rng, 60) {
		var want string
		for k, b := range all {
			if rng.IntN(15) == 0 {
				result.Faults++
				if err := b.begin(ctx); err != nil {
					return different, states, fmt.Errorf("%s is opened again: %w", b.name, err)
				}
			}
			if d.skew != 0 {
				result.Faults++
			}
			result.Work++
			got := b.live(ctx, d)
			if k == 0 {
				want = got
			} else if got != want {
				different++
				result.Note("life %d, deed %d, %+v: %s: %s, and not %s", n, i, d, b.name, got, want)
			}
		}
		if ctx.Err() != nil {
			return different, states, ctx.Err()
		}
		if i%20 != 19 {
			continue
		}
		texts := make([][]string, len(all))
		for k, b := range all {
			if texts[k], err = exported(ctx, b.store); err != nil {
				return different, states, fmt.Errorf("%s: %w", b.name, err)
			}
		}
		for k := range all {
			if difference := alike(texts[0], texts[k]); difference != "" {
				states++
				result.Note("life %d, after deed %d: %s: %s", n, i, all[k].name, difference)
			}
		}
	}
	return different, states, nil
}

// live does a deed and returns what came of it.
func (b *being) live(ctx context.Context, d deed) string {
	b.time, b.skew = b.time.Add(d.after), d.skew
	said, err := b.do(ctx, d)
	if failure := b.store.Sweep(ctx, time.Time{}); failure != nil {
		said += " sweep: " + failure.Error()
	}
	return said + " " + sortOf(err)
}

func (b *being) do(ctx context.Context, d deed) (string, error) {
	var c strategy.Choice
	if len(b.choices) > 0 {
		c = b.choices[d.choice%len(b.choices)]
	}
	o := strategy.Outcome{Choice: c, ID: d.id, Value: d.value, Confidence: 1, Source: d.person}
	switch {
	case d.verb == "select" || len(b.choices) == 0:
		c, err := b.learner.Select(ctx, strategy.Query{Session: d.session, Item: d.item})
		if err == nil {
			b.choices = append(b.choices, c)
		}
		return fmt.Sprint(c.ID, c.Arm, c.At, c.Fallback()), err
	case d.verb == "observe":
		did, err := b.learner.Observe(ctx, o)
		return string(did), err
	case d.verb == "revise":
		did, err := b.learner.Revise(ctx, []string{d.old}, []strategy.Outcome{o}, d.person)
		return fmt.Sprint(did), err
	case d.verb == "retract":
		return "", b.learner.Retract(ctx, c, []string{d.old}, d.person, "a mistake")
	case d.verb == "reset":
		return "", b.learner.Reset(ctx, strategy.Reset{Item: d.item, Actor: d.person, Reason: "it is new"})
	case d.verb == "reset source":
		return "", b.learner.Reset(ctx, strategy.Reset{Source: d.person, Actor: "ops", Reason: "a bot"})
	case d.verb == "end":
		return "", b.learner.EndSession(ctx, d.session)
	case d.verb == "sweep":
		return "", b.learner.Sweep(ctx, time.Time{})
	}
	batch := store.Batch{Expunge: []string{d.person}}
	if d.verb == "forget" {
		batch = store.Batch{Forget: []string{d.person}}
	}
	_, err := b.store.Commit(ctx, batch)
	if err == nil {
		err = b.learner.Refresh(ctx)
	}
	return "", err
}

// sortOf says what sort of error it is: stores word them each in their way.
func sortOf(err error) string {
	for name, is := range map[string]error{
		"conflict": heed.ErrConflict, "not found": heed.ErrNotFound, "forgotten": evidence.ErrForgotten, "full": evidence.ErrFull,
	} {
		if errors.Is(err, is) {
			return name
		}
	}
	var input *heed.InputError
	switch {
	case errors.As(err, &input):
		return "input " + input.Field
	case err != nil:
		return err.Error()
	}
	return ""
}

var (
	fractions = regexp.MustCompile(`-?\d+\.\d+(?:e[-+]?\d+)?`)
	noted     = regexp.MustCompile(`"(?:recorded|revision|seq)":\d+,?`)
	unnamed   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|forgotten-[0-9a-zA-Z_-]+`)
)

// exported returns the rows of a dump in order, without what stores may choose: revisions, the last digits of sums, and random names.
func exported(ctx context.Context, st interface {
	Dump(ctx context.Context, to io.Writer) error
}) ([]string, error) {
	var out bytes.Buffer
	if err := st.Dump(ctx, &out); err != nil {
		return nil, err
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	rows = slices.DeleteFunc(rows[1:len(rows)-1], func(row string) bool {
		return strings.HasPrefix(row, `{"kind":{"Name":"stream.inbox"`) // only databases have inboxes
	})
	for i, row := range rows {
		row = unnamed.ReplaceAllString(noted.ReplaceAllString(row, ""), "#")
		rows[i] = fractions.ReplaceAllStringFunc(row, func(number string) string {
			f, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return number
			}
			return strconv.FormatFloat(f, 'g', 9, 64)
		})
	}
	slices.Sort(rows)
	return rows, nil
}

// alike returns the first rows that differ. An id that is random has another hash in each store: there must be as many.
func alike(want, got []string) string {
	onlyWant, onlyGot := without(want, got), without(got, want)
	if len(onlyWant) != len(onlyGot) {
		return fmt.Sprintf("%d rows, not %d: %.500v, not %.500v", len(got), len(want), onlyGot, onlyWant)
	}
	for i := range onlyWant {
		if !strings.HasPrefix(onlyWant[i], `{"id":`) || !strings.HasPrefix(onlyGot[i], `{"id":`) {
			return fmt.Sprintf("%.500s, not %.500s", onlyGot[i], onlyWant[i])
		}
	}
	return ""
}

// without returns the rows that others do not have.
func without(rows, others []string) (only []string) {
	count := make(map[string]int)
	for _, row := range others {
		count[row]++
	}
	for _, row := range rows {
		if count[row]--; count[row] < 0 {
			only = append(only, row)
		}
	}
	return only
}

func orderLine() card.Line {
	bars := []card.Bar{card.AtMost(orderBar, 0)}
	run := func(careless bool) card.Attempt {
		return func(ctx context.Context, s card.Settings) (card.Result, error) {
			return orders(ctx, s, careless, card.Pick(s, 4, 40))
		}
	}
	return card.Line{
		Name:    "Any order",
		Promise: "The order, the repetition and the batching of outcomes change nothing.",
		Attack: "The same outcomes are shuffled, delivered again and cut into batches anew, in memory, SQLite and PostgreSQL. All must export the same as one " +
			"store that got them once and in order.",
		Short: card.Form{Bars: bars, Work: 4 * 3 * 3 * 100, Faults: 1, Budget: 4 * time.Minute},
		Long:  card.Form{Bars: bars, Work: 40 * 3 * 3 * 100, Faults: 1, Budget: 30 * time.Minute},
		Run:   run(false), Controls: []card.Control{{Name: "each delivery has an id of its own", Run: card.Brief(run(true))}},
	}
}

// orders commits the same outcomes in many orders. Work counts the outcomes, and faults what was delivered again.
func orders(ctx context.Context, s card.Settings, careless bool, rounds int) (result card.Result, err error) {
	wrong := 0
	for round := range rounds {
		rng := s.Rand(round)
		var outcomes []evidence.Observation
		for i := range 100 {
			outcomes = append(outcomes, evidence.Observation{
				ID: fmt.Sprint(i), Cell: evidence.Cell{Kind: "arm", Scope: "s", Item: fmt.Sprint(rng.IntN(4)), Name: "n"}, Source: fmt.Sprint("p", rng.IntN(3)),
				Reward: float64(rng.IntN(65)) / 64, Weight: float64(rng.IntN(65)) / 64, At: fixedNow.Add(-time.Duration(rng.IntN(1e6)) * time.Second),
			})
		}
		want, err := ordered(ctx, s, "memory", nil, outcomes, false)
		if err != nil {
			return result, err
		}
		for _, engine := range []string{"memory", modernc, postgres} {
			for range 3 {
				got, err := ordered(ctx, s, engine, rng, outcomes, careless)
				if err != nil {
					return result, err
				}
				result.Work += int64(len(outcomes))
				result.Faults++
				if difference := alike(want, got); difference != "" {
					wrong++
					result.Note("round %d, %s: %s", round, engine, difference)
				}
			}
		}
	}
	result.Values = map[string]float64{orderBar: float64(wrong)}
	return result, nil
}

// ordered exports a store that got the outcomes, in an order, with repetitions and in batches that the randomness says.
func ordered(ctx context.Context, s card.Settings, engine string, rng *rand.Rand, outcomes []evidence.Observation, careless bool) (rows []string, err error) {
	where, err := newSite()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, where.close()) }()
	clock := func() time.Time { return fixedNow }
	var st interface {
		store.Store
		Dump(ctx context.Context, to io.Writer) error
	}
	if engine == "memory" {
		st, err = memstore.New(memstore.Config{Now: clock})
	} else {
		var p place
		if p, err = where.place(ctx, engine); err == nil {
			var handle *sql.DB
			if st, handle, err = p.store(ctx, sqlstore.Config{Now: clock}); err == nil {
				defer handle.Close() //nolint:errcheck // it is removed
			}
		}
	}
	if err != nil {
		return nil, err
	}
	all := slices.Clone(outcomes)
	if rng != nil {
		for range len(outcomes) {
			all = append(all, outcomes[rng.IntN(len(outcomes))])
		}
		rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	}
	for i := range all {
		if careless {
			all[i].ID = fmt.Sprint("delivery ", i)
		}
	}
	policies := map[string]evidence.Policy{"arm": {HalfLife: time.Hour * 1000, ByOrigin: true}}
	for len(all) > 0 {
		n := len(all)
		if rng != nil {
			n = 1 + rng.IntN(min(len(all), 40))
		}
		if _, err := st.Commit(ctx, store.Batch{Policies: policies, Observations: all[:n]}); err != nil {
			return nil, err
		}
		all = all[n:]
	}
	return exported(ctx, st)
}
