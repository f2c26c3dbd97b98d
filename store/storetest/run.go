// Package storetest is the contract of [store.Store] in executable form. Run it from a test of your store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Subject{
//			New: func(o storetest.Options) (store.Store, error) {
//				return mystore.Open(t.TempDir(), o.Now, o.Limits)
//			},
//		})
//	}
//
// It needs nothing but the standard library. Later versions of the suite may test more of what the contract says.
package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/store"
)

// A Subject makes the stores that the suite judges. Each rule has a store of its own.
type Subject struct {
	// New returns a fresh, empty store. It keeps ids and history for at least an hour, and at least 100 observations of a
	// cell.
	New func(Options) (store.Store, error)
	// Reopen closes a store and opens again what it has kept. nil means that the store keeps nothing.
	Reopen func(store.Store, Options) (store.Store, error)
	// Another opens a second handle of what a store has, such as another process would have. Both
	// are used from then on. nil means that a store has one handle.
	Another func(store.Store, Options) (store.Store, error)
}

// Options are what a store is opened with.
type Options struct {
	Now    func() time.Time        // the store's clock
	Limits map[string]store.Limits // by kind of record; they win over declared ones
}

// Run runs the suite, a subtest a rule.
func Run(t *testing.T, s Subject) {
	conformance.Run(t, slices.Concat(evidenceRules, recordRules, stepRules), s)
	if s.Reopen == nil {
		t.Run(reopenRules[0].Name, func(t *testing.T) { t.Skip("the store keeps nothing") })
		return
	}
	conformance.Run(t, reopenRules, s)
}

// Check runs the suite outside a test and returns all failures, joined. Each begins with the name of its rule.
func Check(s Subject) error {
	rules := slices.Concat(evidenceRules, recordRules, stepRules)
	if s.Reopen != nil {
		rules = append(rules, reopenRules...)
	}
	return conformance.Check(rules, s)
}

type (
	tb   = conformance.TB
	rule = conformance.Rule[Subject]
)

var evidenceRules = []rule{
	{Name: "an observation is read back as a tally", Check: readsBack},
	{Name: "an observation of weight 0 is no evidence", Check: weightZero},
	{Name: "shares of an event add up to one observation", Check: shares},
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
	{Name: "a receipt has the parts that a read would have", Check: partsInReceipt},
	{Name: "a policy is kept until reset or rebuilt", Check: policyKept},
	{Name: "a rebuild counts the history anew", Check: rebuildCounts},
	{Name: "a restart leaves out what was before", Check: restartLeavesOut},
	{Name: "a restart only moves forward", Check: restartForward},
	{Name: "to retract is never to have seen", Check: retractNeverSeen},
	{Name: "to retract is never to have seen, beside many others", Check: retractBesideMany},
	{Name: "to retract what is unknown is ErrNotFound", Check: retractUnknown},
	{Name: "to retract what is forgotten changes nothing", Check: retractForgotten},
	{Name: "to retract what no longer counts needs no history", Check: retractUncounted},
	{Name: "to withdraw takes back what can be, and tells the rest", Check: withdraws},
	{Name: "to expunge is never to have seen", Check: expungeNeverSeen},
	{Name: "a reset forgets what it selects", Check: resetSelects},
	{Name: "history is newest first and without what was taken back", Check: historyNewestFirst},
	{Name: "list shows one kind and scope in order", Check: listInOrder},
	{Name: "a list may be a sample, by no order", Check: listSample},
	{Name: "scopes are those with evidence, in order", Check: scopesInOrder},
}

var recordRules = []rule{
	{Name: "a record is read back as it was written", Check: recordReadBack},
	{Name: "records are read in the order asked, and before parts", Check: readInOrder},
	{Name: "a record is written over the revision that was read", Check: revisionHolds},
	{Name: "a revision never comes again", Check: revisionNever},
	{Name: "a conflict leaves nothing", Check: conflictLeaves},
	{Name: "a known batch is left out before revisions are checked", Check: knownFirst},
	{Name: "an expectation holds and changes nothing", Check: expectation},
	{Name: "a record written once stays as it is", Check: writtenOnce},
	{Name: "batches are applied in order, all or none", Check: batchesInOrder},
	{Name: "a commit that is not valid is refused", Check: invalidCommit},
	{Name: "a commit that is too large is refused", Check: tooLarge},
	{Name: "a kind must be declared", Check: declared},
	{Name: "records come by time, and of one moment by first writing", Check: findOrder},
	{Name: "a rewritten record keeps its place among its moment", Check: findRewritten},
	{Name: "a query selects by keys and time", Check: findSelects},
	{Name: "a query for what no record can be is refused", Check: findInvalid},
	{Name: "pages lose and double nothing", Check: findPages},
	{Name: "a loop may end early and call the store", Check: loopsAreFree},
	{Name: "a long loop sees all that was there", Check: longLoop},
	{Name: "times are kept in microseconds and UTC", Check: timesKept},
	{Name: "texts of any kind are kept apart", Check: textsApart},
	{Name: "what goes in and out is copied", Check: copied},
	{Name: "of concurrent writers of a record none is lost", Check: writersConcurrent},
	{Name: "of concurrent writers over one revision one wins", Check: oneWins},
	{Name: "expectations hold against concurrent writers", Check: expectConcurrent},
	{Name: "records that are added concurrently are all there", Check: addersConcurrent},
	{Name: "parts are not older than the records read with them", Check: readConsistent},
	{Name: "a read finds what queries select", Check: readFinds},
	{Name: "every change raises the version of its kind", Check: versionRaised},
	{Name: "a version is not newer than what is read with it", Check: versionConsistent},
	{Name: "only kinds that say so have a version", Check: versionDeclared},
	{Name: "records live as long as their kind says", Check: limitFor},
	{Name: "the oldest records make room", Check: limitMost},
	{Name: "a kind that refuses more is full", Check: limitRefuse},
	{Name: "limits of the store win over declared ones", Check: limitsWin},
	{Name: "a sweep goes by the earlier clock", Check: sweepClocks},
	{Name: "a forgotten person's evidence is gone", Check: forgetEvidence},
	{Name: "a forgotten person's name is in no record", Check: forgetRecords},
	{Name: "forgetting compares names exactly", Check: forgetCase},
	{Name: "forgetting removes whole records of kinds that say so", Check: forgetWhole},
	{Name: "people are told apart by their pseudonyms", Check: forgetSeveral},
	{Name: "forgetting raises revisions of what it changes", Check: forgetRevisions},
	{Name: "forgetting takes all or nothing", Check: forgetRefused},
	{Name: "a context that is done changes nothing", Check: contextDone},
}

var reopenRules = []rule{{Name: "a store that is opened again has all it had", Check: reopened}}
