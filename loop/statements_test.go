package loop_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A spoken is an agent with two answers: "model" is the model's, by an arm, and agrees with the
// heuristic "look". "heuristic" is the answer of the heuristic "rotate".
type spoken struct {
	*world
	kept *memstore.Store
}

// seconds returns a moment after the answers.
func seconds(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

// newSpoken returns two answers of the moment start. The clock is two minutes later, so that
// silence counts as soon as it is swept.
func newSpoken(t *testing.T, cfg loop.Config) *spoken {
	always, clock := 1., &clock{now: start}
	kept, err := memstore.New(memstore.Config{Now: clock.Now})
	require.NoError(t, err)
	cfg.Store, cfg.Arms, cfg.Tuning.Decision.Withhold = kept, []loop.Arm{{ID: "only"}}, &always
	cfg.Lessons = loop.Lessons{Heuristics: []learning.Heuristic{
		trusted(rotating),
		{ID: "look", Condition: "the mail is late", Action: "Look at the logs."},
	}}
	w := &spoken{newWorld(t, cfg), kept}
	w.clock, w.cfg.Testing.Now = clock, clock.Now
	w.Agent = w.again()
	w.answer(loop.Event{
		ID: "model", Text: "The mail is late", Person: "ann", Session: "s", Stream: "model",
		Domain: "d", Item: "i",
	})
	given := w.answer(loop.Event{
		ID: "heuristic", Text: full, Person: "ann", Session: "t", Stream: "heuristic",
	})
	require.Equal(t, decision.Heuristic, given.Result.Path)
	clock.Advance(2 * time.Minute)
	return w
}

// record returns the record of an answer.
func (w *spoken) record(id string) answer.Answer {
	w.t.Helper()
	view := answers.View("loop.answer")
	row, err := view.Get(ctx, w.kept, answers.ID(id))
	require.NoError(w.t, err)
	return row.Value
}

func (w *spoken) account(id string) loop.Account {
	w.t.Helper()
	account, err := w.Explain(ctx, id)
	require.NoError(w.t, err)
	return account
}

// evidence returns what the arm and the heuristics have learned, and what the answer was worth.
func (w *spoken) evidence(id string) string {
	w.t.Helper()
	var all []string
	for _, kind := range []string{"strategy.arm", "learning.heuristic"} {
		for scope, err := range w.kept.Scopes(ctx, kind) {
			require.NoError(w.t, err)
			for p, err := range w.kept.List(ctx, store.CellQuery{Kind: kind, Scope: scope}) {
				require.NoError(w.t, err)
				if p.Tally.N() == 0 && p.Tally.Mass < 1e-12 { // everything was taken back
					continue
				}
				if p.Channel == learning.ChannelAgreement { // the first who complained is its source
					p.Source = ""
				}
				all = append(all, fmt.Sprintf("%s %s %s by %q on %q: %d %.9f %.9f", kind,
					p.Cell.Item, p.Cell.Name, p.Source, p.Channel, p.Tally.N(), p.Tally.Mass,
					p.Tally.Reward))
			}
		}
	}
	r := w.record(id)
	worth, channel, known := answers.WorthOf(&r)
	all = append(all, fmt.Sprintf("worth %.9f by %s %t", worth, channel, known))
	for _, s := range w.account(id).Statements {
		all = append(all, fmt.Sprintf("%s by %q at %v: %g counts %.9f", s.Channel, s.Source,
			s.At.Sub(start), s.Value, s.Confidence))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// A saying is a statement about an answer.
type saying struct {
	name         string
	addStatement func(w *spoken, id string) error
}

func (s saying) String() string { return s.name }

func thumbOf(person string, value float64, at int) saying {
	return saying{fmt.Sprintf("%s %+g @%d", person, value, at), func(w *spoken, id string) error {
		return w.React(ctx, id, loop.Reaction{Person: person, Value: value, At: seconds(at)})
	}}
}

func partOf(target answer.Target, person string, value float64, at int) saying {
	name := fmt.Sprintf("%s %+g of the %s @%d", person, value, target, at)
	return saying{name, func(w *spoken, id string) error {
		r := loop.Reaction{Person: person, Target: target, Value: value, At: seconds(at)}
		return w.React(ctx, id, r)
	}}
}

func outcomeOf(source string, reward float64, at int) saying {
	name := fmt.Sprintf("outcome %s %+g @%d", source, reward, at)
	return saying{name, func(w *spoken, id string) error {
		return w.Outcome(ctx, id, loop.Outcome{
			Reward: &reward, Source: source, At: seconds(at),
		})
	}}
}

func withdrawalOf(source string, at int) saying {
	return saying{fmt.Sprintf("withdrawal %s @%d", source, at), func(w *spoken, id string) error {
		return w.Outcome(ctx, id, loop.Outcome{
			Withdraw: true, Source: source, At: seconds(at),
		})
	}}
}

func correctionOf(reviewer string, at int) saying {
	return saying{fmt.Sprintf("correction %s @%d", reviewer, at), func(w *spoken, id string) error {
		return second(w.Correct(ctx, id, loop.Correction{
			Reviewer: reviewer, Text: "This is wrong.", At: seconds(at),
		}))
	}}
}

func undoOf(person string) saying {
	return saying{"undo " + person, func(w *spoken, id string) error {
		return w.Undo(ctx, id, person)
	}}
}

// ignoring is that the person goes on without a word, ten seconds after the answer.
var ignoring = saying{"ignore", func(w *spoken, id string) error {
	return second(w.Hear(ctx, learning.Message{
		ID: "next", Stream: id, Person: "ann", Text: "Something else.", At: seconds(10),
	}))
}}

var sweeping = saying{"silence", func(w *spoken, _ string) error {
	return w.Sweep(ctx, time.Time{})
}}

// Everything that becomes of an answer is a statement on its record, and Explain lists it with its
// source.
func TestEveryStatementIsListed(t *testing.T) {
	for _, test := range []struct {
		saying
		how  answer.How
		by   string // on the record
		want loop.Statement
	}{
		{thumbOf("bob", 1, 5), answers.Judged, "bob", loop.Statement{
			Channel: learning.ChannelExplicit, Source: "bob", Kind: "person", At: seconds(5),
			Value: 1, Confidence: 1,
		}},
		{outcomeOf("ci", -0.5, 5), answers.Outcome, "ci", loop.Statement{
			Channel: "outcome", Source: "ci", Kind: "instrument", At: seconds(5), Value: -0.5,
			Confidence: 1,
		}},
		{correctionOf("kim", 5), answers.Judged, "kim", loop.Statement{
			Channel: learning.ChannelExplicit, Source: "kim", Kind: "person", At: seconds(5),
			Value: -1, Confidence: 1,
		}},
		{undoOf("bob"), answers.Undo, "bob", loop.Statement{
			Channel: "undo", Source: "bob", Kind: "person", At: seconds(120), Value: -1,
			Confidence: 1,
		}},
		{ignoring, answers.Ignored, "ann", loop.Statement{
			Channel: "ignored", Source: "ann", Kind: "person", At: seconds(10), Value: -0.5,
			Confidence: 0.5,
		}},
		// Silence is no source's statement, but the record names the person who was silent.
		{sweeping, answers.Silence, "ann", loop.Statement{
			Channel: "silence", At: seconds(30), Value: 0.8, Confidence: 0.3,
		}},
	} {
		for _, id := range []string{"model", "heuristic"} {
			t.Run(test.name+" of the "+id, func(t *testing.T) {
				w := newSpoken(t, loop.Config{Instruments: []string{"ci"}})
				require.Empty(t, w.account(id).Statements)
				require.NoError(t, test.addStatement(w, id))
				r := w.record(id)
				require.Len(t, r.Statements, 1)
				assert.Equal(t, test.how, r.Statements[0].How)
				assert.Equal(t, test.by, r.Statements[0].By)
				assert.NotEmpty(t, r.Statements[0].Kind)
				account := w.account(id)
				require.Len(t, account.Statements, 1)
				assert.Equal(t, test.want, account.Statements[0])
				assert.True(t, account.Known)
				assert.InDelta(t, test.want.Value, account.Worth, 1e-9)
			})
		}
	}
}

// All that several sources state is listed together. What counts for the arm is listed with its
// part, and the rest as not counting.
func TestStatementsAreListedTogether(t *testing.T) {
	w := newSpoken(t, loop.Config{Instruments: []string{"ci"}})
	for _, s := range []saying{
		thumbOf("bob", 1, 5), outcomeOf("ci", -0.5, 6), outcomeOf("qa", 1, 4),
		correctionOf("kim", 7), ignoring, sweeping,
	} {
		require.NoError(t, s.addStatement(w, "model"), s)
	}
	listed := func() (all []string) {
		for _, s := range w.account("model").Statements {
			all = append(all, fmt.Sprintf("%s %s %g %g", s.Channel, s.Source, s.Value, s.Confidence))
		}
		return all
	}
	before := []string{
		"user_explicit bob 1 0.25", "user_explicit kim -1 0.25",
		"outcome ci -0.5 0.5", "ignored ann -0.5 0", "outcome qa 1 0",
	}
	assert.Equal(t, before, listed())
	require.NoError(t, w.Undo(ctx, "model", "ann"))
	assert.Equal(t, []string{
		"undo ann -1 1", "user_explicit bob 1 0", "user_explicit kim -1 0",
		"outcome ci -0.5 0", "ignored ann -0.5 0", "outcome qa 1 0",
	}, listed())
	text := w.account("model").String()
	assert.Contains(t, text, "undo by ann 2026-01-05 09:02:00: -1.00, counts 1.00")
	assert.Contains(t, text,
		"the instrument ci reported an outcome 2026-01-05 09:00:06: -0.50, does not count")
}

// The record of an answer lists each person who takes it back, and each counts. If one of them is
// forgotten, the others count.
func TestEveryUndoIsListed(t *testing.T) {
	w := newSpoken(t, loop.Config{})
	for _, person := range []string{"bob", "kim", "bob"} {
		require.NoError(t, w.Undo(ctx, "model", person))
		w.clock.Advance(time.Second)
	}
	var by []string
	for _, s := range w.record("model").Statements {
		assert.Equal(t, answers.Undo, s.How)
		assert.EqualValues(t, "person", s.Kind)
		by = append(by, s.By)
	}
	assert.Equal(t, []string{"bob", "kim"}, by)
	listed := w.account("model").Statements
	require.Len(t, listed, 2)
	assert.InDelta(t, 0.5, listed[0].Confidence, 0)
	assert.InDelta(t, 0.5, listed[1].Confidence, 0)
	outcomes := func() (all []string) {
		for _, o := range w.outcomes() {
			all = append(all, fmt.Sprintf("%s %g", o.Source, o.Value))
		}
		return all
	}
	assert.Equal(t, []string{"kim -1", "bob -1"}, outcomes())
	err := store.Run(ctx, w.kept, store.Job{Forget: []string{"bob"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"kim -1"}, outcomes())
	require.NoError(t, w.Undo(ctx, "model", "lee"))
	assert.Equal(t, []string{"lee -1", "kim -1"}, outcomes())
}

// A correction of a model's answer is a complaint about it: silence does not count, and the arm is
// worth -1. The order of the corrections and the silence does not matter.
func TestCorrectionsEndTheSilence(t *testing.T) {
	reviewers := []string{"kim", "lee", "mo"}
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			w := newSpoken(t, loop.Config{})
			at := 10
			if late { // after 30 seconds
				at = 40
				require.NoError(t, w.Sweep(ctx, time.Time{}))
				require.Len(t, w.outcomes(), 1)
				require.InDelta(t, 0.8, w.outcomes()[0].Value, 1e-9)
			}
			for range 2 { // sent again, they count once
				for i, reviewer := range reviewers {
					require.NoError(t, correctionOf(reviewer, at+i).addStatement(w, "model"))
				}
			}
			require.NoError(t, w.Sweep(ctx, time.Time{}))
			var mass float64
			for _, o := range w.outcomes() {
				assert.Contains(t, reviewers, o.Source)
				assert.InDelta(t, -1, o.Value, 1e-9)
				assert.InDelta(t, 1./3, o.Confidence, 1e-9)
				mass += o.Confidence
			}
			assert.InDelta(t, 1, mass, 1e-9)
			assert.Less(t, w.mean("d", "only"), 0.5)

			account := w.account("model")
			assert.EqualValues(t, -1, account.Worth)
			assert.True(t, account.Known)
			text := account.String()
			assert.NotContains(t, text, "not known yet")
			if !late {
				assert.NotContains(t, text, "no user reacted")
			}
			assert.NotContains(t, text, "known by: nobody")
			for _, reviewer := range reviewers {
				assert.Contains(t, text, reviewer+" said it")
			}

			// A later thumb of a reviewer replaces the complaint, and the correction sent again
			// does not come back.
			require.NoError(t, thumbOf("kim", 1, at+5).addStatement(w, "model"))
			require.NoError(t, correctionOf("kim", at).addStatement(w, "model"))
			assert.InDelta(t, -1./3, w.account("model").Worth, 1e-9)
			assert.Len(t, w.outcomes(), 3)
		})
	}
}

// A correction of a heuristic's answer counts against it once for each reviewer.
func TestCorrectionsCountAgainstTheHeuristic(t *testing.T) {
	w := newSpoken(t, loop.Config{})
	before := w.confidence("rotate")
	var after []float64
	for i, reviewer := range []string{"kim", "lee", "mo"} {
		for range 2 {
			require.NoError(t, correctionOf(reviewer, 10+i).addStatement(w, "heuristic"))
		}
		after = append(after, w.confidence("rotate"))
		assert.Less(t, after[i], before)
		before = after[i]
	}
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.InDelta(t, before, w.confidence("rotate"), 1e-9, "silence is no approval now")
	account := w.account("heuristic")
	assert.EqualValues(t, -1, account.Worth)
	assert.NotContains(t, account.String(), "no user reacted")
	require.NoError(t, thumbOf("mo", 1, 20).addStatement(w, "heuristic"))
	assert.Greater(t, w.confidence("rotate"), after[1], "the thumb replaces the complaint")
	assert.InDelta(t, -1./3, w.account("heuristic").Worth, 1e-9)
}

// Eight agents share a store, and many goroutines answer in one session. All get the same arm, and
// the store has one choice.
func TestASessionHasOneArm(t *testing.T) {
	const agents, goroutines, each = 8, 20, 4
	for round := range 5 {
		kept := new(memstore.Store)
		all := make([]*loop.Agent, agents)
		for i := range all {
			var err error
			all[i], err = loop.New(ctx, loop.Config{
				Store: kept, Model: &mouth{says: "Look at the logs."},
				Arms:    []loop.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}},
				Testing: loop.Testing{Seed: rand.NewPCG(uint64(round), uint64(i))},
			})
			require.NoError(t, err)
		}
		chosen := make([][each]strategy.Choice, goroutines)
		begin := make(chan struct{})
		var wait sync.WaitGroup
		for g := range goroutines {
			wait.Go(func() {
				<-begin
				for n := range each {
					given, err := all[(g+n)%agents].Answer(ctx, loop.Event{
						ID: fmt.Sprintf("%d-%d", g, n), Text: "Why?", Session: "s", Item: "i",
						Domain: "d",
					})
					if assert.NoError(t, err) && assert.NotNil(t, given.Plan.Choice) {
						chosen[g][n] = *given.Plan.Choice
					}
				}
			})
		}
		close(begin)
		wait.Wait()
		first := chosen[0][0]
		require.NotEmpty(t, first.Arm)
		for g := range chosen {
			for n := range chosen[g] {
				assert.Equal(t, first.Arm, chosen[g][n].Arm)
				assert.Equal(t, first.ID, chosen[g][n].ID, "one draw is everybody's")
			}
		}
	}
}

// No heuristic answers a message that took an answer back, or an event with AskModel.
func TestWhatNoHeuristicAnswers(t *testing.T) {
	h := trusted(learning.Heuristic{ID: "undo", Condition: "Undo that.", Action: "It is undone."})
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: []learning.Heuristic{h}}})
	e := loop.Event{Text: "Undo that.", Session: "s", Person: "ann"}
	given := w.answer(e)
	assert.Equal(t, h.Action, given.Text, "there is no answer to undo")
	w.answer(loop.Event{Text: "Why?", Session: "s", Person: "ann"})
	w.clock.Advance(time.Second)
	given = w.answer(e)
	assert.NotEmpty(t, given.Plan.Undone)
	assert.Equal(t, w.model.says, given.Text)
	e.AskModel, e.Session, e.Person = true, "", ""
	assert.Equal(t, w.model.says, w.answer(e).Text)
}
