package learning

import (
	"context"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// kinds are the kinds of a module's cells and records. They begin with the module's name, so that modules can share a store.
type kinds struct {
	heuristic, fire, calibration string // cells

	heuristics store.View[Heuristic]
	pins       store.View[Pin]
	fires      store.View[fired]
	streaks    store.View[streak]
	clicks     store.View[clicked]
	wordings   store.View[wordings]
}

// history is how many observations of a cell a store keeps by default. A click can be replaced, and silence taken back, as long as their
// observation is among them.
const history = 10_000

// A month is how long records of closed fires are kept.
const month = 30 * 24 * time.Hour

func kindsOf(module string, dryRun bool) kinds {
	waiting := module
	if dryRun {
		waiting += ".dryrun" // a module that counts has open answers of its own
	}
	return kinds{
		heuristic: module + ".heuristic", fire: module + ".fire", calibration: module + ".calibration",
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
		fires: store.View[fired]{
			Kind: store.Kind{
				Name: waiting + ".fire", Limits: store.Limits{For: month, Most: 200_000}, History: history,
				Caused: []string{"person", "facts.undo.person", "undos.*.person"}, Whole: true,
			},
			Place: (fired).place,
		},
		streaks: store.View[streak]{
			Kind:  store.Kind{Name: waiting + ".streak", Limits: store.Limits{For: month, Most: 100_000}},
			Place: func(s streak) (string, time.Time, []string) { return s.HeuristicID, s.At, nil },
		},
		clicks: store.View[clicked]{
			Kind: store.Kind{
				Name: module + ".click", Limits: store.Limits{For: month, Most: 1_000_000}, Caused: []string{"person"}, Whole: true,
			},
			Place: (clicked).place,
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
		k.heuristics.Kind, k.pins.Kind, k.fires.Kind, k.streaks.Kind, k.clicks.Kind, k.wordings.Kind, store.Audit, {Name: k.calibration, History: history},
	}
}

// Damaged returns the records of the module that hold something that this package has not written.
func (m *Module) Damaged(ctx context.Context) (refs []store.Ref, err error) {
	defer doing("damaged", &err)
	k := &m.kinds
	return records.Damaged(ctx, m.cfg.Store, &k.heuristics, &k.pins, &k.fires, &k.streaks, &k.clicks, &k.wordings)
}

// policies says how the cells are kept. Counts do not fade.
func (k *kinds) policies(p evidence.Policy) map[string]evidence.Policy {
	counts := evidence.Policy{ByOrigin: p.ByOrigin}
	return map[string]evidence.Policy{k.heuristic: p, k.fire: counts, k.calibration: counts}
}

// personKeys returns the key by which a record of a person is found, if it is one's.
func personKeys(name string) []string {
	if name == "" {
		return nil
	}
	return []string{store.PersonKey(name)}
}
