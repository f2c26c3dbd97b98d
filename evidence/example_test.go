package evidence_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/heedhq/heed/evidence"
)

// A host's own rule draws a rate for each arm, and takes the arm with the greatest.
func ExampleBelief_Draw() {
	brief := evidence.Belief{Level: evidence.Beta{Alpha: 9, Beta: 3}}
	full := evidence.Belief{Level: evidence.Beta{Alpha: 4, Beta: 8}}
	src := rand.NewPCG(1, 2)
	chosen := 0
	for range 1000 {
		if brief.Draw(src) > full.Draw(src) {
			chosen++
		}
	}
	fmt.Println(chosen > 950 && chosen < 1000)
	// Output: true
}
