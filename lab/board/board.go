// Package board plays online routers against each other, on recorded answers and in worlds whose
// truth is known.
//
// For each request a policy chooses an arm, for example a model. It learns from the outcome of that
// arm alone: right or wrong, and what it cost. Outcomes come late, never, repeatedly, or from
// liars. The arms change, and processes restart with only the state that they saved. All policies
// have the same requests and the same luck.
//
//	go run ./lab board [SET] [-long] [-data FILE] [-answers FILE] [-runs N] [-requests N] [-seed S]
//	                   [-world NAME] [-under NAME] [-policies NAMES]
//
// A set is what plays where:
//
//	routers   heed, classic rules and other projects' under every trouble; this is the default
//	context   what it is worth to know what a request is about, by vectors near topics
//	pooling   heed's poolings and ways of forgetting
//	arms      heed and plain Thompson sampling with 2 to 40 arms and no items
//	requests  recorded scores of models for requests with a text; needs -answers
//
// The tables have the regret, in rewards: a right answer, and the price that was saved, over all
// that can be earned. They have what it is more than the first policy's, and its ratio to that; the
// quality, the cost and the size of the saved state. After routers comes a list of where heed is
// not the best.
//
// -data is a CSV file with a header: the item, the question's id, and for each arm whether it was
// right, 0 or 1. The last arm costs a tenth of a right answer, and the others nothing. -answers is
// a file with a JSON object in each line: {"task", "question", "scores": {model: 0 to 1}}.
package board

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A set is what plays where.
type set struct {
	name           string
	runs, requests [2]int // in the short form and in the long one
	policies       func(w *world) []policy
	worlds         func(o *order) ([]world, error)
	troubles       []string // nil: all
}

// An order sets how worlds are made.
type order struct {
	data, answers, half string
}

// always makes the same worlds, whatever the order is.
func always(make func() []world) func(*order) ([]world, error) {
	return func(*order) ([]world, error) { return make(), nil }
}

var sets = []set{
	{"routers", [2]int{1, 20}, [2]int{100, 2000}, routers, func(o *order) ([]world, error) {
		if o.data == "" {
			return routerWorlds(), nil
		}
		recorded, err := readTable(o.data)
		return append(routerWorlds(), recorded), err
	}, nil},
	{"context", [2]int{2, 1000}, [2]int{1000, 3000}, contexts,
		always(func() []world { return contextWorlds(30) }), []string{"plain"}},
	{"pooling", [2]int{1, 100}, [2]int{1000, 6000}, poolings, always(poolingWorlds),
		[]string{"plain", "drift"}},
	{"arms", [2]int{1, 2000}, [2]int{100, 1000}, manyArms, always(armWorlds), []string{"plain"}},
	{"requests", [2]int{1, 40}, [2]int{1000, 6108}, answered, func(o *order) ([]world, error) {
		w, err := readAnswers(o.answers, o.half)
		return []world{w}, err
	}, []string{"plain"}},
}

// Run plays a set.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	var o order
	call.StringVar(&o.data, "data", "", "the `file` with a table of recorded answers")
	call.StringVar(&o.answers, "answers", "", "the `file` with recorded scores of models, as JSON")
	call.StringVar(&o.half, "half", "tuning", "play this half of its requests: tuning, last, or all")
	runs := call.Int("runs", 0, "how many runs to average over; 0: those of the set")
	requests := call.Int("requests", 0, "how many requests a run has; 0: those of the set")
	seed := call.Uint64("seed", 2026, "the seed of the runs")
	only := call.String("world", "", "play in this world only")
	policies := call.String("policies", "", "let these `names` play only, with semicolons between them")
	under := call.String("under", "", "play under this trouble only")
	kit.Check(call.ParseNames())
	name := cmp.Or(append(call.Names, "routers")...)
	i := slices.IndexFunc(sets, func(s set) bool { return s.name == name })
	if i < 0 || len(call.Names) > 1 {
		return call.Usage("name one set: routers, context, pooling, arms or requests")
	}
	of := sets[i]
	s := study{
		runs: cmp.Or(*runs, call.Pick(of.runs[0], of.runs[1])), seed: *seed, ranks: name == "routers",
		requests: cmp.Or(*requests, call.Pick(of.requests[0], of.requests[1])),
		policies: of.playing(*policies),
	}
	switch {
	case s.runs < 1 || s.requests < 60:
		return call.Usage("-runs %d must be at least 1, and -requests %d at least 60", s.runs,
			s.requests)
	case name == "requests" && o.answers == "":
		return call.Usage("the set requests needs -answers")
	}
	worlds := kit.Must(of.worlds(&o))
	s.worlds = slices.DeleteFunc(worlds, func(w world) bool { return *only != "" && w.name != *only })
	s.troubles = slices.DeleteFunc(troubles(), func(t trouble) bool {
		return *under != "" && t.name != *under || of.troubles != nil && !slices.Contains(of.troubles,
			t.name)
	})
	if len(s.worlds) == 0 || len(s.troubles) == 0 {
		return call.Usage("there is no world %q or no trouble %q in %s", *only, *under, name)
	}
	s.report(call, s.play(ctx))
	return nil
}

// playing returns the policies of a set and the yardsticks, or only the named ones.
func (s set) playing(names string) func(w *world) []policy {
	named := strings.Split(names, ";")
	for i := range named {
		named[i] = strings.TrimSpace(named[i])
	}
	return func(w *world) []policy {
		return slices.DeleteFunc(append(s.policies(w), yardsticks(w)...), func(p policy) bool {
			return names != "" && !slices.Contains(named, p.name)
		})
	}
}
