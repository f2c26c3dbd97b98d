package feedback

import (
	"errors"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
)

// An Act is something that a person wants done: who, to what, and why. It is the argument of calls
// such as [Service.Join], which need ID, Actor and Reason, and heed asks [Config].Authorize about
// each act.
type Act struct {
	// ID is of the rule, the proposal or the feedback that the act is about. For Authorize of what is
	// proposed it is a new one.
	ID string
	// Actor is who wants it, as your sign-in knows them. heed does not check it: see
	// [Config].Authorize, which gets the canonical form ([Feedback].Reviewer).
	Actor string
	// Reason is for the audit log, and is never empty.
	Reason string

	// Kind is set for Authorize: "propose", "modify", "approve", "reject", "retire", "revoke",
	// "resolve", "join", "split", "erase" or "import". "split" may void the approvals of a proposal.
	// The Draft shows whether it is about a rule that is restored, pinned or unpinned.
	Kind string
	// Draft is set for Authorize: what is proposed or approved, or the draft of the rule that is
	// taken out of use, and else nil. It must not be changed. Look at its Agents if people may decide
	// only about some agents.
	Draft *Draft
}

// A RefusedError is the reason why a person may not do something, or not now. The refusal is in the
// audit log.
type RefusedError struct {
	Reason string // in words that name no person
	// State is the state or the classification that something has, if it needs another one.
	State string
	// Conflicts are the active rules that a draft contradicts, if that is why.
	Conflicts []Conflict
	// Err is the error of Config.Authorize. It is [heed.ErrConflict] if something is no longer as
	// the person saw it.
	Err error
}

// Error returns the reason, and the words of Config.Authorize if it refused.
func (e *RefusedError) Error() string {
	if e.Err != nil && !errors.Is(e.Err, heed.ErrConflict) {
		return e.Reason + ": " + e.Err.Error()
	}
	return e.Reason
}

func (e *RefusedError) Unwrap() error { return e.Err }

// notNow refuses what another state is needed for.
func notNow[S ~string](what string, state S) error {
	return &RefusedError{Reason: "the " + what + " is " + string(state), State: string(state),
		Err: heed.ErrConflict}
}

// ineligible refuses what a person may not do.
func ineligible(reason string) error { return &RefusedError{Reason: reason} }

// contradicted refuses what contradicts active rules.
func contradicted(by []Conflict) error {
	ids := make([]string, len(by))
	for i, c := range by {
		ids[i] = c.ID
	}
	return &RefusedError{Reason: "it contradicts active rules: " + strings.Join(ids, ", "),
		Conflicts: by}
}

// errFull refuses a proposal where as many are pending as may be.
var errFull = ineligible("too many proposals are pending")

// wrap adds to an error which call of the package failed.
func wrap(what string, err error) error { return valid.Wrap("feedback: "+what, err) }
