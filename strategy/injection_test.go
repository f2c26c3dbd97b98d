package strategy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/strategy"
)

// validity checks which of some texts are values of the catalogue; whatever differs from one is none.
func validity[T interface {
	~string
	Valid() bool
}](t *testing.T, valid ...T) {
	for _, v := range valid {
		assert.True(t, v.Valid(), "%q", v)
		for _, bad := range []T{v + " ", " " + v, "x" + v, v + "x", T(strings.ToUpper(string(v))), v + "\x00"} {
			if name, custom := strategy.AgentType(bad).Custom(); !custom || name == "" {
				assert.False(t, bad.Valid(), "%q", bad)
			}
		}
	}
	assert.False(t, T("").Valid())
	assert.False(t, T("unknown").Valid())
}

func TestTheCataloguesValuesAreValid(t *testing.T) {
	validity[strategy.Position](t, "prefix", "suffix", "contextual")
	validity[strategy.Format](t, "plain", "tagged", "system_instruction")
	validity[strategy.AgentType](t, "general", "explorer", "planner", strategy.CustomAgent("general"))
	validity[strategy.Callback](t, "poll", "wait", "event")
	validity[strategy.Trigger](t, "explicit", "topic_match", "error_match", strategy.MessageCount(1), strategy.MessageCount(math.MaxInt32))
	validity[strategy.LearningCategory](t, "correction", "code_pattern", "preference", "solution", "error_recovery", "tool_usage", "harness_knowledge")
	validity[strategy.ContextType](t, "interactive", "batch", "code_review", "planning")
}

func TestMessageCountsArePositive(t *testing.T) {
	for _, n := range []int{1, 20, math.MaxInt} {
		got, ok := strategy.MessageCount(n).MessageCount()
		assert.True(t, ok)
		assert.Equal(t, n, got)
	}
	for _, bad := range []strategy.Trigger{
		strategy.MessageCount(0), strategy.MessageCount(-1), "message_count()", "message_count(05)", "message_count(+5)", "message_count( 5)",
		"message_count(5", "message_count5)", "message_count(99999999999999999999)", "message_count(5))", "message_count(1e3)", "5)", "explicit", "",
	} {
		_, ok := bad.MessageCount()
		assert.False(t, ok, bad)
		assert.Equal(t, bad == strategy.Explicit, bad.Valid(), bad)
	}
}

func TestNoCustomAgentPassesForOneOfTheCatalogue(t *testing.T) {
	custom := strategy.CustomAgent("general")
	assert.NotEqual(t, strategy.General, custom)
	name, ok := custom.Custom()
	assert.True(t, ok)
	assert.Equal(t, "general", name)
	_, ok = strategy.General.Custom()
	assert.False(t, ok)
	assert.False(t, strategy.CustomAgent("").Valid())
}

// TestTheCatalogueHasItsFourArms with their parameters, in order.
func TestTheCatalogueHasItsFourArms(t *testing.T) {
	assert.Equal(t, []strategy.Arm{
		{ID: "main_context", Weight: 0.3, Parameters: []strategy.Parameter{
			{Name: "position", Values: []string{"prefix", "suffix", "contextual"}}, {Name: "format", Values: []string{"plain", "tagged", "system_instruction"}},
		}},
		{ID: "subagent", Weight: 0.2, Parameters: []strategy.Parameter{
			{Name: "agent_type", Values: []string{"general", "explorer", "planner"}}, {Name: "blocking", Values: []string{"true", "false"}}, {Name: "prompt_template", Values: []string{""}},
		}},
		{ID: "background_subagent", Weight: 0.1, Parameters: []strategy.Parameter{
			{Name: "agent_type", Values: []string{"general", "explorer", "planner"}}, {Name: "callback", Values: []string{"poll", "wait", "event"}}, {Name: "timeout_ms", Values: []string{"30000"}},
		}},
		{ID: "deferred", Weight: 0.4, Parameters: []strategy.Parameter{
			{Name: "trigger", Values: []string{"explicit"}}, {Name: "max_wait_ms", Values: []string{"0"}},
		}},
	}, strategy.Injection(strategy.InjectionConfig{}))
}

var (
	names     = []string{"general", "reviewer", `"`, `\`, ",", ", ", "(", ")", "=", "a\nb", "custom:", "ü\u2028", `x", blocking=true, prompt_template="`, "\x7f"}
	templates = append([]string{"", "Look at {learning}.\n\n(quietly)"}, names...)
	durations = []time.Duration{0, time.Millisecond, 30 * time.Second, 1000 * time.Hour, math.MaxInt64 / time.Millisecond * time.Millisecond}
)

// everyStrategy calls the function with every combination of values, and with texts that are hard to write.
func everyStrategy(f func(strategy.InjectionStrategy)) {
	for _, p := range []strategy.Position{strategy.Prefix, strategy.Suffix, strategy.Contextual} {
		for _, format := range []strategy.Format{strategy.Plain, strategy.Tagged, strategy.SystemInstruction} {
			f(strategy.InjectionStrategy{Arm: strategy.MainContext, Position: p, Format: format})
		}
	}
	agents := []strategy.AgentType{strategy.General, strategy.Explorer, strategy.Planner}
	for _, name := range names {
		agents = append(agents, strategy.CustomAgent(name))
	}
	for _, agent := range agents {
		for _, template := range templates {
			for _, blocking := range []bool{true, false} {
				f(strategy.InjectionStrategy{Arm: strategy.Subagent, AgentType: agent, Blocking: blocking, PromptTemplate: template})
			}
		}
		for _, callback := range []strategy.Callback{strategy.PollCallback, strategy.WaitCallback, strategy.EventCallback} {
			for _, d := range durations {
				f(strategy.InjectionStrategy{Arm: strategy.BackgroundSubagent, AgentType: agent, Callback: callback, Timeout: d})
			}
		}
	}
	for _, trigger := range []strategy.Trigger{strategy.Explicit, strategy.TopicMatch, strategy.ErrorMatch, strategy.MessageCount(1), strategy.MessageCount(250)} {
		for _, d := range durations {
			f(strategy.InjectionStrategy{Arm: strategy.Deferred, Trigger: trigger, MaxWait: d})
		}
	}
}

func TestInjectionsAreReadAsTheyAreWritten(t *testing.T) {
	texts := make(map[string]bool)
	n := 0
	everyStrategy(func(s strategy.InjectionStrategy) {
		n++
		texts[s.String()] = true
		read, err := strategy.ParseInjection(s.String())
		if assert.NoError(t, err, "%q", s.String()) {
			assert.Equal(t, s, read)
		}
	})
	assert.Len(t, texts, n, "no two are written alike")
	assert.Equal(t, "main_context(position=prefix, format=tagged)", strategy.InjectionStrategy{Arm: strategy.MainContext, Position: strategy.Prefix, Format: strategy.Tagged}.String())
	assert.Equal(t, `subagent(agent_type=custom:"general", blocking=false, prompt_template="a, \"b\"")`,
		strategy.InjectionStrategy{Arm: strategy.Subagent, AgentType: strategy.CustomAgent("general"), PromptTemplate: `a, "b"`}.String())
	assert.Equal(t, "deferred(trigger=message_count(5), max_wait_ms=60000)",
		strategy.InjectionStrategy{Arm: strategy.Deferred, Trigger: strategy.MessageCount(5), MaxWait: time.Minute}.String())
}

func TestAnyTextsAreReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		for _, s := range []strategy.InjectionStrategy{
			{Arm: strategy.Subagent, AgentType: strategy.CustomAgent("a" + text.Draw(t, "name")), PromptTemplate: text.Draw(t, "template")},
			{Arm: strategy.BackgroundSubagent, AgentType: strategy.CustomAgent("a" + text.Draw(t, "name")), Callback: strategy.WaitCallback},
		} {
			read, err := strategy.ParseInjection(s.String())
			if err != nil || read != s {
				t.Fatalf("%q was read as %+v, %v", s, read, err)
			}
		}
	})
}

func TestWhatIsNoInjectionIsRefused(t *testing.T) {
	for text, field := range map[string]string{
		"":                       "injection",
		"main_context":           "injection",
		"main_context(":          "injection",
		"main_context)":          "injection",
		"main_context(position)": "injection",
		"main_context(position=prefix format=plain)":                "position",
		"main_context(position=prefix,format=plain)":                "position",
		"main_context(position=prefix, format=plain, )":             "injection",
		"main_context(position=prefix, format=plain,)":              "format",
		"main_context(format=plain, position=prefix)":               "injection",
		"main_context(position=prefix, format=plain, format=plain)": "injection",
		"main_context(position=prefix, format=plain, timeout_ms=1)": "injection",
		"main_context(position=prefix)":                             "format",
		"main_context()":                                            "position",
		"main_context(position=middle, format=plain)":               "position",
		"main_context(position=\"prefix\", format=plain)":           "injection",
		"main_context(place=prefix, format=plain)":                  "place",
		" main_context(position=prefix, format=plain)":              "arm",
		"main_context(position=prefix, format=plain) ":              "injection",
		"Main_Context(position=prefix, format=plain)":               "arm",
		"none()": "arm",
		`subagent(agent_type=general, blocking=1, prompt_template="")`:               "injection",
		`subagent(agent_type=general, blocking=perhaps, prompt_template="")`:         "blocking",
		`subagent(agent_type=general, blocking=true, prompt_template=)`:              "injection",
		`subagent(agent_type=general, blocking=true, prompt_template=")`:             "injection",
		`subagent(agent_type=general, blocking=true, prompt_template="a" )`:          "injection",
		`subagent(agent_type=custom:"", blocking=true, prompt_template="")`:          "agent_type",
		`subagent(agent_type=custom:x, blocking=true, prompt_template="")`:           "injection",
		`subagent(agent_type=custom:"x, blocking=true, prompt_template=")`:           "injection",
		"background_subagent(agent_type=general, callback=poll, timeout_ms=-1)":      "timeout_ms",
		"background_subagent(agent_type=general, callback=poll, timeout_ms=1.5)":     "timeout_ms",
		"background_subagent(agent_type=general, callback=poll, timeout_ms=007)":     "injection",
		"background_subagent(agent_type=general, callback=shout, timeout_ms=7)":      "callback",
		"deferred(trigger=explicit, max_wait_ms=9223372036854775807)":                "max_wait_ms",
		"deferred(trigger=explicit, max_wait_ms=99999999999999999999)":               "max_wait_ms",
		"deferred(trigger=message_count(0), max_wait_ms=0)":                          "trigger",
		"deferred(trigger=message_count(1, max_wait_ms=0)":                           "trigger",
		"deferred(trigger=whenever, max_wait_ms=0)":                                  "trigger",
		"deferred(trigger=explicit, max_wait_ms=0), deferred(trigger=explicit, x=1)": "max_wait_ms",
	} {
		s, err := strategy.ParseInjection(text)
		if assert.Error(t, err, text) {
			assertInputError(t, err, field)
		}
		assert.Zero(t, s, text)
	}
}

// FuzzParseInjection: whatever is read is printed back to the letter, and nothing makes it panic.
func FuzzParseInjection(f *testing.F) {
	n := 0
	everyStrategy(func(s strategy.InjectionStrategy) {
		if n++; n%23 == 0 {
			f.Add(s.String())
		}
	})
	for _, text := range []string{
		"", "(", ")", "()", "main_context()", "main_context(position=prefix, format=plain)", "deferred(trigger=message_count(5), max_wait_ms=0)",
		`subagent(agent_type=custom:"\x00", blocking=true, prompt_template="\u00fc")`, "subagent(agent_type=custom:`x`, blocking=true, prompt_template='')",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := strategy.ParseInjection(text)
		if err != nil {
			assert.Zero(t, s)
			return
		}
		assert.Equal(t, text, s.String())
	})
}

// TestInjectionOfReadsChoices of the catalogue, with values that the host adds, all of which are chosen.
func TestInjectionOfReadsChoices(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: strategy.Injection(strategy.InjectionConfig{
		Weights:         strategy.InjectionWeights{MainContext: 1, Subagent: 1, BackgroundSubagent: 1, Deferred: 1},
		Positions:       []strategy.Position{strategy.Suffix},
		AgentTypes:      []strategy.AgentType{strategy.Planner, strategy.CustomAgent("general"), strategy.CustomAgent(", (")},
		Blocking:        []bool{true},
		PromptTemplates: []string{"", "Mind:\n{learning} (really), a=\"b\""},
		Timeouts:        []time.Duration{time.Second, time.Minute},
		Triggers:        []strategy.Trigger{strategy.Explicit, strategy.MessageCount(20)},
		MaxWaits:        []time.Duration{0, time.Hour},
	})})
	seen := make(map[strategy.InjectionStrategy]int)
	for i := range 1000 {
		c := choose(t, l, strategy.Query{Session: fmt.Sprint(i), Item: "i"})
		s, err := strategy.InjectionOf(throughJSON(t, c))
		require.NoError(t, err)
		assert.Equal(t, c.Arm, s.Arm)
		assert.Equal(t, c.Parameter(strategy.ParamPosition), string(s.Position))
		assert.Equal(t, c.Parameter(strategy.ParamPromptTemplate), s.PromptTemplate)
		read, err := strategy.ParseInjection(s.String())
		require.NoError(t, err)
		assert.Equal(t, s, read)
		seen[s]++
	}
	assert.Len(t, seen, 3+3*2+3*3*2+2*2)
	for _, s := range []strategy.InjectionStrategy{
		{Arm: strategy.MainContext, Position: strategy.Suffix, Format: strategy.Tagged},
		{Arm: strategy.Subagent, AgentType: strategy.CustomAgent("general"), Blocking: true, PromptTemplate: "Mind:\n{learning} (really), a=\"b\""},
		{Arm: strategy.BackgroundSubagent, AgentType: strategy.CustomAgent(", ("), Callback: strategy.EventCallback, Timeout: time.Minute},
		{Arm: strategy.Deferred, Trigger: strategy.MessageCount(20), MaxWait: time.Hour},
	} {
		assert.Positive(t, seen[s], s)
	}
}

func TestInjectionOfRefusesWhatIsNotOfTheCatalogue(t *testing.T) {
	for field, arms := range map[string][]strategy.Arm{
		"arm":         plain("a model"),
		"position":    {{ID: strategy.MainContext}},
		"temperature": {{ID: strategy.MainContext, Parameters: []strategy.Parameter{{Name: "temperature", Values: []string{"0.7"}}}}},
		"format":      strategy.Injection(strategy.InjectionConfig{Formats: []strategy.Format{"loud"}}),
		"timeout_ms":  {{ID: strategy.BackgroundSubagent, Parameters: []strategy.Parameter{{Name: "timeout_ms", Values: []string{"soon"}}}}},
	} {
		l := newLearner(t, strategy.Config{Arms: arms})
		_, err := strategy.InjectionOf(choose(t, l, strategy.Query{Arms: []strategy.ArmID{arms[0].ID}}))
		assertInputError(t, err, field)
	}
	_, err := strategy.InjectionOf(strategy.Choice{})
	assertInputError(t, err, "arm")
}

// TestABetterPositionIsFound: where all else is alike, the place in the context that works is chosen ever more often.
func TestABetterPositionIsFound(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: strategy.Injection(strategy.InjectionConfig{})})
	q := strategy.Query{Category: "preference", Context: "planning", Arms: []strategy.ArmID{strategy.MainContext}}
	const rounds, window = 600, 100
	var share [rounds / window]float64
	for i := range rounds {
		q.Session, q.Item = fmt.Sprint(i), fmt.Sprint(i%10)
		c := choose(t, l, q)
		value := -0.4
		if c.Parameter(strategy.ParamPosition) == string(strategy.Contextual) {
			value = 0.8
			share[i/window] += 1. / window
		}
		credit(t, l, c, value)
	}
	assert.Less(t, share[0], 0.95)
	assert.Greater(t, share[len(share)-1], 0.95)
	formats := make(map[string]int)
	for i := range 300 {
		formats[choose(t, l, strategy.Query{Item: fmt.Sprint(i), Category: q.Category, Context: q.Context, Arms: q.Arms}).Parameter(strategy.ParamFormat)]++
	}
	assert.Len(t, formats, 3, "the formats, which did as well as each other, are all still in use")
}

// TestTheCataloguesValuesStartAlike: at first each value of a parameter is as likely as the others, whatever the other
// parameters' values, and what has one value has it.
func TestTheCataloguesValuesStartAlike(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: strategy.Injection(strategy.InjectionConfig{})})
	const n = 6000
	for arm, combinations := range map[strategy.ArmID]int{
		strategy.MainContext: 9, strategy.Subagent: 6, strategy.BackgroundSubagent: 9, strategy.Deferred: 1,
	} {
		seen := make(map[strategy.InjectionStrategy]int)
		for range n {
			s, err := strategy.InjectionOf(choose(t, l, strategy.Query{Arms: []strategy.ArmID{arm}}))
			require.NoError(t, err)
			seen[s]++
		}
		assert.Len(t, seen, combinations)
		for s, times := range seen {
			assertShare(t, 1/float64(combinations), float64(times)/n, n, 4.5, s)
			if arm == strategy.BackgroundSubagent {
				assert.Equal(t, 30*time.Second, s.Timeout)
			}
			if arm == strategy.Deferred {
				assert.Equal(t, strategy.InjectionStrategy{Arm: arm, Trigger: strategy.Explicit}, s)
			}
		}
	}
}

// TestABetterValueOfEachParameterIsFound: each is learned by itself, from what came of the choices that had it.
func TestABetterValueOfEachParameterIsFound(t *testing.T) {
	for _, test := range []struct {
		arm        strategy.ArmID
		name, best string
	}{
		{strategy.MainContext, strategy.ParamPosition, "suffix"},
		{strategy.MainContext, strategy.ParamFormat, "tagged"},
		{strategy.Subagent, strategy.ParamAgentType, "planner"},
		{strategy.Subagent, strategy.ParamBlocking, "false"},
		{strategy.Subagent, strategy.ParamPromptTemplate, "brief"},
		{strategy.BackgroundSubagent, strategy.ParamAgentType, "custom:reviewer"},
		{strategy.BackgroundSubagent, strategy.ParamCallback, "event"},
		{strategy.BackgroundSubagent, strategy.ParamTimeout, "60000"},
		{strategy.Deferred, strategy.ParamTrigger, "message_count(20)"},
		{strategy.Deferred, strategy.ParamMaxWait, "3600000"},
	} {
		t.Run(string(test.arm)+" "+test.name, func(t *testing.T) {
			l := newLearner(t, strategy.Config{Arms: strategy.Injection(strategy.InjectionConfig{
				AgentTypes:      []strategy.AgentType{strategy.General, strategy.Explorer, strategy.Planner, strategy.CustomAgent("reviewer")},
				PromptTemplates: []string{"", "brief"},
				Timeouts:        []time.Duration{10 * time.Second, time.Minute},
				Triggers:        []strategy.Trigger{strategy.Explicit, strategy.TopicMatch, strategy.MessageCount(20)},
				MaxWaits:        []time.Duration{0, time.Hour},
			})})
			const rounds, last = 400, 100
			share := 0.
			for i := range rounds {
				c := choose(t, l, strategy.Query{Item: fmt.Sprint("i", i%10), Arms: []strategy.ArmID{test.arm}})
				value := -0.5
				if c.Parameter(test.name) == test.best {
					value = 0.7
					if i >= rounds-last {
						share += 1. / last
					}
				}
				credit(t, l, c, value)
			}
			assert.Greater(t, share, 0.9)
		})
	}
}
