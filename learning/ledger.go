package learning

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// The cells of a heuristic: for observed signals, for silence, for agreement, for disagreement, and
// for judgements. So observed signals leave the history of judgements as it is.
const (
	cellSeen      = "seen"
	cellSilence   = "silence"
	cellAgreed    = "agreed" // the model's answer agreed, and people accepted or rejected it
	cellDisagreed = "disagreed"
	cellJudged    = "said"
)

var heuristicCells = [...]string{cellSeen, cellSilence, cellAgreed, cellDisagreed, cellJudged}

// A ledger is what one run of a step reads about heuristics, and what it counts for them. All calls
// of one step share it, so that a later call sees what an earlier one counted before the commit. It
// works in this order:
//
//   - the calls read accounts, all that a step needs in one round trip (see Wants);
//   - each signal becomes an entry, which adds to the accounts and to one batch of evidence;
//   - right before the commit, flush adds the batch and the changed streaks to the step;
//   - after the commit, report completes the changes by the receipt, and notifies the observer.
//
// If the commit meets a conflict, the step runs again with a new ledger.
type ledger struct {
	m        *Module
	tx       *store.Tx
	accounts map[string]*account
	crowds   map[string]*crowd // by domain
	entries  []*entry
	failures []error // of the strategy

	batch   store.Batch     // the evidence that the step will add
	added   map[string]bool // the ids of its observations
	pending bool            // whether something is to be added before the commit
}

// An account is what was read of one heuristic.
type account struct {
	heuristic store.Row[heuristicRecord]
	streak    store.Row[streak]
	ignores   int             // the streak after the step
	written   int             // the streak that the step writes
	parts     []evidence.Part // of its confidence, after the step
	crowd     *crowd          // of its domain
}

// streak is the record of how often in a row a heuristic was ignored.
type streak struct {
	HeuristicID string    `json:"heuristic"`
	N           int       `json:"n"`
	At          time.Time `json:"at"`
}

// ledger returns the ledger of a run of a step.
func (m *Module) ledger(tx *store.Tx) *ledger {
	return tx.State(m, func() any {
		l := &ledger{
			m: m, tx: tx, accounts: map[string]*account{}, crowds: map[string]*crowd{},
			added: map[string]bool{},
		}
		tx.Then(l.report)
		return l
	}).(*ledger)
}

// Wants names what steps read about heuristics. The model's id "" is skipped. If a heuristic has
// another wording or domain than the module read last, its evidence takes a second read.
func (m steps) Wants(heuristicIDs ...string) store.Wants {
	ids := slices.DeleteFunc(slices.Clone(heuristicIDs), func(id string) bool { return id == "" })
	return m.wants(ids, m.lastSeen(ids))
}

// wants names what is read about heuristics that were last seen like this.
func (m *Module) wants(ids []string, last []seen) (w store.Wants) {
	w.Refs = make([]store.Ref, 0, 2*len(ids))
	w.Cells = make([]evidence.Cell, 0, (len(heuristicCells)+1)*len(ids))
	for i, id := range ids {
		w.Refs = append(w.Refs, m.kinds.heuristics.Ref(id), m.kinds.streaks.Ref(id))
		w.Cells = append(m.confidenceCells(w.Cells, id, last[i].version), m.peopleCell(last[i].domain))
	}
	return w
}

// confidenceCells appends the cells of a heuristic's confidence.
func (m *Module) confidenceCells(to []evidence.Cell, id string, version uint64) []evidence.Cell {
	for _, name := range heuristicCells {
		to = append(to, m.cell(id, version, name))
	}
	return to
}

// answerCells appends the cells of a heuristic's answers.
func (m *Module) answerCells(to []evidence.Cell, id string, version uint64) []evidence.Cell {
	for _, name := range fireCells {
		to = append(to, m.fireCell(id, version, name))
	}
	return to
}

// read reads the accounts of heuristics that were not read before. The model's id "" is skipped.
func (l *ledger) read(heuristicIDs ...string) error {
	ids := slices.Sorted(slices.Values(heuristicIDs))
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool {
		return id == "" || l.accounts[id] != nil
	})
	if len(ids) == 0 {
		return nil
	}
	for { // at most twice, because the records are not read again
		accounts, current, err := l.readOnce(ids)
		if err != nil || current {
			maps.Copy(l.accounts, accounts)
			return err
		}
	}
}

// readOnce reads accounts in one round trip. The cells of a heuristic depend on its version and its
// domain, which are only known once its record is read. So it reads the cells of the version that
// the module saw last, which is the current one as long as no other process changed it.
//
// readOnce reports false if a heuristic has another version or domain than the module knew, because
// the evidence is about another wording then, or about other people.
func (l *ledger) readOnce(ids []string) (all map[string]*account, current bool, err error) {
	m, k, known := l.m, &l.m.kinds, l.m.lastSeen(ids)
	crowds := make(map[string]*crowd, 1)
	for _, last := range known {
		crowds[last.domain] = &crowd{}
	}
	var s store.Snapshot
	w := m.wants(ids, known)
	if err := l.tx.Read(&s, w.Cells, w.Refs); err != nil {
		return nil, false, err
	}
	all, current = make(map[string]*account, len(ids)), true
	for i, id := range ids {
		a := new(account)
		if a.heuristic, err = k.heuristics.Of(s.Records[2*i]); err != nil {
			return nil, false, err
		}
		if a.streak, err = k.streaks.Of(s.Records[2*i+1]); err != nil {
			return nil, false, err
		}
		a.ignores, a.written, all[id] = a.streak.Value.N, a.streak.Value.N, a
		if a.heuristic.Revision > 0 && seenOf(&a.heuristic.Value.Heuristic) != known[i] {
			m.heuristics.Store(id, seenOf(&a.heuristic.Value.Heuristic))
			current = false
		}
		domain := known[i].domain
		if l.crowds[domain] == nil { // what the step has counted itself stays
			l.crowds[domain] = crowds[domain]
		}
		a.crowd = l.crowds[domain]
	}
	l.share(s.Parts, all, crowds)
	return all, current, nil
}

// share gives accounts and crowds the parts that are theirs. A heuristic's parts are together.
func (l *ledger) share(parts []evidence.Part, all map[string]*account, crowds map[string]*crowd) {
	for from, to := 0, 0; from < len(parts); from = to {
		of := parts[from].Cell
		for ; to < len(parts) && parts[to].Cell.Item == of.Item &&
			parts[to].Cell.Kind == of.Kind; to++ {
			parts[to].Cell = plain(parts[to].Cell)
		}
		if of.Kind == l.m.kinds.people {
			crowds[of.Item].parts = parts[from:to:to]
			continue
		}
		all[of.Item].parts = parts[from:to:to]
	}
}

// open reads the account of a heuristic that must be there.
func (l *ledger) open(heuristicID string) (*account, error) {
	if err := l.read(heuristicID); err != nil {
		return nil, err
	}
	return l.account(heuristicID)
}

var errNoHeuristic = fmt.Errorf("HeuristicID: no such heuristic, call Put first: %w",
	heed.ErrNotFound)

// account returns what was read about a heuristic, or [heed.ErrNotFound].
func (l *ledger) account(heuristicID string) (*account, error) {
	a := l.accounts[heuristicID]
	if a == nil || a.heuristic.Revision == 0 {
		return nil, errNoHeuristic
	}
	return a, nil
}

// ignored sets how often in a row a heuristic was ignored.
func (l *ledger) ignored(a *account, n int) {
	if n != a.ignores {
		a.ignores = n
		l.later()
	}
}

// later has what was collected added to the step, right before the commit.
func (l *ledger) later() {
	if !l.pending {
		l.pending = true
		l.tx.Before(l.flush)
	}
}

// flush adds the evidence and the changed streaks to the step.
func (l *ledger) flush() error {
	l.pending = false
	l.batch.Policies = l.m.policies()
	l.tx.Add(l.batch)
	l.batch = store.Batch{}
	clear(l.added)
	view := &l.m.kinds.streaks
	var changed []string // sorted, so that a step that runs again writes in the same order
	for id, a := range l.accounts {
		if a.ignores != a.written {
			changed = append(changed, id)
		}
	}
	slices.Sort(changed)
	for _, id := range changed {
		a := l.accounts[id]
		switch {
		case a.ignores == 0:
			l.tx.Put(view.Removal(id, a.streak.Revision))
		default:
			s := streak{HeuristicID: id, N: a.ignores, At: l.m.orNow(time.Time{})}
			view.Put(l.tx, s, a.streak.Revision)
		}
		a.written = a.ignores
	}
	return nil
}

// An entry is a signal on its way into the evidence.
type entry struct {
	signal   Signal
	cell     string // of the heuristic
	id       string // of the observation
	person   string
	session  string
	at       time.Time
	explicit bool // a judgement
	// not the signal counts, but what the answer's statements amount to
	idle     bool
	replaces []evidence.Observation // they must be taken back
	withdraw []evidence.Observation // taken back if that still can be
	on       *answer.Answer         // that it is about, with its statement; or nil
	how      answer.How             // the implicit signal that it is; or ""

	change  Change
	limits  []string               // of the confidence after the step
	counted *evidence.Observation  // what it is in the evidence
	also    []evidence.Observation // what else it adds to the heuristic's confidence
}

// outlived reports whether an answer was shown with another wording of its heuristic.
func (a *account) outlived(f *answer.Fire) bool {
	return f != nil && !f.Shown.IsZero() && f.Edition != a.heuristic.Value.Edition
}

// blocked returns the limit that keeps a heuristic from learning about an answer, or "".
func (l *ledger) blocked(a *account, f *answer.Fire) string {
	switch {
	case a.outlived(f):
		return limitRestarted
	case l.m.believe(a).constraints.Lock == locked:
		return limitLocked
	default:
		return ""
	}
}

// count counts a signal, and applies lock, feedback weight, diminishing returns, limits and bounds,
// in this order. If the entry has an answer, what counts of it is brought in line with its
// statements.
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
	if e.signal.Worth == 0 {
		e.limit(limitNeutral)
	}
	l.entries = append(l.entries, e)
	if a == nil {
		l.settle(e, nil, false)
		return nil
	}
	b, now := l.m.believe(a), evidence.InstantOf(e.at)
	e.change.Old, _ = b.confidence(a.parts, now)
	limit := l.blocked(a, e.fire())
	means := e.explicit || e.signal.Worth != 0
	switch {
	case limit == "" && means && !e.idle:
		e.counted = &evidence.Observation{
			ID: e.id, Cell: l.m.cell(e.signal.HeuristicID, a.heuristic.Value.Edition, e.cell),
			Channel: e.signal.Channel, Source: e.person, Session: e.session,
			Reward: e.signal.reward(), Weight: l.m.weigh(e, b.constraints, a.parts), At: e.at,
		}
	case limit != "":
		e.replaces = nil
		if e.withdraw = nil; means {
			e.limit(limit)
		}
	}
	l.settle(e, a, limit != "")
	l.add(e, a)
	e.change.New, e.limits = b.confidence(a.parts, now)
	if e.signal.Worth == 0 && e.counted == nil && len(e.withdraw)+len(e.also) == 0 {
		e.change.Old, e.change.New, e.limits = 0, 0, nil
	}
	return nil
}

// fire returns the fire that an entry is about, or nil.
func (e *entry) fire() *answer.Fire {
	if e.on == nil {
		return nil
	}
	return answers.FireOf(e.on, e.signal.HeuristicID)
}

// evidence adds to the evidence of the step. If the step takes back what it added itself, both are
// left out, because a commit can't take back what it adds.
func (l *ledger) evidence(b store.Batch) {
	if len(b.Observations)+len(b.Retract)+len(b.Withdraw) == 0 {
		return
	}
	l.later()
	own := &l.batch
	own.Retract = append(own.Retract, slices.DeleteFunc(b.Retract, l.drop)...)
	own.Withdraw = append(own.Withdraw, slices.DeleteFunc(b.Withdraw, l.drop)...)
	own.Observations = append(own.Observations, b.Observations...)
	for i := range b.Observations {
		l.added[b.Observations[i].ID] = true
	}
}

// drop leaves out the observations of an id that the step added. It reports whether there were any.
func (l *ledger) drop(id string) bool {
	if !l.added[id] {
		return false
	}
	delete(l.added, id)
	all := l.batch.Observations
	l.batch.Observations = slices.DeleteFunc(all, func(o evidence.Observation) bool {
		return o.ID == id
	})
	return true
}

// add adds an entry's observations to the step and to the account.
func (l *ledger) add(e *entry, a *account) {
	var b store.Batch
	for i := range e.replaces {
		b.Retract = append(b.Retract, e.replaces[i].ID)
		l.adjust(a, &e.replaces[i], (*evidence.Tally).Take)
	}
	for i := range e.withdraw {
		b.Withdraw = append(b.Withdraw, e.withdraw[i].ID)
		l.adjust(a, &e.withdraw[i], (*evidence.Tally).Take)
	}
	if e.counted != nil {
		l.meet(a, e.counted)
		l.adjust(a, e.counted, (*evidence.Tally).Add)
		b.Observations = append(b.Observations, *e.counted)
	}
	for i := range e.also {
		l.meet(a, &e.also[i])
		l.adjust(a, &e.also[i], (*evidence.Tally).Add)
		b.Observations = append(b.Observations, e.also[i])
	}
	// The step runs again if the record changed until then, for example because of a lock.
	l.tx.Expect(l.m.kinds.heuristics.Expect(a.heuristic.ID, a.heuristic.Revision))
	l.evidence(b)
}

// adjust adds an observation to the account, or takes it away. It gives the observation the source
// under which the cell keeps it.
func (l *ledger) adjust(
	a *account, o *evidence.Observation,
	how func(t *evidence.Tally, weight, share, reward float64, at evidence.Instant),
) {
	fair.Apart(l.m.cfg.Trust, a.parts, o)
	part := evidence.Part{
		Cell: plain(o.Cell), Channel: o.Channel, Source: o.Source,
		Tally: evidence.Tally{HalfLife: l.m.cfg.HalfLife},
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

// credit returns an observation as the record of its answer keeps it.
func credit(o *evidence.Observation) *answer.Credit {
	return &answer.Credit{
		ID: o.ID, Cell: plain(o.Cell).Name, Channel: o.Channel,
		Reward: o.Reward, Weight: o.Weight, At: o.At,
	}
}

// observation returns the observation of a credit.
func (m *Module) observation(
	heuristicID string, c *answer.Credit, source string,
) evidence.Observation {
	return evidence.Observation{
		ID: c.ID, Cell: m.cell(heuristicID, 0, c.Cell), Channel: c.Channel, Source: source,
		Reward: c.Reward, Weight: c.Weight, At: c.At,
	}
}

func (e *entry) limit(l string) { e.change.Limits = append(e.change.Limits, l) }

// changes returns the changes of the entries from one on.
func (l *ledger) changes(from int) (all []*Change) {
	for _, e := range l.entries[from:] {
		all = append(all, &e.change)
	}
	return all
}

// report completes the changes after a commit, and reports them and the strategy's failures to the
// observer. A run that is repeated does not report them again.
func (l *ledger) report(receipt store.Receipt, err error) {
	if errors.Is(err, heed.ErrConflict) || errors.Is(err, heed.ErrOutcomeUnknown) {
		return
	}
	ctx := l.tx.Context()
	if err == nil {
		for _, e := range l.entries {
			l.complete(e, &receipt)
		}
		if l.m.watch != nil {
			for _, e := range l.entries {
				l.m.notify(ctx, e)
			}
		}
	}
	for _, failure := range l.failures {
		l.m.watch.Failed(ctx, "strategy", failure)
	}
}

// complete completes an entry's change by the receipt.
func (l *ledger) complete(e *entry, receipt *store.Receipt) {
	c := &e.change
	if receipt.Duplicate || e.counted != nil && slices.Contains(receipt.Duplicates, e.id) {
		e.limit(limitDuplicate)
		c.New = c.Old
		return
	}
	for i := range e.withdraw {
		a := l.accounts[e.signal.HeuristicID]
		if a == nil || !slices.Contains(receipt.Kept, e.withdraw[i].ID) {
			continue
		}
		e.limit(limitKept)
		l.adjust(a, &e.withdraw[i], (*evidence.Tally).Add)
		b := l.m.believe(a)
		c.New, e.limits = b.confidence(a.parts, evidence.InstantOf(e.at))
	}
	if e.counted != nil {
		c.Weight = e.counted.Weight
	}
	c.Delta = c.New - c.Old
	c.Limits = append(c.Limits, e.limits...)
}

// FailuresIn returns the errors of the strategy that a step met, joined: for answers that stay as
// they were, while the rest of the step counts. It is nil without errors.
func (m steps) FailuresIn(tx *store.Tx) error { return errors.Join(m.ledger(tx).failures...) }

// valuesOf returns the changes of a call.
func valuesOf(changes []*Change, err error) (all []Change) {
	if err != nil {
		return nil
	}
	for _, c := range changes {
		all = append(all, *c)
	}
	return all
}
