package sqlstore

import (
	"encoding/json"
	"math/bits"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/people"
	"github.com/heedhq/heed/store"
)

// A damaged row may not be found where the index of a name says, or may be whole while its entry in the index is not. So to forget somebody
// goes through the tables once more, without an index: the databases take none for a source with an empty text behind it.
var (
	// One pass is for all people. A list of keys that is no JSON any more is searched as text, as PostgreSQL searches each.
	misplacedRecords = either(
		recordsNaming(`CASE WHEN json_valid(keys) THEN EXISTS (SELECT 1 FROM json_each(keys) WHERE value IN (SELECT value->>0 FROM json_each($1)))
			ELSE EXISTS (SELECT 1 FROM json_each($1) WHERE instr(keys, value->>1) > 0) END`),
		recordsNaming(`EXISTS (SELECT 1 FROM jsonb_array_elements($1) WHERE strpos(keys, value->>1) > 0)`))
	misplacedSources = both(`SELECT ` + observationColumns + ` FROM heed_observation
		WHERE source || '' IN (SELECT value->>0 FROM json_each($1)) ORDER BY seq LIMIT 500 OFFSET $2`)
	dropMisplaced = []*query{
		both(`DELETE FROM heed_tally WHERE source || '' IN (SELECT value->>0 FROM json_each($1))`),
		both(`DELETE FROM heed_lost WHERE source || '' IN (SELECT value->>0 FROM json_each($1))`),
	}
)

func recordsNaming(condition string) string {
	return `SELECT seq, kind, at, keys, body, id, revision, checksum FROM heed_record WHERE ` + condition + ` AND seq > $2 ORDER BY seq LIMIT 100`
}

// forgetMisplaced takes people out of rows that are not found by their names, and notes damaged rows that may be theirs.
func (c *change) forgetMisplaced(kinds []store.Kind, names []string, all []people.Person) error {
	rows, err := column(names)
	if err != nil {
		return err
	}
	if err := c.take(misplacedSources, rows); err != nil {
		return err
	}
	for _, q := range dropMisplaced {
		if _, err := c.t.exec(q, rows); err != nil {
			return err
		}
	}
	if err := c.forgetByKeys(kinds, names, all); err != nil {
		return err
	}
	return c.noteFlipped(names)
}

// forgetByKeys takes people out of the records whose own list of keys has a name of theirs.
func (c *change) forgetByKeys(kinds []store.Kind, names []string, all []people.Person) error {
	keys := make([][]any, len(names))
	for i, name := range names {
		key := store.PersonKey(name)
		text, err := json.Marshal(key) // as textOfKeys writes it
		if err != nil {
			return err
		}
		keys[i] = []any{key, string(text)}
	}
	asked, err := rowsOf(keys)
	if err != nil {
		return err
	}
	for last, rows := -maxInt64, 1; rows > 0; {
		rows = 0
		pages := make(map[int][]bodyRow) // by the place of the kind
		err := c.t.each(misplacedRecords, []any{asked, last}, func(scan func(...any) error) error {
			var r bodyRow
			var kind, keys string
			var revision, sum int64
			if err := scan(&r.seq, &kind, &r.at, &keys, &r.body, &r.id, &revision, &sum); err != nil {
				return err
			}
			last, rows = r.seq, rows+1
			one, err := c.t.record(store.Ref{Kind: kind, ID: r.id}, evidence.Instant(r.at), revision, keys, r.body, sum)
			if c.passes(err) {
				return nil
			}
			r.keys = one.Keys
			at := slices.IndexFunc(kinds, func(k store.Kind) bool { return k.Name == kind })
			if at >= 0 { // else how the kind is kept is damaged, which is noted already
				pages[at] = append(pages[at], r)
			}
			return err
		})
		if err != nil {
			return err
		}
		for at, page := range pages {
			if err := c.rewrite(kinds[at], page, all); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rows whose source may be a name with a flipped bit.
var (
	sourcesOfLength = either(sourcesWhere(`length(CAST(source AS BLOB)) = $1`), sourcesWhere(`octet_length(source) = $1`))
	flippedHistory  = both(`SELECT ` + observationColumns + ` FROM heed_observation
		WHERE source <> '' AND source IN (SELECT value->>0 FROM json_each($1)) ORDER BY seq`)
	flippedTallies = both(`SELECT cell, channel, source, named FROM heed_tally WHERE source <> '' AND source IN (SELECT value->>0 FROM json_each($1))`)
	flippedLost    = both(`SELECT id, cell, source, recorded, checksum FROM heed_lost WHERE source <> '' AND source IN (SELECT value->>0 FROM json_each($1))`)
)

func sourcesWhere(condition string) (text string) {
	for _, table := range []string{"heed_observation", "heed_tally", "heed_lost"} {
		if text != "" {
			text += ` UNION `
		}
		text += `SELECT source FROM ` + table + ` WHERE source <> '' AND ` + condition
	}
	return text
}

// noteFlipped notes the rows whose source is a name but for one bit, and which do not fit to their checksums. A row that fits is of somebody
// else, whose name is so alike.
func (c *change) noteFlipped(names []string) error {
	var alike []string
	ofLength := make(map[int][]string)
	for _, name := range names {
		ofLength[len(name)] = append(ofLength[len(name)], name)
	}
	for length, names := range ofLength {
		found, err := c.t.texts(sourcesOfLength, int64(length))
		if err != nil {
			return err
		}
		for _, source := range found {
			if slices.ContainsFunc(names, func(name string) bool { return flippedBits(name, source) == 1 }) {
				alike = append(alike, source)
			}
		}
	}
	if len(alike) == 0 {
		return nil
	}
	rows, err := column(alike)
	if err != nil {
		return err
	}
	err = c.t.each(flippedHistory, []any{rows}, func(scan func(...any) error) error {
		_, err := c.t.scanObservation(scan)
		if c.passes(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	err = c.t.each(flippedTallies, []any{rows}, func(scan func(...any) error) error {
		var key, channel, source string
		var named int64
		err := scan(&key, &channel, &source, &named)
		if err == nil && named != namedTally(key, channel, source) {
			c.damage.pass(c.t.db.damage("the sums of a source in cell %s", key))
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.t.each(flippedLost, []any{rows}, func(scan func(...any) error) error {
		var id, key, source string
		var recorded evidence.Instant
		var sum int64
		err := scan(&id, &key, &source, &recorded, &sum)
		if err == nil && sum != sumOfLost(id, key, source, recorded) {
			c.damage.pass(c.t.db.damage("a lost observation of cell %s", key))
		}
		return err
	})
}

// flippedBits returns how many bits of two texts of one length differ.
func flippedBits(a, b string) (n int) {
	for i := range len(a) {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}
