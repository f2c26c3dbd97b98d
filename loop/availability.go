package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// How the availability of models is learned. It is kept apart from what is learned about arms,
// because an arm is not worse for an outage of its provider. Each process counts failures in
// memory, and shares a change through the store, so that other processes need no failures of their
// own. A model that is unavailable is asked again by single events: a probe.

// How a model becomes unavailable, and comes back.
const (
	// leftOut failures in a row make a model unavailable: arms that use it are left out.
	leftOut = 3
	// After refused failures in a row, an event is refused at once if no other model or heuristic can
	// answer it. If a model fails half of its calls, one run in a thousand is as long.
	refused = 10
	// A model that is unavailable is asked again after about firstProbe, and then after twice the
	// time before, up to lastProbe, or after the time that the provider asked for, up to longestWait.
	firstProbe  = time.Second
	lastProbe   = 15 * time.Second
	longestWait = 2 * time.Minute
	// If there are others, they answer at least this many events before it is asked again, so that
	// few events are lost to it.
	mostPassed = 3
	// One answer makes a model available. If it became unavailable several times lately, it takes
	// as many answers in a row, up to mostAnswers.
	mostAnswers = 5
	// fading is how long a failure counts.
	fading = 5 * time.Minute
)

// A health is what is known about the availability of a model. It is the record that replicas
// share.
//
// A model goes through three states: available; unavailable, while arms that use it are left out;
// and probed, while a single event finds out whether it is back.
type health struct {
	Model    string      `json:"model"`
	At       time.Time   `json:"at"`                // of the last failure, or of the last change
	Failures int         `json:"failures"`          // in a row
	Failure  llm.Failure `json:"failure,omitempty"` // the last one
	Since    time.Time   `json:"since,omitzero"`    // when it became unavailable; zero if not
	Times    int         `json:"times,omitempty"`   // how often it became unavailable lately
	Answers  int         `json:"answers,omitempty"` // in a row, while it is unavailable
	// Again is when it may be asked again, and Wait how long it was left out before that.
	Again time.Time     `json:"again,omitzero"`
	Wait  time.Duration `json:"wait,omitempty"`

	probed bool // somebody asks it to find out whether it is back
	passed int  // how many events others have answered since it was asked last
	local
}

// A local is what only this process has of a [health].
type local struct {
	revision uint64    // of the record that was taken over
	news     bool      // other processes need the record
	notified time.Time // when an outage began that the observer knows of; zero without
	cause    error     // of the latest failure here, for the observer
}

// fade forgets failures that are too old to be evidence about the present. It also forgets failures
// in the future, after a clock was put back.
func (h *health) fade(now time.Time) {
	if now.Sub(h.At).Abs() > fading {
		*h = health{Model: h.Model, At: now, local: h.local}
	}
}

// down reports whether the model is unavailable.
func (h *health) down(now time.Time) bool {
	return h != nil && !h.Since.IsZero() && now.Sub(h.At).Abs() <= fading
}

// left reports whether the model is not to be asked now. A wait that is longer than the longest is
// the work of a clock that was put back.
func (h *health) left(now time.Time) bool {
	return h.down(now) && now.Before(h.Again) && h.Again.Sub(now) <= longestWait
}

// spared reports whether the model is not to be asked now if there is another one.
func (h *health) spared(now time.Time) bool {
	return h.left(now) || h.down(now) && h.passed < mostPassed
}

// fail counts a failure. It reports whether other processes need the news.
//
// A call that began before the model was left out is no probe, so it does not double the wait. It
// may still bring a time to wait that the provider asks for.
func (h *health) fail(now time.Time, f llm.Failure, retryAfter time.Duration) (share bool) {
	h.fade(now)
	h.At, h.Failure, h.Answers = now, f, 0
	h.Failures++
	probed := h.probed
	h.probed = false
	switch {
	case h.left(now) && !probed: // it was called before
		wanted := now.Add(min(retryAfter, longestWait))
		if wanted.After(h.Again) {
			h.Again = wanted
		}
		return false
	case !h.Since.IsZero():
		h.Wait = min(max(2*h.Wait, firstProbe), lastProbe)
	case h.Failures >= leftOut:
		h.Since, h.Wait, h.passed = now, firstProbe, 0
		h.Times++
	default:
		return false
	}
	h.Again = now.Add(max(h.apart(h.Wait), min(retryAfter, longestWait)))
	return true
}

// apart returns half of a wait to all of it, another part from one failure to the next. So the
// calls that find out whether a model is back do not all fall into the failing times of a model
// that fails at intervals.
func (h *health) apart(wait time.Duration) time.Duration {
	const golden = 0.6180339887498949 // its multiples are spread evenly
	_, part := math.Modf(float64(h.Failures) * golden)
	return wait/2 + time.Duration(part*float64(wait)/2)
}

// answer counts an answer. It reports whether other processes need the news. While the model is on
// trial, it may be asked by every event.
func (h *health) answer(now time.Time) (share bool) {
	h.fade(now)
	h.Failures = 0
	if h.Since.IsZero() {
		return false
	}
	h.At, h.Again, h.probed, h.passed = now, now, false, mostPassed
	if h.Answers++; h.Answers >= min(h.Times, mostAnswers) {
		h.Since, h.Answers, h.Wait, h.Failure = time.Time{}, 0, 0, ""
	}
	return true
}

// probe leaves the model to the one caller who asks it now. Other callers pass over the model until
// the probe has ended, or its time is over.
func (h *health) probe(now time.Time) {
	if h.down(now) && !h.left(now) {
		h.Again, h.probed, h.passed = now.Add(max(h.Wait, firstProbe)), true, 0
	}
}

// unavailable returns what is known about a model that fails.
func (h *health) unavailable(now time.Time) error {
	return fmt.Errorf("%s failed %d times in a row since %s, and is asked again at %s: %w", h.Model,
		h.Failures, h.Since.Format(time.TimeOnly), h.Again.Format(time.TimeOnly),
		&llm.Error{Failure: h.Failure, RetryAfter: h.Again.Sub(now)})
}

// ErrNoModel reports that an event was not answered, because every model that could have answered
// it failed at least ten times in a row, and it is too early to ask one again. It comes with an
// [llm.Error] for each model, so errors.Is(err, llm.RateLimited) and [llm.RetryAfter] work with it.
var ErrNoModel = errors.New("no model is available")

// unavailableError returns the error of models. The one that is asked again first is the first.
func unavailableError(models []*health, now time.Time) error {
	slices.SortStableFunc(models, func(a, b *health) int { return a.Again.Compare(b.Again) })
	err := ErrNoModel
	for _, h := range models {
		err = fmt.Errorf("%w; %w", err, h.unavailable(now))
	}
	return err
}

// An availability is what a process saw of the availability of models. It is safe for concurrent
// use by multiple goroutines. A model that never failed has no place in it.
//
// An outage of all models is an incident, and is reported once, because its cause is likely to be
// on this side, for example the network.
type availability struct {
	mu       sync.Mutex
	of       map[string]*health
	incident time.Time // when several models had become unavailable; zero without an outage
}

// spared reports whether a model is not to be asked now if there is another one, and left whether
// it is not to be asked even if it is the only one.
func (v *availability) spared(name string, now time.Time) (spared, left bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.of[name]
	return h.spared(now), h.left(now)
}

// begin is called for each event, with the model that answers it, if it may be asked. All others
// that are down are passed over.
func (v *availability) begin(name string, now time.Time) (spared, left bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for of, h := range v.of {
		switch is := h.spared(now); {
		case of != name || is:
			h.passed++
			if of == name {
				spared, left = true, h.left(now)
			}
		default:
			h.probe(now)
		}
	}
	return spared, left
}

// probe is called when a model is going to be asked.
func (v *availability) probe(name string, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h := v.of[name]; h != nil {
		h.probe(now)
	}
}

// dead returns what is known of models, if all of them have failed for so long that it is of no use
// to ask one of them now. Otherwise it returns nil.
func (v *availability) dead(models chain, now time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var dead []*health
	for _, m := range models {
		h := v.of[m.name]
		if !h.left(now) || h.Failures < refused {
			return nil
		}
		dead = append(dead, h)
	}
	if len(dead) == 0 {
		return nil
	}
	return unavailableError(dead, now)
}

// note counts what became of asking a model. An answer that is of no use shows that the model can
// be reached.
func (v *availability) note(name string, t *attempt, now time.Time) {
	failed := t.whose() == aModel
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.of[name]
	switch {
	case failed:
		known = v.known(name)
		known.cause = t.err
		known.news = known.fail(now, t.failure(), llm.RetryAfter(t.err)) || known.news
	case known != nil && (t.answered() || t.whose() == someArm): // it works, whatever that is worth
		known.news = known.answer(now) || known.news
	}
}

// takeNews returns what other processes need to know of the models, once.
func (v *availability) takeNews() (news []health) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(v.of)) {
		if h := v.of[name]; h.news {
			h.news = false
			news = append(news, *h)
		}
	}
	return news
}

// known returns what is known of a model, from now on. The lock must be held.
func (v *availability) known(name string) *health {
	if v.of[name] == nil {
		v.of[name] = &health{Model: name}
	}
	return v.of[name]
}

// take takes over what another process stored about a model. A newer revision replaces what this
// process counted, because the other process has seen later calls.
func (v *availability) take(row store.Row[health]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := row.Value
	known := v.known(h.Model)
	if row.Revision > known.revision {
		h.passed, h.local = known.passed, known.local
		h.revision = row.Revision
		v.of[h.Model] = &h
	}
}

// stored notes which revision the record of a model has now, and reports whether it is a new one.
func (v *availability) stored(name string, revision uint64) (news bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.known(name)
	news = revision > h.revision
	h.revision = max(h.revision, revision)
	return news
}

// A notice is what an observer receives about a model, or about several, when an outage begins or
// ends.
type notice struct {
	what    string
	since   time.Time // when it began, if it is over
	failure error
}

// changes returns what changed since the last call. names are the models that may be asked, with
// the fallbacks: if each of them is unavailable, or several are, that is an incident. Each
// beginning and each end is returned once in this process.
func (v *availability) changes(names []string, now time.Time) (all []notice) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var down []*health
	for _, name := range slices.Sorted(maps.Keys(v.of)) {
		h := v.of[name]
		if h.down(now) {
			down = append(down, h)
			if h.notified.IsZero() {
				all = append(all, notice{
					what: name, failure: cmp.Or(h.cause, error(&llm.Error{Failure: h.Failure})),
				})
				h.notified = h.Since
			}
		} else if !h.notified.IsZero() {
			all = append(all, notice{what: name, since: h.notified})
			h.notified, h.cause = time.Time{}, nil
		}
	}
	every := len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
		return !v.of[name].down(now)
	})
	switch is := every || len(down) > 1; {
	case is && v.incident.IsZero():
		v.incident = now
		all = append(all, notice{what: incident, failure: unavailableError(down, now)})
	case !is && !v.incident.IsZero():
		all = append(all, notice{what: incident, since: v.incident})
		v.incident = time.Time{}
	}
	return all
}

// incident is the notice for an observer if several models are unavailable, or each of them.
const incident = "models"

// healthOf returns the kind of the records of models.
func healthOf(name string) store.View[health] {
	return store.View[health]{
		Kind: store.Kind{Name: name + ".model", Limits: store.Limits{For: time.Hour, Most: 1000}},
		Place: func(h health) (string, time.Time, []string) {
			return store.IDOf(h.Model), h.At, nil
		},
	}
}

// wantHealth names the records of the models that may be asked. They are records of the agent that
// New made, because all tenants share the models. The agents of tenants know what it read lately:
// see tenantPool.isFrozen.
func (a *Agent) wantHealth(w *store.Wants) {
	if a.root != nil {
		return
	}
	for _, name := range a.asked {
		w.Refs = append(w.Refs, a.healths.Ref(store.IDOf(name)))
	}
}

// takeHealth takes over what other processes recorded about the models. A record that can't be read
// is reported once and counts as none, because no answer may depend on it.
func (a *Agent) takeHealth(tx *store.Tx) error {
	if a.root != nil {
		return nil
	}
	for _, name := range a.asked {
		row, err := a.healths.In(tx, store.IDOf(name))
		switch {
		case errors.Is(err, heed.ErrDamaged):
			if a.models.stored(name, row.Revision) {
				a.watch.Failed(tx.Context(), "read the availability of "+name, err)
			}
		case err != nil:
			return err
		case row.Revision > 0:
			a.models.take(row)
		}
	}
	return nil
}

// reportUnrecognised notifies the observer of an error of a model that heed does not recognise.
func (a *Agent) reportUnrecognised(ctx context.Context, name string, got *attempt) {
	if got.unrecognised() {
		a.watch.Failed(ctx, name, fmt.Errorf("heed does not recognise this error, so it does "+
			"not count: wrap it with an llm.Failure, or look for a fault in the host's code: %w",
			got.err))
	}
}

// healthTimeout bounds the commit of what is known of models, because an answer waits for it.
const healthTimeout = time.Second

// shareHealth stores what other processes need to know about models. The caller's context does not
// end it: what one process learned saves others a failing call. A failure to store it is reported,
// and the answer goes on.
func (a *Agent) shareHealth(ctx context.Context) {
	news := a.models.takeNews()
	if len(news) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
	defer cancel()
	for _, h := range news {
		err := store.Do(ctx, a.top().cfg.Store, func(tx *store.Tx) error {
			row, err := a.healths.In(tx, store.IDOf(h.Model))
			if err != nil && !errors.Is(err, heed.ErrDamaged) {
				return err
			}
			a.healths.Put(tx, h, row.Revision)
			tx.Then(func(r store.Receipt, err error) {
				if err == nil {
					a.models.stored(h.Model, r.Revision)
				}
			})
			return nil
		})
		a.watch.Failed(ctx, "store the availability of "+h.Model, err)
	}
}

// reportOutages shares what is known of models with other processes, and notifies the observer of
// models that became unavailable or came back. They are the agent's of all tenants.
func (a *Agent) reportOutages(ctx context.Context) {
	a.shareHealth(ctx)
	for _, o := range a.models.changes(a.asked, a.cfg.Testing.Now()) {
		a.top().outage(ctx, o.what, o.since, o.failure)
	}
}

// available returns the arms whose models may be asked now. nil means all of them: also if none is
// left, because then the choice goes on by past outcomes.
func (a *Agent) available() (arms []strategy.ArmID) {
	now, left := a.cfg.Testing.Now(), false
	for i := range a.arms {
		if spared, _ := a.models.spared(a.nameOf(&a.arms[i]), now); spared {
			left = true
			continue
		}
		arms = append(arms, strategy.ArmID(a.arms[i].ID))
	}
	if !left {
		return nil
	}
	return arms
}

// defaultModel is the name of [Config].Model, or of the model that a framework asks.
const defaultModel = "model"

// nameOf returns the name of the model that answers for an arm.
func (a *Agent) nameOf(arm *Arm) string { return cmp.Or(arm.asks, defaultModel) }

// nameModels gives each arm the name of its model, and notes the names of the models in use: of the
// arms' or of the one that answers without arms, and of the fallbacks, which are the last. If the
// same model is given in several places, it has the name of the first one, because its availability
// is one.
func (a *Agent) nameModels() {
	type named struct {
		model decision.LLM
		name  string
	}
	known := []named{{a.cfg.Model, defaultModel}}
	name := func(m decision.LLM, own string) string {
		if m != nil && reflect.ValueOf(m).Comparable() {
			for _, k := range known {
				if k.model == m {
					return k.name
				}
			}
			known = append(known, named{m, own})
		}
		return own
	}
	for _, model := range slices.Sorted(maps.Keys(a.cfg.Models)) {
		name(a.cfg.Models[model], "model "+model)
	}
	if aboutNotes(a.arms) {
		a.asked = append(a.asked, defaultModel)
	}
	for i := range a.arms {
		arm := &a.arms[i]
		switch {
		case arm.Model != nil:
			arm.asks = name(arm.Model, "arm "+arm.ID)
		case arm.ModelName != "":
			arm.asks = name(a.cfg.Models[arm.ModelName], "model "+arm.ModelName)
		default:
			arm.asks = defaultModel
		}
		if !slices.Contains(a.asked, arm.asks) {
			a.asked = append(a.asked, arm.asks)
		}
	}
	for i, m := range a.cfg.Fallbacks {
		a.asked = append(a.asked, name(m, fmt.Sprint("fallback ", i)))
	}
}
