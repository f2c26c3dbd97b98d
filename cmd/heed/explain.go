package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

type explainCommand struct {
	ID    string `arg:"" help:"An answer: the ID of loop.Answer, which is the id of its event, or the start of it. The id of a response of heed traces does, too."`
	Agent string `placeholder:"NAME" help:"The name of the agent, loop.Config.Name. Needed if the store has more than one."`
}

// An answering is an agent's name, with what it has answered.
type answering struct {
	st   store.Store
	name string
	now  func() time.Time
}

// The ends of the names of an agent's kinds of records. A module or learner that is used alone has
// answers as well, but only agents have lessons.
const (
	answerKind = ".answer"
	lessonKind = ".lesson"
)

var agents = tool[answering]{"agent", "agent",
	func(ctx context.Context, st store.Store) (names []string, err error) {
		status, err := st.(*sqlstore.Store).Status(ctx)
		for _, kind := range status.Kinds {
			if name, ok := strings.CutSuffix(kind.Name, lessonKind); ok {
				names = append(names, name)
			}
		}
		return names, err
	},
	func(_ context.Context, st store.Store, name string, now func() time.Time) (answering, error) {
		return answering{st, name, now}, nil
	}}

// Run explains an answer as a tree.
func (cmd *explainCommand) Run(s *session) error {
	if err := given("answer", cmd.ID); err != nil {
		return err
	}
	return agents.with(s, cmd.Agent, func(_ *opened, a answering) error {
		account, err := a.explain(s, cmd.ID)
		if errors.Is(err, loop.ErrNoAnswer) {
			var id string
			if id, err = a.begunBy(s, cmd.ID); err != nil && a.ofResponse(s, cmd.ID, &id) {
				err = nil
			}
			if err == nil {
				account, err = a.explain(s, id)
			}
		}
		if err != nil {
			return damaged("answer", cmd.ID, err)
		}
		tree := account.Tree()
		return s.answer(tree, func(p *printer) { printBranch(p, tree, "", "") })
	})
}

func (a answering) explain(s *session, id string) (loop.Account, error) {
	return loop.Explain(s.ctx, loop.Config{Store: a.st, Name: a.name, Now: a.now}, id)
}

// ofResponse finds the event of a response that heed traces lists.
func (a answering) ofResponse(s *session, response string, event *string) bool {
	d, err := decision.New(s.ctx, decision.Config{Store: a.st})
	if err != nil {
		return false
	}
	t, err := trace(s, d, response)
	*event = t.EventID
	return err == nil && strings.HasPrefix(t.ResponseID, response)
}

// begunBy returns the only answer whose id begins with a text.
func (a answering) begunBy(s *session, text string) (string, error) {
	var ids []string
	for r, err := range a.st.Find(s.ctx, store.Query{Kind: a.name + answerKind}) {
		if err != nil {
			return "", err
		}
		var answer struct{ ID string }
		body, err := r.Body.JSON()
		if err == nil {
			err = json.Unmarshal(body, &answer)
		}
		if err == nil { // a damaged one is left to heed doctor
			ids = append(ids, answer.ID)
		}
	}
	slices.Sort(ids)
	return pick("answer", text, ids, func(id string) string { return id }, "heed traces lists those that are kept, with their events")
}

// printBranch prints a tree. Texts of users, models and reviewers are in it.
func printBranch(p *printer, b loop.Branch, first, rest string) {
	further := rest
	if len(b.On) > 0 {
		further += "│ "
	}
	text, lead := show(b.Text), first
	if p.terminal {
		text = wrap(text, p.width-max(ansi.StringWidth(first), ansi.StringWidth(further)))
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.printf("%s%s\n", lead, line)
		lead = further
	}
	for i, on := range b.On {
		if i == len(b.On)-1 {
			printBranch(p, on, rest+"└─ ", rest+"   ")
		} else {
			printBranch(p, on, rest+"├─ ", rest+"│  ")
		}
	}
}
