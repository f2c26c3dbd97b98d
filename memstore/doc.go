// Package memstore keeps what heed learns in memory, for tests, for programs that need no more, and to read when you write
// a store of your own. [Store] is the store that all packages share, and [Stream] carries events inside a process.
//
// The zero values of both are ready to use, with the defaults of their configurations. Neither starts a goroutine. Their content
// is lost when the process ends. [Store.Dump] writes a store to a file, and any store of heed can load that file.
package memstore
