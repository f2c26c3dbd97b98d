package learning

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
)

// StrategyBayesian is the name of [Bayesian].
const StrategyBayesian = "bayesian"

// Strategies are a host's own strategies by name, each made from what variables say. "bayesian" need not be among them. The
// nil map is ready to use.
type Strategies map[string]func(BayesianConfig) (Strategy, error)

// New makes the strategy of a name. An unknown name is a [*heed.ConfigError].
func (s Strategies) New(name string, cfg BayesianConfig) (Strategy, error) {
	if factory, ok := s[name]; ok {
		return factory(cfg)
	}
	if name == StrategyBayesian {
		b, err := NewBayesian(cfg)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	known := slices.Sorted(maps.Keys(s))
	if !slices.Contains(known, StrategyBayesian) {
		known = append([]string{StrategyBayesian}, known...)
	}
	return nil, &heed.ConfigError{Field: "Strategy", Value: name, Reason: "must be one of " + strings.Join(known, ", ")}
}

// ConfigFromEnv reads a configuration from the LEARNING_ variables that lookup gives, such as [os.LookupEnv]. Given the
// environment too, as [os.Environ] lists it, it takes LEARNING_ variables that it does not know for faults. All faults are
// reported at once, each a [*heed.ConfigError] whose field is the variable. The stores are for the caller to set.
//
// These are the variables of the Learning Strategy Interface design, with their defaults:
//
//	LEARNING_STRATEGY             bayesian
//	LEARNING_UNDO_WINDOW_SEC      30
//	LEARNING_IGNORED_THRESHOLD    3
//	LEARNING_UNDO_KEYWORDS        undo,revert,cancel,rollback,nevermind,never mind
//	LEARNING_IMPLICIT_MAGNITUDE   1.0
//	LEARNING_EXPLICIT_MAGNITUDE   0.8
//
// and these are heed's:
//
//	LEARNING_SILENCE_WINDOW_SEC   30
//	LEARNING_SILENCE_IS_NEUTRAL   false
//	LEARNING_UNDO_WHOLE_WORDS     false
//	LEARNING_UNDO_WITHIN_SESSION  false
//	LEARNING_COMPLAINT_RETRACTS_SILENCE  false
//	LEARNING_CHANNEL_WEIGHTS       (such as implicit_undo=0.8,implicit_ignored=0.3)
//	LEARNING_USER_SCORES          -0.4,0.05,0.4
//	LEARNING_DEV_SCORES           -0.4,-0.2,0.05,0.2,0.4
//	LEARNING_DIMINISH             0
//	LEARNING_INITIAL_CONFIDENCE   0.3
//	LEARNING_PRIOR_STRENGTH       2
//	LEARNING_CONFIDENCE_FLOOR     0.05
//	LEARNING_CONFIDENCE_CEILING   0.95
//	LEARNING_HALF_LIFE_DAYS       0 (none)
//	LEARNING_GUARDED              false (true: the caps of Guarded)
//	LEARNING_EXPECTATIONS     (JSON: [{"trigger": "oven", "outcome": "oven off", "success": true, "timeout_sec": 600}])
//
// Blanks around a value are dropped. A variable that is set but empty is as one that is not, except for
// LEARNING_UNDO_KEYWORDS, which then are none.
func ConfigFromEnv(lookup func(name string) (string, bool), environ ...string) (Config, error) {
	return Strategies(nil).ConfigFromEnv(lookup, environ...)
}

// ConfigFromEnv is as the function of that name, with the host's strategies.
func (s Strategies) ConfigFromEnv(lookup func(name string) (string, bool), environ ...string) (Config, error) {
	e := env{lookup: lookup, known: make(map[string]bool)}
	cfg, bayesian := e.module(), e.bayesian()
	name := cmp.Or(e.text("STRATEGY"), StrategyBayesian)
	for _, variable := range environ {
		variable, _, _ = strings.Cut(variable, "=")
		if strings.HasPrefix(variable, prefix) && !e.known[variable] {
			e.found.Check(false, variable, "set", "is no variable of learning")
		}
	}
	if err := e.found.Err(); err != nil {
		return Config{}, fmt.Errorf("learning: environment: %w", err)
	}
	strategy, err := s.New(name, bayesian)
	if err != nil {
		var found faults.List
		for fault := range heed.ConfigErrors(err) {
			found.Check(false, prefix+"STRATEGY", name, fault.Field+": "+fault.Reason)
		}
		if found.Err() != nil {
			err = found.Err()
		}
		return Config{}, fmt.Errorf("learning: environment: %w", err)
	}
	cfg.Strategy = strategy
	return cfg, nil
}

const prefix = "LEARNING_"

// env reads variables and collects their faults.
type env struct {
	lookup func(string) (string, bool)
	known  map[string]bool
	found  faults.List
}

func (e *env) module() Config {
	c := Config{
		Initial: e.number("INITIAL_CONFIDENCE", 0.3, isConfidence, "must be above 0 and below 1"),
		Strength: e.number("PRIOR_STRENGTH", 2, func(x float64) bool { return x >= 1e-3 && x <= 1e6 },
			"must be in [1e-3, 1e6]"),
		Bounds: Range{
			Floor:   e.number("CONFIDENCE_FLOOR", 0.05, isShare, "must be in [0, 1]"),
			Ceiling: e.number("CONFIDENCE_CEILING", 0.95, isShare, "must be in [0, 1]"),
		},
		Diminish:                 e.number("DIMINISH", 0, isMagnitude, "must be in [0, 1e6]"),
		HalfLife:                 e.duration("HALF_LIFE_DAYS", 24*time.Hour, 0, true),
		UndoWithinSession:        e.boolean("UNDO_WITHIN_SESSION"),
		ComplaintRetractsSilence: e.boolean("COMPLAINT_RETRACTS_SILENCE"),
		Expectations:             e.patterns("EXPECTATIONS"),
	}
	if e.boolean("GUARDED") {
		c.Caps = Guarded()
	}
	e.found.Check(c.Bounds.valid() && c.Bounds.Ceiling > 0, prefix+"CONFIDENCE_CEILING", c.Bounds.Ceiling, "must be above 0, and not below LEARNING_CONFIDENCE_FLOOR")
	e.found.Check(c.policy().Validate() == nil, prefix+"HALF_LIFE_DAYS", c.HalfLife, "must be 0 or between a minute and a hundred years")
	return c
}

func (e *env) bayesian() BayesianConfig {
	c := BayesianConfig{
		UndoWindow:       e.duration("UNDO_WINDOW_SEC", time.Second, 30*time.Second, false),
		SilenceWindow:    e.duration("SILENCE_WINDOW_SEC", time.Second, 30*time.Second, false),
		IgnoreThreshold:  e.count("IGNORED_THRESHOLD", 3),
		SilenceIsNeutral: e.boolean("SILENCE_IS_NEUTRAL"),
		WholeWords:       e.boolean("UNDO_WHOLE_WORDS"),
		Magnitudes: Magnitudes{
			Implicit: e.number("IMPLICIT_MAGNITUDE", 1, isMagnitude, "must be in [0, 1e6]"),
			Explicit: e.number("EXPLICIT_MAGNITUDE", 0.8, isMagnitude, "must be in [0, 1e6]"),
		},
		Weights: e.weights("CHANNEL_WEIGHTS"),
	}
	e.known[prefix+"UNDO_KEYWORDS"] = true
	if keywords, ok := e.lookup(prefix + "UNDO_KEYWORDS"); ok {
		c.Keywords = strings.Split(keywords, ",") // blank ones are dropped by the strategy
	}
	e.scores("USER_SCORES", c.Scores.User[:])
	e.scores("DEV_SCORES", c.Scores.Dev[:])
	e.found.Check(c.Magnitudes != Magnitudes{}, prefix+"IMPLICIT_MAGNITUDE", 0, "must not be 0 where LEARNING_EXPLICIT_MAGNITUDE is 0 too")
	return c
}

func isShare(x float64) bool     { return x >= 0 && x <= 1 }
func isMagnitude(x float64) bool { return x >= 0 && x <= 1e6 }

func (e *env) text(name string) string {
	e.known[prefix+name] = true
	value, _ := e.lookup(prefix + name)
	return strings.TrimSpace(value)
}

// number reads a number for which ok is true; NaN is none.
func (e *env) number(name string, otherwise float64, ok func(float64) bool, reason string) float64 {
	value := e.text(name)
	if value == "" {
		return otherwise
	}
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || !ok(x) {
		e.found.Check(false, prefix+name, value, reason)
		return otherwise
	}
	return x
}

func (e *env) count(name string, otherwise int) int {
	value := e.text(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		e.found.Check(false, prefix+name, value, "must be a whole number from 1 on")
		return otherwise
	}
	return n
}

func (e *env) duration(name string, unit, otherwise time.Duration, orZero bool) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	inRange := func(x float64) bool {
		d := x * float64(unit)
		return orZero && x == 0 || d >= float64(time.Microsecond) && d <= float64(most)
	}
	x := e.number(name, otherwise.Seconds()/unit.Seconds(), inRange, "must be a time above 0 and of at most a hundred years")
	return time.Duration(x * float64(unit)).Round(time.Microsecond)
}

func (e *env) boolean(name string) bool {
	value := e.text(name)
	if value == "" {
		return false
	}
	yes, err := strconv.ParseBool(value)
	if err != nil {
		e.found.Check(false, prefix+name, value, "must be true or false")
	}
	return yes
}

func (e *env) weights(name string) map[string]float64 {
	value := e.text(name)
	if value == "" {
		return nil
	}
	weights := make(map[string]float64)
	for pair := range strings.SplitSeq(value, ",") {
		source, number, found := strings.Cut(pair, "=")
		source = strings.TrimSpace(source)
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		_, twice := weights[source]
		if !found || source == "" || twice || err != nil || !isMagnitude(x) {
			e.found.Check(false, prefix+name, value, "must be source=weight, with commas between, each source once and each weight in [0, 1e6]")
			return nil
		}
		weights[source] = x
	}
	return weights
}

// scores reads as many numbers as there are scores, which must not fall.
func (e *env) scores(name string, scores []float64) {
	value := e.text(name)
	if value == "" {
		return
	}
	parts := strings.Split(value, ",")
	read := make([]float64, len(parts))
	ok := len(parts) == len(scores)
	for i, part := range parts {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		ok = ok && err == nil && (isMagnitude(x) || isMagnitude(-x))
		read[i] = x
	}
	ok = ok && slices.IsSorted(read) && slices.ContainsFunc(read, func(x float64) bool { return x != 0 })
	e.found.Check(ok, prefix+name, value, fmt.Sprintf("must be %d numbers in [-1e6, 1e6] that do not fall, not all 0", len(scores)))
	if ok {
		copy(scores, read)
	}
}

func (e *env) patterns(name string) []Expectation {
	value := e.text(name)
	if value == "" {
		return nil
	}
	type pattern struct {
		Trigger, Outcome string
		Success          *bool
		TimeoutSec       float64 `json:"timeout_sec"`
	}
	var read []pattern
	decoder := json.NewDecoder(bytes.NewReader([]byte(value)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&read)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = fmt.Errorf("there is something after the list")
		}
	}
	if err != nil {
		e.found.Check(false, prefix+name, value, "must be a JSON list of patterns: "+err.Error())
		return nil
	}
	var found faults.List
	patterns := make([]Expectation, len(read))
	for i, p := range read {
		ok := p.TimeoutSec >= 0 && p.TimeoutSec <= 1e9
		found.Check(ok, fmt.Sprintf("Expectations[%d].timeout_sec", i), p.TimeoutSec, "must be in [0, 1e9]")
		patterns[i] = Expectation{Trigger: p.Trigger, Outcome: p.Outcome, Failure: p.Success != nil && !*p.Success}
		if ok {
			patterns[i].Timeout = time.Duration(p.TimeoutSec * float64(time.Second))
		}
	}
	checkExpectations(&found, patterns)
	for fault := range heed.ConfigErrors(found.Err()) {
		e.found.Check(false, prefix+name, value, fault.Field+" "+fault.Reason)
	}
	return patterns
}
