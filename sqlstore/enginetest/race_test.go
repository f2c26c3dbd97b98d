//go:build race

package enginetest_test

const raced = true

// lites are the drivers of SQLite. With the race detector, modernc's driver, which is C made into
// Go, takes ten times as long, and has no more of heed's code than the other one.
var lites = []string{"sqlite3"}
