// Package memstore keeps what heed learns in memory, for tests, for programs that need no more, and to read when you write
// a store of your own. [Store] is the store that all packages share, and [Stream] carries events inside a process.
//
// Both work as their zero values, with the defaults of their configurations, and neither starts a goroutine. What they hold
// ends with the process. [Store.Dump] writes a store to a file, from which any store of heed can be loaded.
package memstore
