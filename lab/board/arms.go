package board

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy/partition"
)

// armWorlds have no items, and from two to forty arms: far apart or close, with outcomes of yes and
// no or graded ones.
func armWorlds() (all []world) {
	for _, graded := range []bool{false, true} {
		for _, arms := range []int{2, 3, 5, 10, 20, 40} {
			for _, spread := range []float64{0.4, 0.05} {
				name := fmt.Sprintf("%d arms, ±%v", arms, spread)
				if graded {
					name += ", graded"
				}
				all = append(all, world{name, 0, make([]float64, arms), drawArms(arms, spread, graded)})
			}
		}
	}
	return all
}

// drawArms returns a world whose arms have rates of a half, more or less.
func drawArms(arms int, spread float64, graded bool) drawing {
	return func(rng *rand.Rand, requests int) ([]request, [][]float32) {
		rates := make([]float64, arms)
		for arm := range rates {
			rates[arm] = 0.5 + spread*(2*rng.Float64()-1)
		}
		all := make([]request, requests)
		for i := range all {
			all[i].rates = rates
			if !graded {
				continue
			}
			luck := 0.2*rng.Float64() - 0.1
			for _, rate := range rates {
				all[i].grades = append(all[i].grades, min(max(rate+luck, 0), 1))
			}
		}
		return all, nil
	}
}

func manyArms(*world) []policy { return []policy{thompson, heeding("heed", option{})} }

// thompson is Thompson sampling with a Beta(1, 1) of each arm (Chapelle and Li 2011).
var thompson = peer("plain Thompson", evidence.Beta{Alpha: 1, Beta: 1}, math.Inf(1),
	func(*request) []string { return []string{""} }, first,
	func(_ *trial, draw, _ float64) float64 { return draw })

// answered are policies for recorded requests with a text. They know nothing of a request, its text
// or its task. The rules of other projects know the task.
func answered(*world) []policy {
	return append([]policy{
		thompson, noItem, heeding("cells of the text", option{item: untold, cells: true}), trueTopic,
		heeding("the text's vector", option{item: untold, vector: true}),
		heeding("cells and vector", option{item: untold, cells: true, vector: true}),
		heeding("topic and vector", option{item: topic, vector: true}),
	}, peers(topic)...)
}

// halfOf returns the half that a question is in: for tuning, or for a last look.
func halfOf(question string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(question)) // a hash never fails
	return [...]string{"tuning", "last"}[h.Sum64()>>7&1]
}

// readAnswers makes a world of a file with a JSON object in each line: the task, the question, and
// the score of each model in [0, 1]. half is the part of them to play: see halfOf. "all" are both.
func readAnswers(name, half string) (w world, err error) {
	file, err := os.Open(name)
	if err != nil {
		return w, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var all []request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var line struct {
			Task, Question string
			Scores         map[string]float64
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return w, fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		if half != "all" && half != halfOf(line.Question) {
			continue
		}
		r := request{topic: line.Task}
		for _, model := range slices.Sorted(maps.Keys(line.Scores)) {
			r.rates = append(r.rates, line.Scores[model])
		}
		if len(r.rates) < 2 || len(all) > 0 && len(r.rates) != len(all[0].rates) {
			return w, fmt.Errorf("%s: line %d: has scores of %d models", name, n, len(r.rates))
		}
		r.grades = r.rates
		vectors, err := partition.Form(context.Background(), []string{line.Question})
		if err != nil {
			return w, err
		}
		r.vector = vectors[0]
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		return w, fmt.Errorf("%s: %w", name, err)
	}
	if len(all) == 0 {
		return w, fmt.Errorf("%s: has no requests of the half %q", name, half)
	}
	return world{"requests", 0, make([]float64, len(all[0].rates)), func(rng *rand.Rand,
		requests int) (drawn []request, _ [][]float32) {
		for len(drawn) < requests {
			for _, i := range rng.Perm(len(all)) {
				drawn = append(drawn, all[i])
			}
		}
		return drawn[:requests], nil
	}}, nil
}
