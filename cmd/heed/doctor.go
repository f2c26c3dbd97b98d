package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
)

type doctorCommand struct {
	Deep bool `help:"Compare indexes with tables, and rows that belong together. It takes longer."`
}

// A diagnosis is what doctor has found.
type diagnosis struct {
	Store    string       `json:"store"`
	Engine   string       `json:"engine"`
	Kinds    []kindSize   `json:"kinds"`
	Records  []recordSize `json:"records"`
	Findings []finding    `json:"findings"`
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
func (cmd doctorCommand) Run(s *session) error {
	at, err := s.where()
	if err != nil {
		return err
	}
	d := &diagnosis{Store: at.String(), Engine: at.dialect.String(), Kinds: []kindSize{}, Records: []recordSize{}, Findings: []finding{}}
	if err := d.look(s, at, cmd.Deep); isCorrupt(err) || errors.As(err, new(*sqlstore.SchemaError)) {
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

// look looks at the file and its tables, and at what they hold if they are sound.
func (d *diagnosis) look(s *session, at place, deep bool) error {
	handle, err := at.handle(s.ctx, false)
	if err != nil {
		return err
	}
	defer handle.Close()
	faults, warnings, err := sqlstore.Check(s.ctx, handle, at.dialect, deep)
	for _, fault := range faults {
		d.fault("%s", fault)
	}
	for _, warning := range warnings {
		d.warning("%s", warning)
	}
	if err != nil || len(faults) > 0 {
		return at.tableless(err)
	}
	st, err := at.make(s.ctx, handle, sqlstore.Config{Existing: true})
	if err != nil {
		return err
	}
	status, err := st.store.Status(s.ctx)
	if errors.Is(err, heed.ErrDamaged) {
		d.fault("%v: restore the store from a copy", err)
		return nil
	} else if err != nil {
		return err
	}
	for _, kind := range status.Cells {
		if err := d.kind(s.ctx, st, kind); err != nil {
			return err
		}
	}
	for _, look := range []func(*session, *opened) error{d.records, d.values, d.everything, d.events, d.choices} {
		if err := look(s, st); err != nil && !errors.Is(err, heed.ErrDamaged) {
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
func (d *diagnosis) kind(ctx context.Context, st *opened, kind string) error {
	size := kindSize{Kind: kind}
	halfLives, ahead := make(map[time.Duration]int), 0
	wrong := make(map[evidence.Cell]bool)
	limit := evidence.InstantOf(time.Now().Add(evidence.MaxSkew)) // whatever --now says
	for scope, err := range st.store.Scopes(ctx, kind) {
		if err != nil {
			return err
		}
		size.Scopes++
		var last evidence.Cell
		for part, err := range st.store.List(ctx, kind, scope) {
			if err != nil {
				return err
			}
			if part.Cell != last {
				size.Cells++
				halfLives[part.Tally.HalfLife]++
			}
			last = part.Cell
			size.Observations += part.Tally.N()
			if !sound(&part.Tally) && !wrong[part.Cell] {
				wrong[part.Cell] = true
				c := part.Cell
				d.fault("the sums of kind %q, scope %q, item %q, name %q can't come from evidence: "+
					"restore the store from a copy",
					c.Kind, c.Scope, c.Item, c.Name)
			}
			if part.Tally.Last() > limit {
				ahead++
			}
		}
	}
	d.Kinds = append(d.Kinds, size)
	if ahead > 0 {
		d.warning("%s in the future, of kind %s: the clock of some host was wrong", plural(ahead, "tally lies", "tallies lie"), show(kind))
	}
	if len(halfLives) > 1 {
		d.warning("cells of kind %s are kept with %d different half-lives. A host refuses cells with "+
			"another half-life than its own: give that to heed store rebuild --half-life",
			show(kind), len(halfLives))
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
	p.heading("%s: %s", show(d.Store), d.Engine)
	kinds, records := newTable("evidence", ">scopes", ">cells", ">observations"), newTable("kind", ">records")
	for _, size := range d.Kinds {
		kinds.add(show(size.Kind), count(size.Scopes), count(size.Cells), count(size.Observations))
	}
	for _, size := range d.Records {
		records.add(show(size.Kind), count(size.Records))
	}
	for _, t := range []*listing{kinds, records} {
		if len(t.rows) > 0 {
			t.print(p)
			p.printf("\n")
		}
	}
	if len(d.Findings) == 0 {
		p.line("Nothing is wrong.")
	}
	for _, f := range d.Findings {
		p.line("%s: %s", f.Level, show(f.Text))
	}
}
