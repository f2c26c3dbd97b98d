package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

type doctorCommand struct{}

func (doctorCommand) Help() string {
	return `Examples:

    heed --db agent.db doctor
    heed --db agent.db --json doctor | jq .findings

It reads the whole store and changes nothing. A fault is something that is wrong, and the exit code is then 1; a warning is
something to look after, such as a relay or a sweep that seems not to run.`
}

// A diagnosis is what doctor has found.
type diagnosis struct {
	Store    string      `json:"store"`
	Engine   string      `json:"engine"`
	Version  int         `json:"version"` // of the tables
	Known    int         `json:"known"`   // the version that this program works with
	Tables   []tableSize `json:"tables"`
	Kinds    []kindSize  `json:"kinds"`
	Findings []finding   `json:"findings"`
}

type tableSize struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// A kindSize counts the evidence of one kind.
type kindSize struct {
	Kind         string `json:"kind"`
	Scopes       int    `json:"scopes"`
	Cells        int    `json:"cells"`
	Observations uint64 `json:"observations"`
}

type finding struct {
	Level string `json:"level"` // fault or warning
	Text  string `json:"text"`
}

func (d *diagnosis) fault(format string, args ...any) {
	d.Findings = append(d.Findings, finding{"fault", fmt.Sprintf(format, args...)})
}

func (d *diagnosis) warning(format string, args ...any) {
	d.Findings = append(d.Findings, finding{"warning", fmt.Sprintf(format, args...)})
}

// Run looks a store over.
func (doctorCommand) Run(s *session) error {
	at, err := s.where()
	if err != nil {
		return err
	}
	handle, err := at.handle(s.ctx, false)
	if err != nil {
		return err
	}
	defer handle.Close()
	d := &diagnosis{Store: at.String(), Engine: at.dialect.String(), Tables: []tableSize{}, Kinds: []kindSize{}, Findings: []finding{}}
	if err := d.tables(s.ctx, at, handle); err != nil {
		return at.explain(err)
	}
	st, err := at.tables(s, handle)
	if err != nil {
		d.fault("%v", at.explain(err))
	} else if err := d.contents(s, st); err != nil {
		return at.explain(err)
	}
	if err := s.answer(d, d.print); err != nil {
		return err
	}
	faults := 0
	for _, f := range d.Findings {
		if f.Level == "fault" {
			faults++
		}
	}
	if faults > 0 {
		return fmt.Errorf("%s in %s: see above", plural(faults, "fault", "faults"), at)
	}
	return nil
}

// tables looks at the schema and the engine's own check.
func (d *diagnosis) tables(ctx context.Context, at place, handle *sql.DB) error {
	files, err := sqlstore.Schema(at.dialect)
	if err != nil {
		return err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	d.Known = len(names)
	tables, err := tablesOf(ctx, at.dialect, handle)
	if err != nil {
		return err
	}
	for _, name := range tables {
		size := tableSize{Table: name}
		if err := handle.QueryRowContext(ctx, "SELECT count(*) FROM "+name).Scan(&size.Rows); err != nil {
			return err
		}
		d.Tables = append(d.Tables, size)
	}
	if slices.Contains(tables, "heed_schema") {
		if err := handle.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM heed_schema").Scan(&d.Version); err != nil {
			return err
		}
	}
	if at.dialect != sqlstore.SQLite {
		return nil
	}
	var verdict string
	if err := handle.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		d.fault("the file is damaged: %s: restore it from a copy", verdict)
	}
	return nil
}

// contents reads all that there is.
func (d *diagnosis) contents(s *session, st *store) error {
	for kind, err := range st.evidence.Kinds(s.ctx) {
		if err == nil {
			err = d.kind(s, st, kind)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(d.outbox(s, st), d.choices(s, st), d.streams(s.ctx, st), d.documents(s, st)); err != nil {
		return err
	}
	if n := st.db.Damaged(); n > 0 {
		d.fault("%s can't be read, as what they hold is not what heed has written: restore them from a copy", plural(n, "row", "rows"))
	}
	return nil
}

// kind reads the evidence of one kind.
func (d *diagnosis) kind(s *session, st *store, kind string) error {
	size := kindSize{Kind: kind}
	halfLives, wrong, ahead := make(map[time.Duration]int), 0, 0
	limit := evidence.InstantOf(time.Now().Add(evidence.MaxSkew)) // whatever --now says
	for scope, err := range st.evidence.Scopes(s.ctx, kind) {
		if err != nil {
			return err
		}
		size.Scopes++
		var last evidence.Cell
		for part, err := range st.evidence.List(s.ctx, kind, scope) {
			if err != nil {
				return err
			}
			if part.Cell != last {
				size.Cells++
				halfLives[part.Tally.HalfLife]++
			}
			last = part.Cell
			size.Observations += part.Tally.N()
			if !sound(&part.Tally) {
				wrong++
			}
			if part.Tally.Last() > limit {
				ahead++
			}
		}
	}
	d.Kinds = append(d.Kinds, size)
	if wrong > 0 {
		d.fault("%s of kind %s can't be sums of evidence: reset the cells, or rebuild them from their history", plural(wrong, "tally", "tallies"), show(kind))
	}
	if ahead > 0 {
		d.warning("%s of kind %s lie in the future: some host's clock was wrong", plural(ahead, "tally", "tallies"), show(kind))
	}
	if len(halfLives) > 1 {
		d.warning("cells of kind %s are kept with %d different half-lives: a host refuses those that are not its own, until they are reset or rebuilt", show(kind), len(halfLives))
	}
	return nil
}

// sound reports whether a tally can be one.
func sound(t *evidence.Tally) bool {
	const slack = 1e-6 // rounding
	for _, x := range []float64{t.Mass, t.Squares, t.Reward, t.RewardSquares} {
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
			return false
		}
	}
	return t.Reward <= t.Mass*(1+slack)+slack && t.RewardSquares <= t.Reward*(1+slack)+slack
}

// waiting is how long an event or a choice may wait before somebody should look.
const waiting = time.Hour

func (d *diagnosis) outbox(s *session, st *store) error {
	n, oldest := 0, time.Time{}
	for e, err := range st.evidence.Outbox(s.ctx) {
		if err != nil {
			return err
		}
		if n++; n == 1 {
			oldest = e.At
		}
	}
	if n > 0 && s.now().Sub(oldest) > waiting {
		d.warning("%s in the outbox, the first since %s: does a relay run?", plural(n, "event waits", "events wait"), moment(oldest))
	}
	return nil
}

func (d *diagnosis) choices(s *session, st *store) error {
	overdue, since := 0, s.now().Add(-48*time.Hour)
	for r, err := range st.choices.List(s.ctx, strategy.ChoiceFilter{}) {
		if err != nil {
			return err
		}
		if r.Stage == strategy.Pending && r.Choice.At.Before(since) {
			overdue++
		}
	}
	if overdue > 0 {
		d.warning("%s for an outcome for more than two days: does the host call Learner.Sweep?", plural(overdue, "choice waits", "choices wait"))
	}
	return nil
}

// documents reads what else there is, so that rows which can't be read are found.
func (d *diagnosis) documents(s *session, st *store) error {
	kept, err := sqlstore.NewPatterns(st.db, sqlstore.PatternsConfig{})
	if err != nil {
		return err
	}
	traces, err := sqlstore.NewTraces(st.db, sqlstore.TracesConfig{Now: s.now})
	if err != nil {
		return err
	}
	reviewed := sqlstore.NewFeedback(st.db)
	return errors.Join(
		readThrough(st.evidence.Audit(s.ctx)),
		readThrough(sqlstore.NewHeuristics(st.db).All(s.ctx)),
		readThrough(kept.Patterns(s.ctx, patterns.PatternQuery{})),
		readThrough(kept.Entries(s.ctx, patterns.EntryQuery{})),
		readThrough(reviewed.Records(s.ctx, feedback.Query{})),
		readThrough(reviewed.Proposals(s.ctx, feedback.ProposalQuery{})),
		readThrough(reviewed.Rules(s.ctx, feedback.RuleQuery{})),
		readThrough(reviewed.Audit(s.ctx)),
		readThrough(traces.All(s.ctx)),
	)
}

func readThrough[T any](list iter.Seq2[T, error]) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// streams looks for events that are delivered again and again.
func (d *diagnosis) streams(ctx context.Context, st *store) error {
	rows, err := st.handle.QueryContext(ctx, "SELECT stream, count(*), max(deliveries) FROM heed_stream GROUP BY stream ORDER BY stream")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n, deliveries int
		if err := rows.Scan(&name, &n, &deliveries); err != nil {
			return err
		}
		if deliveries > 3 {
			d.warning("stream %s has an event that was delivered %d times: see what its consumer logs", show(name), deliveries)
		}
	}
	return rows.Err()
}

func (d *diagnosis) print(p *printer) {
	p.heading("%s: %s, tables of version %d", show(d.Store), d.Engine, d.Version)
	t := listing{columns: []column{{title: "table"}, {title: "rows", right: true}}}
	for _, size := range d.Tables {
		t.add(strings.TrimPrefix(size.Table, "heed_"), count(size.Rows))
	}
	t.print(p)
	if len(d.Kinds) > 0 {
		p.printf("\n")
		k := listing{columns: []column{{title: "evidence", soft: true}, {title: "scopes", right: true}, {title: "cells", right: true}, {title: "observations", right: true}}}
		for _, size := range d.Kinds {
			k.add(show(size.Kind), count(size.Scopes), count(size.Cells), count(size.Observations))
		}
		k.print(p)
	}
	p.printf("\n")
	if len(d.Findings) == 0 {
		p.line("Nothing is wrong.")
	}
	for _, f := range d.Findings {
		p.line("%s: %s", f.Level, show(f.Text))
	}
}
