package learning

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// WeighAgreement sets what agreement counts.
func WeighAgreement(m *Module, agree, disagree, most float64) {
	m.agreement = agreement{agree, disagree, most}
}

// Range is what the bounds of a [Tuning] are.
type Range = bounds

// The limits that tests name.
const (
	AgreementMass = agreementMass

	LimitLocked     = limitLocked
	LimitNeutral    = limitNeutral
	LimitOutdated   = limitOutdated
	LimitFull       = limitFull
	LimitDuplicate  = limitDuplicate
	LimitOutweighed = limitOutweighed
)

// Timeouts is Sweep with what it counted.
func (m *Module) Timeouts(ctx context.Context, now time.Time) (all []Change, err error) {
	err = m.timeouts(ctx, now, func(some []*Change) { all = append(all, valuesOf(some, nil)...) })
	return all, err
}

// Statement returns a judgement as a record of the answer keeps it.
func (j Judgement) Statement() answer.Statement { return j.statement() }

// UndoAll returns a strategy whose undo takes back all open answers, like the design's.
func UndoAll(cfg BayesianConfig) Strategy { return &bayesian{spec: true, cfg: cfg.withDefaults()} }

// Remembered returns how many heuristics a module has in memory, other than in its list.
func Remembered(m *Module) (n int) {
	m.heuristics.Range(func(any, any) bool { n++; return true })
	return n
}

// Waiting returns how many fires are open.
func Waiting(ctx context.Context, m *Module) (n int, err error) {
	return count(ctx, m, func(_ *answer.Answer, f *answer.Fire) bool { return !f.Closed })
}

// Awaited returns the fires that have not ended.
func Awaited(ctx context.Context, m *Module) (n int, err error) {
	return count(ctx, m, func(a *answer.Answer, f *answer.Fire) bool {
		r := answers.ReceptionOf(a, f.Heuristic)
		return !f.Closed && !r.Observed() && r.Silence == nil
	})
}

func count(ctx context.Context, m *Module, what func(*answer.Answer, *answer.Fire) bool) (n int,
	err error) {
	for kept, err := range m.kinds.answers.Find(ctx, m.cfg.Store, store.Query{}) {
		if err != nil {
			return n, err
		}
		for i := range kept.Value.Fires {
			if what(&kept.Value, &kept.Value.Fires[i]) {
				n++
			}
		}
	}
	return n, nil
}

// RecordKinds returns the kinds of a module's records, each with its row.
func RecordKinds(module string) ([]store.Kind, []any) {
	k := kindsOf(module, "")
	return []store.Kind{k.heuristics.Kind, k.answers.Kind, k.streaks.Kind},
		[]any{heuristicRecord{Pin: &Pin{}}, answer.Answer{}, streak{}}
}

// Filled returns a record of each kind, made by people of this name.
func Filled(module, person string) []store.Record {
	k := kindsOf(module, "")
	said := answer.Answer{ID: "said", Statements: []answer.Statement{{By: person, Named: true}}}
	return []store.Record{
		k.heuristics.Record(heuristicRecord{
			Heuristic: Heuristic{ID: "h"}, Pin: &Pin{HeuristicID: "h", Actor: person},
		}, 0),
		k.answers.Record(answer.Answer{ID: "asked", Person: person}, 0), k.answers.Record(said, 0),
	}
}

// States returns what each answer and row of ignores has come to.
func States(ctx context.Context, m *Module) (all []string, err error) {
	for kept, err := range m.kinds.answers.Find(ctx, m.cfg.Store, store.Query{}) {
		if err != nil {
			return nil, err
		}
		text, err := store.Of(kept.Value).JSON()
		if err != nil {
			return nil, err
		}
		all = append(all, string(text))
	}
	for kept, err := range m.kinds.streaks.Find(ctx, m.cfg.Store, store.Query{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprintf("%s: ignored %d", kept.Value.HeuristicID, kept.Value.N))
	}
	return all, nil
}

// ShareOf returns how much of a full judgement one is.
func ShareOf(j Judgement) float64 {
	s := j.statement()
	s.Worth = 1
	a := answer.Answer{Statements: []answer.Statement{s}}
	return answers.ReceptionOf(&a, s.Of).Praise.Share
}

// SettingsOf returns the configuration in force of a strategy that [NewBayesian] made.
func SettingsOf(s Strategy) BayesianConfig { return s.(*bayesian).cfg.withDefaults() }

// Tests reach each rule alone by other values than a host's.
type Tuning = tuning

// Tuned returns a configuration with other values.
func Tuned(c Config, t Tuning) Config {
	c.tuning = t
	return c
}

// TuningOf returns the values of a configuration.
func TuningOf(c Config) Tuning { return c.tuning }

// Tune returns the values of a configuration, to change them.
func (c *Config) Tune() *Tuning { return &c.tuning }

// An Origin is where a signal comes from, for example a message and its author.
type Origin struct {
	// ID identifies what the host observed, for example a message. Signals of the same ID count once.
	// It must not be empty.
	ID string
	// Person is who caused the signal, and the source of the evidence. "" means that it is unknown.
	Person string
	// Session is where it happened, for logs and for forgetting. It may be empty.
	Session string
	// At is when it happened. The zero time means now.
	At time.Time
}

// checkSignal reports the first fault of a signal and its origin.
func (m *Module) checkSignal(s *Signal, o *Origin) error {
	return cmp.Or(valid.Names(evidence.MaxText, "ID", o.ID), valid.Texts(evidence.MaxText,
		"Person", o.Person, "Session", o.Session), s.Validate(),
		valid.Names(evidence.MaxText, "HeuristicID", s.HeuristicID))
}

// Apply counts a signal that is about no answer in particular. Signals of the same origin ID count
// once.
func (m *Module) Apply(ctx context.Context, s Signal, o Origin) (_ Change, err error) {
	defer doing("apply", &err)
	o.At = m.orNow(o.At)
	if err := m.checkSignal(&s, &o); err != nil {
		return Change{}, err
	}
	if s.Worth == 0 { // the store need not be read
		return Change{Signal: s, Limits: []string{limitNeutral}}, ctx.Err()
	}
	e := &entry{
		signal: s, cell: cellSeen, id: "signal:" + store.IDOf(m.cfg.Name, o.ID) + ":seen",
		person: o.Person, session: o.Session, at: o.At,
	}
	if s.Channel == ChannelTimeout {
		e.cell = cellSilence
	}
	change := new(Change)
	err = store.Do(ctx, m.cfg.Store, func(tx *store.Tx) error {
		of, l := *e, m.ledger(tx)
		if err := l.read(s.HeuristicID); err != nil {
			return err
		}
		change = &of.change
		return l.count(&of)
	})
	if err != nil {
		return Change{}, err
	}
	return *change, nil
}
