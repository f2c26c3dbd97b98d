package learning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// The cells of a heuristic: one for what was seen, and one for what was said about each target. Any amount of what was seen leaves the
// history of what was said as it is.
const (
	cellSeen = "seen"
	cellSaid = "said"
)

// saidCells are the cells of judgements by their targets.
var saidCells = map[heed.Target]string{"": cellSaid, heed.TargetRule: cellSaid + ".rule", heed.TargetResponse: cellSaid + ".response"}

var heuristicCells = [...]string{cellSeen, cellSaid, saidCells[heed.TargetRule], saidCells[heed.TargetResponse]}

func (m *Module) cell(heuristicID, name string) evidence.Cell {
	return evidence.Cell{Kind: m.kinds.heuristic, Item: heuristicID, Name: name}
}

// A ledger is what one call reads about heuristics, and what it will commit. It must not be used concurrently.
type ledger struct {
	m        *Module
	accounts map[string]*account
	rest     []store.Record  // what else was read
	fires    []evidence.Part // of the cells of fires that were read
	batch    store.Batch
	entries  []*entry // that are in the batch, or need not be
}

// An account is what was read of one heuristic.
type account struct {
	heuristic records.Kept[Heuristic]
	pin       records.Kept[Pin]
	streak    records.Kept[streak]
	ignores   int             // the streak, as it will be
	parts     []evidence.Part // of its confidence, as they will be
	used      bool            // the commit relies on its records
}

// streak is the record of how often in a row a heuristic was ignored.
type streak struct {
	HeuristicID string    `json:"heuristic"`
	N           int       `json:"n"`
	At          time.Time `json:"at"`
}

func (m *Module) newLedger() *ledger { return &ledger{m: m, accounts: make(map[string]*account)} }

// read reads the accounts of heuristics, with other records and with cells of fires, in one call.
func (l *ledger) read(ctx context.Context, heuristicIDs []string, others []store.Ref, fires ...evidence.Cell) error {
	k := &l.m.kinds
	ids := slices.Clone(heuristicIDs)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	cells, refs := make([]evidence.Cell, 0, len(heuristicCells)*len(ids)), make([]store.Ref, 0, 3*len(ids)+len(others))
	for _, id := range ids {
		refs = append(refs, k.heuristics.Ref(id), k.pins.Ref(id), k.streaks.Ref(id))
		for _, name := range heuristicCells {
			cells = append(cells, l.m.cell(id, name))
		}
	}
	var s store.Snapshot
	if err := l.m.cfg.Store.Read(ctx, &s, append(cells, fires...), append(refs, others...)); err != nil {
		return err
	}
	for i, id := range ids {
		var failed [3]error
		a := &account{}
		a.heuristic, failed[0] = k.heuristics.Of(s.Records[3*i])
		a.pin, failed[1] = k.pins.Of(s.Records[3*i+1])
		a.streak, failed[2] = k.streaks.Of(s.Records[3*i+2])
		if err := errors.Join(failed[:]...); err != nil {
			return err
		}
		a.ignores, l.accounts[id] = a.streak.Value.N, a
	}
	for _, part := range s.Parts {
		if part.Cell.Kind == l.m.kinds.fire {
			l.fires = append(l.fires, part)
			continue
		}
		a := l.accounts[part.Cell.Item]
		a.parts = append(a.parts, part)
	}
	l.rest = s.Records[3*len(ids):]
	return nil
}

// open reads the account of a heuristic that must be there.
func (l *ledger) open(ctx context.Context, heuristicID string) (*account, error) {
	if err := l.read(ctx, []string{heuristicID}, nil); err != nil {
		return nil, err
	}
	return l.account(heuristicID)
}

var errNoHeuristic = fmt.Errorf("HeuristicID: no such heuristic, call Put first: %w", heed.ErrNotFound)

// account returns what was read about a heuristic, or [heed.ErrNotFound]. The commit fails if its records change until then.
func (l *ledger) account(heuristicID string) (*account, error) {
	a := l.accounts[heuristicID]
	if a == nil || a.heuristic.Revision == 0 {
		return nil, errNoHeuristic
	}
	a.used = true
	return a, nil
}

// An entry is a signal on its way into the evidence.
type entry struct {
	signal   Signal
	cell     string // of the heuristic
	id       string // of the observations
	person   string
	session  string
	at       time.Time
	explicit bool
	replaces []evidence.Observation // they must be taken back
	silence  *evidence.Observation  // it is taken back if it still can be
	extra    []evidence.Observation

	change  Change
	limits  []Limit               // of the confidence, as it will be
	counted *evidence.Observation // what it is in the evidence
	facts   bool                  // there is something of it in the evidence
}

// count adds a signal to the commit, and applies lock, feedback weight, diminishing returns, caps and bounds, in this order.
func (l *ledger) count(e *entry) error {
	e.change = Change{Signal: e.signal}
	if err := e.signal.Validate(); err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	if e.signal.neutral() {
		e.limit(LimitNeutral)
	}
	if e.signal.neutral() && !e.explicit && e.silence == nil || e.signal.HeuristicID == "" {
		l.add(e, nil)
		return nil
	}
	a, err := l.account(e.signal.HeuristicID)
	if err != nil {
		return err
	}
	b := l.m.believe(a)
	now := evidence.InstantOf(e.at)
	e.change.Old, _ = b.confidence(a.parts, now)
	e.change.New = e.change.Old
	if b.constraints.Lock == Locked {
		e.limit(LimitLocked)
		if e.explicit || e.silence != nil {
			e.extra, e.replaces, e.silence = nil, nil, nil
		}
		l.add(e, nil)
		return nil
	}
	e.counted = &evidence.Observation{
		ID: e.id, Cell: l.m.cell(e.signal.HeuristicID, e.cell), Channel: e.signal.Channel, Source: e.person, Session: e.session,
		Reward: e.signal.reward(), Weight: l.m.weigh(e, b.constraints, a.parts), At: e.at,
	}
	l.add(e, a)
	e.change.New, e.limits = b.confidence(a.parts, now)
	return nil
}

// add adds an entry to the batch and to the account.
func (l *ledger) add(e *entry, a *account) {
	l.entries = append(l.entries, e)
	for i := range e.replaces {
		l.batch.Retract = append(l.batch.Retract, e.replaces[i].ID)
		l.adjust(a, &e.replaces[i], (*evidence.Tally).Take)
	}
	if e.silence != nil {
		l.batch.Withdraw = append(l.batch.Withdraw, e.silence.ID)
		l.adjust(a, e.silence, (*evidence.Tally).Take)
	}
	l.batch.Observations = append(l.batch.Observations, e.extra...)
	e.facts = len(e.extra) > 0 || e.counted != nil
	if e.counted != nil {
		l.batch.Observations = append(l.batch.Observations, *e.counted)
		l.adjust(a, e.counted, (*evidence.Tally).Add)
	}
}

// adjust adds an observation to the account, or takes it away.
func (l *ledger) adjust(a *account, o *evidence.Observation, how func(t *evidence.Tally, weight, reward float64, at evidence.Instant)) {
	if a == nil || o.Weight == 0 {
		return
	}
	part := evidence.Part{Cell: o.Cell, Tally: evidence.Tally{HalfLife: l.m.cfg.HalfLife}}
	if l.m.cfg.policy().ByOrigin {
		part.Channel, part.Source = o.Channel, o.Source
	}
	i := slices.IndexFunc(a.parts, func(p evidence.Part) bool {
		return p.Cell == part.Cell && p.Channel == part.Channel && p.Source == part.Source
	})
	if i < 0 {
		i = len(a.parts)
		a.parts = append(a.parts, part)
	}
	how(&a.parts[i].Tally, o.Weight, o.Reward, evidence.InstantOf(o.At))
}

func (e *entry) limit(l Limit) { e.change.Limits = append(e.change.Limits, l) }

// commit commits the ledger's batch, with others, and returns the changes of its entries.
func (l *ledger) commit(ctx context.Context, with ...store.Batch) ([]Change, error) {
	l.expect()
	receipt, err := l.m.commit(ctx, l.batch, with...)
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(l.entries))
	for i, e := range l.entries {
		l.settle(e, &receipt)
		changes[i] = e.change
	}
	if l.m.watch != nil {
		for _, e := range l.entries {
			l.m.tell(ctx, e)
		}
	}
	return changes, nil
}

// expect makes the commit fail if a record that it relies on has changed: somebody locked the heuristic, for example. It writes the
// streaks that have changed.
func (l *ledger) expect() {
	for id, a := range l.accounts {
		if !a.used {
			continue
		}
		l.batch.Expect = append(l.batch.Expect, l.m.kinds.heuristics.Expect(id, a.heuristic.Revision), l.m.kinds.pins.Expect(id, a.pin.Revision))
		switch {
		case a.ignores == a.streak.Value.N:
		case a.ignores == 0:
			l.batch.Records = append(l.batch.Records, l.m.kinds.streaks.Removal(id, a.streak.Revision))
		default:
			s := streak{HeuristicID: id, N: a.ignores, At: l.m.orNow(time.Time{})}
			l.batch.Records = append(l.batch.Records, l.m.kinds.streaks.Record(s, a.streak.Revision))
		}
	}
}

// settle completes an entry's change by the receipt.
func (l *ledger) settle(e *entry, receipt *store.Receipt) {
	c := &e.change
	switch {
	case l.m.cfg.DryRun && e.facts:
		e.limit(limitDryRun)
	case receipt.Duplicate || e.counted != nil && slices.Contains(receipt.Duplicates, e.id):
		e.limit(LimitDuplicate)
		c.New = c.Old
		return
	}
	if e.silence != nil && slices.Contains(receipt.Kept, e.silence.ID) {
		e.limit(limitKept)
		if a := l.accounts[e.signal.HeuristicID]; a != nil {
			l.adjust(a, e.silence, (*evidence.Tally).Add)
			b := l.m.believe(a)
			c.New, e.limits = b.confidence(a.parts, evidence.InstantOf(e.at))
		}
	}
	if e.counted != nil {
		c.Weight = e.counted.Weight
	}
	c.Delta = c.New - c.Old
	c.Limits = append(c.Limits, e.limits...)
}

// commit commits a batch, with others. In a dry run it commits only the open answers of the batch.
func (m *Module) commit(ctx context.Context, b store.Batch, with ...store.Batch) (store.Receipt, error) {
	b.Policies = m.policies
	if m.cfg.DryRun {
		b = store.Batch{Expect: b.Expect, Records: slices.DeleteFunc(b.Records, func(r store.Record) bool {
			return r.Kind != m.kinds.fires.Name && r.Kind != m.kinds.streaks.Name
		})}
	}
	if len(b.Observations)+len(b.Retract)+len(b.Withdraw)+len(b.Records)+len(with) == 0 {
		return store.Receipt{}, ctx.Err()
	}
	receipts, err := m.cfg.Store.Commit(ctx, slices.Concat([]store.Batch{b}, with)...)
	if err != nil {
		return store.Receipt{}, err
	}
	return receipts[0], nil
}
