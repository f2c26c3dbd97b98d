package main

import (
	"time"

	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
)

type patternsCommand struct {
	ID       string `arg:"" optional:"" help:"A pattern, to see which gates it has passed. Without it: all are listed."`
	State    string `enum:",candidate,established,proven,deprecated,inverted" default:"" help:"Those alone that are in this state now."`
	Tag      string `placeholder:"TAG" help:"Those alone with this tag."`
	Recorder string `default:"patterns" placeholder:"NAME" help:"The name of the recorder, where the host has given it one."`
}

func (patternsCommand) Help() string {
	return `Examples:

    heed --db agent.db patterns
    heed --db agent.db patterns --state proven
    heed --db agent.db patterns split-by-feature

The states are worked out with the default gates of maturity. Counts do not fade; the rate is of what has not faded yet.`
}

// A patternReport is how a pattern stands.
type patternReport struct {
	Pattern    patterns.PatternID    `json:"pattern"`
	Kind       patterns.Kind         `json:"kind"`
	Content    string                `json:"content"`
	Tags       []string              `json:"tags,omitempty"`
	State      patterns.State        `json:"state"`
	ByHand     bool                  `json:"by_hand"` // somebody put it into this state
	Multiplier float64               `json:"multiplier"`
	Counts     patterns.Counts       `json:"counts"`
	Rate       float64               `json:"rate"`
	Feedback   time.Time             `json:"last_feedback,omitzero"`
	Archived   bool                  `json:"archived"`
	Gates      []string              `json:"gates,omitempty"`
	History    []patterns.Transition `json:"transitions,omitempty"`
}

func reportOf(s *patterns.Standing) patternReport {
	return patternReport{
		Pattern: s.Pattern.ID, Kind: s.Pattern.Kind, Content: s.Pattern.Content, Tags: s.Pattern.Tags, State: s.State,
		ByHand: s.Pattern.Override != nil, Multiplier: s.Multiplier, Counts: s.Counts, Rate: s.Rate(), Feedback: s.LastFeedback,
		Archived: s.Pattern.Archived(),
	}
}

// Run lists patterns, or explains one.
func (cmd *patternsCommand) Run(s *session) error {
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	kept, err := sqlstore.NewPatterns(st.db, sqlstore.PatternsConfig{})
	if err != nil {
		return err
	}
	recorder, err := patterns.New(patterns.Config{Store: kept, Evidence: st.evidence, Name: cmd.Recorder, Now: s.now})
	if err != nil {
		return err
	}
	standings, err := recorder.Standings(s.ctx, patterns.PatternQuery{State: patterns.State(cmd.State), Tag: cmd.Tag})
	if err != nil {
		return st.explain(err)
	}
	if cmd.ID != "" {
		return cmd.explain(s, st, recorder, standings)
	}
	var all []patternReport
	for i := range standings {
		all = append(all, reportOf(&standings[i]))
	}
	return s.answer(listed(all), func(p *printer) { printPatterns(p, all) })
}

func (cmd *patternsCommand) explain(s *session, st *store, recorder *patterns.Recorder, standings []patterns.Standing) error {
	var names []string
	known := false
	for _, standing := range standings {
		names = append(names, string(standing.Pattern.ID))
		known = known || string(standing.Pattern.ID) == cmd.ID
	}
	if !known {
		return unknown("pattern", cmd.ID, names, "heed patterns lists them")
	}
	e, err := recorder.Explain(s.ctx, patterns.PatternID(cmd.ID))
	if err != nil {
		return st.explain(err)
	}
	r := reportOf(&e.Standing)
	for _, gate := range e.Gates {
		r.Gates = append(r.Gates, gate.String())
	}
	r.History = e.Transitions
	return s.answer(r, func(p *printer) {
		printPatterns(p, []patternReport{r})
		p.printf("\n")
		p.line("%s", show(r.Content))
		for _, gate := range r.Gates {
			p.line("%s", gate)
		}
		if len(r.History) == 0 {
			return
		}
		p.printf("\n")
		t := listing{columns: []column{{title: "when"}, {title: "from"}, {title: "to"}, {title: "who", soft: true}, {title: "why", soft: true}}}
		for _, change := range r.History {
			t.add(moment(change.At), show(string(change.From)), show(string(change.To)), show(change.Actor), show(change.Cause))
		}
		t.print(p)
	})
}

func printPatterns(p *printer, all []patternReport) {
	if len(all) == 0 {
		p.line("There are no patterns of that kind here.")
		return
	}
	t := listing{columns: []column{
		{title: "pattern", soft: true}, {title: "state"}, {title: "weighs", right: true}, {title: "helpful", right: true},
		{title: "harmful", right: true}, {title: "rate", right: true}, {title: "last heard", extra: true}, {title: "content", soft: true, extra: true},
	}}
	for _, r := range all {
		state := string(r.State)
		if r.ByHand {
			state += ", by hand"
		}
		if r.Archived {
			state += ", archived"
		}
		t.add(show(string(r.Pattern)), show(state), share(r.Multiplier), count(r.Counts.Successes), count(r.Counts.Failures), share(r.Rate),
			moment(r.Feedback), show(r.Content))
	}
	t.print(p)
}
