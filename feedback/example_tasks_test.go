package feedback_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

// exampleService is a service whose ids are numbers.
func exampleService(cfg feedback.Config) *feedback.Service {
	n := 0
	cfg.Store = &memstore.Store{}
	cfg.NewID = func() string { n++; return fmt.Sprint("id-", n) }
	service, err := feedback.New(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	return service
}

// Any function that embeds texts makes a similarity that sees meaning. Here it is a toy; a host
// calls its provider.
func ExampleConfig_similarity() {
	embed := func(_ context.Context, texts []string) ([][]float32, error) {
		vectors := make([][]float32, len(texts))
		for i, text := range texts {
			vectors[i] = []float32{float32(len(text)), 1}
		}
		return vectors, nil
	}
	service := exampleService(feedback.Config{Similarity: heed.Embedder(embed)})
	fmt.Println(service.Config().Threshold)
	// Output: 0.8
}

// Only people on a list may decide. The audit log has everybody else who tries.
func ExampleConfig_authorize() {
	service := exampleService(feedback.Config{Authorize: admins{"cleo", "dan"}.authorize})
	rules := service.Rules()
	p, err := rules.Propose(context.Background(), feedback.Submission{
		Draft: feedback.Draft{Text: "Name the owner of each risk", Agents: []string{"prd-agent"}},
		Actor: "paul", Reason: "asked for twice",
	})
	if err != nil {
		panic(err)
	}
	_, err = rules.Review(context.Background(), feedback.Review{
		Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: "mallory",
		Reason: "looks fine",
	})
	fmt.Println(err)
	for entry, err := range store.AuditEntries(context.Background(), service.Config().Store,
		store.Query{Limit: 1}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(entry.Actor, entry.Action, entry.Details)
	}
	// Output:
	// feedback: approve: not authorized: mallory is no admin
	// mallory feedback.approve.refused map[refusal:not authorized]
}

type admins []string

func (a admins) authorize(_ context.Context, act feedback.Act) error {
	if act.Kind == "propose" || slices.Contains(a, act.Actor) {
		return nil
	}
	return fmt.Errorf("%s is no admin", act.Actor)
}

// Decisions come over a stream: a broker of the host's, or, as here, a channel.
func ExampleService_Consume() {
	ctx := context.Background()
	reviews := make(channel, 1)
	reviews <- stream.Event{ID: "1", Topic: "reviews", At: time.Now(), Payload: []byte(`{
		"decision_id": "D-1", "gate_id": "HITL-1", "epic_id": "E-1", "task_id": null, "decision": "REJECTED",
		"reviewer_id": "ann", "timestamp": "2026-05-04T12:00:00Z", "review_duration_seconds": 40, "agent_output_sha": "3fa9",
		"approved_output_sha": null, "correction_diff_path": null, "reviewer_comment": "No owner is named",
		"tags": ["completeness"]}`)}
	close(reviews)
	service := exampleService(feedback.Config{})
	err := service.Consume(ctx, feedback.Intake{
		Stream: reviews, DeadLetters: make(channel, 1),
		Complete: func(f *feedback.Feedback) {
			f.Agent = map[string]string{"HITL-1": "prd-agent"}[f.Gate]
		},
	})
	if err != nil {
		panic(err)
	}
	r, err := service.Feedback(ctx, "D-1")
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Agent, r.Class, r.Rationale)
	// Output: prd-agent edge_case alike corrections: 1, by distinct reviewers: 1
}

// channel is a source. It forgets what it has delivered; a broker would deliver it again until it
// is acknowledged.
type channel chan stream.Event

func (c channel) Publish(_ context.Context, e stream.Event) error {
	c <- e
	return nil
}

func (c channel) Receive(ctx context.Context) (stream.Delivery, error) {
	select {
	case e, ok := <-c:
		if !ok {
			return nil, stream.ErrClosed
		}
		return delivered(e), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type delivered stream.Event

func (d delivered) Event() stream.Event          { return stream.Event(d) }
func (d delivered) Ack(context.Context) error    { return nil }
func (d delivered) Reject(context.Context) error { return nil }

// A person edits a proposal before it is approved: the approvals so far are void, and the editor
// can't approve it.
func ExampleRules_Propose() {
	ctx := context.Background()
	rules := exampleService(feedback.Config{}).Rules()
	p, err := rules.Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{Text: "Name the owner", Agents: []string{"prd-agent"}}, Actor: "paul",
		Reason: "asked for twice",
	})
	if err != nil {
		panic(err)
	}
	d := p.Draft
	d.Text = "Name the owner of each risk"
	edited, err := rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: d, Actor: "eve",
		Reason: "of what?"})
	if err != nil {
		panic(err)
	}
	_, err = rules.Review(ctx, feedback.Review{
		Proposal: edited.ID, Decision: feedback.Approved, Hash: edited.Hash(), Actor: "eve",
		Reason: "better so",
	})
	fmt.Println(err)
	_, err = rules.Review(ctx, feedback.Review{
		Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: "cleo", Reason: "yes",
	})
	fmt.Println(err)
	// Output:
	// feedback: approve: people cannot approve what they proposed or edited
	// feedback: approve: the proposal is SUPERSEDED
}

// Before anybody approves a draft, they may see to what it would have applied, and what it
// conflicts with.
func ExampleRules_DryRun() {
	ctx := context.Background()
	service := exampleService(feedback.Config{})
	for i, says := range []string{"the summary is too long", "the summary is far too long",
		"tests are missing"} {
		_, err := service.Record(ctx, feedback.Feedback{
			ID: fmt.Sprint("D-", i), Gate: "HITL-1", Agent: "prd-agent", Decision: feedback.Rejected,
			Reviewer: "ann", At: time.Now(), Summary: says,
		})
		if err != nil {
			panic(err)
		}
	}
	applied, of, err := service.Rules().DryRun(ctx,
		feedback.Draft{Text: "The summary is too long", Agents: []string{"prd-agent"}})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d of %d\n", len(applied), of)
	// Output: 2 of 3
}

// A host that keeps its rules in Git writes the tree into its working copy.
func ExampleService_Tree() {
	ctx := context.Background()
	service := exampleService(feedback.Config{})
	_, err := service.Rules().Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{Text: "Name the owner", Agents: []string{"prd-agent"}}, Actor: "paul",
		Reason: "asked for twice",
	})
	if err != nil {
		panic(err)
	}
	files, err := service.Tree(ctx)
	if err != nil {
		panic(err)
	}
	for name := range files {
		fmt.Println(name)
	}
	// Output: feedback/rules/proposed/id-1.json
}

// A host calls Sweep now and then, or has heed.Run do so: it knows what is due.
func ExampleService_Sweep() {
	ctx := context.Background()
	service := exampleService(feedback.Config{})
	if err := service.Sweep(ctx, time.Time{}); err != nil {
		panic(err)
	}
	unfit, err := service.Rules().List(ctx, feedback.RuleQuery{Unfit: true})
	if err != nil {
		panic(err)
	}
	for _, rule := range unfit {
		// a person may now retire it: Rules.Move
		fmt.Println(rule.Text, "has no effect:", rule.Effect.Improvement)
	}
	fmt.Println("to retire:", len(unfit))
	// Output: to retire: 0
}
