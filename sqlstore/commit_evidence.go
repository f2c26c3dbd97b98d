package sqlstore

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
)

// learnIDs makes ids known. The primary key serves it: an id that is known conflicts, and returns
// no row. An id that another transaction is about to make known is waited for, because either of
// both outcomes decides whether this commit counts it.
var learnIDs = inserting(`INSERT INTO heed_id (id, recorded, traced)`, `tii`,
	` ON CONFLICT DO NOTHING RETURNING id`)

// knowIDs makes all ids known. It returns errKnown if the id of a batch was, or if an earlier batch
// has it, and errCareful if this is a quick commit and an id was. A transaction that is rolled back
// makes no id known.
func (c *change) knowIDs() error {
	c.fresh = make(map[string]bool)
	ids := c.ids()
	rows := make([][]any, len(ids))
	for i, id := range ids {
		rows[i] = []any{id, int64(c.now), flag(!c.store.cfg.NoHistory)}
	}
	// Only ids that were not there come back. So one statement both counts an id and finds out
	// whether this commit is the one that counts it, and two commits of one id can't both believe
	// that they are.
	err := c.t.insert(learnIDs, rows, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		c.fresh[id] = true
		return err
	})
	switch {
	case err != nil || len(ids) == 0:
		return err
	case c.quick && len(c.fresh) < len(ids):
		return errCareful
	}
	return c.checkBatches()
}

// ids returns the hashes of the ids of the batches that are not known, sorted, each once.
func (c *change) ids() (ids []string) {
	for i := range c.batches {
		if b := &c.batches[i]; !c.known[i] {
			if b.ID != "" {
				ids = append(ids, hashOfID(b.ID))
			}
			for k := range b.Observations {
				ids = append(ids, hashOfID(b.Observations[k].ID))
			}
		}
	}
	// All commits insert ids in this order. Two that have ids in common then wait for each other in
	// one direction, and neither ends in a deadlock.
	slices.Sort(ids)
	return slices.Compact(ids)
}

// checkBatches marks the batches whose ID is known, or is an id of an earlier batch. If there is
// one, the commit is tried again without it, because what it would change must not be checked.
func (c *change) checkBatches() error {
	taken := make(map[string]bool)
	again := false
	for i := range c.batches {
		b := &c.batches[i]
		switch id := hashOfID(b.ID); {
		case c.known[i] || b.ID == "":
		case !c.fresh[id] || taken[id]:
			c.known[i], again = true, true
		default:
			taken[id] = true
		}
		// The observations come after the ID of their batch, because one of them may have the same
		// id, and counts. For a later batch both are taken.
		for k := range b.Observations {
			if len(c.batches) > 1 && !c.known[i] {
				taken[hashOfID(b.Observations[k].ID)] = true
			}
		}
	}
	if again {
		return errKnown
	}
	return nil
}

// addition is an observation that is to count, with what it adds to.
type addition struct {
	*evidence.Observation
	// id is the hash of the observation's id, and key the hash of its cell. policy is how the cell
	// must be kept.
	id, key string
	policy  evidence.Policy
	// batch is the place of its batch, by which a receipt gets the sums after its own call.
	batch int
	// from is the origin whose sums count it.
	from   origin
	counts bool // as a part of the sums of that origin
}

// pending returns the observations whose ids are new, each once, and fills in the receipts. An id
// belongs to the batch that has it first. Receipts are filled in here, and the revision follows
// when records are written.
func (c *change) pending() (all []addition) {
	type once struct{ id, key string }
	seen := make(map[once]bool)
	keys := make(map[evidence.Cell]string, 4)
	owner := make(map[string]int)
	for i := range c.batches {
		receipt := &c.receipts[i]
		if receipt.Duplicate = c.known[i]; receipt.Duplicate {
			continue
		}
		// An observation of a later batch that has this batch's ID is a duplicate. The last batch has
		// no later one, so its ID need not be hashed.
		if b := &c.batches[i]; b.ID != "" && i+1 < len(c.batches) {
			owner[hashOfID(b.ID)] = i
		}
		for k := range c.batches[i].Observations {
			o := &c.batches[i].Observations[k]
			id := hashOfID(o.ID)
			// An id that is fresh to the database still counts in one batch alone: the first of this
			// commit that has it. Within that batch it may be of several cells.
			if first, ok := owner[id]; !c.fresh[id] || ok && first != i {
				if !slices.Contains(receipt.Duplicates, o.ID) {
					receipt.Duplicates = append(receipt.Duplicates, o.ID)
				}
				continue
			}
			owner[id] = i
			key, ok := keys[o.Cell]
			if !ok {
				key = hashOfCell(o.Cell)
				keys[o.Cell] = key
			}
			if !seen[once{id, key}] {
				seen[once{id, key}] = true
				all = append(all, addition{Observation: o, id: id, key: key,
					policy: c.batches[i].Policies[o.Cell.Kind], batch: i})
			}
		}
	}
	return all
}

// observe adds observations to their cells and to the history. Sums are added by the database, so
// concurrent commits to one cell need no retry. The cells come first, because a tally and an
// observation belong to one, and then the sums, whose statement returns them as they are after the
// addition.
func (c *change) observe(all []addition) error {
	if len(all) == 0 {
		return nil
	}
	cells, err := c.openCells(all)
	if err != nil {
		return err
	}
	if err := c.addSums(c.sum(all, cells), cells); err != nil {
		return err
	}
	return c.addHistory(all)
}

// sum returns what observations add to the sums of their cells, and notes which of them count.
// Several observations of one origin are one row to add, so a batch of a thousand for one arm costs
// one update.
func (c *change) sum(all []addition, cells map[string]*cellRow) deltas {
	sums := make(deltas)
	for i := range all {
		a := &all[i]
		row := cells[a.key]
		d := sums.add(row, a.Observation)
		if a.counts = d != nil; !a.counts {
			continue
		}
		a.from = row.origin(a.Observation)
		// What is never in the history counts as lost at once, or else a later rebuild would believe
		// that an empty history is whole.
		if c.store.cfg.NoHistory {
			d.lose(a.Observation)
		}
	}
	return sums
}

// wantedCells returns the cells of observations, each kept as they want it, and the moment of the
// first that counts of each. It reports false if two observations want a cell in different ways.
// The first moment decides whether a restart of the cell leaves the observation out.
func wantedCells(all []addition) (
	cells map[string]*cellRow, first map[string]evidence.Instant, alike bool,
) {
	cells, first = make(map[string]*cellRow, len(all)), make(map[string]evidence.Instant, len(all))
	for i := range all {
		a := &all[i]
		row := cells[a.key]
		if row == nil {
			row = &cellRow{key: a.key, cell: a.Cell, policy: a.policy}
			cells[a.key], first[a.key] = row, evidence.Instant(maxInt64)
		}
		if row.policy != a.policy {
			return nil, nil, false
		}
		if a.Weight > 0 {
			first[a.key] = min(first[a.key], evidence.InstantOf(a.At))
		}
	}
	return cells, first, true
}

// addHistory adds observations to the history, if one is kept. The limit on the history is held by
// sweeps, and not here.
func (c *change) addHistory(all []addition) error {
	if c.store.cfg.NoHistory {
		return nil
	}
	rows, err := historyRows(all)
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i] = append(rows[i], int64(c.now))
	}
	return c.t.insert(addToHistory, rows, nil)
}

// cellColumns are the columns of a cell in the order of scanCell.
const cellColumns = `cell, half_life, by_origin, restart, kind, scope, item, name`

var (
	// findCells reads cells by their primary key.
	findCells = both(`SELECT ` + cellColumns + ` FROM heed_cell
		WHERE cell IN (SELECT value->>0 FROM json_each($1))`)
	// makeCells returns the cells that it made; a cell that another commit made in the meantime
	// returns no row.
	makeCells = inserting(`INSERT INTO heed_cell
		(cell, kind, scope, item, name, half_life, by_origin, lot, restart)`, `tttttiiii`,
		` ON CONFLICT DO NOTHING RETURNING `+cellColumns)
	// cellIsOpen finds a row if a cell has evidence, by the primary key of heed_tally.
	cellIsOpen = both(`SELECT 1 FROM heed_tally WHERE cell = $1 LIMIT 1`)
	// changeCell stores how a cell is kept.
	changeCell = both(`UPDATE heed_cell SET half_life = $1, by_origin = $2, restart = $3
		WHERE cell = $4`)
)

// cellsInto returns what puts the cells that a query finds into a map. A cell with several rows
// can't occur: the hash is the primary key.
func (c *change) cellsInto(found map[string]*cellRow) func(scan func(...any) error) error {
	return func(scan func(...any) error) error {
		r, err := scanCell(scan)
		found[r.key] = r
		return err
	}
}

// scanCell reads cellColumns.
func scanCell(scan func(...any) error) (*cellRow, error) {
	r := &cellRow{}
	var halfLife, byOrigin int64
	err := scan(&r.key, &halfLife, &byOrigin, &r.restart,
		&r.cell.Kind, &r.cell.Scope, &r.cell.Item, &r.cell.Name)
	r.policy.HalfLife = time.Duration(halfLife) * time.Microsecond
	r.policy.ByOrigin = byOrigin == 1
	return r, err
}

// row returns the values of a row to make. They are in the order of makeCells.
func (r *cellRow) row() []any {
	return []any{
		r.key, r.cell.Kind, r.cell.Scope, r.cell.Item, r.cell.Name, r.policy.HalfLife.Microseconds(),
		flag(r.policy.ByOrigin),
		lotOf(r.cell.Item), int64(r.restart),
	}
}

// findCells returns the cells of these keys that there are. Cells that are not there have no entry.
func (c *change) findCells(keys []string) (map[string]*cellRow, error) {
	found := make(map[string]*cellRow, len(keys))
	rows, err := column(keys)
	if err == nil {
		err = c.t.each(findCells, []any{rows}, c.cellsInto(found))
	}
	return found, err
}

// makeCells adds those cells that are not there yet, and returns all. The keys are sorted, so two
// commits make cells in the same order.
func (c *change) makeCells(wanted map[string]*cellRow) (map[string]*cellRow, error) {
	keys := slices.Sorted(maps.Keys(wanted))
	// To look first costs a statement, and saves an insertion that takes locks: nearly always all
	// of the cells are there.
	found, err := c.findCells(keys)
	if err != nil || len(found) == len(keys) {
		return found, err
	}
	var missing [][]any
	for _, key := range keys {
		if found[key] == nil {
			missing = append(missing, wanted[key].row())
		}
	}
	err = c.t.insert(makeCells, missing, c.cellsInto(found))
	if err != nil || len(found) == len(keys) {
		return found, err
	}
	return c.findCells(keys) // somebody else added one in the meantime, maybe with another policy
}

// openCells returns the cells of observations. Each cell has the policy that its observations want.
// A cell without evidence takes another policy, but only in a commit that has the store alone,
// because a concurrent commit may be about to open the cell. If the policies differ and the cell
// has evidence, the commit is refused: its sums were faded by the cell's own half-life.
func (c *change) openCells(all []addition) (map[string]*cellRow, error) {
	cells := make(map[string]*cellRow, len(all))
	for i := range all {
		a := &all[i]
		cells[a.key] = &cellRow{key: a.key, cell: a.Cell, policy: a.policy}
	}
	found, err := c.makeCells(cells)
	if err != nil {
		return nil, err
	}
	opened := make(map[string]bool) // by this commit
	for i := range all {
		row, wanted := found[all[i].key], all[i].policy
		// The policies differ. That is a conflict if the cell has evidence under its own one, from
		// before or from an observation of this commit, which the tallies do not have yet.
		if row.policy != wanted {
			open, err := c.open(row)
			switch {
			case err != nil:
				return nil, err
			case open || opened[row.key]:
				return nil, row.policy.Conflict(row.cell.Kind, wanted)
			case !c.alone: // somebody else may be about to open it
				return nil, errRaced
			}
			row.policy = wanted
			if err := c.keep(row); err != nil {
				return nil, err
			}
		}
		// An observation that does not count settles nothing, so the next one may still bring another
		// policy.
		opened[row.key] = opened[row.key] || row.counts(all[i].Observation)
	}
	return found, nil
}

// open reports whether a cell has evidence or a restart, so that its policy is settled.
func (c *change) open(row *cellRow) (bool, error) {
	if row.restart > 0 {
		return true, nil
	}
	return c.t.finds(cellIsOpen, row.key)
}

// keep stores how a cell is kept, after its policy or its restart changed.
func (c *change) keep(row *cellRow) error {
	_, err := c.t.exec(changeCell, row.policy.HalfLife.Microseconds(), flag(row.policy.ByOrigin),
		int64(row.restart), row.key)
	return err
}

// addToHistory has no conflict to mind: each row gets a new number, and the ids were found to be
// new before.
var addToHistory = inserting(`INSERT INTO heed_observation
	(cell, id, happened, source, observation, recorded)`, `ttitti`, ``)

// A keptObservation is the JSON of an observation in the history. Its cell, its source and its time
// are columns, because queries look for them. Fields can be added without a change of the tables.
type keptObservation struct {
	ID      string  `json:"id"`
	Channel string  `json:"channel,omitempty"`
	Session string  `json:"session,omitempty"`
	Reward  float64 `json:"reward"`
	Weight  float64 `json:"weight"`
	Share   float64 `json:"share,omitempty"`
}

// historyRows are observations as the history has them, without the moment of recording.
func historyRows(all []addition) ([][]any, error) {
	rows := make([][]any, len(all))
	for i := range all {
		o := all[i].Observation
		text, err := json.Marshal(keptObservation{o.ID, o.Channel, o.Session, o.Reward, o.Weight,
			o.Share})
		if err != nil {
			return nil, err
		}
		rows[i] = []any{all[i].key, all[i].id, int64(evidence.InstantOf(o.At)), o.Source, string(text)}
	}
	return rows, nil
}

// kept is a row of the history. The observation has no cell.
type kept struct {
	seq                int64
	key, id            string
	happened, recorded evidence.Instant
	evidence.Observation
}

// observationColumns are the columns of the history in the order of scanObservation.
const observationColumns = `seq, cell, id, happened, recorded, source, observation`

// scanObservation returns a row of the history, or an error that names it. The number in the error
// finds the row in the database.
func scanObservation(scan func(...any) error) (o kept, err error) {
	var source, text string
	if err := scan(&o.seq, &o.key, &o.id, &o.happened, &o.recorded, &source, &text); err != nil {
		return o, err
	}
	var k keptObservation
	if json.Unmarshal([]byte(text), &k) != nil {
		return o, damaged("observation %d in the history of a cell", o.seq)
	}
	o.Observation = evidence.Observation{
		ID: k.ID, Channel: k.Channel, Source: source, Session: k.Session, Reward: k.Reward,
		Weight: k.Weight, Share: k.Share,
		At: o.happened.Time(),
	}
	return o, nil
}

const (
	// insertTallies and what follows it make a tally or add to the one that is there: see onConflict.
	insertTallies = `INSERT INTO heed_tally AS t (` + tallyNames + `)`
	// tallyTypes has a letter for each of tallyNames: see inserting.
	tallyTypes = `tttiffffiiiiiiiiii`
)

// addSums returns the tallies that it has added to. scaleSums is for those tallies that addSums
// leaves as they are because of their landmark.
var (
	addSums   = inserting(insertTallies, tallyTypes, addingToKnown+returningTally)
	scaleSums = inserting(insertTallies, tallyTypes, addingToOthers+returningTally)
)

// returningTally has a statement return the sums as they are after it, which saves a read.
var returningTally = ` RETURNING cell, channel, source, ` + strings.ReplaceAll(tallySums, `t.`, ``)

// addSums adds to the tallies, and keeps the parts that it saw for the receipts.
func (c *change) addSums(sums deltas, cells map[string]*cellRow) error {
	rows := sums.rows()
	c.parts = make(map[string][]evidence.Part)
	added := 0
	take := func(scan func(...any) error) error {
		added++
		var key string
		var part evidence.Part
		err := scanTally(scan, &part.Tally, &key, &part.Channel, &part.Source)
		if err == nil {
			c.keepPart(cells[key], part)
		}
		return err
	}
	// The plain statement adds to the tallies of the same landmark, which is nearly all of them,
	// and leaves out others. These return no row, so the count shows whether the second, slower
	// statement is needed. That one leaves out the tallies of the first, so both may be given all
	// rows.
	err := c.t.insert(addSums, rows, take)
	if err == nil && added < len(rows) {
		err = c.t.insert(scaleSums, rows, take)
	}
	return err
}

// keepPart keeps a part for the receipts, if its cell contains no other.
func (c *change) keepPart(row *cellRow, part evidence.Part) {
	// A cell that keeps origins apart may have parts that this commit did not touch, so what comes
	// back here need not be all of it.
	if !row.policy.ByOrigin {
		part.Cell, part.Tally = row.cell, restated(part.Tally, row.policy.HalfLife)
		c.parts[row.key] = append(c.parts[row.key], part)
	}
}

// restated gives a tally its half-life. The landmark is a number of steps of it. With a half-life
// of 0 sums do not fade, and the landmark is 0.
func restated(t evidence.Tally, halfLife time.Duration) evidence.Tally {
	t.HalfLife = halfLife
	t.Landmark = evidence.Instant(int64(t.Landmark) * valid.LandmarkStep * halfLife.Microseconds())
	return t
}

// readParts gives the receipts the cells that the batches ask for, in their present state. Most
// receipts need no read, because the insertion returned the parts.
func (c *change) readParts(all []addition) error {
	var missing []evidence.Cell
	seen := make(map[evidence.Cell]bool)
	for i := range c.batches {
		for _, cell := range c.batches[i].PartsOf {
			// What the insertion returned is used. The rest is read once for all batches.
			if !c.known[i] && !seen[cell] && c.parts[hashOfCell(cell)] == nil {
				seen[cell] = true
				missing = append(missing, cell)
			}
		}
	}
	if len(missing) > 0 {
		if c.parts == nil {
			c.parts = make(map[string][]evidence.Part)
		}
		if err := c.t.snapshot(missing, nil, c.parts, nil); err != nil {
			return err
		}
	}
	c.fillParts(all)
	return nil
}

// fillParts fills in the parts of the receipts from the parts of the cells.
func (c *change) fillParts(all []addition) {
	for i := range c.batches {
		if c.known[i] {
			continue
		}
		for _, cell := range c.batches[i].PartsOf {
			c.receipts[i].Parts = append(c.receipts[i].Parts, c.partsAfter(i, cell, all)...)
		}
	}
}
