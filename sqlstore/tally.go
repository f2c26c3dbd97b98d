package sqlstore

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/limits"
)

// A cellRow is a stored cell.
type cellRow struct {
	key     string
	cell    evidence.Cell
	policy  evidence.Policy
	restart evidence.Instant
}

// An origin is where evidence of a cell comes from. Cells that keep origins together have the zero channel and source.
type origin struct{ key, channel, source string }

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

// A delta is a change of a tally.
type delta struct {
	evidence.Tally
	lost       [3]evidence.Instant // of positive, negative and neutral observations
	lostSource bool
	apart      bool // whether the tally is of one source alone
}

// deltas are changes of tallies.
type deltas map[origin]*delta

// origins returns where the sums come from, in order.
func (ds deltas) origins() []origin {
	return slices.SortedFunc(maps.Keys(ds), func(a, b origin) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.channel, b.channel), cmp.Compare(a.source, b.source))
	})
}

// add adds an observation, if it counts.
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
	last := &d.lost[sign(o.Reward)]
	*last = max(*last, evidence.InstantOf(o.At))
	d.lostSource = d.lostSource || o.Source != "" && !d.apart
}

// sign returns which of a tally's counts an observation of this reward is of.
func sign(reward float64) int {
	switch {
	case reward > 0.5:
		return 0
	case reward < 0.5:
		return 1
	default:
		return 2
	}
}

// negate turns additions into removals.
func (d *delta) negate() {
	d.Mass, d.Squares, d.Reward, d.RewardSquares = -d.Mass, -d.Squares, -d.Reward, -d.RewardSquares
	for _, count := range []*evidence.Count{&d.Positive, &d.Negative, &d.Neutral} {
		count.N, count.Last = -count.N, 0 // as a signed number it is right
	}
}

const (
	tallyColumns = 19
	tallyNames   = `cell, channel, source, landmark, mass, squares, reward, reward_squares, n_positive, n_negative, n_neutral,
		last_positive, last_negative, last_neutral, lost_positive, lost_negative, lost_neutral, lost_source, named`

	// A step is 2⁻²⁵⁶, made of divisions that are exact. Sums that are stated at an earlier landmark than others are scaled by
	// one for each step between, and are nothing beyond three of them, or below 1e-70, where some engines refuse to go on
	// towards 0.
	step = `(CAST(1 AS DOUBLE PRECISION)/4294967296/4294967296/4294967296/4294967296/4294967296/4294967296/4294967296/4294967296)`
)

// scaled is a sum after a number of steps.
func scaled(sum, steps string) string {
	return `CASE WHEN ` + steps + ` <= 0 THEN ` + sum + `
		WHEN ` + steps + ` > 3 OR abs(` + sum + `) < 1e-70 THEN 0
		WHEN ` + steps + ` = 1 THEN ` + sum + ` * ` + step + `
		WHEN ` + steps + ` = 2 THEN ` + sum + ` * ` + step + ` * ` + step + `
		ELSE ` + sum + ` * ` + step + ` * ` + step + ` * ` + step + ` END`
}

// An insertion into heed_tally adds to the tally that is there, if that one matches its checksum and is stated at the same landmark. The
// numbers of others have to be scaled, which takes an engine far longer to prepare. [addToOthers] does it in a statement of its own.
func onKnownTally(d Dialect) string {
	return onConflict(d, `=`, func(sum, added string) string { return `t.` + sum + ` + excluded.` + added })
}

// addToOthers adds to tallies that are there and stated at another landmark. It changes no other tally.
func addToOthers(d Dialect) string {
	return onConflict(d, `<>`, func(sum, added string) string {
		return scaled(`t.`+sum, `excluded.landmark - t.landmark`) + ` + ` + scaled(`excluded.`+added, `t.landmark - excluded.landmark`)
	})
}

func onConflict(d Dialect, landmarks string, total func(sum, added string) string) string {
	var set []setting
	for _, sum := range tallyCopied {
		set = append(set, setting{sum, total(sum, sum)})
		if !d.embedded() {
			set = append(set, setting{sum + `_copy`, total(sum+`_copy`, sum)})
		}
	}
	for _, n := range []string{"n_positive", "n_negative", "n_neutral"} {
		set = append(set, setting{n, `t.` + n + ` + excluded.` + n})
	}
	for _, last := range []string{
		"landmark", "last_positive", "last_negative", "last_neutral", "lost_positive", "lost_negative", "lost_neutral", "lost_source",
	} {
		set = append(set, setting{last, `CASE WHEN t.` + last + ` < excluded.` + last + ` THEN excluded.` + last + ` ELSE t.` + last + ` END`})
	}
	return ` ON CONFLICT (cell, channel, source) DO UPDATE SET ` + setTally(d, `t.`, set) +
		` WHERE t.landmark ` + landmarks + ` excluded.landmark AND t.named = excluded.named AND ` + tallyFits(`t.`)
}

// A setting is a column of a tally and what it is set to.
type setting struct{ column, to string }

// setTally sets columns of a tally. In PostgreSQL it also sets the checksum, which SQLite generates. The copies are settings like others.
func setTally(d Dialect, t string, set []setting) string {
	var text []string
	to := make(map[string]string)
	for _, s := range set {
		text = append(text, s.column+` = `+s.to)
		to[s.column] = s.to
	}
	if !d.embedded() {
		total := `checksum = ` + t + `named`
		for _, name := range tallyNumbers {
			if changed, ok := to[name]; ok {
				total += ` + (` + changed + `)`
			} else {
				total += ` + ` + t + name
			}
		}
		text = append(text, total)
	}
	return strings.Join(text, `, `)
}

// updateTally registers a statement that sets columns of one tally, but none of its sums.
func updateTally(where string, set ...setting) *query {
	text := func(d Dialect) string {
		return `UPDATE heed_tally SET ` + setTally(d, ``, set) + ` WHERE ` + where + ` AND ` + tallyFits(``)
	}
	return either(text(SQLite), text(Postgres))
}

// row has the values of tallyNames and, in PostgreSQL, the checksum.
func (d *delta) row(dialect Dialect, from origin) []any {
	var landmark int64
	if d.HalfLife > 0 {
		landmark = int64(d.Landmark) / (limits.LandmarkStep * d.HalfLife.Microseconds())
	}
	named := namedTally(from.key, from.channel, from.source)
	row := []any{
		from.key, from.channel, from.source, landmark, d.Mass, d.Squares, d.Reward, d.RewardSquares,
		int64(d.Positive.N), int64(d.Negative.N), int64(d.Neutral.N),
		int64(d.Positive.Last), int64(d.Negative.Last), int64(d.Neutral.Last),
		int64(d.lost[0]), int64(d.lost[1]), int64(d.lost[2]), flag(d.lostSource), named,
	}
	if dialect.embedded() {
		return row
	}
	total := named + landmark + int64(d.Positive.N) + int64(d.Negative.N) + int64(d.Neutral.N) + flag(d.lostSource)
	for _, last := range []evidence.Instant{d.Positive.Last, d.Negative.Last, d.Neutral.Last, d.lost[0], d.lost[1], d.lost[2]} {
		total += int64(last)
	}
	return append(row, total)
}

const tallyRead = `t.landmark, t.mass, t.squares, t.reward, t.reward_squares, t.n_positive, t.n_negative, t.n_neutral,
	t.last_positive, t.last_negative, t.last_neutral, `

// tallySums are the columns of a tally that reads select. The last one tells whether the tally fits its checksum.
var tallySums = tallyRead + namedIfFits(`t.`)

// scanTally scans some columns of one's own, and then tallySums. The landmark is a number of steps. It returns what namedTally has to be.
func scanTally(scan func(...any) error, t *evidence.Tally, own ...any) (named int64, err error) {
	err = scan(append(own, &t.Landmark, &t.Mass, &t.Squares, &t.Reward, &t.RewardSquares,
		&t.Positive.N, &t.Negative.N, &t.Neutral.N, &t.Positive.Last, &t.Negative.Last, &t.Neutral.Last, &named)...)
	return named, err
}
