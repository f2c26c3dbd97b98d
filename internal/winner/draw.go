package winner

import (
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
)

// Draw draws the arm's rate as [evidence.Belief.Draw] does. Many draws share the generator.
func Draw(b *evidence.Belief, r *chance.Rand) float64 {
	of, floor := b.Drawn()
	s := chance.Beta(of.Alpha, of.Beta)
	return chance.Raised(s.Draw(r), floor)
}
