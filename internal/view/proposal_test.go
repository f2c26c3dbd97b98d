package view_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
)

// These are the approvals that are still missing, in words, as the gate counts: people who wrote a
// rule never approve it, and one at least is no reviewer.
func TestQuorum(t *testing.T) {
	t.Parallel()
	draft := feedback.Draft{Text: "Run the tests."}
	approvals := func(names ...string) (all []feedback.Approval) {
		for _, name := range names {
			all = append(all, feedback.Approval{Actor: name, Hash: draft.Hash()})
		}
		return all
	}
	for _, test := range []struct {
		approvals []feedback.Approval
		gate      feedback.Gate
		want      string
	}{
		{nil, feedback.Gate{Quorum: 2, Outsiders: 1},
			"0 of 2; 2 more people must approve, other than wendy, and at least 1 other than ann or bob"},
		{approvals("ann"), feedback.Gate{Quorum: 2, Outsiders: 1},
			"1 of 2; one more person must approve, other than ann, bob or wendy"},
		{approvals("olga"), feedback.Gate{Quorum: 2, Outsiders: 1},
			"1 of 2; one more person must approve, other than olga or wendy"},
		{approvals("ann", "bob"), feedback.Gate{Quorum: 2, Outsiders: 1},
			"2 of 2; one more person must approve, other than ann, bob or wendy"},
		{approvals("olga"), feedback.Gate{Quorum: 2, Outsiders: 2},
			"1 of 2; one more person must approve, other than ann, bob, olga or wendy"},
		{[]feedback.Approval{{Actor: "olga", Hash: "before it was edited"}},
			feedback.Gate{Quorum: 1, Outsiders: 1},
			"0 of 1; one more person must approve, other than ann, bob or wendy"},
		{approvals("olga", "ann"), feedback.Gate{Quorum: 2, Outsiders: 1}, "2 of 2"},
	} {
		p := feedback.Proposal{Draft: draft, Writers: []string{"wendy"},
			Authors: []string{"ann", "bob"}, Approvals: test.approvals}
		assert.Equal(t, test.want, view.QuorumOf(&p, test.gate).Words(strings.Clone))
	}
}
