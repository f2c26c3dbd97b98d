package chance_test

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
)

// BenchmarkDraw4 times one Thompson choice among four arms: a draw of each, and the highest wins.
func BenchmarkDraw4(b *testing.B) {
	for _, set := range []struct {
		name   string
		shapes evidence.Beta
	}{
		{"1,1", evidence.Beta{Alpha: 1, Beta: 1}},
		{"2,3", evidence.Beta{Alpha: 2, Beta: 3}},
		{"50,80", evidence.Beta{Alpha: 50, Beta: 80}},
		{"1000,1200", evidence.Beta{Alpha: 1000, Beta: 1200}},
		{"0.5,0.5", evidence.Beta{Alpha: 0.5, Beta: 0.5}},
	} {
		b.Run("shapes="+set.name+"/by=heed", func(b *testing.B) {
			var arms [4]chance.Sampler
			for i := range arms {
				arms[i] = chance.Beta(set.shapes.Alpha, set.shapes.Beta)
			}
			rng := chance.Rand{State: 1}
			var wins [4]int
			b.ReportAllocs()
			for b.Loop() {
				best, most := 0, -1.
				for i := range arms {
					if x := arms[i].Draw(&rng); x > most {
						best, most = i, x
					}
				}
				wins[best]++
			}
		})
		b.Run("shapes="+set.name+"/by=gonum", func(b *testing.B) {
			src := rand.NewPCG(1, 2)
			var arms [4]distuv.Beta
			for i := range arms {
				arms[i] = distuv.Beta{Alpha: set.shapes.Alpha, Beta: set.shapes.Beta, Src: src}
			}
			var wins [4]int
			b.ReportAllocs()
			for b.Loop() {
				best, most := 0, -1.
				for i := range arms {
					if x := arms[i].Rand(); x > most {
						best, most = i, x
					}
				}
				wins[best]++
			}
		})
	}
}
