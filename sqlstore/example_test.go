package sqlstore_test

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/heedhq/heed/sqlstore"
)

// A host whose programs may not create tables runs the statements of Schema with its own tool. Then
// Open finds the tables. The examples that need a driver are in sqlstore/enginetest.
func ExampleSchema() {
	files, err := sqlstore.Schema(sqlstore.SQLite)
	if err != nil {
		panic(err)
	}
	statements, err := fs.ReadFile(files, "0001_store.sql")
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(string(statements), "CREATE TABLE heed_record"))
	// Output: true
}
