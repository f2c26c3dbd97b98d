package feedback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// A fault is a call of a method, in a world that is made for it, while one call of the store fails.
type fault struct {
	method  string // "Service.Record"
	name    string // of the case, where a method has several
	cfg     feedback.Config
	prepare func(w *world)
	call    func(w *world) (any, error)
	// refused is the error that the call ends with where nothing fails.
	refused string
	// opens says that the call returns what it opened, which is nothing when it is made again.
	opens bool
	// steps says that the call does several things, each in a commit of its own.
	steps bool
	// quiet says that not every failure is told: part of the work is left for later.
	quiet bool
}

const opposite = "the summary is not too long"

func propose(w *world) (any, error) {
	return w.rules.Propose(ctx, feedback.Submission{Draft: rule("Be brief"), Actor: "paul",
		Reason: "seen often"})
}

func reviewing(verdict feedback.Decision, actor string) func(*world) (any, error) {
	return func(w *world) (any, error) { return w.review(w.subject, verdict, actor) }
}

// setSubject has the calls be about the proposal that was made first.
func (w *world) setSubject() {
	w.t.Helper()
	if all := w.proposals(""); len(all) > 0 {
		w.subject = all[len(all)-1]
	}
}

// against has a pending proposal with an approval, and an active rule that says the opposite.
func against(w *world) {
	w.approve(w.propose("paul", rule(long)), "cleo")
	w.activate(rule(opposite))
}

func twice(w *world) {
	for _, by := range []string{"ann", "bob"} {
		_, err := w.Record(ctx, w.correction(by, long))
		require.NoError(w.t, err)
	}
}

// held are two corrections that are evaluated and not proposed.
func held(w *world) {
	w.says("ann", "tests are missing")
	w.says("ann", "the tests are missing")
}

// heldOpen are two corrections with their proposal.
func heldOpen(w *world) {
	held(w)
	w.flush()
}

func active(w *world) { w.activate(rule("Be brief")) }

func ordering(
	order func(*feedback.Rules, feedback.Act) (feedback.Rule, error),
) func(*world) (any, error) {
	return func(w *world) (any, error) {
		return order(w.rules, feedback.Act{ID: w.subject.ID, Actor: "cleo", Reason: "x"})
	}
}

func retire(r *feedback.Rules, o feedback.Act) (feedback.Rule, error) {
	return r.Move(ctx, o, feedback.StateRetired)
}

func retired(w *world) {
	active(w)
	w.setSubject()
	_, err := ordering(retire)(w)
	require.NoError(w.t, err)
}

func retiredAgainst(w *world) {
	w.activate(rule(long))
	w.setSubject()
	_, err := ordering(retire)(w)
	require.NoError(w.t, err)
	w.activate(rule(opposite))
}

func asking(c string) func(*world) (any, error) {
	return func(w *world) (any, error) {
		d := w.subject.Draft
		d.Change, d.Of = c, w.subject.ID
		p, err := w.rules.Propose(ctx, feedback.Submission{Draft: d, Actor: "olga",
			Reason: "it has to be"})
		return len(p.Conflicts), err
	}
}

// approvedChange has the change of a rule wait for its last approval.
func approvedChange(w *world, c string) {
	p, err := w.asks("olga", w.subject.ID, c)
	require.NoError(w.t, err)
	w.last = w.approve(p, "cleo")
}

func reviewingLast(w *world) (any, error) { return w.review(w.last, approve, "dan") }

func modify(w *world) (any, error) {
	d := rule("Say who decides")
	return w.rules.Propose(ctx, feedback.Submission{Replaces: w.subject.ID, Draft: d, Actor: "eve",
		Reason: "clearer"})
}

func ambiguous(w *world) {
	w.says("ann", long)
	require.Equal(w.t, feedback.Ambiguous, w.says("bob", opposite).Class)
}

func consolidate(w *world) (any, error) {
	opened, err := w.rules.Consolidate(ctx)
	return len(opened), err
}

func alike(w *world) {
	w.activate(rule("the summary is too long"))
	w.activate(rule("the summary is much too long"))
}

func sweep(w *world) (any, error) { return nil, w.Sweep(ctx, time.Time{}) }

func archived(w *world) (any, error) {
	from := newWorld(w.t, feedback.Config{})
	from.says("ann", "alone in the world")
	from.activate(rule("Say why"))
	from.propose("olga", rule("Date every decision"))
	opened, err := w.Import(ctx, tree(w.t, from.export()), "igor", "moved house")
	return len(opened), err
}

// joiner is an evaluator to which all candidates are alike.
func joiner(_ context.Context, c feedback.Case) (feedback.Evaluation, error) {
	v := feedback.Evaluation{Class: feedback.EdgeCase, Similar: []string{}}
	for _, m := range c.Candidates {
		v.Similar = append(v.Similar, m.ID)
	}
	return v, nil
}

const state, conflict = "state", "conflict"

var faults = []fault{
	{method: "Service.Record", call: func(w *world) (any, error) {
		f := w.correction("ann", long)
		f.ID, f.At, f.OutputSHA = "x", start, "x"
		_, err := w.Record(ctx, f)
		return f.ID, err
	}},
	{method: "Service.Evaluate", prepare: func(w *world) {
		w.says("ann", "tests are missing")
		_, err := w.Record(ctx, w.correction("ann", "the tests are missing"))
		require.NoError(w.t, err)
	}, call: func(w *world) (any, error) {
		r, err := w.Evaluate(ctx, "d2")
		return r.Class, err
	}},
	{method: "Service.Evaluate", name: "an approval", prepare: func(w *world) {
		w.add(w.approval("ann", "the risks are in a table"))
		_, err := w.Record(ctx, w.approval("bob", "the risks are in a table"))
		require.NoError(w.t, err)
	}, call: func(w *world) (any, error) {
		r, err := w.Evaluate(ctx, "d2")
		return r.Cluster, err
	}},
	{
		method: "Service.Evaluate", name: "by an evaluator that knows better",
		cfg: feedback.Config{Evaluator: joiner},
		prepare: func(w *world) {
			w.says("ann", "tests are missing")
			_, err := w.Record(ctx, w.correction("ann", "nobody has tried it"))
			require.NoError(w.t, err)
		},
		call: func(w *world) (any, error) {
			r, err := w.Evaluate(ctx, "d2")
			return r.Cluster, err
		},
	},
	{method: "Service.EvaluateAll", steps: true, prepare: func(w *world) {
		for _, says := range []string{long, "tests are missing"} {
			_, err := w.Record(ctx, w.correction("ann", says))
			require.NoError(w.t, err)
		}
	}, call: func(w *world) (any, error) {
		_, err := w.EvaluateAll(ctx)
		return nil, err
	}},
	{method: "Service.Flush", prepare: held, call: func(w *world) (any, error) {
		_, _, err := w.Flush(ctx)
		return nil, err
	}},
	{method: "Service.Flush", name: "a cluster whose proposal has expired", prepare: func(w *world) {
		held(w)
		w.flush()
		w.clock.advance(8 * day)
		w.says("bob", "tests are missing") // proposed by this
		w.clock.advance(8 * day)
		w.says("ann", "tests are missing")
	}, call: func(w *world) (any, error) {
		_, _, err := w.Flush(ctx)
		return nil, err
	}},
	{method: "Service.Flush", name: "a proposal that gains evidence", prepare: func(w *world) {
		held(w)
		w.flush()
		w.says("ann", "missing are tests")
	}, call: func(w *world) (any, error) {
		_, _, err := w.Flush(ctx)
		return nil, err
	}},
	{method: "Service.Join", steps: true, prepare: func(w *world) {
		w.says("ann", paraphrased)
		w.says("bob", paraphrase)
	}, call: func(w *world) (any, error) {
		r, err := w.Join(ctx, feedback.Act{ID: "d2", Actor: "cleo", Reason: "x"}, "d1")
		return r.Cluster, err
	}},
	{method: "Service.Split", steps: true, prepare: func(w *world) {
		w.says("ann", long)
		w.says("ann", long)
	}, call: func(w *world) (any, error) {
		r, err := w.Split(ctx, feedback.Act{ID: "d2", Actor: "cleo", Reason: "x"})
		return r.Class, err
	}},
	{method: "Service.Resolve", prepare: ambiguous, steps: true,
		call: func(w *world) (any, error) {
			r, err := w.Resolve(ctx, feedback.Act{ID: "d2", Actor: "cleo", Reason: "another matter"},
				feedback.EdgeCase)
			return r.Class, err
		}},
	{method: "Service.Resolve", name: "into a cluster", steps: true,
		prepare: func(w *world) {
			w.says("ann", long)
			w.says("ann", opposite)
			w.says("ann", long)
		}, call: func(w *world) (any, error) {
			r, err := w.Resolve(ctx, feedback.Act{ID: "d3", Actor: "cleo", Reason: "so it is"},
				feedback.GeneralizableLow)
			if err == nil && r.Cluster != "d1" {
				err = errors.New("it joined nobody")
			}
			return []any{r.Class, r.Proposal}, err
		}},
	{method: "Service.Erase", prepare: func(w *world) { w.says("ann", long) },
		call: func(w *world) (any, error) {
			return nil, w.Erase(ctx, feedback.Act{ID: "d1", Actor: "ann", Reason: "my right"})
		}},
	{method: "Service.Sweep", steps: true, prepare: func(w *world) {
		held(w)
		checked := rule("Be brief")
		checked.Check = feedback.Check{Forbid: "sudo"}
		w.activate(checked)
		w.propose("paul", rule("Say why"))
		_, err := w.Record(ctx, w.correction("eve", "not evaluated yet"))
		require.NoError(w.t, err)
		w.clock.advance(8 * day)
	}, call: sweep},
	{method: "Service.Sweep", name: "a rule that does harm", steps: true, prepare: func(w *world) {
		r := w.activate(rule("Be brief"))
		for i := range 20 {
			for _, side := range []struct {
				at   time.Time
				hits int
			}{{r.Since.Add(-day), 2}, {r.Since.Add(8 * day), 18}} {
				f := w.correction("ann", "")
				f.At = side.at.Add(time.Duration(i) * time.Second)
				if i >= side.hits {
					f.Decision = feedback.Approved
				}
				f.Evaluation, f.Recorded = feedback.Evaluation{Class: feedback.Archived}, f.At
				w.put(f)
			}
		}
		w.clock.advance(31 * day)
	}, call: sweep},
	{method: "Service.Import", steps: true, opens: true, call: archived},
	{method: "Rules.Propose", prepare: func(w *world) { w.activate(rule("Do not be brief")) },
		call: propose},
	{method: "Rules.Propose", name: "from evidence", prepare: held,
		call: func(w *world) (any, error) {
			return w.rules.Propose(ctx, feedback.Submission{Draft: rule("Write tests"),
				Evidence: []string{"d1", "d2"}, Actor: "paul", Reason: "x"})
		}},
	{method: "Rules.Propose", prepare: func(w *world) {
		twice(w)
		_, err := w.EvaluateAll(ctx)
		require.NoError(w.t, err)
		w.activate(rule("Never say who decides"))
	}, call: modify},
	{method: "Rules.Review", name: "the first approval",
		prepare: func(w *world) { w.propose("paul", rule("Be brief")) },
		call:    reviewing(approve, "cleo")},
	{method: "Rules.Review", name: "the last approval", prepare: func(w *world) {
		w.approve(w.propose("paul", rule("Be brief")), "cleo")
	}, call: reviewing(approve, "dan")},
	{method: "Rules.Review", name: "a rejection",
		prepare: func(w *world) { w.propose("paul", rule("Be brief")) },
		call:    reviewing(reject, "cleo")},
	{method: "Rules.Review", name: "its own", prepare: func(w *world) {
		w.propose("paul",
			rule("Be brief"))
	}, call: reviewing(approve, "paul"), refused: "ineligible"},
	{method: "Rules.Review", name: "of what contradicts a rule", prepare: against,
		call: reviewing(approve, "dan"), refused: conflict},
	{method: "Rules.Review", name: "of what is too old", prepare: func(w *world) {
		w.propose("paul", rule("Be brief"))
		w.clock.advance(8 * day)
	}, call: reviewing(approve, "dan"), refused: state, steps: true},
	{method: "Rules.Review", name: "of what supersedes", prepare: func(w *world) {
		alike(w)
		_, err := consolidate(w)
		require.NoError(w.t, err)
		w.last = w.approve(w.pending(), "cleo")
	}, call: reviewingLast},
	{method: "Rules.Consolidate", opens: true, prepare: alike, call: consolidate},
	{method: "Rules.Consolidate", name: "rules with evidence", opens: true, prepare: func(w *world) {
		twice(w)
		_, err := w.EvaluateAll(ctx)
		require.NoError(w.t, err)
		w.approve(w.pending(), "cleo", "dan")
		w.activate(rule("the summary is much too long"))
	}, call: consolidate},
	{method: "Rules.Move", name: "to retired", prepare: active, call: ordering(retire)},
	{method: "Rules.Move", name: "to revoked", prepare: active,
		call: ordering(func(r *feedback.Rules, o feedback.Act) (feedback.Rule, error) {
			return r.Move(ctx, o, feedback.StateRevoked)
		})},
	{method: "Rules.Propose", name: "to restore", prepare: retired, call: asking(feedback.Restore)},
	{method: "Rules.Propose", name: "to restore what contradicts a rule", prepare: func(w *world) {
		retiredAgainst(w)
		w.last = w.proposals("")[0]
	}, call: asking(feedback.Restore)},
	{method: "Rules.Propose", name: "to pin", prepare: active, call: asking(feedback.Pin)},
	{method: "Rules.Review", name: "of what restores", prepare: func(w *world) {
		retired(w)
		approvedChange(w, feedback.Restore)
	}, call: reviewingLast},
	{method: "Rules.Review", name: "of what restores and contradicts a rule",
		prepare: func(w *world) {
			retiredAgainst(w)
			p, err := w.asks("olga", w.subject.ID, feedback.Restore)
			require.NoError(w.t, err)
			w.last = p
		}, refused: conflict, call: reviewingLast},
	{method: "Rules.Review", name: "of what pins", prepare: func(w *world) {
		active(w)
		w.setSubject()
		approvedChange(w, feedback.Pin)
	}, call: reviewingLast},
	{method: "Rules.Review", name: "of what unpins", prepare: func(w *world) {
		active(w)
		w.setSubject()
		w.change(w.subject.ID, feedback.Pin)
		approvedChange(w, feedback.Unpin)
	}, call: reviewingLast},
	{method: "Service.Consume", quiet: true, call: func(w *world) (any, error) {
		q := &queue{messages: [][]byte{message("1", "ann", long)}}
		if err := w.consume(q, &dead{}, nil); err != nil {
			return nil, err
		}
		_, err := w.EvaluateAll(ctx) // as a later sweep does
		return nil, err
	}},

	{method: "Service.Feedback", prepare: held,
		call: func(w *world) (any, error) { return w.Feedback(ctx, "d1") }},
	{method: "Service.List", prepare: held, call: func(w *world) (any, error) {
		records, total, err := w.List(ctx, feedback.Listing{})
		return []any{records, total}, err
	}},
	{method: "Service.Similar", prepare: held, call: func(w *world) (any, error) {
		return w.Similar(ctx, feedback.Feedback{Agent: "prd", Summary: "tests are missing"}, 0)
	}},
	{method: "Service.Tree", prepare: active,
		call: func(w *world) (any, error) { return w.Tree(ctx) }},
	{method: "Rules.Proposal", prepare: active,
		call: func(w *world) (any, error) { return w.rules.Proposal(ctx, w.subject.ID) }},
	{method: "Rules.Proposals", prepare: active, call: func(w *world) (any, error) {
		proposals, total, err := w.rules.Proposals(ctx, feedback.ProposalQuery{Agent: "prd"}, 0)
		return []any{proposals, total}, err
	}},
	{method: "Rules.Sources", prepare: heldOpen,
		call: func(w *world) (any, error) { return w.rules.Sources(ctx, w.subject.ID) }},
	{method: "Service.Split", name: "evidence", steps: true, prepare: heldOpen,
		call: func(w *world) (any, error) {
			_, err := w.Split(ctx, feedback.Act{ID: "d2", Actor: "dan", Reason: "x"})
			return nil, err
		}},
	{method: "Service.Split", name: "an approval", steps: true, prepare: func(w *world) {
		for _, by := range []string{"ann", "bob", "cid"} {
			w.add(w.approval(by, "the risks are in a table"))
		}
		w.flush()
	}, call: func(w *world) (any, error) {
		r, err := w.Split(ctx, feedback.Act{ID: "d2", Actor: "dan", Reason: "x"})
		return r.Cluster, err
	}},
	{method: "Rules.Rule", prepare: active, call: func(w *world) (any,
		error) {
		return w.rules.Rule(ctx, w.subject.ID)
	}},
	{method: "Rules.List", prepare: active, call: func(w *world) (any,
		error) {
		return w.rules.List(ctx, feedback.RuleQuery{Agent: "prd"})
	}},
	{method: "Rules.Conflicts", prepare: against,
		call: func(w *world) (any, error) { return w.rules.Conflicts(ctx, rule(long)) }},
	{method: "Rules.DryRun", prepare: held, call: func(w *world) (any, error) {
		applied, of, err := w.rules.DryRun(ctx, rule("tests are missing"))
		return []any{applied, of}, err
	}},
	{method: "Rules.Inject", prepare: active, call: func(w *world) (any, error) {
		return w.rules.Inject(ctx, "prd", "base", "")
	}},
	{method: "Rules.Inject", name: "after a rule changed", prepare: func(w *world) {
		w.activate(rule("Be brief"))
		w.inject("prd", "")
		w.activate(rule("Name the sources"))
	}, call: func(w *world) (any, error) {
		return w.rules.Inject(ctx, "prd", "base", "")
	}},
	{method: "Service.RecordIn", call: func(w *world) (any, error) {
		var duplicate bool
		err := store.Do(ctx, w.store, func(tx *store.Tx) (err error) {
			f := feedback.Feedback{
				ID: "in", Gate: "g", Agent: "prd", Decision: feedback.Rejected, Reviewer: "ann",
				At: start, Summary: long,
			}
			duplicate, err = w.RecordIn(tx, f)
			return err
		})
		_ = duplicate // is true where the call is made again
		return nil, err
	}},
	{method: "Rules.InjectIn", prepare: active, call: func(w *world) (any, error) {
		return w.rules.InjectIn(store.Reading(ctx, w.store), "prd", "base", "")
	}},
	{method: "Rules.CheckIn", prepare: func(w *world) {
		d := rule("Do not name a database")
		d.Check.Forbid = "(?i)postgres"
		w.activate(d)
	}, call: func(w *world) (found any, err error) {
		err = store.Do(ctx, w.store, func(tx *store.Tx) (err error) {
			found, err = w.rules.CheckIn(tx,
				feedback.Checked{ID: "a1", Agent: "prd", Text: "Use PostgreSQL"})
			return err
		})
		return found, err
	}},
	{method: "Rules.CheckIn", prepare: func(w *world) {
		d := rule("Do not name a database")
		d.Check.Forbid = "(?i)postgres"
		w.activate(d)
	}, call: func(w *world) (any, error) {
		return feedback.CheckWith(ctx, w.rules,
			feedback.Checked{ID: "a1", Agent: "prd", Text: "Use PostgreSQL"})
	}},
}

// noStore are the methods that ask no store.
var noStore = map[string]string{
	"Service.Config": "it returns what New was given",
	"Service.Rules":  "it returns the other half of the service",
	"Rules.Reach":    "it reads no store",
	"Rules.Wants":    "it names what InjectIn and CheckIn read",
}

func TestEveryMethodHasItsFault(t *testing.T) {
	covered := maps.Clone(noStore)
	for _, f := range faults {
		covered[f.method] = "a fault"
	}
	for name, of := range map[string]reflect.Type{
		"Service": reflect.TypeFor[*feedback.Service](), "Rules": reflect.TypeFor[*feedback.Rules](),
	} {
		for i := range of.NumMethod() {
			method := name + "." + of.Method(i).Name
			assert.Contains(t, covered, method, "has neither a fault nor a reason for having none")
			delete(covered, method)
		}
	}
	assert.Empty(t, covered, "there is no such method")
}

// TestAFailingStoreLosesNothing lets each call of the store fail, before its effect and after it.
// The state is then that before the call or that after it, and the call made again makes it that
// after it: nothing is lost or counted twice. The failure is never taken for an answer, and no
// prompt has a rule that was not approved.
func TestAFailingStoreLosesNothing(t *testing.T) {
	for _, f := range faults {
		t.Run(f.method+" "+f.name, func(t *testing.T) {
			f.run(t)
		})
	}
}

func (f *fault) world(t *testing.T) (*world, *storetest.Failing) {
	now := &clock{}
	st := &storetest.Failing{Store: newStore(t, now.Now)}
	return f.worldOver(t, st, now), st
}

func (f *fault) worldOver(t *testing.T, st store.Store, now *clock) *world {
	cfg := f.cfg
	cfg.Store, cfg.Now = st, now.Now
	w := newWorld(t, cfg)
	w.clock = now
	if f.prepare != nil {
		f.prepare(w)
		w.setSubject()
	}
	return w
}

// TestALostReplyIsNoRefusal loses the reply to each commit of each method, with its effect and
// without. The call does what it would have done, once, and returns no error. If a person acts,
// that holds even if the store can't be asked then whether the commit took effect.
func TestALostReplyIsNoRefusal(t *testing.T) {
	acts := regexp.MustCompile(`\.(Review|Move|Propose|Resolve|Join|Split)$`)
	lost := 0
	for _, f := range faults {
		for _, blind := range []bool{false, true} {
			if !blind || acts.MatchString(f.method) && f.refused == "" {
				lost += f.losing(t, blind)
			}
		}
	}
	require.Greater(t, lost, 100)
}

// losing returns how many replies it lost.
func (f *fault) losing(t *testing.T, blind bool) (lost int) {
	healthy, _ := f.world(t)
	_, err := f.call(healthy)
	f.check(t, err)
	after := healthy.summary()
	storetest.FailEach(func(at int, applied bool) bool {
		now := &clock{}
		st := &storetest.Failing{Store: newStore(t, now.Now), Replies: true, Blind: blind}
		w := f.worldOver(t, st, now)
		st.Fail(at, applied)
		_, err := f.call(w)
		if !st.Failed() {
			return false
		}
		lost++
		where := fmt.Sprintf("%s %s: commit %d, applied: %t, blind: %t", f.method, f.name, at, applied,
			blind)
		if f.refused != "" { // it is returned, and may be in the audit log
			require.Equal(t, f.refused, feedback.Refusal(err), where)
			return true
		}
		require.NoError(t, err, where)
		require.Equal(t, after, w.summary(), where)
		return true
	})
	return lost
}

// TestAMoveWhoseReplyWasLost checks that the caller and the observer are told what happened.
func TestAMoveWhoseReplyWasLost(t *testing.T) {
	st := &storetest.Failing{Store: newStore(t, nil), Replies: true}
	w, n := watched(t, feedback.Config{Store: st})
	r := w.activate(rule("Be brief"))
	st.Fail(1, true)
	moved, err := w.rules.Move(ctx, order(r.ID), feedback.StateRetired)
	require.NoError(t, err)
	assert.Equal(t, w.rule(r.ID), moved, "as it is now, with its revision")
	assert.Equal(t, feedback.StateRetired, moved.Status)
	assert.Len(t, changes(t, n, "retired"), 1)
	assert.Equal(t, []string{"retire:cleo"}, w.audit(r.ID)[4:])

	p := w.propose("paul", rule("Name the ticket in every title"))
	w.approve(p, "cleo")
	st.Blind = true
	st.Fail(1, true)
	p, err = w.review(p, approve, "dan")
	require.NoError(t, err)
	assert.Equal(t, feedback.StateApproved, p.Status)
	assert.Len(t, changes(t, n, "activated"), 1, "also if the store could not be asked")
}

func (f *fault) run(t *testing.T) {
	healthy, _ := f.world(t)
	before := healthy.summary()
	want, err := f.call(healthy)
	f.check(t, err)
	after := healthy.summary()
	runs := 0
	storetest.FailEach(func(at int, late bool) bool {
		w, st := f.world(t)
		st.Fail(at, late)
		got, err := f.call(w)
		failed := st.Failed()
		st.Fail(0, false)
		if !failed {
			return false
		}
		runs++
		where := fmt.Sprintf("call %d, after its effect: %v", at, late)
		left := w.summary()
		switch failure := errors.Is(err, storetest.ErrFailed); {
		case failure, f.quiet && err == nil:
		case late: // a commit, whose result the caller gets
			f.check(t, err)
			require.Equal(t, after, left, where)
			require.Equal(t, want, got, where)
			w.checkPrompts()
			return true
		default:
			require.ErrorIs(t, err, storetest.ErrFailed, where)
		}
		w.checkPrompts()
		if !f.steps && !f.quiet {
			require.Contains(t, []string{before, after}, left, where)
		}
		got, err = f.call(w)
		f.check(t, err)
		if err == nil && before == after {
			require.Equal(t, want, got, where)
		}
		require.Equal(t, after, w.summary(), where)
		w.checkPrompts()
		return true
	})
	require.Positive(t, runs)
}

func (f *fault) check(t *testing.T, err error) {
	t.Helper()
	if f.refused != "" {
		require.Equal(t, f.refused, feedback.Refusal(err))
		return
	}
	require.NoError(t, err)
}

// checkPrompts checks that all that a prompt has was approved by two who did not write it.
func (w *world) checkPrompts() {
	w.t.Helper()
	for _, id := range w.inject("prd", "").Rules {
		r := w.rule(id)
		require.Equal(w.t, feedback.StateActive, r.Status)
		people := map[string]bool{}
		for _, a := range r.Approvals {
			require.Equal(w.t, r.Hash(), a.Hash)
			require.NotContains(w.t, r.Writers, a.Actor)
			people[a.Actor] = true
		}
		require.GreaterOrEqual(w.t, len(people), 2)
	}
}

// summary is the whole state, without the ids and the moments that each call has new ones of. That
// somebody tried twice is in the audit log twice, which is right: refusals and imports count once
// here.
func (w *world) summary() string {
	w.t.Helper()
	a := w.export()
	texts := map[string]string{}
	var lines []string
	put := func(values ...any) {
		text, err := json.Marshal(values)
		require.NoError(w.t, err)
		lines = append(lines, string(text))
	}
	actors := func(approvals []feedback.Review) (names []string) {
		for _, a := range approvals {
			names = append(names, a.Actor)
		}
		return names
	}
	for _, r := range a.Feedback {
		r.At, r.Recorded = time.Time{}, time.Time{}
		put(r)
	}
	for _, p := range a.Proposals {
		texts[p.ID] = "proposal " + p.Text
		put(p.Draft.Text, p.Cluster, p.Evidence, p.Occurrences, p.Reviewers, p.Confidence, p.Authors,
			p.Writers, p.Warnings,
			len(p.Conflicts), p.Status, actors(p.Approvals), p.Previous != "", p.Decider)
	}
	for _, r := range a.Rules {
		put(r.Draft.Text, r.Clusters, r.Authors, r.Writers, actors(r.Approvals), r.Status, r.Pinned,
			r.SupersededBy != "",
			r.Effect.Status, r.Effect.Measured.IsZero(), r.Left.IsZero())
	}
	entries, err := w.Audit(ctx, 0)
	require.NoError(w.t, err)
	once := map[string]bool{}
	for _, e := range entries {
		subject := e.Subject
		if text, ok := texts[subject]; ok {
			subject = text
		}
		key := fmt.Sprint("audit ", e.Action, e.Actor, subject)
		repeats := strings.HasSuffix(e.Action, ".refused") || e.Action == "feedback.import" &&
			e.Subject == ""
		if repeats && once[key] {
			continue
		}
		once[key] = true
		lines = append(lines, key)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestTheErrorOfAStoreIsNoAnswer(t *testing.T) {
	st := &storetest.Failing{Store: newStore(t, nil)}
	w := newWorld(t, feedback.Config{Store: st})
	for name, call := range map[string]func() error{
		"feedback": func() error { _, err := w.Feedback(ctx, "x"); return err },
		"proposal": func() error { _, err := w.rules.Proposal(ctx, "x"); return err },
		"rule":     func() error { _, err := w.rules.Rule(ctx, "x"); return err },
	} {
		assert.ErrorIs(t, call(), heed.ErrNotFound, name)
		st.Fail(1, false)
		err := call()
		assert.ErrorIs(t, err, storetest.ErrFailed, name)
		assert.NotErrorIs(t, err, heed.ErrNotFound, name)
		st.Fail(0, false)
	}
}

// A service that can't read its settings, or keep them, is none.
func TestNewNeedsItsStore(t *testing.T) {
	storetest.FailEach(func(at int, late bool) bool {
		st := &storetest.Failing{Store: newStore(t, nil), At: at, After: late}
		_, err := feedback.New(ctx, feedback.Config{Store: st, Gate: feedback.Gate{Quorum: 3}})
		failed := st.Failed()
		if !failed {
			require.NoError(t, err)
			return false
		}
		if err != nil || !late {
			require.ErrorIs(t, err, storetest.ErrFailed)
		}
		s, err := feedback.Open(ctx, feedback.Config{Store: st})
		if errors.Is(err, heed.ErrNotFound) {
			return true
		}
		require.NoError(t, err)
		require.Equal(t, 3, s.Config().Gate.Quorum)
		return true
	})
}

// A tool gets a service with its host's settings, or the error of the store.
func TestOpenNeedsItsStore(t *testing.T) {
	w := newWorld(t, feedback.Config{Gate: feedback.Gate{Quorum: 3}})
	storetest.FailEach(func(at int, late bool) bool {
		st := &storetest.Failing{Store: w.store}
		st.Fail(at, late)
		s, err := feedback.Open(ctx, feedback.Config{Store: st})
		if st.Failed() {
			require.ErrorIs(t, err, storetest.ErrFailed, "call %d", at)
			require.Nil(t, s)
			return true
		}
		require.NoError(t, err)
		require.Equal(t, 3, s.Config().Gate.Quorum)
		return false
	})
}

// A similarity finds the rules that contradict a draft. It may ask a model, and that may fail.
func TestAGateThatCantCompareApprovesNothing(t *testing.T) {
	similarity := &flaky{}
	w := newWorld(t, feedback.Config{Similarity: similarity})
	w.says("ann", "tests are rare")
	w.says("bob", "tests are not rare")
	w.add(w.approval("ann", "tests are good"))
	against(w)
	w.setSubject()
	w.activate(rule("Say how"))
	similarity.failing = true
	_, err := w.review(w.subject, approve, "dan")
	assert.ErrorIs(t, err, errFlaky)
	_, err = propose(w)
	assert.ErrorIs(t, err, errFlaky)
	_, err = w.rules.Conflicts(ctx, rule(long))
	assert.ErrorIs(t, err, errFlaky)
	_, err = w.rules.Consolidate(ctx)
	assert.ErrorIs(t, err, errFlaky)
	_, err = w.Similar(ctx, feedback.Feedback{Agent: "prd", Summary: "tests are rare"}, 0)
	assert.ErrorIs(t, err, errFlaky)
	_, err = w.Resolve(ctx, feedback.Act{ID: "d2", Actor: "cleo", Reason: "x"}, feedback.EdgeCase)
	assert.ErrorIs(t, err, errFlaky)
	for _, f := range []feedback.Feedback{w.correction("ann", "tests are missing"),
		w.approval("ann", "tests are there")} {
		_, err = w.Record(ctx, f)
		require.NoError(t, err)
		_, err = w.Evaluate(ctx, f.ID)
		assert.ErrorIs(t, err, errFlaky)
		assert.Empty(t, w.get(f.ID).Class)
	}
	similarity.failing = false
	assert.Equal(t, feedback.StatePending, w.pending().Status)
	assert.Len(t, w.inject("prd", "").Rules, 2)
}

// New evidence is compared with the words of a proposal that was edited, and that may fail.
func TestAProposalThatCantBeComparedWaits(t *testing.T) {
	similarity := &flaky{}
	w := newWorld(t, feedback.Config{Similarity: similarity})
	heldOpen(w)
	p := w.pending()
	d := p.Draft
	d.Text = "the tests are missing here"
	edited, err := w.rules.Propose(ctx, feedback.Submission{
		Replaces: p.ID, Draft: d, Actor: "eve", Reason: "clearer",
	})
	require.NoError(t, err)
	w.says("cid", "tests are missing")
	similarity.failing = true
	_, _, err = w.Flush(ctx)
	require.ErrorIs(t, err, errFlaky)
	similarity.failing = false
	w.flush()
	assert.Equal(t, edited.ID, w.pending().ID)
}

// stubborn is a store that has always been changed by somebody else.
type stubborn struct {
	store.Store
	deaf bool
	end  func()
}

func (s *stubborn) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if !s.deaf {
		return s.Store.Commit(ctx, batches...)
	}
	s.end()
	return nil, heed.ErrConflict
}

func TestAStoreThatNeverAgreesIsAnError(t *testing.T) {
	st := &stubborn{Store: newStore(t, nil), end: func() {}}
	w := newWorld(t, feedback.Config{Store: st})
	p := w.approve(w.propose("paul", rule("Be brief")), "cleo")
	st.deaf = true
	_, err := w.review(p, approve, "dan")
	assert.ErrorIs(t, err, heed.ErrConflict)
	ended, cancel := context.WithCancel(ctx)
	st.end = cancel
	_, err = w.rules.Propose(ended, feedback.Submission{Draft: rule("Say why"), Actor: "paul",
		Reason: "x"})
	assert.ErrorIs(t, err, context.Canceled)
	st.deaf = false
	assert.Equal(t, feedback.StatePending, w.pending().Status)
}
