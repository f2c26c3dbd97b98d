package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
)

// maxStep bounds the keys that one commit of a [Job] changes. A key is a record, a key of a record,
// a cell, one of its sums, or an observation in its history. A cell that has more keys is one
// commit by itself.
const maxStep = 500

// A Job changes more than one commit should: it forgets people, expunges sources, resets cells, or
// rebuilds them. [Tx.Start] begins a job together with what a step commits, and [Run] begins one by
// itself. Both return when the job is finished.
//
// A job runs in steps, and each step is a commit of at most 500 keys. The first commit also
// writes a record of the job, and the last one removes it. If the program ends in between, the next
// [Store.Sweep] of any handle finishes the job, by [Resume]. Until then, each record and each cell
// is either as it was before the job or as the job leaves it. What is committed while a job runs
// may be taken, too.
//
// After an error the store is unchanged, unless the error reports that the job began. If the
// history that is needed is no longer kept, the error is [evidence.ErrForgotten]. If a record that
// names a person can't be decoded, it is [heed.ErrDamaged]: repair or remove the record, and forget
// again.
type Job struct {
	// Rebuild makes all cells of these kinds again from their whole history, under these policies.
	Rebuild map[string]evidence.Policy `json:",omitempty"`
	// Reset forgets cells with their history. The ids of their observations stay known.
	Reset []Selection `json:",omitempty"`
	// Expunge takes back, and erases from the history, all observations of these sources.
	Expunge []string `json:",omitempty"`
	// Forget takes people out of evidence and records: out of evidence like Expunge, and out of
	// records by the paths of their [Kind]. A person's decisions stay, under the pseudonym that the
	// store's key gives the name. The first job that forgets somebody writes the key.
	// Names are compared exactly. After Forget returned, the store has no byte that names the person,
	// except in texts, in the names of cells that others gave evidence to, and in what was committed
	// while the job ran: evidence is looked through twice, before records and after them, but a
	// commit may come later. If the person was active then, forget again.
	Forget []string `json:",omitempty"`
	// Leave takes out everything that a tenant has, and the records of the store itself that have the
	// [Key] of the tenant, made with the name "tenant". From the first commit on, a call for the
	// tenant returns [ErrLeft]. When the job is finished, only hashes of ids are left, so an id that
	// the tenant used does not count again as long as the store knows ids. The tenant's name can be
	// used again. The job must run on the store itself, not on the tenant's view. See [Tenant].
	Leave string `json:",omitempty"`
	// At is when the job was asked for. It dates the job, and a new key of pseudonyms.
	At time.Time
}

// A task is a job on its way. Its record is removed with the last step.
type task struct {
	ID    string
	Job   Job
	Part  int           // the part that is next, of [Job.parts], and then of Forget once more
	After evidence.Cell // the last cell that this part did
}

var tasks = View[task]{
	Kind: Kind{Name: "heed.job"},
	Place: func(t task) (string, time.Time, []string) {
		return t.ID, orEpoch(t.Job.At), nil
	},
}

func orEpoch(at time.Time) time.Time {
	if at.IsZero() {
		return time.Unix(0, 0)
	}
	return at
}

// Run runs one job.
func Run(ctx context.Context, st Store, job Job) error {
	return Do(ctx, st, func(tx *Tx) error {
		tx.Start(job)
		return nil
	})
}

// Start begins a job with the commit of the step, and [Do] returns when the job is finished. What
// the step writes is subject to the job. If the batch contains an ID that is known, the job does
// not begin again.
func (tx *Tx) Start(job Job) {
	if err := job.validate(); err != nil {
		tx.fail(err)
		return
	}
	if len(job.parts(true)) > 0 {
		tx.jobs = append(tx.jobs, job)
	}
}

func (j *Job) validate() error {
	for kind, policy := range j.Rebuild {
		if kind == "" {
			return invalid("Rebuild", "must name kinds of cells")
		}
		if err := policy.Validate(); err != nil {
			return err
		}
	}
	if err := checkTenant("Leave", j.Leave); err != nil {
		return err
	}
	for i, s := range j.Reset {
		if s.Kind == "" {
			return invalid(fmt.Sprintf("Reset[%d].Kind", i), "must not be empty")
		}
	}
	return cmp.Or(valid.List("Expunge", j.Expunge, len(j.Expunge), evidence.MaxText),
		valid.List("Forget", j.Forget, len(j.Forget), evidence.MaxText))
}

// addJobs checks the jobs of the step, and adds their records. It returns the ids of the records,
// behind the records of earlier jobs that are not finished and name somebody to forget.
func (tx *Tx) addJobs() (ids []string, err error) {
	for i := range tx.jobs {
		job := &tx.jobs[i]
		if job.Leave != "" && isView(tx.store) {
			return nil, invalid("Leave", "must run on the store itself, not on the view of a tenant")
		}
		kinds, err := declareAll(tx.ctx, tx.store)
		if err == nil {
			err = job.check(tx.ctx, tx.store, kinds)
		}
		var earlier []string
		if err == nil {
			earlier, err = job.earlier(tx.ctx, tx.store)
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, earlier...)
		id := IDOf("job", tx.batch.ID, fmt.Sprint(i)) // an equal call at once finishes the same job
		if tx.batch.ID == "" {
			id = tx.ID(rand.Text)
		}
		ids = append(ids, id)
		tx.Put(tasks.Record(task{ID: id, Job: *job}, Once))
		if job.Leave != "" {
			tx.Put(leavers.Record(leaver{job.Leave}, Once))
		}
		if len(job.Forget) > 0 {
			tx.Put(Pseudonyms.Record(text.NewPseudonymKey(orEpoch(job.At)), Once))
		}
	}
	return ids, nil
}

// earlier returns the ids of the jobs on their way that do a part of what the job does, the oldest
// first. If such a job ended after this one, it would take what was committed in between.
func (j *Job) earlier(ctx context.Context, st Store) (ids []string, err error) {
	kinds := slices.Collect(maps.Keys(j.Rebuild))
	for row, err := range tasks.Find(ctx, st, Query{Oldest: true}) {
		if err != nil {
			return nil, err
		}
		if _, view := st.(*tenantView); !view && strings.Contains(row.ID, idMark) {
			continue // a job of a tenant
		}
		if of := &row.Value.Job; of.Leave != "" && of.Leave == j.Leave ||
			share(of.Reset, j.Reset, Selection.overlaps) ||
			share(of.sources(), j.sources(), same) ||
			share(slices.Collect(maps.Keys(of.Rebuild)), kinds, same) {
			ids = append(ids, row.ID)
		}
	}
	return ids, nil
}

// share reports whether something is true of any of a with any of b.
func share[T any](a, b []T, is func(T, T) bool) bool {
	return slices.ContainsFunc(a, func(one T) bool {
		return slices.ContainsFunc(b, func(other T) bool { return is(one, other) })
	})
}

func same(a, b string) bool { return a == b }

// overlaps reports whether both selections may name a cell.
func (s Selection) overlaps(o Selection) bool {
	may := func(a, b string) bool { return a == "" || b == "" || a == b }
	return s.Kind == o.Kind && s.Scope == o.Scope && may(s.Item, o.Item) && may(s.Name, o.Name)
}

// finishJobs finishes the jobs that the commit of the step began, and those before them. If another
// runner committed the end of a job, its store may not have erased the copies yet. So this store
// does it as well.
func (tx *Tx) finishJobs(ids []string) error {
	ended, names := true, []string(nil)
	for i := range tx.jobs {
		names = append(names, tx.jobs[i].erases()...)
	}
	var err error
	for i := 0; i < len(ids) && err == nil; i++ {
		var here bool
		here, err = finish(tx.ctx, tx.store, ids[i])
		ended = ended && here
	}
	if err == nil && !ended && len(names) > 0 {
		_, err = tx.store.Commit(tx.ctx, Batch{Forgotten: names})
	}
	if err != nil {
		return Final(fmt.Errorf(
			"store: the job has begun, and the next sweep goes on with it: %w", err))
	}
	return nil
}

// Resume finishes all jobs of a store that have begun, the oldest first. An implementation of
// [Store] calls it first in Sweep.
func Resume(ctx context.Context, st Store) error {
	var failed error
	for row, err := range tasks.Find(ctx, st, Query{Oldest: true}) {
		if err == nil {
			_, err = declareAll(ctx, st)
		}
		of, id := st, row.ID
		if tenant, own, ok := strings.Cut(id, idMark); ok {
			of, id = &tenantView{st, tenant}, own
		}
		if err == nil {
			_, err = finish(ctx, of, id)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// declareAll declares through a handle all that any handle declared, and what jobs need.
func declareAll(ctx context.Context, st Store) (kinds []Kind, err error) {
	for r, err := range st.Find(ctx, Query{Kind: Declarations}) {
		var kind Kind
		if err == nil {
			kind, err = Decode[Kind](r.Body)
		}
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	return kinds, st.Declare(ctx,
		append(slices.Clip(kinds), tasks.Kind, Pseudonyms.Kind, leavers.Kind)...)
}

// finish does all that is left of a job. Several callers may do so at the same time. It reports
// whether the job ended here.
func finish(ctx context.Context, st Store, id string) (here bool, err error) {
	last := uint64(0)
	for try := 1; ; try++ {
		row, err := tasks.Get(ctx, st, id)
		if errors.Is(err, heed.ErrNotFound) {
			return false, nil
		}
		if row.Revision != last {
			last, try = row.Revision, 1
		}
		if err == nil {
			r := runner{ctx: ctx, store: st, task: row.Value, revision: row.Revision}
			err = r.run()
		}
		if err == nil || !repeats(err) || try == tries {
			return err == nil, err
		}
		if ended := pause(ctx, try); ended != nil {
			return false, fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// A runner continues a job from the position in its record. Each step writes the record, so a
// second runner of the job has a conflict.
type runner struct {
	ctx      context.Context //nolint:containedctx // of the one call that it is for
	store    Store
	task     task
	revision uint64
	// leaver is the record of the tenant that leaves, with revision 0 after another job has finished
	// that. If it changes, the tenant may be back, so each step expects it.
	leaver Precondition
}

func (r *runner) run() error {
	if tenant := r.task.Job.Leave; tenant != "" {
		row, err := leavers.In(Reading(r.ctx, r.store), tenant)
		if err != nil {
			return err
		}
		r.leaver = leavers.Expect(tenant, row.Revision)
	}
	parts := r.task.Job.parts(r.leaver.Revision > 0)
	rest, forgets := len(parts), len(r.task.Job.Forget)
	// A step that had read a record of the person may have added evidence of the person since.
	parts = append(parts, parts[rest-forgets:]...)
	cells := func(end int) (err error) {
		for err == nil && r.task.Part < end {
			err = r.cells(&parts[r.task.Part])
		}
		return err
	}
	err := cells(rest)
	if err == nil && forgets > 0 {
		err = r.people()
	}
	if err == nil {
		err = cells(len(parts))
	}
	if err != nil {
		return err
	}
	if r.leaver.Revision > 0 {
		if err := r.leave(r.leaver.ID); err != nil {
			return err
		}
	}
	last := Batch{
		Forgotten: r.task.Job.erases(),
		Records:   []Record{tasks.Removal(r.task.ID, r.revision)},
	}
	switch {
	case r.leaver.Revision > 0:
		last.Records = append(last.Records, leavers.Removal(r.leaver.ID, r.leaver.Revision))
	case r.leaver.ID != "":
		last.Expect = []Precondition{r.leaver}
	}
	_, err = r.store.Commit(r.ctx, last)
	return err
}

// A packer collects what a job changes, and commits it in steps of at most 500 keys. Cells,
// records without a person and the removals of a tenant all go through it, so the bound holds for
// each of them.
type packer struct {
	*runner
	batch Batch
	next  task // how far the job is with the batch
	keys  int  // that the batch changes
}

// keysOfStep are the keys that a step changes in any case: the record of the job, and versions.
const keysOfStep = 10

// add adds a change of some keys to the batch, after it committed a batch without room for it, if
// there was anything in it.
func (p *packer) add(keys int, change func(*Batch)) error {
	if keysOfStep+p.keys+keys > maxStep {
		if err := p.commit(); err != nil {
			return err
		}
	}
	change(&p.batch)
	p.keys += keys
	return nil
}

// commit commits the batch as a step of the job, and notes how far the job came.
func (p *packer) commit() error {
	if p.keys == 0 {
		return nil
	}
	p.batch.Records = append(p.batch.Records, tasks.Record(p.next, p.revision))
	if p.leaver.ID != "" {
		p.batch.Expect = []Precondition{p.leaver}
	}
	receipts, err := p.store.Commit(p.ctx, p.batch)
	if err == nil {
		p.task, p.revision = p.next, receipts[0].Revision
		p.batch, p.keys = Batch{}, 0
	}
	return err
}

// A part is what a job does with one list of cells.
type part struct {
	list func(ctx context.Context, st Store) iter.Seq2[evidence.Part, error]
	add  func(b *Batch, c evidence.Cell)
	cost func(n uint64) int // the keys of a sum of n observations
}

// withHistory and withoutHistory are the costs of parts: the history of a cell goes with the sums,
// or stays.
func withHistory(n uint64) int  { return int(min(n, maxStep)) + 2 }
func withoutHistory(uint64) int { return 2 }

// parts returns what a job does with cells, in the order in which it does it. leaves is not set if
// another job has taken out the tenant.
func (j *Job) parts(leaves bool) (all []part) {
	type parts = iter.Seq2[evidence.Part, error]
	listed := func(q CellQuery) func(context.Context, Store) parts {
		return func(ctx context.Context, st Store) parts { return st.List(ctx, q) }
	}
	for _, kind := range slices.Sorted(maps.Keys(j.Rebuild)) {
		list := func(ctx context.Context, st Store) parts {
			return listKind(ctx, st, CellQuery{Kind: kind})
		}
		all = append(all, part{list, func(b *Batch, c evidence.Cell) {
			b.Policies, b.Rebuild = j.Rebuild, append(b.Rebuild, c)
		}, withoutHistory})
	}
	for _, s := range j.Reset {
		list := func(ctx context.Context, st Store) parts {
			q := CellQuery{Kind: s.Kind, Scope: s.Scope, Empty: true}
			return filtered(st.List(ctx, q), s.Covers)
		}
		reset := func(b *Batch, c evidence.Cell) { b.Reset = append(b.Reset, c) }
		all = append(all, part{list, reset, withHistory})
	}
	if j.Leave != "" {
		list := listed(CellQuery{Kind: KindIn("", j.Leave)})
		if !leaves {
			list = func(context.Context, Store) parts { return func(func(evidence.Part, error) bool) {} }
		}
		all = append(all, part{list,
			func(b *Batch, c evidence.Cell) {
				b.Reset = append(b.Reset, c)
				// A cell without evidence goes as a whole with a source that is in its name.
				b.Expunge = append(b.Expunge, SourceOf{c, cmp.Or(c.Item, c.Name)})
			}, withoutHistory})
	}
	for _, source := range j.sources() {
		all = append(all, part{listed(CellQuery{Naming: source}), func(b *Batch, c evidence.Cell) {
			b.Expunge = append(b.Expunge, SourceOf{c, source})
		}, withHistory})
	}
	return all
}

// erases returns for whom [Batch].Forgotten erases copies at the end.
func (j *Job) erases() []string {
	if j.Leave == "" {
		return j.Forget
	}
	return append(slices.Clip(j.Forget), j.Leave)
}

// sources returns the sources whose observations go. The sources of Forget come last.
func (j *Job) sources() []string { return slices.Concat(j.Expunge, j.Forget) }

// listKind lists the cells of all scopes of a kind.
func listKind(ctx context.Context, st Store, q CellQuery) iter.Seq2[evidence.Part, error] {
	return func(yield func(evidence.Part, error) bool) {
		for scope, err := range st.Scopes(ctx, q.Kind) {
			if err != nil {
				yield(evidence.Part{}, err)
				return
			}
			q.Scope = scope
			for p, err := range st.List(ctx, q) {
				if !yield(p, err) {
					return
				}
			}
		}
	}
}

// filtered yields the parts of some cells.
func filtered(all iter.Seq2[evidence.Part, error],
	covers func(evidence.Cell) bool) iter.Seq2[evidence.Part, error] {
	return func(yield func(evidence.Part, error) bool) {
		for p, err := range all {
			if (err != nil || covers(p.Cell)) && !yield(p, err) {
				return
			}
		}
	}
}

// cells does one part of the job, from the cell on that the job reached.
func (r *runner) cells(part *part) error {
	p := packer{runner: r, next: r.task}
	var c evidence.Cell
	keys := 0
	add := func() error { // the cell whose parts have all come
		if keys == 0 {
			return nil
		}
		err := p.add(keys, func(b *Batch) { part.add(b, c) })
		p.next.After = c
		return err
	}
	for of, err := range part.list(r.ctx, r.store) {
		if err != nil {
			return err
		}
		if of.Cell.Compare(r.task.After) <= 0 {
			continue
		}
		if of.Cell != c {
			if err := add(); err != nil {
				return err
			}
			c, keys = of.Cell, 1
		}
		keys += part.cost(of.Tally.N())
	}
	if err := add(); err != nil {
		return err
	}
	p.next.Part, p.next.After = p.next.Part+1, evidence.Cell{}
	r.task = p.next
	return p.commit()
}

// rounds is how often a job looks for records that name a person. A round without changes is the
// last one. More than two are needed if the person is busy.
const rounds = 8

// people takes people out of records.
func (r *runner) people() error {
	kinds, err := declareAll(r.ctx, r.store)
	changed := true
	for i := 0; i < rounds && changed && err == nil; i++ {
		changed, err = r.write(withoutNames(r.ctx, r.store, kinds, r.task.Job.Forget))
	}
	return err
}

// write commits records in steps, and reports whether there were any.
func (r *runner) write(all iter.Seq2[unnamed, error]) (changed bool, err error) {
	p := packer{runner: r, next: r.task}
	for w, err := range all {
		if err != nil {
			return changed, err
		}
		again := func(of Record) bool { return of.Ref == w.Ref } // because it names two people
		if slices.ContainsFunc(p.batch.Records, again) {
			continue
		}
		changed = true
		err := p.add(w.keys, func(b *Batch) { b.Records = append(b.Records, w.Record) })
		if err != nil {
			return changed, err
		}
	}
	return changed, p.commit()
}

// leave removes the records of a tenant.
func (r *runner) leave(tenant string) error {
	kinds, err := declareAll(r.ctx, r.store)
	if err == nil {
		_, err = r.write(removals(r.ctx, r.store, kinds, tenant))
	}
	return err
}

// removals yields the removals of all records in a tenant's part of the store, and of the records
// with its key in the store itself, such as jobs and events.
func removals(
	ctx context.Context, st Store, kinds []Kind, tenant string,
) iter.Seq2[unnamed, error] {
	keys := []string{Key("tenant", tenant)}
	var queries []Query
	for _, kind := range kinds {
		queries = append(queries, Query{Kind: KindIn(kind.Name, tenant)},
			Query{Kind: kind.Name, Keys: keys})
	}
	return func(yield func(unnamed, error) bool) {
		for _, q := range queries {
			for rec, err := range st.Find(ctx, q) {
				w := unnamed{Record{Ref: rec.Ref, Revision: rec.Revision, At: rec.At}, 1 + len(rec.Keys)}
				if !yield(w, err) || err != nil {
					return
				}
			}
		}
	}
}

// An unnamed record is one to write, without the people whom it names.
type unnamed struct {
	Record
	keys int // that change
}

// withoutNames yields the records that change if people are taken out of them. It may yield a
// record once for each of the people.
func withoutNames(
	ctx context.Context, st Store, kinds []Kind, names []string,
) iter.Seq2[unnamed, error] {
	return func(yield func(unnamed, error) bool) {
		key, err := Pseudonyms.In(Reading(ctx, st), pseudonymKeyID)
		if err != nil {
			yield(unnamed{}, err)
			return
		}
		people := persons(key.Value, names)
		_, view := st.(*tenantView)
		for _, kind := range kinds {
			for _, name := range names {
				q := Query{Kind: kind.Name, Keys: []string{PersonKey(name)}}
				for rec, err := range st.Find(ctx, q) {
					changed := false
					var w unnamed
					if !view && kind.Name == outbox && strings.Contains(rec.ID, idMark) {
						continue // an event of a tenant
					}
					if err == nil {
						w, changed, err = kind.unnamed(rec, people)
					}
					if (changed || err != nil) && (!yield(w, err) || err != nil) {
						return
					}
				}
			}
		}
	}
}

// unnamed returns a record without people, and whether that is another one.
func (k Kind) unnamed(r Record, people []person) (unnamed, bool, error) {
	text, err := r.Body.JSON()
	var after withoutPeople
	if err == nil {
		after, err = k.takeOut(text, r.Keys, people)
	}
	if err == nil && len(after.text) > max(MaxBody, len(text)) { // too large: without pseudonyms
		all := Kind{Caused: slices.Concat(k.Caused, k.Decided)}
		after, err = all.takeOut(text, r.Keys, people)
	}
	if err != nil {
		return unnamed{}, false, fmt.Errorf("%s: record %q: %w", k.Name, r.ID, err)
	}
	w := unnamed{r, 1}
	// Without text it is a removal. A store that keeps values may have a larger one.
	w.Body, w.Keys, w.Place = Raw(after.text), after.keys, ""
	if len(after.text) > MaxBody {
		w.Body = Of(json.RawMessage(after.text))
	}
	for _, key := range r.Keys {
		if !slices.Contains(after.keys, key) {
			w.keys++
		}
	}
	for _, key := range after.keys {
		if !slices.Contains(r.Keys, key) {
			w.keys++
		}
	}
	return w, after.gone || after.changed, nil
}

// check returns why the job can't be done, before it changes anything.
func (j *Job) check(ctx context.Context, st Store, kinds []Kind) error {
	for kind := range j.Rebuild {
		for p, err := range listKind(ctx, st, CellQuery{Kind: kind, Lost: true}) {
			if err == nil {
				err = fmt.Errorf("in a cell of kind %q and scope %q: %w", kind, p.Cell.Scope,
					evidence.ErrForgotten)
			}
			return err
		}
	}
	for _, source := range j.sources() {
		for _, err := range st.List(ctx, CellQuery{Naming: source}) {
			if err != nil {
				return err
			}
		}
	}
	for _, err := range withoutNames(ctx, st, kinds, j.Forget) {
		if err != nil {
			return err
		}
	}
	return nil
}
