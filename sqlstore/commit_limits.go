package sqlstore

import (
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

var (
	// countRecords counts by the index heed_record_at, in time that grows with the number of records.
	// So it is run seldom: see limit.
	countRecords = both(`SELECT count(*) FROM heed_record WHERE kind = $1`)
	// firstRecords finds the oldest records of a kind, by the index heed_record_at.
	firstRecords = leaving(`SELECT seq, id, at, keys FROM heed_record WHERE kind = $1
		ORDER BY at, seq LIMIT $2`)
)

// leaving is a query for records to drop. PostgreSQL leaves those to others who are about to change
// them.
func leaving(text string) *query { return either(text, text+` FOR UPDATE SKIP LOCKED`) }

// limit holds the number of a kind's records where it must be, after records were added up to a
// number. It counts only where the numbers of records don't show that there is room: since the last
// count, no more can have come than those numbers went up. Where the oldest go, they may first be
// more by a sixteenth, and by a hundred at most.
func (c *change) limit(k *keptKind, seq int64) error {
	limits, most := k.Limits, k.most()
	k.counting.Lock()
	// Numbers are given in order, so at most seq-k.seq records were added since the count. Some of
	// the numbers may be of other kinds: the guess is then too high, and only costs a count.
	room := k.counted && seq >= k.seq && k.count+seq-k.seq <= most
	k.counting.Unlock()
	if room || limits.Most == 0 {
		return nil
	}
	var count int64
	if err := c.t.one(countRecords, []any{k.Name}, &count); err != nil {
		return err
	}
	if count > most {
		if limits.Refuse {
			return evidence.ErrFull
		}
		for count > int64(limits.Most) {
			n, err := c.dropRecords(k.Name, firstRecords, k.Name, min(count-int64(limits.Most), 500))
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			count -= n
		}
	}
	// If the transaction is taken back, forgetCounts voids what is noted here.
	c.counted = append(c.counted, k)
	k.counting.Lock()
	defer k.counting.Unlock()
	k.counted, k.count, k.seq = true, count, seq
	return nil
}

// most is how many records of a kind there may be for now.
func (k *keptKind) most() int64 {
	most := int64(k.Limits.Most)
	if !k.Limits.Refuse {
		most += min(most/16, 100)
	}
	return most
}

// room returns the greatest number of a record up to which there is room in a kind, nil for any, or
// false where that is not known. The function heed_commit compares the number that it draws with
// it, and makes no change if there is no room.
func (k *keptKind) room() (last *int64, counted bool) {
	if k.Limits.Most == 0 {
		return nil, true
	}
	k.counting.Lock()
	defer k.counting.Unlock()
	seq := k.most() - k.count + k.seq
	return &seq, k.counted
}

// dropRecords removes the records of a kind that a query finds, and returns how many it found.
// Their keys go with them, because the rows of heed_key have no reference to the record.
func (c *change) dropRecords(kind string, q *query, args ...any) (int64, error) {
	var removed, lost [][]any
	err := c.t.each(q, args, func(scan func(...any) error) error {
		var seq int64
		var at evidence.Instant
		var id, text string
		if err := scan(&seq, &id, &at, &text); err != nil {
			return err
		}
		keys, err := keysOf(store.Ref{Kind: kind, ID: id}, text)
		if err != nil {
			return err
		}
		removed = append(removed, []any{seq})
		lost = append(lost, keyRows(kind, at, seq, distinct(keys), nil)...)
		return nil
	})
	if err == nil {
		err = c.writeRows(nil, removed, nil, lost)
	}
	if err != nil || len(removed) == 0 {
		return 0, err
	}
	// Whether the kind has a version is asked of the database, because a sweep also drops records
	// of kinds that this process never declared.
	rule, _, err := c.store.declared(c.t, kind) // which another program may have declared
	if err == nil && rule.Versioned {
		err = c.raiseOf(raises{kind: 1})
	}
	return int64(len(removed)), err
}
