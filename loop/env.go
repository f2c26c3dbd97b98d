package loop

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/learning"
)

// ConfigFromEnv returns a configuration from the variables of the Learning Strategy Interface and
// Decision Strategy Interface designs, for operators who configure those. environ lists the
// environment in the form of [os.Environ]. The variables set fields of Learning and Decision, and
// the caller sets everything else. These are the variables with their defaults:
//
//	LEARNING_STRATEGY              bayesian, the only one. Code sets others in Learning.Strategy
//	LEARNING_UNDO_WINDOW_SEC       600, and 30 for silence. If set, it holds for both
//	LEARNING_IGNORED_THRESHOLD     3
//	LEARNING_UNDO_KEYWORDS         none: see [learning.BayesianConfig].IsUndo. Else words, by commas
//	LEARNING_IMPLICIT_MAGNITUDE    1, and 0.4 for silence and an ignore. If set, it holds for all
//	LEARNING_EXPLICIT_MAGNITUDE    0.8
//	EXECUTIVE_DECISION_STRATEGY    heuristic_first, or always_llm
//	EXECUTIVE_HEURISTIC_THRESHOLD  0.7
//	EXECUTIVE_GOALS                none; for every domain, by semicolons
//
// Blanks around a value are dropped. An empty variable counts as not set, except
// LEARNING_UNDO_KEYWORDS, which then lets no text be an undo. All faults are reported at once, each
// a [*heed.ConfigError] whose field is the variable. A misspelt name is a fault: any other variable
// that begins with LEARNING_ or EXECUTIVE_.
func ConfigFromEnv(environ []string) (Config, error) {
	r := envReader{bayesian: learning.BayesianConfig{Weights: make(map[string]float64)}}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		r.name, r.value = name, strings.TrimSpace(value)
		r.read()
	}
	strategy, err := learning.NewBayesian(r.bayesian)
	r.Join(err)
	if err := r.Err(); err != nil {
		return Config{}, fmt.Errorf("loop: environment: %w", err)
	}
	r.cfg.Tuning.Learning.Strategy = strategy
	return r.cfg, nil
}

// An envReader reads one variable after the other.
type envReader struct {
	valid.Faults
	name, value string
	bayesian    learning.BayesianConfig
	cfg         Config
}

// read sets what one variable configures. A name that begins like the known ones and is not among
// them is a fault, because it may be misspelt.
func (r *envReader) read() {
	b := &r.bayesian
	switch r.name {
	case "LEARNING_STRATEGY":
		r.oneOf("bayesian")
	case "LEARNING_UNDO_WINDOW_SEC":
		seconds, _ := r.number(1e-6, 100*365*24*3600)
		b.UndoWindow = time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
		b.SilenceWindow = b.UndoWindow // one window in the design
	case "LEARNING_IGNORED_THRESHOLD":
		n, _ := r.number(1, 1e6)
		r.Check(n == math.Trunc(n), r.name, r.value, "must be a whole number")
		b.IgnoreThreshold = int(n)
	case "LEARNING_UNDO_KEYWORDS":
		b.IsUndo = learning.Keywords(strings.Split(r.value, ",")...)
	case "LEARNING_IMPLICIT_MAGNITUDE":
		r.magnitude(learning.ChannelTimeout, learning.ChannelUndo,
			learning.ChannelIgnored, learning.ChannelOutcome)
	case "LEARNING_EXPLICIT_MAGNITUDE":
		r.magnitude(learning.ChannelExplicit, learning.ChannelDev)
	case "EXECUTIVE_DECISION_STRATEGY":
		r.cfg.Tuning.Decision.Strategy = r.oneOf("heuristic_first", "always_llm")
	case "EXECUTIVE_HEURISTIC_THRESHOLD":
		r.cfg.Tuning.Decision.Threshold, _ = r.number(1e-6, 1)
	case "EXECUTIVE_GOALS":
		var goals []string
		for goal := range strings.SplitSeq(r.value, ";") {
			if goal = strings.TrimSpace(goal); goal != "" {
				goals = append(goals, goal)
			}
		}
		if goals != nil {
			r.cfg.Tuning.Decision.Goals = map[string][]string{"": goals}
		}
	default:
		ours := strings.HasPrefix(r.name, "LEARNING_") || strings.HasPrefix(r.name, "EXECUTIVE_")
		r.Check(!ours, r.name, "set", "is not a known variable: ConfigFromEnv lists them")
	}
}

// oneOf returns the value, which is empty or one of some names.
func (r *envReader) oneOf(names ...string) string {
	known := r.value == "" || slices.Contains(names, r.value)
	r.Check(known, r.name, r.value, "must be "+strings.Join(names, " or "))
	return r.value
}

// number reads a number, and reports whether there is one from least to most.
func (r *envReader) number(least, most float64) (float64, bool) {
	if r.value == "" {
		return 0, false
	}
	x, err := strconv.ParseFloat(r.value, 64)
	ok := err == nil && x >= least && x <= most
	r.Check(ok, r.name, r.value, fmt.Sprintf("must be a number from %v to %v", least, most))
	if !ok {
		return 0, false
	}
	return x, true
}

// magnitude reads the magnitude of some channels.
func (r *envReader) magnitude(channels ...string) {
	x, ok := r.number(0, 1e6)
	for _, channel := range channels {
		if ok {
			r.bayesian.Weights[channel] = x
		}
	}
}
