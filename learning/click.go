package learning

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A click is one feedback that counts. Beside the heuristic's cell, its observation is in a cell of the person and the
// answer, under the same id, so that the next one finds it, and retracting it takes it out of both. The clicks of a person
// on an answer are numbered, and a number counts once: of two clicks at the same moment, in whatever processes, one comes
// after the other.
type click struct {
	number      int
	target      Target
	observation evidence.Observation
}

// Feedback counts what somebody says of an answer, in the place of what they said before. It also tells that the answer was
// not ignored.
//
// Input that is not valid is a [*heed.InputError], an unknown heuristic [heed.ErrNotFound]. If the click to be replaced is
// one that the store no longer holds, it is [evidence.ErrForgotten], and the old one counts as before. A click that again and
// again comes at the same moment as others of the same person on the same answer is [heed.ErrConflict].
func (m *Module) Feedback(ctx context.Context, f Feedback) (Change, error) {
	change, err := m.feedback(ctx, &f)
	if err != nil {
		return Change{}, fmt.Errorf("learning: feedback: %w", err)
	}
	m.fires.find(answer{f.HeuristicID, f.EventID}, func(w *watched) { w.heard = true })
	m.fires.noticed(f.HeuristicID)
	return change, nil
}

// clickTries is how often a click gives way to another of the same person on the same answer.
const clickTries = 16

func (m *Module) feedback(ctx context.Context, f *Feedback) (Change, error) {
	if err := ctx.Err(); err != nil {
		return Change{}, err
	}
	if err := f.Validate(); err != nil {
		return Change{}, err
	}
	h, err := m.cfg.Heuristics.Get(ctx, f.HeuristicID)
	if err != nil {
		return Change{}, fmt.Errorf("heuristic: %w", err)
	}
	f.Domain, f.At = h.Domain, m.orNow(f.At)
	s, err := ask(func() (Signal, error) { return m.cfg.Strategy.InterpretFeedback(*f) })
	if err != nil {
		return Change{}, err
	}
	if s.HeuristicID != f.HeuristicID || s.EventID != f.EventID {
		return Change{}, errForeign("feedback")
	}
	if f.Factor != nil {
		s.Magnitude = min(s.Magnitude**f.Factor, evidence.MaxWeight)
	}
	number := 0
	failure := fmt.Errorf("too many clicks at the same moment: %w", heed.ErrConflict)
	for range clickTries {
		live, err := m.clicks(ctx, f)
		if errors.Is(err, evidence.ErrForgotten) {
			failure = err // unless another click came between two readings
			continue
		}
		if err != nil {
			return Change{}, err
		}
		for _, c := range live {
			if c.target.overlaps(s.Target) && c.observation.At.After(f.At) {
				return Change{Signal: s, Limits: []Limit{LimitOutdated}}, nil
			}
			number = max(number, c.number)
		}
		number++ // of a duplicate that the history does not show, the next one is tried
		change, err := m.click(ctx, f, s, number, live)
		if err != nil || len(change.Limits) == 0 || change.Limits[len(change.Limits)-1] != LimitDuplicate {
			return change, err
		}
	}
	return Change{}, failure
}

// click counts a signal as the click of this number.
func (m *Module) click(ctx context.Context, f *Feedback, s Signal, number int, live []click) (Change, error) {
	name := m.clickName(f)
	e := entry{
		signal: s, cell: saidCell(s.Target), batch: fmt.Sprintf("click:%s:%d", name, number),
		person: f.Person, session: f.Session, at: f.At, explicit: true,
	}
	e.id = e.batch + ":" + string(s.Target)
	for _, c := range live {
		if c.target.overlaps(s.Target) {
			e.retract = append(e.retract, c.observation.ID)
			e.replaces = append(e.replaces, c.observation)
		}
	}
	e.extra = []evidence.Observation{{
		ID: e.id, Cell: m.clickCell(m.period(m.cfg.Now()), name), Channel: s.Source, Source: f.Person, Session: f.Session,
		Reward: s.reward(), Weight: 1, At: f.At,
	}}
	if m.cfg.ComplaintRetractsSilence && s.reward() == 0 {
		return m.complain(ctx, e)
	}
	change, _, err := m.count(ctx, &e)
	return change, err
}

// complain counts a click that takes back the silence of its answer, if that was counted, or keeps it from being.
func (m *Module) complain(ctx context.Context, e entry) (Change, error) {
	key := answer{e.signal.HeuristicID, e.signal.EventID}
	with := e
	with.retract = append(with.retract[:len(with.retract):len(with.retract)], silenceID("implicit:"+m.hashOf(key)))
	change, _, err := m.count(ctx, &with)
	if errors.Is(err, heed.ErrNotFound) || errors.Is(err, evidence.ErrForgotten) {
		change, _, err = m.count(ctx, &e)
	}
	if err == nil {
		m.fires.one(key, func(*watched) bool { return true }, m.fires.drop)
	}
	return change, err
}

// clicks returns what the person has said of the answer that still counts, or [evidence.ErrForgotten] where the store knows
// that there is more than it can tell.
func (m *Module) clicks(ctx context.Context, f *Feedback) (live []click, err error) {
	period := m.period(m.cfg.Now())
	cells := [...]evidence.Cell{m.clickCell(period, m.clickName(f)), m.clickCell(period-1, m.clickName(f))}
	parts, err := m.cfg.Evidence.Read(ctx, nil, cells[:]...)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	for _, cell := range cells {
		for o, err := range m.cfg.Evidence.History(ctx, cell) {
			if err != nil {
				return nil, err
			}
			_, rest, _ := strings.Cut(strings.TrimPrefix(o.ID, "click:"), ":")
			number, target, _ := strings.Cut(rest, ":")
			n, err := strconv.Atoi(number)
			if err != nil {
				return nil, fmt.Errorf("a click has the id %q", o.ID)
			}
			live = append(live, click{n, Target(target), o})
		}
	}
	var counted uint64
	for i := range parts {
		counted += parts[i].Tally.N()
	}
	if counted > uint64(len(live)) {
		return nil, evidence.ErrForgotten
	}
	return live, nil
}

func (m *Module) clickName(f *Feedback) string {
	return hash(m.cfg.Name, f.Person, f.HeuristicID, f.EventID)
}

// clickCell returns where the clicks of a person on an answer are in a period. Cells of one period share a scope, so that
// they are forgotten together.
func (m *Module) clickCell(period int64, name string) evidence.Cell {
	return evidence.Cell{Kind: m.kinds.click, Scope: periodScope(period), Item: name}
}

func (m *Module) period(at time.Time) int64 { return at.UnixMicro() / m.cfg.ClicksFor.Microseconds() }

func periodScope(period int64) string { return "period " + strconv.FormatInt(period, 10) }
