package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/export"
	"github.com/heedhq/heed/internal/faults"
)

// TracesConfig bounds a [Traces]. The zero value means the defaults.
type TracesConfig struct {
	// Now is the clock by which traces age. nil means time.Now.
	Now func() time.Time
	// TTL is how long a trace is kept from when it came; feedback that comes later finds nothing. What is past its time is
	// removed by [Traces.Sweep]. 0 means a day.
	TTL time.Duration
	// MaxVerdicts is on how many verdicts of different persons, sources and targets an answer is kept; further ones are
	// refused with [evidence.ErrFull]. 0 means 1,000.
	MaxVerdicts int
}

// Traces is a [decision.TraceStore] in a database. It is safe for concurrent use.
type Traces struct {
	cfg      TracesConfig
	traces   shelf[decision.Trace]
	verdicts shelf[decision.Standing]
}

var _ decision.TraceStore = (*Traces)(nil)

// NewTraces returns the store of traces in a database.
func NewTraces(db *DB, cfg TracesConfig) (*Traces, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	cfg.TTL = cmp.Or(cfg.TTL, 24*time.Hour)
	cfg.MaxVerdicts = cmp.Or(cfg.MaxVerdicts, 1000)
	var found faults.List
	found.Check(cfg.TTL > 0, "TTL", cfg.TTL, "must not be negative")
	found.Check(cfg.MaxVerdicts > 0, "MaxVerdicts", cfg.MaxVerdicts, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return &Traces{cfg, shelf[decision.Trace]{db, export.Trace}, shelf[decision.Standing]{db, export.Verdict}}, nil
}

// Config returns the configuration in force.
func (s *Traces) Config() TracesConfig { return s.cfg }

// oldest is the moment before which traces are past their time.
func (s *Traces) oldest() int64 { return nanos(s.cfg.Now().Add(-s.cfg.TTL)) }

var (
	keptTraces = both(`SELECT seq, body FROM heed_documents WHERE sort = $1 AND moment >= $2 ORDER BY moment DESC, id`)
	dropOld    = both(`DELETE FROM heed_documents WHERE doc = $1 AND moment < $2`)
	touchTrace = both(`UPDATE heed_documents SET revision = revision + 1 WHERE doc = $1 AND moment >= $2 RETURNING moment, body`)
)

// Put implements [decision.TraceStore].
func (s *Traces) Put(ctx context.Context, trace decision.Trace) error {
	if err := checkKey("ResponseID", trace.ResponseID); err != nil {
		return fmt.Errorf("sqlstore: trace: %w", err)
	}
	return s.traces.write(ctx, func(t *tx) error {
		n, err := t.exec(dropOld, s.traces.key(trace.ResponseID), s.oldest())
		if err == nil && n > 0 {
			_, err = t.exec(dropClass, s.verdicts.sort, s.traces.key(trace.ResponseID))
		}
		if err != nil {
			return err
		}
		d := document[decision.Trace]{id: trace.ResponseID, moment: nanos(s.cfg.Now()), value: trace}
		return s.traces.put(t, d, 0)
	})
}

// Get implements [decision.TraceStore].
func (s *Traces) Get(ctx context.Context, responseID string) (decision.Trace, error) {
	d, err := s.traces.read(ctx, responseID)
	if err == nil && d.moment < s.oldest() {
		return decision.Trace{}, fmt.Errorf("sqlstore: trace: %w", heed.ErrNotFound)
	}
	return d.value, err
}

// All returns the traces that are kept, the newest first by when they came, for tools that show them. Those past their
// time are not among them. The loop may end early; after an error it ends.
func (s *Traces) All(ctx context.Context) iter.Seq2[decision.Trace, error] {
	return s.traces.list(ctx, func(decision.Trace) bool { return true }, keptTraces, s.traces.sort, s.oldest())
}

// Delete implements [decision.TraceStore].
func (s *Traces) Delete(ctx context.Context, responseID string) error {
	return s.traces.write(ctx, func(t *tx) error {
		if _, err := t.exec(dropOld, s.traces.key(responseID), s.oldest()); err != nil {
			return err
		}
		if err := s.traces.drop(t, responseID); err != nil {
			return err
		}
		_, err := t.exec(dropClass, s.verdicts.sort, s.traces.key(responseID))
		return err
	})
}

// React implements [decision.TraceStore].
func (s *Traces) React(ctx context.Context, responseID string, v decision.Verdict) (trace decision.Trace, standing decision.Standing, err error) {
	who, err := json.Marshal([...]string{responseID, v.Person, v.Source, v.Target})
	if err != nil {
		return trace, standing, fmt.Errorf("sqlstore: verdict: %w", err)
	}
	err = s.verdicts.write(ctx, func(t *tx) error {
		var moment int64
		var body string
		class := s.traces.key(responseID)
		if err := t.one(touchTrace, []any{class, s.oldest()}, &moment, &body); err != nil { // others of this trace wait
			return err
		}
		trace = decision.Trace{}
		if err := json.Unmarshal([]byte(body), &trace); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		known, err := s.verdicts.get(t, string(who))
		switch {
		case errors.Is(err, heed.ErrNotFound):
			var n int
			if err := t.one(countClass, []any{s.verdicts.sort, class}, &n); err != nil {
				return err
			}
			if n >= s.cfg.MaxVerdicts {
				return evidence.ErrFull
			}
			known = document[decision.Standing]{id: string(who), value: decision.Standing{Now: v}}
		case err != nil:
			return err
		case v.At.Before(known.value.Now.At) || v.At.Equal(known.value.Now.At) && v.Value == known.value.Now.Value:
			standing = known.value
			return nil
		default:
			known.value.Before, known.value.Now = known.value.Now, v
		}
		standing = known.value
		known.class, known.moment = class, moment
		return s.verdicts.put(t, known, known.revision)
	})
	if err != nil {
		return decision.Trace{}, decision.Standing{}, err
	}
	return trace, standing, nil
}

// Sweep removes the traces that are past their time, and the verdicts on them. Reading never shows them, swept or not.
func (s *Traces) Sweep(ctx context.Context) error {
	return s.traces.write(ctx, func(t *tx) error {
		for _, sort := range []string{s.traces.sort, s.verdicts.sort} {
			if _, err := t.exec(dropBefore, sort, s.oldest()); err != nil {
				return err
			}
		}
		return nil
	})
}
