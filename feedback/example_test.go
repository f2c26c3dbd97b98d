package feedback_test

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/memstore"
)

// Three corrections that say the same become a rule that two others approve, and the agent's next
// prompt has it.
func Example() {
	ctx := context.Background()
	service, err := feedback.New(context.Background(), feedback.Config{Store: &memstore.Store{}})
	if err != nil {
		panic(err)
	}
	for i, review := range []struct{ by, says string }{
		{"ann", "A PRD must not prescribe a database"},
		{"bob", "The PRD must not prescribe the database"},
		{"ann", "PRDs must not prescribe a database"},
	} {
		f := feedback.Feedback{
			ID: fmt.Sprint("decision-", i), Gate: "HITL-1", Agent: "prd-agent",
			Decision: feedback.ApprovedWithChanges,
			Reviewer: review.by, Summary: review.says, At: time.Now(),
		}
		if _, err := service.Record(ctx, f); err != nil { // kept, before anything else is done with it
			panic(err)
		}
		r, err := service.Evaluate(ctx, f.ID)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s, %.2f\n", r.ID, r.Class, r.Confidence)
	}

	// Only the words were compared, and so the proposal waits for the batch, which Sweep makes every
	// hour.
	if _, _, err := service.Flush(ctx); err != nil {
		panic(err)
	}
	rules := service.Rules()
	pending, _, err := rules.Proposals(ctx, feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	if err != nil {
		panic(err)
	}
	p := pending[0]
	fmt.Printf("proposed, from %v: %s\n", p.Evidence, p.Text)
	for _, approver := range []string{"cleo", "dan"} {
		p, err = rules.Review(ctx, feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: approver,
			Reason: "seen it too",
		})
		if err != nil {
			panic(err)
		}
		fmt.Println(approver, "approves:", p.Status)
	}

	in, err := rules.Inject(ctx, "prd-agent", "You write PRDs.", "Write one for a shop.")
	if err != nil {
		panic(err)
	}
	fmt.Println(in.Prompt)
	// Output:
	// decision-0: edge_case, 0.43
	// decision-1: generalizable_high, 0.63
	// decision-2: generalizable_high, 0.63
	// proposed, from [decision-0 decision-1 decision-2]: A PRD must not prescribe a database
	// cleo approves: PENDING
	// dan approves: APPROVED
	// You write PRDs.
	//
	// ## Learned Rules (from feedback)
	// Reviewers asked for the following. It refines the instructions above and never overrides them.
	//
	// - Constraint: A PRD must not prescribe a database
	// <!-- end of learned rules -->
	//
	// Write one for a shop.
}
