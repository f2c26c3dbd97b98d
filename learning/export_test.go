package learning

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// Waiting returns how many fires are open, by the keys that they are found by.
func Waiting(ctx context.Context, m *Module) (n int, err error) {
	for _, err := range m.kinds.fires.Find(ctx, m.cfg.Store, store.Query{Keys: []string{waitingKey()}}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Awaited returns the answers that have not ended.
func Awaited(ctx context.Context, m *Module) (n int, err error) {
	for kept, err := range m.kinds.fires.Find(ctx, m.cfg.Store, store.Query{}) {
		if err != nil {
			return n, err
		}
		if w := kept.Value; !w.Closed && !w.Facts.observed() && w.Facts.Silence == nil {
			n++
		}
	}
	return n, nil
}

// RecordKinds returns the kinds of a module's records, each with its row.
func RecordKinds(module string) ([]store.Kind, []any) {
	k := kindsOf(module, false)
	kinds := k.all()
	return slices.Clip(kinds[:5]), []any{Heuristic{}, Pin{}, fired{}, streak{}, clicked{}}
}

// Filled returns a record of each kind, made by people of this name.
func Filled(module, person string) []store.Record {
	k := kindsOf(module, false)
	return []store.Record{
		k.pins.Record(Pin{HeuristicID: "h", Actor: person}, 0), k.fires.Record(fired{Heuristic: "h", Person: person}, 0),
		k.clicks.Record(clicked{Heuristic: "h", Person: person}, 0), k.fires.Record(fired{Heuristic: "h", Facts: facts{Undo: &seen{Person: person}}}, 0),
	}
}

// States returns what each fire, row of ignores and judgement has come to.
func States(ctx context.Context, m *Module) (all []string, err error) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for kept, err := range m.kinds.fires.Find(ctx, m.cfg.Store, store.Query{}) {
		if err != nil {
			return nil, err
		}
		w := kept.Value
		text, err := json.Marshal(w)
		if err != nil {
			return nil, err
		}
		add("%s", text)
	}
	for kept, err := range m.kinds.streaks.Find(ctx, m.cfg.Store, store.Query{}) {
		if err != nil {
			return nil, err
		}
		add("%s: ignored %d", kept.Value.HeuristicID, kept.Value.N)
	}
	for kept, err := range m.kinds.clicks.Find(ctx, m.cfg.Store, store.Query{}) {
		if err != nil {
			return nil, err
		}
		add("%s of %s at %s: %d live", kept.Value.Person, kept.Value.Heuristic, kept.Value.Event, len(kept.Value.Live))
	}
	return all, nil
}

// ShareOf returns how much of a full judgement one is.
func ShareOf(j Judgement) float64 { return j.verdict().share() }

// Room returns what people's evidence leaves of the cap on persons.
func Room(caps evidence.Caps, parts []evidence.Part, now evidence.Instant) map[string]float64 {
	return (&belief{caps: caps}).room(parts, now)
}

// SettingsOf returns the configuration in force of a strategy that [NewBayesian] made.
func SettingsOf(s Strategy) BayesianConfig { return s.(*bayesian).cfg.withDefaults() }
