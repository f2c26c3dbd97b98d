package learning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// The cells of a heuristic: for what was seen, for silence, for agreement, for disagreement, and for what was said about each target. Caps on
// silence and on agreement then need no sources apart, and what was seen leaves the history of what was said as it is.
const (
	cellSeen      = "seen"
	cellSilence   = "silence"
	cellAgreed    = "agreed" // the model said what the heuristic says, and people accepted or rejected it
	cellDisagreed = "disagreed"
	cellSaid      = "said"
)

// saidCells are the cells of judgements by their targets.
var saidCells = map[heed.Target]string{"": cellSaid, heed.TargetRule: cellSaid + ".rule", heed.TargetResponse: cellSaid + ".response"}

var heuristicCells = [...]string{cellSeen, cellSilence, cellAgreed, cellDisagreed, cellSaid, saidCells[heed.TargetRule], saidCells[heed.TargetResponse]}

// A ledger is what one call reads about heuristics, and what it will commit. It must not be used concurrently.
type ledger struct {
	m        *Module
	accounts map[string]*account
	rest     []store.Record // what else was read
	batch    store.Batch
	entries  []*entry // that are in the batch, or need not be
}

// An account is what was read of one heuristic.
type account struct {
	heuristic store.Row[Heuristic]
	pin       store.Row[Pin]
	streak    store.Row[streak]
	ignores   int             // the streak, as it will be
	parts     []evidence.Part // of its confidence, as they will be
	fires     []evidence.Part // of the cells of its fires, where they were asked for
	used      bool            // the commit relies on its records
}

// streak is the record of how often in a row a heuristic was ignored.
type streak struct {
	HeuristicID string    `json:"heuristic"`
	N           int       `json:"n"`
	At          time.Time `json:"at"`
}

func (m *Module) newLedger() *ledger { return &ledger{m: m, accounts: make(map[string]*account)} }

// read reads the accounts of heuristics with other records, in one call. It takes a second one where the wording of a heuristic has changed.
func (l *ledger) read(ctx context.Context, heuristicIDs []string, others []store.Ref, fires ...string) error {
	ids := slices.Compact(slices.Sorted(slices.Values(heuristicIDs)))
	const tries = 5
	for try := 1; ; try++ {
		if known, err := l.readOnce(ctx, ids, others, fires); err != nil || known {
			return err
		}
		if try == tries {
			return fmt.Errorf("the wording of a heuristic keeps changing: %w", heed.ErrConflict)
		}
	}
}

// readOnce reports false where a heuristic has another edition than was known, so that the evidence is that of another wording. fires are names
// of cells of answers.
func (l *ledger) readOnce(ctx context.Context, ids []string, others []store.Ref, fires []string) (known bool, err error) {
	k := &l.m.kinds
	cells, refs := make([]evidence.Cell, 0, (len(heuristicCells)+len(fires))*len(ids)), make([]store.Ref, 0, 3*len(ids)+len(others))
	editions := make([]uint64, len(ids))
	for i, id := range ids {
		editions[i] = l.m.edition(id)
		refs = append(refs, k.heuristics.Ref(id), k.pins.Ref(id), k.streaks.Ref(id))
		for _, name := range heuristicCells {
			cells = append(cells, l.m.cell(id, editions[i], name))
		}
		for _, name := range fires {
			cells = append(cells, l.m.fireCell(id, editions[i], name))
		}
	}
	var s store.Snapshot
	if err := l.m.cfg.Store.Read(ctx, &s, cells, append(refs, others...)); err != nil {
		return false, err
	}
	known = true
	for i, id := range ids {
		var failed [3]error
		a := &account{}
		a.heuristic, failed[0] = k.heuristics.Of(s.Records[3*i])
		a.pin, failed[1] = k.pins.Of(s.Records[3*i+1])
		a.streak, failed[2] = k.streaks.Of(s.Records[3*i+2])
		if err := errors.Join(failed[:]...); err != nil {
			return false, err
		}
		a.ignores, l.accounts[id] = a.streak.Value.N, a
		if a.heuristic.Revision > 0 && a.heuristic.Value.Edition != editions[i] {
			l.m.editions.Store(id, a.heuristic.Value.Edition)
			known = false
		}
	}
	for _, part := range s.Parts {
		a := l.accounts[part.Cell.Item]
		if part.Cell = plain(part.Cell); part.Cell.Kind == l.m.kinds.fire {
			a.fires = append(a.fires, part)
			continue
		}
		a.parts = append(a.parts, part)
	}
	l.rest = s.Records[3*len(ids):]
	return known, nil
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
	id       string // of the observation
	person   string
	session  string
	at       time.Time
	explicit bool                   // a judgement
	full     float64                // the magnitude of a full judgement of its sign, if judgements diminish
	spoken   bool                   // a judgement, or a signal of the host's about an answer
	idle     bool                   // the signal itself does not count; what its answer's facts say does
	replaces []evidence.Observation // they must be taken back
	withdraw []evidence.Observation // taken back if that still can be
	answer   *store.Row[fired]      // the answer that it is about, with its new facts; nil: none
	slot     string                 // the implicit signal that it is; "": none

	change  Change
	limits  []Limit                // of the confidence, as it will be
	counted *evidence.Observation  // what it is in the evidence
	beside  []evidence.Observation // what else it adds to the heuristic's confidence
	facts   bool                   // there is something of it in the evidence
}

// count adds a signal to the commit, and applies lock, feedback weight, diminishing returns, caps and bounds, in this order. If the
// entry has an answer, what counts of that is brought in line with its facts.
func (l *ledger) count(e *entry) error {
	e.change = Change{Signal: e.signal}
	if err := e.signal.Validate(); err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	var a *account
	if e.signal.HeuristicID != "" {
		var err error
		if a, err = l.account(e.signal.HeuristicID); err != nil {
			return err
		}
	}
	if e.signal.neutral() {
		e.limit(LimitNeutral)
	}
	l.entries = append(l.entries, e)
	if a == nil {
		l.settle(e, nil, false)
		return nil
	}
	b, now := l.m.believe(a), evidence.InstantOf(e.at)
	e.change.Old, _ = b.confidence(a.parts, now)
	locked, limit := b.constraints.Lock == Locked, LimitLocked
	if e.answer != nil && e.answer.Value.outlived(&a.heuristic.Value) {
		locked, limit = true, limitRestarted
	}
	means := e.explicit || !e.signal.neutral()
	switch {
	case !locked && means && !e.idle:
		e.counted = &evidence.Observation{
			ID: e.id, Cell: l.m.cell(e.signal.HeuristicID, a.heuristic.Value.Edition, e.cell), Channel: e.signal.Channel, Source: e.person, Session: e.session,
			Reward: e.signal.reward(), Weight: l.m.weigh(e, b.constraints, a.parts), At: e.at,
		}
	case locked:
		e.replaces = nil
		if e.withdraw = nil; means {
			e.limit(limit)
		}
	}
	l.settle(e, a, locked)
	l.add(e, a)
	if e.change.New, e.limits = b.confidence(a.parts, now); e.signal.neutral() && e.counted == nil && len(e.withdraw)+len(e.beside) == 0 {
		e.change.Old, e.change.New, e.limits = 0, 0, nil
	}
	return nil
}

// add adds an entry's observations to the batch and to the account.
func (l *ledger) add(e *entry, a *account) {
	for i := range e.replaces {
		l.batch.Retract = append(l.batch.Retract, e.replaces[i].ID)
		l.adjust(a, &e.replaces[i], (*evidence.Tally).Take)
	}
	for i := range e.withdraw {
		l.batch.Withdraw = append(l.batch.Withdraw, e.withdraw[i].ID)
		l.adjust(a, &e.withdraw[i], (*evidence.Tally).Take)
	}
	if e.counted != nil {
		e.facts = true
		l.batch.Observations = append(l.batch.Observations, *e.counted)
		l.adjust(a, e.counted, (*evidence.Tally).Add)
	}
	for i := range e.beside {
		e.facts = true
		l.batch.Observations = append(l.batch.Observations, e.beside[i])
		l.adjust(a, &e.beside[i], (*evidence.Tally).Add)
	}
}

// adjust adds an observation to the account, or takes it away.
func (l *ledger) adjust(a *account, o *evidence.Observation, how func(t *evidence.Tally, weight, share, reward float64, at evidence.Instant)) {
	if a == nil || o.Weight == 0 {
		return
	}
	part := evidence.Part{Cell: plain(o.Cell), Tally: evidence.Tally{HalfLife: l.m.cfg.HalfLife}}
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
	how(&a.parts[i].Tally, o.Weight, o.Share, o.Reward, evidence.InstantOf(o.At))
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
		l.complete(e, &receipt)
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

// complete completes an entry's change by the receipt.
func (l *ledger) complete(e *entry, receipt *store.Receipt) {
	c := &e.change
	switch {
	case l.m.cfg.DryRun && e.facts:
		e.limit(limitDryRun)
	case receipt.Duplicate || e.counted != nil && slices.Contains(receipt.Duplicates, e.id):
		e.limit(LimitDuplicate)
		c.New = c.Old
		return
	}
	for i := range e.withdraw {
		if a := l.accounts[e.signal.HeuristicID]; a != nil && slices.Contains(receipt.Kept, e.withdraw[i].ID) {
			e.limit(limitKept)
			l.adjust(a, &e.withdraw[i], (*evidence.Tally).Add)
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
