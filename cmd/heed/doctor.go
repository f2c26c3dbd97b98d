package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

const (
	day      = 24 * time.Hour
	waiting  = time.Hour // how long an event may wait before somebody should look
	mostRead = 1000      // events that are counted
	restore  = "restore the store from a copy"
)

type doctorCommand struct{ Deep bool }

// A diagnosis is what doctor found.
type diagnosis struct {
	Store    string    `json:"store"`
	Engine   string    `json:"engine"`
	Kinds    []size    `json:"kinds"`
	Findings []finding `json:"findings"`
	faults   int       // among the findings
	reads    func(kind string, b store.Body) error
}

// A size counts what a kind has: observations of evidence, or else records.
type size struct {
	Kind    string `json:"kind"`
	Has     string `json:"has"`
	Entries uint64 `json:"entries"`
	odd     int    // tallies in the future, or records that are kept for too long
}

type finding struct {
	Level string `json:"level"` // fault or warning
	Text  string `json:"text"`
}

func (d *diagnosis) fault(format string, args ...any) {
	d.faults++
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
	d := &diagnosis{
		Store: at.String(), Engine: at.dialect.String(), Kinds: []size{}, Findings: []finding{}}
	err = d.look(s, at, cmd.Deep)
	switch {
	case troubleOf(err) == damaged, errors.As(err, new(*sqlstore.SchemaError)):
		d.fault("%v", at.explain(err))
	case errors.Is(err, heed.ErrDamaged):
		d.fault("%v: %s", err, restore)
	case err != nil:
		return at.explain(err)
	}
	if err := s.answer(d, "doctor"); err != nil {
		return err
	}
	if d.faults > 0 {
		return fmt.Errorf("%s in %s: see above", plural(d.faults, "fault", "faults"), at)
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
	if s.at, err = at.make(s.ctx, handle, sqlstore.Config{Existing: true}); err != nil {
		return err
	}
	all := func(s *session) error { return d.frozen(s, math.MaxInt) }
	for _, look := range []func(*session) error{d.rows, d.events, d.models, all} {
		if err := look(s); err != nil && !errors.Is(err, heed.ErrDamaged) {
			return err
		}
	}
	return nil
}

// models lists the models that agents can't ask at present.
func (d *diagnosis) models(s *session) error {
	names, _, err := agents.find(s, s.Agent)
	for _, agent := range names {
		down, err := s.source().Unavailable(s.ctx, agent)
		if err != nil {
			return err
		}
		for _, m := range down {
			d.warning("%s gets no answer from its %s, since %s: %v", show(agent), show(m.Model),
				text(m.Since), m.Failure)
		}
	}
	return err
}

// frozen lists which agents do not learn, at most a number: of the tenant that is looked at, or of
// any. A freeze is for hours, so one of more than a day was probably forgotten.
func (d *diagnosis) frozen(s *session, most int) error {
	status, err := s.at.store.Status(s.ctx)
	found := 0
	for _, kind := range status.Records {
		name, tenant := store.KindOf(kind)
		agent, is := strings.CutSuffix(name, ".frozen")
		if !is || s.Agent != "" && s.Agent != agent ||
			s.Tenant != "" && tenant != "" && s.Tenant != tenant {
			continue
		}
		freezes := answers.Freezes(agent)
		freezes.Name = kind
		row, failure := freezes.Get(s.ctx, s.at.store, answers.FrozenID)
		report, by := d.warning, "heed store unfreeze"
		if s.now().Sub(row.Value.At) > day {
			report = d.fault
		}
		if agent = show(agent); tenant != "" {
			agent, by = agent+" of tenant "+show(tenant), "heed --tenant "+show(tenant)+" store unfreeze"
		}
		if row.Value.Frozen {
			if found++; found > most {
				d.warning("more agents do not learn: heed doctor lists them")
				break
			}
			report("the agent %s has not learned since %s: see %s", agent, text(row.Value.At), by)
		}
		if errors.Is(failure, heed.ErrDamaged) {
			err = failure // and go on
		} else if failure != nil && !errors.Is(failure, heed.ErrNotFound) {
			return failure
		}
	}
	return err
}

// rows reads all that a dump has, and counts it by kind.
func (d *diagnosis) rows(s *session) (err error) {
	if d.reads, err = readerOf(s); err != nil && !errors.Is(err, heed.ErrDamaged) {
		return err
	}
	limit := evidence.InstantOf(time.Now().Add(evidence.MaxSkew)) // whatever --now is
	kept, sizes := make(map[string]time.Duration), make(map[string]*size)
	count := func(has, kind string, n uint64, odd bool) {
		one := cmp.Or(sizes[has+kind], &size{Kind: kind, Has: has})
		sizes[has+kind] = one
		if one.Entries += n; odd {
			one.odd++
		}
	}
	for r, err := range s.at.rows(s.ctx) {
		kind, _ := store.KindOf(r.kind) // of all tenants, which may be many
		if r.Record != nil {
			err = cmp.Or(err, d.reads(kind, store.Raw(r.Record.Body)))
		}
		switch {
		case errors.Is(err, heed.ErrDamaged), errors.As(err, new(*heed.InputError)):
			return d.damage(s, err) // the counts would be incomplete
		case err != nil:
			return err
		case r.Kind != nil:
			kept[r.Kind.Name] = r.Kind.Limits.For
		case r.Tally != nil:
			t := r.Tally.Evidence(0)
			count("observations", kind, t.N(), t.Last() > limit)
		case r.Record != nil:
			age := s.now().Sub(r.Record.At.Time())
			count("records", kind, 1, kept[kind] > 0 && age > kept[kind]+day)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		one := sizes[key]
		d.Kinds = append(d.Kinds, *one)
		switch {
		case one.odd > 0 && one.Has == "observations":
			d.warning("%s in the future, of kind %s: the clock of some host was wrong",
				plural(one.odd, "tally lies", "tallies lie"), show(one.Kind))
		case one.odd > 0:
			d.warning("%s of %s longer than %s: does the host call Sweep of its store, or is its limit "+
				"longer?", plural(one.odd, "is kept", "are kept"), show(one.Kind),
				plural(int(kept[one.Kind]/day), "day", "days"))
		}
	}
	return nil
}

// readerOf returns what reads a record as lists do, which leave out what they can't read. A kind
// that is not listed may have any JSON.
func readerOf(s *session) (_ func(kind string, b store.Body) error, err error) {
	of := map[string]func(store.Body) error{
		store.Audit.Name: shape[store.AuditEntry], stream.Outbox.Name: shape[stream.Event],
		"decision.trace": shape[decision.Trace], "feedback.record": shape[feedback.Feedback],
		"feedback.proposal": shape[feedback.Proposal], "feedback.rule": shape[feedback.Rule],
	}
	for _, t := range []part{agents, learners, modules, recorders} {
		names, failure := t.names(s.ctx, s.at.store)
		err = cmp.Or(err, failure)
		for _, name := range names {
			of[name+".answer"], of[name+".frozen"] = shape[answer.Answer], shape[answers.Frozen]
			of[name+".heuristic"] = shape[learning.Heuristic]
			of[name+".pattern"] = shape[patterns.Pattern]
		}
	}
	return func(kind string, b store.Body) error {
		base, _ := store.KindOf(kind)
		if read := of[base]; read != nil {
			return read(b)
		}
		return shape[any](b)
	}, err
}

func shape[T any](b store.Body) error {
	_, err := store.Decode[T](b) // an error if the record has another shape
	return err
}

// damage names what can't be read. A dump ends at the first of it.
func (d *diagnosis) damage(s *session, first error) error {
	status, err := s.at.store.Status(s.ctx)
	for _, kind := range status.Records {
		var bad []string
		for r, err := range s.at.store.Find(s.ctx, store.Query{Kind: kind}) {
			if err == nil {
				err = d.reads(kind, r.Body)
			}
			if errors.Is(err, heed.ErrDamaged) {
				bad = append(bad, cmp.Or(r.ID, err.Error())) // the error has the id that r lacks
			} else if err != nil {
				return err
			}
		}
		remedy := restore
		if name, _ := store.KindOf(kind); strings.HasSuffix(name, ".frozen") {
			remedy = "heed store freeze or unfreeze, with its --agent and --tenant, writes it again"
		}
		d.unread("record", kind, remedy, bad)
	}
	for _, kind := range status.Cells {
		bad, err := histories(s, kind)
		if err != nil {
			return err
		}
		d.unread("cell", kind, restore, bad)
	}
	if d.faults == 0 {
		d.fault("not everything can be read: %v: %s", first, restore)
	}
	return err
}

// unread reports the damaged records, or cells, of a kind.
func (d *diagnosis) unread(what, kind, remedy string, names []string) {
	if len(names) > 0 {
		d.fault("%s of %s can't be read: %s. The first: %s", plural(len(names), what, what+"s"),
			show(kind), remedy, someOf(names))
	}
}

// histories returns the names of the cells of a kind that have a damaged observation or tally.
func histories(s *session, kind string) (bad []string, _ error) {
	last := evidence.Cell{}
	for scope, err := range s.at.store.Scopes(s.ctx, kind) {
		if err != nil {
			return nil, err
		}
		for part, err := range s.at.store.List(s.ctx, store.CellQuery{Kind: kind, Scope: scope}) {
			switch {
			case errors.Is(err, heed.ErrDamaged):
				bad = append(bad, err.Error()) // it names the cell
				continue
			case err != nil:
				return nil, err
			case part.Cell == last: // another part of it
				continue
			}
			last = part.Cell
			for o, err := range s.at.store.History(s.ctx, last) {
				if errors.Is(err, heed.ErrDamaged) || err == nil && o.Validate(o.At) != nil {
					bad = append(bad, fmt.Sprint(scope, " / ", last.Item, " / ", last.Name))
					break
				} else if err != nil {
					return nil, err
				}
			}
		}
	}
	return bad, nil
}

// events looks at what waits to be published.
func (d *diagnosis) events(s *session) error {
	n, dead, oldest, unread := 0, 0, time.Time{}, error(nil)
	for e, err := range stream.Waiting(s.ctx, s.at.store) {
		if err != nil {
			unread = err
			continue
		}
		if n++; n == 1 {
			oldest = e.At
		}
		if e.Topic == attribution.DeadTopic {
			dead++
		}
		if n == mostRead {
			break
		}
	}
	if dead > 0 {
		d.warning("%s in the outbox: events that could not be applied",
			plural(dead, "dead letter waits", "dead letters wait"))
	}
	many := "events wait"
	if n == mostRead || unread != nil {
		many = "or more events wait"
	}
	if n > 0 && s.now().Sub(oldest) > waiting {
		d.warning("%s in the outbox, the first since %s: does a relay run?",
			plural(n, "event waits", many), text(oldest))
	}
	return unread
}
