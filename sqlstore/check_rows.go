package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A checkedRow has the columns of a row as the database gives them. A damaged row can have any value in any column.
type checkedRow struct {
	values []any
	wrong  bool // a column that was asked for is of another type
}

func (r *checkedRow) number(i int) int64 {
	n, ok := r.values[i].(int64)
	r.wrong = r.wrong || !ok
	return n
}

func (r *checkedRow) sum(i int) float64 {
	x, ok := r.values[i].(float64)
	r.wrong = r.wrong || !ok
	return x
}

func (r *checkedRow) text(i int) string {
	switch text := r.values[i].(type) {
	case string:
		return text
	case []byte:
		return string(text)
	}
	r.wrong = true
	return ""
}

func (r *checkedRow) instant(i int) evidence.Instant { return evidence.Instant(r.number(i)) }

// ofCell names the cell whose kind and the rest are in the columns from at on, or its key if they are not its own.
func (r *checkedRow) ofCell(at int, key string) string {
	c := checkedRow{values: r.values[at:]} // its own row tells what is wrong with it
	cell := evidence.Cell{Kind: c.text(0), Scope: c.text(1), Item: c.text(2), Name: c.text(3)}
	if c.wrong || hashOfCell(cell) != key {
		return "cell " + key
	}
	return nameOf(cell)
}

// A tableCheck reads a table a page at a time, in the order of its key.
type tableCheck struct {
	table  string
	page   *query // the first columns are the key; the arguments are that of the last row, and how many rows to read
	before []any  // a key that is before all
	remedy string
	// mend, if there is one, gives the remedy of a row that is damaged, if that is another.
	mend func(*checkedRow) string
	// row names a row, and says whether it is as it was written.
	row func(*checkedRow) (name string, fits bool)
	// more, if there is one, compares the rows of a page that fit with those of other tables, in the same transaction.
	more func(*tx, []*checkedRow) (faults []string, err error)
}

const restoreRow = "restore the store from a copy"

// isKey matches what can be a key of a cell, and can be typed as it is.
var isKey = regexp.MustCompile(`^[\w-]+$`)

// mended is the remedy for a cell whose sums can be made anew.
func mended(key string) string { return restoreRow + ", or run heed mend --cell=" + key }

// resetOf returns the remedy for a row of a cell whose key is in a column.
func resetOf(column int) func(*checkedRow) string {
	return func(r *checkedRow) string {
		key := (&checkedRow{values: r.values}).text(column)
		if !isKey.MatchString(key) {
			return restoreRow
		}
		return restoreRow + ", or run heed mend --cell=" + key + " --reset"
	}
}

// lookAgain is the remedy for rows that are not named.
const lookAgain = "mend those above, and check again"

const checkedPage = 200

// mostFaults is how many rows of each table are named.
const mostFaults = 100

// checkRows checks all rows of the tables that are there.
func (db *database) checkRows(ctx context.Context, missing map[string]bool) (faults []string, err error) {
	for i := range tableChecks {
		check := &tableChecks[i]
		needs := []string{check.table, "heed_cell", "heed_record", "heed_key", "heed_observation", "heed_tally"}
		if slices.ContainsFunc(needs, func(name string) bool { return missing[name] }) {
			continue
		}
		found, err := db.checkTable(ctx, check)
		if ctx.Err() != nil || err != nil && passing(err) {
			return nil, err
		}
		if err != nil {
			found = append(found, fmt.Sprintf("the table %s can't be read: %v: %s", check.table, err, restoreRow))
		}
		if len(found) > mostFaults {
			more := len(found) - mostFaults
			found = append(found[:mostFaults], fmt.Sprintf("and %d more in the table %s: %s", more, check.table, check.remedy))
		}
		faults = append(faults, found...)
	}
	return faults, nil
}

// passing reports whether an error says nothing about the rows: others have a lock, the connection is lost, or the server refuses to go on.
func passing(err error) bool {
	if locked(err) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, new(net.Error)) {
		return true
	}
	var state interface{ SQLState() string }
	if !errors.As(err, &state) || len(state.SQLState()) != 5 {
		return false
	}
	switch state.SQLState()[:2] {
	case "08", "25", "28", "40", "42", "53", "55", "57": // connections, transactions, rights, resources, locks and operators
		return true
	}
	return false
}

func (db *database) checkTable(ctx context.Context, check *tableCheck) (faults []string, err error) {
	after, named := check.before, make(map[string]bool)
	for {
		n, last := 0, after
		err := db.snapshot(ctx, func(t *tx) error {
			var fitting []*checkedRow
			err := t.eachChecked(check.page, append(slices.Clone(after), checkedPage), func(r *checkedRow) {
				n++
				name, fits := check.row(r)
				if fits = fits && !r.wrong; fits {
					fitting = append(fitting, r)
				} else if text := fmt.Sprintf("%s in the table %s is damaged: %s", name, check.table, check.remedyOf(r)); !named[text] {
					named[text] = true // once for all tallies of a cell, and for all observations without one
					faults = append(faults, text)
				}
				if key := r.values[:len(after)]; compareKeys(key, last) > 0 {
					last = key
				}
			})
			if err != nil || check.more == nil {
				return err
			}
			more, err := check.more(t, fitting)
			faults = append(faults, more...)
			return err
		})
		if err != nil {
			return faults, err
		}
		if n < checkedPage {
			return faults, nil
		}
		if compareKeys(last, after) <= 0 {
			return append(faults, fmt.Sprintf("the rows of the table %s are not in order: %s", check.table, restoreRow)), nil
		}
		after = last
	}
}

func (check *tableCheck) remedyOf(r *checkedRow) string {
	if check.mend == nil {
		return check.remedy
	}
	return check.mend(r)
}

// eachChecked calls a function with every row, whatever is in it.
func (t *tx) eachChecked(q *query, args []any, row func(*checkedRow)) error {
	rows, err := t.on.QueryContext(t.ctx, q.texts[t.db.dialect], args...)
	if err != nil {
		return because(t.ctx, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	into := make([]any, len(columns))
	for rows.Next() {
		r := &checkedRow{values: make([]any, len(columns))}
		for i := range into {
			into[i] = &r.values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row(r)
	}
	return because(t.ctx, rows.Err())
}

// compareKeys compares keys of numbers and texts. Values of other types are before all.
func compareKeys(a, b []any) int {
	for i := range a {
		x, y := &checkedRow{values: a}, &checkedRow{values: b}
		c := strings.Compare(x.text(i), y.text(i))
		if _, ok := b[i].(int64); ok {
			c = cmp.Compare(x.number(i), y.number(i))
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

var tableChecks = []tableCheck{
	{
		table: "heed_store", page: either(`SELECT one, version, checksum - revision - forgotten - rewritten - erased
			FROM heed_store WHERE one > $1 ORDER BY one LIMIT $2`,
			`SELECT one, version, checksum FROM heed_store WHERE one > $1 ORDER BY one LIMIT $2`),
		before: []any{int64(-1 << 62)}, remedy: restoreRow, row: checkedStore,
	},
	{
		table: "heed_cell", page: both(`SELECT cell, kind, scope, item, name, half_life, by_origin, restart, lot, checksum
			FROM heed_cell WHERE cell > $1 ORDER BY cell LIMIT $2`),
		before: []any{""}, remedy: lookAgain, mend: resetOf(0), row: checkedCell, more: partsAgree,
	},
	{
		table: "heed_tally", page: both(`SELECT t.cell, t.channel, t.source, ` + tallyValues + `, c.cell, c.kind, c.scope, c.item, c.name
			FROM heed_tally t LEFT JOIN heed_cell c ON c.cell = t.cell
			WHERE (t.cell, t.channel, t.source) > ($1, $2, $3) ORDER BY t.cell, t.channel, t.source LIMIT $4`),
		before: []any{"", "", ""}, remedy: lookAgain, mend: mendTallies, row: checkedTally,
	},
	{
		table: "heed_id", page: both(`SELECT id, recorded, traced, retracted, checksum FROM heed_id WHERE id > $1 ORDER BY id LIMIT $2`),
		before: []any{""}, remedy: restoreRow, row: func(r *checkedRow) (string, bool) {
			return "id " + r.text(0), r.number(4) == sumOfID(r.text(0), r.number(1), r.number(2), r.number(3))
		},
	},
	{
		table: "heed_observation", page: both(`SELECT o.seq, o.cell, o.id, o.happened, o.recorded, o.source, o.observation, o.checksum, o.seq_copy, c.cell, c.kind, c.scope, c.item, c.name
			FROM heed_observation o LEFT JOIN heed_cell c ON c.cell = o.cell WHERE o.seq > $1 ORDER BY o.seq LIMIT $2`),
		before: []any{int64(-1 << 62)}, remedy: lookAgain, mend: resetOf(1), row: checkedObservation,
	},
	{
		table: "heed_lost", page: both(`SELECT l.id, l.cell, l.recorded, l.source, l.checksum, c.kind, c.scope, c.item, c.name
			FROM heed_lost l LEFT JOIN heed_cell c ON c.cell = l.cell
			WHERE (l.id, l.cell) > ($1, $2) ORDER BY l.id, l.cell LIMIT $3`),
		before: []any{"", ""}, remedy: lookAgain, mend: resetOf(1), row: func(r *checkedRow) (string, bool) {
			return "a lost observation of " + r.ofCell(5, r.text(1)), r.number(4) == sumOfLost(r.text(0), r.text(1), r.text(3), r.instant(2))
		},
	},
	{
		table: "heed_kind", page: both(`SELECT name, kind, checksum FROM heed_kind WHERE name > $1 ORDER BY name LIMIT $2`),
		before: []any{""}, remedy: restoreRow, row: func(r *checkedRow) (string, bool) {
			return "kind " + strconv.Quote(r.text(0)), r.number(2) == checksum(0, r.text(0), r.text(1))
		},
	},
	{
		table: "heed_record", page: both(`SELECT seq, ref, kind, id, at, revision, keys, body, checksum, seq_copy
			FROM heed_record WHERE seq > $1 ORDER BY seq LIMIT $2`),
		before: []any{int64(-1 << 62)}, remedy: restoreRow, row: checkedRecord, more: recordsAgree,
	},
	{
		table: "heed_key", page: both(`SELECT k.hash, k.at, k.seq, coalesce(r.kind, ''), coalesce(r.at, 0), coalesce(r.keys, ''), coalesce(r.id, '')
			FROM heed_key k LEFT JOIN heed_record r ON r.seq = k.seq
			WHERE (k.hash, k.at, k.seq) > ($1, $2, $3) ORDER BY k.hash, k.at, k.seq LIMIT $4`),
		before: []any{"", int64(0), int64(0)}, remedy: restoreRow, row: checkedKey,
	},
	{
		table: "heed_inbox", page: both(`SELECT seq, stream, id, topic, happened, payload, due, deliveries, holder, checksum, waits_copy
			FROM heed_inbox WHERE seq > $1 ORDER BY seq LIMIT $2`),
		before: []any{int64(-1 << 62)}, remedy: restoreRow, row: checkedEvent,
	},
}

func checkedStore(r *checkedRow) (string, bool) {
	return "the row", r.number(0) == 1 && r.number(2) == r.number(0)+r.number(1)
}

func cellIn(r *checkedRow) evidence.Cell {
	return evidence.Cell{Kind: r.text(1), Scope: r.text(2), Item: r.text(3), Name: r.text(4)}
}

func checkedCell(r *checkedRow) (string, bool) {
	c := cellIn(r)
	return "the cell of " + nameOf(c), r.text(0) == hashOfCell(c) && r.number(8) == lotOf(c.Item) &&
		r.number(9) == namedCell(c)+r.number(5)+r.number(6)+r.number(7)
}

// tallyValues are the columns of a tally: its numbers, what they add up to, its sums and their copies.
var tallyValues = `t.` + strings.Join(tallyNumbers, `, t.`) + `, t.named, t.checksum, t.` +
	strings.Join(tallyCopied, `, t.`) + `, t.` + strings.Join(tallyCopied, `_copy, t.`) + `_copy`

// numbersChecked reports whether the numbers of a tally are as they were written, and returns the column after them.
func numbersChecked(r *checkedRow) (after int, fits bool) {
	named := namedTally(r.text(0), r.text(1), r.text(2))
	at := 3 // the next column
	total := named
	for range tallyNumbers {
		total += r.number(at)
		at++
	}
	return at + 2, r.number(at) == named && r.number(at+1) == total
}

// mendTallies is the remedy for a damaged tally. The numbers tell whether the history is whole, so without them only a reset is left.
func mendTallies(r *checkedRow) string {
	numbers := &checkedRow{values: r.values}
	after, fits := numbersChecked(numbers)
	cell := after + 2*len(tallyCopied)
	if key := numbers.text(0); fits && isKey.MatchString(key) && numbers.text(cell) == key && !numbers.wrong {
		return mended(key)
	}
	return resetOf(0)(r)
}

func checkedTally(r *checkedRow) (string, bool) {
	at, fits := numbersChecked(r)
	for i := range tallyCopied {
		fits = fits && r.sum(at+i) == r.sum(at+i+len(tallyCopied))
	}
	at += 2 * len(tallyCopied)
	return "the tally of " + r.ofCell(at+1, r.text(0)), fits && r.text(at) == r.text(0)
}

func checkedObservation(r *checkedRow) (string, bool) {
	var k keptObservation
	fits := r.number(7) == sumOfObservation(r.text(1), r.text(2), r.text(5), r.text(6), r.instant(3), r.instant(4)) &&
		json.Unmarshal([]byte(r.text(6)), &k) == nil && r.text(2) == hashOf(k.ID)
	if r.values[9] == nil {
		return fmt.Sprintf("an observation of cell %s, which is missing,", r.text(1)), false
	}
	return fmt.Sprintf("observation %d of %s", r.number(0), r.ofCell(10, r.text(1))), fits && r.number(8) == r.number(0) && r.text(9) == r.text(1)
}

func checkedRecord(r *checkedRow) (string, bool) {
	ref := store.Ref{Kind: r.text(2), ID: r.text(3)}
	hash := hashOfRef(ref)
	if ref.Kind == versionKind {
		hash = hashOfRef(store.Ref{Kind: ref.ID})
	}
	fits := r.number(8) == sumOfRecord(ref, r.instant(4), r.number(5), r.text(6), r.text(7))
	return fmt.Sprintf("record %q of kind %q", ref.ID, ref.Kind), fits && r.text(1) == hash && r.number(9) == r.number(0)
}

func checkedKey(r *checkedRow) (string, bool) {
	var keys []string
	fits := r.number(1) == r.number(4) && json.Unmarshal([]byte(r.text(5)), &keys) == nil &&
		slices.ContainsFunc(keys, func(key string) bool { return hashOf(r.text(3), key) == r.text(0) })
	if r.text(3) == "" {
		return fmt.Sprintf("a key of record %d, which is missing", r.number(2)), fits
	}
	return fmt.Sprintf("a key of record %q of kind %q", r.text(6), r.text(3)), fits
}

func checkedEvent(r *checkedRow) (string, bool) {
	var payload string
	if r.values[5] != nil {
		payload = r.text(5)
	}
	waits := fmt.Sprintf("%d %d %d %s", r.number(0), r.number(6), r.number(7), r.text(8))
	return fmt.Sprintf("event %q of inbox %q", r.text(2), r.text(1)),
		r.number(9) == sumOfEvent(r.text(1), r.text(2), r.text(3), r.text(4), []byte(payload)) && r.text(10) == waits
}

var (
	missingKeys = both(`SELECT DISTINCT value->>2 FROM json_each($1) WHERE NOT EXISTS (SELECT 1 FROM heed_key k
		WHERE k.hash = value->>0 AND k.at = CAST(value->>1 AS BIGINT) AND k.seq = CAST(value->>2 AS BIGINT))`)
	revisionOfAll = either(`SELECT revision FROM heed_store`, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM heed_revision`)
)

// recordsAgree checks that each record is found by its keys, and that no commit has a greater number than the last.
func recordsAgree(t *tx, rows []*checkedRow) (faults []string, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	var keys [][]any
	for _, r := range rows {
		var all []string
		if err := json.Unmarshal([]byte(r.text(6)), &all); err != nil {
			faults = append(faults, fmt.Sprintf("record %q of kind %q has keys that are no JSON: %s", r.text(3), r.text(2), restoreRow))
		}
		keys = append(keys, keyRows(r.text(2), r.instant(4), r.number(0), distinct(all), nil)...)
	}
	text, err := rowsOf(append([][]any{}, keys...))
	if err != nil {
		return nil, err
	}
	lost, err := t.texts(missingKeys, text)
	if err != nil {
		return nil, err
	}
	var last int64
	if err := t.one(revisionOfAll, nil, &last); err != nil {
		return nil, err
	}
	for _, r := range rows {
		name := fmt.Sprintf("record %q of kind %q", r.text(3), r.text(2))
		if slices.Contains(lost, strconv.FormatInt(r.number(0), 10)) {
			faults = append(faults, name+" is not found by all of its keys: "+restoreRow)
		}
		if r.text(2) != versionKind && r.number(5) > last {
			faults = append(faults, fmt.Sprintf("%s has revision %d, and that of the store is %d: %s", name, r.number(5), last, restoreRow))
		}
	}
	return faults, nil
}

var (
	talliesOf = both(`SELECT cell, channel, source, n_positive, n_negative, n_neutral,
			CASE WHEN lost_positive = 0 AND lost_negative = 0 AND lost_neutral = 0 THEN 0 ELSE 1 END, ` + namedIfFits(``) + `
		FROM heed_tally WHERE cell IN (SELECT value->>0 FROM json_each($1))`)
	historyOf = both(`SELECT ` + observationColumns + ` FROM heed_observation WHERE cell IN (SELECT value->>0 FROM json_each($1))`)
)

// partsAgree checks that the sums of each cell count the observations in its history, as far as the history is whole.
func partsAgree(t *tx, rows []*checkedRow) (faults []string, err error) {
	cells := make(map[string]*cellRow, len(rows))
	for _, r := range rows {
		cells[r.text(0)] = &cellRow{
			key: r.text(0), cell: cellIn(r), policy: evidence.Policy{ByOrigin: r.number(6) == 1}, restart: r.instant(7),
		}
	}
	keys := make([]string, 0, len(cells))
	for key := range cells {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	text, err := column(keys)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	partly := make(map[string]bool) // the cells whose history is not whole, or has rows that are damaged
	counts := make(map[origin][3]int64)
	err = t.each(talliesOf, []any{text}, func(scan func(...any) error) error {
		var from origin
		var n [3]int64
		var lost, named int64
		err := scan(&from.key, &from.channel, &from.source, &n[0], &n[1], &n[2], &lost, &named)
		partly[from.key] = partly[from.key] || lost == 1 || named != namedTally(from.key, from.channel, from.source)
		counts[from] = n
		return err
	})
	if err != nil {
		return nil, err
	}
	err = t.eachChecked(historyOf, []any{text}, func(r *checkedRow) {
		key := r.text(1)
		one, err := t.scanObservation(r.scan)
		if row := cells[key]; err != nil || row == nil {
			partly[key] = true
		} else if row.counts(&one.Observation) {
			from := row.origin(&one.Observation)
			n := counts[from]
			n[sign(one.Reward)]--
			counts[from] = n
		}
	})
	if err != nil {
		return nil, err
	}
	wrong := make(map[string]bool)
	for from, n := range counts {
		wrong[from.key] = wrong[from.key] || n != [3]int64{}
	}
	for _, key := range keys {
		if wrong[key] && !partly[key] {
			faults = append(faults, fmt.Sprintf("the sums of %s do not count the observations of the history: %s",
				nameOf(cells[key].cell), mended(key)))
		}
	}
	return faults, nil
}

var errType = errors.New("a column is of another type")

// scan is a scan function for a row that was read.
func (r *checkedRow) scan(into ...any) error {
	for i := range into {
		switch to := into[i].(type) {
		case *int64:
			*to = r.number(i)
		case *evidence.Instant:
			*to = r.instant(i)
		case *string:
			*to = r.text(i)
		}
	}
	if r.wrong {
		return errType
	}
	return nil
}
