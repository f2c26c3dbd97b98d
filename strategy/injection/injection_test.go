//go:build !race

// One thing at a time is done here, and the race detector makes it five times slower.

package injection_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// A trigger of the catalogue counts messages from 1, in one spelling.
func TestMessageCounts(t *testing.T) {
	for _, n := range []int{1, 20, math.MaxInt} {
		assert.Equal(t, n, injection.Strategy{Trigger: injection.MessageCount(n)}.Messages())
	}
	for _, bad := range []string{
		injection.MessageCount(0), injection.MessageCount(-1), "message_count()", "message_count(05)",
		"message_count(+5)", "message_count( 5)",
		"message_count(5", "message_count5)", "message_count(99999999999999999999)",
		"message_count(5))", "message_count(1e3)", "5)", "5", "explicit", "",
	} {
		assert.Zero(t, injection.Strategy{Trigger: bad}.Messages(), bad)
	}
}

// TestTheCatalogueHasItsFourArms with their parameters, in order.
func TestTheCatalogueHasItsFourArms(t *testing.T) {
	assert.Equal(t, []strategy.Arm{
		{ID: "main_context", Weight: 0.3, Parameters: []strategy.Parameter{
			{Name: "position", Values: []string{"prefix", "suffix", "contextual"}},
			{Name: "format", Values: []string{"plain", "tagged", "system_instruction"}},
		}},
		{ID: "subagent", Weight: 0.2, Parameters: []strategy.Parameter{
			{Name: "agent_type", Values: []string{"general", "explorer", "planner"}},
			{Name: "blocking", Values: []string{"true", "false"}},
			{Name: "prompt_template", Values: []string{""}},
		}},
		{ID: "background_subagent", Weight: 0.1, Parameters: []strategy.Parameter{
			{Name: "agent_type", Values: []string{"general", "explorer", "planner"}},
			{Name: "callback", Values: []string{"poll", "wait", "event"}},
			{Name: "timeout_ms", Values: []string{"30000"}},
		}},
		{ID: "deferred", Weight: 0.4, Parameters: []strategy.Parameter{
			{Name: "trigger", Values: []string{"explicit"}}, {Name: "max_wait_ms", Values: []string{"0"}},
		}},
	}, injection.Arms())
}

var (
	names     = []string{"reviewer", `"`, `\`, ",", ", ", "(", ")", "=", "a\nb", "ü\u2028", `x", blocking=true, prompt_template="`, "\x7f"}
	templates = append([]string{"", "Look at {learning}.\n\n(quietly)"}, names...)
	durations = []time.Duration{0, time.Millisecond, 30 * time.Second, 1000 * time.Hour,
		math.MaxInt64 / time.Millisecond * time.Millisecond}
)

// everyStrategy calls the function with every combination of values, and with texts that are hard
// to write.
func everyStrategy(f func(injection.Strategy)) {
	for _, p := range []string{"prefix", "suffix", "contextual"} {
		for _, format := range []string{"plain", "tagged",
			"system_instruction"} {
			f(injection.Strategy{Arm: injection.MainContext, Position: p, Format: format})
		}
	}
	agents := append([]string{"general", "explorer", "planner"}, names...)
	for _, agent := range agents {
		for _, template := range templates {
			for _, blocking := range []bool{true, false} {
				f(injection.Strategy{Arm: injection.Subagent, AgentType: agent, Blocking: blocking,
					PromptTemplate: template})
			}
		}
		for _, callback := range []string{"poll", "wait", "event"} {
			for _, d := range durations {
				f(injection.Strategy{Arm: injection.BackgroundSubagent, AgentType: agent,
					Callback: callback, Timeout: d})
			}
		}
	}
	for _, trigger := range []string{"explicit", "topic_match", "error_match",
		injection.MessageCount(1), injection.MessageCount(250)} {
		for _, d := range durations {
			f(injection.Strategy{Arm: injection.Deferred, Trigger: trigger, MaxWait: d})
		}
	}
}

func TestInjectionsAreReadAsTheyAreWritten(t *testing.T) {
	texts := make(map[string]bool)
	n := 0
	everyStrategy(func(s injection.Strategy) {
		n++
		texts[s.String()] = true
		read, err := injection.Parse(s.String())
		if assert.NoError(t, err, "%q", s.String()) {
			assert.Equal(t, s, read)
		}
	})
	assert.Len(t, texts, n, "no two are written alike")
	assert.Equal(t, "main_context(position=prefix, format=tagged)",
		injection.Strategy{Arm: injection.MainContext, Position: "prefix",
			Format: "tagged"}.String())
	assert.Equal(t, `subagent(agent_type="a reviewer", blocking=false, prompt_template="a, \"b\"")`,
		injection.Strategy{Arm: injection.Subagent, AgentType: "a reviewer", PromptTemplate: `a, "b"`}.String())
	assert.Equal(t, "deferred(trigger=message_count(5), max_wait_ms=60000)",
		injection.Strategy{Arm: injection.Deferred, Trigger: injection.MessageCount(5),
			MaxWait: time.Minute}.String())
}

func TestAnyTextsAreReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()),
			func(b []byte) string { return string(b) }))
		for _, s := range []injection.Strategy{
			{Arm: injection.Subagent, AgentType: "a" + text.Draw(t, "name"),
				PromptTemplate: text.Draw(t, "template")},
			{Arm: injection.BackgroundSubagent, AgentType: "a" + text.Draw(t, "name"),
				Callback: "wait"},
		} {
			read, err := injection.Parse(s.String())
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
		"main_context(position=prefix format=plain)":                "injection",
		"main_context(position=prefix,format=plain)":                "injection",
		"main_context(position=prefix, format=plain, )":             "injection",
		"main_context(position=prefix, format=plain,)":              "injection",
		"main_context(format=plain, position=prefix)":               "injection",
		"main_context(position=prefix, format=plain, format=plain)": "injection",
		"main_context(position=prefix, format=plain, timeout_ms=1)": "timeout_ms",
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
		`subagent(agent_type=general, blocking=true, prompt_template="\q")`:          "injection",
		`subagent(agent_type="", blocking=true, prompt_template="")`:                 "agent_type",
		`subagent(agent_type="x", blocking=true, prompt_template="")`:                "injection",
		`subagent(agent_type="x, blocking=true, prompt_template=")`:                  "injection",
		"background_subagent(agent_type=general, callback=poll, timeout_ms=-1)":      "injection",
		"background_subagent(agent_type=general, callback=poll, timeout_ms=\"-1\")":  "timeout_ms",
		"background_subagent(agent_type=general, callback=poll, timeout_ms=1.5)":     "injection",
		"background_subagent(agent_type=general, callback=poll, timeout_ms=007)":     "injection",
		"background_subagent(agent_type=general, callback=shout, timeout_ms=7)":      "callback",
		"deferred(trigger=explicit, max_wait_ms=9223372036854775807)":                "max_wait_ms",
		"deferred(trigger=explicit, max_wait_ms=99999999999999999999)":               "max_wait_ms",
		"deferred(trigger=message_count(0), max_wait_ms=0)":                          "trigger",
		"deferred(trigger=message_count(1, max_wait_ms=0)":                           "injection",
		"deferred(trigger=whenever, max_wait_ms=0)":                                  "trigger",
		"deferred(trigger=explicit, max_wait_ms=0), deferred(trigger=explicit, x=1)": "injection",
	} {
		s, err := injection.Parse(text)
		if assert.Error(t, err, text) {
			assertInputError(t, err, field)
		}
		assert.Zero(t, s, text)
	}
}

// Each text that is read prints back to the letter. No text makes it panic.
func FuzzParseInjection(f *testing.F) {
	n := 0
	everyStrategy(func(s injection.Strategy) {
		if n++; n%23 == 0 {
			f.Add(s.String())
		}
	})
	for _, text := range []string{
		"", "(", ")", "()", "main_context()", "main_context(position=prefix, format=plain)",
		"deferred(trigger=message_count(5), max_wait_ms=0)",
		`subagent(agent_type="\x00", blocking=true, prompt_template="\u00fc")`, "subagent(agent_type=`x`, blocking=true, prompt_template='')",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := injection.Parse(text)
		if err != nil {
			assert.Zero(t, s)
			return
		}
		assert.Equal(t, text, s.String())
	})
}

// TestInjectionOfReadsChoices reads choices of the catalogue with values that the host adds. Each
// value is chosen at least once.
func TestInjectionOfReadsChoices(t *testing.T) {
	arms := injection.Arms(one("position", "suffix"),
		one("agent_type", "planner", "a reviewer", ", ("), one("blocking", "true"),
		one("prompt_template", "", "Mind:\n{learning} (really), a=\"b\""),
		one("timeout_ms", "1000", "60000"),
		one("trigger", "explicit", injection.MessageCount(20)),
		one("max_wait_ms", "0", "3600000"))
	for i := range arms {
		arms[i].Weight = 1
	}
	l := newLearner(t, strategy.Config{Arms: arms})
	seen := make(map[injection.Strategy]int)
	for i := range 1000 {
		c := choose(t, l, strategy.Query{Session: fmt.Sprint(i), Item: "i"})
		s, err := injection.Of(throughJSON(t, c))
		require.NoError(t, err)
		assert.Equal(t, c.Arm, s.Arm)
		assert.Equal(t, c.Parameter("position"), s.Position)
		assert.Equal(t, c.Parameter("prompt_template"), s.PromptTemplate)
		read, err := injection.Parse(s.String())
		require.NoError(t, err)
		assert.Equal(t, s, read)
		seen[s]++
	}
	assert.Len(t, seen, 3+3*2+3*3*2+2*2)
	for _, s := range []injection.Strategy{
		{Arm: injection.MainContext, Position: "suffix", Format: "tagged"},
		{Arm: injection.Subagent, AgentType: "a reviewer", Blocking: true,
			PromptTemplate: "Mind:\n{learning} (really), a=\"b\""},
		{Arm: injection.BackgroundSubagent, AgentType: ", (", Callback: "event",
			Timeout: time.Minute},
		{Arm: injection.Deferred, Trigger: injection.MessageCount(20), MaxWait: time.Hour},
	} {
		assert.Positive(t, seen[s], s)
	}
}

func TestInjectionOfRefusesWhatIsNotOfTheCatalogue(t *testing.T) {
	for field, arms := range map[string][]strategy.Arm{
		"arm":      {{ID: "a model"}},
		"position": {{ID: injection.MainContext}},
		"temperature": {{ID: injection.MainContext,
			Parameters: []strategy.Parameter{{Name: "temperature", Values: []string{"0.7"}}}}},
		"format": injection.Arms(one("format", "loud")),
		"tone":   injection.Arms(one("tone", "loud")),
		"timeout_ms": {{ID: injection.BackgroundSubagent,
			Parameters: []strategy.Parameter{{Name: "timeout_ms", Values: []string{"soon"}}}}},
	} {
		l := newLearner(t, strategy.Config{Arms: arms})
		_, err := injection.Of(choose(t, l, strategy.Query{Arms: []strategy.ArmID{arms[0].ID}}))
		assertInputError(t, err, field)
	}
	_, err := injection.Of(strategy.Choice{})
	assertInputError(t, err, "arm")
}

// Where all else is alike, the place in the context that works is chosen ever more often.
func TestABetterPositionIsFound(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: injection.Arms()})
	q := strategy.Query{Category: "preference", Context: "planning",
		Arms: []strategy.ArmID{injection.MainContext}}
	const rounds, window = 600, 50
	var share [rounds / window]float64
	for i := range rounds {
		q.Session, q.Item = fmt.Sprint(i), fmt.Sprint(i%10)
		c := choose(t, l, q)
		value := -0.4
		if c.Parameter("position") == "contextual" {
			value = 0.8
			share[i/window] += 1. / window
		}
		credit(t, l, c, value)
	}
	assert.Less(t, share[0], 0.95)
	assert.Greater(t, share[len(share)-1], 0.95)
	formats := make(map[string]int)
	for i := range 300 {
		formats[choose(t, l, strategy.Query{Item: fmt.Sprint(i), Category: q.Category,
			Context: q.Context, Arms: q.Arms}).Parameter("format")]++
	}
	assert.Len(t, formats, 3, "the formats, which did as well as each other, are all still in use")
}

// At first each value of a parameter is as likely as the others, whatever the other
// parameters' values, and what has one value has it.
func TestTheCataloguesValuesStartAlike(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: injection.Arms()})
	const n = 6000
	for arm, combinations := range map[strategy.ArmID]int{
		injection.MainContext: 9, injection.Subagent: 6, injection.BackgroundSubagent: 9,
		injection.Deferred: 1,
	} {
		seen := make(map[injection.Strategy]int)
		for range n {
			s, err := injection.Of(choose(t, l, strategy.Query{Arms: []strategy.ArmID{arm}}))
			require.NoError(t, err)
			seen[s]++
		}
		assert.Len(t, seen, combinations)
		for s, times := range seen {
			assertShare(t, 1/float64(combinations), float64(times)/n, n, 4.5, s)
			if arm == injection.BackgroundSubagent {
				assert.Equal(t, 30*time.Second, s.Timeout)
			}
			if arm == injection.Deferred {
				assert.Equal(t, injection.Strategy{Arm: arm, Trigger: "explicit"}, s)
			}
		}
	}
}

// The learner finds the better value of each parameter from the outcomes of the choices that had
// it.
func TestABetterValueOfEachParameterIsFound(t *testing.T) {
	for _, test := range []struct {
		arm        strategy.ArmID
		name, best string
	}{
		{injection.MainContext, "position", "suffix"},
		{injection.MainContext, "format", "tagged"},
		{injection.Subagent, "agent_type", "planner"},
		{injection.Subagent, "blocking", "false"},
		{injection.Subagent, "prompt_template", "brief"},
		{injection.BackgroundSubagent, "agent_type", "reviewer"},
		{injection.BackgroundSubagent, "callback", "event"},
		{injection.BackgroundSubagent, "timeout_ms", "60000"},
		{injection.Deferred, "trigger", "message_count(20)"},
		{injection.Deferred, "max_wait_ms", "3600000"},
	} {
		t.Run(string(test.arm)+" "+test.name, func(t *testing.T) {
			l := newLearner(t, strategy.Config{Arms: injection.Arms(
				one("agent_type", "general", "explorer", "planner", "reviewer"),
				one("prompt_template", "", "brief"), one("timeout_ms", "10000", "60000"),
				one("trigger", "explicit", "topic_match", injection.MessageCount(20)),
				one("max_wait_ms", "0", "3600000"))})
			const rounds, last = 400, 100
			share := 0.
			for i := range rounds {
				c := choose(t, l, strategy.Query{Item: fmt.Sprint("i", i%10),
					Arms: []strategy.ArmID{test.arm}})
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
