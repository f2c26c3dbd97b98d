package sqlstore

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/valid"
)

// A cellRow is a stored cell. It has how the cell is kept, and not its sums.
type cellRow struct {
	key     string
	cell    evidence.Cell
	policy  evidence.Policy
	restart evidence.Instant
}

// An origin is where evidence of a cell comes from. Cells that keep origins together have the zero
// channel and source.
type origin struct{ key, channel, source string }

// origin returns the origin whose tally counts an observation.
func (r *cellRow) origin(o *evidence.Observation) origin {
	if r.policy.ByOrigin {
		return origin{r.key, o.Channel, o.Source}
	}
	return origin{key: r.key}
}

// counts reports whether an observation is a part of the cell's sums.
func (r *cellRow) counts(o *evidence.Observation) bool {
	return o.Weight > 0 && evidence.InstantOf(o.At) >= r.restart
}

// A delta is a change of a tally: what is added to its sums and counts, which may be negative, and
// the later of what is noted.
type delta struct {
	evidence.Tally
	lost [3]evidence.Instant // of positive, negative and neutral observations
	// lostSource reports that a lost observation had a source which the tally does not keep apart.
	lostSource bool
	apart      bool // whether the tally is of one source alone
}

// deltas are changes of tallies.
type deltas map[origin]*delta

// rows returns the rows for the database, in order. The order is the same for all commits, so that
// two that change the same tallies do not deadlock.
func (ds deltas) rows() [][]any {
	rows := make([][]any, 0, len(ds))
	for _, from := range slices.SortedFunc(maps.Keys(ds), func(a, b origin) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.channel, b.channel),
			cmp.Compare(a.source, b.source))
	}) {
		rows = append(rows, ds[from].row(from))
	}
	return rows
}

// add adds an observation, if it counts. It returns the delta of the observation's origin, or nil
// if the observation does not count.
func (ds deltas) add(row *cellRow, o *evidence.Observation) *delta {
	if row == nil || !row.counts(o) {
		return nil
	}
	from := row.origin(o)
	d := ds[from]
	if d == nil {
		d = &delta{Tally: evidence.Tally{HalfLife: row.policy.HalfLife}, apart: row.policy.ByOrigin}
		ds[from] = d
	}
	d.Add(o.Weight, o.Share, o.Reward, evidence.InstantOf(o.At))
	return d
}

// lose notes that the history does not hold an observation.
func (d *delta) lose(o *evidence.Observation) {
	last := &d.lost[stores.Sign(o.Reward)]
	*last = max(*last, evidence.InstantOf(o.At))
	d.lostSource = d.lostSource || o.Source != "" && !d.apart
}

// negate turns additions into removals.
func (d *delta) negate() {
	d.Mass, d.Squares, d.Reward, d.RewardSquares = -d.Mass, -d.Squares, -d.Reward, -d.RewardSquares
	for _, count := range []*evidence.Count{&d.Positive, &d.Negative, &d.Neutral} {
		// The moment of the last one can't be subtracted. 0 leaves it as it is, and correctLast looks
		// it up.
		count.N, count.Last = -count.N, 0 // as a signed number it is right
	}
}

const (
	tallyNames = `cell, channel, source, landmark, mass, squares, reward, reward_squares, n_positive, n_negative, n_neutral,
		last_positive, last_negative, last_neutral,
		lost_positive, lost_negative, lost_neutral, lost_source`

	// A step is 2⁻²⁵⁶, made of divisions that are exact. Sums that are stated at an earlier landmark
	// than others are scaled by one for each step between, and become 0 beyond three of them, or
	// below 1e-70, where some engines refuse to go on towards 0.
	step = `(CAST(1 AS DOUBLE PRECISION)/4294967296/4294967296/4294967296/4294967296/4294967296/4294967296/4294967296/4294967296)`
)

// scaled is a sum after a number of steps. The engines have no exact power of two, so the steps are
// written out.
func scaled(sum, steps string) string {
	return `CASE WHEN ` + steps + ` <= 0 THEN ` + sum + `
		WHEN ` + steps + ` > 3 OR abs(` + sum + `) < 1e-70 THEN 0
		WHEN ` + steps + ` = 1 THEN ` + sum + ` * ` + step + `
		WHEN ` + steps + ` = 2 THEN ` + sum + ` * ` + step + ` * ` + step + `
		ELSE ` + sum + ` * ` + step + ` * ` + step + ` * ` + step + ` END`
}

// An insertion into heed_tally adds to the tally that is there, if that one is stated at the same
// landmark. The numbers of others must be scaled, which takes an engine far longer to prepare:
// addingToOthers is another statement, which changes no other tally.
var (
	addingToKnown = onConflict(`=`, func(sum string) string {
		return `t.` + sum + ` + excluded.` + sum
	})
	addingToOthers = onConflict(`<>`, func(sum string) string {
		return scaled(`t.`+sum, `excluded.landmark - t.landmark`) + ` + ` +
			scaled(`excluded.`+sum, `t.landmark - excluded.landmark`)
	})
)

// onConflict returns the part of an insertion that adds to a tally which is there. The counts are
// added, and of landmarks and moments the later one stays.
func onConflict(landmarks string, total func(sum string) string) string {
	var set []string
	for _, sum := range []string{"mass", "squares", "reward", "reward_squares"} {
		set = append(set, sum+` = `+total(sum))
	}
	for _, n := range []string{"n_positive", "n_negative", "n_neutral"} {
		set = append(set, n+` = t.`+n+` + excluded.`+n)
	}
	for _, last := range []string{
		"landmark", "last_positive", "last_negative", "last_neutral",
		"lost_positive", "lost_negative", "lost_neutral", "lost_source",
	} {
		set = append(set, last+` = CASE WHEN t.`+last+` < excluded.`+last+
			` THEN excluded.`+last+` ELSE t.`+last+` END`)
	}
	return ` ON CONFLICT (cell, channel, source) DO UPDATE SET ` + strings.Join(set, `, `) +
		` WHERE t.landmark ` + landmarks + ` excluded.landmark`
}

// row has the values of tallyNames.
func (d *delta) row(from origin) []any {
	// Stored as a number of steps, because SQL then scales by whole steps, and two landmarks are
	// equal if their numbers are.
	var landmark int64
	if d.HalfLife > 0 {
		landmark = int64(d.Landmark) / (valid.LandmarkStep * d.HalfLife.Microseconds())
	}
	return []any{
		from.key, from.channel, from.source, landmark, d.Mass, d.Squares, d.Reward, d.RewardSquares,
		int64(d.Positive.N), int64(d.Negative.N), int64(d.Neutral.N),
		int64(d.Positive.Last), int64(d.Negative.Last), int64(d.Neutral.Last),
		int64(d.lost[0]), int64(d.lost[1]), int64(d.lost[2]), flag(d.lostSource),
	}
}

// tallySums are the columns of a tally that reads select.
const tallySums = `t.landmark, t.mass, t.squares, t.reward, t.reward_squares,
	t.n_positive, t.n_negative, t.n_neutral, t.last_positive, t.last_negative, t.last_neutral`

// scanTally scans some columns of one's own, and then tallySums. The landmark is a number of steps.
func scanTally(scan func(...any) error, t *evidence.Tally, own ...any) error {
	return scan(append(own, &t.Landmark, &t.Mass, &t.Squares, &t.Reward, &t.RewardSquares,
		&t.Positive.N, &t.Negative.N, &t.Neutral.N, &t.Positive.Last, &t.Negative.Last,
		&t.Neutral.Last)...)
}
