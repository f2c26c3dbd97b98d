package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/patterns"
)

// patternsCommands look at ways of working that package patterns follows or avoids.
type patternsCommands struct {
	Recorder string `complete:"recorder" placeholder:"NAME" help:"The name of the recorder, where the host has given it one."`

	Show      patternsShow      `cmd:"" default:"withargs" help:"List patterns, or show which gates one has passed. It is what heed patterns does by itself."`
	Promote   patternsPromote   `cmd:"" help:"Make a pattern proven, whatever its evidence says."`
	Deprecate patternsDeprecate `cmd:"" help:"Make a pattern deprecated, whatever its evidence says."`
	Restore   patternsRestore   `cmd:"" help:"Let its evidence decide again, and bring it back from the archive."`
	Reset     patternsReset     `cmd:"" help:"Forget what was learned of a pattern."`
	Rebuild   patternsRebuild   `cmd:"" help:"Change a half-life: make what was learned anew from its history."`
}

func (patternsCommands) Help() string {
	return `Examples:

    heed --db agent.db patterns
    heed --db agent.db patterns split-by-feature
    heed --db agent.db patterns promote tests-first --reason "agreed on in the team"

The settings of the recorder are in the store, as its host has them. States are worked out with those.`
}

// A casebook is a recorder over an open store, made to look at the patterns that one of this name has learned there.
type casebook struct {
	*patterns.Recorder
	*opened
}

// at does something with the patterns of a store.
func (c *patternsCommands) at(s *session, do func(*casebook) error) error {
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	recorder, err := patterns.Open(s.ctx, patterns.Config{Store: st.store, Name: c.Recorder, Now: s.now})
	if errors.Is(err, heed.ErrNotFound) {
		return st.explain(c.unknown(s, st))
	}
	if err != nil {
		return st.explain(err)
	}
	return st.explain(do(&casebook{recorder, st}))
}

// unknown says that there is no recorder of this name, and which there are.
func (c *patternsCommands) unknown(s *session, st *opened) error {
	names, err := recordersOf(s, st)
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return fmt.Errorf("%w in %s: check --db or HEED_DB", errNoRecorder, st.place)
	}
	return unknown("recorder", cmp.Or(c.Recorder, "patterns"), names, fmt.Sprintf("%s has %s: choose with --recorder", st.place, strings.Join(quoted(names), ", ")))
}

// errNoRecorder says that the store knows no recorder at all.
var errNoRecorder = errors.New("no host has opened a recorder of package patterns")

func recordersOf(s *session, st *opened) ([]string, error) {
	return patterns.Names(s.ctx, st.store)
}

type patternsShow struct {
	ID    string `arg:"" optional:"" complete:"pattern" help:"A pattern, to see which gates it has passed. Without it: all are listed."`
	State string `enum:",candidate,established,proven,deprecated,inverted" default:"" placeholder:"STATE" help:"Those alone that are in this state now: candidate, established, proven, deprecated or inverted."`
	Tag   string `placeholder:"TAG" help:"Those alone with this tag."`
}

func (patternsShow) Help() string {
	return `Examples:

    heed --db agent.db patterns
    heed --db agent.db patterns --state proven
    heed --db agent.db patterns split-by-feature

Counts do not fade; the rate is of what has not faded yet.`
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
	Counts     patterns.Counts       `json:"counts"`
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
	err := c.at(s, func(b *casebook) error {
		if cmd.ID != "" {
			return cmd.explain(s, b)
		}
		standings, err := b.Standings(s.ctx, patterns.PatternQuery{State: patterns.State(cmd.State), Tag: cmd.Tag})
		if err != nil {
			return err
		}
		var all []patternReport
		for i := range standings {
			all = append(all, reportOf(&standings[i]))
		}
		return cmd.list(s, all)
	})
	if cmd.ID == "" && errors.Is(err, errNoRecorder) {
		return cmd.list(s, nil)
	}
	return err
}

func (cmd *patternsShow) list(s *session, all []patternReport) error {
	return s.answer(listed(all), func(p *printer) {
		if len(all) == 0 {
			p.nothing("patterns", "state", cmd.State, "tag", cmd.Tag)
			return
		}
		printPatterns(p, all)
	})
}

// find finds the standing of a pattern.
func (b *casebook) find(s *session, id string) (*patterns.Standing, error) {
	standings, err := b.Standings(s.ctx, patterns.PatternQuery{})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range standings {
		if string(standings[i].Pattern.ID) == id {
			return &standings[i], nil
		}
		names = append(names, string(standings[i].Pattern.ID))
	}
	if _, err := b.Standing(s.ctx, patterns.PatternID(id)); !errors.Is(err, heed.ErrNotFound) {
		return nil, fmt.Errorf("the row of pattern %q can't be read: see heed doctor", id)
	}
	return nil, unknown("pattern", id, names, "heed patterns lists them")
}

func (cmd *patternsShow) explain(s *session, b *casebook) error {
	standing, err := b.find(s, cmd.ID)
	if err != nil {
		return err
	}
	r := reportOf(standing)
	for _, condition := range standing.Conditions {
		r.Gates = append(r.Gates, condition.String())
	}
	for change, err := range b.Transitions(s.ctx, patterns.HistoryQuery{About: cmd.ID}) {
		if err != nil {
			return err
		}
		r.History = append(r.History, change)
	}
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
	t := listing{columns: []column{
		{title: "pattern", soft: true}, {title: "state"}, {title: "weighs", right: true}, {title: "helpful", right: true},
		{title: "harmful", right: true}, {title: "rate", right: true}, {title: "last heard", extra: true}, {title: "content", soft: true, extra: true},
	}}
	for _, r := range all {
		t.add(show(string(r.Pattern)), show(r.standing()), share(r.Multiplier), count(r.Counts.Successes), count(r.Counts.Failures), share(r.Rate),
			moment(r.Feedback), show(r.Content))
	}
	t.print(p)
}
