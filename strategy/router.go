package strategy

import (
	"cmp"
	"fmt"
	"math"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
)

// A Router makes one outcome of what is known of a session: a value that somebody attributed to an item, and signals that
// were seen directly. It takes the two for independent, so that both together are worth more confidence than either: where
// the value was itself worked out from the signals, give it one of them alone. Make one with [NewRouter]. It is immutable,
// and safe for concurrent use.
type Router struct{ cfg RouterConfig }

// RouterConfig configures a [Router]. The zero value means the defaults.
type RouterConfig struct {
	// Weights are those of the attributed and the direct value where there are both, relative to each other; one that has
	// none is left out then. The zero value means 0.7 and 0.3.
	Weights RouterWeights
	// Confidences are those of outcomes by what they were made of. The zero value means 0.9, 0.8 and 0.5.
	Confidences RouterConfidences
	// MinConfidence is the least confidence of an outcome; what is below is no outcome. 0 means 0.3.
	MinConfidence float64
	// Scores are what signals weigh. The zero value means the defaults.
	Scores SignalScores
	// FullMass is how much the signals of a session must weigh together to count in full; below, the direct value counts
	// for less in proportion. 0 means 0.3: the least default score.
	FullMass float64
}

// RouterWeights are the weights of two values of one session.
type RouterWeights struct{ Attribution, Direct float64 }

// RouterConfidences are confidences in (0, 1].
type RouterConfidences struct{ Both, Attribution, Direct float64 }

// SignalScores are what each kind of signal weighs, in (0, 1]. Positive and negative signals weigh what their confidence
// is. 0 means the default.
type SignalScores struct {
	ToolFailure float64 // 0.5
	Correction  float64 // 0.7
	Retry       float64 // 0.3
	BuildStatus float64 // 0.8, for or against
}

// NewRouter returns a router, or all faults of its configuration, joined.
func NewRouter(cfg RouterConfig) (*Router, error) {
	cfg.Weights = cmp.Or(cfg.Weights, RouterWeights{Attribution: 0.7, Direct: 0.3})
	cfg.Confidences = cmp.Or(cfg.Confidences, RouterConfidences{Both: 0.9, Attribution: 0.8, Direct: 0.5})
	cfg.MinConfidence = cmp.Or(cfg.MinConfidence, 0.3)
	cfg.Scores.ToolFailure = cmp.Or(cfg.Scores.ToolFailure, 0.5)
	cfg.Scores.Correction = cmp.Or(cfg.Scores.Correction, 0.7)
	cfg.Scores.Retry = cmp.Or(cfg.Scores.Retry, 0.3)
	cfg.Scores.BuildStatus = cmp.Or(cfg.Scores.BuildStatus, 0.8)
	cfg.FullMass = cmp.Or(cfg.FullMass, 0.3)
	var found faults.List
	share := func(x float64, field string) {
		found.Check(x > 0 && x <= 1, field, x, "must be in (0, 1]")
	}
	found.Check(cfg.Weights.Attribution >= 0 && cfg.Weights.Attribution <= 1e6, "Weights.Attribution", cfg.Weights.Attribution, "must be in [0, 1e6]")
	found.Check(cfg.Weights.Direct >= 0 && cfg.Weights.Direct <= 1e6, "Weights.Direct", cfg.Weights.Direct, "must be in [0, 1e6]")
	share(cfg.Confidences.Both, "Confidences.Both")
	share(cfg.Confidences.Attribution, "Confidences.Attribution")
	share(cfg.Confidences.Direct, "Confidences.Direct")
	share(cfg.MinConfidence, "MinConfidence")
	share(cfg.Scores.ToolFailure, "Scores.ToolFailure")
	share(cfg.Scores.Correction, "Scores.Correction")
	share(cfg.Scores.Retry, "Scores.Retry")
	share(cfg.Scores.BuildStatus, "Scores.BuildStatus")
	share(cfg.FullMass, "FullMass")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("strategy: router: %w", err)
	}
	return &Router{cfg}, nil
}

// Config returns the configuration in force.
func (r *Router) Config() RouterConfig { return r.cfg }

// An Attribution is what a learning is said to have been worth in a session.
type Attribution struct {
	Activated bool    // whether it was used at all: if not, the value is of no account
	Value     float64 // from -1 to 1; beyond, it counts as that
}

// A SignalKind says what was seen.
type SignalKind string

// The kinds of signals.
const (
	SignalPositive    SignalKind = "positive"
	SignalNegative    SignalKind = "negative"
	SignalToolFailure SignalKind = "tool_failure"
	SignalCorrection  SignalKind = "correction" // the user corrected the agent
	SignalRetry       SignalKind = "retry"
	SignalBuildStatus SignalKind = "build_status"
)

// A Signal is something that was seen in a session and tells how it went.
type Signal struct {
	Session    string     `json:"session,omitempty"`
	Kind       SignalKind `json:"kind"`
	Confidence float64    `json:"confidence,omitempty"` // of a positive or negative signal, from 0 to 1; beyond, it counts as that
	Passed     bool       `json:"passed,omitempty"`     // of a build status
}

// An OutcomeSource says what an outcome was made of. It makes a good Channel for an [Outcome].
type OutcomeSource string

// What outcomes are made of.
const (
	FromAttribution OutcomeSource = "attribution"
	FromDirect      OutcomeSource = "direct"
	FromBoth        OutcomeSource = "both"
)

// A Routed is the outcome of a session as a [Router] sees it.
type Routed struct {
	Value      float64 // from -1 to 1
	Confidence float64
	Source     OutcomeSource
}

// Route combines what is known of a session. Signals of other sessions are left out. It reports false where there is no
// outcome: nothing is known, or nothing that is known is worth the least confidence. A number that is not finite and a
// kind of signal that there is not are a [*heed.InputError].
func (r *Router) Route(session string, attribution *Attribution, signals []Signal) (Routed, bool, error) {
	var b balance
	for i := range signals {
		if signals[i].Session == session {
			r.weigh(&b, i, &signals[i])
		}
	}
	return r.route(attribution, b)
}

// balances returns what the signals of each session come to, at the price of looking at each signal once.
func (r *Router) balances(signals []Signal) map[string]balance {
	all := make(map[string]balance)
	for i := range signals {
		b := all[signals[i].Session]
		r.weigh(&b, i, &signals[i])
		all[signals[i].Session] = b
	}
	return all
}

func (r *Router) route(attribution *Attribution, signals balance) (Routed, bool, error) {
	attributed := attribution != nil && attribution.Activated
	var value float64
	if attributed {
		if value = attribution.Value; !finite(value) {
			return Routed{}, false, &heed.InputError{Field: "attribution.Value", Reason: "must be finite"}
		}
		value = clamp(value, -1, 1)
	}
	if signals.fault != nil {
		return Routed{}, false, signals.fault
	}
	mass := signals.good + signals.bad
	switch { // what has no weight beside the other is left out where there are both
	case !attributed || mass == 0:
	case r.cfg.Weights.Direct == 0:
		mass = 0
	case r.cfg.Weights.Attribution == 0:
		attributed = false
	}
	direct := (signals.good - signals.bad) / mass // where there is any
	// How much of a full direct value the signals are.
	share := min(mass/r.cfg.FullMass, 1)
	var routed Routed
	switch c := r.cfg.Confidences; {
	case attributed && mass > 0:
		w := r.cfg.Weights
		w.Direct *= share
		routed = Routed{(w.Attribution*value + w.Direct*direct) / (w.Attribution + w.Direct), c.Attribution + (c.Both-c.Attribution)*share, FromBoth}
	case attributed:
		routed = Routed{value, c.Attribution, FromAttribution}
	case mass > 0:
		routed = Routed{direct, c.Direct * share, FromDirect}
	default:
		return Routed{}, false, nil
	}
	routed.Value = clamp(routed.Value, -1, 1) // which rounding may have passed
	return routed, routed.Confidence >= r.cfg.MinConfidence, nil
}

// A balance is what a session's signals weigh for it and against it, or what is wrong with the first that can't be weighed.
type balance struct {
	good, bad float64
	fault     error
}

// weigh adds a signal, which is the i-th of all.
func (r *Router) weigh(b *balance, i int, s *Signal) {
	weight, good := 0., false
	switch s.Kind {
	case SignalPositive, SignalNegative:
		if !finite(s.Confidence) {
			b.spoil(i, "Confidence", "must be finite")
			return
		}
		weight, good = clamp(s.Confidence, 0, 1), s.Kind == SignalPositive
	case SignalToolFailure:
		weight = r.cfg.Scores.ToolFailure
	case SignalCorrection:
		weight = r.cfg.Scores.Correction
	case SignalRetry:
		weight = r.cfg.Scores.Retry
	case SignalBuildStatus:
		weight, good = r.cfg.Scores.BuildStatus, s.Passed
	default:
		b.spoil(i, "Kind", "must be a kind of signal")
		return
	}
	if good {
		b.good += weight
	} else {
		b.bad += weight
	}
}

func (b *balance) spoil(i int, field, reason string) {
	if b.fault == nil {
		b.fault = &heed.InputError{Field: fmt.Sprintf("signals[%d].%s", i, field), Reason: reason}
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func clamp(x, low, high float64) float64 { return min(max(x, low), high) }
