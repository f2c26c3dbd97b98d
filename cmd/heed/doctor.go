package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
)

type doctorCommand struct{}

// A diagnosis is what doctor has found.
type diagnosis struct {
	Store    string       `json:"store"`
	Engine   string       `json:"engine"`
	Version  int          `json:"version"` // of the tables
	Known    int          `json:"known"`   // the version that this program works with
	Tables   []tableSize  `json:"tables"`
	Kinds    []kindSize   `json:"kinds"`
	Records  []recordSize `json:"records"`
	Findings []finding    `json:"findings"`
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
	d := &diagnosis{Store: at.String(), Engine: at.dialect.String(), Tables: []tableSize{}, Kinds: []kindSize{}, Records: []recordSize{}, Findings: []finding{}}
	if err := d.look(s, at, handle); isCorrupt(err) {
		d.fault("%v", at.explain(err))
	} else if err != nil {
		return at.explain(err)
	}
	if err := s.answer(d, d.print); err != nil {
		return err
	}
	if faults := d.faults(); faults > 0 {
		return fmt.Errorf("%s in %s: see above", plural(faults, "fault", "faults"), at)
	}
	return nil
}

// look looks at the file, the tables, and what they hold, as far as each lets it see the next.
func (d *diagnosis) look(s *session, at place, handle *sql.DB) error {
	if err := errors.Join(d.file(s.ctx, at, handle), d.tables(s.ctx, at, handle)); err != nil || len(d.Findings) > 0 {
		return err
	}
	st, err := at.tables(s, handle)
	var schema *sqlstore.SchemaError
	switch {
	case errors.As(err, &schema):
		d.fault("%v", at.explain(err))
		return nil
	case err != nil:
		return err
	}
	return d.contents(s, st)
}

// file has the engine check its file.
func (d *diagnosis) file(ctx context.Context, at place, handle *sql.DB) error {
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

// tables counts the tables' rows, and looks for tables that are not there.
func (d *diagnosis) tables(ctx context.Context, at place, handle *sql.DB) error {
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
	if slices.Contains(tables, "heed_store") {
		if err := handle.QueryRowContext(ctx, "SELECT version FROM heed_store").Scan(&d.Version); err != nil {
			return err
		}
	}
	needed, err := d.needed(at.dialect)
	for _, name := range needed {
		if len(tables) > 0 && !slices.Contains(tables, name) {
			d.fault("the table %s is missing: restore the store from a copy", name)
		}
	}
	return err
}

var created = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// needed returns the tables that a store of its version has.
func (d *diagnosis) needed(dialect sqlstore.Dialect) (tables []string, err error) {
	files, err := sqlstore.Schema(dialect)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	d.Known = len(names)
	for _, name := range names[:min(max(d.Version, 1), len(names))] {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		for _, found := range created.FindAllStringSubmatch(string(text), -1) {
			tables = append(tables, found[1])
		}
	}
	return tables, nil
}

// contents reads all that there is.
func (d *diagnosis) contents(s *session, st *opened) error {
	status, err := st.store.Status(s.ctx)
	if err != nil {
		return err
	}
	for _, kind := range status.Cells {
		if err := d.kind(s, st, kind); err != nil {
			return err
		}
	}
	for _, look := range []func(*session, *opened) error{d.records, d.everything, d.events, d.choices} {
		if err := look(s, st); err != nil {
			return err
		}
	}
	return nil
}

// faults counts what is wrong.
func (d *diagnosis) faults() (n int) {
	for _, f := range d.Findings {
		if f.Level == "fault" {
			n++
		}
	}
	return n
}

// kind reads the evidence of one kind.
func (d *diagnosis) kind(s *session, st *opened, kind string) error {
	size := kindSize{Kind: kind}
	halfLives, wrong, ahead := make(map[time.Duration]int), 0, 0
	limit := evidence.InstantOf(time.Now().Add(evidence.MaxSkew)) // whatever --now says
	for scope, err := range st.store.Scopes(s.ctx, kind) {
		if err != nil {
			return err
		}
		size.Scopes++
		var last evidence.Cell
		for part, err := range st.store.List(s.ctx, kind, scope) {
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
		d.fault("%s of kind %s can't come from evidence: reset the cells, or rebuild them from their history", plural(wrong, "tally", "tallies"), show(kind))
	}
	if ahead > 0 {
		d.warning("%s in the future, of kind %s: some host's clock was wrong", plural(ahead, "tally lies", "tallies lie"), show(kind))
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
	if len(d.Records) > 0 {
		p.printf("\n")
		r := listing{columns: []column{{title: "kind", soft: true}, {title: "records", right: true}}}
		for _, size := range d.Records {
			r.add(show(size.Kind), count(size.Records))
		}
		r.print(p)
	}
	p.printf("\n")
	if len(d.Findings) == 0 {
		p.line("Nothing is wrong.")
	}
	for _, f := range d.Findings {
		p.line("%s: %s", f.Level, show(f.Text))
	}
}
