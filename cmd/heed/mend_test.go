package main

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var advised = regexp.MustCompile(`heed (mend --cell=\S+(?: --reset)?)`)

// oneOfEach selects the cell with the most observations of each kind.
const oneOfEach = `(SELECT cell FROM (SELECT c.cell, row_number() OVER (PARTITION BY c.kind ORDER BY count(o.seq) DESC, c.cell) place
	FROM heed_cell c LEFT JOIN heed_observation o ON o.cell = c.cell GROUP BY c.cell) WHERE place = 1)`

// newest selects the newest observation of each of these cells.
const newest = `seq IN (SELECT max(seq) FROM heed_observation WHERE cell IN ` + oneOfEach + ` GROUP BY cell)`

// evidenceBut returns all rows about cells, but for those of some cells.
func evidenceBut(t *testing.T, file string, cells []string) (rows []string) {
	onFile(t, file, func(handle *sql.DB) {
		for _, table := range []string{"heed_cell", "heed_tally", "heed_observation", "heed_lost"} {
			columns := readTexts(t, handle, "SELECT name FROM pragma_table_xinfo('"+table+"') WHERE hidden <> 1")
			rows = append(rows, readTexts(t, handle, "SELECT '"+table+"' || json_array("+strings.Join(columns, ", ")+") FROM "+table+
				" WHERE cell NOT IN ('"+strings.Join(cells, "', '")+"') ORDER BY 1")...)
		}
	})
	return rows
}

// The test damages a row in a cell of each kind, and does what the doctor says. Then there is no fault, and other cells are as before.
func TestDoctorsAdviceMends(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, statement string
		resets          bool // evidence is lost
	}{
		{"a count", "UPDATE heed_tally SET n_positive = n_positive + 1 WHERE cell IN " + oneOfEach, false},
		{"sums that can't be", "UPDATE heed_tally SET reward = mass + 1 WHERE cell IN " + oneOfEach, false},
		{"the checksum of sums", "UPDATE heed_tally SET named = named + 1 WHERE cell IN " + oneOfEach, true},
		{"the channel of sums", "UPDATE heed_tally SET channel = channel || 'x' WHERE cell IN " + oneOfEach, true},
		{"the cell of sums", "UPDATE heed_tally SET cell = '-' || substr(cell, 2) WHERE cell IN " + oneOfEach, true},
		{"the kind of a cell", "UPDATE heed_cell SET kind = kind || 'x' WHERE cell IN " + oneOfEach, true},
		{"the item of a cell", "UPDATE heed_cell SET item = item || 'x' WHERE cell IN " + oneOfEach, true},
		{"the half-life of a cell", "UPDATE heed_cell SET half_life = half_life + 1 WHERE cell IN " + oneOfEach, true},
		{"the key of a cell", "UPDATE heed_cell SET cell = '-' || substr(cell, 2) WHERE cell IN " + oneOfEach, true},
		{"an observation", "UPDATE heed_observation SET happened = happened + 1 WHERE " + newest, true},
		{"the source of an observation", "UPDATE heed_observation SET source = source || 'x' WHERE " + newest, true},
		{"the cell of an observation", "UPDATE heed_observation SET cell = '-' || substr(cell, 2) WHERE " + newest, true},
		{"a lost observation", "INSERT INTO heed_lost (id, cell, recorded, source, checksum) SELECT 'x', cell, 1, '', 1 FROM heed_cell WHERE cell IN " + oneOfEach, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db := sqliteFile(t)
			var cells []string
			onFile(t, db, func(handle *sql.DB) {
				for _, key := range readTexts(t, handle, oneOfEach[1:len(oneOfEach)-1]) {
					cells = append(cells, key, "-"+key[1:])
				}
			})
			require.GreaterOrEqual(t, len(cells), 2*8, "kinds of cells")
			others := evidenceBut(t, db, cells)
			statement(t, db, test.statement)
			var done []string
			for _, f := range readOf[diagnosis](t, failed, "--db", db, "doctor", "--deep").Findings {
				advice := advised.FindStringSubmatch(f.Text)
				if f.Level == "fault" {
					require.NotNil(t, advice, f.Text)
				}
				if advice == nil || slices.Contains(done, advice[1]) {
					continue
				}
				done = append(done, advice[1])
				r := call{args: append([]string{"--db", db}, append(strings.Fields(advice[1]), "--yes", "--reason", "a bit has flipped")...)}.run(t)
				assert.Zero(t, r.code, "%s: %s", f.Text, r.err)
			}
			assert.GreaterOrEqual(t, len(done), len(cells)/2-1)
			assert.Equal(t, test.resets, strings.Contains(strings.Join(done, " "), "--reset"))
			left := call{args: at(db, "doctor", "--deep")}.run(t)
			assert.Zero(t, left.code, left.out)
			assert.Equal(t, others, evidenceBut(t, db, cells))
			assert.Contains(t, call{args: at(db, "audit")}.run(t).out, "a bit has flipped")
		})
	}
}

func readTexts(t *testing.T, handle *sql.DB, query string) (all []string) {
	rows, err := handle.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		all = append(all, text)
	}
	require.NoError(t, rows.Err())
	return all
}

// Cells that are kept with another half-life than the settings say are made anew by one command, also where the settings stay as they are.
func TestRebuildWithTheSameHalfLife(t *testing.T) {
	t.Parallel()
	for part, kind := range map[string]string{"strategy": "models.arm", "confidence": "learning.heuristic", "patterns": "patterns.pattern"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			db := sqliteFile(t)
			var before, halfLife []string
			onFile(t, db, func(handle *sql.DB) {
				halfLife = readTexts(t, handle, "SELECT DISTINCT half_life FROM heed_cell WHERE kind = '"+kind+"'")
				before = readTexts(t, handle, "SELECT json_array(t.cell, landmark, mass, reward) FROM heed_tally t JOIN heed_cell c USING (cell) WHERE kind = '"+kind+"' ORDER BY 1")
			})
			require.Len(t, halfLife, 1)
			statement(t, db, "UPDATE heed_cell SET half_life = 60000000, checksum = checksum + 60000000 - half_life WHERE cell = (SELECT max(cell) FROM heed_cell WHERE kind = '"+kind+"')")
			statement(t, db, "UPDATE heed_tally SET landmark = 0 WHERE cell = (SELECT max(cell) FROM heed_cell WHERE kind = '"+kind+"')")
			found := call{args: at(db, "doctor")}.run(t)
			require.Contains(t, found.out, "cells of kind "+kind+" are kept with 2 different half-lives")
			r := call{args: []string{"--db", db, "rebuild", part, "--half-life", halfLife[0] + "us", "--yes", "--reason", "x"}}.run(t)
			require.Zero(t, r.code, r.err)
			onFile(t, db, func(handle *sql.DB) {
				assert.Equal(t, before, readTexts(t, handle, "SELECT json_array(t.cell, landmark, mass, reward) FROM heed_tally t JOIN heed_cell c USING (cell) WHERE kind = '"+kind+"' ORDER BY 1"))
			})
			assert.NotContains(t, call{args: at(db, "doctor", "--deep")}.run(t).out, "different half-lives")
		})
	}
}

func TestMendRefuses(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	var cell string
	onFile(t, db, func(handle *sql.DB) {
		cell = readTexts(t, handle, "SELECT cell FROM heed_cell WHERE kind = 'learning.heuristic'")[0]
	})
	mend := func(args ...string) result {
		return call{args: append([]string{"--db", db, "mend", "--yes", "--reason", "x"}, args...)}.run(t)
	}
	assertFails(t, mend("--cell=nothing"), failed, "no row belongs to cell nothing")
	assertFails(t, mend("--cell="), misuse, "which cell")
	statement(t, db, fmt.Sprintf("UPDATE heed_observation SET happened = happened + 1 WHERE cell = '%s'", cell))
	r := mend("--cell=" + cell)
	assert.Equal(t, failed, r.code)
	assert.Contains(t, r.err, "damaged, or not known to be whole: restore the store from a copy, or forget the cell with heed mend --cell="+cell+" --reset\n")
	assert.Zero(t, mend("--cell="+cell, "--reset").code)
	assertFails(t, mend("--cell="+cell, "--reset"), failed, "no row belongs to cell")
}
