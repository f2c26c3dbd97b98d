package sqlstore

import (
	"github.com/heedhq/heed"
)

// checkHosts refuses a transaction of the host that sees or promises too little. At REPEATABLE READ
// a statement would not see what others have committed since the transaction began, and an id could
// count twice. With a weaker synchronous, an acknowledged commit could be lost in a power cut.
func (t *tx) checkHosts() error {
	var setting string
	if err := t.one(ofTransaction, nil, &setting); err != nil {
		return err
	}
	var reason string
	switch dialect := t.db.dialect; {
	case dialect == Postgres && setting != "read committed":
		reason = "is " + setting + ", and must be read committed"
	// 1 is NORMAL, 2 FULL
	case dialect == SQLite && setting < "2", dialect == SQLiteRelaxed && setting < "1":
		reason = "has synchronous=" + setting + ", which is weaker than " + dialect.String() +
			" promises: see docs/stores.md"
	default:
		return nil
	}
	return &heed.InputError{Field: "transaction", Reason: reason}
}

var (
	// ofTransaction reads the setting on which a promise of the store depends.
	ofTransaction = either(`PRAGMA synchronous`, `SELECT current_setting('transaction_isolation')`)
	// The savepoint separates heed's statements from the host's: a batch that is refused is taken
	// back to it, and the host's transaction goes on.
	setSavepoint     = both(`SAVEPOINT heed`)
	toSavepoint      = both(`ROLLBACK TO SAVEPOINT heed`)
	releaseSavepoint = both(`RELEASE SAVEPOINT heed`)
)
