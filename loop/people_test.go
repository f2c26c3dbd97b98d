//go:build !race

// One thing at a time is done here, and the race detector makes it five times slower.

package loop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// crowd is an agent of one arm, with what the arm knows by source.
type crowd struct {
	t     require.TestingT
	store *memstore.Store
	now   time.Time
	*loop.Agent
}

func newCrowd(t require.TestingT, cfg loop.Config) *crowd {
	c := &crowd{t: t, now: start}
	st, err := memstore.New(memstore.Config{Now: func() time.Time { return c.now }})
	require.NoError(t, err)
	c.store, cfg.Store, cfg.Testing.Now = st, st, func() time.Time { return c.now }
	cfg.Model, cfg.Arms, cfg.Choosing.ArmsIgnoreSilence = &mouth{says: "Rotate its logs."},
		[]loop.Arm{{ID: "only"}}, true
	c.Agent, err = loop.New(ctx, cfg)
	require.NoError(t, err)
	return c
}

func (c *crowd) ask(id, person string) {
	_, err := c.Answer(ctx, loop.Event{ID: id, Text: "The disk is full.", Domain: "d", Item: "i",
		Person: person})
	require.NoError(c.t, err)
}

func (c *crowd) react(id, person string, value float64) {
	c.now = c.now.Add(time.Second)
	require.NoError(c.t, c.React(ctx, id, loop.Reaction{Person: person, Value: value}))
}

func (c *crowd) forget(person string) {
	err := store.Run(ctx, c.store, store.Job{Forget: []string{person}})
	require.NoError(c.t, err)
}

// bySource returns the evidence of each source on the arm, and all of it.
func (c *crowd) bySource() (mass map[string]float64, all, mean float64) {
	mass = make(map[string]float64)
	for _, o := range creditedOf(c.t, c.Strategy()) {
		mass[o.Source] += o.Confidence
		all += o.Confidence
		mean += o.Confidence * o.Value
	}
	return mass, all, mean / all
}

func (c *crowd) belief() float64 {
	require.NoError(c.t, c.Strategy().Refresh(ctx))
	beliefs, err := c.Strategy().Beliefs(ctx, strategy.Query{Item: "i", Category: "d"})
	require.NoError(c.t, err)
	return beliefs[0].Mean()
}

// One account that adds a tiny thumb to each of 80 answers takes half of each answer's weight at
// most, and its own half is limited.
func TestTinyThumbsDoNotTakeTheWeightOfOthers(t *testing.T) {
	c := newCrowd(t, loop.Config{})
	for i := range 80 {
		id, person := fmt.Sprint("e", i), fmt.Sprint("person ", i)
		c.ask(id, person)
		c.react(id, person, 1)
	}
	before := c.belief()
	for i := range 80 {
		c.react(fmt.Sprint("e", i), "mallory", 0.01)
	}
	assert.Greater(t, c.belief(), before-0.06)
	mass, all, _ := c.bySource()
	assert.InDelta(t, 80, all, 1e-9, "an answer counts as one")
	assert.InDelta(t, 40, mass["mallory"], 1e-9)
	assert.InDelta(t, 0.5, mass["person 7"], 1e-9)

	c.forget("mallory")
	mass, all, mean := c.bySource()
	assert.NotContains(t, mass, "mallory")
	assert.InDelta(t, 40, all, 1e-9, "the thumbs of others stay")
	assert.InDelta(t, 1, mean, 1e-9)
	account, err := c.Explain(ctx, "e7")
	require.NoError(t, err)
	assert.InDelta(t, 0.5, account.Statements[0].Confidence, 1e-9, "as it is stored")
	c.react("e7", "person 7", -1)
	mass, _, _ = c.bySource()
	assert.InDelta(t, 1, mass["person 7"], 1e-9, "nothing is left of the forgotten thumb")
	account, err = c.Explain(ctx, "e7")
	require.NoError(t, err)
	assert.Len(t, account.Statements, 1)
	assert.EqualValues(t, -1, account.Worth)
}

// A hundred people count for one answer, and a person counts as one however many parts of the
// answer they judge.
func TestManyPeopleOnOneAnswer(t *testing.T) {
	c := newCrowd(t, loop.Config{})
	c.ask("e", "ann")
	for i := range 97 {
		c.react("e", fmt.Sprint("person ", i), 1)
	}
	for _, target := range []answer.Target{"", answer.TargetRule, answer.TargetResponse} {
		c.now = c.now.Add(time.Second)
		require.NoError(t, c.React(ctx, "e", loop.Reaction{Person: "mallory", Target: target,
			Value: -1}))
	}
	mass, all, _ := c.bySource()
	assert.InDelta(t, 1, all, 1e-9)
	assert.InDelta(t, 1./98, mass["mallory"], 1e-9)
	assert.InDelta(t, 1./98, mass["person 1"], 1e-9)
	for _, late := range []string{"late", "later"} { // there is room, as mallory has three places
		c.react("e", late, 1)
		mass, _, _ = c.bySource()
		assert.Positive(t, mass[late])
	}
	assert.InDelta(t, 0.01, mass["mallory"], 1e-9)
	c.react("e", "last", 1) // there is none
	mass, _, _ = c.bySource()
	assert.Zero(t, mass["last"])
	c.react("e", "person 1", 0)
	c.react("e", "last", 1)
	mass, all, _ = c.bySource()
	assert.InDelta(t, 1, all, 1e-9)
	assert.InDelta(t, 0.01, mass["last"], 1e-9)
	assert.Zero(t, mass["person 1"])
}

// An answer is one outcome of its arm in all, whatever people say, take back and have forgotten.
// Each person has an equal part in it, and its value is the mean of what they say. To forget a
// person takes their part alone, until somebody says something else.
func TestEachPersonHasTheirPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t, loop.Config{})
		c.ask("e", "")
		says := make(map[string]float64)
		var told *float64
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			person := rapid.SampledFrom([]string{"ann", "bob", "cy", ""}).Draw(t, "person")
			value := rapid.SampledFrom([]float64{-1, -0.5, 0, 0.5, 1}).Draw(t, "value")
			switch rapid.SampledFrom([]string{"react", "react", "react", "tell", "forget"}).Draw(t,
				"what") {
			case "react":
				c.react("e", person, value)
				if says[person] = value; value == 0 {
					delete(says, person)
				}
			case "tell":
				c.now = c.now.Add(time.Second)
				require.NoError(t, c.Outcome(ctx, "e", loop.Outcome{Reward: &value, Source: "tests"}))
				told = &value
			case "forget":
				if person == "" {
					continue
				}
				before, _, _ := c.bySource()
				c.forget(person)
				after, _, _ := c.bySource()
				delete(before, person)
				assert.Equal(t, before, after)
				if _, ok := says[person]; ok { // the others' parts stay as they are until something is said
					delete(says, person)
					c.react("e", "dee", 1)
					says["dee"] = 1
				}
			}
			mass, all, mean := c.bySource()
			if len(says) == 0 && told == nil {
				assert.Empty(t, mass)
				continue
			}
			var want float64
			left := 1.
			if told != nil && len(says) > 0 {
				left = 0.5
			}
			for person, value := range says {
				want += left / float64(len(says)) * value
				assert.InDelta(t, left/float64(len(says)), mass[person], 1e-9, person)
			}
			if told != nil {
				part := 1 - left*float64(min(len(says), 1))
				want += part * *told
				assert.InDelta(t, part, mass["tests"], 1e-9)
			}
			assert.InDelta(t, 1, all, 1e-9)
			assert.InDelta(t, want, mean, 1e-9)
		}
	})
}

// The audit says who changed what an arm was told, also where somebody withdraws a thumb and
// others' thumbs stay.
func TestTheAuditNamesWhoReacted(t *testing.T) {
	c := newCrowd(t, loop.Config{})
	c.ask("e", "ann")
	for _, r := range []struct {
		person string
		value  float64
	}{{"ann", 1}, {"bob", -1}, {"kim", 1}, {"bob", 0}, {"kim", 0}, {"ann", 0}} {
		c.react("e", r.person, r.value)
	}
	var actors []string
	for e, err := range store.AuditEntries(ctx, c.store, store.Query{}) {
		require.NoError(t, err)
		actors = append(actors, e.Actor)
	}
	assert.Equal(t, []string{"ann", "kim", "bob", "kim", "bob"}, actors)
}

// One person fills all places of an answer, and ten others count all the same.
func TestNobodyTakesThePlacesOfOthers(t *testing.T) {
	c := newCrowd(t, loop.Config{})
	c.ask("e", "ann")
	for i := range 105 {
		c.now = c.now.Add(time.Second)
		require.NoError(t, c.React(ctx, "e", loop.Reaction{Person: "loud", Channel: fmt.Sprint("c", i),
			Value: -1}))
	}
	for i := range 10 {
		c.react("e", fmt.Sprint("p", i), 1)
	}
	mass, all, mean := c.bySource()
	assert.Len(t, mass, 11)
	assert.InDelta(t, 1, all, 1e-9)
	assert.InDelta(t, 9./11, mean, 1e-9)
	for i := 10; i < 105; i++ { // now a hundred people have a place each, and there is none left
		c.react("e", fmt.Sprint("p", i), 1)
	}
	mass, _, _ = c.bySource()
	assert.Len(t, mass, 100)
	assert.Contains(t, mass, "loud")
	account, err := c.Explain(ctx, "e")
	require.NoError(t, err)
	assert.Len(t, account.Statements, 100)
}
