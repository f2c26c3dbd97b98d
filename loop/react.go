package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// React records what a person makes of an answer, such as a thumb or a score. One commit has the
// record of the answer, the trust in the heuristic that answered, and the evidence on the arm. A
// host that wants its own records in the same commit uses [Agent.ReactIn].
//
// An unknown answer is [ErrNoAnswer], and bad input a [*heed.InputError]. If the store's history no
// longer has the arm's old credit, the old credit still counts, all else of the call takes effect,
// and the error is [evidence.ErrForgotten]. The same is true of [Agent.Undo] and
// [Agent.Outcome].
func (a *Agent) React(ctx context.Context, id string, r Reaction) error {
	now := a.cfg.Testing.Now()
	s, err := a.reaction(id, r, now)
	if err != nil {
		return wrap("react", err)
	}
	var before answer.Answer
	var holds bool
	err = a.change(ctx, id, func(tx *store.Tx, row *answer.Answer) (err error) {
		before = *row
		holds, err = a.reactIn(tx, row, s, now)
		return err
	})
	var stands error
	if errors.Is(err, errStands) { // for the arm; all else counts
		stands, err = err, nil
	}
	// A heuristic is written once the reaction is stored, because the model may take long or fail.
	if err == nil && holds && r.Value > 0 &&
		before.Reply.Path == string(decision.Model) && before.Reply.Reinforced == "" {
		err = a.extract(ctx, &before, s)
	}
	return wrap("react", cmp.Or(err, stands))
}

// ReactIn does what [Agent.React] does as a part of the caller's step, except that it writes no
// heuristic from praise. The step commits the host's own records together with the reaction. If the
// store's history no longer has what the arm was credited with, the observer receives the error
// that React would return, because that is known only after the commit.
func (a *Agent) ReactIn(tx *store.Tx, id string, r Reaction) error {
	now := a.cfg.Testing.Now()
	s, err := a.reaction(id, r, now)
	if err != nil {
		return wrap("react", err)
	}
	return wrap("react", a.changeIn(tx, id, new(error), func(row *answer.Answer) error {
		_, err := a.reactIn(tx, row, s, now)
		return err
	}))
}

// reaction returns a reaction as a statement, which may have no time.
func (a *Agent) reaction(id string, r Reaction, now time.Time) (answer.Statement, error) {
	r.Channel = cmp.Or(r.Channel, learning.ChannelExplicit)
	s := answer.Statement{
		By: r.Person, Kind: a.cfg.kindOf(r.Person), Channel: r.Channel,
		Target: r.Target, Value: r.Value, Weight: r.Weight, At: r.At,
	}
	return s, cmp.Or(checkID(id), answers.Validate(&s), a.cfg.person("Person", r.Person),
		checkChannel(r.Channel), optionalTime(r.At, now))
}

// checkChannel refuses a channel of what heed observes by itself or by another method. A reaction
// on it would be explained wrongly.
func checkChannel(name string) error {
	if strings.HasPrefix(name, "implicit_") || slices.Contains([]string{
		learning.ChannelReported, learning.ChannelAgreement, string(answers.Silence)}, name) {
		return valid.Input("Channel", "must not be %q, which heed itself uses", name)
	}
	return nil
}

// optionalTime checks the time of a statement, if it has one.
func optionalTime(at, now time.Time) error {
	if at.IsZero() {
		return nil
	}
	return valid.Time("At", at, now)
}

// reactIn puts a reaction on the record, and backs the heuristic with the same advice as the model.
// The statement holds, also if it was on the record already, unless a later one of the same person,
// channel and target is there: then it is outdated, and has no effect.
func (a *Agent) reactIn(
	tx *store.Tx, r *answer.Answer, s answer.Statement, now time.Time,
) (holds bool, err error) {
	if s.Of = answers.HeuristicOf(r); s.At.IsZero() {
		s.At = answers.Arrival(r, now)
	}
	if err := a.addStatement(tx, r, s); err != nil {
		return false, err
	}
	at := evidence.InstantOf(s.At).Time() // as it is kept
	holds = slices.ContainsFunc(r.Statements, func(o answer.Statement) bool {
		return o.At.Equal(at) && o.By == s.By && o.Channel == s.Channel && o.Target == s.Target
	})
	if reinforced := r.Reply.Reinforced; reinforced != "" && holds {
		return holds, a.back(tx, r, reinforced, s)
	}
	return holds, nil
}

// back gives the praise of the model's answer to the heuristic with the same advice. If the
// reaction is no praise any more, that is withdrawn.
func (a *Agent) back(tx *store.Tx, r *answer.Answer, heuristic string, s answer.Statement) error {
	s.Of, s.Value = heuristic, max(s.Value, 0)
	_, err := a.learning.JudgeIn(tx, r, s)
	if errors.Is(err, heed.ErrNotFound) {
		return nil
	}
	return err
}

// extract has the model write a heuristic from an answer that was praised, once.
//
// The id is derived from the answer, so that praise of several people makes one heuristic. If the
// model's heuristic has the advice of one that is there, that one is strengthened, but only if the
// model had not seen it: agreement with what it was shown is no evidence.
func (a *Agent) extract(ctx context.Context, r *answer.Answer, praise answer.Statement) error {
	domains := a.cfg.Tuning.Extract
	wanted := slices.Contains(domains, r.Domain) || slices.Contains(domains, "*")
	if len(r.Undoes) > 0 || !wanted {
		return nil
	}
	id := "learned-" + store.IDOf(a.cfg.Name, r.ID)
	known, err := a.learning.Standings(ctx, id)
	if err != nil || len(known) > 0 {
		return err
	}
	nearest := func(ctx context.Context, condition, message string) (string, float64, error) {
		return a.nearest(ctx, r.Domain, condition, message)
	}
	grown, err := a.decider.Extract(ctx, r.Reply.Response, nearest)
	compared := func(c answer.Comparison) bool { return c.HeuristicID == grown.ReinforcedID }
	switch {
	case errors.Is(err, heed.ErrNotFound): // the trace is gone
		return nil
	case err != nil:
		return err
	case grown.Condition != "":
		_, err = a.put(ctx, learning.Heuristic{
			ID: id, Domain: grown.Domain, Condition: grown.Condition, Action: grown.Message,
			Initial: grown.Confidence,
		}, nil)
		return err
	case r.Prompt == nil || !slices.ContainsFunc(r.Prompt.Compared, compared):
		return nil // the model may have it from its prompt
	}
	return a.change(ctx, r.ID, func(tx *store.Tx, row *answer.Answer) error {
		own(row).Reinforced = grown.ReinforcedID
		return a.back(tx, row, grown.ReinforcedID, praise)
	})
}

// Undo takes an answer back: a person used a button or a command. Person may be empty. It can come
// as long as the answer is kept.
func (a *Agent) Undo(ctx context.Context, id, person string) error {
	err := cmp.Or(evidence.CheckText("person", person), a.cfg.person("person", person))
	if err != nil {
		return wrap("undo", err)
	}
	now := a.cfg.Testing.Now()
	return wrap("undo", a.change(ctx, id, func(tx *store.Tx, r *answer.Answer) error {
		at := answers.Arrival(r, now)
		_, err := a.learning.UndoIn(tx, r, learning.Undo{
			EventID: id, Person: person, Session: r.Session, At: at,
		})
		if !errors.Is(err, heed.ErrNotFound) {
			return err
		}
		answers.Say(r, answer.Statement{
			How: answers.Undo, By: cmp.Or(person, r.Person),
			Kind: a.cfg.kindOf(cmp.Or(person, r.Person)), Channel: learning.ChannelUndo,
			Of: answers.HeuristicOf(r), At: at, Value: -1, Worth: -1,
		})
		return nil
	}))
}
