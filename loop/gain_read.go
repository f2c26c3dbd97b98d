package loop

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/store"
)

// A Gain compares the answers of an agent with learning and without: see [Config].Control. An
// answer's success is its worth on a scale from 0 to 1, and silence about it is a success of 0.9.
//
// Low and High bound the difference of the two successes. The interval is valid at every look: the
// probability that it ever leaves out the difference is at most 10 %, although the successes change
// over time. Answers of one session count for less if they have much in common. Imported answers
// are left out, because they were given neither with learning nor as a comparison with it.
//
// It is immutable.
type Gain struct {
	// Since is the day of the first answer without learning. Zero without such an answer.
	Since   time.Time `json:"since,omitzero"`
	Learned Measured  `json:"learned"`
	Control Measured  `json:"control"`
	Low     float64   `json:"low"`
	High    float64   `json:"high"`
	// Alone are the answers that were given while Control was 0.
	Alone Measured   `json:"alone"`
	Days  []GainPart `json:"days"` // the oldest first
	// Domains and Arms are ordered by their numbers of outcomes, the greatest first. Answers of
	// heuristics have no arm.
	Domains []GainPart `json:"domains"`
	Arms    []GainPart `json:"arms"`
}

// A GainPart is a day, a domain or an arm of a [Gain]. Low and High bound the difference in a
// domain, each with an error of 10 %. They are -1 and 1 for days, and for arms
// because an arm is chosen where it works, so that its answers can't be compared.
type GainPart struct {
	Name    string   `json:"name"` // a day is written as 2006-01-02
	Learned Measured `json:"learned"`
	Control Measured `json:"control"`
	Alone   Measured `json:"alone"`
	Low     float64  `json:"low"`
	High    float64  `json:"high"`
}

// Measured sums up answers.
type Measured struct {
	// Outcomes counts the answers whose success is known, and Success is their mean, in [0, 1]. It is
	// 0 without outcomes.
	Outcomes float64 `json:"outcomes"`
	Success  float64 `json:"success"`
	// Answers counts all answers. Domains and arms have no count, because an answer without an
	// outcome is counted by its day alone. Answers and the means below are 0 in Gain.Alone: without
	// a control group only outcomes are counted.
	Answers float64 `json:"answers"`
	// Calls, Cost and Seconds are means of an answer: of calls of the model, of the cost by the arms'
	// prices, and of the time that the model took.
	Calls   float64 `json:"calls"`
	Cost    float64 `json:"cost"`
	Seconds float64 `json:"seconds"`
}

// A Verdict is what a [Gain] shows.
type Verdict string

// The verdicts.
const (
	Unmeasured Verdict = "unmeasured" // no answer was given without learning
	Undecided  Verdict = "undecided"  // the difference may be 0
	Helps      Verdict = "helps"      // the difference is greater than 0
	Harms      Verdict = "harms"      // the difference is less than 0
)

// Verdict returns what the interval shows.
func (g *Gain) Verdict() Verdict {
	switch {
	case g.Since.IsZero():
		return Unmeasured
	case g.Low > 0:
		return Helps
	case g.High < 0:
		return Harms
	default:
		return Undecided
	}
}

// Saved returns what the answers with learning saved in all, compared with the means of those
// without: calls of the model, cost, and time. Negative numbers are losses.
func (g *Gain) Saved() (calls, cost float64, took time.Duration) {
	l, c := &g.Learned, &g.Control
	if g.Since.IsZero() {
		return 0, 0, 0
	}
	return l.Answers * (c.Calls - l.Calls), l.Answers * (c.Cost - l.Cost),
		time.Duration(l.Answers * (c.Seconds - l.Seconds) * float64(time.Second))
}

// Gain returns what learning gains.
func (a *Agent) Gain(ctx context.Context) (Gain, error) {
	return ReadGain(ctx, a.cfg.Store, a.cfg.Name)
}

// ReadGain returns what learning gains an agent, for a program that has only its store. It reads
// three scopes of cells, whose number grows with days, domains and arms, and not with answers.
func ReadGain(ctx context.Context, st store.Store, agent string) (Gain, error) {
	strata := make(map[string]table) // by share, and in them by group of sessions
	daily, domains, arms := make(table), make(table), make(table)
	for _, scope := range []string{pairs, days, parts} {
		for p, err := range st.List(ctx, store.CellQuery{Kind: gainKind(agent), Scope: scope}) {
			if err != nil {
				return Gain{}, wrap("gain", err)
			}
			switch scope {
			case pairs:
				if strata[p.Cell.Item] == nil {
					strata[p.Cell.Item] = make(table)
				}
				strata[p.Cell.Item].add(p.Channel, &p)
			case days:
				daily.add(p.Channel, &p)
			case parts:
				domains.add(p.Cell.Item, &p)
				arms.add(p.Channel, &p)
			}
		}
	}
	var all [3]sums
	for _, day := range daily {
		for side := range all {
			all[side].plus(&day[side])
		}
	}
	g, wide := whole(strata, &all)
	g.Days, g.Domains, g.Arms = daily.parts(), domains.parts(), arms.parts()
	slices.SortFunc(g.Days, func(a, b GainPart) int { return strings.Compare(a.Name, b.Name) })
	is := func(day GainPart) bool { return day.Control.Answers > 0 }
	if i := slices.IndexFunc(g.Days, is); i >= 0 {
		g.Since, _ = time.Parse(time.DateOnly, g.Days[i].Name)
	}
	for i := range g.Domains {
		part := &g.Domains[i]
		of := domains[part.Name]
		part.Low, part.High = gap(of[0].success, of[1].success, wide, 1)
	}
	return g, nil
}

// gainError is the probability that the interval of a Gain is ever wrong.
const gainError = 0.1

var sides = [...]string{learned, control, alone}

// plus adds the sums of a part, or takes them away. Sums of this kind do not fade, so any moment
// gives them as they are.
func plus(to evidence.Sums, p *evidence.Part, taken bool) evidence.Sums {
	from := p.Tally.At(0)
	if taken {
		from = evidence.Sums{Mass: -from.Mass, Squares: -from.Squares, Reward: -from.Reward,
			RewardSquares: -from.RewardSquares}
	}
	return to.Plus(from)
}

// compared returns the successes with and without learning, and by which factor their variance
// exceeds the variance of independent answers: the greater factor of the two sides. It is estimated
// by the differences between the groups of sessions, which are the rows. If sessions had nothing in
// common within, the sums of the groups would vary as independent answers do, and the factor would
// be 1. Fewer sessions that are alike make it greater.
func (t table) compared() (of [2]evidence.Sums, wide float64) {
	wide = 1
	rows := slices.Sorted(maps.Keys(t)) // so that the sums are the same again
	for side := range of {
		all := &of[side]
		for _, row := range rows {
			*all = all.Plus(t[row][side].success)
		}
		mean, between := all.Mean(), 0.
		for _, row := range rows {
			group := &t[row][side].success
			off := group.Reward - mean*group.Mass
			between += off * off * groups / (groups - 1)
		}
		if within := all.RewardSquares - mean*all.Reward; within > 1e-9 {
			wide = max(wide, between/within)
		}
	}
	return of, wide
}

// whole combines the strata by their numbers of outcomes. wide is the greatest of theirs. Each
// stratum compares answers of the same time, so a change of the share together with a change of the
// traffic is not taken for a gain (Simpson's paradox). A stratum with outcomes of one side alone,
// for example while Control was 1, compares nothing and is left out.
func whole(strata map[string]table, sides *[3]sums) (g Gain, wide float64) {
	g = Gain{
		Learned: sides[0].measured(), Control: sides[1].measured(), Alone: sides[2].measured(),
		Low: -1, High: 1,
	}
	var all, low, high, learns, lacks float64
	wide = 1
	for _, share := range slices.Sorted(maps.Keys(strata)) {
		of, w := strata[share].compared()
		if min(of[0].Mass, of[1].Mass) <= 0.5 {
			continue
		}
		n := of[0].Mass + of[1].Mass
		from, to := gap(of[0], of[1], w, len(strata))
		learns, lacks = learns+n*of[0].Mean(), lacks+n*of[1].Mean()
		all, low, high, wide = all+n, low+n*from, high+n*to, max(wide, w)
	}
	if all > 0.5 {
		g.Low, g.High = low/all, high/all
		g.Learned.Success, g.Control.Success = learns/all, lacks/all
	}
	return g, wide
}

// gap returns the bounds of a difference of means. The bounds of several hold together.
func gap(l, c evidence.Sums, wide float64, several int) (low, high float64) {
	return winner.Difference(l, c, wide, gainError/float64(several))
}

// sums are what is summed up of one side.
type sums struct{ success, answers, cost, seconds evidence.Sums }

// plus adds other sums.
func (s *sums) plus(o *sums) {
	s.success, s.answers = s.success.Plus(o.success), s.answers.Plus(o.answers)
	s.cost, s.seconds = s.cost.Plus(o.cost), s.seconds.Plus(o.seconds)
}

// measured returns the means of an answer.
func (s *sums) measured() Measured {
	n := max(s.answers.Mass, 1)
	m := Measured{
		Outcomes: max(s.success.Mass, 0), Answers: s.answers.Mass,
		Calls: s.answers.Reward / n, Cost: s.cost.Mass / n, Seconds: s.seconds.Mass / n,
	}
	if m.Outcomes > 0.5 {
		m.Success = s.success.Mean()
	}
	return m
}

// A table contains the sums of the sides by a name.
type table map[string]*[3]sums

// add adds a cell, by its name, to the side and the sum that it is of. The name is the side, a
// blank and what is counted, and a minus at the end if it was taken back.
func (t table) add(name string, p *evidence.Part) {
	of, taken := strings.CutSuffix(p.Cell.Name, minus)
	of, what, _ := strings.Cut(of, " ")
	side := slices.Index(sides[:], of)
	if side < 0 {
		return
	}
	if t[name] == nil {
		t[name] = new([3]sums)
	}
	to := &t[name][side]
	switch " " + what {
	case ofAnswers:
		to.answers = plus(to.answers, p, taken)
	case ofCost:
		to.cost = plus(to.cost, p, taken)
	case ofSeconds:
		to.seconds = plus(to.seconds, p, taken)
	default:
		to.success = plus(to.success, p, taken)
	}
}

// parts returns the rows, those with the most outcomes first.
func (t table) parts() []GainPart {
	all := []GainPart{} // null in JSON otherwise
	for _, name := range slices.Sorted(maps.Keys(t)) {
		of := t[name]
		all = append(all, GainPart{name, of[0].measured(), of[1].measured(), of[2].measured(), -1, 1})
	}
	outcomes := func(p *GainPart) float64 { return p.Learned.Outcomes + p.Alone.Outcomes }
	slices.SortStableFunc(all, func(a, b GainPart) int {
		return cmp.Compare(outcomes(&b), outcomes(&a))
	})
	return all
}
