package sqlstore

import (
	"slices"

	"github.com/heedhq/heed/store"
)

// The version of a kind is the revision of a row of this kind, which is found as the record of the kind without an id. No record has that
// name. The row is locked last, so that it is held for as short as possible.
const versionKind = "heed.version"

var raiseVersions = both(`INSERT INTO heed_record (ref, kind, id, at, revision, keys, body)
	SELECT value->>0, '` + versionKind + `', value->>1, 0, 1, '[]', 'null' FROM json_each($1) WHERE true
	ON CONFLICT (ref) DO UPDATE SET revision = heed_record.revision + 1`)

// raise raises the versions of the kinds that the commit has changed.
func (c *change) raise() error {
	if c.alone && len(c.batches) > 0 && !c.known[0] && takesMuch(&c.batches[0]) {
		return c.raiseAll()
	}
	return c.raiseOf(c.raised())
}

// raised returns the kinds whose versions a commit raises that only adds.
func (c *change) raised() (kinds []string) {
	for i := range c.batches {
		if c.known[i] {
			continue
		}
		for k := range c.batches[i].Records {
			name := c.batches[i].Records[k].Kind
			if c.store.kinds.get(name).Versioned && !slices.Contains(kinds, name) {
				kinds = append(kinds, name)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// takesMuch reports whether a batch does more than to take single ids back.
func takesMuch(b *store.Batch) bool {
	return len(b.Reset)+len(b.Rebuild)+len(b.Restart)+len(b.Expunge)+len(b.Forget) > 0
}

// raiseAll raises the versions of all kinds that any program has declared.
func (c *change) raiseAll() error {
	all, err := c.store.allDeclared(c.t)
	if err != nil {
		return err
	}
	var kinds []string
	for i := range all {
		if all[i].Versioned {
			kinds = append(kinds, all[i].Name)
		}
	}
	return c.raiseOf(kinds)
}

// raiseOf raises versions. All commits do so in the same order.
func (c *change) raiseOf(kinds []string) error {
	if len(kinds) == 0 {
		return nil
	}
	slices.Sort(kinds)
	rows := make([][]any, len(kinds))
	for i, kind := range kinds {
		rows[i] = []any{hashOfRef(store.Ref{Kind: kind}), kind}
	}
	text, err := rowsOf(rows)
	if err == nil {
		_, err = c.t.exec(raiseVersions, text)
	}
	return err
}
