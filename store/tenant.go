package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// tenantMark stands between the name of a kind and the tenant.
const tenantMark = "@"

// maxTenant is the bytes that a tenant's name may have.
const maxTenant = 128

// KindIn returns the kind under which a store keeps the records or cells of a kind for a tenant.
func KindIn(kind, tenant string) string {
	if tenant == "" {
		return kind
	}
	return kind + tenantMark + tenant
}

// KindOf splits the name that [KindIn] made. An implementation of [Store] keeps records and cells
// of "loop.answer@acme" as "loop.answer" was declared.
func KindOf(name string) (kind, tenant string) {
	kind, tenant, _ = strings.Cut(name, tenantMark)
	return kind, tenant
}

// leaver is the record of a tenant that is leaving. While it exists, the tenant's data can
// be neither read nor written.
type leaver struct{ Tenant string }

var leavers = View[leaver]{
	Kind: Kind{Name: "heed.leaving"},
	Place: func(l leaver) (string, time.Time, []string) {
		return l.Tenant, orEpoch(time.Time{}), nil
	},
}

// Tenant returns a view of a store that reads and writes the records, the cells and the jobs of one
// tenant alone. A view is a Store like any other: agents, learners and services that are made with
// it belong to the tenant. The tenant "" is the store itself, and a relay of its outbox publishes
// the events of all tenants.
//
// A tenant needs no declaration, so there may be any number. [Kind].Limits hold for each tenant. A
// person is forgotten for one tenant, and [Job].Leave takes a whole tenant out. No kind may contain
// an @: a view finds nothing of such a kind, and Commit and Find refuse it. Ids of observations
// and batches are known for each tenant. Sweep of a view sweeps the store. A view reads cells as
// they are now, even without records, because each Read checks that the tenant is not leaving.
//
// The errors are a [*heed.InputError] if the tenant's name is longer than 128 bytes, is no valid
// text, or contains a control character, or if the store is already the view of a tenant.
func Tenant(st Store, tenant string) (Store, error) {
	if tenant == "" {
		return st, nil
	}
	if isView(st) {
		return nil, invalid("Store", "is the view of a tenant: make the view from the store itself")
	}
	if err := checkTenant("Tenant", tenant); err != nil {
		return nil, err
	}
	return &tenantView{st, tenant}, nil
}

func checkTenant(field, tenant string) error {
	if err := evidence.CheckText(field, tenant); err != nil {
		return err
	}
	if len(tenant) > maxTenant || strings.ContainsFunc(tenant, unicode.IsControl) {
		return invalid(field, fmt.Sprintf("must have at most %d bytes, and no control characters",
			maxTenant))
	}
	return nil
}

// A tenantView is a store as one tenant sees it.
type tenantView struct {
	Store
	tenant string
}

// Root returns the store of all tenants, and the tenant. Package strategy finds there what tenants
// share.
func (v *tenantView) Root() (Store, string) { return v.Store, v.tenant }

// isView reports whether a store is the view of a tenant, or wraps one and has its method Root.
func isView(st Store) bool {
	view, ok := st.(interface{ Root() (Store, string) })
	if !ok {
		return false
	}
	_, tenant := view.Root()
	return tenant != ""
}

// idMark ends the tenant in ids of observations, of batches and of jobs.
const idMark = "\x1f"

// outbox is the kind of events that wait to be published: see package stream.
const outbox = "stream.outbox"

// together reports whether records of a kind are kept together for all tenants, so that the store
// itself finds them all: jobs, which its sweep resumes, and events, which a relay publishes.
func together(kind string) bool { return kind == tasks.Name || kind == outbox }

// in returns a kind as the store has it. A kind that has the name of a tenant already is "", which
// no store takes, because it could be a kind of another tenant.
func (v *tenantView) in(kind string) string {
	switch {
	case together(kind) || kind == Declarations:
		return kind
	case kind == "" || strings.Contains(kind, tenantMark):
		return ""
	}
	return KindIn(kind, v.tenant)
}

func (v *tenantView) out(kind string) string {
	kind, _ = KindOf(kind)
	return kind
}

func (v *tenantView) id(id string) string {
	if id == "" {
		return ""
	}
	return v.tenant + idMark + id
}

// tenant returns the tenant whose view made the batch, or "".
func (b *Batch) tenant() string {
	if n := len(b.Expect); n > 0 && b.Expect[n-1].Kind == leavers.Name {
		return b.Expect[n-1].ID
	}
	return ""
}

// validateMarks refuses an id that could be taken for one of another tenant.
func (b *Batch) validateMarks() error {
	own := b.tenant()
	check := func(id *string) error {
		if of, _, marked := strings.Cut(*id, idMark); marked && of != own {
			return invalid("ID", "must not contain U+001F, which follows the name of a tenant")
		}
		return nil
	}
	return cmp.Or(check(&b.ID), each("Retract", b.Retract, check),
		each("Withdraw", b.Withdraw, check),
		each("Observations", b.Observations, func(o *evidence.Observation) error {
			return check(&o.ID)
		}),
		each("Records", b.Records, func(r *Record) error {
			if !together(r.Kind) || r.Body.IsZero() {
				return nil // a relay of the store removes what it has published
			}
			return check(&r.ID)
		}))
}

func (v *tenantView) ids(ids []string) []string { return mapped(ids, v.id) }

func (v *tenantView) bare(id string) string { return strings.TrimPrefix(id, v.tenant+idMark) }

func mapped[A, B any](all []A, f func(A) B) []B {
	if all == nil {
		return nil
	}
	to := make([]B, len(all))
	for i, a := range all {
		to[i] = f(a)
	}
	return to
}

func (v *tenantView) cell(c evidence.Cell) evidence.Cell {
	c.Kind = v.in(c.Kind)
	return c
}

func (v *tenantView) ref(r Ref) Ref {
	if together(r.Kind) {
		r.ID = v.id(r.ID)
	}
	r.Kind = v.in(r.Kind)
	return r
}

func (v *tenantView) bareRef(r Ref) Ref {
	if together(r.Kind) {
		r.ID = v.bare(r.ID)
	}
	r.Kind = v.out(r.Kind)
	return r
}

// key finds the jobs of the tenant.
func (v *tenantView) key() string { return Key("tenant", v.tenant) }

func (v *tenantView) record(r Record) Record {
	if together(r.Kind) && !r.Body.IsZero() {
		r.Keys = append(r.Keys[:len(r.Keys):len(r.Keys)], v.key())
	}
	r.Ref = v.ref(r.Ref)
	return r
}

func (v *tenantView) bareRecord(r Record) Record {
	if together(r.Kind) && len(r.Keys) > 0 {
		r.Keys = r.Keys[:len(r.Keys)-1]
	}
	r.Ref = v.bareRef(r.Ref)
	return r
}

func (v *tenantView) query(q Query) Query {
	if together(q.Kind) {
		q.Keys = append(q.Keys[:len(q.Keys):len(q.Keys)], v.key())
	}
	q.Kind = v.in(q.Kind)
	return q
}

func (v *tenantView) part(p evidence.Part) evidence.Part {
	p.Cell.Kind = v.out(p.Cell.Kind)
	return p
}

// batch returns a batch as the store gets it.
func (v *tenantView) batch(b Batch) Batch {
	policies := make(map[string]evidence.Policy, len(b.Policies))
	for kind, policy := range b.Policies {
		policies[v.in(kind)] = policy
	}
	return Batch{
		ID: v.id(b.ID), Policies: policies, Reset: mapped(b.Reset, v.cell),
		Rebuild: mapped(b.Rebuild, v.cell),
		Restart: mapped(b.Restart, func(r Restart) Restart {
			r.Cell = v.cell(r.Cell)
			return r
		}),
		Retract: v.ids(b.Retract), Withdraw: v.ids(b.Withdraw),
		Expunge: mapped(b.Expunge, func(s SourceOf) SourceOf {
			s.Cell = v.cell(s.Cell)
			return s
		}),
		Forgotten: b.Forgotten,
		Observations: mapped(b.Observations, func(o evidence.Observation) evidence.Observation {
			o.ID, o.Cell = v.id(o.ID), v.cell(o.Cell)
			return o
		}),
		Expect: mapped(b.Expect, func(p Precondition) Precondition {
			p.Ref = v.ref(p.Ref)
			return p
		}),
		Records: mapped(b.Records, v.record), PartsOf: mapped(b.PartsOf, v.cell),
	}
}

// ErrLeft is the error of a tenant that is leaving, or has left. It is an [evidence.ErrForgotten].
var ErrLeft = fmt.Errorf("the tenant has left: %w", evidence.ErrForgotten)

// errLeft is the error of a tenant that is leaving.
func (v *tenantView) errLeft() error {
	return fmt.Errorf("store: tenant %q: %w", v.tenant, ErrLeft)
}

// present returns an error if the tenant is leaving.
func (v *tenantView) present(ctx context.Context) error {
	_, err := leavers.Get(ctx, v.Store, v.tenant)
	switch {
	case err == nil:
		return v.errLeft()
	case errors.Is(err, heed.ErrNotFound):
		return nil
	}
	return err
}

// Commit implements [Store].
func (v *tenantView) Commit(ctx context.Context, batches ...Batch) ([]Receipt, error) {
	own := mapped(batches, v.batch)
	for i := range own { // a store leaves out a batch that it knows, with what the batch expects
		for k, r := range batches[i].Records { // which only a job may remove
			if r.Kind == Pseudonyms.Name && r.Body.IsZero() {
				return nil, inside("Records", k, errPseudonyms)
			}
		}
		own[i].Expect = append(own[i].Expect, Precondition{Ref: leavers.Ref(v.tenant)})
	}
	receipts, err := v.Store.Commit(ctx, own...)
	if errors.Is(err, heed.ErrConflict) {
		if left := v.present(ctx); left != nil {
			return nil, left
		}
	}
	for i := range receipts {
		r := &receipts[i]
		r.Duplicates, r.Kept = mapped(r.Duplicates, v.bare), mapped(r.Kept, v.bare)
		r.Left, r.Parts = mapped(r.Left, v.bareRef), mapped(r.Parts, v.part)
	}
	return receipts, err
}

// Read implements [Store]. It reads together with the record of tenants that are leaving.
func (v *tenantView) Read(
	ctx context.Context, into *Snapshot, cells []evidence.Cell, refs []Ref, finds ...Query,
) error {
	records, parts, found := len(into.Records), len(into.Parts), len(into.Found)
	all := append(mapped(refs, v.ref), leavers.Ref(v.tenant))
	err := v.Store.Read(ctx, into, mapped(cells, v.cell), all, mapped(finds, v.query)...)
	last := len(into.Records) - 1
	if err == nil && into.Records[last].Revision > 0 {
		err = v.errLeft()
	}
	if err != nil {
		into.Records, into.Parts, into.Found = into.Records[:records], into.Parts[:parts],
			into.Found[:found]
		return err
	}
	into.Records = into.Records[:last]
	for i := records; i < last; i++ {
		into.Records[i] = v.bareRecord(into.Records[i])
	}
	for i := parts; i < len(into.Parts); i++ {
		into.Parts[i] = v.part(into.Parts[i])
	}
	for _, of := range into.Found[found:] {
		for i := range of {
			of[i] = v.bareRecord(of[i])
		}
	}
	return nil
}

// yielded yields what the store has for a tenant that is not leaving.
func yielded[T any](
	ctx context.Context, v *tenantView, all iter.Seq2[T, error], bare func(T) T,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := v.present(ctx); err != nil {
			yield(*new(T), err)
			return
		}
		for t, err := range all {
			if err == nil {
				t = bare(t)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// Find implements [Store].
func (v *tenantView) Find(ctx context.Context, q Query) iter.Seq2[Record, error] {
	return yielded(ctx, v, v.Store.Find(ctx, v.query(q)), v.bareRecord)
}

// List implements [Store].
func (v *tenantView) List(ctx context.Context, q CellQuery) iter.Seq2[evidence.Part, error] {
	if q.Kind = v.in(q.Kind); q.Naming != "" {
		q.Kind = KindIn("", v.tenant)
	}
	return yielded(ctx, v, v.Store.List(ctx, q), v.part)
}

// Scopes implements [Store].
func (v *tenantView) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	same := func(s string) string { return s }
	return yielded(ctx, v, v.Store.Scopes(ctx, v.in(kind)), same)
}

// History implements [Store].
func (v *tenantView) History(
	ctx context.Context, c evidence.Cell,
) iter.Seq2[evidence.Observation, error] {
	bare := func(o evidence.Observation) evidence.Observation {
		o.ID, o.Cell.Kind = v.bare(o.ID), v.out(o.Cell.Kind)
		return o
	}
	return yielded(ctx, v, v.Store.History(ctx, v.cell(c)), bare)
}

// Declare implements [Store].
func (v *tenantView) Declare(ctx context.Context, kinds ...Kind) error {
	return v.Store.Declare(ctx, append(kinds[:len(kinds):len(kinds)], leavers.Kind)...)
}
