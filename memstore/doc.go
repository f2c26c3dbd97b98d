// Package memstore keeps everything in memory: it has an implementation of each store interface of heed, for tests, for
// programs that need no more, and to read when you write your own.
//
// Each type works as its zero value, with the defaults of its configuration; none of them starts a goroutine. What they
// hold ends with the process: nothing survives a crash or a restart. [Import] fills them with what a database has exported.
package memstore
