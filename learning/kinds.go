package learning

import (
	"cmp"
	"context"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// kinds are the kinds of a module's cells and records. They begin with the module's name, so that
// modules can share a store.
type kinds struct {
	heuristic, fire, calibration, people string // cells

	heuristics store.View[Heuristic]
	pins       store.View[Pin]
	answers    store.View[answer.Answer]
	streaks    store.View[streak]
	wordings   store.View[wordings]
}

// history is how many observations of a cell a store keeps by default. A judgement can be replaced,
// and silence taken back, as long as their observation is among them.
const history = 10_000

// A month is how long the record of a streak is kept.
const month = 30 * 24 * time.Hour

// kindsOf returns the kinds of a module. kind names another kind of answers than the
// module's own.
func kindsOf(module, kind string, dryRun bool) kinds {
	waiting := module
	if dryRun {
		waiting += ".dryrun" // a module that counts has other answers
	}
	return kinds{
		heuristic: module + ".heuristic", fire: module + ".fire", calibration: module + ".calibration",
		people: module + ".people",
		heuristics: store.View[Heuristic]{
			Kind:  store.Kind{Name: module + ".heuristic", History: history, Versioned: true},
			Place: func(h Heuristic) (string, time.Time, []string) { return h.ID, h.CreatedAt, nil },
		},
		pins: store.View[Pin]{
			Kind: store.Kind{Name: module + ".pin", Decided: []string{"actor"}},
			Place: func(p Pin) (string, time.Time, []string) {
				return p.HeuristicID, p.At, []string{store.PersonKey(p.Actor)}
			},
		},
		answers: answers.View(cmp.Or(kind, waiting+".answer")),
		streaks: store.View[streak]{
			Kind:  store.Kind{Name: waiting + ".streak", Limits: store.Limits{For: month, Most: 100_000}},
			Place: func(s streak) (string, time.Time, []string) { return s.HeuristicID, s.At, nil },
		},
		wordings: store.View[wordings]{
			Kind:  store.Kind{Name: module + ".wordings"},
			Place: func(w wordings) (string, time.Time, []string) { return w.HeuristicID, w.At, nil },
		},
	}
}

// all returns the kinds of records, to be declared.
func (k *kinds) all() []store.Kind {
	return []store.Kind{
		k.heuristics.Kind, k.pins.Kind, k.answers.Kind, k.streaks.Kind, k.wordings.Kind,
		store.Audit,
		{Name: k.fire, History: history}, {Name: k.calibration, History: history},
	}
}

// Damaged returns the records of the module that hold something that this package has not written.
func (m *Module) Damaged(ctx context.Context) (refs []store.Ref, err error) {
	defer doing("damaged", &err)
	k := &m.kinds
	return store.Damaged(ctx, m.cfg.Store, &k.heuristics, &k.pins, &k.answers, &k.streaks,
		&k.wordings)
}

// policies defines how the cells are kept. Counts do not fade.
func (k *kinds) policies(p evidence.Policy) map[string]evidence.Policy {
	counts := evidence.Policy{ByOrigin: p.ByOrigin}
	return map[string]evidence.Policy{
		k.heuristic: p, k.people: p, k.fire: counts, k.calibration: counts,
	}
}
