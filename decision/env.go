package decision

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
)

// The names of the strategies.
const (
	HeuristicFirstName = "heuristic_first"
	AlwaysLLMName      = "always_llm"
)

// Strategies are a host's own strategies by name. Those of this package need not be among them. The nil map is ready to use.
type Strategies map[string]func(context.Context, Config) (Strategy, error)

// New returns the strategy of a name, or all faults of its configuration. A name that is neither one of the host's nor one of
// the above is a [*heed.ConfigError].
func (s Strategies) New(ctx context.Context, name string, cfg Config) (Strategy, error) {
	if factory, ok := s[name]; ok {
		return factory(ctx, cfg)
	}
	var made Strategy
	var err error
	switch name {
	case HeuristicFirstName:
		made, err = NewHeuristicFirst(ctx, cfg)
	case AlwaysLLMName:
		made, err = NewAlwaysLLM(ctx, cfg)
	default:
		err = fmt.Errorf("decision: %w", s.unknown("Strategy", name))
	}
	if err != nil {
		return nil, err // and no typed nil
	}
	return made, nil
}

// New is as the method of that name, without a host's strategies.
func New(ctx context.Context, name string, cfg Config) (Strategy, error) {
	return Strategies(nil).New(ctx, name, cfg)
}

func (s Strategies) names() []string {
	names := slices.AppendSeq([]string{HeuristicFirstName, AlwaysLLMName}, maps.Keys(s))
	slices.Sort(names)
	return slices.Compact(names)
}

func (s Strategies) unknown(field, name string) error {
	return &heed.ConfigError{Field: field, Value: name, Reason: "must be one of " + strings.Join(s.names(), ", ")}
}

// ConfigFromEnv returns the name of a strategy and its configuration from the EXECUTIVE_ variables that lookup gives, such as
// [os.LookupEnv]. Given the environment too, as [os.Environ] lists it, it takes EXECUTIVE_ variables that it does not know
// for faults. All faults are reported at once, each a [*heed.ConfigError] whose field is the variable. What a variable can't
// say, the model and the store first of all, is for the caller to set.
//
// These are the variables of the Decision Strategy Interface design, with their defaults:
//
//	EXECUTIVE_DECISION_STRATEGY       heuristic_first
//	EXECUTIVE_HEURISTIC_THRESHOLD     0.7
//	EXECUTIVE_GOALS                   (for every domain, with semicolons between)
//
// and these are heed's:
//
//	EXECUTIVE_MAX_CANDIDATES          3 (0: none)
//	EXECUTIVE_LLM_CONFIDENCE_CEILING  0.8
//	EXECUTIVE_LLM_TIMEOUT_SEC         30
//	EXECUTIVE_LLM_MAX_IN_FLIGHT       4
//	EXECUTIVE_URGENCY_REDUCTION       0
//	EXECUTIVE_HASH_TEXTS              false
//
// Blanks around a value are dropped. A variable that is set but empty is as one that is not.
func ConfigFromEnv(lookup func(string) (string, bool), environ ...string) (name string, cfg Config, err error) {
	return Strategies(nil).ConfigFromEnv(lookup, environ...)
}

// ConfigFromEnv is as the function of that name, with the host's strategies.
func (s Strategies) ConfigFromEnv(lookup func(string) (string, bool), environ ...string) (name string, cfg Config, err error) {
	e := env{lookup: lookup, known: make(map[string]bool)}
	name = HeuristicFirstName
	if value, variable := e.text("DECISION_STRATEGY"); value != "" {
		name = value
		if !slices.Contains(s.names(), name) {
			e.found.Join(s.unknown(variable, name))
		}
	}
	e.number("HEURISTIC_THRESHOLD", &cfg.Threshold, "must be a number in (0, 1]", isPositiveShare)
	e.goals(&cfg)
	e.count("MAX_CANDIDATES", &cfg.MaxCandidates, 0, MaxCandidates)
	cfg.NoCandidates = e.set("MAX_CANDIDATES") && cfg.MaxCandidates == 0
	e.number("LLM_CONFIDENCE_CEILING", &cfg.Ceiling, "must be a number in (0, 1]", isPositiveShare)
	var seconds float64
	e.number("LLM_TIMEOUT_SEC", &seconds, "must be a time of a millisecond to a day", func(x float64) bool { return x >= 1e-3 && x <= 86_400 })
	cfg.Timeout = time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
	e.count("LLM_MAX_IN_FLIGHT", &cfg.MaxInFlight, 1, 10_000)
	e.number("URGENCY_REDUCTION", &cfg.Urgency.Reduction, "must be a number in [0, 1]", func(x float64) bool { return x >= 0 && x <= 1 })
	e.boolean("HASH_TEXTS", &cfg.HashTexts)
	for _, variable := range environ {
		variable, _, _ = strings.Cut(variable, "=")
		e.found.Check(!strings.HasPrefix(variable, prefix) || e.known[variable], variable, "set", "is no variable of decision")
	}
	if err := e.found.Err(); err != nil {
		return "", Config{}, fmt.Errorf("decision: environment: %w", err)
	}
	return name, cfg, nil
}

const prefix = "EXECUTIVE_"

func isPositiveShare(x float64) bool { return x > 0 && x <= 1 }

// env reads variables and collects their faults. What is not set, or wrong, leaves its field as it is.
type env struct {
	lookup func(string) (string, bool)
	known  map[string]bool
	found  faults.List
}

func (e *env) text(name string) (value, variable string) {
	variable = prefix + name
	e.known[variable] = true
	value, _ = e.lookup(variable)
	return strings.TrimSpace(value), variable
}

func (e *env) set(name string) bool {
	value, _ := e.text(name)
	return value != ""
}

func (e *env) number(name string, x *float64, reason string, ok func(float64) bool) {
	value, variable := e.text(name)
	if value == "" {
		return
	}
	read, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(read) || !ok(read) {
		e.found.Check(false, variable, value, reason)
		return
	}
	*x = read
}

func (e *env) count(name string, n *int, least, most int) {
	value, variable := e.text(name)
	if value == "" {
		return
	}
	read, err := strconv.Atoi(value)
	if err != nil || read < least || read > most {
		e.found.Check(false, variable, value, fmt.Sprintf("must be a whole number from %d to %d", least, most))
		return
	}
	*n = read
}

func (e *env) boolean(name string, b *bool) {
	value, variable := e.text(name)
	if value == "" {
		return
	}
	read, err := strconv.ParseBool(value)
	e.found.Check(err == nil, variable, value, "must be true or false")
	*b = read
}

func (e *env) goals(cfg *Config) {
	value, _ := e.text("GOALS")
	var goals []string
	for goal := range strings.SplitSeq(value, ";") {
		if goal = strings.TrimSpace(goal); goal != "" {
			goals = append(goals, goal)
		}
	}
	if goals != nil {
		cfg.Goals = map[string][]string{"": goals}
	}
}
