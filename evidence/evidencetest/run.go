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
	"testing"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/conformance"
)

// NewStore returns a fresh, empty store that takes its time from now, remembers ids and history for at least an hour, and
// keeps at least 100 observations of a cell.
type NewStore func(now func() time.Time) (evidence.Store, error)

// Run runs the suite, a subtest a rule, each with a store of its own.
func Run(t *testing.T, newStore NewStore) { conformance.Run(t, rules, newStore) }

// Check runs the suite outside a test and returns all failures, joined: each begins with the name of its rule.
func Check(newStore NewStore) error { return conformance.Check(rules, newStore) }

type tb = conformance.TB

// rules is the suite.
var rules = []conformance.Rule[NewStore]{
	{Name: "an observation is read back as a tally", Check: readsBack},
	{Name: "an observation of weight 0 is no evidence", Check: weightZero},
	{Name: "an id counts once", Check: idOnce},
	{Name: "an id counts once across concurrent callers", Check: idOnceConcurrently},
	{Name: "an id may tell of several cells", Check: idOfSeveralCells},
	{Name: "a batch with an id counts once", Check: batchOnce},
	{Name: "a refused batch changes nothing", Check: allOrNothing},
	{Name: "input that is not valid is refused with its field", Check: invalidInput},
	{Name: "the future is refused", Check: futureRefused},
	{Name: "sums do not depend on order or batches", Check: anyOrder},
	{Name: "late evidence counts with its age", Check: lateEvidence},
	{Name: "a clock that goes back changes nothing", Check: clockBack},
	{Name: "concurrent sums are exact", Check: concurrentSums},
	{Name: "cells are kept apart", Check: cellsApart},
	{Name: "parts are read in order", Check: partsInOrder},
	{Name: "a policy is kept until reset or rebuilt", Check: policyKept},
	{Name: "a rebuild counts the history anew", Check: rebuildCounts},
	{Name: "a restart leaves out what was before", Check: restartLeavesOut},
	{Name: "a restart only moves forward", Check: restartForward},
	{Name: "to retract is never to have seen", Check: retractNeverSeen},
	{Name: "to retract is never to have seen, beside many others", Check: retractBesideMany},
	{Name: "to retract what is unknown is ErrNotFound", Check: retractUnknown},
	{Name: "to retract what is forgotten changes nothing", Check: retractForgotten},
	{Name: "to expunge is never to have seen", Check: expungeNeverSeen},
	{Name: "a reset forgets what it selects", Check: resetSelects},
	{Name: "history is newest first and without what was taken back", Check: historyNewestFirst},
	{Name: "list shows one kind and scope in order", Check: listInOrder},
	{Name: "scopes are those with evidence, in order", Check: scopesInOrder},
	{Name: "a loop may end early and call the store", Check: loopsAreFree},
	{Name: "audit entries are kept once, last first", Check: auditKept},
	{Name: "events stay in the outbox until they are sent", Check: outboxKept},
	{Name: "what goes in and out is copied", Check: copied},
	{Name: "a context that is done changes nothing", Check: contextDone},
}
