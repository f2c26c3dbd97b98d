// Package memstore keeps what heed learns in memory, for tests, for programs that need no more, and
// to read when you write a store of your own. [Store] is the store that all packages share.
//
// The zero value is ready to use, with the defaults of [Config]. It starts no goroutine. Its
// content is lost when the process ends. [Store.Dump] writes a store to a file, and any store of
// heed can load that file.
//
// # How it works
//
// One lock guards a state, in state.go: the cells with their sums and history (cells.go), the ids
// that are known (state.go), and the kinds with their records (records.go). Reads share the lock
// and a commit has it alone, so a read sees one moment, and a commit as a whole.
//
// A commit has two halves (commit.go). The first decides: which batches and observations are
// duplicates, whether policies and revisions hold, and whether there is room. It changes nothing,
// so a commit that is refused has no effect. The second half applies and can't fail. What takes
// evidence away has to compute before it knows whether it may, so it works on copies of cells
// (take.go), which the second half puts in the place of the cells.
//
// Observations are added to the sums of their cell, by an origin if the policy asks for that, and
// kept in the history of the cell. An observation leaves the history if the history is full or the
// observation is old. The sums still count it then, and the cell notes that it was lost, because it
// can be taken back no more.
//
// Records of a kind are in a list by moment and number of first writing, and in one such list for
// each key, so that Find walks along the shortest list. A loop over records copies a few when it
// comes to them, so it holds no lock while its body runs.
//
// People are forgotten by a [store.Job], which needs nothing of a store but its methods. Sweep goes
// on with jobs, and drops what is past its limits, a thousand things at a time.
package memstore
