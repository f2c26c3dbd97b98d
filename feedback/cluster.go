package feedback

import (
	"context"
	"slices"

	"github.com/heedhq/heed/internal/oppose"
)

// support counts a cluster with the feedback in it.
func (s *Service) support(r *Feedback, members []Feedback) Support {
	all := append(slices.Clone(members), *r)
	reviewers, occasions := map[string]bool{}, map[string]bool{}
	var support Support
	for i := range all {
		m := &all[i]
		support.Strength += m.Link
		reviewers[m.Reviewer] = true
		occasion := m.ID
		if s.cfg.OncePerTask && m.Task != "" {
			occasion = m.Task + "\x00" + m.Reviewer
		}
		occasions[occasion] = true
	}
	support.Occurrences, support.Reviewers = len(occasions), len(reviewers)
	return support
}

// join puts a feedback into the cluster that it is most alike to, and opposes no member of, or into one of its own. It returns
// the others of the cluster, the oldest first.
func (s *Service) join(ctx context.Context, r *Feedback, matches []Match, kind func(Classification) bool) ([]Feedback, error) {
	r.Similar = s.alikeTo(matches)
	r.Cluster, r.Link = r.ID, 1
	tried := map[string]bool{}
	words := oppose.Read(r.said())
	for i := range matches {
		m := &matches[i]
		if !s.alike(m) || !kind(m.Class) || m.Cluster == "" || tried[m.Cluster] {
			continue
		}
		tried[m.Cluster] = true
		members, err := s.members(ctx, r.Agent, m.Cluster, kind)
		if err != nil {
			return nil, err
		}
		members = slices.DeleteFunc(members, func(o Feedback) bool { return o.ID == r.ID })
		if !slices.ContainsFunc(members, func(o Feedback) bool { return words.Opposes(oppose.Read(o.said())) != "" }) {
			r.Cluster, r.Link = m.Cluster, m.Score
			return members, nil
		}
	}
	return nil, nil
}

// alike reports whether a match says the same.
func (s *Service) alike(m *Match) bool {
	return m.Opposed == "" && m.Score >= s.cfg.Threshold
}

func (s *Service) alikeTo(matches []Match) (ids []string) {
	for i := range matches {
		if s.alike(&matches[i]) && len(ids) < maxList {
			ids = append(ids, matches[i].ID)
		}
	}
	return ids
}

// members returns a cluster's feedback of a kind, the oldest first.
func (s *Service) members(ctx context.Context, agent, cluster string, kind func(Classification) bool) (members []Feedback, err error) {
	for m, err := range s.records(ctx, Listing{Agent: agent, Cluster: cluster}) {
		if err != nil {
			return nil, err
		}
		if kind(m.Class) {
			members = append(members, m)
		}
	}
	slices.Reverse(members)
	return members, nil
}
