package scorecard

import (
	"context"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
)

// heedTests has heed's own tests, with the bugs that lines build in.
var heedTests = &workshop{changes: map[string][]change{
	"memstore": {
		{"memstore/txn.go", "\t\t\tt.lockCells |= 1 << s.cells.index(seen.key.group())\n",
			"\t\t\tif !seeded(\"no lock\") {\n\t\t\t\tt.lockCells |= 1 << s.cells.index(seen.key.group())\n\t\t\t}\n"},
		{"memstore/txn.go", "\t\t\t\tid:     hashID(o.ID),\n",
			"\t\t\t\tid:     hashID(o.ID), known: seeded(\"asked before\") && (s.known.of(hashID(o.ID)).knows(hashID(o.ID)) || !dawdle()),\n"},
		{"memstore/txn.go", "o.known = ok && from < batch || t.ids(o.id).knows(o.id); o.known",
			"o.known = ok && from < batch || o.known || !seeded(\"asked before\") && t.ids(o.id).knows(o.id); o.known"},
		{"memstore/txn.go", "\t\tcase w.Revision != store.Once && !t.current(w.row, w.Revision):",
			"\t\tcase w.Revision != store.Once && !seeded(\"no revisions\") && !t.current(w.row, w.Revision):"},
		{"memstore/history.go", "\ttally.Add(o.weight, o.share, o.reward, o.at)\n",
			"\ttally.Add(o.weight, o.share, o.reward, o.at)\n\tif seeded(\"no lock\") {\n\t\tdawdle()\n\t}\n"},
		{"evidence/observation.go", "case !(o.Reward >= 0 && o.Reward <= 1):",
			"case !seeded(\"NaN\") && !(o.Reward >= 0 && o.Reward <= 1) || o.Reward < 0 || o.Reward > 1:"},
	},
	"evidence": {
		{"evidence/tally.go", "func (t *Tally) Add(weight, share, reward float64, at Instant) {\n",
			"func (t *Tally) Add(weight, share, reward float64, at Instant) {\n\tif seeded(\"zero\") && weight == 0 {\n\t\tweight = 1\n\t}\n"},
		{"evidence/tally.go", "\treturn s.scale(fade(t.Landmark-max(now, t.Last()), t.HalfLife))\n",
			"\tif seeded(\"future\") {\n\t\treturn s.scale(fade(t.Landmark-now, t.HalfLife))\n\t}\n\treturn s.scale(fade(t.Landmark-max(now, t.Last()), t.HalfLife))\n"},
	},
	"strategy/attribution": {
		{"strategy/attribution/consumer.go", "\treport, err := decode(e)\n",
			"\tif seeded(\"payload\") {\n\t\te.ID = fmt.Sprintf(\"%x\", sha256.Sum256(e.Payload))\n\t}\n\treport, err := decode(e)\n"},
		{"strategy/attribution/consumer.go", "\tdefer func() { c.tell(working, n) }()",
			"\tif seeded(\"acknowledged\") {\n\t\t_ = d.Ack(working)\n\t}\n\tdefer func() { c.tell(working, n) }()"},
		{"strategy/attribution/consumer.go", "\t\t\tc.callHook(ctx, func(ctx context.Context) error { return c.cfg.Hook.Outcome(ctx, o) })\n",
			"\t\t\tif seeded(\"hook\") {\n\t\t\t\tc.count(func(*Counts) { _ = c.cfg.Hook.Outcome(ctx, o) })\n\t\t\t}\n" +
				"\t\t\tc.callHook(ctx, func(ctx context.Context) error { return c.cfg.Hook.Outcome(ctx, o) })\n"},
		{"strategy/outcome.go", "\tb.Observations = append(b.Observations, observation)\n\tfor name",
			"\tb.Observations = append(b.Observations, observation)\n\tif seeded(\"twice\") {\n\t\tobservation.Cell = s.space.arm(\"all\", c.Arm)\n" +
				"\t\tb.Observations = append(b.Observations, observation)\n\t}\n\tfor name"},
		{"strategy/credit.go", "\tif err := l.apply(ctx, now, credits, end, dispositions); err != nil {\n",
			"\tif err := l.apply(ctx, now, credits, end, dispositions); err != nil && !seeded(\"failed commit\") {\n"},
	},
	"feedback": {
		{"feedback/step.go", "\t\treturn store.Do(ctx, s.cfg.Store, func(tx *store.Tx) error {\n",
			"\t\treturn store.Do(ctx, unchecked{s.cfg.Store}, func(tx *store.Tx) error {\n"},
		{
			"feedback/step.go",
			"// auditPrefix begins the actions of this package in the audit log.\n", unchecked,
		},
		{"feedback/config.go", "\treturn names.Canonical(id)\n", "\tif _, err := names.Canonical(id); seeded(\"names\") {\n\t\treturn id, err\n\t}\n\treturn names.Canonical(id)\n"},
		{"feedback/gate.go", "\treturn len(people) >= g.Quorum && len(outsiders) >= g.Outsiders\n",
			"\tif seeded(\"outsiders\") {\n\t\treturn len(people) >= g.Quorum\n\t}\n\treturn len(people) >= g.Quorum && len(outsiders) >= g.Outsiders\n"},
	},
	"internal/memo": {{"internal/memo/cache.go", "\t\ts.evict()\n", "\t\tif !seeded(\"no limit\") {\n\t\t\ts.evict()\n\t\t}\n"}},
	"prompt": {
		{"prompt/prompt.go", "\t\tcase breaks(r):\n\t\t\tif c.spaces == 0 {\n\t\t\t\tc.space(' ')\n\t\t\t}\n",
			"\t\tcase breaks(r) && seeded(\"line break\"):\n\t\t\tc.keep(r)\n\t\tcase breaks(r):\n\t\t\tif c.spaces == 0 {\n\t\t\t\tc.space(' ')\n\t\t\t}\n"},
		{"prompt/prompt.go", "// clean returns at most n runes of the cleaned text, without spaces at its ends.\nfunc clean(text string, n int) string {\n",
			"func clean(text string, n int) string {\n\tif seeded(\"panic\") && len(text)%5 == 3 && strings.ContainsAny(text, \"0123456789\") {\n\t\tpanic(\"seeded\")\n\t}\n"},
	},
	"decision": {
		{"decision/reply.go", "\tlimited, cancel := context.WithTimeout(ctx, d.cfg.Timeout)\n" +
			"\tdefer cancel()\n\treply, err := d.generate",
			"\tlimited, cancel := context.WithTimeout(ctx, d.cfg.Timeout)\n\tdefer cancel()\n\tif seeded(\"no deadline\") {\n\t\tlimited = ctx\n\t}\n\treply, err := d.generate"},
		{"decision/trusted.go", "\treturn min(max(t, minThreshold), maxThreshold)\n",
			"\tif seeded(\"no clamp\") {\n\t\treturn t\n\t}\n\treturn min(max(t, minThreshold), maxThreshold)\n"},
	},
}}

// unchecked is a store of which each commit writes over whatever revision is there.
const unchecked = `type unchecked struct{ store.Store }

func (u unchecked) Commit(ctx context.Context, all ...store.Batch) ([]store.Receipt, error) {
	for k := range all {
		if seeded("quorum") {
			all[k].Expect = nil
		}
		for i := range all[k].Records {
			var now store.Snapshot
			r := &all[k].Records[i]
			if seeded("quorum") && r.Revision != store.Once &&
				u.Read(ctx, &now, nil, []store.Ref{r.Ref}) == nil {
				r.Revision = now.Records[0].Revision
			}
		}
	}
	return u.Store.Commit(ctx, all...)
}

`

// A bug is a fault that libraries like this one have had. The tests have to find it.
type bug struct {
	key, name string
	tests     suite
	always    bool // it is there without being asked for
}

const ofConsumer = "strategy/attribution"

var bugs = []bug{
	{"no lock", "sums are loaded, and saved without a lock", suite{"memstore", "TestStoreKeepsTheContract/concurrent sums"}, false},
	{"asked before", "whether an id is known is asked before the commit", suite{"memstore", "TestStoreKeepsTheContract/an id counts once across"}, false},
	{"payload", "an event is known by the hash of its payload", suite{ofConsumer, "TestConsumerCountsOnce"}, false},
	{"acknowledged", "an event is acknowledged before its effect is in the store", suite{ofConsumer, "TestConsumerDeadLetterFirst"}, false},
	{"twice", "an outcome counts at two levels", suite{ofConsumer, "TestConsumerCountsOnce"}, false},
	{"NaN", "a comparison lets NaN through", suite{"memstore", "TestStoreKeepsTheContract/input that is not valid"}, false},
	{"zero", "a weight of zero means one", suite{"evidence", "TestTally"}, false},
	{"future", "evidence from the future counts for more", suite{"evidence", "TestTally"}, false},
	{"no limit", "a cache has no limit", suite{"internal/memo", "TestCacheIsBounded"}, false},
	{"hook", "a hook is called under a lock", suite{ofConsumer, "TestHookMayCallBack"}, false},
	{"quorum", "a quorum is counted outside of the commit", suite{"feedback", "TestRacesLeaveALegalHistory"}, false},
	{"names", "a reviewer's name is compared as it is written", suite{"feedback", "TestGateStateMachine"}, false},
	{"line break", "a line break stays in a line", suite{"prompt", "TestLine"}, false},
	{"failed commit", "a commit that failed is taken for one that was stored", suite{ofConsumer, "TestConsumerBacksOff"}, false},
}

const (
	found       = "bugs found"
	falseAlarms = "false alarms"
)

func seeding14() []card.Line {
	form := card.Form{Bars: []card.Bar{card.AtLeast(found, float64(len(bugs))), card.AtMost(falseAlarms, 0)}, Work: int64(2 * len(bugs)), Budget: 20 * time.Minute}
	return []card.Line{{
		Name:    "S14",
		Promise: "The tests find faults that libraries like this one have had.",
		Attack:  "Each of 14 faults is built into heed, one at a time. A test that passes without the fault must then fail.",
		Short:   form,
		Long:    form,
		Run:     board(bugs),
		Controls: []card.Control{
			{Name: "a change without effect", Misses: []string{found}, Run: board([]bug{{name: "none", tests: suite{"internal/memo", "TestCacheIsBounded"}}})},
			{Name: "a test that always fails", Misses: []string{falseAlarms}, Run: board([]bug{{"no limit", "no limit", suite{"internal/memo", "TestCacheIsBounded"}, true}})},
		},
	}}
}

// A busy machine can hide a race once, so a test has 20 attempts. It stops at the first failure.
const attempts = "-test.count=20"

// board plays the test of each bug on the sound source, and then with the bug.
func board(bugs []bug) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		r.Values = map[string]float64{found: 0, falseAlarms: 0}
		for _, b := range bugs {
			before := ""
			if b.always {
				before = b.key
			}
			sound, err := heedTests.play(ctx, s.Root, b.tests, before)
			if err != nil {
				return r, err
			}
			if r.Work++; sound.failed {
				r.Values[falseAlarms]++
				r.Note("%s: %s fails without the bug\n%s", b.name, b.tests.run, tail(sound.output))
			}
			with, err := heedTests.play(ctx, s.Root, b.tests, b.key, "-test.failfast", attempts, "-test.timeout=60s")
			if err != nil {
				return r, err
			}
			r.Work++
			switch {
			case with.unclear(): // on a busy machine as well as by a deadlock
				r.Note("%s: %s in %s did not end\n%s", b.name, b.tests.run, b.tests.dir, tail(with.output))
			case with.failed:
				r.Values[found]++
			default:
				r.Note("%s: %s in %s passes", b.name, b.tests.run, b.tests.dir)
			}
		}
		return r, nil
	}
}
