//go:build !race

package enginetest_test

import _ "modernc.org/sqlite" // the driver "sqlite"

const raced = false

// lites are the drivers of SQLite. A test that needs a single one takes the first.
var lites = []string{"sqlite", "sqlite3"}
