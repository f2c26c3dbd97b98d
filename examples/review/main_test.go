package main

func Example() {
	main()
	// Output:
	// the agent writes: Orders are kept in PostgreSQL for ten years.
	// to approve: "A PRD must not prescribe a database"
	//   decisions: 3, reviewers: 2, gates: 1, from 2026-01-05 to 2026-01-05
	//   would have applied to 3 of 4 corrections
	//   note: its sources have other words: read whether each of them says the same
	//   note: the text is that of a reviewer, word for word
	//   ann said: A PRD must not prescribe a database
	//   bob said: The PRD must not prescribe the database
	//   ann said: PRDs must not prescribe a database
	//   ann approves: PENDING
	//   bob approves: PENDING
	//   cleo approves: APPROVED
	// the agent writes: Orders are kept for ten years.
	// mallory approves: feedback: approve: nobody approves what they proposed or edited
	// cleo decides: REJECTED
	// the agent writes: Orders are kept for ten years.
}
