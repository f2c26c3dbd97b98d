package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/cmd/heed/internal/past"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/partition"
)

type replayCommand struct {
	Files  []string `arg:"" name:"file"`
	Agent  string   `default:"loop" placeholder:"NAME"`
	Name   string   `placeholder:"NAME"`
	Alone  bool
	DryRun bool
}

// Run learns from a log.
func (cmd *replayCommand) Run(s *session) error {
	table := &past.Table{}
	for _, name := range cmd.Files {
		if err := readPast(table, name); err != nil {
			return err
		}
	}
	now := time.Now()
	for _, q := range table.Requests {
		if q.At.After(now) {
			return fmt.Errorf("a request of %s is in the future: correct its time",
				q.At.Format(time.RFC3339))
		}
	}
	sorted := inOrder(table)
	divided, err := divide(s.ctx, table)
	if err != nil {
		return err
	}
	report, err := weigh(s.ctx, table, now)
	if err != nil {
		return err
	}
	report.Texts, report.Sorted = divided, sorted
	if s.DB != "" && !cmd.DryRun {
		if report.Wrote, err = cmd.write(s, table, now); err != nil {
			return err
		}
		report.Learner = cmd.learner()
	}
	return s.answer(report, report.print)
}

// inOrder puts the requests of a log in the order of their times, if all have one. It reports
// whether they were in another order.
func inOrder(table *past.Table) bool {
	byTime := func(a, b past.Request) int { return a.At.Compare(b.At) }
	undated := func(q past.Request) bool { return q.At.IsZero() }
	if slices.ContainsFunc(table.Requests, undated) || slices.IsSortedFunc(table.Requests, byTime) {
		return false
	}
	slices.SortStableFunc(table.Requests, byTime)
	return true
}

func readPast(table *past.Table, name string) error {
	in, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no file %s: check its name", name)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	return table.Read(name, in)
}

// student is a learner in memory that learns from past requests.
type student struct {
	*strategy.Learner
	store *memstore.Store
	now   time.Time
}

// newStudent returns a learner with the arms of a table. It keeps sources apart, because package
// loop does so by default. Then an agent can open its store.
func newStudent(
	ctx context.Context, cfg strategy.Config, arms []string, now time.Time,
) (_ *student, err error) {
	st := &student{now: now}
	if st.store, err = memstore.New(memstore.Config{Now: func() time.Time { return now }}); err != nil {
		return nil, err
	}
	cfg.Store, cfg.BySource, cfg.Seed = st.store, true, rand.NewPCG(1, 2)
	cfg.Now = func() time.Time { return st.now }
	cfg.Refresh = 100 * 365 * 24 * time.Hour // no other process writes
	for _, arm := range arms {
		cfg.Arms = append(cfg.Arms, strategy.Arm{ID: strategy.ArmID(arm)})
	}
	st.Learner, err = strategy.New(ctx, cfg)
	return st, err
}

func queryOf(q *past.Request) strategy.Query {
	return strategy.Query{Item: q.Item, Category: q.Category, Context: q.Context}
}

// learn takes the outcome of a request as evidence.
func (st *student) learn(ctx context.Context, q *past.Request) error {
	before := st.now
	defer func() { st.now = before }()
	if !q.At.IsZero() {
		st.now = q.At
	}
	c, err := st.Record(ctx, queryOf(q), strategy.ArmID(q.Arm), q.Propensity)
	if err != nil {
		return err
	}
	_, err = st.Observe(ctx, strategy.Outcome{
		Choice: c, Value: 2*q.Reward - 1, Confidence: 1, Channel: "replay", Cost: q.Cost,
		Latency: q.Latency, Tokens: q.Tokens,
	})
	return err
}

// fewestTexts is how many texts without an item make cells.
const fewestTexts = 10

// divide gives the texts of a log that have no item one of a partition, by their form. It returns
// how many these are.
func divide(ctx context.Context, table *past.Table) (int, error) {
	var texts []string
	bare := func(q *past.Request) bool { return q.Item == "" && strings.TrimSpace(q.Text) != "" }
	for i := range table.Requests {
		if q := &table.Requests[i]; bare(q) {
			texts = append(texts, q.Text)
		}
	}
	if len(texts) < fewestTexts {
		return 0, nil
	}
	p, err := partition.New(ctx, partition.Config{})
	if err == nil {
		err = p.Fit(ctx, texts)
	}
	if err != nil {
		return 0, err
	}
	for i := range table.Requests {
		q := &table.Requests[i]
		if !bare(q) {
			continue
		}
		if q.Item, err = p.Item(ctx, q.Text); err != nil {
			return 0, err
		}
		q.Divided = true
	}
	return len(texts), nil
}

// learner returns the name of the learner that is written.
func (cmd *replayCommand) learner() string {
	if cmd.Name != "" || cmd.Alone || cmd.Agent == defaultAgent {
		return cmp.Or(cmd.Name, "strategy")
	}
	return cmd.Agent + ".strategy"
}

// write fills an empty store with what is learned from all requests.
func (cmd *replayCommand) write(s *session, table *past.Table, now time.Time) (string, error) {
	cfg := strategy.Config{Name: cmd.learner()}
	if !cmd.Alone {
		cfg.Answers = cmd.Agent + answerKind
	}
	st, err := newStudent(s.ctx, cfg, table.Arms, now)
	if err != nil {
		return "", err
	}
	var texts []string
	for i := range table.Requests {
		q := &table.Requests[i]
		if err := st.learn(s.ctx, q); err != nil {
			return "", err
		}
		if q.Divided {
			texts = append(texts, q.Text)
		}
	}
	if len(texts) > 0 { // the same cells once more, for the host
		clock := func() time.Time { return now }
		p, err := partition.New(s.ctx, partition.Config{Store: st.store, Now: clock})
		if err == nil {
			err = p.Fit(s.ctx, texts)
		}
		if err != nil {
			return "", err
		}
	}
	var dump bytes.Buffer
	if err := st.store.Dump(s.ctx, &dump); err != nil {
		return "", err
	}
	to, err := s.create()
	if err != nil {
		return "", err
	}
	defer to.close()
	err = to.store.Load(s.ctx, &dump)
	if errors.Is(err, heed.ErrConflict) {
		return "", fmt.Errorf("%s is not empty: name a new store, or add --dry-run", to)
	}
	return to.String(), to.explain(err)
}
