package learning

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/env"
	"github.com/heedhq/heed/internal/faults"
)

// ConfigFromEnv reads a configuration from the LEARNING_ variables that lookup gives, such as [os.LookupEnv]. The caller sets the
// store. LEARNING_STRATEGY names the strategy: "bayesian", or one of the host's own, each made from what the variables say. Given the
// environment too, as [os.Environ] lists it, a LEARNING_ variable that is not known is a fault. All faults are reported together, each
// a [*heed.ConfigError] whose field is the variable.
//
// These are the variables of the Learning Strategy Interface design. One that is not set, or blank, leaves the field as it is, and so
// means the default of its field:
//
//	LEARNING_STRATEGY             bayesian
//	LEARNING_UNDO_WINDOW_SEC      30
//	LEARNING_IGNORED_THRESHOLD    3
//	LEARNING_UNDO_KEYWORDS        undo,revert,cancel,rollback,nevermind,never mind (set but blank: none)
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
//	LEARNING_CHANNEL_WEIGHTS      (such as implicit_undo=0.8,implicit_ignored=0.3)
//	LEARNING_USER_SCORES          -0.4,0.05,0.4
//	LEARNING_DEV_SCORES           -0.4,-0.2,0.05,0.2,0.4
//	LEARNING_DIMINISH             0
//	LEARNING_INITIAL_CONFIDENCE   0.3
//	LEARNING_PRIOR_STRENGTH       2
//	LEARNING_CONFIDENCE_FLOOR     0.05
//	LEARNING_CONFIDENCE_CEILING   0.95
//	LEARNING_HALF_LIFE_DAYS       0 (none)
//	LEARNING_GUARDED              false (true: the caps of Guarded)
//	LEARNING_EXPECTATIONS         (JSON: [{"trigger": "oven", "outcome": "oven off", "success": true, "timeout_sec": 600}])
func ConfigFromEnv(lookup func(name string) (string, bool), own map[string]func(BayesianConfig) (Strategy, error), environ ...string) (Config, error) {
	r := reader{env.Reader{Prefix: "LEARNING_", Lookup: lookup}}
	cfg, bayesian := r.module(), r.bayesian()
	name, variable := r.Text("STRATEGY")
	name = cmp.Or(name, "bayesian")
	r.CheckUnknown(environ)
	makers := map[string]func(BayesianConfig) (Strategy, error){"bayesian": NewBayesian}
	maps.Copy(makers, own)
	maker, known := makers[name]
	r.Faults.Check(known, variable, name, "must be one of "+strings.Join(slices.Sorted(maps.Keys(makers)), ", "))
	err := r.Faults.Err()
	if err == nil {
		cfg.Strategy, err = maker(bayesian)
		for fault := range heed.ConfigErrors(err) {
			r.Faults.Check(false, variable, name, fault.Field+": "+fault.Reason)
		}
	}
	if err != nil {
		return Config{}, fmt.Errorf("learning: environment: %w", cmp.Or(r.Faults.Err(), err))
	}
	return cfg, nil
}

// A reader reads what only this package has.
type reader struct{ env.Reader }

func (r *reader) module() (c Config) {
	r.Number("INITIAL_CONFIDENCE", &c.Initial, "must be above 0 and below 1", isConfidence)
	r.Number("PRIOR_STRENGTH", &c.Strength, "must be in [1e-3, 1e6]", isStrength)
	isShare := func(x float64) bool { return x >= 0 && x <= 1 }
	bounds := defaultBounds
	r.Number("CONFIDENCE_FLOOR", &bounds.Floor, "must be in [0, 1]", isShare)
	r.Number("CONFIDENCE_CEILING", &bounds.Ceiling, "must be in [0, 1]", isShare)
	r.Faults.Check(bounds.valid() && bounds.Ceiling > 0, r.Prefix+"CONFIDENCE_CEILING", bounds.Ceiling, "must be above 0, and not below LEARNING_CONFIDENCE_FLOOR")
	if bounds != defaultBounds {
		c.Bounds = bounds
	}
	r.Number("DIMINISH", &c.Diminish, notMagnitude, isMagnitude)
	r.Duration("HALF_LIFE_DAYS", &c.HalfLife, 24*time.Hour, 0, longest)
	r.Faults.Check(c.policy().Validate() == nil, r.Prefix+"HALF_LIFE_DAYS", c.HalfLife, "must be 0 or at least a minute")
	r.Boolean("UNDO_WITHIN_SESSION", &c.UndoWithinSession)
	r.Boolean("COMPLAINT_RETRACTS_SILENCE", &c.ComplaintRetractsSilence)
	c.Expectations = r.expectations("EXPECTATIONS")
	guarded := false
	if r.Boolean("GUARDED", &guarded); guarded {
		c.Caps = Guarded()
	}
	return c
}

const longest = 100 * 365 * 24 * time.Hour

func (r *reader) bayesian() (c BayesianConfig) {
	r.Duration("UNDO_WINDOW_SEC", &c.UndoWindow, time.Second, time.Microsecond, longest)
	r.Duration("SILENCE_WINDOW_SEC", &c.SilenceWindow, time.Second, time.Microsecond, longest)
	r.Count("IGNORED_THRESHOLD", &c.IgnoreThreshold, 1, 1e6)
	r.Boolean("SILENCE_IS_NEUTRAL", &c.SilenceIsNeutral)
	r.Boolean("UNDO_WHOLE_WORDS", &c.WholeWords)
	c.Weights = r.weights("CHANNEL_WEIGHTS")
	c.Implicit = r.magnitude("IMPLICIT_MAGNITUDE", &c, ChannelTimeout, ChannelUndo, ChannelIgnored, ChannelOutcome)
	c.Explicit = r.magnitude("EXPLICIT_MAGNITUDE", &c, ChannelExplicit, ChannelDev)
	_, variable := r.Text("UNDO_KEYWORDS")
	if keywords, ok := r.Lookup(variable); ok { // also where it is blank
		c.Keywords = strings.Split(keywords, ",")
	}
	r.scores("USER_SCORES", c.UserScores[:])
	r.scores("DEV_SCORES", c.DevScores[:])
	return c
}

// magnitude reads the magnitude of some channels. As 0 means the default in a configuration, 0 is set by weights.
func (r *reader) magnitude(name string, c *BayesianConfig, channels ...string) float64 {
	x := -1.
	if r.Number(name, &x, notMagnitude, isMagnitude); x != 0 {
		return max(x, 0)
	}
	weights := make(map[string]float64)
	for _, channel := range channels {
		weights[channel] = 0
	}
	maps.Copy(weights, c.Weights)
	c.Weights = weights
	return 0
}

func (r *reader) weights(name string) map[string]float64 {
	value, variable := r.Text(name)
	if value == "" {
		return nil
	}
	weights := make(map[string]float64)
	for pair := range strings.SplitSeq(value, ",") {
		channel, number, found := strings.Cut(pair, "=")
		channel = strings.TrimSpace(channel)
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		_, twice := weights[channel]
		if !found || channel == "" || twice || err != nil || !isMagnitude(x) {
			r.Faults.Check(false, variable, value, "must be channel=weight, with commas between, each channel once and each weight in [0, 1e6]")
			return nil
		}
		weights[channel] = x
	}
	return weights
}

// scores reads a number for each score.
func (r *reader) scores(name string, scores []float64) {
	value, variable := r.Text(name)
	if value == "" {
		return
	}
	parts := strings.Split(value, ",")
	read := make([]float64, len(parts))
	ok, some := len(parts) == len(scores), false
	for i, part := range parts {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		ok, some = ok && err == nil, some || x != 0
		read[i] = x
	}
	if ok = ok && some && areScores(read); ok {
		copy(scores, read)
	}
	r.Faults.Check(ok, variable, value, fmt.Sprintf("must be %d numbers in [-1e6, 1e6] that do not fall, not all 0", len(scores)))
}

func (r *reader) expectations(name string) []Expectation {
	value, variable := r.Text(name)
	if value == "" {
		return nil
	}
	var read []struct {
		Trigger, Outcome string
		Success          *bool
		TimeoutSec       float64 `json:"timeout_sec"`
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(value)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&read)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.New("there is something after the list")
		}
	}
	if err != nil {
		r.Faults.Check(false, variable, value, "must be a JSON list of expectations: "+err.Error())
		return nil
	}
	var found faults.List
	all := make([]Expectation, len(read))
	for i, e := range read {
		ok := e.TimeoutSec >= 0 && e.TimeoutSec <= 1e9
		found.Check(ok, fmt.Sprintf("Expectations[%d].timeout_sec", i), e.TimeoutSec, "must be in [0, 1e9]")
		all[i] = Expectation{Trigger: e.Trigger, Outcome: e.Outcome, Failure: e.Success != nil && !*e.Success}
		if ok {
			all[i].Timeout = time.Duration(e.TimeoutSec * float64(time.Second))
		}
	}
	checkExpectations(&found, all)
	for fault := range heed.ConfigErrors(found.Err()) {
		r.Faults.Check(false, variable, value, fault.Field+" "+fault.Reason)
	}
	return all
}
