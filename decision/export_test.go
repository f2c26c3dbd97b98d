package decision

import (
	"context"

	"github.com/heedhq/heed/store"
)

// PutTrace keeps a trace that no strategy has made.
func PutTrace(ctx context.Context, st store.Store, t Trace) error {
	if err := st.Declare(ctx, traceKind.Kind); err != nil {
		return err
	}
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{traceKind.Record(t, 0)}})
	return err
}

// ParsePrediction reads a model's reply to a prediction prompt.
var ParsePrediction = parsePrediction

// DefaultSystem is the system prompt of a configuration without one.
const DefaultSystem = defaultSystem

// GivenUp returns how many calls of the model and of the similarity were given up and have not
// returned.
func GivenUp(d *Decider) int { return d.models.GivenUp() + d.similar.GivenUp() }

// A Row is a kind of record, with a value in which each text is its own name, and the keys of that.
type Row struct {
	Kind  store.Kind
	Value any
	Keys  []string
}

// Rows are one of each kind of record.
func Rows() []Row {
	trace := Trace{ResponseID: "ResponseID", EventID: "EventID", Source: "Source", Domain: "Domain"}
	_, _, keys := traceKind.Place(trace)
	return []Row{{traceKind.Kind, trace, keys}}
}

// ParseMeanings reads a model's reply to the question which of n texts say the same.
var ParseMeanings = parseMeanings

// Tests reach each rule alone by other values than a host's.
type Tuning = tuning

// Tuned returns a configuration with other values.
func Tuned(c Config, t Tuning) Config {
	c.tuning = t
	return c
}

// TuningOf returns the values of a configuration.
func TuningOf(c Config) Tuning { return c.tuning }
