package heed

// A Comparison is a heuristic beside an answer of a model that was not shown the heuristic. Package decision makes them, and package
// learning counts what they are worth.
type Comparison struct {
	HeuristicID string  `json:"heuristic"`            // never empty
	Similarity  float64 `json:"similarity,omitempty"` // of its action and the model's answer, in [0, 1]
	Agrees      bool    `json:"agrees,omitempty"`     // the two are similar enough to say the same
}
