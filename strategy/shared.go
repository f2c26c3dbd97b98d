package strategy

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// A sharedRow is what a tenant shares of a segment: the sums of its arms, within the limits on its
// people. It has no text of the tenant. It is made of the tenant's cells when they are read, so
// whatever was taken out of the cells is out of the row, too.
type sharedRow struct {
	Tenant  string    // as [store.KindIn] writes it, so that it is no person's name
	Owner   string    // a hash of the tenant, by which the tenant's rows are found
	Segment string    // a hash of the category and the context
	At      time.Time // when the sums were read
	Arms    map[ArmID]evidence.Sums
}

const (
	// sharedFor is how long a row is kept that is not written again, because the host has switched
	// sharing off.
	sharedFor = 30 * 24 * time.Hour
	// reshares is how often all segments of a tenant are read for its rows, also if the tenant does
	// not choose any more.
	reshares = 24 * time.Hour
	// mostSharing bounds the tenants that a load reads, those whose rows were written last. With 200,
	// the level of an arm is known better than any tenant needs.
	mostSharing = 200
	// An arm is shared if leastSharing other tenants have sharedMass outcomes of it each. By the
	// limits of [evidence.Trust], none of them is then more than two fifths of what counts, so what a
	// tenant reads is never the rate of a single other one.
	leastSharing = 5
	sharedMass   = 2
)

// sharedBy returns the records of what the tenants share of a learner. Each has the key of its
// segment, by which other tenants find it, the key of its owner, by which the tenant removes all of
// them, and the key of the tenant, by which a job with Leave finds them.
func sharedBy(learner string) *store.View[sharedRow] {
	return &store.View[sharedRow]{
		Kind: store.Kind{Name: learner + ".shared", Limits: store.Limits{For: sharedFor}},
		Place: func(r sharedRow) (string, time.Time, []string) {
			keys := []string{store.Key("segment", r.Segment), store.Key("owner", r.Owner)}
			if _, tenant := store.KindOf(r.Tenant); tenant != "" {
				keys = append(keys, store.Key("tenant", tenant))
			}
			return store.IDOf(r.Owner, r.Segment), r.At, keys
		},
	}
}

// A sharing is a learner's access to what all tenants share.
type sharing struct {
	store  store.Store // of all tenants
	rows   *store.View[sharedRow]
	tenant string
	// owner is a hash of the tenant. As a source it limits the tenant, and does not name it.
	owner string
	// writes is set once the learner is open for writing.
	writes bool
	// sweeping is held by the sweep that reads all segments. last is when one did.
	sweeping sync.Mutex
	last     time.Time
}

// sharing returns the access of a learner, or nil if it shares nothing. A store without tenants is
// one tenant with the empty name. It then shares with the others, if there are others, what its
// learners of the same name have shown.
func (c *Config) sharing() *sharing {
	if !c.Shared {
		return nil
	}
	root, tenant := c.Store, ""
	if view, ok := c.Store.(interface{ Root() (store.Store, string) }); ok {
		root, tenant = view.Root()
	}
	rows := sharedBy(c.Name)
	return &sharing{
		store: root, rows: rows, tenant: store.KindIn(rows.Name, tenant), owner: store.IDOf(tenant),
	}
}

// writing reports whether the learner writes what it shares. One that a tool opened does not.
func (s *sharing) writing() bool { return s != nil && s.writes }

// start returns the beliefs about arms with which a segment begins: by what other tenants share, if
// enough do, and else the cold start. With offers, it also writes what this tenant must share. The
// own row and the rows of others are read in one round trip; rows of others are the latest first.
func (l *Learner) start(ctx context.Context, f *found, offers bool) ([]evidence.Beta, error) {
	if l.shared == nil {
		return l.priors, nil
	}
	own := l.ownRow(f)
	id := store.IDOf(own.Owner, own.Segment)
	var read store.Snapshot
	err := l.shared.store.Read(ctx, &read, nil, []store.Ref{l.shared.rows.Ref(id)}, store.Query{
		Kind: l.shared.rows.Name, Keys: []string{store.Key("segment", own.Segment)},
		Limit: mostSharing,
	})
	if err != nil {
		return nil, err
	}
	if offers {
		l.offer(ctx, own, read.Records[0])
	}
	var others []sharedRow
	for _, r := range read.Found[0] {
		row, err := l.shared.rows.Of(r)
		if err != nil {
			return nil, err
		}
		if row.ID != id {
			others = append(others, row.Value)
		}
	}
	return l.levels(others, f), nil
}

// ownRow returns what the tenant must share of a segment.
func (l *Learner) ownRow(f *found) sharedRow {
	sums := sumsOf(f.items, len(l.cfg.Arms))
	row := sharedRow{
		Tenant: l.shared.tenant, Owner: l.shared.owner, Segment: store.IDOf(f.space.scope),
		At: f.now.Time(), Arms: make(map[ArmID]evidence.Sums),
	}
	for i, of := range sums {
		if of.Mass > 0 {
			row.Arms[l.cfg.Arms[i].ID] = of
		}
	}
	return row
}

// sumsOf adds up the evidence of all items, by arm.
func sumsOf(items []Item, arms int) []evidence.Sums {
	sums := make([]evidence.Sums, arms)
	for _, item := range items {
		for i, of := range item.Arms {
			sums[i] = sums[i].Plus(of)
		}
	}
	return sums
}

// offer writes what the tenant shares of a segment if that changed. A failure does not hold up
// choices: the next load writes it. A row is also written again once it is older than reshares, so
// that it does not expire while the tenant is in use. A tenant without evidence has its row
// removed.
func (l *Learner) offer(ctx context.Context, own sharedRow, r store.Record) {
	was, err := l.shared.rows.Of(r)
	switch age := own.At.Sub(was.Value.At); {
	case len(own.Arms) == 0 && was.Revision == 0:
		return
	case err == nil && age >= 0 && age < reshares && l.same(was.Value, own):
		return
	}
	batch := store.Batch{Records: []store.Record{l.shared.rows.Record(own, r.Revision)}}
	if len(own.Arms) == 0 {
		batch.Records[0].Body = store.Body{}
	}
	_, err = l.shared.store.Commit(ctx, batch)
	if !errors.Is(err, heed.ErrConflict) { // another process wrote it
		l.watch.Failed(ctx, "share", err)
	}
}

// same reports whether a row contains the same evidence as another, apart from what faded. Both are
// compared as they are at the same moment, because sums that fade differ by their age alone.
func (l *Learner) same(was, is sharedRow) bool {
	if len(was.Arms) != len(is.Arms) {
		return false
	}
	for arm, of := range is.Arms {
		faded := l.tally(was, arm)
		before := faded.At(evidence.InstantOf(is.At))
		before.Limited, of.Limited = 0, 0
		if before = sumsWithout(before, of).Plus(sumsWithout(of, before)); before.Mass > 1e-9*of.Mass ||
			before.Reward > 1e-9*of.Mass || before.Squares > 1e-9*of.Squares ||
			before.RewardSquares > 1e-9*of.Mass {
			return false
		}
	}
	return true
}

// tally returns a row's evidence on an arm as a tally, which fades.
func (l *Learner) tally(row sharedRow, arm ArmID) evidence.Tally {
	of, at := row.Arms[arm], evidence.InstantOf(row.At)
	if of.Mass <= 0 {
		return evidence.Tally{}
	}
	return evidence.Tally{
		HalfLife: l.cfg.HalfLife, Landmark: at, Mass: of.Mass, Squares: of.Squares, Reward: of.Reward,
		RewardSquares: of.RewardSquares, Neutral: evidence.Count{Last: at},
	}
}

// levels returns the beliefs about arms that follow from what other tenants share. Each tenant is a
// source, within the limits of [evidence.Trust], and an item of a [TwoLevel] of all tenants.
func (l *Learner) levels(others []sharedRow, f *found) []evidence.Beta {
	n := len(l.cfg.Arms)
	crowd, voices := fair.New(evidence.Trust{}, n), make([][][]fair.Voice, len(others))
	tenants := make([]int, n) // with enough outcomes of the arm
	for i, row := range others {
		voices[i] = make([][]fair.Voice, n)
		for arm := range n {
			part := evidence.Part{Source: row.Owner, Tally: l.tally(row, l.cfg.Arms[arm].ID)}
			if part.Tally.Mass <= 0 {
				continue
			}
			if sums := part.Tally.At(f.now); sums.Mass >= sharedMass {
				tenants[arm]++
			}
			voices[i][arm] = crowd.Hear(nil, arm, []evidence.Part{part}, f.now)
		}
	}
	// Without an arm that enough tenants share, a reader could work out what a single tenant shared.
	if slices.Max(tenants) < leastSharing {
		return l.priors
	}
	crowd.Settle(slices.Values(voices))
	items := make([]Item, len(others))
	for i := range others {
		items[i].Arms = make([]evidence.Sums, n)
		for arm := range n {
			items[i].Arms[arm] = crowd.ShareVoices(arm, voices[i][arm])
		}
	}
	model := TwoLevel{}.Model(Segment{l.priors, l.cfg.MinConfidence}, items).(*twoLevel)
	priors, own := slices.Clone(l.priors), sumsOf(f.items, n)
	for arm := range n {
		if tenants[arm] >= leastSharing {
			priors[arm] = begin(model.levels[arm], model.countsOf(own[arm]))
		}
	}
	return priors
}

// begin returns the belief with which an arm begins in one more tenant, of which own is known. The
// tenant's rate lies around the level as the others' do: level and strength give its variance.
// How far the tenant goes its own way follows from its own outcomes: where they are improbable, the
// belief has less weight.
//
// It weighs a series of beliefs with the same mean, whose sums of shapes go from the greatest, by
// the variance of tenants, down to leastStart by thirds. Each is weighed by its prior odds and by
// the Beta-binomial likelihood of the tenant's own outcomes, and the logarithms of the sums are
// averaged.
func begin(level evidence.Belief, own counts) evidence.Beta {
	m, known := level.Level.Mean(), 1/(level.Level.Alpha+level.Level.Beta+1)
	apart := 0.
	for _, at := range [...]struct{ z, weight float64 }{{-math.Sqrt(3), 1. / 6}, {0, 2. / 3},
		{math.Sqrt(3), 1. / 6}} { // Gauss and Hermite's three points
		apart += at.weight / (1 + level.Strength*math.Exp(at.z*level.Doubt))
	}
	most := max(1/(known+(1-known)*apart)-1, leastStart)
	var weights, logs float64
	greatest := math.Inf(-1)
	type weight struct{ log, probability float64 }
	var all []weight
	for t, p := most, 1.; ; t, p = t/3, ownWay {
		t = max(t, leastStart)
		a, b := max(t*m, leastShape), max(t*(1-m), leastShape)
		log := math.Log(p) + lgamma(t) - lgamma(a) - lgamma(b) + lgamma(a+own.successes) +
			lgamma(b+own.failures) - lgamma(t+own.total())
		greatest, all = max(greatest, log), append(all, weight{math.Log(t), log})
		if t <= leastStart {
			break
		}
	}
	for _, w := range all {
		p := math.Exp(w.probability - greatest)
		weights, logs = weights+p, logs+p*w.log
	}
	total := math.Exp(logs / weights)
	return evidence.Beta{Alpha: total * m, Beta: total * (1 - m)}
}

const (
	leastStart = 2   // outcomes, as an even prior
	ownWay     = 0.3 // the odds beforehand of each smaller weight
)

// reshare reads all segments of the tenant once a day for [Learner.Sweep], so that what others have
// taken out of the tenant's cells, such as the evidence of a person who was forgotten, is not
// shared for longer. One sweep at a time does it.
func (l *Learner) reshare(ctx context.Context, now time.Time) error {
	if !l.shared.writing() || !l.shared.sweeping.TryLock() {
		return nil
	}
	defer l.shared.sweeping.Unlock()
	if since := now.Sub(l.shared.last); since >= 0 && since < reshares {
		return nil
	}
	there := make(map[string]bool)
	for scope, err := range l.cfg.Store.Scopes(ctx, l.kinds.arm) {
		if err != nil {
			return err
		}
		f, err := l.loadSample(ctx, space{l.kinds, scope}, evidence.InstantOf(now), l.sampleItems)
		if err == nil {
			f.settle()
			_, err = l.start(ctx, f, true)
		}
		if err != nil {
			return err
		}
		there[store.IDOf(scope)] = true
	}
	err := l.unshare(ctx, func(segment string) bool { return !there[segment] })
	if err == nil {
		l.shared.last = now
	}
	return err
}

// unshare removes what the tenant shares of some segments, by their hashes, until they are read
// again.
func (l *Learner) unshare(ctx context.Context, gone func(segment string) bool) error {
	if l.shared == nil {
		return nil
	}
	var b store.Batch
	for row, err := range l.shared.rows.Find(ctx, l.shared.store, store.Query{
		Keys: []string{store.Key("owner", l.shared.owner)},
	}) {
		if err != nil {
			return err
		}
		if gone(row.Value.Segment) {
			b.Records = append(b.Records, l.shared.rows.Removal(row.ID, row.Revision))
		}
	}
	if len(b.Records) == 0 {
		return nil
	}
	_, err := l.shared.store.Commit(ctx, b)
	if errors.Is(err, heed.ErrConflict) { // it was just written, of what is there now or soon
		return nil
	}
	return err
}
