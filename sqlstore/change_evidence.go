package sqlstore

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/limits"
)

// An id that another transaction is about to make known is waited for. PostgreSQL reads the cells of the observations in the
// same round trip.
var (
	learnIDsBound = bound(`INSERT INTO heed_id (id, recorded, traced) VALUES `, 3, `
		ON CONFLICT DO NOTHING RETURNING id`)
	learnIDs = either(``, `INSERT INTO heed_id (id, recorded, traced)
		SELECT value->>0, CAST($1 AS BIGINT), CAST($2 AS BIGINT) FROM jsonb_array_elements($3)
			WHERE true
		ON CONFLICT DO NOTHING RETURNING id`)
	learnIDsAndCells = either(``, `WITH fresh AS (`+learnIDs.texts[Postgres]+`)
		SELECT id, -1, 0, 0, '', '', '', '' FROM fresh
		UNION ALL SELECT `+cellColumns+` FROM heed_cell WHERE cell = ANY (ARRAY(SELECT value->>0 FROM jsonb_array_elements($4)))`)
)

// knowIDs makes all ids known. It returns errKnown where that of a batch was, or where an earlier batch has it.
func (c *change) knowIDs() error {
	c.fresh = make(map[string]bool)
	ids := c.ids()
	if len(ids) == 0 {
		return nil
	}
	traced := flag(!c.store.cfg.NoHistory)
	fresh := func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		c.fresh[id] = true
		return err
	}
	if c.t.db.dialect.embedded() {
		learnt := make([][]any, len(ids))
		for i, id := range ids {
			learnt[i] = []any{id, int64(c.now), traced}
		}
		if c.quick {
			return c.addIDs(ids, learnt)
		}
		if err := c.t.eachOfAll(&learnIDsBound, learnt, fresh); err != nil {
			return err
		}
		return c.checkBatches()
	}
	rows, err := column(ids)
	if err != nil {
		return err
	}
	args := []any{int64(c.now), traced, rows}
	if c.alone {
		err = c.t.each(learnIDs, args, fresh)
	} else {
		err = c.knowIDsAndCells(args)
	}
	if err != nil {
		return err
	}
	return c.checkBatches()
}

// ids returns the hashes of the ids of the batches that are not known, sorted, each once.
func (c *change) ids() (ids []string) {
	for i := range c.batches {
		if b := &c.batches[i]; !c.known[i] {
			if b.ID != "" {
				ids = append(ids, hashOf(b.ID))
			}
			for k := range b.Observations {
				ids = append(ids, hashOf(b.Observations[k].ID))
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// knowIDsAndCells also reads the cells, which stay as they are: a cell is changed only by a holder of the whole store.
func (c *change) knowIDsAndCells(args []any) error {
	seen := make(map[evidence.Cell]bool)
	var keys []string
	for i := range c.batches {
		for k := range c.batches[i].Observations {
			if cell := c.batches[i].Observations[k].Cell; !seen[cell] {
				seen[cell] = true
				keys = append(keys, hashOfCell(cell))
			}
		}
	}
	cells, err := column(keys)
	if err != nil {
		return err
	}
	c.cells = make(map[string]*cellRow, len(keys))
	return c.t.each(learnIDsAndCells, append(args, cells), func(scan func(...any) error) error {
		r, fresh, err := scanCell(scan)
		if fresh {
			c.fresh[r.key] = true
		} else {
			c.cells[r.key] = r
		}
		return err
	})
}

func (c *change) checkBatches() error {
	taken := make(map[string]bool)
	again := false
	for i := range c.batches {
		b := &c.batches[i]
		switch id := hashOf(b.ID); {
		case c.known[i] || b.ID == "":
		case !c.fresh[id] || taken[id]:
			c.known[i], again = true, true
		default:
			taken[id] = true
		}
		for k := range b.Observations {
			if len(c.batches) > 1 && !c.known[i] {
				taken[hashOf(b.Observations[k].ID)] = true
			}
		}
	}
	if again {
		return errKnown
	}
	return nil
}

// addition is an observation that is to count, with the key of its cell.
type addition struct {
	*evidence.Observation
	id, key string
	policy  evidence.Policy
	batch   int
	from    origin
	counts  bool // as a part of the sums of that origin
}

// pending returns the observations whose ids are new, none twice, and fills in the receipts. An id belongs to the batch
// that has it first.
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
		if b := &c.batches[i]; b.ID != "" && i+1 < len(c.batches) {
			owner[hashOf(b.ID)] = i
		}
		for k := range c.batches[i].Observations {
			o := &c.batches[i].Observations[k]
			id := hashOf(o.ID)
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
				all = append(all, addition{Observation: o, id: id, key: key, policy: c.batches[i].Policies[o.Cell.Kind], batch: i})
			}
		}
	}
	return all
}

// observe adds observations to their cells and to the history.
func (c *change) observe(all []addition) error {
	if len(all) == 0 {
		return nil
	}
	cells, err := c.openCells(all)
	if err != nil {
		return err
	}
	sums := make(deltas)
	for i := range all {
		a := &all[i]
		o, row := a.Observation, cells[a.key]
		d := sums.add(row, o)
		if a.counts = d != nil; a.counts {
			a.from = row.origin(o)
		}
		if d != nil && c.store.cfg.NoHistory {
			d.lose(o)
		}
	}
	var history []any // the arguments of addToHistory
	if !c.store.cfg.NoHistory && !c.t.db.dialect.embedded() {
		if history, err = c.history(all); err != nil {
			return err
		}
	}
	if len(sums) > 0 && history != nil {
		return c.addSums(sums, cells, history...)
	}
	if err := c.addSums(sums, cells); err != nil || c.store.cfg.NoHistory {
		return err
	}
	if history != nil {
		_, err = c.t.exec(addToHistory, history...)
		return err
	}
	return c.addHistory(all)
}

// addHistory adds observations to the history in SQLite, if one is kept.
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
	_, err = c.t.execAll(&addToHistoryBound, rows)
	return err
}

const (
	cellColumns = `cell, half_life, by_origin, restart, kind, scope, item, name`
	insertCells = `INSERT INTO heed_cell
		(cell, kind, scope, item, name, half_life, by_origin, lot, restart) `
	boundCells   = insertCells + `VALUES `
	cellsColumns = 9
)

var (
	findCells = both(`SELECT ` + cellColumns + ` FROM heed_cell
		WHERE cell IN (SELECT value->>0 FROM json_each($1))`)
	makeCells = either(``, loadCells.texts[Postgres]+` ON CONFLICT DO NOTHING
		RETURNING `+cellColumns)
	makeCellsBound = bound(boundCells, cellsColumns, ` ON CONFLICT DO NOTHING RETURNING `+cellColumns)
	cellIsOpen     = both(`SELECT 1 FROM heed_tally WHERE cell = $1 LIMIT 1`)
	changeCell     = both(`UPDATE heed_cell SET half_life = $1, by_origin = $2, restart = $3
		WHERE cell = $4`)
)

// cellsInto returns what puts the cells that a query finds into a map.
func (c *change) cellsInto(found map[string]*cellRow) func(scan func(...any) error) error {
	return func(scan func(...any) error) error {
		r, _, err := scanCell(scan)
		found[r.key] = r
		return err
	}
}

// scanCell returns a cell. It is of an id that is new instead, if its half-life is below 0.
func scanCell(scan func(...any) error) (r *cellRow, fresh bool, err error) {
	r = &cellRow{}
	var halfLife, byOrigin int64
	err = scan(&r.key, &halfLife, &byOrigin, &r.restart,
		&r.cell.Kind, &r.cell.Scope, &r.cell.Item, &r.cell.Name)
	r.policy = evidence.Policy{
		HalfLife: time.Duration(halfLife) * time.Microsecond, ByOrigin: byOrigin == 1,
	}
	return r, halfLife < 0, err
}

// row returns the values of a row to make.
func (r *cellRow) row() []any {
	return []any{
		r.key, r.cell.Kind, r.cell.Scope, r.cell.Item, r.cell.Name, r.policy.HalfLife.Microseconds(), flag(r.policy.ByOrigin),
		lotOf(r.cell.Item), int64(r.restart),
	}
}

// findCells returns the cells of these keys that there are.
func (c *change) findCells(keys []string) (map[string]*cellRow, error) {
	found := make(map[string]*cellRow, len(keys))
	rows, err := column(keys)
	if err == nil {
		err = c.t.each(findCells, []any{rows}, c.cellsInto(found))
	}
	return found, err
}

// makeCells adds those cells that are not there yet, each with a policy, and returns all.
func (c *change) makeCells(cells map[string]evidence.Cell, policies map[string]evidence.Policy) (map[string]*cellRow, error) {
	keys := slices.Sorted(maps.Keys(cells))
	found := c.cells
	c.cells = nil
	var err error
	if found == nil {
		found, err = c.findCells(keys)
	}
	if err != nil || !slices.ContainsFunc(keys, func(key string) bool { return found[key] == nil }) {
		return found, err
	}
	var missing [][]any
	for _, key := range keys {
		if found[key] == nil {
			missing = append(missing, (&cellRow{key: key, cell: cells[key], policy: policies[key]}).row())
		}
	}
	if c.t.db.dialect.embedded() {
		err = c.t.eachOfAll(&makeCellsBound, missing, c.cellsInto(found))
	} else {
		var rows string
		if rows, err = rowsOf(missing); err == nil {
			err = c.t.each(makeCells, []any{rows}, c.cellsInto(found))
		}
	}
	if err != nil || !slices.ContainsFunc(keys, func(key string) bool { return found[key] == nil }) {
		return found, err
	}
	return c.findCells(keys) // somebody else has added one meanwhile, maybe with another policy
}

// openCells returns the cells of observations. Each cell has the policy that its observations want.
func (c *change) openCells(all []addition) (map[string]*cellRow, error) {
	cells, policies := make(map[string]evidence.Cell, len(all)), make(map[string]evidence.Policy, len(all))
	for i := range all {
		cells[all[i].key], policies[all[i].key] = all[i].Cell, all[i].policy
	}
	found, err := c.makeCells(cells, policies)
	if err != nil {
		return nil, err
	}
	opened := make(map[string]bool) // by this commit
	for i := range all {
		row, wanted := found[all[i].key], all[i].policy
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

func (c *change) keep(row *cellRow) error {
	_, err := c.t.exec(changeCell, row.policy.HalfLife.Microseconds(), flag(row.policy.ByOrigin),
		int64(row.restart), row.key)
	return err
}

var (
	addToHistory = either(``,
		`INSERT INTO heed_observation (cell, id, happened, source, observation, recorded)
		SELECT value->>0, value->>1, CAST(value->>2 AS BIGINT), value->>3, value->>4, CAST($1 AS BIGINT)
		FROM jsonb_array_elements($2)`)
	addToHistoryBound = bound(`INSERT INTO heed_observation
		(cell, id, happened, source, observation, recorded)
		VALUES `, 6, ``)
)

// A keptObservation is an observation in the history, without its cell, its source and its time.
type keptObservation struct {
	ID      string  `json:"id"`
	Channel string  `json:"channel,omitempty"`
	Session string  `json:"session,omitempty"`
	Reward  float64 `json:"reward"`
	Weight  float64 `json:"weight"`
	Share   float64 `json:"share,omitempty"`
}

// history returns the arguments of addToHistory for observations.
func (c *change) history(all []addition) ([]any, error) {
	rows, err := historyRows(all)
	if err != nil {
		return nil, err
	}
	text, err := rowsOf(rows)
	return []any{int64(c.now), text}, err
}

// historyRows are observations as the history has them, without the moment of recording.
func historyRows(all []addition) ([][]any, error) {
	rows := make([][]any, len(all))
	for i := range all {
		o := all[i].Observation
		text, err := json.Marshal(keptObservation{o.ID, o.Channel, o.Session, o.Reward, o.Weight, o.Share})
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

const observationColumns = `seq, cell, id, happened, recorded, source, observation`

// scanObservation returns a row of the history, or an error that names it.
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
		ID: k.ID, Channel: k.Channel, Source: source, Session: k.Session, Reward: k.Reward, Weight: k.Weight, Share: k.Share,
		At: o.happened.Time(),
	}
	return o, nil
}

// PostgreSQL takes all tallies of a commit as JSON, whose numbers it reads exactly. SQLite would round when it reads numbers from
// text.
const (
	insertTallies = `INSERT INTO heed_tally AS t (` + tallyNames + `)
		SELECT value->>0, value->>1, value->>2, CAST(value->>3 AS BIGINT),
			CAST(value->>4 AS DOUBLE PRECISION), CAST(value->>5 AS DOUBLE PRECISION),
			CAST(value->>6 AS DOUBLE PRECISION), CAST(value->>7 AS DOUBLE PRECISION),
			CAST(value->>8 AS BIGINT), CAST(value->>9 AS BIGINT), CAST(value->>10 AS BIGINT),
			CAST(value->>11 AS BIGINT), CAST(value->>12 AS BIGINT), CAST(value->>13 AS BIGINT),
			CAST(value->>14 AS BIGINT), CAST(value->>15 AS BIGINT),
			CAST(value->>16 AS BIGINT), CAST(value->>17 AS BIGINT)
		FROM jsonb_array_elements($1)`
	boundTallies = `INSERT INTO heed_tally AS t (` + tallyNames + `) VALUES `
)

// addSums returns the tallies that it has added to. In PostgreSQL, addSumsAndKeep adds to the
// history in the same round trip.
var (
	addSums        = either(``, insertTallies+addingToKnown+returningTally)
	addSumsAndKeep = either(``, `WITH history AS (`+addToHistory.texts[Postgres]+`) `+
		strings.Replace(addSums.texts[Postgres], `($1)`, `($3)`, 1))
	addSumsBound = bound(boundTallies, tallyColumns, addingToKnown+returningTally)
)

// scaleSums is for those tallies that addSums leaves as they are because of their landmark.
var (
	scaleSums      = either(``, insertTallies+addingToOthers+returningTally)
	scaleSumsBound = bound(boundTallies, tallyColumns, addingToOthers+returningTally)
)

var returningTally = ` RETURNING cell, channel, source, ` + strings.ReplaceAll(tallySums, `t.`, ``)

// addSums adds to the tallies, and keeps the parts that it has seen for the receipts. With the
// arguments of addToHistory it adds to the history, too, in PostgreSQL.
func (c *change) addSums(sums deltas, cells map[string]*cellRow, history ...any) error {
	froms := sums.origins()
	if len(froms) == 0 {
		return nil
	}
	rows := make([][]any, len(froms))
	for i, from := range froms {
		rows[i] = sums[from].row(from)
	}
	c.parts = make(map[string][]evidence.Part)
	added := 0
	tell := func(scan func(...any) error) error {
		added++
		var key string
		var part evidence.Part
		err := scanTally(scan, &part.Tally, &key, &part.Channel, &part.Source)
		if row := cells[key]; err == nil && !row.policy.ByOrigin { // or else there may be others
			part.Cell, part.Tally = row.cell, restated(part.Tally, row.policy.HalfLife)
			c.parts[key] = append(c.parts[key], part)
		}
		return err
	}
	if c.t.db.dialect.embedded() {
		err := c.t.eachOfAll(&addSumsBound, rows, tell)
		if err == nil && added < len(froms) {
			err = c.t.eachOfAll(&scaleSumsBound, rows, tell)
		}
		return err
	}
	text, err := rowsOf(rows)
	if err != nil {
		return err
	}
	add := addSums
	if len(history) > 0 {
		add = addSumsAndKeep
	}
	err = c.t.each(add, append(slices.Clip(history), text), tell)
	if err == nil && added < len(froms) {
		err = c.t.each(scaleSums, []any{text}, tell)
	}
	return err
}

// restated gives a tally its half-life. The landmark is a number of steps of it.
func restated(t evidence.Tally, halfLife time.Duration) evidence.Tally {
	t.HalfLife = halfLife
	t.Landmark = evidence.Instant(int64(t.Landmark) * limits.LandmarkStep * halfLife.Microseconds())
	return t
}

// readParts gives the receipts the cells that the batches ask for, as they are now.
func (c *change) readParts(all []addition) error {
	var missing []evidence.Cell
	seen := make(map[evidence.Cell]bool)
	for i := range c.batches {
		for _, cell := range c.batches[i].PartsOf {
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
		if err := c.t.parts(missing, c.parts); err != nil {
			return err
		}
	}
	c.tellParts(all)
	return nil
}

// tellParts fills in the parts of the receipts from those of the cells.
func (c *change) tellParts(all []addition) {
	for i := range c.batches {
		if c.known[i] {
			continue
		}
		for _, cell := range c.batches[i].PartsOf {
			c.receipts[i].Parts = append(c.receipts[i].Parts, c.partsAfter(i, cell, all)...)
		}
	}
}
