// Package evidencetest is the contract of [evidence.Store] in executable form. Run it from a test of your store:
//
//	func TestStore(t *testing.T) {
//		evidencetest.Run(t, func(now func() time.Time) (evidence.Store, error) {
//			return mystore.Open(t.TempDir(), now)
//		})
//	}
//
// It needs nothing but the standard library. Later versions of the suite may test more of what the contract says.
package evidencetest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/heedhq/heed/evidence"
)

// NewStore returns a fresh, empty store that takes its time from now, remembers ids and history for at least an hour, and
// keeps at least 100 observations of a cell.
type NewStore func(now func() time.Time) (evidence.Store, error)

// Run runs the suite, a subtest a rule, each with a store of its own.
func Run(t *testing.T, newStore NewStore) {
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) { rule.check(t, newStore) })
	}
}

// Check runs the suite outside a test and returns all failures, joined: each begins with the name of its rule.
func Check(newStore NewStore) error {
	var failures []error
	for _, rule := range rules {
		var r recorder
		done := make(chan struct{})
		go func() {
			defer close(done)
			rule.check(&r, newStore)
		}()
		<-done
		for _, failure := range r.failures {
			failures = append(failures, fmt.Errorf("%s: %s", rule.name, failure))
		}
	}
	return errors.Join(failures...)
}

// tb is what a check needs of a test.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// recorder is a tb outside a test.
type recorder struct{ failures []string }

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// rules is the suite.
var rules = []struct {
	name  string
	check func(tb, NewStore)
}{
	{"an observation is read back as a tally", readsBack},
	{"an observation of weight 0 is no evidence", weightZero},
	{"an id counts once", idOnce},
	{"an id counts once across concurrent callers", idOnceConcurrently},
	{"an id may tell of several cells", idOfSeveralCells},
	{"a batch with an id counts once", batchOnce},
	{"a refused batch changes nothing", allOrNothing},
	{"input that is not valid is refused with its field", invalidInput},
	{"the future is refused", futureRefused},
	{"sums do not depend on order or batches", anyOrder},
	{"late evidence counts with its age", lateEvidence},
	{"a clock that goes back changes nothing", clockBack},
	{"concurrent sums are exact", concurrentSums},
	{"cells are kept apart", cellsApart},
	{"parts are read in order", partsInOrder},
	{"a policy is kept until reset or rebuilt", policyKept},
	{"a rebuild counts the history anew", rebuildCounts},
	{"a restart leaves out what was before", restartLeavesOut},
	{"a restart only moves forward", restartForward},
	{"to retract is never to have seen", retractNeverSeen},
	{"to retract is never to have seen, beside many others", retractBesideMany},
	{"to retract what is unknown is ErrNotFound", retractUnknown},
	{"to retract what is forgotten changes nothing", retractForgotten},
	{"to expunge is never to have seen", expungeNeverSeen},
	{"a reset forgets what it selects", resetSelects},
	{"history is newest first and without what was taken back", historyNewestFirst},
	{"list shows one kind and scope in order", listInOrder},
	{"a loop may end early and call the store", loopsAreFree},
	{"audit entries are kept once, last first", auditKept},
	{"events stay in the outbox until they are sent", outboxKept},
	{"what goes in and out is copied", copied},
	{"a context that is done changes nothing", contextDone},
}
