package learning

import (
	"cmp"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// kinds are the kinds of a module's cells and records. They begin with the module's name, so that
// modules can share a store. Cells hold evidence: of confidences (heuristic), of how often answers
// were shown and how they ended (fire), and of how many people there are (people). Records hold the
// heuristics with their pins, the answers, and the rows of ignores.
type kinds struct {
	heuristic, fire, people string // cells

	heuristics store.View[heuristicRecord]
	answers    store.View[answer.Answer]
	streaks    store.View[streak]
}

// history is how many observations of a cell a store keeps by default. A judgement can be replaced,
// and silence taken back, as long as their observation is among them.
const history = 10_000

// A month is how long the record of a streak is kept.
const month = 30 * 24 * time.Hour

// kindsOf returns the kinds of a module. kind names another kind of answers than the
// module's own.
func kindsOf(module, kind string) kinds {
	return kinds{
		heuristic: module + ".heuristic", fire: module + ".fire", people: module + ".people",
		heuristics: store.View[heuristicRecord]{
			Kind: store.Kind{
				Name: module + ".heuristic", History: history, Versioned: true,
				Decided: []string{"Pin.actor"},
			},
			Place: func(r heuristicRecord) (string, time.Time, []string) {
				return r.ID, r.CreatedAt, stores.PersonKeys(r.pin().Actor)
			},
		},
		answers: answers.View(cmp.Or(kind, module+".answer")),
		streaks: store.View[streak]{
			Kind:  store.Kind{Name: module + ".streak", Limits: store.Limits{For: month, Most: 100_000}},
			Place: func(s streak) (string, time.Time, []string) { return s.HeuristicID, s.At, nil },
		},
	}
}

// all returns the kinds of records, to be declared.
func (k *kinds) all() []store.Kind {
	return []store.Kind{
		k.heuristics.Kind, k.answers.Kind, k.streaks.Kind, store.Audit,
		{Name: k.fire, History: history},
	}
}

// policies returns how the cells are kept. Counts do not fade.
func (m *Module) policies() map[string]evidence.Policy {
	p := m.cfg.policy()
	return map[string]evidence.Policy{
		m.kinds.heuristic: p, m.kinds.people: p, m.kinds.fire: {ByOrigin: p.ByOrigin},
	}
}
