package decision

import (
	"context"
	"time"

	"github.com/heedhq/heed"
)

// A failure is what went wrong while a result was made.
type failure struct {
	what string
	err  error
}

// modelFailed is the failure that the observer receives if there is no answer.
const modelFailed = "model"

func (res *Result) fail(what string, err error) {
	res.failures = append(res.failures, failure{what, err})
}

// Notify notifies [Config].Observer of a decision: of what failed ([heed.Failed]), and of the
// result ([heed.Decided]). [Decider.Decide] does so itself. A host that uses [Decider.Trusted] and
// [Decider.Reply] calls Notify once, as soon as the answer is given. began is when the decision
// began. That the caller stopped the model is no failure. If the host clears Reason of a
// [Fallback], the model's failure is left out, because something else stopped the model.
func (d *Decider) Notify(ctx context.Context, res Result, began time.Time) {
	if d.watch == nil {
		return
	}
	d.notifyFailures(ctx, &res)
	now := d.cfg.Now()
	d.watch.Tell(ctx, heed.Decided{
		Component: d.watch.Name(), At: now, ID: res.ResponseID, Path: string(res.Path),
		Reason: res.Reason, Heuristic: res.CreditID, Took: now.Sub(began),
	})
}

func (d *Decider) notifyFailures(ctx context.Context, res *Result) {
	for _, f := range res.failures {
		if f.what != modelFailed || res.Reason != "" && res.Reason != stopped {
			d.watch.Failed(ctx, f.what, f.err)
		}
	}
}
