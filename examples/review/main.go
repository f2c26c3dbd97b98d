// Review plays a reviewers' round: people correct what an agent writes, their corrections become a
// rule, others approve it, and the agent's next prompt has it.
//
// The agent's model gets its rules from a wrapper around it, so that no other part of the agent
// depends on them. heed compares the words of corrections; the test has a model judge which mean
// the same.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/memstore"
)

// withRules returns a model whose system prompts have the rules that are active for the agent: the
// wiring between the two packages. Where they can't be read, there is no answer: a host may want to
// go on without them instead.
func withRules(rules *feedback.Rules, agent string, llm decision.LLM) decision.LLM {
	return decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		in, err := rules.Inject(ctx, agent, r.System, "")
		if err != nil {
			return decision.LLMResponse{}, err
		}
		r.System = in.Prompt
		return llm.Generate(ctx, r)
	})
}

// writer is a model that follows its rules, and prescribes a database without one.
func writer(_ context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	if strings.Contains(r.System, "must not prescribe a database") {
		return decision.LLMResponse{Text: "Orders are kept for ten years."}, nil
	}
	return decision.LLMResponse{Text: "Orders are kept in PostgreSQL for ten years."}, nil
}

func main() {
	if err := play(context.Background(), nil); err != nil {
		panic(err)
	}
}

// An evaluator judges what corrections mean. nil: heed counts those with the same words.
type evaluator func(context.Context, feedback.Case) (feedback.Evaluation, error)

func play(ctx context.Context, e evaluator) error {
	monday := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	service, err := feedback.New(ctx, feedback.Config{
		Store: &memstore.Store{}, Agents: []string{"prd-agent"},
		Now: func() time.Time { return monday.Add(time.Hour) }, Evaluator: e,
	})
	if err != nil {
		return err
	}
	rules := service.Rules()
	agent := withRules(rules, "prd-agent", decision.LLMFunc(writer))
	for _, act := range []func() error{
		func() error { return write(ctx, agent) },
		func() error { return correct(ctx, service, monday) },
		func() error { return approve(ctx, rules) },
		func() error { return write(ctx, agent) },
		func() error { return contradict(ctx, rules) },
		func() error { return write(ctx, agent) },
	} {
		if err := act(); err != nil {
			return err
		}
	}
	return nil
}

// write has the agent write a document.
func write(ctx context.Context, agent decision.LLM) error {
	answer, err := agent.Generate(ctx, decision.LLMRequest{System: "You write PRDs.",
		Prompt: "One for a shop.", MaxTokens: 100})
	if err == nil {
		fmt.Println("the agent writes:", answer.Text)
	}
	return err
}

// correct records what reviewers correct. Corrections that mean the same become a proposal.
func correct(ctx context.Context, service *feedback.Service, at time.Time) error {
	for i, said := range []struct{ reviewer, summary string }{
		{"ann", "A PRD must not prescribe a database"},
		{"bob", "Leave the choice of the database to the engineers"},
		{"bob", "The PRD must not prescribe the database"},
		{"ann", "PRDs must not prescribe a database"},
		{"bob", "The summary is too long"},
	} {
		d := feedback.Feedback{
			ID: fmt.Sprint("decision-", i), Gate: "prd-review", Agent: "prd-agent",
			Decision: feedback.ApprovedWithChanges,
			Reviewer: said.reviewer, Summary: said.summary, At: at.Add(time.Duration(i) * time.Minute),
		}
		if _, err := service.Record(ctx, d); err != nil { // kept, whatever happens next
			return err
		}
		// it may wait: a sweep evaluates what was not evaluated
		if _, err := service.Evaluate(ctx, d.ID); err != nil {
			return err
		}
	}
	// without a model, only words were compared, so there is no proposal before
	return service.Sweep(ctx, time.Time{})
}

// approve shows the proposals to three people, who approve them.
func approve(ctx context.Context, rules *feedback.Rules) error {
	inbox, _, err := rules.Proposals(ctx, feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	if err != nil {
		return err
	}
	for _, p := range inbox {
		applied, of, err := rules.DryRun(ctx, p.Draft)
		if err != nil {
			return err
		}
		fmt.Printf("to approve: %q\n  %s\n  would have applied to %d of %d corrections\n", p.Text,
			p.Summary, len(applied), of)
		for _, warning := range p.Warnings {
			fmt.Println("  note:", warning)
		}
		sources, err := rules.Sources(ctx, p.ID)
		if err != nil {
			return err
		}
		for _, source := range sources {
			fmt.Printf("  %s said: %s\n", source.Reviewer, source.Summary)
		}
		for _, approver := range []string{"ann", "bob", "cleo"} {
			p, err = rules.Review(ctx, feedback.Review{
				Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: approver,
				Reason: "seen it too",
			})
			if err != nil {
				return err
			}
			fmt.Printf("  %s approves: %s\n", approver, p.Status)
		}
	}
	return nil
}

// contradict has somebody propose the opposite, and approve it alone.
func contradict(ctx context.Context, rules *feedback.Rules) error {
	p, err := rules.Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{Text: "Prescribe a database", Agents: []string{"prd-agent"}},
		Actor: "mallory", Reason: "I sell one",
	})
	if err != nil {
		return err
	}
	_, err = rules.Review(ctx, feedback.Review{
		Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: "mallory",
		Reason: "of course",
	})
	var own *feedback.RefusedError
	if !errors.As(err, &own) {
		return fmt.Errorf("mallory was not refused: %w", err)
	}
	fmt.Println("mallory approves:", err)
	p, err = rules.Review(ctx, feedback.Review{
		Proposal: p.ID, Decision: feedback.Rejected, Actor: "cleo", Reason: "it contradicts a rule",
	})
	if err != nil {
		return err
	}
	fmt.Println("cleo decides:", p.Status)
	return nil
}
