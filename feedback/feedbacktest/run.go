// Package feedbacktest is the contract of [feedback.Store] in executable form. Run it from a test of your store:
//
//	func TestStore(t *testing.T) {
//		feedbacktest.Run(t, func() (feedback.Store, error) { return mystore.Open(t.TempDir()) })
//	}
//
// It needs nothing but the standard library. Later versions of the suite may test more of what the contract says.
package feedbacktest

import (
	"testing"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/conformance"
)

// NewStore returns a fresh, empty store.
type NewStore func() (feedback.Store, error)

// Run runs the suite, a subtest a rule, each with a store of its own.
func Run(t *testing.T, newStore NewStore) { conformance.Run(t, rules, newStore) }

// Check runs the suite outside a test and returns all failures, joined: each begins with the name of its rule.
func Check(newStore NewStore) error { return conformance.Check(rules, newStore) }

type tb = conformance.TB

// rules is the suite.
var rules = []conformance.Rule[NewStore]{
	{Name: "what was stored is read back, with the next revision", Check: readsBack},
	{Name: "what is not there is ErrNotFound", Check: notFound},
	{Name: "a value is written only over the revision that was read", Check: revisionHolds},
	{Name: "a named revision is raised by each change that expects it", Check: namedRevision},
	{Name: "a change is made wholly or not at all", Check: allOrNothing},
	{Name: "of concurrent changes that expect the same, one is made", Check: oneWins},
	{Name: "audit entries are kept once, last first", Check: auditKept},
	{Name: "records are listed newest first, and of one moment by id", Check: recordsInOrder},
	{Name: "a query selects records", Check: recordsSelected},
	{Name: "what was erased is found by its id alone", Check: erased},
	{Name: "a query selects proposals, newest first", Check: proposalsSelected},
	{Name: "a query selects rules, newest first", Check: rulesSelected},
	{Name: "a loop may end early and call the store", Check: loopsAreFree},
	{Name: "what goes in and out is copied", Check: copied},
	{Name: "times and texts come back as they were", Check: faithful},
	{Name: "a context that is done changes nothing", Check: contextDone},
}
