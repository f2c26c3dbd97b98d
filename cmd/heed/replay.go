package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/offpolicy"
	"github.com/heedhq/heed/strategy/partition"
)

type replayCommand struct {
	Files  []string `arg:"" name:"file"`
	Agent  string   `default:"loop" placeholder:"NAME"`
	Name   string   `placeholder:"NAME"`
	Alone  bool
	DryRun bool
}

// A replayReport is what the command answers.
type replayReport struct {
	Requests     int      `json:"requests"`
	Arms         []string `json:"arms"`
	Items        int      `json:"items"`
	Texts        int      `json:"texts,omitempty"` // without an item, which a partition has divided
	Propensities string   `json:"propensities"`    // told or counted
	LeftOut      int      `json:"left_out,omitempty"`
	Sorted       bool     `json:"sorted,omitempty"` // the file was not in the order of its times
	Judged       int      `json:"judged"`           // the second half, by which policies are compared
	Policies     []policy `json:"policies"`
	Wrote        string   `json:"wrote,omitempty"`
	Learner      string   `json:"learner,omitempty"`
}

// A policy is a way of choosing, with what it earned or would have earned.
type policy struct {
	Policy string    `json:"policy"`
	Reward replayed  `json:"reward"`
	Cost   *replayed `json:"cost,omitempty"` // of a request; nil: no costs are known
}

// A replayed is a mean with its interval of 90 %. If the mean is known and not estimated, both
// bounds are nil.
type replayed struct {
	Mean float64  `json:"mean"`
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Unsteady says that parts of the log contradict each other, so that the interval says nothing.
	Unsteady bool `json:"unsteady,omitempty"`
}

// Run learns from a log.
func (cmd *replayCommand) Run(s *session) error {
	log, err := readLogs(cmd.Files)
	if err != nil {
		return err
	}
	now := time.Now()
	for i := range log {
		if log[i].at.After(now) {
			return fmt.Errorf("%s: a request of %s is in the future: correct its time", log[i].place,
				log[i].at.Format(time.RFC3339))
		}
	}
	r := &replayReport{Requests: len(log), Propensities: "counted"}
	for i := range log {
		if !slices.Contains(r.Arms, log[i].arm) {
			r.Arms = append(r.Arms, log[i].arm)
		}
	}
	byTime := func(a, b request) int { return a.at.Compare(b.at) }
	undated := func(q request) bool { return q.at.IsZero() }
	if !slices.ContainsFunc(log, undated) && !slices.IsSortedFunc(log, byTime) {
		r.Sorted = true
		slices.SortStableFunc(log, byTime)
	}
	texts, err := divide(s.ctx, log)
	if err != nil {
		return err
	}
	r.Texts = len(texts)
	if err := r.weigh(s.ctx, log, now); err != nil {
		return err
	}
	if s.DB != "" && !cmd.DryRun {
		r.Learner = cmd.learner()
		if err := cmd.write(s, r, log, texts, now); err != nil {
			return err
		}
	}
	return s.answer(r, r.print)
}

func readLogs(names []string) (log []request, err error) {
	for _, name := range names {
		in, err := openFile(name)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(in)
		_ = in.Close()
		if err != nil {
			return nil, err
		}
		part, err := readLog(name, text)
		if err != nil {
			return nil, err
		}
		log = append(log, part...)
	}
	return log, nil
}

// fewestTexts is how many texts without an item make cells.
const fewestTexts = 10

// divide gives the texts of a log that have no item one of a partition, by their form. It returns
// these texts.
func divide(ctx context.Context, log []request) (texts []string, err error) {
	for i := range log {
		q := &log[i]
		if q.divided = q.item == "" && strings.TrimSpace(q.text) != ""; q.divided {
			texts = append(texts, q.text)
		}
	}
	if len(texts) < fewestTexts {
		return nil, nil
	}
	p, err := partition.New(ctx, partition.Config{})
	if err == nil {
		err = p.Fit(ctx, texts)
	}
	for i := range log {
		if err == nil && log[i].divided {
			log[i].item, err = p.Item(ctx, log[i].text)
		}
	}
	return texts, err
}

// A student is a learner in memory that learns from past requests.
type student struct {
	*strategy.Learner
	store *memstore.Store
	now   time.Time
}

// newStudent returns a learner with some arms.
func newStudent(
	ctx context.Context, cfg strategy.Config, arms []string, now time.Time,
) (_ *student, err error) {
	st := &student{now: now}
	if st.store, err = memstore.New(memstore.Config{
		Now: func() time.Time { return now }}); err != nil {
		return nil, err
	}
	cfg.Store, cfg.Seed = st.store, rand.NewPCG(1, 2)
	cfg.Now = func() time.Time { return st.now }
	cfg.Refresh = 100 * 365 * 24 * time.Hour // no other process writes
	for _, arm := range arms {
		cfg.Arms = append(cfg.Arms, strategy.Arm{ID: strategy.ArmID(arm)})
	}
	st.Learner, err = strategy.New(ctx, cfg)
	return st, err
}

// learn takes the outcomes of requests as evidence.
func (st *student) learn(ctx context.Context, log []request) error {
	before := st.now
	defer func() { st.now = before }()
	for i := range log {
		q := &log[i]
		if st.now = q.at; q.at.IsZero() {
			st.now = before
		}
		c, err := st.Record(ctx, q.query(), strategy.ArmID(q.arm), q.propensity)
		if err == nil {
			_, err = st.Observe(ctx, strategy.Outcome{
				Choice: c, Value: 2*q.reward - 1, Confidence: 1, Channel: "replay", Cost: q.cost,
				Latency: q.latency, Tokens: q.tokens,
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", q.place, err)
		}
	}
	return nil
}

func (q *request) query() strategy.Query {
	return strategy.Query{Item: q.item, Category: q.category, Context: q.context}
}

// A cell is where a learner keeps the evidence of a request.
type cell struct{ item, category, context string }

func (q *request) cell() cell { return cell{q.item, q.category, q.context} }

// learner returns the name of the learner that is written.
func (cmd *replayCommand) learner() string {
	if cmd.Name != "" || cmd.Alone || cmd.Agent == defaultAgent {
		return cmp.Or(cmd.Name, "strategy")
	}
	return cmd.Agent + ".strategy"
}

// write fills an empty store with what is learned from all requests.
func (cmd *replayCommand) write(
	s *session, r *replayReport, log []request, texts []string, now time.Time,
) error {
	cfg := strategy.Config{Name: r.Learner}
	if !cmd.Alone {
		cfg.Answers = cmd.Agent + answerKind
	}
	st, err := newStudent(s.ctx, cfg, r.Arms, now)
	if err == nil {
		err = st.learn(s.ctx, log)
	}
	if err != nil {
		return err
	}
	if len(texts) > 0 { // the same cells once more, for the host
		clock := func() time.Time { return now }
		p, err := partition.New(s.ctx, partition.Config{Store: st.store, Now: clock})
		if err == nil {
			err = p.Fit(s.ctx, texts)
		}
		if err != nil {
			return err
		}
	}
	var dump bytes.Buffer
	if err := st.store.Dump(s.ctx, &dump); err != nil {
		return err
	}
	return s.within(true, func() error {
		r.Wrote = s.at.String()
		err := s.at.store.Load(s.ctx, &dump)
		if errors.Is(err, heed.ErrConflict) {
			return fmt.Errorf("%s is not empty: name a new store, or add --dry-run", s.at)
		}
		return err
	})
}

// weigh estimates from a log what other policies would have earned in its second half. heed learns
// from the first half, and then uses the arm with the greatest mean.
func (r *replayReport) weigh(ctx context.Context, all []request, now time.Time) error {
	log := r.logged(all)
	costly := slices.ContainsFunc(all, func(q request) bool { return q.cost > 0 })
	first, second := log[:len(log)/2], log[len(log)/2:]
	few := len(log) < 4 // too few to estimate from
	if few {
		second = log
	}
	r.Judged = len(second)
	r.Policies = append(r.Policies, asItWas(second, costly))
	if few {
		return nil
	}
	st, err := newStudent(ctx, strategy.Config{Unrecorded: true}, r.Arms, now)
	if err == nil {
		err = st.learn(ctx, first)
	}
	if err != nil {
		return err
	}
	leading := make(map[cell]string)
	for i := range second {
		q := &second[i]
		if leading[q.cell()] != "" {
			continue
		}
		beliefs, err := st.Beliefs(ctx, q.query())
		if err != nil {
			return err
		}
		best := 0
		for i := range beliefs {
			if beliefs[i].Mean() > beliefs[best].Mean() {
				best = i
			}
		}
		leading[q.cell()] = r.Arms[best]
	}
	names := append([]string{"heed"}, r.Arms...)
	for i, name := range names {
		takes := func(q *request) string { return leading[q.cell()] }
		if i > 0 {
			takes, names[i] = func(*request) string { return name }, "always "+name
		}
		p, err := estimated(names[i], second, costly, takes)
		if err != nil {
			return err
		}
		r.Policies = append(r.Policies, p)
	}
	return nil
}

// logged returns the requests that can be weighed, each with its propensity: as it was told, or if
// none was, as often as the arm was chosen for the item.
func (r *replayReport) logged(all []request) (log []request) {
	type choice struct {
		in  cell
		arm string
	}
	of, by := make(map[cell]float64), make(map[choice]float64)
	for i := range all {
		q := &all[i]
		of[q.cell()]++
		by[choice{q.cell(), q.arm}]++
		if q.propensity > 0 {
			r.Propensities = "told"
		}
	}
	r.Items = len(of)
	for _, q := range all {
		if r.Propensities == "counted" {
			q.propensity = by[choice{q.cell(), q.arm}] / of[q.cell()]
		}
		if q.propensity > 0 {
			log = append(log, q)
		}
	}
	r.LeftOut = len(all) - len(log)
	return log
}

func asItWas(log []request, costly bool) policy {
	p := policy{Policy: "as it was"}
	cost := replayed{}
	for _, q := range log {
		p.Reward.Mean += q.reward / float64(len(log))
		cost.Mean += q.cost / float64(len(log))
	}
	if costly {
		p.Cost = &cost
	}
	return p
}

// estimated is what a policy would have earned that takes one arm for each request.
func estimated(name string, log []request, costly bool, takes func(*request) string) (
	p policy, err error,
) {
	rewards, costs := make([]offpolicy.Logged, len(log)), make([]offpolicy.Logged, len(log))
	most := 0.
	for i := range log {
		most = max(most, log[i].cost)
	}
	for i := range log {
		q := &log[i]
		one := offpolicy.Logged{Propensity: q.propensity}
		if takes(q) == q.arm {
			one.Target = 1
		}
		rewards[i], costs[i] = one, one
		if rewards[i].Reward = q.reward; most > 0 {
			costs[i].Reward = q.cost / most
		}
	}
	p.Policy = name
	if p.Reward, err = interval90(rewards, 1); err == nil && costly {
		var cost replayed
		cost, err = interval90(costs, most)
		p.Cost = &cost
	}
	return p, err
}

func interval90(log []offpolicy.Logged, unit float64) (replayed, error) {
	e, err := offpolicy.SelfNormalized(log, 0.9)
	low, high := e.Low*unit, e.High*unit
	return replayed{Mean: e.Value * unit, Low: &low, High: &high, Unsteady: e.Unsteady}, err
}

func (r *replayReport) print(p *printer) {
	p.line("%v, %v, %v.", plural(r.Requests, "request", "requests"),
		plural(len(r.Arms), "arm", "arms"), plural(r.Items, "item", "items"))
	if r.Propensities == "counted" {
		p.line("Propensities are not known. They are taken from how often each item had each arm, " +
			"which is right only if the arm was chosen whatever the request was like.")
	}
	if r.Sorted {
		p.line("The requests were put in the order of their times.")
	}
	if r.Texts > 0 {
		p.line("%v without an item were divided by their form: see package strategy/partition.",
			plural(r.Texts, "text", "texts"))
	}
	if r.LeftOut > 0 {
		p.line("%v without a propensity left out of the estimates.",
			plural(r.LeftOut, "request is", "requests are"))
	}
	if len(r.Policies) > 1 {
		p.line("heed learned from the first half. All rows are about the second half, of %v. "+
			"Intervals are of 90 %%.", plural(r.Judged, "request", "requests"))
	}
	p.blank()
	t := newTable("policy", ">reward", ">low", ">high", "?>cost", "?>from", "?>to")
	var unsteady []string
	for _, of := range r.Policies {
		cells := []any{of.Policy}
		for _, x := range []*replayed{&of.Reward, of.Cost} {
			write := func(x float64) plain { return say("%v", x) }
			if x == of.Cost {
				write = amount
			}
			mean, low, high := plain("-"), plain("-"), plain("-")
			if x != nil {
				mean = write(x.Mean)
			}
			if x != nil && x.Low != nil {
				low, high = write(*x.Low), write(*x.High)
			}
			if cells = append(cells, mean, low, high); x != nil && x.Unsteady {
				unsteady = append(unsteady, of.Policy)
			}
		}
		t.add(cells...)
	}
	t.print(p)
	if len(unsteady) > 0 {
		p.note(say("Parts of the log contradict each other about %v. An arm changed meanwhile, or the "+
			"log is not in the order of the choices. The widest intervals say nothing.",
			slices.Compact(unsteady)))
	}
	if r.Wrote != "" {
		p.note(say("Wrote %v: the learner is %v, with the arms %v.", r.Wrote, r.Learner, r.Arms))
	}
}
