package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A damaged part of a store hides no other. Another error ends the loop.
func TestEachPartBehindADamagedOne(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for _, test := range []struct {
		open, do map[string]error
		seen     []string
		err      error
	}{
		{nil, nil, []string{"a", "b", "c"}, nil},
		{map[string]error{"a": heed.ErrDamaged}, nil, []string{"b", "c"}, heed.ErrDamaged},
		{nil, map[string]error{"a": heed.ErrDamaged}, []string{"a", "b", "c"}, heed.ErrDamaged},
		{map[string]error{"b": away}, nil, []string{"a"}, away},
		{nil, map[string]error{"b": away}, []string{"a", "b"}, away},
		{map[string]error{"a": heed.ErrDamaged, "c": away}, nil, []string{"b"}, away},
	} {
		var seen []string
		p := part{"part", "",
			func(context.Context, store.Store) ([]string, error) { return []string{"a", "b", "c"}, nil },
			func(_ context.Context, v *view.Source, name string) error {
				v.Name = name
				return test.open[name]
			}}
		s := &session{commands: &commands{}, ctx: ctx, at: &opened{view: new(memstore.Store)}}
		err := p.each(s, func(v *view.Source) error {
			seen = append(seen, v.Name)
			return test.do[v.Name]
		})
		require.ErrorIs(t, err, test.err)
		assert.Equal(t, test.seen, seen)
	}
}

// What damage hides is not called empty.
func TestAnOverviewOfDamage(t *testing.T) {
	t.Parallel()
	for hidden, want := range map[string][2]int{
		"": {0, 2}, "learner": {1, 1}, "service of rules": {1, 1}, "agent": {0, 2},
	} {
		var b strings.Builder
		out := &printer{w: &b}
		require.NoError(t, out.render("overview", summary{Hidden: map[string]bool{hidden: true}}))
		hides := strings.Count(b.String(), "Nothing that can be read.")
		empty := strings.Count(b.String(), "No outcome of the present arms") +
			strings.Count(b.String(), "Nothing waits.")
		assert.Equal(t, want, [2]int{hides, empty}, hidden)
	}
}

// A list prints what is sound, and returns the error about the rest. Only if it has nothing sound,
// it prints nothing.
func TestAListOfDamage(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for _, test := range []struct {
		all  []int
		err  error
		out  string
		want error
	}{
		{[]int{7}, nil, "[\n  7\n]\n", nil}, {nil, nil, "[]\n", nil}, {nil, errNone, "[]\n", nil},
		{[]int{7}, heed.ErrDamaged, "[\n  7\n]\n", heed.ErrDamaged},
		{nil, heed.ErrDamaged, "", heed.ErrDamaged}, {[]int{7}, away, "", away},
	} {
		var b strings.Builder
		s := &session{commands: &commands{JSON: true}, ctx: ctx, out: &printer{w: &b}}
		with := func(_ *session, do func(*view.Source) error) error { return do(nil) }
		err := listed(s, with, "things", "x", func(*view.Source) ([]int, error) {
			return test.all, test.err
		})
		require.ErrorIs(t, err, test.want)
		assert.Equal(t, test.out, b.String())

		b.Reset()
		err = showOne(s, with, "x", func(*view.Source) ([]int, error) { return test.all, test.err })
		if test.want != nil {
			require.ErrorIs(t, err, test.want)
		}
		assert.Equal(t, test.all != nil && !errors.Is(test.want, away),
			strings.HasPrefix(b.String(), "[\n"), fmt.Sprint(test))
	}
}
