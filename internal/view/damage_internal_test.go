package view

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// unreadable is the error about a record that can't be decoded.
func unreadable(id string) error {
	notes := store.View[int]{Kind: store.Kind{Name: "note"}}
	_, err := notes.Of(store.Record{Ref: notes.Ref(id), Revision: 1, Body: store.Of("x")})
	return err
}

// Damage is named, however it is wrapped and joined, and never hides another error.
func TestDamagedIn(t *testing.T) {
	away := errors.New("away")
	part := fmt.Errorf("%w: a cell", heed.ErrDamaged)
	_, decode := store.Decode[int](store.Of("x"))
	for _, test := range []struct {
		err   error
		names Names
		other error
	}{
		{nil, nil, nil},
		{away, nil, away},
		{unreadable("a"), Names{"a of note"}, nil},
		{fmt.Errorf("list: %w", unreadable("a")), Names{"a of note"}, nil},
		{errors.Join(unreadable("b"), nil, unreadable("a"), unreadable("b")),
			Names{"a of note", "b of note"}, nil},
		{fmt.Errorf("list: %w", errors.Join(unreadable("a"), away)), Names{"a of note"}, away},
		{errors.Join(part, decode), Names{part.Error(), decode.Error()}, nil},
		{heed.ErrDamaged, Names{"damaged record"}, nil},
	} {
		names, other := DamagedIn(test.err)
		assert.Equal(t, test.names, names, "%v", test.err)
		assert.Equal(t, test.other, other, "%v", test.err)
	}
	require.NoError(t, Names(nil).Err())
	require.EqualError(t, Names{"a of note"}.Err(), "1 record is left out: a of note: damaged record")
	err := Names(strings.Split("abcdefghijkl", "")).Err()
	require.ErrorIs(t, err, heed.ErrDamaged)
	require.ErrorContains(t, err, "12 records are left out: a, b, c, d, e, f, g, h, i, j, and 2 more")
}

// A list leaves out what is damaged, in the reading of all or of one, and what is not there.
func TestAListLeavesOutWhatIsDamaged(t *testing.T) {
	itself := func(s *string) string { return *s }
	read := func(s *string) (string, error) {
		return *s, map[string]error{"b": unreadable("b"), "c": heed.ErrNotFound}[*s]
	}
	all := []string{"a", "b", "c", "d"}
	l, err := listed(Page{}, all, unreadable("x"), itself, nil, read)
	require.NoError(t, err)
	assert.Equal(t, List[string]{
		Items: []string{"a", "d"}, Total: 4, Damaged: Names{"x of note", "b of note"},
	}, l)
	away := errors.New("away")
	_, err = listed(Page{}, all, errors.Join(unreadable("x"), away), itself, nil, read)
	require.ErrorIs(t, err, away)
	_, err = listed(Page{}, all, nil, itself, nil,
		func(s *string) (string, error) { return *s, errors.Join(unreadable("x"), away) })
	require.ErrorIs(t, err, away)
}
