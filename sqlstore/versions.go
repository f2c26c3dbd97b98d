package sqlstore

import (
	"maps"
	"slices"

	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// The version of a kind is the revision of a row of this kind, which is found as the record of the
// kind without an id. No record has that name. The row is locked last, so that it is held for as
// short as possible. Versions are how a process notices that records of a kind have changed: it
// keeps copies, and reads one number to learn whether they are current.
const versionKind = "heed.version"

var raiseVersions = both(`INSERT INTO heed_record (ref, kind, id, at, revision, keys, body)
	SELECT value->>0, '` + versionKind + `', value->>1, 0, CAST(value->>2 AS BIGINT), '[]', 'null'
	FROM json_each($1) WHERE true
	ON CONFLICT (ref) DO UPDATE SET revision = heed_record.revision + excluded.revision`)

// raise raises the versions of the kinds that the commit changed.
func (c *change) raise() error {
	if c.alone && len(c.batches) > 0 && !c.known[0] && stores.TakesMuch(&c.batches[0]) {
		return c.raiseAll(stores.TenantsOf(&c.batches[0]))
	}
	return c.raiseOf(c.raised())
}

// raises contains by how much the versions of kinds rise: the number of calls that change the kind,
// because several may be in one transaction.
type raises map[string]int

// raised returns the versions that a commit raises that only adds. If several calls share a
// transaction, each must see the version that its change gives, so each raises by one.
func (c *change) raised() raises {
	all, last := make(raises), make(map[string]int)
	for i := range c.batches {
		if c.known[i] {
			continue
		}
		call := c.call(i)
		for k := range c.batches[i].Records {
			name := c.batches[i].Records[k].Kind
			// Once for each call, however many of its records are of the kind.
			if before, counted := last[name]; c.store.kinds.get(name).Versioned &&
				(!counted || before != call) {
				last[name] = call
				all[name]++
			}
		}
	}
	return all
}

// rows returns the rows for the database: ref, kind, number. All commits raise versions in the same
// order.
func (all raises) rows() (rows [][]any) {
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		name, _ := store.KindOf(kind) // a tenant's name must not stay when the tenant leaves
		rows = append(rows, []any{hashOfRef(store.Ref{Kind: kind}), name, all[kind]})
	}
	return rows
}

// raiseAll raises the versions of all kinds that any program declared, for tenants. A commit that
// takes much away may change what is derived from evidence of any kind, so all copies become stale.
func (c *change) raiseAll(tenants map[string]bool) error {
	all, err := c.store.allDeclared(c.t)
	if err != nil {
		return err
	}
	kinds := make(raises)
	for tenant := range tenants {
		for i := range all {
			if all[i].Versioned {
				kinds[store.KindIn(all[i].Name, tenant)] = 1
			}
		}
	}
	return c.raiseOf(kinds)
}

// raiseOf raises versions. It is the last statement of a commit.
func (c *change) raiseOf(kinds raises) error { return c.t.execRows(raiseVersions, kinds.rows()) }
