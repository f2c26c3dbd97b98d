package assistant_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/examples/agent/assistant"
	"github.com/heedhq/heed/store"
)

// A witness notes what is committed together.
type witness struct {
	store.Store
	commits [][]store.Batch
}

func (w *witness) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	w.commits = append(w.commits, slices.Clone(batches))
	return w.Store.Commit(ctx, batches...)
}

// together tells whether one commit had both the verdict on an answer and evidence about a heuristic.
func (w *witness) together(heuristic string) bool {
	return slices.ContainsFunc(w.commits, func(batches []store.Batch) bool {
		verdict, evidence := false, false
		for _, b := range batches {
			for _, r := range b.Records {
				verdict = verdict || r.Kind == "decision.verdict"
			}
			for _, o := range b.Observations {
				evidence = evidence || o.Cell.Item == heuristic
			}
		}
		return verdict && evidence
	})
}

// Praise of the model's answer goes to the heuristic that says the same, in one commit with the record of the click.
func TestPraiseIsOneCommit(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	stores, err := assistant.InMemory(clock)
	require.NoError(t, err)
	w := &witness{Store: stores.Store}
	stores.Store = w
	known := assistant.Heuristic{
		ID:        "rotate",
		Condition: "the disk of a database server is nearly full and its logs have grown",
		Action:    "Rotate the logs of the server and see what has made them grow so much.",
	}
	rule, err := json.Marshal(map[string]any{"condition": known.Condition, "action": map[string]string{"type": "suggest", "message": known.Action}})
	require.NoError(t, err)
	model := &llmtest.Model{Answers: llmtest.Say(known.Action), Predictions: llmtest.Say(`{"success": 0.5, "confidence": 0.5}`, string(rule))}
	a, err := assistant.New(ctx, assistant.Config{Model: model, Stores: stores, Runbooks: []assistant.Heuristic{known}, Now: clock})
	require.NoError(t, err)

	account, err := a.Answer(ctx, assistant.Event{ID: "e", Domain: assistant.Alerts, Stream: "ops", Person: "ann", Text: "Something is odd here.", At: now})
	require.NoError(t, err)
	require.Empty(t, account.Result.CreditID, "the model answered")
	before, err := a.Learning.Standing(ctx, known.ID)
	require.NoError(t, err)
	require.NoError(t, a.Hear(ctx, assistant.Thumb{Event: "e", Person: "ann", Up: true, At: now}))
	after, err := a.Learning.Standing(ctx, known.ID)
	require.NoError(t, err)
	assert.Greater(t, after.Confidence, before.Confidence)
	assert.True(t, w.together(known.ID))
	assert.Len(t, a.Shelf(), 1, "nothing was learned twice")
}
