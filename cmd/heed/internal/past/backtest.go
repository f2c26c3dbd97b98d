package past

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A Backtest is what heed would have chosen in a log, and what that would have been worth.
type Backtest struct {
	Rows int `json:"rows"` // that the method uses
	Left int `json:"left"` // rows without an outcome, or without the propensity that the method needs
	// Method is Replay or OffPolicy, or "" if the log shows no result. Then Unknown has the reason.
	Method  string `json:"method,omitempty"`
	Unknown string `json:"unknown,omitempty"`
	// Heed is the mean worth, in [0, 1], of what heed would have chosen, Log of what was chosen, and
	// Gain the difference. A replay has no Log: it compares with the best single arm.
	Heed  Worth            `json:"heed"`
	Log   Worth            `json:"log,omitzero"`
	Gain  Worth            `json:"gain"`
	Best  string           `json:"best,omitempty"` // the arm that Gain is relative to, of a replay
	Arms  map[string]Worth `json:"arms"`           // of always choosing one arm
	Share map[string]Share `json:"shares"`
}

// The methods.
const (
	Replay    = "replay"     // every row has the worth of all arms
	OffPolicy = "off-policy" // doubly robust, by the probabilities with which arms were chosen
)

// A Share is how often an arm was chosen.
type Share struct {
	Log  float64 `json:"log"`
	Heed float64 `json:"heed"`
}

// A Worth is a mean with its 90 % interval.
type Worth struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Unknown is why the log shows no result. Then the interval is the whole range.
	Unknown string `json:"unknown,omitempty"`
}

const (
	quantile     = 1.6448536269514722 // of the normal distribution, for 90 %
	minRows      = 100                // with fewer, there is no result
	minEffective = 50                 // rows that the weights are worth
	maxArms      = 100
)

// A mean adds up terms, and the squares of the weights that they had.
type mean struct{ n, mean, squares, weights, weightSquares, most float64 }

func (m *mean) add(x, weight float64) {
	m.n++
	delta := x - m.mean // Welford's update (1962)
	m.mean += delta / m.n
	m.squares += delta * (x - m.mean)
	m.weights += weight
	m.weightSquares += weight * weight
	m.most = max(m.most, weight*weight)
}

// worth returns the mean with its interval. Each term has an expectation given the rows before it,
// so the central limit theorem of martingales holds for the sum, also of a policy that learns. It
// needs many terms, as [plan] demands, each with little of the variance.
func (m *mean) worth(low, high float64) Worth {
	w := Worth{Mean: m.mean, Low: low, High: high}
	switch {
	case m.weightSquares == 0:
		w.Unknown = "the log has no such choice"
	case m.weights*m.weights/m.weightSquares < minEffective || m.most > 0.1*m.weightSquares:
		w.Unknown = fmt.Sprintf("the log is worth only %.0f rows about this, and %d are needed",
			m.weights*m.weights/m.weightSquares, minEffective)
	default:
		half := quantile * math.Sqrt(m.squares/(m.n-1)/m.n)
		w.Low, w.High = max(low, m.mean-half), min(high, m.mean+half)
	}
	w.Mean = min(max(w.Mean, w.Low), w.High)
	return w
}

// A trial is a learner on its way through a log.
type trial struct {
	*strategy.Learner
	now             time.Time
	arms            []strategy.Arm
	of              map[string]*armTrial
	heed, log, gain mean
	p               map[string]float64 // with which the arms would be chosen for the last row
}

// An armTrial is what is known of an arm of a trial.
type armTrial struct {
	always         mean    // of choosing it for each row
	ahead          mean    // of a replay: what heed's choice is worth less this arm
	chosen, logged float64 // how often heed and the log chose it
}

// Test runs a learner with heed's defaults through a log. read yields the log, and is called twice.
// The randomness is drawn from the seed. Rows are taken in the order of the log, which should be
// the order of their times.
func Test(ctx context.Context, seed uint64, read func() iter.Seq2[Row, error]) (Backtest, error) {
	b, arms, err := plan(read())
	if err != nil || b.Unknown != "" {
		return b, err
	}
	t, err := open(ctx, seed, arms)
	if err != nil {
		return b, err
	}
	n := 0
	for row, err := range read() {
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			continue
		} else if err != nil {
			return b, err
		}
		n++
		if x, ok := b.takes(&row); ok {
			err = t.step(ctx, &row, x, n)
		}
		if err != nil {
			return b, fmt.Errorf("%s: %w", row.At, err)
		}
	}
	t.report(&b)
	return b, nil
}

// takes reports whether the method uses a row, and what its answer was worth.
func (b *Backtest) takes(row *Row) (x float64, ok bool) {
	if b.Method == Replay || len(row.Values) > 0 {
		return 0, b.Method == Replay && len(row.Values) > 0
	}
	x, ok = worthOf(row)
	return x, ok && row.Arm != "" && row.Propensity > 0
}

// plan looks which method the log permits.
func plan(rows iter.Seq2[Row, error]) (b Backtest, arms []string, err error) {
	single, every := make(map[string]int), make(map[string]int)
	var known, drawn, whole, all int
	for row, err := range rows {
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			continue
		} else if err != nil {
			return b, nil, err
		}
		all++
		if len(row.Values) > 0 {
			whole++
			for arm := range row.Values {
				every[arm]++
			}
		} else if _, ok := worthOf(&row); ok && row.Arm != "" {
			known++
			if row.Propensity > 0 {
				drawn++
				single[row.Arm]++
			}
		}
	}
	incomplete := slices.ContainsFunc(slices.Collect(maps.Values(every)), func(n int) bool {
		return n < whole
	})
	used := drawn
	switch {
	case whole > known && !incomplete:
		b.Method, used, single = Replay, whole, every
	case whole > known:
		b.Unknown = "some rows lack what one of the arms was worth, so heed's choice can't be looked up"
	case known == 0:
		b.Unknown = "no row says which arm answered and how that turned out"
	case drawn == 0:
		b.Unknown = "no row has the probability with which its arm was chosen, and what the other " +
			"arms would have been worth is not in the log: choose at random for a while, and log the " +
			"probability as propensity"
	default:
		b.Method = OffPolicy
	}
	arms = slices.Sorted(maps.Keys(single))
	if b.Rows, b.Left = used, all-used; b.Unknown == "" {
		switch {
		case len(arms) < 2:
			b.Unknown = "the log has one arm alone"
		case len(arms) > maxArms:
			b.Unknown = fmt.Sprintf("the log has %d arms, and at most %d can be tested",
				len(arms), maxArms)
		case used < minRows:
			b.Unknown = fmt.Sprintf("there are %d rows, and %d are needed", used, minRows)
		}
	}
	if b.Unknown != "" {
		b.Method = ""
	}
	return b, arms, nil
}

// worthOf returns how an answer turned out, in [0, 1], as it would count for its arm.
func worthOf(row *Row) (float64, bool) {
	a := answer.Answer{At: row.Event.At}
	for _, r := range row.Reactions {
		answers.Say(&a, answer.Statement{By: r.Person, Channel: "user_explicit", Value: r.Value})
	}
	for _, o := range row.Outcomes {
		answers.Say(&a, answer.Statement{
			How: answers.Outcome, By: o.Source, Channel: "reported", Value: *o.Reward})
	}
	x, _, known := answers.WorthOf(&a)
	return (x + 1) / 2, known
}

func open(ctx context.Context, seed uint64, names []string) (t *trial, err error) {
	t = &trial{now: time.Unix(0, 0), of: make(map[string]*armTrial)}
	now := func() time.Time { return t.now }
	st, err := memstore.New(memstore.Config{Now: now, Retention: store.Retention{HistoryPerCell: 1}})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t.arms = append(t.arms, strategy.Arm{ID: strategy.ArmID(name)})
		t.of[name] = &armTrial{}
	}
	t.Learner, err = strategy.New(ctx, strategy.Config{
		Store: st, Arms: t.arms, Now: now, Seed: rand.NewPCG(seed, 1), Unrecorded: true})
	return t, err
}

// draws is how many choices are drawn for a row. Their shares have the mean of the probabilities
// with which heed would choose, and take less time than those.
const draws = 8

// ask draws what the learner would choose. It returns the first arm, the share of each, and what
// the learner expects each to be worth.
func (t *trial) ask(ctx context.Context, q strategy.Query) (
	first string, p, expected map[string]float64, _ error,
) {
	key := q.Key
	p, expected = make(map[string]float64), make(map[string]float64)
	for i := range draws {
		if q.Frozen = true; i > 0 {
			q.Key = fmt.Sprint(key, "/", i)
		}
		choice, err := t.Select(ctx, q)
		if err != nil {
			return "", nil, nil, err
		}
		if i == 0 {
			first = string(choice.Arm)
			for _, d := range choice.Record().Draws {
				expected[string(d.Arm)] = d.Belief.Mean()
			}
		}
		p[string(choice.Arm)] += 1. / draws
	}
	return first, p, expected, nil
}

// learn credits an arm with what it was worth.
func (t *trial) learn(
	ctx context.Context, q strategy.Query, row *Row, arm string, propensity, x float64,
) error {
	choice, err := t.Record(ctx, q, strategy.ArmID(arm), propensity)
	if err != nil {
		return err
	}
	_, err = t.Observe(ctx, strategy.Outcome{
		Choice: choice, Value: 2*x - 1, Confidence: 1, Source: row.Event.Person, At: t.now})
	return err
}

// step has the learner choose for a row, and learn from it. Where the worth of all arms is known,
// it is looked up. Otherwise each arm has the worth that the learner expects, and the arm that
// answered is corrected by the weighed error of this (Dudík, Langford and Li 2011).
func (t *trial) step(ctx context.Context, row *Row, x float64, n int) error {
	if at := row.Event.At; at.After(t.now) {
		t.now = at
	}
	q := strategy.Query{
		Key: fmt.Sprint(n), Item: row.Event.Item, Category: row.Event.Domain,
		Context: row.Event.Context}
	arm, p, worth, err := t.ask(ctx, q)
	if err != nil {
		return err
	}
	t.p = p
	propensity, weight := p[arm], 1.
	weights := make(map[string]float64)
	if len(row.Values) > 0 {
		for a := range row.Values {
			worth[a], weights[a] = (row.Values[a]+1)/2, 1
		}
		x = worth[arm]
	} else {
		arm, propensity = row.Arm, row.Propensity
		worth[arm] += (x - worth[arm]) / propensity
		weight, weights[arm] = p[arm]/propensity, 1/propensity
		t.log.add(x, 1)
		t.of[arm].logged++
	}
	heed := 0.
	for _, a := range t.arms { // in order, so that rounding is the same each time
		heed += p[string(a.ID)] * worth[string(a.ID)]
	}
	t.heed.add(heed, weight)
	t.gain.add(heed-x, weight)
	for name, a := range t.of {
		a.chosen += p[name]
		a.always.add(worth[name], weights[name])
		a.ahead.add(heed-worth[name], 1)
	}
	return t.learn(ctx, q, row, arm, propensity, x)
}

func (t *trial) report(b *Backtest) {
	b.Heed, b.Log, b.Gain = t.heed.worth(0, 1), t.log.worth(0, 1), t.gain.worth(-1, 1)
	b.Arms, b.Share = make(map[string]Worth), make(map[string]Share)
	best := math.Inf(-1)
	for _, a := range t.arms {
		name, of := string(a.ID), t.of[string(a.ID)]
		b.Arms[name] = of.always.worth(0, 1)
		b.Share[name] = Share{of.logged / float64(b.Rows), of.chosen / float64(b.Rows)}
		if b.Method == Replay && of.always.mean > best {
			best, b.Best, b.Gain = of.always.mean, name, of.ahead.worth(-1, 1)
		}
	}
	if b.Method == Replay {
		b.Log = Worth{}
	}
}
