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
	Worth   float64              `json:"worth"` // the signal's magnitude, negative for a complaint
	Said    evidence.Observation `json:"said"`  // without an ID if it is about an answer of the model
}

// A verdict is what a judgement says. The signal that was made of it depends on more: on the settings, and on what was said before.
type verdict struct {
	Target  heed.Target `json:"target,omitempty"`
	Channel string      `json:"channel,omitempty"`
	Scale   Scale       `json:"scale,omitempty"`
	Score   int         `json:"score,omitempty"`
	Value   float64     `json:"value,omitempty"`
	Weight  float64     `json:"weight"`
}

func (j *Judgement) verdict() verdict {
	return verdict{j.Target, j.Channel, j.Scale, j.Score, j.Value, cmp.Or(j.Weight, 1)}
}

// share returns how much of a full judgement this is: 1 for a thumb and for the highest and lowest score.
func (v verdict) share() float64 {
	x := v.Value
	if most := float64(v.Scale.points()); most > 0 {
		x = (2*float64(v.Score) - most - 1) / (most - 1)
	}
	return max(x, -x) * v.Weight
}

// replacedBy reports whether a judgement takes the place of this click: one on the same channel, about the same target or about both.
func (c *click) replacedBy(j *Judgement, target heed.Target) bool {
	return c.Verdict.Channel == j.Channel && overlap(c.Target, target)
}

func (c clicked) place() (id string, at time.Time, keys []string) {
	return store.IDOf(c.Person, c.Heuristic, c.Event), c.At, personKeys(c.Person)
}

// Judge counts what a person says about an answer. It replaces what they said before on the same channel about the same target or about
// both; a value of 0 withdraws it. A judgement sets aside contrary signals that were only seen; docs/confidence.md has the rules. The click, the confidence and
// the fire change in one commit. The same judgement again, of the same At, changes nothing: it is a [LimitDuplicate].
//
// Invalid input is a [*heed.InputError], as is an At more than [evidence.MaxSkew] before the answer. An unknown heuristic is
// [heed.ErrNotFound]. If the store no longer holds the history of the click to be replaced, Judge returns [evidence.ErrForgotten], and the
// old click counts as before. If others keep changing the same heuristic at the same moment, it returns [heed.ErrConflict].
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
	var heuristic *account
	if f.HeuristicID != "" {
		if heuristic, err = l.account(f.HeuristicID); err != nil {
			return Change{}, err
		}
		f.Domain = heuristic.heuristic.Value.Domain
	}
	switch {
	case w.Value.before(f.At):
		return Change{}, errBefore
	case f.Again && before.Revision == 0 && !m.cfg.DryRun:
		return Change{}, fmt.Errorf("the judgement before: %w", evidence.ErrForgotten)
	}
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
	if e.answer = &w; m.cfg.Diminish > 0 && !s.neutral() {
		if e.full, err = m.fullMagnitude(f, s.Type); err != nil {
			return Change{}, err
		}
	}
	if !e.replace(&before.Value, &row, &f) {
		_, err := m.commit(ctx, store.Batch{}, with...)
		return Change{Signal: s, Limits: []Limit{LimitOutdated}}, err
	}
	if err := l.count(e); err != nil {
		return Change{}, err
	}
	l.keepClick(e, row, &before, &f)
	if heuristic != nil && s.worth() > 0 {
		heuristic.ignores = 0
	}
	changes, err := l.commit(ctx, with...)
	if errors.Is(err, heed.ErrNotFound) { // the store has forgotten even the ids of what is to be replaced
		err = fmt.Errorf("the click before: %w", evidence.ErrForgotten)
	}
	if err != nil {
		return Change{}, err
	}
	return changes[0], nil
}

// keepClick writes the person's judgement of the answer. A judgement that does not count adds no click: it makes a record only where there is none.
func (l *ledger) keepClick(e *entry, row clicked, before *store.Row[clicked], f *Judgement) {
	said := e.counted
	if f.HeuristicID == "" {
		said = &evidence.Observation{Session: f.Session, At: f.At}
	}
	switch row.At = l.m.orNow(time.Time{}); {
	case said != nil:
		row.Number, row.Live = before.Value.Number+1, append(row.Live, click{e.signal.Target, f.verdict(), e.signal.worth(), *said})
	case before.Revision > 0:
		return
	}
	l.batch.Records = append(l.batch.Records, l.m.kinds.clicks.Record(row, before.Revision))
}

// replace lets a judgement take the place of the person's earlier ones, and adds to row those that it leaves. It reports false if one of
// them came later.
func (e *entry) replace(before, row *clicked, j *Judgement) bool {
	facts := &e.answer.Value.Facts
	for _, c := range before.Live {
		switch replaced := c.replacedBy(j, e.signal.Target); {
		case replaced && c.Said.At.After(j.At):
			return false
		case replaced:
			facts.remove(c.Worth, c.Verdict.share())
			if c.Said.ID != "" {
				e.replaces = append(e.replaces, c.Said)
			}
		default:
			row.Live = append(row.Live, c)
		}
	}
	facts.add(e.signal.worth(), j.verdict().share())
	return true
}

var errBefore = &heed.InputError{Field: "At", Reason: fmt.Sprintf("is more than %v before the answer was shown", evidence.MaxSkew)}

// repeated answers a judgement that counts already. It changes nothing.
func (m *Module) repeated(ctx context.Context, a *account, s Signal, said *evidence.Observation, with []store.Batch) (Change, error) {
	confidence := 0.
	if a != nil {
		b := m.believe(a)
		confidence, _ = b.confidence(a.parts, evidence.InstantOf(said.At))
	}
	e := &entry{id: said.ID, change: Change{Signal: s, Old: confidence, New: confidence, Limits: []Limit{LimitDuplicate}}}
	if _, err := m.commit(ctx, store.Batch{}, with...); err != nil {
		return Change{}, err
	}
	if m.watch != nil {
		m.tell(ctx, e)
	}
	return e.change, nil
}

// readClick reads what a person has said about an answer before, the answer, and the heuristics that it concerns.
func (l *ledger) readClick(ctx context.Context, row *clicked) (before store.Row[clicked], w store.Row[fired], err error) {
	k := &l.m.kinds
	id, _, _ := row.place()
	var heuristics []string
	if row.Heuristic != "" {
		heuristics = append(heuristics, row.Heuristic)
	}
	err = l.read(ctx, heuristics, []store.Ref{k.clicks.Ref(id), l.m.fireRef(row.Heuristic, row.Event)})
	if err == nil {
		before, err = k.clicks.Of(l.rest[0])
	}
	if err == nil {
		w, err = l.readAnswer(ctx, l.rest[1], row.Heuristic, row.Event)
	}
	return before, w, err
}

func (m *Module) fireRef(heuristicID, eventID string) store.Ref {
	return m.kinds.fires.Ref(answer{heuristicID, eventID}.record())
}

// readAnswer returns the answer of a record, a new one if there is none. It reads the heuristics that were compared with it.
func (l *ledger) readAnswer(ctx context.Context, r store.Record, heuristicID, eventID string) (store.Row[fired], error) {
	w, err := l.m.kinds.fires.Of(r)
	switch {
	case err != nil:
	case w.Revision == 0:
		w.Value = fired{Heuristic: heuristicID, Event: eventID, Closed: true, Due: l.m.orNow(time.Time{})}
	case len(w.Value.Compared) > 0:
		err = l.read(ctx, w.Value.heuristics(), nil)
	}
	return w, err
}

// interpretJudgement asks the strategy for the signal.
func (m *Module) interpretJudgement(f *Judgement) (Signal, error) {
	s, err := ask(func() (Signal, error) { return m.cfg.Strategy.InterpretJudgement(*f) })
	if err == nil && (s.HeuristicID != f.HeuristicID || s.EventID != f.EventID) {
		err = errForeign
	}
	if err == nil {
		err = s.Validate()
	}
	if err == nil {
		s.Magnitude = min(s.Magnitude*cmp.Or(f.Weight, 1), evidence.MaxWeight)
	}
	return s, err
}

// fullMagnitude returns what a thumb, or the outermost score, would be worth in place of a judgement of this sign.
func (m *Module) fullMagnitude(j Judgement, sign SignalType) (float64, error) {
	j.Weight = 1
	switch points := j.Scale.points(); {
	case points > 0 && sign == Positive:
		j.Score = points
	case points > 0:
		j.Score = 1
	case sign == Positive:
		j.Value = 1
	default:
		j.Value = -1
	}
	full, err := m.interpretJudgement(&j)
	return full.Magnitude, err
}

// clickEntry returns the entry of a click. Its id has the moment in it, as the store may have dropped the record of an earlier click.
func (m *Module) clickEntry(f *Judgement, s Signal, id string, number int) *entry {
	moment := strconv.FormatInt(f.At.UnixMicro(), 10)
	return &entry{
		signal: s, cell: saidCells[s.Target], id: "click:" + store.IDOf(m.cfg.Name, id, moment, strconv.Itoa(number)),
		person: f.Person, session: f.Session, at: f.At, explicit: true, spoken: true,
	}
}
