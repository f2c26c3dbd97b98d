package decision

import (
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/env"
)

// ConfigFromEnv returns a configuration from EXECUTIVE_ variables. lookup reads one, as
// [os.LookupEnv] does. environ lists the environment, as [os.Environ] does; with it, unknown
// EXECUTIVE_ variables are faults. All faults are reported at once, each a [*heed.ConfigError]
// whose field is the variable. The caller sets the rest, such as the model and the store.
//
// The Decision Strategy Interface design has these variables and defaults:
//
//	EXECUTIVE_DECISION_STRATEGY       heuristic_first
//	EXECUTIVE_HEURISTIC_THRESHOLD     0.7
//	EXECUTIVE_GOALS                   (for every domain, separated by semicolons)
//
// heed adds these:
//
//	EXECUTIVE_MAX_CANDIDATES          3 (0: none)
//	EXECUTIVE_WITHHOLD                1
//	EXECUTIVE_PREDICTION              off (or second_call, same_call)
//	EXECUTIVE_LLM_CONFIDENCE_CEILING  0.8
//	EXECUTIVE_LLM_TIMEOUT_SEC         30
//	EXECUTIVE_LLM_MAX_IN_FLIGHT       4
//	EXECUTIVE_URGENCY_REDUCTION       0
//	EXECUTIVE_HASH_TEXTS              false
//
// Blanks around a value are dropped. An empty variable counts as not set. [New] refuses an unknown
// strategy; a host with other strategies compares [Config].Strategy with their names before.
func ConfigFromEnv(lookup func(string) (string, bool), environ ...string) (Config, error) {
	var cfg Config
	r := env.Reader{Prefix: "EXECUTIVE_", Lookup: lookup}
	cfg.Strategy, _ = r.Text("DECISION_STRATEGY")
	isShare := func(x float64) bool { return x > 0 && x <= 1 }
	r.Number("HEURISTIC_THRESHOLD", &cfg.Threshold, "must be a number in (0, 1]", isShare)
	goals, _ := r.Text("GOALS")
	for goal := range strings.SplitSeq(goals, ";") {
		if goal = strings.TrimSpace(goal); goal != "" {
			cfg.Goals = map[string][]string{"": append(cfg.Goals[""], goal)}
		}
	}
	candidates := -1
	r.Count("MAX_CANDIDATES", &candidates, 0, maxCandidates)
	cfg.MaxCandidates, cfg.NoCandidates = max(candidates, 0), candidates == 0
	withhold := -1.
	r.Number("WITHHOLD", &withhold, "must be a number in [0, 1]", func(x float64) bool { return x >= 0 && x <= 1 })
	if withhold >= 0 {
		cfg.Withhold = &withhold
	}
	if mode, variable := r.Text("PREDICTION"); mode != "off" {
		cfg.Prediction = PredictionMode(mode)
		r.Faults.Check(cfg.Prediction.known(), variable, mode, "must be off, second_call or same_call")
	}
	r.Number("LLM_CONFIDENCE_CEILING", &cfg.Ceiling, "must be a number in (0, 1]", isShare)
	r.Duration("LLM_TIMEOUT_SEC", &cfg.Timeout, time.Second, time.Millisecond, 24*time.Hour)
	r.Count("LLM_MAX_IN_FLIGHT", &cfg.MaxInFlight, 1, 10_000)
	r.Number("URGENCY_REDUCTION", &cfg.Urgency.Reduction, "must be a number in [0, 1]", func(x float64) bool { return x >= 0 && x <= 1 })
	r.Boolean("HASH_TEXTS", &cfg.HashTexts)
	r.CheckUnknown(environ)
	if err := r.Faults.Err(); err != nil {
		return Config{}, fmt.Errorf("decision: environment: %w", err)
	}
	return cfg, nil
}
