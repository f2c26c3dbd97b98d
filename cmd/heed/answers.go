package main

import (
	"time"

	"github.com/heedhq/heed/internal/view"
)

type answersCommand struct {
	Agent   string  `placeholder:"NAME"`
	Since   instant `placeholder:"TIME"`
	Until   instant `placeholder:"TIME"`
	Outcome string  `enum:",good,bad,unknown" default:"" placeholder:"good|bad|unknown"`
	Person  string  `placeholder:"NAME"`
	Arm     string  `placeholder:"NAME"`
	Worst   bool
	Limit   atMost `default:"20"`
}

// Run lists answers with how they turned out.
func (cmd *answersCommand) Run(s *session) error {
	q := view.AnswerQuery{Outcome: cmd.Outcome, Person: cmd.Person, Arm: cmd.Arm}
	if cmd.Worst {
		q.Sort = view.Worst
	}
	if !cmd.Since.IsZero() {
		q.Since = cmd.Since.Format(time.RFC3339)
	}
	if !cmd.Until.IsZero() {
		q.Until = cmd.Until.Format(time.RFC3339)
	}
	var all []view.Answer
	err := agents.with(s, cmd.Agent, func(v *view.Source) error {
		for after := ""; ; {
			part, next, err := v.Answers(s.ctx, q, after, int(cmd.Limit)-len(all))
			all = append(all, part...)
			if after = next; err != nil || next == "" || len(all) >= int(cmd.Limit) {
				return err
			}
		}
	})
	return answerList(s, all, err, "answers", "answers", "outcome", cmd.Outcome, "person", cmd.Person,
		"arm", cmd.Arm)
}
