package sqlstore

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/limits"
	"github.com/heedhq/heed/store"
)

// An id that another transaction is about to make known is waited for. PostgreSQL reads the cells of the observations in the
// same round trip.
var (
	learnIDsBound = bound(`INSERT INTO heed_id (id, recorded, traced, checksum) VALUES `, 4, ` ON CONFLICT DO NOTHING RETURNING id`)
	learnIDs      = either(``, `INSERT INTO heed_id (id, recorded, traced, checksum)
		SELECT value->>0, CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST(value->>1 AS BIGINT) FROM jsonb_array_elements($3) WHERE true
		ON CONFLICT DO NOTHING RETURNING id`)
	learnIDsAndCells = either(``, `WITH fresh AS (`+learnIDs.texts[Postgres]+`)
		SELECT id, -1, 0, 0, '', '', '', '', 0 FROM fresh
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
	learnt := make([][]any, len(ids))
	if c.t.db.dialect.embedded() {
		for i, id := range ids {
			learnt[i] = []any{id, int64(c.now), traced, sumOfID(id, int64(c.now), traced, 0)}
		}
		if c.quick {
			return c.addIDs(ids, learnt)
		}
		if err := c.t.eachOfAll(&learnIDsBound, learnt, fresh); err != nil {
			return err
		}
		return c.checkBatches()
	}
	for i, id := range ids {
		learnt[i] = []any{id, sumOfID(id, int64(c.now), traced, 0)}
	}
	rows, err := rowsOf(learnt)
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
		r, fresh, err := c.t.scanCell(scan)
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
	rows, err := historyRows(all, c.now)
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i] = append(rows[i], int64(c.now))
	}
	_, err = c.t.execAll(&addToHistoryBound, rows)
	return err
}

var cellColumns = `cell, half_life, by_origin, restart, kind, scope, item, name, ` + named(``)

var (
	findCells = both(`SELECT ` + cellColumns + ` FROM heed_cell WHERE cell IN (SELECT value->>0 FROM json_each($1))`)
	makeCells = either(``, `INSERT INTO heed_cell (cell, kind, scope, item, name, half_life, by_origin, lot, checksum, restart)
		SELECT value->>0, value->>1, value->>2, value->>3, value->>4, CAST(value->>5 AS BIGINT), CAST(value->>6 AS BIGINT),
			CAST(value->>7 AS BIGINT), CAST(value->>8 AS BIGINT), 0
		FROM jsonb_array_elements($1) WHERE true
		ON CONFLICT DO NOTHING RETURNING `+cellColumns)
	makeCellsBound = bound(`INSERT INTO heed_cell (cell, kind, scope, item, name, half_life, by_origin, lot, checksum, restart) VALUES `, 10,
		` ON CONFLICT DO NOTHING RETURNING `+cellColumns)
	cellIsOpen = both(`SELECT 1 FROM heed_tally WHERE cell = $1 LIMIT 1`)
	changeCell = both(`UPDATE heed_cell SET half_life = $1, by_origin = $2, restart = $3, checksum = $4 WHERE cell = $5`)
)

// cellsInto returns what puts the cells that a query finds into a map.
func (c *change) cellsInto(found map[string]*cellRow) func(scan func(...any) error) error {
	return func(scan func(...any) error) error {
		r, _, err := c.t.scanCell(scan)
		found[r.key] = r
		return err
	}
}

// scanCell returns a cell. It is of an id that is new instead, if its half-life is below 0.
func (t *tx) scanCell(scan func(...any) error) (r *cellRow, fresh bool, err error) {
	r = &cellRow{}
	var halfLife, byOrigin, named int64
	err = scan(&r.key, &halfLife, &byOrigin, &r.restart, &r.cell.Kind, &r.cell.Scope, &r.cell.Item, &r.cell.Name, &named)
	r.policy = evidence.Policy{HalfLife: time.Duration(halfLife) * time.Microsecond, ByOrigin: byOrigin == 1}
	switch fresh = halfLife < 0 && named == 0; {
	case err != nil || fresh:
	case named != namedCell(r.cell):
		err = t.db.damage("the cell of %s", nameOf(r.cell))
	}
	return r, fresh, err
}

// checksum is that of the row.
func (r *cellRow) checksum() int64 {
	return namedCell(r.cell) + r.policy.HalfLife.Microseconds() + flag(r.policy.ByOrigin) + int64(r.restart)
}

// row has the values of a row to make, but for the restart.
func (r *cellRow) row() []any {
	return []any{
		r.key, r.cell.Kind, r.cell.Scope, r.cell.Item, r.cell.Name, r.policy.HalfLife.Microseconds(), flag(r.policy.ByOrigin),
		lotOf(r.cell.Item), r.checksum(),
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
		for i := range missing {
			missing[i] = append(missing[i], 0)
		}
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
	_, err := c.t.exec(changeCell, row.policy.HalfLife.Microseconds(), flag(row.policy.ByOrigin), int64(row.restart), row.checksum(), row.key)
	return err
}

var (
	addToHistory = either(``, `INSERT INTO heed_observation (cell, id, happened, source, observation, recorded, checksum)
		SELECT value->>0, value->>1, CAST(value->>2 AS BIGINT), value->>3, value->>4, CAST($1 AS BIGINT), CAST(value->>5 AS BIGINT)
		FROM jsonb_array_elements($2)`)
	addToHistoryBound = bound(`INSERT INTO heed_observation (cell, id, happened, source, observation, checksum, recorded) VALUES `, 7, ``)
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
	rows, err := historyRows(all, c.now)
	if err != nil {
		return nil, err
	}
	text, err := rowsOf(rows)
	return []any{int64(c.now), text}, err
}

// historyRows are observations as the history has them, recorded at a moment.
func historyRows(all []addition, recorded evidence.Instant) ([][]any, error) {
	rows := make([][]any, len(all))
	for i := range all {
		o := all[i].Observation
		text, err := json.Marshal(keptObservation{o.ID, o.Channel, o.Session, o.Reward, o.Weight, o.Share})
		if err != nil {
			return nil, err
		}
		at := evidence.InstantOf(o.At)
		sum := sumOfObservation(all[i].key, all[i].id, o.Source, string(text), at, recorded)
		rows[i] = []any{all[i].key, all[i].id, int64(at), o.Source, string(text), sum}
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

const observationColumns = `seq, cell, id, happened, recorded, source, observation, checksum`

// scanObservation returns a row of the history, or an error that names it.
func (t *tx) scanObservation(scan func(...any) error) (o kept, err error) {
	var source, text string
	var sum int64
	if err := scan(&o.seq, &o.key, &o.id, &o.happened, &o.recorded, &source, &text, &sum); err != nil {
		return o, err
	}
	var k keptObservation
	if sum != sumOfObservation(o.key, o.id, source, text, o.happened, o.recorded) || json.Unmarshal([]byte(text), &k) != nil {
		return o, t.db.damage("observation %d in the history of a cell", o.seq)
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
	insertTallies = `INSERT INTO heed_tally AS t (` + tallyNames + `, checksum, mass_copy, squares_copy, reward_copy, reward_squares_copy)
		SELECT value->>0, value->>1, value->>2, CAST(value->>3 AS BIGINT),
			CAST(value->>4 AS DOUBLE PRECISION), CAST(value->>5 AS DOUBLE PRECISION),
			CAST(value->>6 AS DOUBLE PRECISION), CAST(value->>7 AS DOUBLE PRECISION),
			CAST(value->>8 AS BIGINT), CAST(value->>9 AS BIGINT), CAST(value->>10 AS BIGINT),
			CAST(value->>11 AS BIGINT), CAST(value->>12 AS BIGINT), CAST(value->>13 AS BIGINT),
			CAST(value->>14 AS BIGINT), CAST(value->>15 AS BIGINT), CAST(value->>16 AS BIGINT), CAST(value->>17 AS BIGINT),
			CAST(value->>18 AS BIGINT), CAST(value->>19 AS BIGINT),
			CAST(value->>4 AS DOUBLE PRECISION), CAST(value->>5 AS DOUBLE PRECISION),
			CAST(value->>6 AS DOUBLE PRECISION), CAST(value->>7 AS DOUBLE PRECISION)
		FROM jsonb_array_elements($1)`
	boundTallies = `INSERT INTO heed_tally AS t (` + tallyNames + `) VALUES `
)

var (
	addSums      = either(``, insertTallies+onKnownTally(Postgres))
	addSumsBound = bound(boundTallies, tallyColumns, onKnownTally(SQLite))
)

// addSumsAndTell is addSums that returns the tallies. In PostgreSQL, both can add to the history in the same round trip.
var (
	addSumsAndTellBound   = bound(boundTallies, tallyColumns, onKnownTally(SQLite)+returningTally)
	addSumsAndTell        = either(``, addSums.texts[Postgres]+returningTally)
	addSumsAndKeep        = either(``, alsoToHistory+strings.Replace(addSums.texts[Postgres], `($1)`, `($3)`, 1))
	addSumsAndKeepAndTell = either(``, addSumsAndKeep.texts[Postgres]+returningTally)
)

// scaleSums is for those tallies that addSums leaves as they are because of their landmark.
var (
	scaleSums      = either(``, insertTallies+addToOthers(Postgres)+returningTally)
	scaleSumsBound = bound(boundTallies, tallyColumns, addToOthers(SQLite)+returningTally)
)

const alsoToHistory = `WITH history AS (INSERT INTO heed_observation (cell, id, happened, source, observation, recorded, checksum)
	SELECT value->>0, value->>1, CAST(value->>2 AS BIGINT), value->>3, value->>4, CAST($1 AS BIGINT), CAST(value->>5 AS BIGINT)
	FROM jsonb_array_elements($2)) `

// A tally that was just added to fits.
var returningTally = ` RETURNING cell, channel, source, ` + strings.ReplaceAll(tallyRead+`t.named`, `t.`, ``)

// addSums adds to the tallies. Where the receipts are to have parts, it keeps those that it has seen. With the arguments of
// addToHistory it adds to the history, too, in PostgreSQL.
func (c *change) addSums(sums deltas, cells map[string]*cellRow, history ...any) error {
	froms := sums.origins()
	if len(froms) == 0 {
		return nil
	}
	rows := make([][]any, len(froms))
	for i, from := range froms {
		rows[i] = sums[from].row(c.t.db.dialect, from)
	}
	told := slices.ContainsFunc(c.batches, func(b store.Batch) bool { return len(b.PartsOf) > 0 })
	added := int64(0)
	tell := func(scan func(...any) error) error {
		added++
		var key string
		var part evidence.Part
		_, err := scanTally(scan, &part.Tally, &key, &part.Channel, &part.Source)
		if row := cells[key]; err == nil && told && !row.policy.ByOrigin { // or else there may be others
			part.Cell, part.Tally = row.cell, restated(part.Tally, row.policy.HalfLife)
			c.parts[key] = append(c.parts[key], part)
		}
		return err
	}
	if told {
		c.parts = make(map[string][]evidence.Part)
	}
	var err error
	switch embedded := c.t.db.dialect.embedded(); {
	case embedded && told:
		err = c.t.eachOfAll(&addSumsAndTellBound, rows, tell)
	case embedded:
		added, err = c.t.execAll(&addSumsBound, rows)
	default:
		add, addAndTell := addSums, addSumsAndTell
		if len(history) > 0 {
			add, addAndTell = addSumsAndKeep, addSumsAndKeepAndTell
		}
		var text string
		if text, err = rowsOf(rows); err != nil {
			return err
		}
		arguments := append(slices.Clip(history), text)
		if told {
			err = c.t.each(addAndTell, arguments, tell)
		} else {
			added, err = c.t.exec(add, arguments...)
		}
	}
	if err != nil || added == int64(len(froms)) {
		return err
	}
	if err := c.scaleSums(rows, tell); err != nil {
		return err
	}
	return c.addedTo(froms, added, cells)
}

// scaleSums adds to the tallies that addSums has left as they are because of their landmark.
func (c *change) scaleSums(rows [][]any, tell func(scan func(...any) error) error) error {
	if c.t.db.dialect.embedded() {
		return c.t.eachOfAll(&scaleSumsBound, rows, tell)
	}
	text, err := rowsOf(rows)
	if err == nil {
		err = c.t.each(scaleSums, []any{text}, tell)
	}
	return err
}

var tallyIsDamaged = both(`SELECT 1 FROM heed_tally AS t WHERE t.cell = $1 AND t.channel = $2 AND t.source = $3 AND (t.named <> $4 OR NOT (` +
	tallyFits(`t.`) + `))`)

// addedTo returns an error that names a tally that was not added to, if there is one: it does not match its checksum.
func (c *change) addedTo(froms []origin, added int64, cells map[string]*cellRow) error {
	if added == int64(len(froms)) {
		return nil
	}
	of := "a cell"
	for _, from := range froms {
		damaged, err := c.t.finds(tallyIsDamaged, from.key, from.channel, from.source, namedTally(from.key, from.channel, from.source))
		if err != nil {
			return err
		}
		if row := cells[from.key]; damaged && row != nil {
			of = nameOf(row.cell)
		}
	}
	return c.t.db.damage("the sums of %s", of)
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
