package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// PostgreSQL commits what only adds by one call of a function, between the BEGIN and the COMMIT. In
// an unusual case, for example a conflict, the function makes no change. Then the commit is made in
// steps, which find out the case. callCommit returns rows of one shape: what a row is about, three
// texts, and the numbers of a tally. The row whose first column is 0 is the outcome.
var callCommit = either(``,
	`SELECT what, one, two, three, half, number, sum1, sum2, sum3, sum4,
		n1, n2, n3, last1, last2, last3
	FROM heed_commit(CAST($1 AS JSONB))`)

// A callDoc is the argument of the function. Its lists are left out where they are empty. Rows are
// arrays and not objects, because names in every row would double the text.
type callDoc struct {
	Version int    `json:"version"`
	Now     *int64 `json:"now,omitempty"` // nil: the server's
	Assumed int64  `json:"assumed"`       // the moment by which the batches were checked
	Traced  int64  `json:"traced"`
	// IDs are the hashes of ids that must be new, sorted.
	IDs []string `json:"ids,omitempty"`
	// Known are the hashes of ids that must be known. An id that was forgotten since counts again, so
	// the function checks it.
	Known []string `json:"known,omitempty"`
	// key, half-life, by origin, first moment that counts, kind, scope, item, name, lot
	Cells   [][]any `json:"cells,omitempty"`
	Tallies [][]any `json:"tallies,omitempty"` // as tallyNames
	History [][]any `json:"history,omitempty"` // key, id, moment, source, the rest
	// the cells to report, besides the cells whose tallies change
	Parts    []string `json:"parts,omitempty"`
	Expected [][]any  `json:"expected,omitempty"` // ref, revision
	Absent   []string `json:"absent,omitempty"`   // refs
	Leaving  []string `json:"leaving,omitempty"`  // refs, of tenants that must not leave
	Changed  [][]any  `json:"changed,omitempty"`  // ref, revision, moment, keys, body
	// ref, kind, id, moment, keys, body, whether it may be there, the room
	Added    [][]any `json:"added,omitempty"`
	Keys     [][]any `json:"keys,omitempty"`     // ref, hash
	Versions [][]any `json:"versions,omitempty"` // ref, kind, number
}

// errSteps takes a call back. It never reaches a caller. It rolls the transaction back.
var errSteps = errors.New("this is done in steps")

// call tries to commit in one statement. It reports false where the commit must be made in steps.
// Then the database is unchanged. ending, if it is set, is called before the transaction ends, and
// may refuse. In the usual case a commit is then three messages: BEGIN, the call, and COMMIT.
func (s *Store) call(ctx context.Context, c *change, ending func() error) (done bool, err error) {
	if s.db.dialect.embedded() || c.alone || len(c.batches) == 0 {
		return false, nil
	}
	// Each try learns of more ids that are known, and leaves them out of the next one. Usually one
	// or two tries do. If ids become known faster than that, the steps lock what they look at.
	known := make(map[string]bool)
	for range 3 {
		doc, err := c.callDoc(known)
		switch {
		case errors.Is(err, errKnown):
			return true, err // all of them
		case err != nil || doc == nil:
			return false, nil //nolint:nilerr // the steps find it, too
		}
		outcome, called := "", false
		err = s.db.writeOnce(ctx, nil, func(t *tx) (err error) {
			if outcome, err = c.callIn(t, doc, known); err == nil && outcome != "done" {
				err = errSteps
			}
			// Refused here, the transaction is rolled back like any other that failed, so nothing of
			// the call stays.
			if err == nil && ending != nil {
				err = ending()
			}
			called = err == nil
			return err
		})
		switch {
		case err == nil:
			c.callReceipts()
			return true, nil
		// After the last statement, only the end of the transaction can fail, and whether it was
		// applied may be unknown. The steps must not repeat it.
		case called, errors.Is(err, errEnded), ctx.Err() != nil:
			return true, err
		case outcome != "known" && !deadlocked(err):
			return false, nil
		}
	}
	return false, nil
}

// callIn makes the call, and returns what came of it. It adds the ids that turned out to be known.
// The outcome is done, known if ids turned out to be known, or another word if the steps must find
// out. The rows may come in any order; the outcome is one of them.
func (c *change) callIn(t *tx, doc *callDoc, known map[string]bool) (outcome string, err error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return "", err
	}
	c.parts, c.left = make(map[string][]evidence.Part), make(map[string]bool)
	const all, tally, there, isKnown, changed = 0, 1, 2, 3, 4
	err = t.each(callCommit, []any{string(text)}, func(scan func(...any) error) error {
		var what, half, number int64
		var one string
		var p evidence.Part
		y := &p.Tally
		err := scan(&what, &one, &p.Channel, &p.Source, &half, &number, &y.Mass, &y.Squares, &y.Reward,
			&y.RewardSquares,
			&y.Positive.N, &y.Negative.N, &y.Neutral.N, &y.Positive.Last, &y.Negative.Last,
			&y.Neutral.Last)
		// A tally that the call added to comes without its half-life, because the caller knows the
		// policy. One that no receipt asks for is passed over.
		if what == changed {
			policy, wanted := c.wanted[one]
			if !wanted {
				return err
			}
			half = policy.HalfLife.Microseconds()
		}
		switch p.Cell = c.asked[one]; what {
		case all:
			outcome, c.revision = one, uint64(number)
			if one == "done" {
				c.store.clock.learn(half)
			}
		case tally, changed:
			y.Landmark = evidence.Instant(number)
			p.Tally = restated(p.Tally, time.Duration(half)*time.Microsecond)
			c.parts[one] = append(c.parts[one], p)
		case there:
			c.left[one] = true
		case isKnown:
			known[one] = true
		}
		return err
	})
	return outcome, err
}

// callDoc makes the argument of the call, or nil where it is known that the commit must be made in
// steps. It is made again for each try, because a batch that is known leaves it with all that it
// has. Assumed is what this process takes for the server's time. If it is off by more than a
// second, the commit is made in steps, which learn the time.
func (c *change) callDoc(known map[string]bool) (*callDoc, error) {
	doc := &callDoc{Version: tablesVersion, Assumed: int64(evidence.InstantOf(c.assumed)),
		Traced: flag(!c.store.cfg.NoHistory)}
	if c.store.cfg.Now != nil {
		now := int64(evidence.InstantOf(c.store.now()))
		doc.Now = &now
	}
	if err := c.callIDs(doc, known); err != nil {
		return nil, err
	}
	c.receipts = make([]store.Receipt, len(c.batches))
	c.additions = c.pending()
	if fits, err := c.callEvidence(doc); err != nil || !fits {
		return nil, err
	}
	if fits, err := c.callRecords(doc); err != nil || !fits {
		return nil, err
	}
	return doc, nil
}

// callIDs lists the ids that must be new, and those that are known. The function checks both lists:
// an id that it finds known is reported, and one that is listed as known must be so.
func (c *change) callIDs(doc *callDoc, known map[string]bool) error {
	for {
		c.fresh = make(map[string]bool)
		var old []string
		for _, id := range c.ids() {
			if known[id] {
				old = append(old, id)
			} else {
				c.fresh[id] = true
			}
		}
		// A batch that turns out to be known takes its observations out of the list of ids, so the
		// list is made again until no further batch is known.
		switch err := c.checkBatches(); {
		case err == nil:
			doc.IDs, doc.Known = slices.Sorted(maps.Keys(c.fresh)), old
			return nil
		case !slices.Contains(c.known, false):
			return err
		}
	}
}

// callEvidence adds the observations. It does not fit if two observations want one cell in
// different ways. The steps then name the conflict. The cells are sorted by their hashes, so all
// calls lock them in one order.
func (c *change) callEvidence(doc *callDoc) (fits bool, err error) {
	cells, first, alike := wantedCells(c.additions)
	if !alike {
		return false, nil
	}
	sums := c.sum(c.additions, cells)
	for _, key := range slices.Sorted(maps.Keys(cells)) {
		row := cells[key]
		doc.Cells = append(doc.Cells, []any{
			key, row.policy.HalfLife.Microseconds(), flag(row.policy.ByOrigin), first[key],
			row.cell.Kind, row.cell.Scope, row.cell.Item, row.cell.Name, lotOf(row.cell.Item),
		})
	}
	doc.Tallies = sums.rows()
	if !c.store.cfg.NoHistory {
		if doc.History, err = historyRows(c.additions); err != nil {
			return false, err
		}
	}
	c.callParts(doc, cells, sums)
	return true, nil
}

// callParts lists the cells to report. Cells with one tally that the commit adds to are reported
// anyway. A cell that keeps origins apart may have tallies that the commit does not touch, so it is
// read.
func (c *change) callParts(doc *callDoc, cells map[string]*cellRow, sums deltas) {
	c.wanted = make(map[string]evidence.Policy)
	c.asked = make(map[string]evidence.Cell)
	for i := range c.batches {
		for _, cell := range c.batches[i].PartsOf {
			key := hashOfCell(cell)
			if c.known[i] || c.asked[key] == cell {
				continue
			}
			c.asked[key] = cell
			if row := cells[key]; row != nil && !row.policy.ByOrigin && sums[origin{key: key}] != nil {
				c.wanted[key] = row.policy
			} else {
				doc.Parts = append(doc.Parts, key)
			}
		}
	}
}

// callRecords adds the records and the revisions that are expected. It does not fit if a kind has a
// limit and its records were not counted yet. A kind's room is how many records may come before
// they must be counted again.
func (c *change) callRecords(doc *callDoc) (fits bool, err error) {
	if c.writes, err = c.writings(); err != nil {
		return false, err
	}
	for i := range c.batches {
		for _, e := range c.batches[i].Expect {
			if !c.known[i] && e.Revision > 0 {
				doc.Expected = append(doc.Expected, []any{hashOfRef(e.Ref), int64(e.Revision)})
			}
		}
	}
	_, doc.Absent, doc.Leaving = c.expected()
	room := make(map[string]*int64)
	for i := range c.writes {
		w := &c.writes[i]
		text, err := textOfKeys(w.Keys)
		if err != nil {
			return false, err
		}
		// NULL removes the record.
		var body any
		if !w.Body.IsZero() {
			body = w.body
		}
		at := evidence.InstantOf(w.At)
		if w.isNew() {
			if _, ok := room[w.Kind]; !ok {
				var counted bool
				// Without a count it is unknown whether there is room. The steps count, and remember it
				// for the next call.
				if room[w.Kind], counted = c.store.kinds.get(w.Kind).room(); !counted {
					return false, nil
				}
			}
			doc.Added = append(doc.Added, []any{w.ref, w.Kind, w.ID, int64(at), string(text), body,
				flag(w.Revision == store.Once), room[w.Kind]})
		} else {
			doc.Changed = append(doc.Changed, []any{w.ref, int64(w.Revision), int64(at), string(text),
				body})
		}
		for _, key := range w.keys {
			doc.Keys = append(doc.Keys, []any{w.ref, hashOf(w.Kind, key)})
		}
	}
	doc.Versions = c.raised().rows()
	return true, nil
}

// callReceipts fills in the receipts after a call that committed. Revisions are the same for all
// records of a call.
func (c *change) callReceipts() {
	for i := range c.writes {
		w := &c.writes[i]
		receipt := &c.receipts[w.batch]
		switch {
		case c.left[w.ref]:
			receipt.Left = append(receipt.Left, w.Ref)
		case !w.Body.IsZero():
			receipt.Revision = c.revision
		}
	}
	c.fillParts(c.additions)
}
