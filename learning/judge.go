package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/limits"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// clicked is the record of what a person has said about an answer. Its revision orders two clicks at the same moment, also of two
// processes.
type clicked struct {
	Person    string    `json:"person,omitempty"`
	Heuristic string    `json:"heuristic"`
	Event     string    `json:"event"`
	Number    int       `json:"number"` // of the last click
	Live      []click   `json:"live"`   // those that count
	At        time.Time `json:"at"`     // when the last one was heard
}

// A click is a judgement that counts, as it was said and as it is in the evidence.
type click struct {
	Target  heed.Target          `json:"target,omitempty"` // of the signal
	Verdict verdict              `json:"verdict"`
	Said    evidence.Observation `json:"said"`
}

// A verdict is what a judgement says. The signal that was made of it depends on more: on the settings, and on what was said before.
type verdict struct {
	Target   heed.Target `json:"target,omitempty"`
	Channel  string      `json:"channel,omitempty"`
	Scale    Scale       `json:"scale,omitempty"`
	Positive bool        `json:"positive,omitempty"`
	Score    int         `json:"score,omitempty"`
	Factor   float64     `json:"factor"`
}

func (j *Judgement) verdict() verdict {
	v := verdict{j.Target, j.Channel, j.Scale, j.Positive, j.Score, 1}
	if j.Factor != nil {
		v.Factor = *j.Factor
	}
	return v
}

func (c clicked) place() (id string, at time.Time, keys []string) {
	return records.ID(c.Person, c.Heuristic, c.Event), c.At, personKeys(c.Person)
}

// Judge counts what a person says about an answer. It replaces what they said before, and the answer is not ignored any more. The click,
// the confidence and the fire change in one commit. The same judgement again, of the same At, changes nothing: it is a [LimitDuplicate].
//
// Invalid input is a [*heed.InputError], and an unknown heuristic [heed.ErrNotFound]. If the store no longer holds the history of the
// click to be replaced, Judge returns [evidence.ErrForgotten], and the old click counts as before. If others keep changing the same
// heuristic at the same moment, it returns [heed.ErrConflict].
//
// Further batches are committed in the same Commit: the record of a reaction, for example. If somebody else is quicker then, Judge returns
// [heed.ErrConflict] at once and commits nothing. Make the batches anew, and call it again.
func (m *Module) Judge(ctx context.Context, j Judgement, with ...store.Batch) (change Change, err error) {
	defer doing("judge", &err)
	j.At = m.orNow(j.At)
	if err := cmp.Or(j.Validate(), limits.CheckTime("At", j.At, m.cfg.Now())); err != nil {
		return Change{}, err
	}
	err = m.retry(ctx, with, func() (err error) {
		change, err = m.judge(ctx, j, with)
		return err
	})
	return change, err
}

func (m *Module) judge(ctx context.Context, f Judgement, with []store.Batch) (Change, error) {
	l := m.newLedger()
	row := clicked{Person: f.Person, Heuristic: f.HeuristicID, Event: f.EventID}
	before, w, err := l.readClick(ctx, &row)
	if err != nil {
		return Change{}, err
	}
	heuristic, err := l.account(f.HeuristicID)
	if err != nil {
		return Change{}, err
	}
	f.Domain = heuristic.heuristic.Value.Domain
	s, err := m.interpretJudgement(&f)
	if err != nil {
		return Change{}, err
	}
	for _, c := range before.Value.Live {
		if c.Said.At.Equal(f.At) && c.Said.Session == f.Session && c.Verdict == f.verdict() {
			return m.repeated(ctx, heuristic, s, &c.Said, with)
		}
	}
	e := m.clickEntry(&f, s, before.ID, before.Value.Number+1)
	for _, c := range before.Value.Live {
		switch overlaps := overlap(c.Target, s.Target); {
		case overlaps && c.Said.At.After(f.At):
			_, err := m.commit(ctx, store.Batch{}, with...)
			return Change{Signal: s, Limits: []Limit{LimitOutdated}}, err
		case overlaps:
			e.replaces = append(e.replaces, c.Said)
		default:
			row.Live = append(row.Live, c)
		}
	}
	complains := m.cfg.ComplaintRetractsSilence && s.reward() == 0
	if complains {
		e.silence = w.Value.Silent
	}
	if err := l.count(e); err != nil {
		return Change{}, err
	}
	if e.counted != nil {
		row.Number, row.Live, row.At = before.Value.Number+1, append(row.Live, click{s.Target, f.verdict(), *e.counted}), m.orNow(time.Time{})
		l.batch.Records = append(l.batch.Records, m.kinds.clicks.Record(row, before.Revision))
	}
	heuristic.ignores = 0
	l.hear(w, complains, e.silence != nil)
	changes, err := l.commit(ctx, with...)
	if errors.Is(err, heed.ErrNotFound) { // the store has forgotten even the ids of what is to be replaced
		err = fmt.Errorf("the click before: %w", evidence.ErrForgotten)
	}
	if err != nil {
		return Change{}, err
	}
	return changes[0], nil
}

// repeated answers a judgement that counts already. It changes nothing.
func (m *Module) repeated(ctx context.Context, a *account, s Signal, said *evidence.Observation, with []store.Batch) (Change, error) {
	b := m.believe(a)
	confidence, _ := b.confidence(a.parts, evidence.InstantOf(said.At))
	e := &entry{id: said.ID, change: Change{Signal: s, Old: confidence, New: confidence, Limits: []Limit{LimitDuplicate}}}
	if _, err := m.commit(ctx, store.Batch{}, with...); err != nil {
		return Change{}, err
	}
	if m.watch != nil {
		m.tell(ctx, e)
	}
	return e.change, nil
}

// readClick reads what a person has said about an answer before, and the fire of the answer.
func (l *ledger) readClick(ctx context.Context, row *clicked) (before records.Kept[clicked], w records.Kept[fired], err error) {
	k := &l.m.kinds
	id, _, _ := row.place()
	a := answer{row.Heuristic, row.Event}
	err = l.read(ctx, []string{row.Heuristic}, []store.Ref{k.clicks.Ref(id), k.fires.Ref(a.record())})
	if err == nil {
		before, err = k.clicks.Of(l.rest[0])
	}
	if err == nil {
		w, err = k.fires.Of(l.rest[1])
	}
	return before, w, err
}

// hear notes in the record of a fire that somebody has judged it. A complaint ends it if complaints keep silence from counting.
func (l *ledger) hear(kept records.Kept[fired], complains, silenced bool) {
	w := kept.Value
	switch {
	case kept.Revision == 0:
		return
	case complains && w.End == "" || silenced:
		w.End, w.Silent = endComplaint, nil
		w.schedule(l.m.orNow(time.Time{}))
	case w.End == "" && !w.Heard:
		w.Heard = true
	default:
		return
	}
	l.batch.Records = append(l.batch.Records, l.m.kinds.fires.Record(w, kept.Revision))
}

// interpretJudgement asks the strategy for the signal.
func (m *Module) interpretJudgement(f *Judgement) (Signal, error) {
	s, err := ask(func() (Signal, error) { return m.cfg.Strategy.InterpretJudgement(*f) })
	if err == nil && (s.HeuristicID != f.HeuristicID || s.EventID != f.EventID) {
		err = errForeign
	}
	if err == nil && f.Factor != nil {
		s.Magnitude = min(s.Magnitude**f.Factor, evidence.MaxWeight)
	}
	return s, err
}

// clickEntry returns the entry of a click. Its id has the moment in it, as the store may have dropped the record of an earlier click.
func (m *Module) clickEntry(f *Judgement, s Signal, id string, number int) *entry {
	moment := strconv.FormatInt(f.At.UnixMicro(), 10)
	return &entry{
		signal: s, cell: saidCells[s.Target], id: "click:" + records.ID(m.cfg.Name, id, moment, strconv.Itoa(number)),
		person: f.Person, session: f.Session, at: f.At, explicit: true,
	}
}
