package main

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/feedback/modeleval"
)

func Example() {
	main()
	// Output:
	// the agent writes: Orders are kept in PostgreSQL for ten years.
	// to approve: "A PRD must not prescribe a database"
	//   decisions: 3, reviewers: 2, gates: 1, from 2026-01-05 to 2026-01-05
	//   would have applied to 3 of 5 corrections
	//   note: its sources have other words: check that each of them means the same
	//   note: the text is that of a reviewer, word for word
	//   ann said: A PRD must not prescribe a database
	//   bob said: The PRD must not prescribe the database
	//   ann said: PRDs must not prescribe a database
	//   ann approves: PENDING
	//   bob approves: PENDING
	//   cleo approves: APPROVED
	// the agent writes: Orders are kept for ten years.
	// mallory approves: feedback: approve: people cannot approve what they proposed or edited
	// cleo decides: REJECTED
	// the agent writes: Orders are kept for ten years.
}

// A model finds that the first two corrections say the same, in other words.
func Example_model() {
	model := &llmtest.Model{Predictions: llmtest.Say(`{"same": [1], "opposite": []}`,
		`{"same": [1, 2], "opposite": []}`, `{"same": [1, 2, 3], "opposite": []}`,
		`{"same": [], "opposite": []}`)}
	if err := play(context.Background(), modeleval.New(model)); err != nil {
		panic(err)
	}
	fmt.Println("calls of the model:", len(model.Requests()))
	// Output:
	// the agent writes: Orders are kept in PostgreSQL for ten years.
	// to approve: "A PRD must not prescribe a database"
	//   decisions: 4, reviewers: 2, gates: 1, from 2026-01-05 to 2026-01-05
	//   would have applied to 3 of 5 corrections
	//   note: the text is that of a reviewer, word for word
	//   ann said: A PRD must not prescribe a database
	//   bob said: Leave the choice of the database to the engineers
	//   bob said: The PRD must not prescribe the database
	//   ann said: PRDs must not prescribe a database
	//   ann approves: PENDING
	//   bob approves: PENDING
	//   cleo approves: APPROVED
	// the agent writes: Orders are kept for ten years.
	// mallory approves: feedback: approve: people cannot approve what they proposed or edited
	// cleo decides: REJECTED
	// the agent writes: Orders are kept for ten years.
	// calls of the model: 4
}
