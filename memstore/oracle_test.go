//go:build !race

package memstore_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A plainStore is a store without any cleverness. It keeps every observation and adds all of them
// up when it is asked, and looks at every record to find one. It forgets no history.
type plainStore struct {
	kept     []evidence.Observation
	known    map[string]bool
	restarts map[evidence.Cell]time.Time
	records  []plainRecord
	seq      int
}

type plainRecord struct {
	store.Record
	note note
	seq  int
}

var plainKinds = []store.Kind{
	{Name: "note", Decided: []string{"by"}, Caused: []string{"seen"}},
	{Name: "most", Decided: []string{"by"}, Limits: store.Limits{Most: 5}},
	{Name: "full", Limits: store.Limits{Most: 4, Refuse: true}},
	{Name: "whole", Caused: []string{"By"}, Whole: true},
}

var plainPolicies = map[string]evidence.Policy{
	"plain": {}, "fading": {HalfLife: time.Hour}, "origin": {HalfLife: time.Hour, ByOrigin: true},
}

func (p *plainStore) clone() *plainStore {
	return &plainStore{slices.Clone(p.kept), maps.Clone(p.known), maps.Clone(p.restarts),
		slices.Clone(p.records), p.seq}
}

// commit returns the store as it is after a commit, with its receipts. The ids of kept can't be
// withdrawn.
func (p *plainStore) commit(
	batches []store.Batch, kept []string,
) (*plainStore, []store.Receipt, error) {
	next := p.clone()
	receipts := make([]store.Receipt, len(batches))
	for i := range batches {
		if err := next.apply(&batches[i], &receipts[i], kept); err != nil {
			return p, nil, err
		}
	}
	for _, k := range plainKinds {
		over := -k.Limits.Most
		for _, r := range next.records {
			if r.Kind == k.Name {
				over++
			}
		}
		if k.Limits.Most == 0 || over <= 0 {
			continue
		}
		if k.Limits.Refuse {
			return p, nil, evidence.ErrFull
		}
		slices.SortFunc(next.records, comparePlain)
		next.records = slices.DeleteFunc(next.records, func(r plainRecord) bool {
			over--
			if r.Kind != k.Name {
				over++
			}
			return r.Kind == k.Name && over >= 0
		})
	}
	return next, receipts, nil
}

func comparePlain(a, b plainRecord) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.seq, b.seq))
}

func (p *plainStore) apply(b *store.Batch, receipt *store.Receipt, kept []string) error {
	if receipt.Duplicate = b.ID != "" && p.known[b.ID]; receipt.Duplicate {
		return nil
	}
	p.takeAway(b, receipt, kept)
	before := maps.Clone(p.known)
	for i, x := range b.Observations {
		if before[x.ID] {
			if !slices.Contains(receipt.Duplicates, x.ID) {
				receipt.Duplicates = append(receipt.Duplicates, x.ID)
			}
			continue
		}
		same := func(y evidence.Observation) bool { return y.ID == x.ID && y.Cell == x.Cell }
		if !slices.ContainsFunc(b.Observations[:i], same) {
			p.kept = append(p.kept, x)
			p.known[x.ID] = true
		}
	}
	if b.ID != "" {
		p.known[b.ID] = true
	}
	for _, e := range b.Expect {
		if r := p.find(e.Ref); r == nil && e.Revision != 0 || r != nil && r.Revision != e.Revision {
			return heed.ErrConflict
		}
	}
	for _, r := range b.Records {
		if err := p.write(r, receipt); err != nil {
			return err
		}
	}
	return nil
}

func (p *plainStore) takeAway(b *store.Batch, receipt *store.Receipt, kept []string) {
	remove := func(gone func(evidence.Observation) bool) { p.kept = slices.DeleteFunc(p.kept, gone) }
	for _, c := range b.Reset {
		remove(func(x evidence.Observation) bool { return x.Cell == c })
		delete(p.restarts, c)
	}
	for _, r := range b.Restart {
		if r.At.After(p.restarts[r.Cell]) {
			p.restarts[r.Cell] = r.At
		}
	}
	gone := slices.Clone(b.Retract)
	for _, id := range b.Withdraw {
		if !p.known[id] || slices.Contains(kept, id) {
			receipt.Kept = append(receipt.Kept, id)
		} else {
			gone = append(gone, id)
		}
	}
	remove(func(x evidence.Observation) bool {
		of := store.SourceOf{Cell: x.Cell, Source: x.Source}
		return slices.Contains(gone, x.ID) || slices.Contains(b.Expunge, of)
	})
}

// run does what a job does.
func (p *plainStore) run(job store.Job) {
	p.kept = slices.DeleteFunc(p.kept, func(x evidence.Observation) bool {
		return slices.Contains(job.Expunge, x.Source) || slices.Contains(job.Forget, x.Source) ||
			slices.ContainsFunc(job.Reset, func(s store.Selection) bool { return s.Covers(x.Cell) })
	})
	for _, s := range job.Reset {
		maps.DeleteFunc(p.restarts, func(c evidence.Cell, _ time.Time) bool { return s.Covers(c) })
	}
	for _, name := range job.Forget {
		p.forget(name)
	}
}

// forget takes a person out of the records. Their pseudonym is a star.
func (p *plainStore) forget(name string) {
	key := store.PersonKey(name)
	p.records = slices.DeleteFunc(p.records, func(r plainRecord) bool {
		return r.Kind == "whole" &&
			slices.Contains(r.Keys, key)
	})
	for i := range p.records {
		r := &p.records[i]
		at := slices.Index(r.Keys, key)
		if at < 0 {
			continue
		}
		r.Revision = math.MaxInt64 // nobody has seen it
		r.Keys = slices.Clone(r.Keys)
		if r.note.By == name && r.Kind != "full" {
			r.note.By, r.Keys[at] = "*", "person=*"
		} else {
			r.Keys = slices.Delete(r.Keys, at, at+1)
		}
		if r.note.Seen == name && r.Kind == "note" {
			r.note.Seen = ""
		}
	}
}

func (p *plainStore) find(ref store.Ref) *plainRecord {
	if i := slices.IndexFunc(p.records, func(r plainRecord) bool { return r.Ref == ref }); i >= 0 {
		return &p.records[i]
	}
	return nil
}

func (p *plainStore) write(r store.Record, receipt *store.Receipt) error {
	there := p.find(r.Ref)
	switch {
	case there == nil && (r.Revision == 0 || r.Revision == store.Once):
		p.seq++
		p.records = append(p.records, plainRecord{Record: r, seq: p.seq})
		there = &p.records[len(p.records)-1]
	case there != nil && r.Revision == store.Once:
		receipt.Left = append(receipt.Left, r.Ref)
		return nil
	case there == nil || there.Revision != r.Revision:
		return heed.ErrConflict
	case r.Body.IsZero():
		p.records = slices.DeleteFunc(p.records, func(x plainRecord) bool { return x.Ref == r.Ref })
		return nil
	}
	there.At, there.Keys = r.At, r.Keys
	there.note, _ = store.Decode[note](r.Body)
	there.Revision = 0 // to be learned from the store
	return nil
}

// tallies adds up what counts of a cell, by origin.
func (p *plainStore) tallies(c evidence.Cell) map[[2]string]*evidence.Tally {
	policy := plainPolicies[c.Kind]
	all := make(map[[2]string]*evidence.Tally)
	for _, x := range p.kept {
		if x.Cell != c || x.Weight == 0 || x.At.Before(p.restarts[c]) {
			continue
		}
		var from [2]string
		if policy.ByOrigin {
			from = [2]string{x.Channel, x.Source}
		}
		if all[from] == nil {
			all[from] = &evidence.Tally{HalfLife: policy.HalfLife}
		}
		all[from].Add(x.Weight, x.Share, x.Reward, evidence.InstantOf(x.At))
	}
	return all
}

func (p *plainStore) query(q store.Query) (found []plainRecord) {
	for _, r := range p.records {
		if r.Kind == q.Kind && !r.At.Before(q.Since) && (q.Until.IsZero() || r.At.Before(q.Until)) &&
			!slices.ContainsFunc(q.Keys, func(key string) bool { return !slices.Contains(r.Keys, key) }) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, comparePlain)
	if !q.Oldest {
		slices.Reverse(found)
	}
	if q.Limit > 0 && len(found) > q.Limit {
		found = found[:q.Limit]
	}
	return found
}

// A trial makes batches of everything that a batch may hold, in any combination, for a store and
// for the plain one.
type trial struct {
	*rapid.T
	store          *memstore.Store
	twin           *memstore.Store // loaded from a dump of the store; or nil
	truth          *plainStore
	forgetsNothing bool // the history is long enough
}

// TestStoreAgreesWithAPlainOne compares all that can be read after each commit.
func TestStoreAgreesWithAPlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perCell := rapid.SampledFrom([]int{1, 3, 10_000}).Draw(t, "history")
		cfg := memstore.Config{Now: newClock().time,
			Retention: store.Retention{HistoryPerCell: perCell}}
		st, err := memstore.New(cfg)
		require.NoError(t, err)
		require.NoError(t, st.Declare(ctx, plainKinds...))
		truth := &plainStore{known: make(map[string]bool), restarts: make(map[evidence.Cell]time.Time)}
		r := &trial{T: t, store: st, truth: truth, forgetsNothing: perCell > 3}
		for range rapid.IntRange(1, 25).Draw(t, "commits") {
			switch rapid.IntRange(0, 5).Draw(t, "reload") {
			case 0:
				r.twin = reload(t, r.store, cfg)
			case 1:
				if r.twin != nil {
					r.store, r.twin = r.twin, r.store
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "job") == 0 {
				r.job()
			} else {
				r.commit()
			}
			r.compareEvidence()
			r.compareRecords()
			r.compareTwins()
		}
	})
}

var (
	drawCell = rapid.Custom(func(t *rapid.T) evidence.Cell {
		return evidence.Cell{
			Kind: rapid.SampledFrom([]string{"plain", "fading", "origin"}).Draw(t, "kind"), Scope: "s",
			Item: rapid.SampledFrom([]string{"", "i"}).Draw(t, "item"),
			Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
		}
	})
	drawTime = rapid.Custom(func(t *rapid.T) time.Time {
		return start.Add(-time.Duration(rapid.IntRange(0, 300).Draw(t, "minutes ago")) * time.Minute)
	})
	drawID = rapid.SampledFrom([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9",
		"10", "11"})
	drawPerson      = rapid.SampledFrom([]string{"ann", "bob", "cy"})
	drawObservation = rapid.Custom(func(t *rapid.T) evidence.Observation {
		return evidence.Observation{
			ID: drawID.Draw(t, "id"), Cell: drawCell.Draw(t, "cell"), At: drawTime.Draw(t, "at"),
			Channel: rapid.SampledFrom([]string{"", "spoken"}).Draw(t, "channel"),
			Source:  rapid.OneOf(rapid.Just(""), drawPerson).Draw(t, "source"),
			Reward:  rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "reward"),
			Weight:  rapid.SampledFrom([]float64{0, 0.5, 1, 3}).Draw(t, "weight"),
			Share:   rapid.SampledFrom([]float64{0, 1, 0.5}).Draw(t, "share"),
		}
	})
	drawRef = rapid.Custom(func(t *rapid.T) store.Ref {
		return store.Ref{
			Kind: rapid.SampledFrom(plainKinds).Draw(t, "kind").Name,
			ID:   rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "id"),
		}
	})
)

func (r *trial) record() store.Record {
	record := store.Record{Ref: drawRef.Draw(r.T, "ref")}
	there := r.truth.find(record.Ref)
	if there != nil {
		record.Revision = there.Revision
	}
	switch rapid.IntRange(0, 9).Draw(r.T, "revision") {
	case 0:
		record.Revision = store.Once
	case 1:
		record.Revision++ // never one that is current
	case 2:
		if there != nil {
			return record // to be removed
		}
	}
	n := note{Text: rapid.SampledFrom([]string{"x", "y"}).Draw(r.T, "text")}
	record.Keys = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"k=1", "k=2", "l=1"}), 0, 3,
		rapid.ID).Draw(r.T, "keys")
	if rapid.Bool().Draw(r.T, "named") {
		n.By = drawPerson.Draw(r.T, "by")
		record.Keys = append(record.Keys, store.PersonKey(n.By))
		if record.Kind == "note" && rapid.Bool().Draw(r.T, "seen") {
			n.Seen = n.By
		}
	}
	record.At, record.Body = start.Add(time.Duration(rapid.IntRange(0, 3).Draw(r.T,
		"at"))*time.Second), store.Of(n)
	return record
}

// batches draws what to commit.
func (r *trial) batches() (all []store.Batch) {
	written := make(map[store.Ref]bool)
	for i := range rapid.IntRange(1, 3).Draw(r.T, "batches") {
		b := store.Batch{Policies: plainPolicies}
		b.Observations = rapid.SliceOfN(drawObservation, 0, 4).Draw(r.T, "observations")
		if rapid.IntRange(0, 3).Draw(r.T, "once") == 0 {
			b.ID = rapid.OneOf(drawID, rapid.SampledFrom([]string{"x", "y", "z"})).Draw(r.T, "batch")
		}
		for range rapid.IntRange(0, 3).Draw(r.T, "records") {
			if record := r.record(); !written[record.Ref] {
				written[record.Ref] = true
				b.Records = append(b.Records, record)
			}
		}
		if i == 0 {
			r.taking(&b)
		}
		b.PartsOf = store.CellsOf(b.Observations...)
		b.PartsOf = b.PartsOf[rapid.IntRange(0, len(b.PartsOf)).Draw(r.T, "parts"):]
		all = append(all, b)
	}
	if ref := drawRef.Draw(r.T, "expected"); !written[ref] && rapid.Bool().Draw(r.T, "expect") {
		e := store.Precondition{Ref: ref}
		if there := r.truth.find(ref); there != nil && rapid.IntRange(0, 5).Draw(r.T, "stale") > 0 {
			e.Revision = there.Revision
		}
		all[len(all)-1].Expect = []store.Precondition{e}
	}
	return all
}

func (r *trial) taking(b *store.Batch) {
	t := r.T
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		c := drawCell.Draw(t, "reset")
		b.Reset = []evidence.Cell{c}
	case 1:
		b.Rebuild = []evidence.Cell{drawCell.Draw(t, "rebuild")}
	case 2:
		b.Restart = []store.Restart{{Cell: drawCell.Draw(t, "restart"), At: drawTime.Draw(t, "from")}}
	case 3:
		b.Retract = rapid.SliceOfN(drawID, 1, 3).Draw(t, "retract")
		b.Retract = slices.DeleteFunc(b.Retract, func(id string) bool { return !r.truth.known[id] })
	case 4:
		b.Withdraw = rapid.SliceOfNDistinct(drawID, 1, 3, rapid.ID).Draw(t, "withdraw")
	case 5:
		b.Expunge = []store.SourceOf{
			{Cell: drawCell.Draw(t, "of"), Source: drawPerson.Draw(t, "expunge")},
		}
	}
	b.Observations = slices.DeleteFunc(b.Observations, func(o evidence.Observation) bool {
		return slices.Contains(b.Retract, o.ID) || slices.Contains(b.Withdraw, o.ID)
	})
}

// job runs a job.
func (r *trial) job() {
	t := r.T
	var job store.Job
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		c := drawCell.Draw(t, "reset")
		job.Reset = []store.Selection{{Kind: c.Kind, Scope: c.Scope, Item: c.Item,
			Name: rapid.SampledFrom([]string{"", c.Name}).Draw(t, "of")}}
	case 1:
		job.Rebuild = plainPolicies
	case 2:
		job.Expunge = []string{drawPerson.Draw(t, "expunge")}
	case 3:
		job.Forget = []string{drawPerson.Draw(t, "forget"), drawPerson.Draw(t, "and")}
	}
	err := store.Run(ctx, r.store, job)
	if r.twin != nil {
		require.Equal(r, err == nil, store.Run(ctx, r.twin, job) == nil)
	}
	if err != nil {
		require.False(r, r.forgetsNothing, "%v", err)
		require.ErrorIs(r, err, evidence.ErrForgotten)
		return // it changed nothing, as the comparison will show
	}
	r.truth.run(job)
	r.learnRevisions()
}

func (r *trial) commit() {
	batches := r.batches()
	receipts, err := r.store.Commit(ctx, batches...)
	if r.twin != nil {
		same, failure := r.twin.Commit(ctx, batches...)
		// of two faults, either may be told
		require.Equal(r, err == nil, failure == nil, "%v; %v", err, failure)
		require.Equal(r, receipts, same)
	}
	if r.forgetsNothing {
		require.NotErrorIs(r, err, evidence.ErrForgotten)
	}
	if forgotten := err != nil && strings.Contains(err.Error(),
		evidence.ErrForgotten.Error()); forgotten {
		return // it changed nothing, as the comparison will show
	}
	var kept []string
	if err == nil && !r.forgetsNothing {
		kept = receipts[0].Kept
	}
	next, want, failure := r.truth.commit(batches, kept)
	if failure != nil {
		require.ErrorIs(r, err, failure)
		return
	}
	require.NoError(r, err)
	r.truth = next
	for i := range receipts {
		got := receipts[i]
		if got.Revision == 0 { // else it is learned below
			got.Revision = want[i].Revision
		}
		require.Equal(r, want[i].Duplicate, got.Duplicate)
		require.Equal(r, want[i].Duplicates, got.Duplicates)
		require.Equal(r, want[i].Kept, got.Kept)
		require.Equal(r, want[i].Left, got.Left)
		r.compareParts(&batches[i], &got)
	}
	r.learnRevisions()
}

// compareParts compares the parts of a receipt with what is read afterwards.
func (r *trial) compareParts(b *store.Batch, receipt *store.Receipt) {
	var cells []evidence.Cell
	if !receipt.Duplicate {
		cells = b.PartsOf
	}
	var s store.Snapshot
	require.NoError(r, r.store.Read(ctx, &s, cells, nil))
	require.Equal(r, s.Parts, receipt.Parts)
}

// learnRevisions takes over the revisions of what was written. All others must be as they were.
func (r *trial) learnRevisions() {
	for i := range r.truth.records {
		want := &r.truth.records[i]
		var s store.Snapshot
		require.NoError(r, r.store.Read(ctx, &s, nil, []store.Ref{want.Ref}))
		got := s.Records[0].Revision
		require.NotZero(r, got, want.Ref)
		if want.Revision == 0 || want.Revision == math.MaxInt64 {
			want.Revision = got
		}
		require.Equal(r, want.Revision, got)
	}
}

func (r *trial) compareEvidence() {
	for kind := range plainPolicies {
		for _, item := range []string{"", "i"} {
			for _, name := range []string{"a", "b"} {
				c := evidence.Cell{Kind: kind, Scope: "s", Item: item, Name: name}
				want := r.truth.tallies(c)
				var s store.Snapshot
				require.NoError(r, r.store.Read(ctx, &s, []evidence.Cell{c}, nil))
				require.Len(r, s.Parts, len(want), "%v", c)
				for _, part := range s.Parts {
					w := want[[2]string{part.Channel, part.Source}]
					require.NotNil(r, w)
					compareTallies(r, w, &part.Tally)
				}
			}
		}
	}
}

func compareTallies(t require.TestingT, want, got *evidence.Tally) {
	now := evidence.InstantOf(start)
	w, g := want.At(now), got.At(now)
	for _, pair := range [][2]float64{{w.Mass, g.Mass}, {w.Reward, g.Reward}, {w.Squares, g.Squares},
		{w.RewardSquares, g.RewardSquares}} {
		assert.LessOrEqual(t, math.Abs(pair[0]-pair[1]), 1e-9)
	}
	assert.Equal(t, [3]evidence.Count{want.Positive, want.Negative, want.Neutral},
		[3]evidence.Count{got.Positive, got.Negative, got.Neutral})
}

var pseudonym = regexp.MustCompile(`forgotten-[a-z0-9]+`)

// compareRecords draws a query and compares what it finds: at once, and page by page.
func (r *trial) compareRecords() {
	q := store.Query{
		Kind: rapid.SampledFrom(plainKinds).Draw(r.T, "query").Name,
		Keys: rapid.SliceOfN(rapid.SampledFrom([]string{"k=1", "k=2", "l=1", "person=ann"}), 0,
			2).Draw(r.T, "keys"),
		Oldest: rapid.Bool().Draw(r.T, "oldest"), Limit: rapid.IntRange(0, 4).Draw(r.T, "limit"),
	}
	if rapid.Bool().Draw(r.T, "bounded") {
		q.Since = start.Add(time.Duration(rapid.IntRange(0, 2).Draw(r.T, "since")) * time.Second)
		q.Until = q.Since.Add(time.Duration(rapid.IntRange(0, 3).Draw(r.T, "until")) * time.Second)
	}
	require.Equal(r, plainTexts(r.truth.query(q)), r.texts(q, nil))
	limit := q.Limit
	q.Limit = 0
	all := plainTexts(r.truth.query(q))
	var paged []string
	for q.Limit = max(limit, 1); ; {
		page := r.texts(q, &q.After)
		paged = append(paged, page...)
		if len(page) < q.Limit {
			break
		}
	}
	require.Equal(r, all, paged)
}

// compareTwins compares all records of the two stores.
func (r *trial) compareTwins() {
	for _, k := range plainKinds {
		if q := (store.Query{Kind: k.Name}); r.twin != nil {
			require.Equal(r, r.textsOf(r.store, q, nil), r.textsOf(r.twin, q, nil))
		}
	}
}

func (r *trial) texts(q store.Query, place *string) []string { return r.textsOf(r.store, q, place) }

func (r *trial) textsOf(st *memstore.Store, q store.Query, place *string) (all []string) {
	for record, err := range st.Find(ctx, q) {
		require.NoError(r, err)
		n, err := store.Decode[note](record.Body)
		require.NoError(r, err)
		all = append(all, pseudonym.ReplaceAllString(fmt.Sprint(record.Ref, record.Revision, record.At,
			record.Keys, n), "*"))
		if place != nil {
			*place = record.Place
		}
	}
	return all
}

func plainTexts(records []plainRecord) (all []string) {
	for _, r := range records {
		all = append(all, fmt.Sprint(r.Ref, r.Revision, r.At, r.Keys, r.note))
	}
	return all
}

// TestStoreMemory measures how many bytes the store uses for items, records and history. Each item
// has one arm that was observed once, and the history is off. Each record has different keys, and
// the bytes of its body are not counted.
func TestStoreMemory(t *testing.T) {
	const n = 50_000
	st := newStore(t, memstore.Config{Retention: store.Retention{NoHistory: true}}, notes)
	before := heap()
	for i := range n {
		o := observe(fmt.Sprintf("%08d-0000-4000-8000-000000000000", i), start)
		o.Cell.Item = fmt.Sprintf("%08d-aaaa-4aaa-8aaa-aaaaaaaaaaaa", i)
		put(t, st, store.Batch{Observations: []evidence.Observation{o}})
	}
	items := heap() - before
	value := &note{}
	before = heap()
	for i := range n {
		r := record(fmt.Sprint(i), 0, start, note{}, "state=open", fmt.Sprint("item=", i),
			fmt.Sprint("session=", i/10))
		r.Body = store.Of(value)
		put(t, st, store.Batch{Records: []store.Record{r}})
	}
	records := heap() - before
	withHistory := newStore(t, memstore.Config{})
	before = heap()
	for i := range n {
		o := observe(fmt.Sprintf("%08d-0000-4000-8000-000000000000", i), start)
		o.Cell.Item = fmt.Sprint(i % 2000)
		put(t, withHistory, store.Batch{Observations: []evidence.Observation{o}})
	}
	held := heap() - before
	t.Logf("%d bytes an item, %d bytes a record, %d bytes an observation that is held", items/n,
		records/n, held/n)
	assert.Less(t, held/n, uint64(400))
	assert.Less(t, items/n, uint64(600))
	assert.Less(t, records/n, uint64(450))
	runtime.KeepAlive([]any{st, withHistory})
}

// TestStoreFindsRareKeys looks for few records among 100,000: that is a matter of those few.
func TestStoreFindsRareKeys(t *testing.T) {
	st := newStore(t, memstore.Config{}, notes)
	for batch := range 40 {
		var b store.Batch
		for i := range 1000 {
			id := fmt.Sprint(batch, "-", i)
			b.Records = append(b.Records, record(id, 0, start.Add(time.Duration(i)*time.Second), note{},
				"state=waiting", store.Key("session", id)))
		}
		put(t, st, b)
	}
	walked := func(q store.Query, want int) int {
		require.Len(t, found(t, st, q), want)
		n, err := st.Walked(q)
		require.NoError(t, err)
		return n
	}
	assert.Equal(t, 40_000, walked(store.Query{Kind: "note"}, 40_000))
	for _, keys := range [][]string{{"session=7-7"}, {"state=waiting", "session=7-7"},
		{"session=7-7", "state=waiting"}} {
		assert.Equal(t, 1, walked(store.Query{Kind: "note", Keys: keys}, 1))
	}
	assert.Equal(t, 3, walked(store.Query{Kind: "note", Keys: []string{"state=waiting"},
		Since: start.Add(500 * time.Second), Limit: 3}, 3))
}
