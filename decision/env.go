package decision

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
)

// The names of the strategies.
const (
	HeuristicFirstName = "heuristic_first"
	AlwaysLLMName      = "always_llm"
)

// New returns the strategy of a name. A name that is none of the above is a [*heed.ConfigError].
func New(name string, cfg Config) (Strategy, error) {
	switch name {
	case HeuristicFirstName:
		return NewHeuristicFirst(cfg)
	case AlwaysLLMName:
		return NewAlwaysLLM(cfg)
	default:
		return nil, fmt.Errorf("decision: %w", unknownStrategy("Strategy", name))
	}
}

func unknownStrategy(field, name string) error {
	return &heed.ConfigError{Field: field, Value: name, Reason: "must be " + HeuristicFirstName + " or " + AlwaysLLMName}
}

// The environment variables that [ConfigFromEnv] reads.
const (
	EnvStrategy  = "EXECUTIVE_DECISION_STRATEGY"   // the name of a strategy
	EnvThreshold = "EXECUTIVE_HEURISTIC_THRESHOLD" // Config.Threshold, in (0, 1]
	EnvGoals     = "EXECUTIVE_GOALS"               // goals for every domain, separated by semicolons
)

// ConfigFromEnv returns the name of a strategy and its configuration from the environment, or all faults, joined: each is a
// [*heed.ConfigError] that names its variable. The host gives os.LookupEnv. A variable that is not set, or blank, has its
// default: [HeuristicFirstName], and that of its field.
func ConfigFromEnv(lookup func(string) (string, bool)) (name string, cfg Config, err error) {
	get := func(variable string) string {
		value, _ := lookup(variable)
		return strings.TrimSpace(value)
	}
	var found faults.List
	name = HeuristicFirstName
	if s := get(EnvStrategy); s != "" {
		name = s
		if !slices.Contains([]string{HeuristicFirstName, AlwaysLLMName}, s) {
			found.Join(unknownStrategy(EnvStrategy, s))
		}
	}
	if s := get(EnvThreshold); s != "" {
		x, err := strconv.ParseFloat(s, 64)
		found.Check(err == nil && x > 0 && x <= 1 && !math.IsNaN(x), EnvThreshold, s, "must be a number in (0, 1]")
		cfg.Threshold = x
	}
	var goals []string
	for goal := range strings.SplitSeq(get(EnvGoals), ";") {
		if goal = strings.TrimSpace(goal); goal != "" {
			goals = append(goals, goal)
		}
	}
	if goals != nil {
		cfg.Goals = map[string][]string{"": goals}
	}
	if err := found.Err(); err != nil {
		return "", Config{}, fmt.Errorf("decision: %w", err)
	}
	return name, cfg, nil
}
