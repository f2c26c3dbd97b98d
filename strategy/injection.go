package strategy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
)

// The arms of the built-in catalogue: the four ways of bringing a learning into an agent's session.
const (
	MainContext        ArmID = "main_context"        // put it into the main context
	Subagent           ArmID = "subagent"            // delegate it to a subagent
	BackgroundSubagent ArmID = "background_subagent" // let a subagent work in the background, and surface it later
	Deferred           ArmID = "deferred"            // not now: wait for a trigger
)

// The parameters of those arms.
const (
	ParamPosition       = "position"
	ParamFormat         = "format"
	ParamAgentType      = "agent_type"
	ParamBlocking       = "blocking"
	ParamPromptTemplate = "prompt_template"
	ParamCallback       = "callback"
	ParamTimeout        = "timeout_ms"
	ParamTrigger        = "trigger"
	ParamMaxWait        = "max_wait_ms"
)

// Position is where in the main context a learning is put.
type Position string

// The positions.
const (
	Prefix     Position = "prefix"
	Suffix     Position = "suffix"
	Contextual Position = "contextual"
)

// Valid reports whether the position is one of the catalogue's.
func (p Position) Valid() bool { return slices.Contains([]Position{Prefix, Suffix, Contextual}, p) }

// Format is how a learning is written into the main context.
type Format string

// The formats.
const (
	Plain             Format = "plain"
	Tagged            Format = "tagged"
	SystemInstruction Format = "system_instruction"
)

// Valid reports whether the format is one of the catalogue's.
func (f Format) Valid() bool { return slices.Contains([]Format{Plain, Tagged, SystemInstruction}, f) }

// AgentType is what sort of subagent a learning is delegated to: one of the catalogue's, or a [CustomAgent].
type AgentType string

// The catalogue's types of agents.
const (
	General  AgentType = "general"
	Explorer AgentType = "explorer"
	Planner  AgentType = "planner"
)

const customAgent = "custom:"

// CustomAgent returns a type of agent that the catalogue does not have. Its text is "custom:" and the name, so that no
// name passes for a type of the catalogue's.
func CustomAgent(name string) AgentType { return AgentType(customAgent + name) }

// Custom returns the name of a custom type of agent, and whether it is one.
func (a AgentType) Custom() (name string, ok bool) { return strings.CutPrefix(string(a), customAgent) }

// Valid reports whether the type is one of the catalogue's, or a custom one with a name.
func (a AgentType) Valid() bool {
	name, custom := a.Custom()
	return custom && name != "" || slices.Contains([]AgentType{General, Explorer, Planner}, a)
}

// Callback is how the result of a background subagent comes back.
type Callback string

// The callbacks.
const (
	PollCallback  Callback = "poll"
	WaitCallback  Callback = "wait"
	EventCallback Callback = "event"
)

// Valid reports whether the callback is one of the catalogue's.
func (c Callback) Valid() bool {
	return slices.Contains([]Callback{PollCallback, WaitCallback, EventCallback}, c)
}

// Trigger is what a deferred learning waits for: one of the catalogue's, or a [MessageCount].
type Trigger string

// The catalogue's triggers without a number.
const (
	Explicit   Trigger = "explicit"
	TopicMatch Trigger = "topic_match"
	ErrorMatch Trigger = "error_match"
)

const messageCount = "message_count("

// MessageCount returns the trigger that goes off after so many messages.
func MessageCount(n int) Trigger { return Trigger(fmt.Sprintf("%s%d)", messageCount, n)) }

// MessageCount returns after how many messages the trigger goes off, and whether it counts them at all.
func (t Trigger) MessageCount() (n int, ok bool) {
	text, ok := strings.CutPrefix(string(t), messageCount)
	text, closed := strings.CutSuffix(text, ")")
	n, err := strconv.Atoi(text)
	if !ok || !closed || err != nil || n <= 0 || MessageCount(n) != t {
		return 0, false
	}
	return n, true
}

// Valid reports whether the trigger is one of the catalogue's, or a count of messages.
func (t Trigger) Valid() bool {
	_, counts := t.MessageCount()
	return counts || slices.Contains([]Trigger{Explicit, TopicMatch, ErrorMatch}, t)
}

// LearningCategory is what sort of thing was learned: a category for a [Query].
type LearningCategory string

// The categories of learnings.
const (
	Correction       LearningCategory = "correction"
	CodePattern      LearningCategory = "code_pattern"
	Preference       LearningCategory = "preference"
	Solution         LearningCategory = "solution"
	ErrorRecovery    LearningCategory = "error_recovery"
	ToolUsage        LearningCategory = "tool_usage"
	HarnessKnowledge LearningCategory = "harness_knowledge"
)

// Valid reports whether the category is one of the catalogue's.
func (c LearningCategory) Valid() bool {
	return slices.Contains([]LearningCategory{Correction, CodePattern, Preference, Solution, ErrorRecovery, ToolUsage, HarnessKnowledge}, c)
}

// ContextType is what sort of session it is: a context for a [Query].
type ContextType string

// The types of sessions.
const (
	Interactive ContextType = "interactive"
	BatchRun    ContextType = "batch"
	CodeReview  ContextType = "code_review"
	Planning    ContextType = "planning"
)

// Valid reports whether the type is one of the catalogue's.
func (c ContextType) Valid() bool {
	return slices.Contains([]ContextType{Interactive, BatchRun, CodeReview, Planning}, c)
}

// InjectionWeights are the shares of the four arms in first choices, relative to each other. The zero value means 0.3,
// 0.2, 0.1 and 0.4: cautious, as a learning that nothing is known of is best left for later.
type InjectionWeights struct {
	MainContext, Subagent, BackgroundSubagent, Deferred float64
}

// InjectionConfig says which values the parameters of the catalogue may have. An empty list means the default.
type InjectionConfig struct {
	Weights InjectionWeights

	Positions       []Position      // default prefix, suffix, contextual
	Formats         []Format        // default plain, tagged, system_instruction
	AgentTypes      []AgentType     // default general, explorer, planner
	Blocking        []bool          // default true, false
	PromptTemplates []string        // default "", the host's own prompt. Short texts, or names of longer ones: see [Parameter]
	Callbacks       []Callback      // default poll, wait, event
	Timeouts        []time.Duration // in whole milliseconds. Default 30 s
	Triggers        []Trigger       // default explicit
	MaxWaits        []time.Duration // in whole milliseconds; 0 waits for ever. Default 0
}

// Injection returns the arms of the catalogue. Every parameter with more than one value is learned.
func Injection(cfg InjectionConfig) []Arm {
	w := cmp.Or(cfg.Weights, InjectionWeights{MainContext: 0.3, Subagent: 0.2, BackgroundSubagent: 0.1, Deferred: 0.4})
	agents := Parameter{ParamAgentType, values(cfg.AgentTypes, []AgentType{General, Explorer, Planner}, toString)}
	return []Arm{
		{ID: MainContext, Weight: w.MainContext, Parameters: []Parameter{
			{ParamPosition, values(cfg.Positions, []Position{Prefix, Suffix, Contextual}, toString)},
			{ParamFormat, values(cfg.Formats, []Format{Plain, Tagged, SystemInstruction}, toString)},
		}},
		{ID: Subagent, Weight: w.Subagent, Parameters: []Parameter{
			agents,
			{ParamBlocking, values(cfg.Blocking, []bool{true, false}, strconv.FormatBool)},
			{ParamPromptTemplate, values(cfg.PromptTemplates, []string{""}, toString)},
		}},
		{ID: BackgroundSubagent, Weight: w.BackgroundSubagent, Parameters: []Parameter{
			agents,
			{ParamCallback, values(cfg.Callbacks, []Callback{PollCallback, WaitCallback, EventCallback}, toString)},
			{ParamTimeout, values(cfg.Timeouts, []time.Duration{30 * time.Second}, millis)},
		}},
		{ID: Deferred, Weight: w.Deferred, Parameters: []Parameter{
			{ParamTrigger, values(cfg.Triggers, []Trigger{Explicit}, toString)},
			{ParamMaxWait, values(cfg.MaxWaits, []time.Duration{0}, millis)},
		}},
	}
}

func values[T any](given, standard []T, text func(T) string) []string {
	if len(given) == 0 {
		given = standard
	}
	texts := make([]string, len(given))
	for i, v := range given {
		texts[i] = text(v)
	}
	return texts
}

func toString[T ~string](s T) string { return string(s) }

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// An InjectionStrategy is an arm of the catalogue with its parameters, as a host acts on it. Of the fields, those of the
// arm have a meaning, and the others are zero.
type InjectionStrategy struct {
	Arm ArmID

	Position       Position      // of MainContext
	Format         Format        // of MainContext
	AgentType      AgentType     // of Subagent and BackgroundSubagent
	Blocking       bool          // of Subagent: whether the session waits for it
	PromptTemplate string        // of Subagent; empty: the host's own prompt
	Callback       Callback      // of BackgroundSubagent
	Timeout        time.Duration // of BackgroundSubagent, in whole milliseconds
	Trigger        Trigger       // of Deferred
	MaxWait        time.Duration // of Deferred, in whole milliseconds; 0: for ever
}

// InjectionOf reads a choice among the arms of the catalogue. An arm or a value that is none of the catalogue's is a
// [*heed.InputError].
func InjectionOf(c Choice) (InjectionStrategy, error) {
	s := InjectionStrategy{Arm: c.Arm}
	for name, value := range c.Parameters() {
		if err := s.set(name, value); err != nil {
			return InjectionStrategy{}, err
		}
	}
	return s, s.validate()
}

// String writes the strategy as "main_context(position=prefix, format=tagged)". Prompt templates are quoted.
func (s InjectionStrategy) String() string {
	var texts []string
	for name, value := range s.settings() {
		texts = append(texts, name+"="+value)
	}
	return string(s.Arm) + "(" + strings.Join(texts, ", ") + ")"
}

// settings calls the function with the parameters of the strategy's arm, as they are written.
func (s *InjectionStrategy) settings() func(func(name, value string) bool) {
	var all []Setting
	switch s.Arm {
	case MainContext:
		all = []Setting{{ParamPosition, string(s.Position)}, {ParamFormat, string(s.Format)}}
	case Subagent:
		all = []Setting{{ParamAgentType, quoteAgent(s.AgentType)}, {ParamBlocking, strconv.FormatBool(s.Blocking)}, {ParamPromptTemplate, strconv.Quote(s.PromptTemplate)}}
	case BackgroundSubagent:
		all = []Setting{{ParamAgentType, quoteAgent(s.AgentType)}, {ParamCallback, string(s.Callback)}, {ParamTimeout, millis(s.Timeout)}}
	case Deferred:
		all = []Setting{{ParamTrigger, string(s.Trigger)}, {ParamMaxWait, millis(s.MaxWait)}}
	}
	return func(yield func(string, string) bool) {
		for _, setting := range all {
			if !yield(setting.Name, setting.Value) {
				return
			}
		}
	}
}

// quoteAgent writes a custom name in quotes, as it may hold anything.
func quoteAgent(a AgentType) string {
	if name, ok := a.Custom(); ok {
		return customAgent + strconv.Quote(name)
	}
	return string(a)
}

// ParseInjection reads what String has written. Whatever else is a [*heed.InputError].
func ParseInjection(text string) (InjectionStrategy, error) {
	arm, rest, ok := strings.Cut(text, "(")
	if !ok || !strings.HasSuffix(rest, ")") {
		return InjectionStrategy{}, &heed.InputError{Field: "injection", Reason: "must be an arm and its parameters in parentheses"}
	}
	s := InjectionStrategy{Arm: ArmID(arm)}
	rest = strings.TrimSuffix(rest, ")")
	for rest != "" {
		name, behind, ok := strings.Cut(rest, "=")
		if !ok {
			return InjectionStrategy{}, &heed.InputError{Field: "injection", Reason: "must be parameters with an equals sign each"}
		}
		value, behind, err := cutValue(behind)
		if err != nil {
			return InjectionStrategy{}, err
		}
		if err := s.set(name, value); err != nil {
			return InjectionStrategy{}, err
		}
		if rest = strings.TrimPrefix(behind, ", "); behind != "" && (rest == behind || rest == "") {
			return InjectionStrategy{}, &heed.InputError{Field: "injection", Reason: "must be parameters with a comma and a blank between them"}
		}
	}
	if err := s.validate(); err != nil {
		return InjectionStrategy{}, err
	}
	if s.String() != text {
		return InjectionStrategy{}, &heed.InputError{Field: "injection", Reason: "must have the parameters of its arm, each once, in order"}
	}
	return s, nil
}

// cutValue cuts a value off the front, out of its quotes if it has them.
func cutValue(text string) (value, behind string, err error) {
	prefix := ""
	if name, ok := strings.CutPrefix(text, customAgent); ok {
		prefix, text = customAgent, name
	}
	if !strings.HasPrefix(text, `"`) {
		value, _, _ = strings.Cut(text, ", ")
		return prefix + value, text[len(value):], nil
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", &heed.InputError{Field: "injection", Reason: "has a quote that does not end"}
	}
	value, err = strconv.Unquote(quoted)
	return prefix + value, text[len(quoted):], err
}

func (s *InjectionStrategy) set(name, value string) (err error) {
	switch name {
	case ParamPosition:
		s.Position = Position(value)
	case ParamFormat:
		s.Format = Format(value)
	case ParamAgentType:
		s.AgentType = AgentType(value)
	case ParamBlocking:
		s.Blocking, err = strconv.ParseBool(value)
	case ParamPromptTemplate:
		s.PromptTemplate = value
	case ParamCallback:
		s.Callback = Callback(value)
	case ParamTimeout:
		s.Timeout, err = parseMillis(value)
	case ParamTrigger:
		s.Trigger = Trigger(value)
	case ParamMaxWait:
		s.MaxWait, err = parseMillis(value)
	default:
		return &heed.InputError{Field: name, Reason: "is no parameter of the catalogue"}
	}
	if err != nil {
		return &heed.InputError{Field: name, Reason: "is not written as it must be"}
	}
	return nil
}

func parseMillis(text string) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(1<<63-1)/int64(time.Millisecond) {
		return 0, fmt.Errorf("not a number of milliseconds: %q", text)
	}
	return time.Duration(n) * time.Millisecond, nil
}

func (s *InjectionStrategy) validate() error {
	fault := func(field string) error {
		return &heed.InputError{Field: field, Reason: "must be a value of the catalogue"}
	}
	switch s.Arm {
	case MainContext:
		if !s.Position.Valid() {
			return fault(ParamPosition)
		}
		if !s.Format.Valid() {
			return fault(ParamFormat)
		}
	case Subagent, BackgroundSubagent:
		if !s.AgentType.Valid() {
			return fault(ParamAgentType)
		}
		if s.Arm == BackgroundSubagent && !s.Callback.Valid() {
			return fault(ParamCallback)
		}
	case Deferred:
		if !s.Trigger.Valid() {
			return fault(ParamTrigger)
		}
	default:
		return &heed.InputError{Field: "arm", Reason: "must be an arm of the catalogue"}
	}
	return nil
}
