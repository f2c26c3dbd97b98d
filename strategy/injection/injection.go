package injection

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/strategy"
)

// The arms of the catalogue. How they differ: the main context costs the least and is read at once,
// a subagent has a separate context, and a deferred learning may never be needed.
const (
	// put the learning into the main context
	MainContext strategy.ArmID = "main_context"
	Subagent    strategy.ArmID = "subagent" // delegate it to a subagent
	// let a subagent work in the background, and surface it later
	BackgroundSubagent strategy.ArmID = "background_subagent"
	Deferred           strategy.ArmID = "deferred" // not now: wait for a trigger
)

// MessageCount returns the trigger that goes off after n messages, from 1. [Strategy].Messages has
// the number.
func MessageCount(n int) string { return fmt.Sprintf("message_count(%d)", n) }

// The values that a parameter may have, if the catalogue lists them.
var (
	positions = []string{"prefix", "suffix", "contextual"}
	formats   = []string{"plain", "tagged", "system_instruction"}
	callbacks = []string{"poll", "wait", "event"}
	triggers  = []string{"explicit", "topic_match", "error_match"}
)

// Arms returns the arms of the catalogue. Their weights are 0.3, 0.2, 0.1 and 0.4, which is
// cautious: an unknown learning is best left for later. Every parameter with more than one value is
// learned.
//
// Each of others replaces the values of the parameters with its name, for example
// {"trigger", {"explicit", MessageCount(20)}}. Durations are in whole milliseconds. [Of] refuses
// names and values that are not of the catalogue.
func Arms(others ...strategy.Parameter) []strategy.Arm {
	agents := strategy.Parameter{
		Name: "agent_type", Values: []string{"general", "explorer", "planner"},
	}
	arms := []strategy.Arm{
		{ID: MainContext, Weight: 0.3, Parameters: []strategy.Parameter{
			{Name: "position", Values: positions},
			{Name: "format", Values: formats},
		}},
		{ID: Subagent, Weight: 0.2, Parameters: []strategy.Parameter{
			agents,
			{Name: "blocking", Values: []string{"true", "false"}},
			// the host's own prompt. Other values are short texts, or names of longer ones
			{Name: "prompt_template", Values: []string{""}},
		}},
		{ID: BackgroundSubagent, Weight: 0.1, Parameters: []strategy.Parameter{
			agents,
			{Name: "callback", Values: callbacks},
			{Name: "timeout_ms", Values: []string{"30000"}},
		}},
		{ID: Deferred, Weight: 0.4, Parameters: []strategy.Parameter{
			{Name: "trigger", Values: []string{triggers[0]}},
			{Name: "max_wait_ms", Values: []string{"0"}}, // for ever
		}},
	}
	for _, other := range others {
		known := false
		for _, arm := range arms {
			for i, p := range arm.Parameters {
				if p.Name == other.Name {
					arm.Parameters[i], known = other, true
				}
			}
		}
		for i := range arms {
			if !known { // Of refuses it
				arms[i].Parameters = append(arms[i].Parameters, other)
			}
		}
	}
	return arms
}

// A Strategy is an arm of the catalogue with its parameters, in the form for a host. The fields
// that belong to the arm are set. The others are zero.
type Strategy struct {
	Arm strategy.ArmID

	// Position is where MainContext puts the learning: "prefix", "suffix" or "contextual".
	Position string
	Format   string // of MainContext: "plain", "tagged" or "system_instruction"
	// AgentType is "general", "explorer", "planner" or a type of the host's, of both subagents.
	AgentType      string
	Blocking       bool   // of Subagent: whether the session waits for it
	PromptTemplate string // of Subagent; empty: the host's own prompt
	// Callback is how the result of a BackgroundSubagent comes back: "poll", "wait" or "event".
	Callback string
	Timeout  time.Duration // of BackgroundSubagent, in whole milliseconds
	// Trigger ends the wait of Deferred: "explicit", "topic_match", "error_match" or a
	// [MessageCount].
	Trigger string
	MaxWait time.Duration // of Deferred, in whole milliseconds; 0: for ever
}

// A parameter is one of an arm: its name, where its value is, and the values that it may have (nil:
// any).
type parameter struct {
	name  string
	value any // *string, *bool or *time.Duration
	of    []string
}

// parameters returns the parameters of the strategy's arm, in order, and nil where the catalogue
// has no such arm.
func (s *Strategy) parameters() []parameter {
	switch s.Arm {
	case MainContext:
		return []parameter{{"position", &s.Position, positions}, {"format", &s.Format, formats}}
	case Subagent:
		return []parameter{{"agent_type", &s.AgentType, nil}, {"blocking", &s.Blocking, nil},
			{"prompt_template", &s.PromptTemplate, nil}}
	case BackgroundSubagent:
		return []parameter{{"agent_type", &s.AgentType, nil}, {"callback", &s.Callback, callbacks},
			{"timeout_ms", &s.Timeout, nil}}
	case Deferred:
		return []parameter{{"trigger", &s.Trigger, triggers}, {"max_wait_ms", &s.MaxWait, nil}}
	}
	return nil
}

// Of reads a choice among the arms of the catalogue. An arm, a parameter or a value that the
// catalogue does not have is a [*heed.InputError].
func Of(c strategy.Choice) (Strategy, error) {
	return read(c.Arm, c.Record().Parameters)
}

// read makes a strategy of an arm and its settings. Every parameter of the arm must be valid then,
// so one that is missing is found by its zero value.
func read(arm strategy.ArmID, given []answer.Setting) (Strategy, error) {
	s := Strategy{Arm: arm}
	parameters := s.parameters()
	if parameters == nil {
		return Strategy{}, valid.Input("arm", "must be an arm of the catalogue")
	}
	for _, g := range given {
		i := slices.IndexFunc(parameters, func(p parameter) bool { return p.name == g.Name })
		if i < 0 {
			return Strategy{}, valid.Input(g.Name, "must be a parameter of the arm")
		}
		if err := parameters[i].set(g.Value); err != nil {
			return Strategy{}, valid.Input(g.Name, "is not written as it must be")
		}
	}
	for _, p := range parameters {
		if !p.valid() {
			return Strategy{}, valid.Input(p.name, "must be a value of the catalogue")
		}
	}
	return s, nil
}

// set reads the value of a parameter. Durations are written as whole milliseconds, and must not
// overflow. ParseBool accepts "1" as well, but Parse then refuses the text, because String writes
// "true".
func (p parameter) set(text string) (err error) {
	switch v := p.value.(type) {
	case *string:
		*v = text
	case *bool:
		*v, err = strconv.ParseBool(text)
	case *time.Duration:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		if n < 0 || n > math.MaxInt64/int64(time.Millisecond) {
			return strconv.ErrRange
		}
		*v = time.Duration(n) * time.Millisecond
	}
	return err
}

// valid reports whether the value is one of the catalogue's. Templates may be any text, also an
// empty one, and triggers any [MessageCount]. Agents may be of any type that has a name.
func (p parameter) valid() bool {
	text, ok := p.value.(*string)
	if !ok || p.name == "prompt_template" {
		return true
	}
	return *text != "" && (p.of == nil || slices.Contains(p.of, *text)) || p.name == "trigger" &&
		Strategy{Trigger: *text}.Messages() > 0
}

// Messages returns after how many messages the trigger goes off, and 0 if it is not a
// [MessageCount].
func (s Strategy) Messages() int {
	text := strings.TrimSuffix(strings.TrimPrefix(s.Trigger, "message_count("), ")")
	if n, err := strconv.Atoi(text); err == nil && n > 0 && MessageCount(n) == s.Trigger {
		return n
	}
	return 0
}

// bare is a text that is written without quotes.
var bare = regexp.MustCompile(`^[a-z0-9_]+(\([0-9]+\))?$`)

// String writes the strategy in the form that logs and stores of hosts keep, and [Parse] reads: as
// "main_context(position=prefix, format=tagged)". Texts of any other form are quoted.
func (s Strategy) String() string {
	var texts []string
	for _, p := range s.parameters() {
		value := ""
		switch v := p.value.(type) {
		case *string:
			if value = *v; !bare.MatchString(value) {
				value = strconv.Quote(value)
			}
		case *bool:
			value = strconv.FormatBool(*v)
		case *time.Duration:
			value = strconv.FormatInt(v.Milliseconds(), 10)
		}
		texts = append(texts, p.name+"="+value)
	}
	return string(s.Arm) + "(" + strings.Join(texts, ", ") + ")"
}

// setting is a parameter at the front of a text.
var setting = regexp.MustCompile(`^([a-z_]+)=("(?:[^"\\]|\\.)*"|[a-z0-9_]+(?:\([0-9]+\))?)(?:, |$)`)

// Parse reads the text that [Strategy.String] wrote. Any other text is a [*heed.InputError]. What
// was parsed is written again and compared, so that each strategy has one text and each text one
// strategy.
func Parse(text string) (Strategy, error) {
	malformed := valid.Input("injection",
		"must be an arm with its parameters in parentheses, as Strategy.String writes it")
	arm, rest, ok := strings.Cut(text, "(")
	rest, closed := strings.CutSuffix(rest, ")")
	if !ok || !closed {
		return Strategy{}, malformed
	}
	var given []answer.Setting
	for rest != "" {
		found := setting.FindStringSubmatch(rest)
		if found == nil {
			return Strategy{}, malformed
		}
		value := found[2]
		if value[0] == '"' {
			value, _ = strconv.Unquote(value) // "" if it can't be, which is written otherwise
		}
		given, rest = append(given, answer.Setting{Name: found[1], Value: value}), rest[len(found[0]):]
	}
	s, err := read(strategy.ArmID(arm), given)
	if err == nil && s.String() != text {
		return Strategy{}, malformed
	}
	return s, err
}
