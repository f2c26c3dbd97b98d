package sqlstore

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// lotOf returns the lot of an item: 63 bits of a hash. Cells are indexed by it within their scope,
// so a random range of lots is a random sample of the items, read in the order of an index.
func lotOf(item string) int64 {
	hash := text.HashOf(item)
	return lot(hash[:])
}

// lot makes a lot of eight random bytes. It is not negative, because the databases have signed
// numbers.
func lot(bytes []byte) int64 { return int64(binary.BigEndian.Uint64(bytes) >> 1) }

// The lots of a scope are read in order. PostgreSQL looks up the sums of each cell by itself, like
// in Read.
var (
	// someLots counts the next lots from one on, up to a limit, and returns the last of them. It
	// reads the index heed_cell_scope alone.
	someLots = both(`SELECT count(*), coalesce(max(l.lot), 0) FROM (
			SELECT DISTINCT lot FROM heed_cell WHERE kind = $1 AND scope = $2 AND lot >= $3
				ORDER BY lot LIMIT $4
		) AS l`)
	// partsOfLots reads the parts of the items in a range of lots.
	partsOfLots = either(
		partsBefore+`heed_cell c CROSS JOIN heed_tally t WHERE t.cell = c.cell AND `+ofLots,
		partsBefore+`heed_cell c CROSS JOIN LATERAL (SELECT * FROM heed_tally
			WHERE cell = c.cell OFFSET 0) AS t WHERE `+ofLots)
)

const partsBefore = `SELECT c.item, c.name, t.channel, t.source, c.half_life, ` + tallySums + `
	FROM `

// ofLots is a range of the index heed_cell_scope.
const ofLots = `c.kind = $1 AND c.scope = $2 AND c.lot >= $3 AND c.lot < $4`

// sampled is the part of the items wanted that a sample has. To read an item takes a database much
// longer than memory.
const sampled = 4

// sample reads a quarter as many items of a scope as are wanted, those whose lots follow a random
// one. After the greatest lot comes the least. Names of items cannot be chosen so that they are
// read more often than others. If there are no more items than are wanted, it does not read.
func (t *tx) sample(kind, scope string, sample *store.Sample) (parts []evidence.Part, err error) {
	var all, found, rest int
	var last, least int64
	if err := t.one(someLots, []any{kind, scope, 0, sample.Most + 1}, &all, &last); err != nil ||
		all <= sample.Most {
		return nil, err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	most, first := max(sample.Most/sampled, 1), lot(random[:])
	// The lot after those that are wanted shows where the next item begins.
	if err := t.one(someLots, []any{kind, scope, first, most + 1}, &found, &last); err != nil {
		return nil, err
	}
	if found <= most {
		if err := t.one(someLots, []any{kind, scope, 0, most + 1 - found}, &rest, &least); err != nil {
			return nil, err
		}
		last = math.MaxInt64
	}
	if parts, err = t.list(partsOfLots, kind, scope, first, last); err != nil {
		return nil, err
	}
	if found <= most {
		more, err := t.list(partsOfLots, kind, scope, 0, least)
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	slices.SortFunc(parts, func(a, b evidence.Part) int {
		return cmp.Or(strings.Compare(a.Cell.Item, b.Cell.Item),
			strings.Compare(a.Cell.Name, b.Cell.Name),
			strings.Compare(a.Channel, b.Channel), strings.Compare(a.Source, b.Source))
	})
	for i := range parts {
		if i == 0 || parts[i].Cell.Item != parts[i-1].Cell.Item {
			sample.Given++
		}
	}
	// The lots are spread evenly, so that the share of them that was read is the share of the items.
	read := float64(last-first) + float64(least)
	sample.All = max(sample.Most+1, int(math.Round(float64(most)*math.MaxInt64/read)))
	return parts, nil
}
