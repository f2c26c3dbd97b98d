package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A classic is a fault that libraries like this one have had. Each is in every sample.
type classic struct {
	name     string
	file     string
	old, new string // old occurs once, within a function
	dir, run string // the package whose tests notice it, and a pattern of their names
}

var classics = []classic{
	{
		"records are written over any revision", "memstore/commit.go",
		"r.Revision != store.Once && !t.has(r.Ref, r.Revision)",
		"false && !t.has(r.Ref, r.Revision)",
		"memstore", "TestStoreAgreesWithAPlainOne|TestStoreKeepsTheContract",
	},
	{
		"a comparison lets NaN through", "evidence/observation.go",
		"!(o.Reward >= 0 && o.Reward <= 1)", "o.Reward < 0 || o.Reward > 1", "memstore",
		"TestStoreKeepsTheContract",
	},
	{
		"a weight of zero means one", "evidence/tally.go",
		"func (t *Tally) Add(weight, share, reward float64, at Instant) {\n",
		"if weight == 0 {\nweight = 1\n}\n", "evidence", "TestTally",
	},
	{
		"evidence from the future counts for more", "evidence/tally.go",
		"return s.scale(fade(t.Landmark-max(now, t.Last()), t.HalfLife))",
		"return s.scale(fade(t.Landmark-now, t.HalfLife))",
		"evidence", "TestTally",
	},
	{
		"an event is known by the hash of its payload", "strategy/attribution/consumer.go",
		"report, err := decode(e)\n",
		"e.ID = fmt.Sprintf(\"%x\", sha256.Sum256(e.Payload))\nreport, err := decode(e)\n",
		"strategy/attribution", "TestConsumerCountsOnce",
	},
	{
		"an event is acknowledged before its effect is in the store",
		"stream/runner.go",
		"defer func() { // when the event is out of hand",
		"_ = d.Ack(working)\ndefer func() { // when the event is out of hand",
		"strategy/attribution", "TestConsumerDeadLetterFirst",
	},
	{
		"a hook is called under a lock", "strategy/attribution/consumer.go",
		"c.callHook(ctx, func(ctx context.Context) error { return c.cfg.Hook.Outcome(ctx, o) })",
		"c.count(func(*Counts) { _ = c.cfg.Hook.Outcome(ctx, o) })", "strategy/attribution",
		"TestHookMayCallBack",
	},
	{
		"an outcome counts at two levels", "strategy/outcome.go",
		"b.Observations = append(b.Observations, apart(observation))\n\tfor name",
		"b.Observations = append(b.Observations, apart(observation))\nobservation.Cell = " +
			"s.space.arm(\"all\", c.Arm)\n" +
			"b.Observations = append(b.Observations, apart(observation))\nfor name",
		"strategy/attribution",
		"TestConsumerCountsOnce",
	},
	{
		"a commit that failed is taken for one that was stored", "strategy/outcome.go",
		"\tif err != nil {\n\t\treturn nil, err\n\t}\n\tdid := make([]Disposition, len(outcomes))\n",
		"_ = err\ndid := make([]Disposition, len(outcomes))\n", "strategy/attribution",
		"TestConsumerBacksOff",
	},
	{
		"a cache has no limit", "strategy/memo.go", "s.evict()", "", "strategy",
		"TestMemoIsBounded",
	},
	{
		"a reviewer's name is compared as it is written", "feedback/config.go",
		"return names.Canonical(id)\n",
		"return id, nil\n", "feedback", "TestGateStateMachine",
	},
	{
		"reviewers of the evidence approve alone", "feedback/gate.go",
		"max(g.Outsiders-outsiders, 0)",
		"0",
		"feedback", "TestTheGateIsTheModel",
	},
	{
		"a line break stays in a line", "prompt/prompt.go",
		"case breaks(r):\n\t\t\tif c.spaces == 0 {\n\t\t\t\tc.space(' ')\n\t\t\t}",
		"case breaks(r):\n\t\t\tc.keep(r)",
		"prompt", "TestLine",
	},
	{
		"a model has no deadline", "decision/reply.go",
		"limited, cancel := context.WithTimeout(ctx, *left)\n",
		"limited, cancel := context.WithCancel(ctx)\n", "decision", "TestModelThatHangs",
	},
	{
		"a threshold may be 0", "decision/decider.go", "return min(max(t, minThreshold), maxThreshold)",
		"return t",
		"decision", "TestHeuristicFirstOracle",
	},
}

// mutant returns the fault in the file of a source tree.
func (c classic) mutant(root string) (*mutant, error) {
	text, err := os.ReadFile(filepath.Join(root, c.file))
	if err != nil {
		return nil, err
	}
	src := string(text)
	if n := strings.Count(src, c.old); n != 1 {
		return nil, fmt.Errorf("%s has %q %d times, and classics.go wants to change it", c.file, c.old,
			n)
	}
	m := &mutant{
		file: c.file, key: "classic: " + c.name, subject: subject{dir: path.Dir(c.file),
			tests: []string{c.dir}}, run: c.run,
		start: strings.Index(src, c.old), replacement: c.new, before: c.name, after: "in the code",
	}
	m.end = m.start + len(c.old)
	if strings.HasPrefix(c.old, "func ") { // the fault comes first in the body
		m.start = m.end
	}
	m.line = strings.Count(src[:m.start], "\n") + 1
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, c.file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := finder{src: src, file: c.file, fset: set, posts: map[ast.Stmt]bool{}}
	f.functions(parsed)
	for _, other := range f.found {
		if fn := other.fn; fn.start <= m.start && m.end <= fn.end {
			m.fn = fn
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s has %q outside of its functions", c.file, c.old)
}
