package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/patterns"
)

// mostRows is how many elements a resource has.
const mostRows = 200

func (s *server) addResources(to *sdk.Server) {
	add := func(name, title, description string, read func(context.Context) (any, error)) {
		uri := "heed://" + name
		to.AddResource(&sdk.Resource{URI: uri, Name: name, Title: title, Description: description, MIMEType: "application/json"},
			func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				found, err := read(ctx)
				if err != nil {
					return nil, told(err)
				}
				text, err := json.MarshalIndent(found, "", "  ")
				if err != nil {
					return nil, err
				}
				return &sdk.ReadResourceResult{
					Contents:  []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(text)}},
					Cacheable: sdk.Cacheable{CacheScope: "private"}, // it changes, and the person may be one of several
				}, nil
			})
	}
	add("rules", "Rules", "The rules that hold for this agent: people approved them.", s.activeRules)
	add("proposals", "Proposed rules", "The rules that wait for people's decision.", s.proposals)
	add("warnings", "Warnings", "Ways of working that went badly.", s.warnings)
	add("learned", "What was learned", "Heuristics, arms and ways of working, with how far each is trusted.", s.learned)
}

type ruleRow struct {
	ID     string    `json:"id"`
	Type   string    `json:"type"`
	Text   string    `json:"text"`
	Since  time.Time `json:"since"`
	Effect string    `json:"effect,omitempty"`
	Pinned bool      `json:"pinned,omitempty"`
}

func (s *server) activeRules(ctx context.Context) (any, error) {
	rules, err := s.rules()
	if err != nil {
		return nil, err
	}
	found, err := rules.List(ctx, feedback.RuleQuery{Status: feedback.StateActive, Agent: s.agent.Name(), Ranked: true})
	rows := make([]ruleRow, 0, len(found))
	for _, r := range first(found) {
		rows = append(rows, ruleRow{r.ID, string(r.Type), r.Text, r.Since, r.Effect.Status, r.Pinned})
	}
	return map[string]any{"rules": rows}, err
}

type proposalRow struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Text      string    `json:"text"`
	Evidence  string    `json:"evidence,omitempty"`
	Approvals int       `json:"approvals"`
	Expires   time.Time `json:"expires"`
}

func (s *server) proposals(ctx context.Context) (any, error) {
	rules, err := s.rules()
	if err != nil {
		return nil, err
	}
	found, total, err := rules.Proposals(ctx, feedback.ProposalQuery{Status: feedback.StatePending, Agent: s.agent.Name()}, mostRows)
	rows := make([]proposalRow, 0, len(found))
	for _, p := range found {
		rows = append(rows, proposalRow{p.ID, string(p.Type), p.Text, p.Summary, len(p.Approvals), p.Expires})
	}
	return map[string]any{"proposals": rows, "total": total}, err
}

type wayRow struct {
	ID       string  `json:"id"`
	Way      string  `json:"way"`
	Why      string  `json:"why,omitempty"` // it is warned of
	State    string  `json:"state"`
	Rate     float64 `json:"rate"` // of successes to expect
	Outcomes float64 `json:"outcomes"`
}

func (s *server) ways(ctx context.Context, q patterns.PatternQuery) ([]wayRow, error) {
	rows := []wayRow{}
	if s.agent.Patterns() == nil {
		return rows, nil
	}
	found, err := s.agent.Patterns().Standings(ctx, q)
	for _, w := range found {
		if len(rows) == mostRows || !w.Pattern.ArchivedAt.IsZero() {
			continue
		}
		rows = append(rows, wayRow{string(w.Pattern.ID), w.Pattern.Content, w.Pattern.Reason, string(w.State), w.Rate, w.Helpful + w.Harmful})
	}
	return rows, err
}

func (s *server) warnings(ctx context.Context) (any, error) {
	rows, err := s.ways(ctx, patterns.PatternQuery{Anti: true})
	return map[string]any{"warnings": rows}, err
}

type heuristicRow struct {
	ID         string  `json:"id"`
	Domain     string  `json:"domain,omitempty"`
	Condition  string  `json:"condition"`
	Action     string  `json:"action"`
	Confidence float64 `json:"confidence"`
	Fires      uint64  `json:"fires"`
}

type armRow struct {
	Category string  `json:"category"`
	Context  string  `json:"context"`
	Arm      string  `json:"arm"`
	Mean     float64 `json:"mean"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

func (s *server) learned(ctx context.Context) (any, error) {
	heuristics, err := s.heuristics(ctx)
	if err != nil {
		return nil, err
	}
	arms := []armRow{}
	if l := s.agent.Strategy(); l != nil {
		for d, err := range l.Distributions(ctx) {
			if err != nil {
				return nil, err
			}
			for _, a := range d.Arms {
				arms = append(arms, armRow{d.Category, d.Context, string(a.Arm), a.Mean, a.Low, a.High})
			}
			if len(arms) >= mostRows {
				break
			}
		}
	}
	ways, err := s.ways(ctx, patterns.PatternQuery{Positive: true})
	return map[string]any{"heuristics": heuristics, "arms": arms, "ways": ways}, err
}

// heuristics returns the heuristics that are trusted most.
func (s *server) heuristics(ctx context.Context) ([]heuristicRow, error) {
	rows := []heuristicRow{}
	m := s.agent.Learning()
	if m == nil {
		return rows, nil
	}
	var ids []string
	for h, err := range m.Heuristics(ctx) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, h.ID)
	}
	standings, err := m.Standings(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for _, h := range standings {
		rows = append(rows, heuristicRow{h.Heuristic.ID, h.Heuristic.Domain, h.Heuristic.Condition, h.Heuristic.Action, h.Confidence, h.Fires})
	}
	slices.SortFunc(rows, func(a, b heuristicRow) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.ID, b.ID))
	})
	return first(rows), nil
}

func first[T any](rows []T) []T { return rows[:min(len(rows), mostRows)] }
