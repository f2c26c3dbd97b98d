package memstore

import "github.com/heedhq/heed/store"

// Walked returns how many rows the store looks at to answer a query.
func (s *Store) Walked(q store.Query) (n int, err error) {
	search, err := newSearch(q)
	if err != nil {
		return 0, err
	}
	left := search.most()
	for r := range s.state.candidates(&search) {
		if n++; search.selects(r) {
			left--
		}
		if left == 0 {
			break
		}
	}
	return n, nil
}
