package main

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/guptarohit/asciigraph"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/strategy"
)

type strategyHistory struct {
	Item  string        `arg:"" complete:"item" help:"The item."`
	Limit int           `default:"20" help:"The number of choices to show, the newest."`
	Stage string        `enum:",pending,observed,expired" default:"" placeholder:"STAGE" help:"Only choices that are pending, observed or expired."`
	Since time.Duration `placeholder:"TIME" help:"Only choices that were made in this time, such as 24h."`
}

// An entry is one choice with its result.
type entry struct {
	At         time.Time         `json:"at"`
	Category   string            `json:"category"`
	Context    string            `json:"context"`
	Session    string            `json:"session"`
	Arm        strategy.ArmID    `json:"arm"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Stage      strategy.Stage    `json:"stage"`
	Result     *strategy.Result  `json:"result,omitempty"` // the last report
	Mean       *float64          `json:"mean,omitempty"`   // of the values of all reports, by their confidences
	Confidence float64           `json:"confidence"`       // of all reports together
	Reports    int               `json:"reports"`
	Choice     string            `json:"choice,omitempty"` // its id
}

// Run shows a history.
func (cmd *strategyHistory) Run(s *session, c *strategyCommands) error {
	if cmd.Limit < 1 || cmd.Since < 0 {
		return &usageError{"--limit must be 1 or more, and --since positive"}
	}
	var entries []entry
	err := learners.with(s, c.Learner, func(_ *opened, l *strategy.Learner) (err error) {
		if entries, err = cmd.records(s, l); err == nil && len(entries) == 0 {
			entries, err = cmd.credits(s, l)
		}
		return err
	})
	return answerList(s, entries, err, "choices", []string{"stage", cmd.Stage, "since", span(cmd.Since)}, printHistory)
}

// records reads the choices that were recorded.
func (cmd *strategyHistory) records(s *session, l *strategy.Learner) (entries []entry, err error) {
	for record, err := range l.History(s.ctx, cmd.filter(s)) {
		if errors.Is(err, heed.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		choice := record.Choice
		if choice.Item != cmd.Item {
			continue // an empty item is every item to a filter
		}
		e := entry{
			At: choice.At, Category: choice.Category, Context: choice.Context, Session: choice.Session, Arm: choice.Arm,
			Stage: record.Stage, Result: record.Result, Choice: choice.ID.String(), Parameters: make(map[string]string),
		}
		if e.Confidence, e.Reports = record.Mass, record.Reports; e.Result != nil {
			e.Mean = &record.Mean
		}
		for name, value := range choice.Parameters() {
			e.Parameters[name] = value
		}
		if entries = append(entries, e); len(entries) == cmd.Limit {
			break
		}
	}
	return entries, nil
}

func (cmd *strategyHistory) filter(s *session) strategy.ChoiceFilter {
	f := strategy.ChoiceFilter{Item: cmd.Item, Stage: strategy.Stage(cmd.Stage), Until: s.Now.Time}
	if cmd.Since > 0 {
		f.Since = s.now().Add(-cmd.Since)
	}
	return f
}

// credits reads the outcomes that the evidence still holds one by one.
func (cmd *strategyHistory) credits(s *session, l *strategy.Learner) (entries []entry, err error) {
	found, err := (&itemFilter{}).find(s, l, cmd.Item)
	if err != nil {
		return nil, err
	}
	f := cmd.filter(s)
	if f.Stage != "" && f.Stage != strategy.Observed {
		return nil, nil
	}
	for _, at := range found {
		credits, err := l.Outcomes(s.ctx, strategy.Query{Item: cmd.Item, Category: at.category, Context: at.context}, 0)
		if err != nil {
			return nil, err
		}
		for _, credit := range credits {
			if !credit.At.Before(f.Since) && (f.Until.IsZero() || credit.At.Before(f.Until)) {
				entries = append(entries, entry{
					At: credit.At, Category: at.category, Context: at.context, Session: credit.Session, Arm: credit.Arm,
					Stage: strategy.Observed, Result: &credit.Result, Mean: &credit.Value, Confidence: credit.Confidence, Reports: 1,
				})
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return b.At.Compare(a.At) })
	return entries[:min(len(entries), cmd.Limit)], nil
}

func printHistory(p *printer, entries []entry) {
	if p.terminal {
		printValues(p, entries)
	}
	t := newTable("chosen", "arm", "stage", ">mean", "?>reports", "?~segment", "?>confidence", "?how", "?who", "?session", "?~parameters")
	for _, e := range entries {
		value, confidence, how, who := "-", "-", "-", "-"
		if e.Mean != nil {
			value, confidence = signed(*e.Mean), share(e.Confidence)
		}
		if e.Result != nil {
			how, who = show(cmp.Or(e.Result.Channel, how)), show(cmp.Or(e.Result.Source, who))
		}
		t.add(moment(e.At), show(string(e.Arm)), string(e.Stage), value, count(uint64(e.Reports)), segmentName(e.Category, e.Context), confidence,
			how, who, show(e.Session), settings(e.Parameters))
	}
	t.print(p)
}

// printValues draws the values of outcomes, from the oldest to the newest.
func printValues(p *printer, entries []entry) {
	var values []float64
	for _, e := range slices.Backward(entries) {
		if e.Mean != nil {
			values = append(values, *e.Mean)
		}
	}
	if room := p.width - 8; len(values) > 1 && room >= 20 {
		p.printf("%s\n\n", asciigraph.Plot(values, asciigraph.Height(6), asciigraph.Width(min(room, 2*len(values))),
			asciigraph.LowerBound(-1), asciigraph.UpperBound(1), asciigraph.Precision(1), asciigraph.Caption("mean value, oldest to newest")))
	}
}
