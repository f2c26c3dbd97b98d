package patterns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/heedhq/heed/evidence"
)

// A row is one line of an export: one of its fields is set.
type row struct {
	Pattern    *Pattern    `json:"pattern,omitempty"`
	Transition *Transition `json:"transition,omitempty"`
	Entry      *Entry      `json:"entry,omitempty"`
	Error      *ErrorEntry `json:"error,omitempty"`
	// Observations are those of one id. They have to be committed together, as an id counts once.
	Observations []evidence.Observation `json:"observations,omitempty"`
}

// Export writes all that the recorder and its accumulator have in their stores as lines of JSON: patterns, transitions,
// outcomes, errors and observations. Nothing should be recorded meanwhile.
//
// Evidence is written as its observations. Where the store's history no longer holds all that was counted, Export fails
// with [evidence.ErrForgotten]: memstore.Evidence keeps 100 observations of a cell for 30 days, unless it is told otherwise.
// Of evidence that a [Recorder.Reset] has forgotten nothing is written, and so an outcome from before a reset would count
// again in the stores that the export is read into.
func (r *Recorder) Export(ctx context.Context, w io.Writer) error {
	rows, err := r.rows(ctx)
	encoder := json.NewEncoder(w)
	for i := 0; i < len(rows) && err == nil; i++ {
		err = encoder.Encode(rows[i])
	}
	if err != nil {
		return fmt.Errorf("patterns: export: %w", err)
	}
	return nil
}

func (r *Recorder) rows(ctx context.Context) ([]row, error) {
	stored, err := collect(r.cfg.Store.Patterns(ctx, PatternQuery{}))
	if err != nil {
		return nil, err
	}
	var rows []row
	for i := range stored {
		transitions, err := collect(r.cfg.Store.Transitions(ctx, stored[i].ID))
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{Pattern: &stored[i]})
		for i := range slices.Backward(transitions) {
			rows = append(rows, row{Transition: &transitions[i]})
		}
	}
	entries, err := collect(r.cfg.Store.Entries(ctx, EntryQuery{}))
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(entries) {
		rows = append(rows, row{Entry: &entries[i]})
	}
	if r.cfg.Errors != nil {
		failures, err := collect(r.cfg.Errors.cfg.Store.Errors(ctx, ""))
		if err != nil {
			return nil, err
		}
		for i := range failures {
			rows = append(rows, row{Error: &failures[i]})
		}
	}
	observations, err := r.observations(ctx)
	return append(rows, observations...), err
}

// observations returns all evidence, by its ids, in the order in which those are first met.
func (r *Recorder) observations(ctx context.Context) (rows []row, err error) {
	places := make(map[string]int)
	for _, kind := range []string{r.kinds.pattern, r.kinds.criterion} {
		parts, err := collect(r.cfg.Evidence.List(ctx, kind, ""))
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			history, err := collect(r.cfg.Evidence.History(ctx, part.Cell))
			if err != nil {
				return nil, err
			}
			var counted uint64
			for _, o := range slices.Backward(history) {
				place, known := places[o.ID]
				if !known {
					place = len(rows)
					places[o.ID], rows = place, append(rows, row{})
				}
				rows[place].Observations = append(rows[place].Observations, o)
				if o.Weight > 0 {
					counted++
				}
			}
			if counted != part.Tally.N() {
				return nil, evidence.ErrForgotten
			}
		}
	}
	return rows, nil
}

func collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Import reads what [Recorder.Export] wrote into the stores of this recorder, which should know nothing of it yet: a
// pattern that is known already is a conflict. What was read before an error stays.
func (r *Recorder) Import(ctx context.Context, from io.Reader) error {
	decoder := json.NewDecoder(from)
	for n := 1; ; n++ {
		var one row
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.load(ctx, &one)
		}
		if err != nil {
			return fmt.Errorf("patterns: import: row %d: %w", n, err)
		}
	}
}

func (r *Recorder) load(ctx context.Context, one *row) error {
	switch {
	case one.Pattern != nil:
		one.Pattern.Revision = 0
		return r.cfg.Store.Commit(ctx, Changes{Patterns: []Pattern{*one.Pattern}})
	case one.Transition != nil:
		return r.cfg.Store.Commit(ctx, Changes{Transitions: []Transition{*one.Transition}})
	case one.Entry != nil:
		return r.cfg.Store.Commit(ctx, Changes{Entries: []Entry{*one.Entry}})
	case len(one.Observations) > 0:
		_, err := r.cfg.Evidence.Commit(ctx, evidence.Batch{Policies: r.policies, Observations: one.Observations})
		return err
	case one.Error != nil && r.cfg.Errors != nil:
		return r.cfg.Errors.cfg.Store.Add(ctx, *one.Error)
	case one.Error != nil:
		return inputError("Error", "needs Config.Errors")
	default:
		return inputError("Row", "is of no known sort")
	}
}
