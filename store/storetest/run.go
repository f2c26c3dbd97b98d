// Package storetest is the contract of [store.Store] in executable form. Run it from a test of your
// store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Subject{
//			New: func(o storetest.Options) (store.Store, error) {
//				return mystore.Open(t.TempDir(), o.Now, o.Limits)
//			},
//		})
//	}
//
// It needs the standard library only. Later versions of the suite may test more of the contract.
//
// The contract is a list of rules, a sentence each. A rule is a function that acts on a store and
// checks what the store returns. The fixture has the verbs for it.
package storetest

import (
	"testing"
	"time"

	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/store"
)

// A Subject makes the stores that the suite judges. Each rule has its own store.
type Subject struct {
	// New returns a fresh, empty store. It keeps ids and history for at least an hour, and at least
	// 100 observations of a cell.
	New func(Options) (store.Store, error)
	// Reopen closes a store and opens again what it kept. nil means that the store lives in memory
	// only.
	Reopen func(store.Store, Options) (store.Store, error)
	// Beside opens a second handle on the same store, like another process: it shares with the first
	// handle only what two processes could share. Both are used from then on. Every rule then runs a
	// second time over the two. nil means that a store has one handle.
	Beside func(store.Store, Options) (store.Store, error)

	paired bool // each fixture's store is a pair
}

// Options are what a store is opened with.
type Options struct {
	// Now is the clock of the store. If the engine has a clock, it must be the engine's as well, or
	// the store must go by the engine's alone. Handles may differ in it by some minutes.
	Now    func() time.Time
	Limits map[string]store.Limits // by kind of record; they win over declared ones
}

// Run runs the suite, a subtest a rule. The rule about reopening is skipped without Reopen.
func Run(t *testing.T, s Subject) { conformance.Run(t, suite(), s) }

// suite returns the rules in the form of all suites.
func suite() (all []conformance.Rule[Subject]) {
	for _, r := range rules {
		all = append(all, conformance.Rule[Subject]{
			Name: r.name, Check: func(t testing.TB, s Subject) {
				r.check(newFixture(t, s, nil))
				if s.paired = s.Beside != nil; s.paired {
					r.check(newFixture(t, s, nil))
				}
			},
		})
	}
	return all
}

// A rule is a sentence of the contract, and its check with a fixture that has a fresh store.
type rule struct {
	name  string
	check func(*fixture)
}

// rules is the contract.
var rules = []rule{
	// Evidence
	{"an id counts once", idOnce},
	{"a batch with an id counts once", batchOnce},
	{"sums do not depend on order, batches or delay", anyOrder},
	{"a clock that goes back changes nothing", clockBack},
	{"concurrent callers lose and double nothing", concurrentSums},
	{"a receipt has the parts that a read would have", partsInReceipt},
	{"history is newest first and without what was taken back", historyNewestFirst},
	{"lists and scopes have what has evidence, in order", listInOrder},
	{"a list may be a sample, by no order", listSample},

	// What takes evidence away, or begins it again
	{"a policy is kept until reset or rebuilt", policyKept},
	{"a rebuild counts the history again", rebuildCounts},
	{"a restart leaves out what was before, and only moves forward", restartLeavesOut},
	{"what is taken back is as if it had never been seen", takenBack},
	{"to retract is never to have seen, beside many others", retractBesideMany},
	{"to retract what is forgotten changes nothing", retractForgotten},
	{"to retract what no longer counts needs no history", retractUncounted},
	{"to withdraw takes back what can be, and tells the rest", withdraws},

	// What takes more than one commit
	{"a list has what a job needs", jobNeeds},
	{"a job that is cut off is finished by a sweep", jobCutOff},

	// Tenants
	{"a tenant sees, changes and leaves what is its own", tenantsApart},

	// Records
	{"a record is read back as it was written", recordReadBack},
	{"a read has all that is asked for, in order", readInOrder},
	{"a record is written over the revision that was read, which never comes again", revisionHolds},
	{"a refused commit changes nothing", refusedLeavesNothing},
	{"an expectation holds and changes nothing", expectation},
	{"a record written once stays as it is", writtenOnce},
	{"batches are applied in order", batchesInOrder},
	{"what is not valid is refused with its field", invalid},
	{"a commit that is too large is refused", tooLarge},
	{"a kind must be declared", declared},
	{"texts of any kind are kept apart", textsApart},
	{"what goes in and out is copied", copied},

	// Queries
	{"a query selects by keys and time, and sorts by time and first writing", findOrder},
	{"pages and long loops lose and double nothing", findPages},
	{"a loop may end early and call the store", loopsAreFree},

	// Callers at the same time, and several handles of a store
	{"of concurrent steps on a record none is lost", stepsConcurrent},
	{"of concurrent writers that rely on one revision one wins", oneWins},
	{"what is read together was there together", readConsistent},
	{"cells alone are a second old at most", cellsCatchUp},
	{"a commit that is cut off is whole or not at all", commitCutOff},
	{"handles whose clocks differ by minutes agree", clocksDiffer},
	{"a handle that declared nothing keeps to what others declared", handleDeclaredNothing},

	// What kinds declare
	{"every change raises the version of its kind", versionRaised},
	{"only kinds that say so have a version", versionDeclared},

	{"records live as long as their kind says", limitFor},
	{"the oldest records make room", limitMost},
	{"a kind that refuses more is full", limitRefuse},
	{"limits of the store win, and then those declared last", limitsWin},
	{"a sweep goes by the earlier clock", sweepClocks},

	// People who are forgotten
	{"a forgotten person's name is in no record, and whole records go", forgetRecords},
	{"a person's pseudonym stays the same, and is no other's", pseudonymsStay},
	{"forgetting takes all or nothing", forgetRefused},

	{"a context that is done changes nothing", contextDone},
	{"a store that is opened again has all it had", reopened},
}
