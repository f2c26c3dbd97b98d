package main

import (
	"errors"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/patterns"
)

// patternsCommands look at ways of working that package patterns follows or avoids.
type patternsCommands struct {
	Recorder string `complete:"recorder" placeholder:"NAME" help:"The name of the recorder. Needed if the store has more than one."`

	Show      patternsShow      `cmd:"" default:"withargs" help:"List patterns, or explain one. heed patterns does the same."`
	Promote   patternsPromote   `cmd:"" help:"Make a pattern proven, whatever its evidence says."`
	Deprecate patternsDeprecate `cmd:"" help:"Make a pattern deprecated, whatever its evidence says."`
	Restore   patternsRestore   `cmd:"" help:"Let the evidence decide again, or bring a pattern back from the archive."`
	Reset     patternsReset     `cmd:"" help:"Forget what was learned of a pattern."`
}

type patternsShow struct {
	ID    string `arg:"" optional:"" complete:"pattern" help:"A pattern, to see which gates it has passed. Without it, all are listed."`
	State string `enum:",candidate,established,proven,deprecated,inverted" default:"" placeholder:"STATE" help:"Only patterns in this state: candidate, established, proven, deprecated or inverted."`
	Tag   string `placeholder:"TAG" help:"Only patterns with this tag."`
}

// A patternReport is how a pattern stands.
type patternReport struct {
	Pattern    patterns.PatternID    `json:"pattern"`
	Kind       string                `json:"kind"`
	Content    string                `json:"content"`
	Tags       []string              `json:"tags,omitempty"`
	State      patterns.State        `json:"state"`
	ByHand     bool                  `json:"by_hand"` // somebody put it into this state
	Multiplier float64               `json:"multiplier"`
	Counts     patterns.Observations `json:"counts"`
	Rate       float64               `json:"rate"`
	Feedback   time.Time             `json:"last_feedback,omitzero"`
	Archived   bool                  `json:"archived"`
	Gates      []string              `json:"gates,omitempty"`
	History    []patterns.Transition `json:"transitions,omitempty"`
}

func reportOf(s *patterns.Standing) patternReport {
	kind := "pattern"
	if s.Pattern.Anti {
		kind = "anti_pattern"
	}
	return patternReport{
		Pattern: s.Pattern.ID, Kind: kind, Content: s.Pattern.Content, Tags: s.Pattern.Tags, State: s.State,
		ByHand: s.Pattern.Override != "", Multiplier: s.Multiplier, Counts: s.Counts, Rate: s.Rate, Feedback: s.LastFeedback,
		Archived: !s.Pattern.ArchivedAt.IsZero(),
	}
}

// standing writes where a pattern stands.
func (r *patternReport) standing() string {
	state := string(r.State)
	if r.ByHand {
		state += ", by hand"
	}
	if r.Archived {
		state += ", archived"
	}
	return state
}

// Run lists patterns, or explains one.
func (cmd *patternsShow) Run(s *session, c *patternsCommands) error {
	if cmd.ID != "" {
		return recorders.with(s, c.Recorder, func(_ *opened, r *patterns.Recorder) error { return cmd.explain(s, r) })
	}
	var all []patternReport
	err := recorders.with(s, c.Recorder, func(_ *opened, r *patterns.Recorder) error {
		standings, err := r.Standings(s.ctx, patterns.PatternQuery{State: patterns.State(cmd.State), Tag: cmd.Tag})
		for i := range standings {
			all = append(all, reportOf(&standings[i]))
		}
		return err
	})
	return answerList(s, all, err, "patterns", []string{"state", cmd.State, "tag", cmd.Tag}, printPatterns)
}

// standing finds the standing of a pattern.
func standing(s *session, r *patterns.Recorder, id string) (patterns.Standing, error) {
	if err := given("pattern", id); err != nil {
		return patterns.Standing{}, err
	}
	found, err := r.Standing(s.ctx, patterns.PatternID(id))
	if !errors.Is(err, heed.ErrNotFound) {
		return found, damaged("pattern", id, err)
	}
	all, err := r.Standings(s.ctx, patterns.PatternQuery{})
	if err != nil {
		return found, err
	}
	ids := texts(all, func(s patterns.Standing) string { return string(s.Pattern.ID) })
	return found, unknown("pattern", id, ids, "heed patterns lists them")
}

func (cmd *patternsShow) explain(s *session, r *patterns.Recorder) error {
	found, err := standing(s, r, cmd.ID)
	if err != nil {
		return err
	}
	report := reportOf(&found)
	for _, condition := range found.Conditions {
		report.Gates = append(report.Gates, condition.String())
	}
	if report.History, err = collect(r.Transitions(s.ctx, patterns.HistoryQuery{About: cmd.ID})); err != nil {
		return err
	}
	return s.answer(report, report.print)
}

func (r *patternReport) print(p *printer) {
	printPatterns(p, []patternReport{*r})
	p.printf("\n")
	p.line("%s", show(r.Content))
	for _, gate := range r.Gates {
		p.line("%s", gate)
	}
	if len(r.History) == 0 {
		return
	}
	p.printf("\n")
	t := newTable("when", "from", "to", "?who", "~why")
	for _, change := range r.History {
		t.add(moment(change.At), show(string(change.From)), show(string(change.To)), show(change.Actor), show(change.Cause))
	}
	t.print(p)
}

func printPatterns(p *printer, all []patternReport) {
	t := newTable("pattern", "state", ">rate", "?>weighs", "?>helpful", "&>harmful", "?last heard", "?~content")
	for _, r := range all {
		t.add(show(string(r.Pattern)), show(r.standing()), share(r.Rate), share(r.Multiplier), count(r.Counts.Successes), count(r.Counts.Failures),
			moment(r.Feedback), show(r.Content))
	}
	t.print(p)
}
