package memstore_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/strategytest"
)

func TestChoicesKeepTheContract(t *testing.T) {
	strategytest.RunChoices(t, func(now func() time.Time) (strategy.Choices, error) {
		return memstore.NewChoices(memstore.ChoicesConfig{Now: now})
	})
}

// choiceOf returns a choice of a session and an item, both named for its number.
func choiceOf(n int, at time.Time) strategy.Choice {
	var id strategy.ChoiceID
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	name := string(rune('a' + n%10))
	return strategy.Choice{ID: id, Arm: "arm", Session: "s" + name, Item: "i" + name, At: at}
}

func newChoices(t testing.TB, cfg memstore.ChoicesConfig) *memstore.Choices {
	store, err := memstore.NewChoices(cfg)
	require.NoError(t, err)
	return store
}

// numbers returns which choices a filter lets pass.
func numbers(t testing.TB, store *memstore.Choices, f strategy.ChoiceFilter) []int {
	all := []int{}
	for r, err := range store.List(ctx, f) {
		require.NoError(t, err)
		all = append(all, int(binary.BigEndian.Uint64(r.Choice.ID[8:])))
	}
	return all
}

func TestChoicesZeroValue(t *testing.T) {
	var store memstore.Choices
	assert.Empty(t, numbers(t, &store, strategy.ChoiceFilter{}))
	require.NoError(t, store.Add(ctx, choiceOf(1, time.Now())))
	assert.Equal(t, []int{1}, numbers(t, &store, strategy.ChoiceFilter{}))
	cfg := store.Config()
	assert.Equal(t, 100_000, cfg.Max)
	assert.Equal(t, 30*24*time.Hour, cfg.For)
	assert.WithinDuration(t, time.Now(), cfg.Now(), time.Minute)
	assert.NoError(t, new(memstore.Choices).EndSession(ctx, "l", "s"))
	_, err := new(memstore.Choices).Get(ctx, strategy.ChoiceID{})
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

func TestChoicesConfigFaults(t *testing.T) {
	store, err := memstore.NewChoices(memstore.ChoicesConfig{Max: -1, For: -1})
	assert.Nil(t, store)
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{"Max", "For"}, fields)
}

// TestChoicesAreBounded: the first that was added goes first, from wherever it may be found.
func TestChoicesAreBounded(t *testing.T) {
	store := newChoices(t, memstore.ChoicesConfig{Now: newClock().time, Max: 15})
	for n := range 100 {
		require.NoError(t, store.Add(ctx, choiceOf(n, start.Add(time.Duration(-n)*time.Second)))) // each older than the one before
		require.Len(t, numbers(t, store, strategy.ChoiceFilter{}), min(n+1, 15))
	}
	assert.Equal(t, []int{85, 95}, numbers(t, store, strategy.ChoiceFilter{Item: "if"}))
	assert.Equal(t, []int{94}, numbers(t, store, strategy.ChoiceFilter{Session: "se"}))
	_, err := store.Settle(ctx, choiceOf(84, start).ID, strategy.Result{})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	require.NoError(t, store.Add(ctx, choiceOf(99, start)))
	assert.Len(t, numbers(t, store, strategy.ChoiceFilter{}), 15, "one that is known takes no place")
	require.NoError(t, store.Add(ctx, choiceOf(84, start)))
	assert.Equal(t, []int{84, 94}, numbers(t, store, strategy.ChoiceFilter{Item: "ie"}), "one that was forgotten is new")
}

func TestChoicesAreKeptForATime(t *testing.T) {
	c := newClock()
	store := newChoices(t, memstore.ChoicesConfig{Now: c.time, For: time.Hour})
	for n := range 3 {
		require.NoError(t, store.Add(ctx, choiceOf(n, c.time())))
		c.advance(20 * time.Minute)
	}
	assert.Equal(t, []int{2, 1, 0}, numbers(t, store, strategy.ChoiceFilter{}), "an hour has passed, and no more")
	c.advance(1)
	assert.Equal(t, []int{2, 1}, numbers(t, store, strategy.ChoiceFilter{}))
	_, err := store.Get(ctx, choiceOf(0, start).ID)
	assert.ErrorIs(t, err, heed.ErrNotFound)
	_, err = store.Expire(ctx, choiceOf(0, start).ID)
	assert.ErrorIs(t, err, heed.ErrNotFound)
	c.advance(time.Hour)
	assert.Empty(t, numbers(t, store, strategy.ChoiceFilter{}))
}

// BenchmarkChoicesOfALongSession asks for the choice of one item of a session that has many.
func BenchmarkChoicesOfALongSession(b *testing.B) {
	store := &memstore.Choices{}
	for n := range 20_000 {
		var c strategy.Choice
		text := fmt.Sprintf(`{"id":%q,"learner":"l","session":"s","item":"i%d","at":%q}`, choiceOf(n, start).ID, n, time.Now().Format(time.RFC3339Nano))
		require.NoError(b, json.Unmarshal([]byte(text), &c))
		require.NoError(b, store.Add(ctx, c))
	}
	for b.Loop() {
		for r, err := range store.List(ctx, strategy.ChoiceFilter{Learner: "l", Session: "s", Item: "i7"}) {
			if err != nil || r.Choice.Item != "i7" {
				b.Fatal(r, err)
			}
		}
	}
}
