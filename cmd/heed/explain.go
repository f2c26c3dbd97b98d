package main

import (
	"errors"

	"github.com/heedhq/heed/loop"
)

type explainCommand struct {
	ID    string `arg:"" help:"An answer: the ID of loop.Answer, which is the id of its event."`
	Agent string `default:"loop" placeholder:"NAME" help:"The name of the agent, loop.Config.Name."`
}

// Run explains an answer as a tree.
func (cmd *explainCommand) Run(s *session) error {
	return s.with(func(st *opened) error {
		account, err := loop.Explain(s.ctx, loop.Config{Store: st.store, Name: cmd.Agent, Now: s.now}, cmd.ID)
		if errors.Is(err, loop.ErrNoAnswer) {
			return unknown("answer", cmd.ID, nil, "heed traces lists those that are kept, with their events; --agent names another agent")
		}
		if err != nil {
			return damaged("answer", cmd.ID, err)
		}
		tree := account.Tree()
		return s.answer(tree, func(p *printer) { printBranch(p, tree, "", "") })
	})
}

// printBranch prints a tree. Texts of users, models and reviewers are in it.
func printBranch(p *printer, b loop.Branch, first, rest string) {
	p.printf("%s%s\n", first, show(b.Text))
	for i, on := range b.On {
		if i == len(b.On)-1 {
			printBranch(p, on, rest+"└─ ", rest+"   ")
		} else {
			printBranch(p, on, rest+"├─ ", rest+"│  ")
		}
	}
}
