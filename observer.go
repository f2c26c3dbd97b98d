package heed

import (
	"context"
	"log/slog"
	"reflect"
	"time"
)

// An Observer receives a notice of what heed does while it happens: for metrics, for logs, or for a
// page that follows live. The Config of each package takes one. nil switches it off.
//
// heed calls it after a change is stored, outside heed's locks, and waits for it at most 100 ms. A
// panic is contained, and reported to the observer as a [Failed]. While eight calls hang, notices
// are dropped; the next [Failed] reports how many. The context has the values of the caller's
// context and does not end with it. An Observer must be safe for concurrent use by multiple
// goroutines.
type Observer func(context.Context, Notice)

// A Notice is what an [Observer] receives: one of the types below, which only heed makes. Notices
// do not name people or quote texts, with one exception: the Err of a [Failed] or [Outage] wraps
// the unchanged error, and the error of a model may quote the prompt.
//
// The context of a call that is about a tenant has the tenant: see [TenantOf].
//
// In all of them, Component is the source, for example "strategy/routing": the package and, if it
// has one, Config.Name, whose default is the package's name. At is when, by the component's clock.
type Notice interface{ notice() slog.Level }

type (
	// Selected reports that a learner chose an arm.
	Selected struct {
		Component               string
		At                      time.Time
		ID                      string // of the choice
		Category, Context, Item string
		Arm                     string
	}
	// Observed reports that an outcome of a choice was counted.
	Observed struct {
		Component               string
		At                      time.Time
		ID                      string // of the choice
		Category, Context, Item string
		Arm                     string
		Channel                 string  // how the outcome is known
		Reward                  float64 // in [0, 1]
		Confidence              float64 // in (0, 1]
	}
	// Duplicate reports that something was delivered that had been counted before. It was not counted
	// again.
	Duplicate struct {
		Component string
		At        time.Time
		What      string // such as "outcome" or "feedback"
		ID        string
	}
	// Decided reports that an event was answered, or that it was not.
	Decided struct {
		Component string
		At        time.Time
		ID        string // of the answer
		Path      string // how it was answered
		Reason    string // why not by the path before it, or ""
		Heuristic string // "" if no heuristic answered
		Took      time.Duration
	}
	// Counted reports that evidence about a heuristic, a pattern or a rule was counted.
	Counted struct {
		Component string
		At        time.Time
		Subject   string  // its id
		Channel   string  // how the evidence is known, such as "undo"
		Reward    float64 // in [0, 1]
		Weight    float64
		// Before and After are what was believed, in [0, 1]. Both are 0 if no belief was computed.
		Before, After float64
	}
	// Swept reports that a sweep changed something.
	Swept struct {
		Component string
		At        time.Time
		Count     int // how many things it changed
	}
	// Changed reports a change of a rule, a pattern or a belief, by What:
	//
	//   - "proposed": a new rule or change was proposed.
	//   - "needs_approval": a proposal waits for people.
	//   - "ambiguous": a feedback can't be classified by itself, and waits for a person.
	//   - "activated": a rule or a pattern is in use from now on.
	//   - "retired": a rule or a pattern is no longer in use.
	//   - "harmful": something does harm, by the evidence.
	//   - "inverted": a belief turned into its opposite: what was recommended is now warned of, or
	//     the best arm changed its rank.
	Changed struct {
		Component string
		At        time.Time
		What      string
		Subject   string // the id of the proposal, the feedback, the rule or the pattern
		Reason    string // for what is retired, harmful or inverted
		Approvals int    // that a proposal has, if it waits for people
		Quorum    int    // that it needs then
	}
	// Compared reports at each sweep of an agent with a control group how often answers succeed
	// with and without learning, and the bounds of the difference: see loop.Gain.
	Compared struct {
		Component        string
		At               time.Time
		Learned, Control float64 // in [0, 1]
		Low, High        float64
	}
	// DeadLettered reports that an event from a stream was given up because it can't be processed.
	DeadLettered struct {
		Component string
		At        time.Time
		ID        string // of the event
		Reason    string
	}
	// Outage reports that something heed depends on stopped working: the store, or a model. It is
	// sent once, when the outage begins.
	Outage struct {
		Component string
		At        time.Time
		What      string // "store"; "model", "arm" or "fallback", named; or "models": several, or all
		Err       error  // the latest failure
	}
	// Restored reports that an outage ended.
	Restored struct {
		Component string
		At        time.Time
		What      string    // as in the Outage
		Since     time.Time // when the outage began
	}
	// Failed reports a failure that no caller receives, or that an answer hides because a fallback
	// was used.
	Failed struct {
		Component string
		At        time.Time
		What      string // what failed, such as "model"
		Err       error
	}
)

func (Selected) notice() slog.Level     { return slog.LevelDebug }
func (Observed) notice() slog.Level     { return slog.LevelDebug }
func (Duplicate) notice() slog.Level    { return slog.LevelDebug }
func (Decided) notice() slog.Level      { return slog.LevelDebug }
func (Counted) notice() slog.Level      { return slog.LevelDebug }
func (Swept) notice() slog.Level        { return slog.LevelDebug }
func (Compared) notice() slog.Level     { return slog.LevelDebug }
func (DeadLettered) notice() slog.Level { return slog.LevelWarn }
func (Outage) notice() slog.Level       { return slog.LevelError }
func (Restored) notice() slog.Level     { return slog.LevelInfo }
func (Failed) notice() slog.Level       { return slog.LevelError }

func (c Changed) notice() slog.Level {
	if c.What == "harmful" || c.What == "inverted" {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

type tenantKey struct{}

// WithTenant returns a context whose notices are about a tenant. Package loop sets it for the agent
// of a tenant. Set it where packages are used without an agent.
func WithTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// TenantOf returns the tenant that a notice is about, or "". An [Observer] calls it with its
// context.
func TenantOf(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}

// LogTo returns an [Observer] that logs each notice. The message is its type, for example
// "heed.Selected", and each field is an attribute of its name. A field that is zero is left out,
// but not a reward. A notice about a tenant has the attribute "Tenant". A [Failed] and an [Outage]
// are logged as errors; what is harmful or inverted and a [DeadLettered] as warnings; any other
// [Changed] and a [Restored] for information, and all else for debugging, which [slog.Default] does
// not show.
func LogTo(logger *slog.Logger) Observer {
	return func(ctx context.Context, n Notice) {
		if !logger.Enabled(ctx, n.notice()) {
			return
		}
		v := reflect.ValueOf(n)
		attrs := make([]slog.Attr, 0, v.NumField()+1)
		if tenant := TenantOf(ctx); tenant != "" {
			attrs = append(attrs, slog.String("Tenant", tenant))
		}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name == "Reward" || !v.Field(i).IsZero() {
				attrs = append(attrs, slog.Any(name, v.Field(i).Interface()))
			}
		}
		logger.LogAttrs(ctx, n.notice(), v.Type().String(), attrs...)
	}
}
