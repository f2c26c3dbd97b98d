package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/limits"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// ErrNoAnswer says that no answer has this id, or none any more. It is a [heed.ErrNotFound].
var ErrNoAnswer = fmt.Errorf("no answer has this id: %w", heed.ErrNotFound)

// errStands says that an arm keeps an outcome, as it can't be replaced.
var errStands = fmt.Errorf("what the arm was told before goes on counting: %w", evidence.ErrForgotten)

// errNoArm says why an arm is not told of an answer.
var errNoArm = errors.New("it is none of the arms any more, so the outcome is dropped")

func checkID(id string) error {
	if id == "" {
		return &heed.InputError{Field: "id", Reason: "must not be empty"}
	}
	return nil
}

// read reads the record of an answer.
func (a *Agent) read(ctx context.Context, id string) (store.Row[row], error) {
	if err := checkID(id); err != nil {
		return store.Row[row]{}, err
	}
	kept, err := a.answers.Get(ctx, a.cfg.Store, store.IDOf(id))
	if errors.Is(err, heed.ErrNotFound) {
		err = ErrNoAnswer
	}
	return kept, err
}

// Find returns the id of the newest answer of a session, for an outcome that knows the session alone, as a ticket. Answers that took another one
// back are left out. Without any answer, the error is [ErrNoAnswer].
func (a *Agent) Find(ctx context.Context, session string) (id string, err error) {
	if session == "" {
		return "", wrap("find", &heed.InputError{Field: "session", Reason: "must not be empty"})
	}
	for kept, err := range a.answers.Find(ctx, a.cfg.Store, store.Query{Keys: []string{store.Key("session", session)}}) {
		if err != nil {
			return "", wrap("find", err)
		}
		if r := &kept.Value; r.Session == session && len(r.Undoes) == 0 {
			return r.ID, nil
		}
	}
	return "", wrap("find", ErrNoAnswer)
}

// change changes the record of an answer, in one commit with what commit adds. commit is given the batch. The slower of two
// callers reads anew.
func (a *Agent) change(ctx context.Context, id string, edit func(*row) error, commit func(context.Context, *row, store.Batch) error) error {
	var after row
	err := a.locked(ctx, id, func() error {
		kept, err := a.read(ctx, id)
		if err != nil {
			return err
		}
		after = kept.Value
		if err := edit(&after); err != nil {
			return err
		}
		return commit(ctx, &after, store.Batch{Records: []store.Record{a.answers.Record(after, kept.Revision)}})
	})
	if err == nil && after.Owed {
		err = a.settle(ctx, id)
	}
	return err
}

// locked calls do, and calls it again if another process was quicker. The goroutines of this process take turns.
func (a *Agent) locked(ctx context.Context, id string, do func() error) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	mine := a.locks[h.Sum32()%uint32(len(a.locks))]
	if err := mine.Lock(ctx); err != nil {
		return err
	}
	defer mine.Unlock()
	return records.Retry(ctx, do)
}

// alone commits a batch.
func (a *Agent) alone(ctx context.Context, _ *row, b store.Batch) error {
	_, err := a.cfg.Store.Commit(ctx, b)
	return err
}

// React takes what a person makes of an answer: a thumb, a score. The click, the trust in the heuristic that answered and the record of
// the answer are one commit. The arm learns of it in a second one, which [Agent.Sweep] makes up for after a crash.
//
// An unknown answer is [ErrNoAnswer], and bad input a [*heed.InputError]. If the store's history no longer has the outcome that the arm was
// told before, that goes on counting, and the error is [evidence.ErrForgotten]. So it is for [Agent.Undo] and [Agent.Outcome]. All else of
// the call counts.
func (a *Agent) React(ctx context.Context, id string, r Reaction) error {
	r.Channel = cmp.Or(r.Channel, learning.ChannelExplicit)
	if r.At.IsZero() {
		r.At = a.cfg.Now()
	}
	verdict := heed.Verdict{
		EventID: id, Person: r.Person, Channel: r.Channel, Target: r.Target, Value: r.Value, Weight: r.Weight, At: r.At,
	}
	if err := cmp.Or(checkID(id), verdict.Validate(), limits.CheckTime("At", r.At, a.cfg.Now())); err != nil {
		return wrap("react", err)
	}
	if a.frozen.Load() {
		return nil
	}
	return wrap("react", a.react(ctx, id, r))
}

func (a *Agent) react(ctx context.Context, id string, r Reaction) error {
	var before row
	var again, holds bool
	err := a.change(ctx, id, func(after *row) error {
		before, again = *after, after.judged(r.Person)
		holds = after.say(said{
			Person: r.Person, Channel: r.Channel, Target: r.Target, Value: r.Value, Weight: cmp.Or(r.Weight, 1), At: r.At, Judged: a.judges(),
		})
		return nil
	}, func(ctx context.Context, after *row, b store.Batch) error { return a.credit(ctx, after, r, again, b) })
	var stands error
	if errors.Is(err, errStands) { // for the arm; all else counts
		stands, err = err, nil
	}
	switch {
	case err != nil:
	case before.Reinforced != "":
		err = a.reinforce(ctx, id, before.Reinforced, r)
	case holds && r.Value > 0 && before.Path == decision.Model:
		err = a.extract(ctx, &before, r)
	}
	return cmp.Or(err, stands)
}

// judges reports whether package learning counts what people say.
func (a *Agent) judges() bool { return a.learning != nil && !a.learning.Config().DryRun }

// credit commits a reaction with the credit that it gives. again says that the person has reacted before.
func (a *Agent) credit(ctx context.Context, after *row, r Reaction, again bool, b store.Batch) error {
	_, err := a.reactions.Feedback(ctx, decision.Reaction{
		ResponseID: after.Response, Person: r.Person, Channel: r.Channel, Session: after.Session, Target: r.Target,
		Value: r.Value, Weight: r.Weight, At: r.At,
		Commit: func(ctx context.Context, c decision.Credit, verdict store.Batch) error {
			return a.judge(ctx, c.Verdict, again, verdict, b)
		},
	})
	if errors.Is(err, heed.ErrNotFound) { // the trace is gone, and the answer is still known here
		err = a.judge(ctx, heed.Verdict{
			HeuristicID: after.Heuristic, EventID: after.ID, Person: r.Person, Session: after.Session, Channel: r.Channel, Target: r.Target,
			Value: r.Value, Weight: r.Weight, At: r.At,
		}, again, b)
	}
	return err
}

// extract has the model write a heuristic from an answer that was praised, once.
func (a *Agent) extract(ctx context.Context, r *row, praise Reaction) error {
	wanted := slices.Contains(a.cfg.Extract, r.Domain) || slices.Contains(a.cfg.Extract, "*")
	if a.extractor == nil || len(r.Undoes) > 0 || a.learning == nil || !wanted {
		return nil
	}
	id := "learned-" + store.IDOf(a.cfg.Name, r.ID)
	known, err := a.learning.Standings(ctx, id)
	if err != nil || len(known) > 0 {
		return err
	}
	grown, err := a.extractor.Extract(ctx, r.Response)
	switch {
	case errors.Is(err, heed.ErrNotFound): // the trace is gone
		return nil
	case err != nil:
		return err
	case grown.New != nil:
		return a.learned(ctx, id, grown.New)
	case !slices.ContainsFunc(r.Compared, func(c heed.Comparison) bool { return c.HeuristicID == grown.ReinforcedID }):
		return nil // the model may have it from its prompt
	}
	return a.reinforce(ctx, r.ID, grown.ReinforcedID, praise)
}

// reinforce gives a person's praise of the model's answer to the heuristic that says the same. If the reaction is no praise any more,
// it is withdrawn.
func (a *Agent) reinforce(ctx context.Context, id, heuristic string, r Reaction) error {
	again := false
	return a.change(ctx, id, func(after *row) error {
		again = after.back(r.Person)
		after.Reinforced = heuristic
		return nil
	}, func(ctx context.Context, after *row, b store.Batch) error {
		return a.judge(ctx, heed.Verdict{
			HeuristicID: heuristic, EventID: id, Person: r.Person, Session: after.Session, Channel: r.Channel, Target: r.Target,
			Value: max(r.Value, 0), Weight: r.Weight, At: r.At,
		}, again, b)
	})
}

// judge counts a verdict, in one commit with batches. Of a heuristic that was deleted since, only they are committed. again says that
// the person has said something before.
func (a *Agent) judge(ctx context.Context, v heed.Verdict, again bool, with ...store.Batch) (err error) {
	if a.learning != nil {
		_, err = a.learning.Judge(ctx, learning.Judgement{Verdict: v, Again: again}, with...)
	}
	if a.learning == nil || errors.Is(err, heed.ErrNotFound) {
		_, err = a.cfg.Store.Commit(ctx, with...)
	}
	return err
}

// Undo takes an answer back: a person says so by a button or a command. Person may be empty.
func (a *Agent) Undo(ctx context.Context, id, person string) error {
	if err := evidence.CheckText("person", person); err != nil {
		return wrap("undo", err)
	}
	if a.frozen.Load() {
		return nil
	}
	now := a.cfg.Now()
	return wrap("undo", a.change(ctx, id, func(after *row) error {
		if after.Undone.IsZero() {
			after.undo(now, person)
		}
		return nil
	}, func(ctx context.Context, after *row, b store.Batch) error {
		if a.learning != nil {
			_, err := a.learning.Undo(ctx, learning.Undo{EventID: id, Person: person, Session: after.Session, At: now}, b)
			if !errors.Is(err, heed.ErrNotFound) {
				return err
			}
		}
		_, err := a.cfg.Store.Commit(ctx, b) // it was never fired, or so long ago that only the answer is known
		return err
	}))
}

// Hear takes in a later message of a session that is not to be answered. It may take an answer back, show how it turned out, or
// pass it over. [Agent.Answer] and [Agent.Prepare] hear their own event. The message's session, person and stream say which
// answers it is about. Hear returns what it changed.
func (a *Agent) Hear(ctx context.Context, m learning.Message) ([]learning.Change, error) {
	if a.frozen.Load() {
		return nil, nil
	}
	changes, err := a.heard(ctx, m)
	return changes, wrap("hear", err)
}

func (a *Agent) heard(ctx context.Context, m learning.Message) ([]learning.Change, error) {
	if a.learning == nil {
		return nil, nil
	}
	if m.At.IsZero() {
		m.At = a.cfg.Now()
	}
	var noted []string
	changes, err := a.learning.Hear(ctx, m, func(ctx context.Context, signals []learning.Signal) (b store.Batch, err error) {
		b, noted, err = a.note(ctx, &m, signals)
		return b, err
	})
	if err != nil {
		return changes, err
	}
	for _, id := range noted {
		if err := a.settle(ctx, id); err != nil && !errors.Is(err, errStands) { // of that the observer is told
			return changes, err
		}
	}
	return changes, nil
}

// note returns the changes that a message makes in the records of answers, and the answers whose outcome the arm has to learn.
func (a *Agent) note(ctx context.Context, m *learning.Message, signals []learning.Signal) (b store.Batch, owing []string, err error) {
	undone := undoneBy(signals)
	changed := make(map[string]store.Row[row])
	for _, s := range signals {
		kept, known := changed[s.EventID]
		if s.EventID == "" {
			continue
		}
		if !known {
			if kept, err = a.read(ctx, s.EventID); errors.Is(err, ErrNoAnswer) { // it was fired past the loop
				continue
			} else if err != nil {
				return b, nil, err
			}
		}
		if kept.Value.hears(&s, m.Person, m.At) {
			changed[s.EventID] = kept
		}
	}
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		kept := changed[id]
		b.Records = append(b.Records, a.answers.Record(kept.Value, kept.Revision))
		if kept.Value.Owed {
			owing = append(owing, id)
		}
	}
	if m.ID != "" && len(undone) > 0 {
		b.Records = append(b.Records, a.undoers.Record(undoer{m.ID, undone, m.At}, store.Once))
	}
	return b, owing, nil
}

// undoneBy returns the answers that signals take back.
func undoneBy(signals []learning.Signal) (ids []string) {
	for _, s := range signals {
		if s.Channel == learning.ChannelUndo && s.EventID != "" && !slices.Contains(ids, s.EventID) {
			ids = append(ids, s.EventID)
		}
	}
	return ids
}

// hears notes what a message said of the answer, and reports whether it said anything.
func (r *row) hears(s *learning.Signal, person string, at time.Time) bool {
	switch {
	case s.Channel == learning.ChannelIgnored:
		r.Ignored = at
		r.settle()
	case s.Type == learning.Neutral:
		return false
	case s.Channel == learning.ChannelUndo:
		if r.Undone.IsZero() {
			r.undo(at, person)
		}
	case s.Channel == learning.ChannelOutcome && (r.Seen == nil || !r.Seen.Told):
		r.turn(seen{Value: sign(s.Type), At: at})
	default:
		return false
	}
	return true
}

func sign(t learning.SignalType) float64 {
	switch t {
	case learning.Positive:
		return 1
	case learning.Negative:
		return -1
	default:
		return 0
	}
}

// Tool asks the rules before a tool is called, if r.Before is set, and returns those that the call breaks: see [feedback.Check]. The
// caller decides what to do then.
//
// Otherwise it takes what a tool gave while an event was answered. An error counts once for its task: the prompt of the
// next event of that task tells of the newest 20, and the task's score falls. Output of a tool is never taken for a person's words, and is not kept.
//
// The id is that of the event, which need not have its answer yet. Then r.Task says to which task an error belongs.
func (a *Agent) Tool(ctx context.Context, id string, r ToolResult) ([]feedback.Violation, error) {
	if err := checkID(id); err != nil {
		return nil, wrap("tool", err)
	}
	if r.Before {
		if r.Name == "" {
			return nil, wrap("tool", &heed.InputError{Field: "Name", Reason: "must not be empty, before a call"})
		}
		violations, err := a.violations(ctx, feedback.Checked{ID: store.IDOf(id, cmp.Or(r.ID, store.IDOf(r.Input))), Tool: r.Name, Text: r.Input})
		return violations, wrap("tool", err)
	}
	return nil, wrap("tool", a.tool(ctx, id, r))
}

// violations asks the rules about an answer or a call.
func (a *Agent) violations(ctx context.Context, c feedback.Checked) ([]feedback.Violation, error) {
	if a.feedback == nil {
		return nil, nil
	}
	if c.Agent = a.cfg.Name; a.frozen.Load() {
		c.ID = ""
	}
	return a.feedback.Rules().Check(ctx, c)
}

// tool takes the error of a tool.
func (a *Agent) tool(ctx context.Context, id string, r ToolResult) error {
	if r.Err == nil || a.patterns == nil || a.frozen.Load() {
		return nil
	}
	if r.Task == "" {
		kept, err := a.read(ctx, id)
		if err != nil && !errors.Is(err, ErrNoAnswer) {
			return err
		}
		r.Task = cmp.Or(kept.Value.Task, id)
	}
	message := r.Err.Error()
	name := store.IDOf("tool", a.cfg.Name, id, cmp.Or(r.ID, store.IDOf(r.Name, r.Text, message)))
	if err := a.redact(&message); err != nil {
		return err
	}
	_, err := a.patterns.RecordError(ctx, patterns.TaskError{ID: name, Task: r.Task, Err: r.Err, Message: message, Tool: r.Name, At: r.At})
	return err
}

// Outcome takes what came of an answer. It counts for the heuristic that answered, for the arm, and for the ways of working that
// the answer to a task follows. A later outcome of the same answer, by its At, replaces it, but for the ways of working. Where people said something of
// the answer as well, the arm's worth is the mean of what they said and the outcome.
func (a *Agent) Outcome(ctx context.Context, id string, o Outcome) error {
	if o.At.IsZero() {
		o.At = a.cfg.Now()
	}
	if err := cmp.Or(o.validate(), limits.CheckTime("At", o.At, a.cfg.Now())); err != nil {
		return wrap("outcome", err)
	}
	if a.frozen.Load() {
		return nil
	}
	return wrap("outcome", a.outcome(ctx, id, o))
}

func (a *Agent) outcome(ctx context.Context, id string, o Outcome) error {
	kept, err := a.read(ctx, id)
	if err != nil {
		return err
	}
	r := &kept.Value
	if err := a.redact(&o.Failure); err != nil {
		return err
	}
	if o.Ways != nil {
		r.Followed = slices.Clone(o.Ways)
	}
	if a.patterns != nil && r.Task != "" && o.Success != nil {
		if _, err := a.patterns.Record(ctx, patterns.Outcome{
			ID: store.IDOf("outcome", a.cfg.Name, id), Task: r.Task, Description: r.About, Patterns: r.Followed,
			Duration: o.Duration, Errors: o.Errors, Retries: o.Retries, Success: *o.Success, FailureMode: o.Failure,
			Source: o.Source, At: o.At,
		}); err != nil {
			return err
		}
	}
	value, _ := o.value()
	value = max(value-a.cfg.Price*o.Cost, -1)
	again := false
	return a.change(ctx, id, func(after *row) error {
		again = after.judged(o.Source)
		if !after.hasNewer(&o) {
			after.turn(seen{Value: value, Source: o.Source, Told: true, At: o.At, Judged: a.judges(), Withdrawn: o.Withdraw})
			after.Spent.Told = o.Cost
			after.Followed = r.Followed
		}
		return nil
	}, func(ctx context.Context, after *row, b store.Batch) error {
		return a.judge(ctx, heed.Verdict{
			HeuristicID: after.Heuristic, EventID: id, Person: o.Source, Session: after.Session, Channel: "outcome",
			Value: value, At: o.At,
		}, again, b)
	})
}

// silence lets silence count for the arms.
func (a *Agent) silence(ctx context.Context, now time.Time) error {
	if clock := a.cfg.Now(); now.IsZero() || now.After(clock) {
		now = clock
	}
	var due []row
	for kept, err := range a.answers.Find(ctx, a.cfg.Store, store.Query{Keys: []string{store.Key("state", open)}, Until: now, Oldest: true}) {
		if err != nil {
			return err
		}
		if !kept.Value.Due.After(now) {
			due = append(due, kept.Value)
		}
	}
	var errs []error
	for _, waits := range due {
		if err := a.silent(ctx, &waits, now); err != nil && !errors.Is(err, ErrNoAnswer) {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// silent lets silence about one answer count. If the strategy of package learning fails, the answer waits for one that works.
func (a *Agent) silent(ctx context.Context, waits *row, now time.Time) error {
	approves, err := a.approves(waits, now)
	if err != nil {
		return err
	}
	fate, err := a.fate(ctx, waits)
	if err != nil {
		return err
	}
	return a.change(ctx, waits.ID, func(r *row) error {
		if !r.Due.IsZero() {
			r.see(fate, approves)
		}
		return nil
	}, a.alone)
}

// approves reports whether silence about an answer is approval of its arm.
func (a *Agent) approves(r *row, now time.Time) (approves bool, err error) {
	if a.cfg.ArmsIgnoreSilence || a.learning == nil {
		return !a.cfg.ArmsIgnoreSilence, nil
	}
	err = host.Call("Learning.Strategy", func() error {
		s, err := a.learning.Config().Strategy.InterpretTimeout(learning.Answer{
			HeuristicID: r.Heuristic, EventID: r.ID, Domain: r.Domain, Age: now.Sub(r.At),
		})
		approves = s.Type == learning.Positive && s.Magnitude > 0
		return err
	})
	return approves, err
}

// fate returns what package learning saw of an answer, which this record may lack after a crash.
func (a *Agent) fate(ctx context.Context, r *row) (f learning.Fate, err error) {
	if a.learning != nil {
		f, err = a.learning.Fate(ctx, r.Heuristic, r.ID)
	}
	if errors.Is(err, heed.ErrNotFound) {
		err = nil
	}
	return f, err
}

// settleAll tells the strategy what it has not been told.
func (a *Agent) settleAll(ctx context.Context) error {
	var ids []string
	for kept, err := range a.answers.Find(ctx, a.cfg.Store, store.Query{Keys: []string{store.Key("state", owed)}, Oldest: true}) {
		if err != nil {
			return err
		}
		ids = append(ids, kept.Value.ID)
	}
	var errs []error
	for _, id := range ids {
		if err := a.settle(ctx, id); err != nil && !errors.Is(err, ErrNoAnswer) && !errors.Is(err, errStands) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// settle tells the strategy what an answer was worth, in one commit with the record that says so. Each statement is an outcome of its
// own source, and all together count as one. This replaces what the strategy was told before. If that can't be replaced, it stands, and the error is [errStands].
// An arm that was taken out of the configuration is told nothing more, but what no longer holds is taken back. An arm of another learner keeps
// what it was told.
func (a *Agent) settle(ctx context.Context, id string) error {
	return a.locked(ctx, id, func() error {
		kept, err := a.read(ctx, id)
		if err != nil || !kept.Value.Owed {
			return err
		}
		r, learner := kept.Value, a.Strategy()
		before := r.Stands
		r.Owed = false
		var gone []string
		var outcomes []strategy.Outcome
		if learner != nil {
			gone, outcomes = r.retell(learner.Config())
		}
		switch {
		case len(gone)+len(outcomes) > 0 && r.Choice.Learner() != learner.Config().Name:
			a.watch.Failed(ctx, "tell the arm "+string(r.Choice.Arm)+" of "+id, errNoArm)
			r.Stands, gone, outcomes = before, nil, nil
		case len(outcomes) > 0 && !a.has(ctx, learner, r.Choice, id):
			r.untell(outcomes)
			outcomes = nil
		}
		b := store.Batch{Records: []store.Record{a.answers.Record(r, kept.Revision)}}
		switch {
		case len(outcomes) > 0:
			_, err = learner.Revise(ctx, gone, outcomes, r.changer(), b)
		case len(gone) > 0:
			err = learner.Retract(ctx, *r.Choice, gone, r.changer(), "withdrawn", b)
		default:
			return a.alone(ctx, &r, b)
		}
		if !errors.Is(err, evidence.ErrForgotten) && !errors.Is(err, heed.ErrNotFound) {
			return err
		}
		a.watch.Failed(ctx, "replace what the arm was told of "+id, err)
		r.Stands = before
		if err := a.alone(ctx, nil, store.Batch{Records: []store.Record{a.answers.Record(r, kept.Revision)}}); err != nil {
			return err
		}
		return errStands
	})
}

// has reports whether the learner has the arm of a choice. If not, it tells the observer.
func (a *Agent) has(ctx context.Context, learner *strategy.Learner, c *strategy.Choice, id string) bool {
	if learner == nil || c == nil || slices.ContainsFunc(learner.Config().Arms, func(arm strategy.Arm) bool { return arm.ID == c.Arm }) {
		return true
	}
	a.watch.Failed(ctx, "tell the arm "+string(c.Arm)+" of "+id, errNoArm)
	return false
}

// retell notes what the strategy is told now. It returns the outcomes that are new to it, and the ids of those that no longer hold.
func (r *row) retell(cfg strategy.Config) (gone []string, outcomes []strategy.Outcome) {
	before := slices.Clone(r.Stands)
	r.Stands = nil
	for _, s := range r.ofArm() {
		if s.Share == 0 {
			continue
		}
		i := slices.IndexFunc(before, func(t told) bool { return t.part == s.part && t.Cost == r.Spent.Told })
		if i >= 0 {
			r.Stands, before = append(r.Stands, before[i]), slices.Delete(before, i, i+1)
			continue
		}
		r.Told++
		is := told{fmt.Sprintf("%s/%d", r.ID, r.Told), cfg.Disabled || s.Trust < cfg.MinConfidence, r.Spent.Told, s.part}
		r.Stands, outcomes = append(r.Stands, is), append(outcomes, outcomeOf(*r.Choice, is.ID, s, r.Spent))
	}
	for _, t := range before {
		if !t.Dropped {
			gone = append(gone, t.ID)
		}
	}
	return gone, outcomes
}

// untell takes back the note that the strategy is told outcomes.
func (r *row) untell(outcomes []strategy.Outcome) {
	r.Stands = slices.DeleteFunc(r.Stands, func(t told) bool {
		return slices.ContainsFunc(outcomes, func(o strategy.Outcome) bool { return o.ID == t.ID })
	})
}

func outcomeOf(c strategy.Choice, id string, s statement, took spent) strategy.Outcome {
	at := s.at
	if at.Before(c.At) { // an event may be told long after it happened, and its arm be chosen then
		at = c.At
	}
	o := strategy.Outcome{
		Choice: c, ID: id, Value: s.Value, Confidence: s.Trust, Share: s.Share, Channel: s.channel, Source: s.source, At: at,
	}
	took.into(&o) // each outcome has all that the answer took, as its value is weighed against that
	return o
}

// observe tells the strategy what a choice was worth.
func (a *Agent) observe(ctx context.Context, c strategy.Choice, id string, s statement, took spent) error {
	learner := a.Strategy()
	if learner == nil || !a.has(ctx, learner, &c, id) {
		return nil
	}
	_, err := learner.Observe(ctx, outcomeOf(c, id, s, took))
	return err
}
