package view

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/patterns"
)

// A Way is a way of working with what it earned.
type Way struct {
	ID           patterns.PatternID `json:"id"`
	Anti         bool               `json:"anti"` // it is an anti-pattern
	Content      string             `json:"content"`
	Reason       string             `json:"reason"` // of an anti-pattern
	Tags         []string           `json:"tags,omitempty"`
	State        string             `json:"state"`
	ByHand       bool               `json:"by_hand"` // a person put it into this state
	Warned       bool               `json:"warned"`  // prompts warn of it
	Multiplier   float64            `json:"multiplier"`
	Successes    uint64             `json:"successes"` // which do not fade
	Failures     uint64             `json:"failures"`
	Rate         float64            `json:"rate"` // of successes to expect
	Low          float64            `json:"low"`  // of its interval of 90 %
	High         float64            `json:"high"`
	HarmfulShare float64            `json:"harmful_share"`
	Heard        time.Time          `json:"last_feedback,omitzero"`
}

// A WayDetail is a way of working with its conditions and its history.
type WayDetail struct {
	Way
	Gates       []string              `json:"gates,omitempty"`
	Transitions []patterns.Transition `json:"transitions,omitempty"` // the newest first
	Twin        patterns.PatternID    `json:"twin,omitempty"`
	Examples    []string              `json:"examples,omitempty"`
}

// A WayQuery selects ways of working.
type WayQuery struct {
	State  string `json:"state,omitempty" placeholder:"STATE"`
	Tag    string `json:"tag,omitempty" placeholder:"TAG"`
	Warned bool   `json:"warned,omitempty" kong:"-"` // only those that prompts warn of
	Page   `kong:"-"`
}

// Validate refuses a query with a fault.
func (q *WayQuery) Validate() error {
	return oneOf("state", q.State, "candidate", "established", "proven", "deprecated", "inverted")
}

// warned reports whether prompts warn of a way of working.
func warned(s *patterns.Standing) bool { return s.Pattern.Anti || s.State == "deprecated" }

// mostWays is how many ways of working are listed, the last defined: their evidence is read, too.
const mostWays = 1000

// Ways lists ways of working, those with the most outcomes first. It looks at the last 1,000.
func (s *Source) Ways(ctx context.Context, q WayQuery) (l List[Way], err error) {
	if err := q.Validate(); err != nil {
		return l, err
	}
	found, err := s.Patterns.Standings(ctx, patterns.PatternQuery{
		State: q.State, Tag: q.Tag, Limit: mostWays})
	found = slices.DeleteFunc(found, func(s patterns.Standing) bool {
		return q.Warned && !warned(&s)
	})
	slices.SortStableFunc(found, func(a, b patterns.Standing) int {
		return cmp.Compare(b.Counts.Successes+b.Counts.Failures, a.Counts.Successes+a.Counts.Failures)
	})
	texts := func(s *patterns.Standing) []string {
		return append([]string{string(s.Pattern.ID), s.Pattern.Content}, s.Pattern.Tags...)
	}
	name := func(s *patterns.Standing) string { return string(s.Pattern.ID) }
	return listed(q.Page, found, err, name, texts, each(wayOf)) // an interval takes microseconds
}

// Warnings lists the ways of working that prompts warn of.
func (s *Source) Warnings(ctx context.Context, p Page) (List[Way], error) {
	return s.Ways(ctx, WayQuery{Warned: true, Page: p})
}

// mostTransitions is how many transitions of a way are shown.
const mostTransitions = 100

// Way reads a way of working, or returns [heed.ErrNotFound].
func (s *Source) Way(ctx context.Context, id string) (d WayDetail, err error) {
	found, err := s.Patterns.Standing(ctx, patterns.PatternID(id))
	if err != nil {
		return d, err
	}
	d = WayDetail{Way: wayOf(&found), Twin: found.Pattern.Twin, Examples: found.Pattern.Examples}
	for _, condition := range found.Conditions {
		d.Gates = append(d.Gates, condition.String())
	}
	q := patterns.HistoryQuery{About: id, Limit: mostTransitions}
	for change, err := range s.Patterns.Transitions(ctx, q) {
		if err != nil {
			return d, err
		}
		d.Transitions = append(d.Transitions, change)
	}
	return d, nil
}

func wayOf(s *patterns.Standing) Way {
	p := &s.Pattern
	w := Way{
		ID: p.ID, Anti: p.Anti, Content: p.Content, Reason: p.Reason, Tags: p.Tags, State: s.State,
		ByHand: p.Override != "", Multiplier: s.Multiplier, Successes: s.Counts.Successes,
		Failures: s.Counts.Failures, Rate: s.Rate, HarmfulShare: s.HarmfulShare,
		Heard: s.LastFeedback}
	w.Warned = warned(s)
	w.Low, w.High = evidence.Beta{Alpha: 1 + s.Helpful, Beta: 1 + s.Harmful}.Interval(0.9)
	return w
}
