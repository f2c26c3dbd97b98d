package feedback

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heedhq/heed"
)

// An Act is something that a person wants to do: see [Config].Authorize.
type Act struct {
	Actor string // in canonical form
	// Kind is "propose", "modify", "approve", "reject", "take-out", "retire", "revoke", "resolve",
	// "join", "split", "erase" or "import". The Draft shows whether it is about a rule that is
	// restored, pinned or unpinned.
	Kind string
	// the id of the feedback, the proposal or the rule. Empty before there is one
	Subject string
	// what is proposed, approved or taken out, where there is such a thing; it must not be changed
	Draft *Draft
}

// An Order names a thing, and who wants something done with it and why.
type Order struct {
	ID     string // of the rule, the proposal or the feedback
	Actor  string
	Reason string // never empty
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

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("feedback: %s: %w", what, err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
