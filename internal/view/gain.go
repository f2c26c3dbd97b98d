package view

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/loop"
)

// A Gain is what learning gains.
type Gain struct {
	loop.Gain
	Verdict loop.Verdict `json:"verdict"`
	Words   []string     `json:"words"` // the same in sentences, the most important first
}

// Gain reads what learning gains.
func (s *Source) Gain(ctx context.Context) (g Gain, err error) {
	if g.Gain, err = loop.ReadGain(ctx, s.Store, s.Name); err != nil {
		return g, err
	}
	g.Verdict = g.Gain.Verdict()
	if g.Words = g.compared(); g.Verdict == loop.Unmeasured {
		g.Words = g.course(s.Now())
	}
	return g, nil
}

func (c *Caller) gain(ctx context.Context, _ *struct{}) (Gain, error) { return c.View.Gain(ctx) }

// compared describes how answers with learning compare with answers without it.
func (g *Gain) compared() []string {
	l, c := &g.Learned, &g.Control
	begin := map[loop.Verdict]string{
		loop.Helps: "Learning helps", loop.Harms: "Learning harms",
		loop.Undecided: "It is not clear yet whether learning helps",
	}[g.Verdict]
	if l.Outcomes < 1 || c.Outcomes < 1 {
		return []string{begin + ": no outcome of both sides is known."}
	}
	all := []string{fmt.Sprintf("%s: the success of answers is %.0f %% on average with it, and "+
		"%.0f %% without (outcomes: %.0f). The difference is %+.1f points; the 90 %% interval, valid "+
		"at every look, is %+.1f to %+.1f.", begin, 100*l.Success, 100*c.Success, c.Outcomes,
		100*(l.Success-c.Success), 100*g.Low, 100*g.High)}
	calls, cost, took := g.Saved()
	of := func(n float64, one string) string { return Plural(fmt.Sprintf("%.0f", n), one, one+"s") }
	saved := fmt.Sprintf("Since %s it saved %s of the model", g.Since.Format(time.DateOnly),
		of(calls, "call"))
	if cost != 0 {
		saved += fmt.Sprintf(", %.2f of cost", cost)
	}
	if took != 0 {
		saved += fmt.Sprintf(", and %v of waiting", took.Round(time.Second))
	}
	missed, more := c.Outcomes*(l.Success-c.Success), c.Answers*(c.Calls-l.Calls)
	if missed < 0 {
		return append(all, saved+".", fmt.Sprintf("The %s without learning cost no success (they had "+
			"about %.1f more), and %s.", of(c.Answers, "answer"), -missed, of(more, "call")))
	}
	return append(all, saved+".", fmt.Sprintf("The %s without learning cost about %.1f "+
		"successes and %s.", of(c.Answers, "answer"), missed, of(more, "call")))
}

// course describes success recently and before, without a comparison: of the answers with learning,
// also while Control was 0.
func (g *Gain) course(now time.Time) []string {
	week := now.UTC().AddDate(0, 0, -7).Format(time.DateOnly)
	var late, before loop.Measured
	for i := range g.Days {
		to := &before
		if g.Days[i].Name > week {
			to = &late
		}
		merge(to, &g.Days[i].Alone)
		merge(to, &g.Days[i].Learned)
	}
	why := "This does not show whether learning is the cause. "
	words := "No outcome is known yet. Imported answers are left out."
	switch {
	case late.Outcomes >= 1 && before.Outcomes >= 1:
		words = fmt.Sprintf("The success of answers was %.0f %% on average in the last seven days, "+
			"and %.0f %% before.", 100*late.Success, 100*before.Success)
	case late.Outcomes+before.Outcomes >= 1:
		merge(&late, &before)
		words = fmt.Sprintf("The success of answers was %.0f %% on average.", 100*late.Success)
	default:
		why = ""
	}
	advice := "Set Control of loop.Config to 0.05: then one session in twenty is answered without " +
		"learning, to compare."
	if g.Learned.Answers > 0 { // Control is set
		advice = "So far chance has not selected any session to be answered without learning. An " +
			"event without a session is selected by its person."
	}
	return []string{words, why + advice}
}

// merge adds what was measured of further answers.
func merge(to, m *loop.Measured) {
	mean := func(a, n, b, o float64) float64 { return (a*n + b*o) / max(n+o, 1e-9) }
	to.Success = mean(to.Success, to.Outcomes, m.Success, m.Outcomes)
	to.Calls = mean(to.Calls, to.Answers, m.Calls, m.Answers)
	to.Cost = mean(to.Cost, to.Answers, m.Cost, m.Answers)
	to.Seconds = mean(to.Seconds, to.Answers, m.Seconds, m.Answers)
	to.Outcomes, to.Answers = to.Outcomes+m.Outcomes, to.Answers+m.Answers
}

// The spans of a course.
const (
	ByDay  = "day"
	ByWeek = "week"
)

// Course returns the latest days or weeks. The name of a week is its Monday.
func (g *Gain) Course(by string, most int) (all []loop.GainPart) {
	for i := range g.Days {
		part := g.Days[i]
		if day, err := time.Parse(time.DateOnly, part.Name); err == nil && by == ByWeek {
			part.Name = day.AddDate(0, 0, -int(day.Weekday()+6)%7).Format(time.DateOnly)
		}
		if n := len(all); n > 0 && all[n-1].Name == part.Name {
			last := &all[n-1]
			merge(&last.Learned, &part.Learned)
			merge(&last.Control, &part.Control)
			merge(&last.Alone, &part.Alone)
			continue
		}
		all = append(all, part)
	}
	return all[max(len(all)-most, 0):]
}
