package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/partition"
)

// How an agent is made. [New] fills in the defaults, validates the configuration, opens the store,
// and calls build. Tenant calls build as well, with the view of the tenant's records as the store,
// so that an agent of a tenant is made in the same way. build declares the kinds of records, opens
// the parts, and teaches the lessons.

// An Agent answers events and learns from what becomes of the answers. Make one with [New]. It
// starts goroutines only in [Agent.Run], and does not need to be closed. It is safe for
// concurrent use by multiple goroutines. Any number of agents of one name may use a store, in any
// number of processes.
type Agent struct {
	// cfg is complete: its defaults are set, and its Store is the lifeline.
	cfg       Config
	learning  *learning.Module
	decider   *decision.Decider
	patterns  *patterns.Recorder
	feedback  *feedback.Service
	partition *partition.Partition // nil without one

	// The views of the agent's kinds of records.
	answers store.View[answer.Answer]
	notes   store.View[noteRow]
	lessons store.View[lessonRow]
	healths store.View[health]
	freezes store.View[answers.Frozen]
	planned store.View[planRow]
	imports store.View[importedRow]
	// models is shared by the agents of all tenants, because a provider's outage is everybody's.
	models *availability

	// similar is Tuning.Similarity, which remembers embeddings and gives up calls that take too
	// long.
	similar heed.Similarity
	// prepared are the latest plans that were kept, as JSON, for when the store can't be reached.
	prepared struct {
		sync.Mutex
		recent[string, []byte]
	}
	library  atomic.Pointer[library] // as this process read it last
	own      store.Store             // the host's, or the one that New opened
	lifeline *lifeline               // to it
	trialKey []byte                  // by which the control group is drawn
	// changed has what sweeps look at to write the audit log.
	changed changes
	harms   atomic.Bool // learning does harm, which the observer received
	watch   *watch.Watch
	gates   *sync.Map  // of models and of other code of the host's, by name
	tenant  string     // "" if the agent has the store itself
	root    *Agent     // of all tenants; nil for the agent that [New] made
	tenants tenantPool // of the agent that [New] made

	learner *strategy.Learner // nil: there are no arms
	chooser Chooser           // nil: the same
	arms    []Arm             // of the configuration and its lessons
	asked   []string          // the names of the models that arms ask, and of the fallbacks
	seed    [2]uint64         // of the learner
}

// New returns an agent, which continues from what its store holds. Otherwise it returns all faults
// of the configuration and of the agent's parts, joined: each is a [*heed.ConfigError], or a
// [*heed.InputError] if it is a lesson's.
func New(ctx context.Context, cfg Config) (*Agent, error) {
	clock := cfg.Testing.Now
	cfg = cfg.withDefaults()
	shared := &Agent{models: &availability{of: make(map[string]*health)}, gates: new(sync.Map)}
	own := cfg.validate()
	if own != nil { // an agent of the parts alone shows their faults, and needs no host's chooser
		cfg.Choosing.Choose = nil
		cfg = Config{
			Model: cfg.Model, Arms: cfg.Arms, Choosing: cfg.Choosing, Tuning: cfg.Tuning,
			Testing: cfg.Testing,
		}.withDefaults()
	}
	err := cfg.openStore(ctx, clock)
	var a *Agent
	if err == nil {
		a, err = build(ctx, cfg, shared)
	}
	if own != nil || err != nil {
		var faults valid.Faults
		faults.Join(own)
		faults.Join(err)
		return nil, fmt.Errorf("loop: %w", faults.Err())
	}
	return a, nil
}

// build makes an agent of a configuration that is complete and valid. shared has what the agents of
// all tenants have in common. The order matters: kinds are declared before any part writes records,
// and lessons are taught last, because they need the parts.
func build(ctx context.Context, cfg Config, shared *Agent) (*Agent, error) {
	own := cfg.Store
	a := &Agent{
		models: shared.models, gates: shared.gates, tenant: shared.tenant, root: shared.root,
		own: own, answers: answers.View(cfg.kind()), notes: notesOf(cfg.Name),
		lessons: lessonsOf(cfg.Name), healths: healthOf(cfg.Name), freezes: answers.Freezes(cfg.Name),
		planned: plansOf(cfg.Name), imports: importsOf(cfg.Name),
		watch:   watch.New(cfg.Observer, cfg.Name, cfg.Testing.Now),
		tenants: tenantPool{Memo: text.NewMemo[*Agent](latestTenants)},
	}
	a.lifeline = &lifeline{
		Store: own, limits: cfg.kept(), report: a.outage, now: cfg.Testing.Now, tenant: a.tenant,
	}
	if !cfg.RequireStore {
		a.lifeline.memory = &memory{answers: cfg.kind()}
	}
	if s, ok := own.(*active); ok {
		a.lifeline.root, _ = s.Root()
	}
	cfg.Store = a.lifeline
	a.cfg = cfg
	a.similar = a.remembering(cfg.Tuning.Similarity)
	if err := cfg.Store.Declare(ctx, a.answers.Kind, a.notes.Kind, a.lessons.Kind,
		a.healths.Kind, a.freezes.Kind, a.planned.Kind, a.imports.Kind,
		tenantsOf(cfg.Name).Kind); err != nil {
		return nil, err
	}
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	if _, err := a.teach(ctx, &cfg.Lessons); err != nil {
		return nil, named("Lessons", err)
	}
	return a, nil
}

// top returns the agent of all tenants.
func (a *Agent) top() *Agent { return cmp.Or(a.root, a) }

// Name returns [Config].Name, or its default.
func (a *Agent) Name() string { return a.cfg.Name }

// openStore opens the store if the host gave no store. clock is the host's, or nil. A database is
// read by its own clock unless the host set one; a store in memory has no other.
func (c *Config) openStore(ctx context.Context, clock func() time.Time) (err error) {
	keep := store.Retention{HistoryFor: c.Keep, Limits: c.kept()}
	switch {
	case c.DB != nil:
		c.Store, err = sqlstore.Open(ctx, c.DB, 0, sqlstore.Config{Now: clock, Retention: keep})
	case c.Store == nil:
		c.Store, err = memstore.New(memstore.Config{Now: c.Testing.Now, Retention: keep})
	}
	return err
}

// kept returns the limits that keep answers for as long as the host wants.
func (c *Config) kept() map[string]store.Limits {
	if c.Keep == 0 {
		return nil
	}
	return map[string]store.Limits{c.kind(): {For: c.Keep}}
}

// kind returns the kind of the records of answers.
func (c *Config) kind() string { return c.Name + ".answer" }

// seeds draws the seeds of the parts, or no seeds if the host gave none. Each part has its own
// seed, so that a part that draws more does not change what others draw.
func (c *Config) seeds() (of [3]rand.Source) {
	if c.Testing.Seed != nil {
		for i := range of {
			of[i] = rand.NewPCG(c.Testing.Seed.Uint64(), c.Testing.Seed.Uint64())
		}
	}
	return of
}

// part returns the name of a part of the agent: its default for an agent without a name. An agent
// with a name puts it before the parts' names, so that two agents on one store share no part by
// accident.
func (c *Config) part(own, name string) string {
	if own == "" && c.Name != defaultName {
		return c.Name + "." + name
	}
	return own
}

// open makes the parts. What is the agent's, such as its store and clock, replaces what Tuning has
// in these fields. The faults of all parts are returned together. After any other error, for
// example of the store, the next part is not made.
func (a *Agent) open(ctx context.Context) error {
	seeds := a.cfg.seeds()
	if s := seeds[0]; s != nil {
		a.seed = [2]uint64{s.Uint64(), s.Uint64()}
	}
	var faults valid.Faults
	for _, part := range []func() error{
		func() error { return a.openTrial(ctx, seeds[2]) },
		func() error { return a.openLearning(ctx) },
		func() error { return a.openPatterns(ctx) },
		func() error { return a.openFeedback(ctx) },
		func() error { return a.openPartition(ctx) },
		func() error { return a.openStrategy(ctx) },
		// The decider asks models by the names that the arms give them.
		func() error { return a.openDecision(ctx, seeds[1]) },
	} {
		err := part()
		if err != nil && !errors.As(err, new(*heed.ConfigError)) {
			return err
		}
		faults.Join(err)
	}
	return faults.Err()
}

func (a *Agent) openLearning(ctx context.Context) (err error) {
	cfg := &a.cfg
	l := cfg.Tuning.Learning
	l.Name, l.Answers = cfg.part(l.Name, "learning"), cfg.kind()
	l.Store, l.Now, l.Observer = cfg.Store, cfg.Testing.Now, cfg.Observer
	l.Trust.Instruments = cfg.Instruments
	a.learning, err = learning.New(ctx, l)
	return err
}

func (a *Agent) openPatterns(ctx context.Context) (err error) {
	cfg := &a.cfg
	a.patterns, err = patterns.New(ctx, patterns.Config{
		Store: cfg.Store, Name: cfg.part("", "patterns"), Now: cfg.Testing.Now,
		Observer: cfg.Observer, Instruments: cfg.Instruments,
		Approaches: cfg.Tuning.Approaches,
	})
	return err
}

func (a *Agent) openFeedback(ctx context.Context) (err error) {
	cfg := &a.cfg
	f := cfg.Tuning.Feedback
	f.Store, f.Now, f.Observer, f.Redact = cfg.Store, cfg.Testing.Now, cfg.Observer, cfg.Redact
	a.feedback, err = feedback.New(ctx, f)
	return err
}

// openPartition makes the partition, which assigns an event to a cell.
func (a *Agent) openPartition(ctx context.Context) (err error) {
	if !a.cfg.Choosing.ByText {
		return nil
	}
	c := partition.Config{
		Store: a.cfg.Store, Name: a.cfg.part("", "partition"), Now: a.cfg.Testing.Now,
	}
	c.Embed, _ = a.similar.(heed.Embedder)
	a.partition, err = partition.New(ctx, c)
	return err
}

// openDecision makes the decider. Its own prompts are bare, because arms and rules differ from
// event to event and are in the plan. It needs a model only to write heuristics: answers are asked
// of the arm's model.
func (a *Agent) openDecision(ctx context.Context, seed rand.Source) (err error) {
	cfg := &a.cfg
	d := cfg.Tuning.Decision
	d.Store, d.Now, d.Observer, d.Redact = cfg.Store, cfg.Testing.Now, cfg.Observer, cfg.Redact
	d.Bare, d.System = true, cfg.System
	if d.Similarity == nil {
		d.Similarity = cfg.Tuning.Similarity
	}
	if d.Seed == nil {
		d.Seed = seed
	}
	if len(cfg.Tuning.Extract) > 0 {
		d.LLM = a.chain("model", cfg.Model)
	}
	a.decider, err = decision.New(ctx, d)
	return err
}

// Learning returns the part that computes how far heuristics are trusted.
func (a *Agent) Learning() *learning.Module { return a.learning }

// Decision returns the part that decides.
func (a *Agent) Decision() *decision.Decider { return a.decider }

// Strategy returns the part that chooses arms, or nil without arms.
func (a *Agent) Strategy() *strategy.Learner { return a.learner }

// Patterns returns the part that learns which ways of working go well.
func (a *Agent) Patterns() *patterns.Recorder { return a.patterns }

// Feedback returns the part that makes rules of corrections.
func (a *Agent) Feedback() *feedback.Service { return a.feedback }

// Store returns the store that everything is kept in: the one of [Config], or the one that [New]
// opened.
func (a *Agent) Store() store.Store { return a.own }

// wrap names the package and the method in an error, so that a host's log shows where it came from.
func wrap(doing string, err error) error {
	return valid.Wrap("loop: "+doing, err)
}
