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
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/partition"
)

type replayCommand struct {
	Files  []string `arg:"" name:"file" help:"The log, or the files of one benchmark."`
	Format string   `placeholder:"FORMAT" help:"log, routerbench, llmrouterbench or routellm. Without it, the beginning of the file tells."`
	Agent  string   `default:"loop" placeholder:"NAME" help:"The agent that goes on from the store."`
	Name   string   `placeholder:"NAME" help:"The learner's name. Default: the agent's name for it."`
	Alone  bool     `help:"No agent goes on from the store: the host uses package strategy alone."`
	DryRun bool     `help:"Write no store, even if --db or HEED_DB names one."`
}

// A policy is a way of choosing, with what it earned or would have earned.
type policy struct {
	Policy string    `json:"policy"`
	Reward replayed  `json:"reward"`
	Cost   *replayed `json:"cost,omitempty"` // of a request; nil: no costs are known
}

// A replayed is a mean with its 90 % interval. Of what is known and not estimated, both bounds are nil.
type replayed struct {
	Mean float64  `json:"mean"`
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Unsteady says that parts of the log contradict each other, so that the interval says nothing.
	Unsteady bool `json:"unsteady,omitempty"`
}

// A replayReport is what the command answers.
type replayReport struct {
	Format       string   `json:"format"`
	Requests     int      `json:"requests"`
	Outcomes     int      `json:"outcomes"`
	Arms         []string `json:"arms"`
	Items        int      `json:"items"`
	Texts        int      `json:"texts,omitempty"` // without an item, which have one of a partition now
	Propensities string   `json:"propensities"`    // told, counted or none: all arms were tried
	LeftOut      int      `json:"left_out,omitempty"`
	Sorted       bool     `json:"sorted,omitempty"` // the file had the requests in another order than that of their times
	Judged       int      `json:"judged"`           // the requests that the policies are compared on: the second half of a log
	Policies     []policy `json:"policies"`
	Wrote        string   `json:"wrote,omitempty"`
	Learner      string   `json:"learner,omitempty"`
}

// Run learns from a log.
func (cmd *replayCommand) Run(s *session) error {
	var files []*past.File
	for _, name := range cmd.Files {
		f, err := readPast(name, cmd.Format)
		if err != nil {
			return err
		}
		if len(files) > 0 && f.Format != files[0].Format {
			return fmt.Errorf("%s has the format %s, and %s the format %s: replay each by itself", cmd.Files[0], files[0].Format, name, f.Format)
		}
		files = append(files, f)
	}
	table := past.Merge(files...)
	now := time.Now()
	for _, q := range table.Requests {
		if q.At.After(now) {
			return fmt.Errorf("a request of %s is in the future: correct its time", q.At.Format(time.RFC3339))
		}
	}
	sorted := inOrder(table)
	texts, err := divide(s.ctx, table, partition.Config{})
	if err != nil {
		return err
	}
	report, err := cmd.estimate(s.ctx, table, now)
	if err != nil {
		return err
	}
	report.Texts, report.Sorted = texts, sorted
	if s.DB != "" && !cmd.DryRun {
		if report.Wrote, err = cmd.write(s, table, now); err != nil {
			return err
		}
		report.Learner = cmd.learner()
	}
	return s.answer(report, report.print)
}

// inOrder puts the requests of a log in the order of their times, if all have one. It reports whether they were in another.
func inOrder(table *past.File) bool {
	byTime := func(a, b past.Request) int { return a.At.Compare(b.At) }
	if slices.ContainsFunc(table.Requests, func(q past.Request) bool { return q.At.IsZero() }) || slices.IsSortedFunc(table.Requests, byTime) {
		return false
	}
	slices.SortStableFunc(table.Requests, byTime)
	return true
}

func readPast(name, format string) (*past.File, error) {
	in, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s: check its name", name)
	} else if err != nil {
		return nil, err
	}
	defer in.Close()
	return past.Read(name, in, format)
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

func cellOf(q past.Request) [3]string { return [3]string{q.Category, q.Context, q.Item} }

func queryOf(q past.Request) strategy.Query {
	return strategy.Query{Item: q.Item, Category: q.Category, Context: q.Context}
}

// learn takes the outcomes of a request as evidence.
func (st *student) learn(ctx context.Context, q past.Request, tries ...past.Try) error {
	before := st.now
	defer func() { st.now = before }()
	if !q.At.IsZero() {
		st.now = q.At
	}
	for _, t := range tries {
		c, err := st.Record(ctx, queryOf(q), strategy.ArmID(t.Arm), t.Propensity)
		if err != nil {
			return err
		}
		o := strategy.Outcome{Choice: c, Value: 2*t.Reward - 1, Confidence: 1, Channel: "replay", Cost: t.Cost, Latency: t.Latency, Tokens: t.Tokens}
		if _, err := st.Observe(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// fewestTexts is how many texts without an item make cells.
const fewestTexts = 10

// divide gives the texts of a log that have no item one of a partition, by their form. It returns how many these are.
func divide(ctx context.Context, table *past.File, cfg partition.Config) (int, error) {
	var texts []string
	for _, q := range table.Requests {
		if table.Format == past.Log && q.Item == "" && strings.TrimSpace(q.Text) != "" {
			texts = append(texts, q.Text)
		}
	}
	if len(texts) < fewestTexts {
		return 0, nil
	}
	p, err := partition.New(ctx, cfg)
	if err != nil {
		return 0, err
	}
	if err := p.Fit(ctx, texts); err != nil {
		return 0, err
	}
	for i := range table.Requests {
		q := &table.Requests[i]
		if q.Item == "" && strings.TrimSpace(q.Text) != "" {
			if q.Item, err = p.Item(ctx, q.Text); err != nil {
				return 0, err
			}
			q.Divided = true
		}
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

// answers returns the kind of the records of the choices. "" means the learner's own kind.
func (cmd *replayCommand) answers() string {
	if cmd.Alone {
		return ""
	}
	return cmd.Agent + answerKind
}

// write fills an empty store with what is learned from all requests.
func (cmd *replayCommand) write(s *session, table *past.File, now time.Time) (string, error) {
	cfg := strategy.Config{
		Name: cmd.learner(), Answers: cmd.answers(),
		Unrecorded: table.Format != past.Log, // in a benchmark nothing was chosen
	}
	st, err := newStudent(s.ctx, cfg, table.Arms, now)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, q := range table.Requests {
		if err := st.learn(s.ctx, q, q.Tries...); err != nil {
			return "", err
		}
		if q.Divided {
			texts = append(texts, q.Text)
		}
	}
	if len(texts) > 0 { // the same cells once more, for the host
		p, err := partition.New(s.ctx, partition.Config{Store: st.store, Now: func() time.Time { return now }})
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
	at, err := s.where()
	if err != nil {
		return "", err
	}
	handle, err := at.handle(s.ctx, true)
	if err != nil {
		return "", err
	}
	defer handle.Close()
	to, err := at.make(s.ctx, handle, sqlstore.Config{})
	if err != nil {
		return "", at.explain(err)
	}
	err = to.store.Load(s.ctx, &dump)
	if errors.Is(err, heed.ErrConflict) {
		return "", fmt.Errorf("%s is not empty: name a new store, or add --dry-run", at)
	}
	return at.String(), at.explain(err)
}

// estimate says what was earned, and what others would have.
func (cmd *replayCommand) estimate(ctx context.Context, table *past.File, now time.Time) (*replayReport, error) {
	r := &replayReport{Format: table.Format, Requests: len(table.Requests), Arms: table.Arms}
	items := make(map[[3]string]bool)
	whole, told := true, false
	for _, q := range table.Requests {
		r.Outcomes += len(q.Tries)
		items[cellOf(q)] = true
		whole = whole && len(q.Tries) == len(table.Arms)
		for _, t := range q.Tries {
			told = told || t.Propensity > 0
		}
	}
	r.Items = len(items)
	switch {
	case whole && len(table.Arms) > 1:
		r.Propensities = "none"
		return r, r.play(ctx, table, now)
	case table.Format != past.Log && len(table.Arms) == 1:
		return nil, fmt.Errorf("all outcomes are of %s: give the files of the other arms as well, for the same requests", show(table.Arms[0]))
	case table.Format != past.Log:
		return nil, fmt.Errorf("the %d requests lack outcomes of some of the %d arms: give the files of all arms, for the same requests", len(table.Requests), len(table.Arms))
	case told:
		r.Propensities = "told"
	default:
		r.Propensities = "counted"
	}
	return r, r.weigh(ctx, table, now)
}
