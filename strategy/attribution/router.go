package attribution

import (
	"cmp"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/strategy"
)

// A Router makes one outcome of what is known of a session: a value that somebody attributed to an
// item, and signals that were seen directly. It treats the two as independent, so that both
// together are worth more confidence than either. Where the value was itself worked out from the
// signals, give it only one of them. The zero Router has the defaults. It is immutable.
type Router struct {
	// WeightAttribution and WeightDirect are the weights of the attributed and the direct value where
	// both are known, relative to each other, in [0, 1e6]. A value of weight 0 is ignored then. If
	// both are 0 they mean 0.7 and 0.3.
	WeightAttribution, WeightDirect float64
	// ConfidenceBoth, ConfidenceAttribution and ConfidenceDirect are the confidences of outcomes by
	// what they were made of, in (0, 1]. If all are 0 they mean 0.9, 0.8 and 0.5.
	ConfidenceBoth, ConfidenceAttribution, ConfidenceDirect float64
	// MinConfidence is the least confidence of an outcome, in (0, 1]. Below it there is no outcome. 0
	// means 0.3, and in a [Consumer] the least confidence of its learner. Raise it to ignore weak
	// signals.
	MinConfidence float64
}

// ready returns the router with its defaults, or all its faults, joined.
func (r Router) ready() (Router, error) {
	if r.WeightAttribution == 0 && r.WeightDirect == 0 {
		r.WeightAttribution, r.WeightDirect = 0.7, 0.3
	}
	if r.ConfidenceBoth == 0 && r.ConfidenceAttribution == 0 && r.ConfidenceDirect == 0 {
		r.ConfidenceBoth, r.ConfidenceAttribution, r.ConfidenceDirect = 0.9, 0.8, 0.5
	}
	var found valid.Faults
	found.Check(r.WeightAttribution >= 0 && r.WeightAttribution <= 1e6, "WeightAttribution",
		r.WeightAttribution, "must be in [0, 1e6]")
	found.Check(r.WeightDirect >= 0 && r.WeightDirect <= 1e6, "WeightDirect", r.WeightDirect,
		"must be in [0, 1e6]")
	for _, share := range []struct {
		field    string
		value    *float64
		standard float64
	}{
		{"ConfidenceBoth", &r.ConfidenceBoth, 0},
		{"ConfidenceAttribution", &r.ConfidenceAttribution, 0},
		{"ConfidenceDirect", &r.ConfidenceDirect, 0},
		{"MinConfidence", &r.MinConfidence, 0.3},
	} {
		*share.value = cmp.Or(*share.value, share.standard)
		found.Check(*share.value > 0 && *share.value <= 1, share.field, *share.value,
			"must be in (0, 1]")
	}
	return r, found.Err()
}

// The kinds of signals.
const (
	Positive    = "positive"
	Negative    = "negative"
	ToolFailure = "tool_failure"
	Correction  = "correction" // the user corrected the agent
	Retry       = "retry"
	BuildStatus = "build_status"
)

// weights are what signals weigh, by kind. A positive or negative signal weighs as much as its
// confidence, so a host that trusts others more or less than this sends its own as these.
var weights = map[string]float64{ToolFailure: 0.5, Correction: 0.7, Retry: 0.3, BuildStatus: 0.8}

// fullMass is the weight that the signals of a session must have together to count in full, which
// is the least of [weights]. Below it the direct value counts for less in proportion.
const fullMass = 0.3

// A DirectSignal is an observation in a session that shows how it went.
type DirectSignal struct {
	Session    string  `json:"session,omitempty"`
	Kind       string  `json:"kind"`
	Confidence float64 `json:"confidence,omitempty"` // of a positive or negative signal, in [0, 1]
	Passed     bool    `json:"passed,omitempty"`     // of a build status
}

// Route combines what is known of a session into an outcome with a value, a confidence and a
// channel: "attribution", "direct" or "both". It ignores signals of other sessions. It reports
// false if there is no outcome: there is no evidence, or the confidence is below the least. A
// number out of its range and an unknown kind of signal are a [*heed.InputError]. A router that is
// not valid returns all its faults, joined: each is a [*heed.ConfigError].
func (r Router) Route(
	session string, worth *Worth, signals []DirectSignal,
) (strategy.Outcome, bool, error) {
	r, err := r.ready()
	if err != nil {
		return strategy.Outcome{}, false, fmt.Errorf("attribution: router: %w", err)
	}
	return r.route(worth, balances(signals)[session])
}

// balances returns what the signals of each session weigh. It looks at each signal once.
func balances(signals []DirectSignal) map[string]balance {
	all := make(map[string]balance)
	for i := range signals {
		b := all[signals[i].Session]
		b.weigh(i, &signals[i])
		all[signals[i].Session] = b
	}
	return all
}

func (r *Router) route(worth *Worth, signals balance) (o strategy.Outcome, ok bool, err error) {
	attributed := worth != nil && worth.Activated
	var value float64
	if attributed {
		if value = worth.Value; !(value >= -1 && value <= 1) {
			return o, false, &heed.InputError{Field: "attributed_value",
				Reason: fmt.Sprintf("is %v, must be in [-1, 1]", value)}
		}
	}
	if signals.fault != nil {
		return o, false, signals.fault
	}
	mass := signals.good + signals.bad
	switch { // a value without weight next to the other is ignored where both are known
	case !attributed || mass == 0:
	case r.WeightDirect == 0:
		mass = 0
	case r.WeightAttribution == 0:
		attributed = false
	}
	direct := (signals.good - signals.bad) / mass // where there is any
	share := min(mass/fullMass, 1)                // of a full direct value
	switch {
	case attributed && mass > 0:
		w := r.WeightDirect * share
		o.Channel = "both"
		o.Confidence = r.ConfidenceAttribution + (r.ConfidenceBoth-r.ConfidenceAttribution)*share
		o.Value = (r.WeightAttribution*value + w*direct) / (r.WeightAttribution + w)
	case attributed:
		o.Channel, o.Confidence, o.Value = "attribution", r.ConfidenceAttribution, value
	case mass > 0:
		o.Channel, o.Confidence, o.Value = "direct", r.ConfidenceDirect*share, direct
	}
	o.Value = min(max(o.Value, -1), 1) // rounding may have passed the bounds
	return o, o.Confidence >= r.MinConfidence, nil
}

// A balance is what a session's signals weigh for it and against it. fault is what is wrong with
// the first bad signal.
type balance struct {
	good, bad float64
	fault     error
}

// weigh adds a signal, the i-th of all.
func (b *balance) weigh(i int, s *DirectSignal) {
	weight, known := weights[s.Kind]
	field := ""
	switch {
	case s.Kind == Positive || s.Kind == Negative:
		if weight = s.Confidence; !(weight >= 0 && weight <= 1) {
			field = "Confidence"
		}
	case !known:
		field = "Kind"
	}
	switch {
	case field != "" && b.fault == nil:
		b.fault = &heed.InputError{Field: fmt.Sprintf("signals[%d].%s", i, field),
			Reason: "must be a known kind, with a confidence in [0, 1]"}
	case s.Kind == Positive, s.Kind == BuildStatus && s.Passed:
		b.good += weight
	default:
		b.bad += weight
	}
}
