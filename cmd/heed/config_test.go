package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// section is that of the Adaptive Strategies design, with each key other than its default.
const section = `
[plugins.groove.strategy]
enabled = false
[plugins.groove.strategy.sampling]
initial_alpha = 2.0
initial_beta = 3.0
exploration_bonus = 0.2
min_samples_for_confidence = 7
[plugins.groove.strategy.hierarchy]
specialization_threshold = 12
specialization_confidence = 0.5
[plugins.groove.strategy.outcome]
attribution_weight = 0.6
direct_weight = 0.4
min_outcome_confidence = 0.2
[plugins.groove.strategy.cache]
ttl_seconds = 60
[plugins.groove.strategy.defaults]
default_strategy = "Subagent"
default_trigger = "Explicit"
[plugins.groove.strategy.defaults.initial_weights]
MainContext = 0.1
Subagent = 0.2
BackgroundSubagent = 0.3
Deferred = 0.4
`

func write(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "agent.toml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestConfig(t *testing.T) {
	cfg, err := readStrategy(nil, write(t, section))
	require.NoError(t, err)
	assert.Equal(t, strategy.Config{
		Disabled: true, Prior: evidence.Beta{Alpha: 2, Beta: 3}, Exploration: strategy.Exploration{Bonus: 0.2, MinSamples: 7},
		Pooling: strategy.Copy{Sessions: 12, MinConfidence: 0.5}, MinConfidence: 0.2, Default: strategy.Subagent,
		Cache: strategy.Cache{TTL: time.Minute},
		Arms: []strategy.Arm{
			{ID: strategy.BackgroundSubagent, Weight: 0.3}, {ID: strategy.Deferred, Weight: 0.4},
			{ID: strategy.MainContext, Weight: 0.1}, {ID: strategy.Subagent, Weight: 0.2},
		},
	}, cfg)
}

func TestConfigOfACommand(t *testing.T) {
	db := sqliteFile(t)
	of := func(file string) []string {
		return at(db, "strategy", "--learner", "strategy", "--config", file, "item", "explain-first")
	}
	without := call{args: at(db, "strategy", "--learner", "strategy", "item", "explain-first")}.run(t)
	assert.Contains(t, without.out, "specialised: in 10 sessions")
	with := call{args: of(write(t, section))}.run(t)
	assert.Zero(t, with.code, with.err)
	assert.Empty(t, with.err)
	assert.Contains(t, with.out, "specialised: in 2 sessions")

	typo := call{args: of(write(t, section+"\n[plugins.groove.strategy.hierarchie]\nspecialization_treshold = 3\n[plugins.groove.other]\nx = 1\n"))}.run(t)
	assert.Zero(t, typo.code)
	assert.Contains(t, typo.err, "unknown key hierarchie in [plugins.groove.strategy]: did you mean hierarchy?")
	assert.Equal(t, 1, strings.Count(typo.err, "unknown"), typo.err)
	assert.NotContains(t, typo.err, "other")
	assert.Contains(t, call{args: of(write(t, "[other]\nx = 1"))}.run(t).err, "has no section [plugins.groove.strategy]")

	for text, says := range map[string]string{
		"[plugins.groove.strategy.sampling]\ninitial_alpha = -1":               "agent.toml: plugins.groove.strategy.sampling.initial_alpha and initial_beta is {-1 1}",
		"[plugins.groove.strategy.sampling]\ninitial_alpha = 'x'":              "agent.toml",
		"[plugins.groove.strategy\n":                                           "line ",
		"[plugins.groove.strategy.defaults]\ndefault_trigger = 'Whenever'":     "default_trigger",
		"[plugins.groove.strategy.outcome]\nattribution_weight = -1":           "agent.toml: plugins.groove.strategy.outcome.attribution_weight is -1",
		"[plugins.groove.strategy.hierarchy]\nspecialization_confidence = 2.0": "hierarchy.specialization_confidence is 2",
		"[plugins.groove.strategy.cache]\nttl_seconds = -1":                    "cache.ttl_seconds",
	} {
		assertFails(t, call{args: of(write(t, text))}.run(t), failed, says)
	}
}

// apart are heuristics whose host keeps sources apart: one that somebody praises again and again, and one that nobody objects to.
// Its recorder has seen one outcome.
func apart(t *testing.T, file string) {
	db, w := host(t, file)
	kept, err := sqlstore.NewPatterns(db, sqlstore.PatternsConfig{})
	require.NoError(t, err)
	recorder, err := patterns.New(patterns.Config{Store: kept, Evidence: w.evidence, Name: "apart", Now: w.clock})
	require.NoError(t, err)
	_, err = recorder.Record(ctx, patterns.Outcome{ID: "apart", Task: "apart", Strategy: "tests-first", Duration: time.Minute, Success: true, At: w.now})
	require.NoError(t, err)
	heuristics := sqlstore.NewHeuristics(db)
	module, err := learning.New(learning.Config{Heuristics: heuristics, Evidence: w.evidence, Name: "apart", BySource: true, Now: w.clock})
	require.NoError(t, err)
	for _, of := range []struct{ id, channel string }{{"praised", learning.SourceExplicit}, {"quiet", learning.SourceTimeout}} {
		_, err := heuristics.Put(ctx, learning.Heuristic{ID: of.id, Domain: "apart", Pack: "household", Initial: 0.5, CreatedAt: w.now})
		require.NoError(t, err)
		for n := range 8 {
			signal := learning.NewSignal(learning.Positive, of.id, fmt.Sprint("event-", n), of.channel)
			_, err := module.Apply(ctx, signal, learning.Origin{ID: fmt.Sprint(of.id, n), Person: []string{"ann", "bob"}[n/7], At: w.now})
			require.NoError(t, err)
		}
	}
}

// TestEveryKeyCounts has each key of the sections change what is shown.
func TestEveryKeyCounts(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	apart(t, db)
	learned, patterned := "[learning]\n", "[patterns]\n"
	tests := []struct{ section, key, command, without, with string }{
		{learned, `name = "apart"`, "confidence greet-by-name", "chat         0.794", "chat         0.300"},
		{learned, "initial_confidence = 0.6", "confidence greet-by-name", "0.794", "0.882"},
		{learned, "prior_strength = 10", "confidence greet-by-name", "0.794", "0.527"},
		{learned, "confidence_floor = 0.6", "confidence lights-off-at-ten", "0.265  0.050  0.562", "0.600  0.050  0.562      6      0      0  by its floor"},
		{learned, "confidence_ceiling = 0.7", "confidence greet-by-name", "0.794  0.512  0.974", "0.700  0.512  0.974"},
		{learned, "confidence_ceiling = 0.4", "confidence greet-by-name", "0.794  0.512  0.974", "0.400  0.512  0.974      6      0      0  by its ceiling"},
		{learned, "guarded = true", "confidence praised --module apart", "apart        0.900", "apart        0.750"},
		{learned, "caps.source_mass = 2", "confidence praised --module apart", "apart        0.900", "apart        0.800"},
		{learned, "caps.source_share = 0.5", "confidence praised --module apart", "apart        0.900", "apart        0.714"},
		{learned, `caps.silence = ["implicit_timeout"]`, "confidence quiet --module apart", "apart        0.900", "apart        0.500"},
		{learned, `caps = {silence = ["implicit_timeout"], silence_mass = 3}`, "confidence quiet --module apart", "apart        0.900", "apart        0.800"},
		{learned, `system.lock = "locked"`, "confidence greet-by-name", "", "It is locked"},
		{learned, "system.floor = 0.6", "confidence lights-off-at-ten", "0.265  0.050  0.562", "0.600  0.050  0.562"},
		{learned, "system.ceiling = 0.7", "confidence greet-by-name", "0.794  0.512  0.974", "0.700  0.512  0.974"},
		{learned, "system.feedback_weight = 2", "confidence greet-by-name", "", "counts 2.000 times"},
		{learned, "packs.household.ceiling = 0.8", "confidence praised --module apart", "apart        0.900", "apart        0.800"},
		{learned, `packs.household.lock = "locked"`, "confidence praised", "", "It is locked"},

		{patterned, `name = "apart"`, "patterns", "split-by-feature    proven", "split-by-feature    candidate"},
		{patterned, "literal = true", "patterns split-by-feature", "proven needs helpful observations", "proven needs a faded helpful mass"},
		{patterned, "maturity.half_life_days = 0.1", "patterns", "split-by-feature    proven", "split-by-feature    established"},
		{patterned, "maturity.recency_days = 0.1", "patterns", "split-by-feature    proven", "split-by-feature    established"},
		{patterned, "maturity.min_feedback = 9", "patterns", "split-by-feature    proven", "split-by-feature    candidate"},
		{patterned, "maturity.min_helpful = 9", "patterns", "split-by-feature    proven", "split-by-feature    established"},
		{patterned, "maturity.max_harmful = 0.05", "patterns split-by-feature", "less than 15%", "less than 5%"},
		{patterned, "maturity.deprecation = 0.9", "patterns split-by-feature", "more than 30%", "more than 90%"},
		{patterned, "maturity.multipliers.candidate = 0.0", "patterns tests-first", "0.500        1", "0.000        1"},
		{patterned, "maturity.multipliers.established = 1.2\nmaturity.min_helpful = 9", "patterns split-by-feature", "1.500        8", "1.200        8"},
		{patterned, "maturity.multipliers.proven = 3", "patterns split-by-feature", "1.500        8", "3.000        8"},
		{patterned, "inversion.min_observations = 5", "patterns split-by-file", "inverted needs observations: at least 3", "inverted needs observations: at least 5"},
		{patterned, "inversion.failure_ratio = 0.9", "patterns split-by-file", "a failure rate: at least 60%", "a failure rate: at least 90%"},
		{patterned, "inversion.rehabilitation = 7", "patterns split-by-file", "since the inversion: at least 3", "since the inversion: at least 7"},
	}
	var tested []string
	for _, test := range tests {
		tested = append(tested, test.section+test.key)
		t.Run(test.key, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(test.command)
			without := call{args: at(db, args...)}.run(t)
			assert.Contains(t, without.out, test.without)
			assert.NotContains(t, without.out, test.with)
			with := call{args: at(db, append(args, "--config", write(t, test.section+test.key))...)}.run(t)
			require.Zero(t, with.code, with.err)
			assert.Empty(t, with.err)
			assert.Contains(t, with.out, test.with)
		})
	}
	has := func(section, key string) {
		assert.True(t, slices.ContainsFunc(tested, func(test string) bool {
			return strings.HasPrefix(test, section) && strings.Contains(test, key)
		}), "no test has %s%s", section, key)
	}
	for _, key := range keysOf(reflect.TypeOf(learningSection{})) {
		has(learned, key[strings.LastIndex(key, ".")+1:])
	}
	for _, key := range keysOf(reflect.TypeOf(patternsSection{})) {
		if key != "inversion.prefix" { // see below
			has(patterned, key)
		}
	}
}

func TestThePrefixIsTheHosts(t *testing.T) {
	db := sqliteFile(t)
	config := write(t, "[patterns.inversion]\nprefix = \"DON'T: \"")
	for _, command := range []string{"deprecate", "restore"} { // which inverts it anew
		r := call{args: []string{"--db", db, "patterns", "--config", config, command, "split-by-file", "--yes", "--reason", "x"}}.run(t)
		require.Zero(t, r.code, r.err)
	}
	assert.Contains(t, call{args: at(db, "patterns")}.run(t).out, "DON'T: split-by-file. Failed 4/4 times")
}

// TestTheGateIsTheApplications has a proposal that ann and bob have given the evidence for, and ann has approved.
func TestTheGateIsTheApplications(t *testing.T) {
	reviewed := func(t *testing.T, gate feedback.Gate) (approve []string) {
		file := sqliteFile(t)
		_, w := host(t, file)
		w.now = time.Now()
		service, err := feedback.New(ctx, feedback.Config{Store: w.store, Gate: gate, Now: w.clock, NewID: func() string { return w.id().String() }})
		require.NoError(t, err)
		var ids []string
		for _, person := range []string{"ann", "bob"} {
			ids = append(ids, "feedback of "+person)
			_, err := service.Record(ctx, feedback.Feedback{
				ID: ids[len(ids)-1], Gate: "review", Agent: "coder", Reviewer: person, At: w.now, Decision: feedback.Rejected,
				Summary: "the tests were not run before the commit", OutputSHA: "a",
			})
			require.NoError(t, err)
		}
		p, err := service.Rules().Propose(ctx, feedback.Submission{
			Draft: feedback.Draft{Text: "Run the tests.", Agents: []string{"coder"}}, Evidence: ids, Actor: "wendy", Reason: "it came up twice",
		})
		require.NoError(t, err)
		approver := "ann"
		if gate.Outsiders == 2 {
			approver = "maria"
		}
		_, err = service.Rules().Review(ctx, feedback.Review{Proposal: p.ID, Verdict: feedback.Approve, Actor: approver, Reason: "yes", Hash: p.Hash()})
		require.NoError(t, err)
		return []string{"--db", file, "rules", "approve", p.ID, "--hash", p.Hash(), "--yes", "--reason", "I saw it too"}
	}
	for _, test := range []struct {
		name, actor string
		gate        feedback.Gate
		says        string
	}{
		{"an author is one of two", "olga", feedback.Gate{}, "Approved. It is rule"},
		{"a greater quorum", "olga", feedback.Gate{Quorum: 3}, "1 more approval is needed"},
		{"two authors are not enough", "bob", feedback.Gate{}, "It takes somebody who is no reviewer of the evidence"},
		{"no author is enough", "bob", feedback.Gate{Outsiders: 2}, "nobody approves what their own feedback led to"},
	} {
		t.Run(test.name, func(t *testing.T) {
			approve := append(reviewed(t, test.gate), "--actor", test.actor)
			r := call{args: approve}.run(t)
			assert.Contains(t, r.out+r.err, test.says)
			for _, e := range read[[]store.AuditEntry](t, "--db", approve[1], "audit", "--limit", "100") {
				assert.False(t, e.Action == "settings" && e.Actor == "" && e.Details["gate.quorum"] == "3 -> 2", "the command changes no settings")
			}
		})
	}
}

// TestTheHelpHasWhatCanBeConfigured reads what the help of each group shows, which has all keys there are.
func TestTheHelpHasWhatCanBeConfigured(t *testing.T) {
	db := sqliteFile(t)
	for group, of := range map[string]struct {
		command []string
		section any
	}{
		"strategy":   {[]string{"--learner", "strategy", "distributions"}, strategySection{}},
		"confidence": {nil, learningSection{}},
		"patterns":   {nil, patternsSection{}},
	} {
		_, text, found := strings.Cut(call{args: []string{group, "--help"}}.run(t).out, "\n    [")
		require.True(t, found, group)
		text, _, _ = strings.Cut("["+text, "\n\n")
		r := call{args: append(at(db, group, "--config", write(t, text)), of.command...)}.run(t)
		assert.Zero(t, r.code, r.err)
		assert.Empty(t, r.err)
		defaults := regexp.MustCompile(`(?m)^.*# an example.*$`).ReplaceAllString(text, "")
		same := call{args: append(at(db, group, "--config", write(t, defaults)), of.command...)}.run(t)
		assert.Equal(t, call{args: append(at(db, group), of.command...)}.run(t), same, "what is no example is the default")
		for _, key := range keysOf(reflect.TypeOf(of.section)) {
			assert.Contains(t, text, key[strings.LastIndex(key, ".")+1:], group)
		}
	}
}

func TestFaultsOfSections(t *testing.T) {
	db := sqliteFile(t)
	for _, test := range []struct{ command, text, says string }{
		{"confidence", "[learning]\n\nprior_strength = 0", "agent.toml, line 3: learning.prior_strength must not be 0: leave it out"},
		{"confidence", "[learning]\nprior_strength = -1", "learning.prior_strength is -1"},
		{"confidence", "[learning]\nprior_strength = nan", "learning.prior_strength is NaN"},
		{"confidence", "[learning]\ninitial_confidence = true", "learning.initial_confidence must be a number"},
		{"confidence", "[learning]\nconfidence_floor = 0.5\nconfidence_ceiling = 0.4", "learning.confidence_floor to confidence_ceiling"},
		{"confidence", "[learning]\ninitial_confidence = 2", "agent.toml: learning.initial_confidence is 2: must be above 0 and below 1"},
		{"confidence", "[learning]\nconfidence_floor = 2.0", "learning.confidence_floor to confidence_ceiling is {2 0.95}"},
		{"confidence", "[learning.caps]\nsource_mass = -1.0", "learning.caps.source_mass is -1"},
		{"confidence", "[learning.packs.a]\nfloor = 2.0", "Packs[a].Range is {2 1}"},
		{"patterns", "[patterns.maturity]\nmin_feedback = -3", "patterns.maturity.min_feedback is -3"},
		{"patterns", "[patterns.inversion]\nfailure_ratio = 3.0", "patterns.inversion.failure_ratio is 3"},
		{"confidence", "[learning.system]\nlock = \"perhaps\"", "learning.system.lock is perhaps"},
		{"confidence", "[learning]\nguarded = true\ncaps.source_mass = 2", "leave one of them out"},
		{"confidence", "learning = 3", "agent.toml"},
		{"patterns", "[patterns.maturity]\nmin_helpful = 1.5", "line 2: patterns.maturity.min_helpful must be a whole number"},
		{"patterns", "[patterns.maturity]\nmin_helpful = 0", "must not be 0"},
		{"patterns", "[patterns.maturity]\nhalf_life_days = -1", "must be a number of days above 0"},
		{"patterns", "[patterns.maturity]\nhalf_life_days = 1e9", "at most a hundred years"},
		{"patterns", "[patterns.maturity]\nrecency_days = nan", "must be a number of days"},
		{"patterns", "[patterns.maturity]\nrecency_days = 1e-20", "must be a number of days"},
		{"patterns", "[patterns.maturity]\nmax_harmful = 0.5", "patterns.maturity.max_harmful is 0.5"},
		{"patterns", "[patterns\n", "line "},
	} {
		assertFails(t, call{args: append(at(db, strings.Fields(test.command)...), "--config", write(t, test.text))}.run(t), failed, test.says)
	}
	for _, test := range []struct{ command, text, says string }{
		{"confidence", "[learning]\nprior_srtength = 3", "unknown key prior_srtength in [learning]: did you mean prior_strength?"},
		{"patterns", "[patterns.maturity]\nmin_helpfuls = 3", "unknown key maturity.min_helpfuls in [patterns]: did you mean maturity.min_helpful?"},
		{"confidence", "[learning.cap]\nx = 1", "unknown key cap in [learning]: did you mean caps?"},
		{"confidence", "[learning.caps]\nsource_mas = 1", "unknown key caps.source_mas in [learning]: did you mean caps.source_mass?"},
		{"confidence", "[learning.packs.a]\nflor = 1", "unknown key packs.a.flor in [learning]"},
		{"patterns", "[learning]\nprior_strength = 0", "has no section [patterns]: the defaults hold"},
	} {
		r := call{args: append(at(db, strings.Fields(test.command)...), "--config", write(t, test.text))}.run(t)
		assert.Zero(t, r.code, r.err)
		assert.Equal(t, 1, strings.Count(r.err, "\n"), r.err)
		assert.Contains(t, r.err, test.says)
		assert.NotEmpty(t, r.out)
	}
}
