package feedback

import (
	"context"

	"github.com/heedhq/heed/internal/host"
)

// Authorizer says who may do what.
type Authorizer interface {
	// Authorize returns nil where the actor may do it, and otherwise an error that says why not. It is called outside of
	// locks, by many goroutines at the same time, and must return when the context is done. A panic is a refusal.
	Authorize(ctx context.Context, act Act) error
}

// An Act is something that a person wants to do.
type Act struct {
	Actor   string  // in canonical form
	Kind    ActKind // what
	Subject string  // the id of what to: a feedback, a proposal, a rule. Empty where there is none yet
	Draft   *Draft  // what is proposed, approved or restored, where there is such a thing; it must not be changed
}

// An ActKind names what people can do.
type ActKind string

// What people can do.
const (
	ActPropose ActKind = "propose"
	ActModify  ActKind = "modify"
	ActApprove ActKind = "approve"
	ActReject  ActKind = "reject"
	ActRetire  ActKind = "retire"
	ActRevoke  ActKind = "revoke"
	ActRestore ActKind = "restore"
	ActPin     ActKind = "pin"
	ActUnpin   ActKind = "unpin"
	ActResolve ActKind = "resolve"
	ActErase   ActKind = "erase"
	ActImport  ActKind = "import"
)

// An UnauthorizedError says that the authorizer refused an act.
type UnauthorizedError struct{ Err error }

func (e *UnauthorizedError) Error() string { return "not authorized: " + e.Err.Error() }
func (e *UnauthorizedError) Unwrap() error { return e.Err }

// refusal leaves out why: those are the host's words, which may name people.
func (*UnauthorizedError) refusal() string { return "not authorized" }

func (s *Service) authorize(ctx context.Context, act Act) error {
	if s.cfg.Authorizer == nil {
		return nil
	}
	if err := host.Call("the authorizer", func() error { return s.cfg.Authorizer.Authorize(ctx, act) }); err != nil {
		return &UnauthorizedError{err}
	}
	return nil
}
