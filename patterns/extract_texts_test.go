package patterns_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/patterns"
)

// TestExtractWhatWasDone has texts with the ways that they follow, by short names: intentions,
// advice, other times, judgements. Words show a part of that.
func TestExtractWhatWasDone(t *testing.T) {
	w := newWorld(t, patterns.Config{Approaches: append(patterns.Approaches(), added...)})
	short := map[string]string{}
	for way, name := range ways {
		short[name] = way
	}
	all, right, wrong := 0, 0, 0
	for text, want := range map[string]string{
		// Intentions.
		"We had planned to split by feature, but in the end we split it by " +
			"layer.": "split-by-layer",
		"The original idea was one subtask per layer; it ended up as one subtask per " +
			"feature.": "split-by-feature",
		"The plan was to run the subtasks in parallel, and that is what we " +
			"did.": "parallel-subtasks",
		"We planned to run everything in parallel and did " +
			"so.": "parallel-subtasks",
		"As planned, the subtasks ran in " +
			"parallel.": "parallel-subtasks",
		"The tests were supposed to be written first. The agent wrote the tests in a separate " +
			"subtask.": "tests-separate",
		"Tests were to be written alongside the " +
			"code.": "",
		"I wanted to work test-driven, however I wrote the tests in a separate " +
			"task.": "tests-separate",
		"We hoped to reuse the old parser. It was rewritten in one " +
			"go.": "big-bang",
		"We tried to reuse the old parser, but had to build a prototype " +
			"first.": "prototype-first",
		"Our intention was to start with a prototype. There was no " +
			"time.": "",
		"They thought about slicing it vertically, then went layer by " +
			"layer.": "split-by-layer",
		"Splitting by feature was planned, yet the agents worked one after " +
			"another.": "sequential-subtasks",
		"Splitting by feature had been the " +
			"plan.": "",
		"It was originally meant to be one big commit; we made small " +
			"commits.": "small-steps",
		"The ticket was expected to be done step by step. The agent changed everything in one " +
			"go.": "big-bang",
		"Ideally the types come first. Here the work was split by " +
			"feature.": "split-by-feature",
		// Advice of others.
		"A colleague recommended writing the tests first. I split by layer.":    "split-by-layer",
		"The reviewer proposed small commits; everything went into one commit.": "big-bang",
		"As suggested by the lead, we split by feature.":                        "split-by-feature",
		"Somebody advised against a prototype, so there was none.":              "",
		"I suggest splitting by feature.":                                       "split-by-feature",
		// Another time.
		"Next sprint the subtasks will run in parallel.":                         "",
		"In future we write the tests first. Now a separate task had the tests.": "tests-separate",
		"The subtasks ran in parallel; next time one after " +
			"another.": "parallel-subtasks",
		"Next time I'd use small commits.": "",
		// A way was given up for another.
		"We switched from a split by layer to a split by " +
			"feature.": "split-by-feature",
		"The agents chose vertical slices over " +
			"layers.": "split-by-feature",
		"We replaced the parallel run of all subtasks with a strict order, one after " +
			"another.": "sequential-subtasks",
		"Small commits in place of one big " +
			"commit.": "small-steps",
		"As opposed to working in parallel, each task waits for the previous " +
			"one.": "sequential-subtasks",
		"Instead of a prototype, we wrote the types " +
			"first.": "types-first",
		"We should have written the tests first.":        "",
		"It would have been better to split by feature.": "",
		"Nobody wrote tests first.":                      "",
		"The team forgot to put the types first.":        "",
		// Judgements in another sentence.
		"We split by layer. That turned out to be an error.":           "",
		"Everything in one commit. Never again.":                       "",
		"The tests were written in a separate task. The idea was bad.": "",
		"Subtasks in parallel. It worked well.":                        "parallel-subtasks",
		"We split by layer. The build failed once, and then passed.":   "split-by-layer",
		"One big commit? No: small steps.":                             "small-steps",
		"Would a prototype help? We went bit by bit.":                  "small-steps",
		// Other words.
		"The four agents worked side by side.":                      "parallel-subtasks",
		"Work was fanned out to six agents.":                        "parallel-subtasks",
		"All of the subtasks were started at the same time.":        "parallel-subtasks",
		"The subtasks were done in turn.":                           "sequential-subtasks",
		"The agent did one subtask, then the next.":                 "sequential-subtasks",
		"Each step began only after the one before had finished.":   "sequential-subtasks",
		"In order to be quick, we split by feature.":                "split-by-feature",
		"The work was cut along the features.":                      "split-by-feature",
		"Each agent took a complete user story.":                    "split-by-feature",
		"The database first, then the service, then the front end.": "split-by-layer",
		"Interfaces were defined up front.":                         "types-first",
		"We began by writing down the interfaces.":                  "types-first",
		"The structs went in ahead of the rest.":                    "types-first",
		"Each subtask came with its tests.":                         "tests-inline",
		"Code and tests went in together.":                          "tests-inline",
		"We tested as we went.":                                     "tests-inline",
		"The tests got a ticket of their own.":                      "tests-separate",
		"A second agent wrote the tests.":                           "tests-separate",
		"A failing test, then the code that makes it pass.":         "tests-first",
		"Red, green, refactor.":                                     "tests-first",
		"A quick prototype showed the way.":                         "prototype-first",
		"It began with a spike.":                                    "prototype-first",
		"A proof of concept came before the real thing.":            "prototype-first",
		"We built on what was already there.":                       "reuse-existing",
		"The agent extended the existing exporter.":                 "reuse-existing",
		"A gradual change, in many tiny commits.":                   "small-steps",
		"The whole upgrade landed in a single pull request.":        "big-bang",
		"The agent built the feature end to end in one go and only then looked at the tests, " +
			"which another agent wrote.": "big-bang tests-separate",
		"Layered approach: storage first, then business rules, then the web " +
			"client.": "split-by-layer",
		"All subtasks were independent, so the orchestrator launched them " +
			"simultaneously.": "parallel-subtasks",
		"There was talk of parallel subtasks, but the orchestrator ran them strictly in " +
			"order.": "sequential-subtasks",
		"A throwaway version was coded in an afternoon and binned before the real work " +
			"began.": "prototype-first",
		"It borrows the retry logic from the HTTP client that we already " +
			"ship.": "reuse-existing",
		"The agent defined the shared structs before handing out the " +
			"work.": "types-first",
		"Rather than slicing by layer, each agent took one user story from end to " +
			"end.": "split-by-feature",
		"The planner wanted the tests in a subtask of their own. The agent wrote them as it " +
			"went.": "tests-inline",
		"What was meant to be a step by step migration turned into one giant " +
			"commit.": "big-bang",
		"Next time: types first. This time everyone invented their " +
			"own.": "",
		"Was a prototype needed? Probably not. None was " +
			"made.": "",
		"We had no time to write the tests first, so a second task did the tests " +
			"afterwards.": "tests-separate",
		"Doing one file per task felt slow; parallel tasks made up for " +
			"it.": "parallel-subtasks",
		"The agent refused to reuse the legacy module and rewrote everything in a single " +
			"change.": "big-bang",
		"The tasks were chained: each one started when its predecessor was " +
			"done.": "sequential-subtasks",
		"Each feature was its own task and the tasks ran side by " +
			"side.": "parallel-subtasks split-by-feature",
		"The type-first approach worked, the parallel one did " +
			"not.": "types-first",
		"Instead of waiting for each other, the agents all worked at " +
			"once.": "parallel-subtasks",
		"It could have been done in parallel, but nobody thought of that. One after another it " +
			"took six hours.": "sequential-subtasks",
		"Proof of concept on Monday, production code from Tuesday " +
			"on.": "prototype-first",
		"The job was divided horizontally: one agent for SQL, one for the service, one for the " +
			"pages.": "split-by-layer",
		"TDD was the plan. The plan lasted ten " +
			"minutes.": "",
		"Nobody objected to splitting by feature, so that is what we " +
			"did.": "split-by-feature",
		"The migration was performed in tiny increments, a table at a " +
			"time.": "small-steps",
		"No need for a prototype, as the existing component did the " +
			"job.": "reuse-existing",
	} {
		var got []string
		for _, name := range w.extracted(text) {
			if short[name] != "" {
				got = append(got, short[name])
			}
		}
		slices.Sort(got)
		all++
		if want == strings.Join(got, " ") {
			right++
		}
		if slices.ContainsFunc(got, func(way string) bool {
			return !slices.Contains(strings.Fields(want), way)
		}) {
			wrong++
		}
	}
	t.Logf("%d of %d right, %d wrongly credited", right, all, wrong)
	assert.GreaterOrEqual(t, right, 71)
	assert.LessOrEqual(t, wrong, 8)
}

// Sentences about something else are credited with no way.
func TestExtractOffTopic(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for _, text := range []string{
		"The delay was caused by feature creep.", "We fixed the sequential scan of the orders table.",
		"It stays unsplit by feature.", "Billed per feature, not per seat.",
		"A sequential id leaks how many users there are.",
		"Two requests at the same time race for the lock.",
		"The parallel port is no longer supported.", "The import is sorted by type of customer.",
		"A test of the API failed on Monday.", "Follow the chain of responsibility.",
		"The file is one of many per user.", "The cake has three layers.",
		"Rates are set by component suppliers.", "Each worker waits at the bus stop.",
	} {
		assert.Empty(t, w.extracted(text), text)
	}
}
