package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/store"
)

type answersCommand struct {
	ID     string `arg:"" optional:""`
	Prompt bool
	view.AnswerQuery
	Worst bool
	Limit atMost `default:"20"`
}

// agents are the agents of a store. What opens one is its name.
var agents = part{"agent", "",
	func(ctx context.Context, st store.Store) (names []string, err error) {
		for kind, err := range st.Find(ctx, store.Query{Kind: store.Declarations}) {
			if err != nil {
				return nil, err
			}
			// A module or learner that is used alone has answers as well, but only agents have lessons.
			if name, ok := strings.CutSuffix(kind.ID, ".lesson"); ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, nil
	},
	func(_ context.Context, v *view.Source, name string) error {
		v.Name = name
		return nil
	}}

// An explained is an answer with what the model was asked, if that is wanted.
type explained struct {
	view.Explanation
	Asked *view.Asked `json:"asked,omitempty"`
}

// Run explains an answer, or lists answers with how they turned out.
func (cmd *answersCommand) Run(s *session) error {
	if cmd.ID == "" {
		if cmd.Worst {
			cmd.Sort = view.Worst
		}
		read := func(v *view.Source) ([]view.Answer, error) {
			return paged(s, cmd.Limit, cmd.AnswerQuery, v.Answers)
		}
		return listed(s, agents.with, "answers", "answers", read)
	}
	return showOne(s, agents.with, "explained", func(v *view.Source) (explained, error) {
		e, err := found("answer", cmd.ID, "heed answers lists those that are kept",
			func(id string) (e explained, err error) {
				e.Explanation, err = v.Explain(s.ctx, id)
				return e, err
			})
		if err = cmp.Or(err, e.Damaged.Err()); err == nil && cmd.Prompt {
			if e.Asked = e.Explanation.Asked; e.Asked == nil {
				err = errors.New("what the model was asked is no longer kept, or no model was asked")
			}
		}
		return e, err
	})
}
