package enginetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A storeModel holds stores, and makes the same random commits in all of them.
type storeModel struct {
	now    time.Time
	stores []*modelled
}

type modelled struct {
	store.Store
	reopen func(store.Store) store.Store
	empty  func() store.Store
	had    map[store.Ref][]uint64 // the revisions that records had
}

// historyFor is for how long the stores keep observations. They keep ids for longer than any test
// runs.
const historyFor = 20 * 24 * time.Hour

// modelStart is where the clock begins.
var modelStart = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// time is the clock of the stores.
func (m *storeModel) time() time.Time { return m.now }

// add adds a store. reopen closes it, opens it again and returns what it has then. empty returns a
// store with nothing in it.
func (m *storeModel) add(
	s store.Store, reopen func(store.Store) store.Store, empty func() store.Store,
) {
	m.stores = append(m.stores, &modelled{s, reopen, empty, make(map[store.Ref][]uint64)})
}

// run makes random commits, and fails the test where two of the stores differ.
func (m *storeModel) run(t *rapid.T) {
	for _, s := range m.stores {
		require.NoError(t, s.Declare(ctx, modelKinds...))
	}
	for range rapid.IntRange(1, 15).Draw(t, "commits") {
		right, off := m.now, drawnSkews.Draw(t, "the clock is off by")
		if m.now = m.now.Add(off); off != 0 {
			m.sweep(t) // a store may leave what is expired to the next sweep, or to the next use
		}
		if rapid.IntRange(0, 7).Draw(t, "job") == 0 {
			m.job(t, someJob(t))
		} else {
			m.commit(t, somePlans(t))
		}
		switch rapid.IntRange(0, 15).Draw(t, "time goes on") {
		case 0, 1, 2, 3:
			m.now = m.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute)
		case 4:
			m.now = m.now.Add(historyFor + time.Minute) // and the history of all there is goes
		}
		m.sweep(t)
		if off != 0 {
			m.now = right
		}
		switch rapid.IntRange(0, 15).Draw(t, "opened again") {
		case 0:
			for _, s := range m.stores {
				s.Store = s.reopen(s.Store)
			}
		case 1:
			m.exchange(t)
		}
		for _, s := range m.stores {
			require.NoError(t, s.Declare(ctx, modelKinds...))
		}
		m.compare(t)
	}
}

func (m *storeModel) sweep(t *rapid.T) {
	for _, s := range m.stores {
		require.NoError(t, s.Sweep(ctx, time.Time{}))
	}
}

// exchange has each store write itself to a file, and loads into each the file of another.
func (m *storeModel) exchange(t *rapid.T) {
	type files interface {
		Dump(context.Context, io.Writer) error
		Load(context.Context, io.Reader) error
	}
	written := make([]bytes.Buffer, len(m.stores))
	had := make([]map[store.Ref][]uint64, len(m.stores))
	for i, s := range m.stores {
		require.NoError(t, s.Store.(files).Dump(ctx, &written[i]))
		had[i] = s.had
	}
	for i, s := range m.stores {
		from := (i + 1) % len(m.stores)
		s.Store, s.had = s.empty(), had[from]
		text := written[from].String()
		require.NoError(t, s.Store.(files).Load(ctx, &written[from]), "%s", text)
	}
}

// commit gives the same batches to all stores, each with the revisions that it has.
func (m *storeModel) commit(t *rapid.T, plans []modelPlan) {
	var want []store.Receipt
	var wantErr error
	for i, s := range m.stores {
		batches := make([]store.Batch, len(plans))
		for k, p := range plans {
			batches[k] = p.fill(t, s)
		}
		got, err := s.Commit(ctx, batches...)
		for k := range got {
			got[k].Revision = min(got[k].Revision, 1)
			slices.Sort(got[k].Duplicates)
			slices.Sort(got[k].Kept)
		}
		if i == 0 {
			want, wantErr = got, err
			continue
		}
		// Which of several reasons to refuse a batch comes first, the contract does not say.
		require.Equal(t, wantErr == nil, err == nil, "%+v:\n%v\n%v", batches, wantErr, err)
		require.True(t, contracted(err), "%v", err)
		require.Len(t, got, len(want))
		for k := range want {
			requireSameParts(t, want[k].Parts, got[k].Parts)
			w, g := want[k], got[k]
			w.Parts, g.Parts = nil, nil
			require.Equal(t, normal(w), normal(g), "%+v", batches[k])
		}
	}
}

// job runs the same job in all stores.
func (m *storeModel) job(t *rapid.T, job store.Job) {
	var want error
	for i, s := range m.stores {
		err := store.Run(ctx, s.Store, job)
		if i == 0 {
			want = err
		}
		require.True(t, contracted(err), "%v", err)
		require.Equal(t, want == nil, err == nil, "%+v:\n%v\n%v", job, want, err)
	}
}

// contracted reports whether an error is one of the contract, or nil. By a slow clock, observations
// lie ahead.
func contracted(err error) bool {
	var input *heed.InputError
	return err == nil || errors.As(err, &input) && strings.HasSuffix(input.Field, "].At") ||
		errors.Is(err, heed.ErrConflict) || errors.Is(err, evidence.ErrForgotten) ||
		errors.Is(err, heed.ErrNotFound) || errors.Is(err, evidence.ErrFull)
}

// normal returns the JSON of a value, with nil for all that is empty.
func normal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(strings.ReplaceAll(":"+string(text), ":[]", ":null"), ":")
}

// modelPolicies are by kind of cell.
var modelPolicies = map[string]evidence.Policy{
	"plain": {}, "fading": {HalfLife: time.Hour}, "origin": {HalfLife: time.Hour, ByOrigin: true},
}

var modelCells = func() (all []evidence.Cell) {
	for _, kind := range []string{"fading", "origin", "plain"} {
		for _, item := range []string{"", "i\"'é\\"} {
			for _, name := range []string{"a", "b"} {
				all = append(all, evidence.Cell{Kind: kind, Scope: "s", Item: item, Name: name})
			}
		}
	}
	return all
}()

var modelKinds = []store.Kind{
	{Name: "note"},
	{Name: "brief", Limits: store.Limits{For: time.Hour}},
	{Name: "few", Limits: store.Limits{Most: 3}},
	{Name: "filled", Limits: store.Limits{Most: 3, Refuse: true}},
	{Name: "whole", Caused: []string{"of"}, Whole: true},
	{Name: "case", Caused: []string{"of"}, Decided: []string{"by.*", "payload.~.by.*"}},
}

type modelValue struct {
	N       int      `json:"n,omitempty"`
	Of      string   `json:"of,omitempty"`
	By      []string `json:"by,omitempty"`
	Payload []byte   `json:"payload,omitempty"`
}

var (
	drawnCells   = rapid.SampledFrom(modelCells)
	drawnIDs     = rapid.SampledFrom(strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11"))
	drawnPeople  = rapid.SampledFrom([]string{"ann", "bob", "Ann"})
	drawnKeys    = rapid.SampledFrom([]string{"a", "b", "c"})
	drawnMinutes = rapid.IntRange(-90, 10)
	// A clock is off for a commit and the sweep after it.
	drawnSkews = rapid.Custom(func(t *rapid.T) time.Duration {
		if rapid.IntRange(0, 9).Draw(t, "right") > 0 {
			return 0
		}
		const day = 24 * time.Hour
		off := []time.Duration{time.Hour, -time.Hour, day, -day, 3 * 365 * day, -3 * 365 * day}
		return rapid.SampledFrom(off).Draw(t, "off")
	})
	// Some lie several steps of the landmark apart, near enough for it to show where their sums are
	// not scaled.
	drawnTimes = rapid.Custom(func(t *rapid.T) time.Time {
		hours := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 600),
			rapid.SampledFrom([]int{900, 2000})).Draw(t, "hours ago")
		minutes := rapid.IntRange(0, 9).Draw(t, "minutes ago")
		return modelStart.Add(-time.Duration(60*hours+minutes) * time.Minute)
	})
	drawnObservations = rapid.Custom(func(t *rapid.T) evidence.Observation {
		return evidence.Observation{
			ID: drawnIDs.Draw(t, "id"), Cell: drawnCells.Draw(t, "cell"), At: drawnTimes.Draw(t, "at"),
			Channel: rapid.SampledFrom([]string{"", "spoken"}).Draw(t, "channel"),
			Source:  rapid.OneOf(rapid.Just(""), drawnPeople).Draw(t, "source"),
			Reward: rapid.OneOf(rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}),
				rapid.Float64Range(0, 1)).Draw(t, "reward"),
			Weight: rapid.OneOf(rapid.SampledFrom([]float64{0, 0.5, 1, 3}),
				rapid.Float64Range(0, 10)).Draw(t, "weight"),
			Share: rapid.SampledFrom([]float64{0, 1, 0.5}).Draw(t, "share"),
		}
	})
	drawnRefs = rapid.Custom(func(t *rapid.T) store.Ref {
		return store.Ref{
			Kind: rapid.SampledFrom(modelKinds).Draw(t, "kind").Name,
			ID:   rapid.SampledFrom([]string{"r", "s", "t", "u", "R"}).Draw(t, "record"),
		}
	})
	drawnRevisions = rapid.SampledFrom([]revision{
		current, current, current, current, none, once, once, before, never,
	})
)

// A revision is one of a record in whatever store.
type revision int

const (
	current revision = iota
	none
	once
	before // one that the record had once
	never  // one that it has not had
)

// A modelPlan is a batch without its revisions.
type modelPlan struct {
	batch    store.Batch
	records  []revision
	expected []revision
}

// somePlans draws any commit that is valid.
func somePlans(t *rapid.T) (plans []modelPlan) {
	written := make(map[store.Ref]bool)
	for i := range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "batches") {
		p := modelPlan{batch: store.Batch{Policies: modelPolicies}}
		p.batch.Observations = rapid.SliceOfN(drawnObservations, 0, 4).Draw(t, "observations")
		switch rapid.IntRange(0, 9).Draw(t, "more") {
		case 0:
			names := rapid.SampledFrom([]string{"batch0", "batch1", "batch2"})
			p.batch.ID = rapid.OneOf(names, drawnIDs).Draw(t, "batch")
		case 1:
			p.batch.Policies = map[string]evidence.Policy{"plain": modelPolicies["origin"]}
		}
		if i == 0 {
			takeSome(t, &p.batch)
		}
		if rapid.Bool().Draw(t, "parts") {
			p.batch.PartsOf = store.CellsOf(p.batch.Observations...)
		}
		for range rapid.IntRange(0, 3).Draw(t, "records") {
			if ref := drawnRefs.Draw(t, "ref"); !written[ref] {
				written[ref] = true
				p.write(t, ref)
			}
		}
		plans = append(plans, p)
	}
	for range rapid.IntRange(0, 1).Draw(t, "expectations") {
		if ref := drawnRefs.Draw(t, "expected"); !written[ref] {
			last := &plans[len(plans)-1]
			last.batch.Expect = append(last.batch.Expect, store.Precondition{Ref: ref})
			last.expected = append(last.expected, drawnRevisions.Draw(t, "revision"))
		}
	}
	return plans
}

// takeSome draws what a batch takes away.
func takeSome(t *rapid.T, b *store.Batch) {
	keep := func(gone func(evidence.Observation) bool) {
		b.Observations = slices.DeleteFunc(b.Observations, gone)
	}
	take := rapid.IntRange(0, 14).Draw(t, "what")
	if take == 0 || take == 7 {
		b.Reset = []evidence.Cell{drawnCells.Draw(t, "reset")}
	}
	switch take {
	case 1:
		b.Rebuild = []evidence.Cell{drawnCells.Draw(t, "rebuild")}
	case 2:
		b.Restart = []store.Restart{{
			Cell: drawnCells.Draw(t, "restart"), At: drawnTimes.Draw(t, "from"),
		}}
	case 3, 7:
		b.Retract = rapid.SliceOfN(drawnIDs, 1, 3).Draw(t, "retract")
		keep(func(o evidence.Observation) bool { return slices.Contains(b.Retract, o.ID) })
	case 4:
		of := store.SourceOf{Cell: drawnCells.Draw(t, "of"), Source: drawnPeople.Draw(t, "expunge")}
		b.Expunge = []store.SourceOf{of}
	case 5, 8:
		b.Withdraw = rapid.SliceOfNDistinct(drawnIDs, 1, 4, rapid.ID).Draw(t, "withdraw")
		keep(func(o evidence.Observation) bool { return slices.Contains(b.Withdraw, o.ID) })
	}
}

// someJob draws a job.
func someJob(t *rapid.T) (job store.Job) {
	switch rapid.IntRange(0, 5).Draw(t, "job") {
	case 0:
		c := drawnCells.Draw(t, "reset")
		name := rapid.SampledFrom([]string{"", c.Name}).Draw(t, "of")
		job.Reset = []store.Selection{{Kind: c.Kind, Scope: c.Scope, Item: c.Item, Name: name}}
	case 1:
		job.Rebuild = modelPolicies
	case 2:
		job.Expunge = []string{drawnPeople.Draw(t, "expunge")}
	default:
		job.Forget = rapid.SliceOfNDistinct(drawnPeople, 1, 2, rapid.ID).Draw(t, "forget")
	}
	return job
}

// write draws a record to write, or to remove.
func (p *modelPlan) write(t *rapid.T, ref store.Ref) {
	revision := drawnRevisions.Draw(t, "revision")
	minutes := drawnMinutes.Draw(t, "minutes")
	r := store.Record{Ref: ref, At: modelStart.Add(time.Duration(minutes) * time.Minute)}
	if rapid.IntRange(0, 4).Draw(t, "removal") > 0 {
		v := modelValue{N: rapid.Int().Draw(t, "n")}
		v.By = rapid.SliceOfN(drawnPeople, 0, 2).Draw(t, "by")
		v.Of = rapid.OneOf(rapid.Just(""), drawnPeople).Draw(t, "of")
		r.Keys = rapid.SliceOfN(drawnKeys, 0, 3).Draw(t, "keys")
		inside := modelValue{By: rapid.SliceOfN(drawnPeople, 0, 1).Draw(t, "inside")}
		if len(inside.By) > 0 {
			v.Payload = []byte(normal(inside))
		}
		for _, name := range slices.Concat(v.By, inside.By, []string{v.Of}) {
			if key := store.PersonKey(name); name != "" && !slices.Contains(r.Keys, key) {
				r.Keys = append(r.Keys, key)
			}
		}
		r.Body = store.Of(v)
	}
	p.batch.Records = append(p.batch.Records, r)
	p.records = append(p.records, revision)
}

// fill returns the batch for a store.
func (p *modelPlan) fill(t *rapid.T, s *modelled) store.Batch {
	b := p.batch
	b.Records = slices.Clone(b.Records)
	for i, r := range b.Records {
		b.Records[i].Revision = s.revision(t, r.Ref, p.records[i])
		if r.Body.IsZero() && (b.Records[i].Revision == 0 || b.Records[i].Revision == store.Once) {
			b.Records[i].Revision = s.revision(t, r.Ref, never)
		}
	}
	b.Expect = slices.Clone(b.Expect)
	for i, e := range b.Expect {
		b.Expect[i].Revision = s.revision(t, e.Ref, p.expected[i])
	}
	return b
}

func (s *modelled) revision(t *rapid.T, ref store.Ref, which revision) uint64 {
	switch which {
	case none:
		return 0
	case once:
		return store.Once
	case never:
		return math.MaxInt32
	default: // one that the record has or had
	}
	var read store.Snapshot
	require.NoError(t, s.Read(ctx, &read, nil, []store.Ref{ref}))
	now := read.Records[0].Revision
	if had := s.had[ref]; now > 0 && (len(had) == 0 || had[len(had)-1] != now) {
		require.NotContains(t, had, now, "a revision of %v comes again", ref)
		s.had[ref] = append(had, now)
	}
	if had := s.had[ref]; which == before && len(had) > 1 {
		return had[len(had)-2]
	}
	return now
}

// compare compares all that can be read of the stores.
func (m *storeModel) compare(t *rapid.T) {
	keys := rapid.SliceOfN(drawnKeys, 0, 2).Draw(t, "asked for keys")
	q := store.Query{Keys: keys, Oldest: rapid.Bool().Draw(t, "oldest")}
	if rapid.Bool().Draw(t, "between") {
		q.Since = modelStart.Add(time.Duration(drawnMinutes.Draw(t, "since")) * time.Minute)
		q.Until = q.Since.Add(time.Hour)
	}
	size := rapid.IntRange(1, 4).Draw(t, "page")
	var wantParts []evidence.Part
	var want []string
	for i, s := range m.stores {
		parts, rest := s.read(t, q, size)
		if i == 0 {
			wantParts, want = parts, rest
			continue
		}
		require.Equal(t, want, rest)
		requireSameParts(t, wantParts, parts)
	}
}

// yielded returns all that a loop yields.
func yielded[T any](t *rapid.T, seq iter.Seq2[T, error]) (all []T) {
	for one, err := range seq {
		require.NoError(t, err)
		all = append(all, one)
	}
	return all
}

// read returns all that can be read of a store, and the results of a query, read in pages.
func (s *modelled) read(
	t *rapid.T, q store.Query, size int,
) (parts []evidence.Part, rest []string) {
	note := func(all ...any) { rest = append(rest, fmt.Sprint(all...)) }
	var read store.Snapshot
	require.NoError(t, s.Read(ctx, &read, modelCells, nil))
	var listed []evidence.Part
	for _, kind := range []string{"fading", "origin", "plain"} {
		listed = append(listed, yielded(t, s.List(ctx, store.CellQuery{Kind: kind, Scope: "s"}))...)
		note(kind, yielded(t, s.Scopes(ctx, kind)))
	}
	require.Equal(t, read.Parts, listed)
	for _, c := range modelCells {
		for _, o := range yielded(t, s.History(ctx, c)) {
			note(o)
		}
	}
	for _, k := range modelKinds {
		q.Kind = k.Name
		for _, one := range []store.Query{{Kind: k.Name, Oldest: true}, {Kind: k.Name}, q} {
			rest = append(rest, s.describe(t, yielded(t, s.Find(ctx, one)))...)
		}
		found := yielded(t, s.Find(ctx, q))
		page := q
		page.Limit = size
		for from := 0; ; from += size {
			some := yielded(t, s.Find(ctx, page))
			want := found[min(from, len(found)):min(from+size, len(found))]
			require.Equal(t, normal(want), normal(some), "a page of %d of %+v", size, q)
			if len(some) < size {
				break
			}
			page.After = some[size-1].Place
		}
	}
	return read.Parts, pseudonymous(rest)
}

// describe returns all of records but their revisions and places, which stores choose. What Read
// returns is the same.
func (s *modelled) describe(t *rapid.T, found []store.Record) (all []string) {
	var read store.Snapshot
	var refs []store.Ref
	for _, r := range found {
		refs = append(refs, r.Ref)
	}
	require.NoError(t, s.Read(ctx, &read, nil, refs))
	for i, r := range found {
		again := read.Records[i]
		again.Place = r.Place
		require.Equal(t, normal(r), normal(again))
		v, err := store.Decode[modelValue](r.Body)
		require.NoError(t, err)
		w, err := store.Decode[modelValue](again.Body)
		require.NoError(t, err)
		require.Equal(t, normal(v), normal(w))
		all = append(all, fmt.Sprintf("%v %v %q %d %q %q %s",
			r.Ref, r.At, r.Keys, v.N, v.Of, v.By, v.Payload))
	}
	return all
}

var pseudonyms = regexp.MustCompile(`forgotten-[0-9a-z-]+`)

// pseudonymous numbers the pseudonyms as they come: each store has its own key.
func pseudonymous(rest []string) []string {
	seen := make(map[string]string)
	for i := range rest {
		rest[i] = pseudonyms.ReplaceAllStringFunc(rest[i], func(name string) string {
			if seen[name] == "" {
				seen[name] = fmt.Sprint("somebody", len(seen))
			}
			return seen[name]
		})
	}
	return rest
}

// requireSameParts compares sums to the last bits, and all else exactly.
func requireSameParts(t *rapid.T, want, got []evidence.Part) {
	require.Len(t, got, len(want))
	for i := range want {
		w, g := want[i], got[i]
		a, b := w.Tally.At(evidence.InstantOf(modelStart)), g.Tally.At(evidence.InstantOf(modelStart))
		for _, x := range [][2]float64{
			{a.Mass, b.Mass}, {a.Squares, b.Squares}, {a.Reward, b.Reward},
			{a.RewardSquares, b.RewardSquares},
		} {
			require.InDelta(t, x[0], x[1], 1e-9)
		}
		for _, tally := range []*evidence.Tally{&w.Tally, &g.Tally} {
			tally.Mass, tally.Squares, tally.Reward, tally.RewardSquares, tally.Landmark = 0, 0, 0, 0, 0
		}
		require.Equal(t, w, g)
	}
}
