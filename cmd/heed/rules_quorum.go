package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/feedback"
)

// A quorum says how far the approvals of a pending proposal have come.
type quorum struct {
	Approvals int      `json:"approvals"` // of what it says now
	Of        int      `json:"of"`
	Missing   int      `json:"missing"`             // how many more people must approve
	Outsiders int      `json:"missing_others"`      // how many of those must not be reviewers of its evidence
	Not       []string `json:"not,omitempty"`       // people whose approval does not count, or counts already
	Reviewers []string `json:"reviewers,omitempty"` // of the evidence, who are no outsiders
}

// quorumOf counts the approvals of a proposal as its gate does.
func quorumOf(p *feedback.Proposal, g feedback.Gate) quorum {
	hash := p.Hash()
	var people, outsiders []string
	for _, a := range p.Approvals {
		if a.Hash == hash && !slices.Contains(people, a.Actor) {
			if people = append(people, a.Actor); !slices.Contains(p.Authors, a.Actor) {
				outsiders = append(outsiders, a.Actor)
			}
		}
	}
	q := quorum{Approvals: len(people), Of: g.Quorum, Outsiders: max(g.Outsiders-len(outsiders), 0)}
	q.Missing = max(g.Quorum-len(people), q.Outsiders)
	q.Not = slices.Concat(people, p.Writers)
	if q.Outsiders == q.Missing {
		q.Not = append(q.Not, p.Authors...)
	} else if q.Outsiders > 0 {
		q.Reviewers = p.Authors
	}
	slices.Sort(q.Not)
	q.Not = slices.Compact(q.Not)
	return q
}

// String says it in words.
func (q quorum) String() string {
	text := fmt.Sprintf("%d of %d", q.Approvals, q.Of)
	switch q.Missing {
	case 0: // what it contradicts now has to be overridden
		return text
	case 1:
		text += "; one more"
	default:
		text += fmt.Sprintf("; %d more", q.Missing)
	}
	if len(q.Not) > 0 {
		text += ", of somebody who is not " + either(q.Not)
	}
	if len(q.Reviewers) > 0 {
		text += fmt.Sprintf(", %d of them not %s", q.Outsiders, either(q.Reviewers))
	}
	return text
}

// either writes names with "or" before the last.
func either(names []string) string {
	shown := texts(names, show)
	last := len(shown) - 1
	if last == 0 {
		return shown[0]
	}
	return strings.Join(shown[:last], ", ") + " or " + shown[last]
}
