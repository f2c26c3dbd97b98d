// Package memstore keeps what heed learns in memory, for tests, for programs that need no more, and
// to read when you write a store of your own. [Store] is the store that all packages share.
//
// The zero value is ready to use, with the defaults of [Config]. It starts no goroutine. Its
// content is lost when the process ends. [Store.Dump] writes a store to a file, and any store of
// heed can load that file.
package memstore
