package attribution_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

// What no consumer would accept is refused where the event is made, and the error names the field.
func TestReportsThatAreRefused(t *testing.T) {
	long := strings.Repeat("x", 1025)
	used := func(value float64) []attribution.Worth {
		return []attribution.Worth{{Item: "i"}, {Item: "j", Activated: true, Value: value}}
	}
	for _, test := range []struct {
		field  string
		report attribution.Report
	}{
		{"", attribution.Report{Session: "s", Items: used(1)}},
		{"", attribution.Report{Session: "s", Items: used(-1)}},
		{"", attribution.Report{Session: "s", Items: []attribution.Worth{{Item: "i", Value: 5}}}},
		{"", attribution.Report{Items: []attribution.Worth{{Session: "s", Item: "i"}}}},
		{"", attribution.Report{Session: "s", Ended: true}},
		{"", attribution.Report{Session: long[1:], Source: long[1:]}},
		{"session", attribution.Report{}},
		{"session", attribution.Report{Ended: true,
			Items: []attribution.Worth{{Session: "s", Item: "i"}}}},
		{"session", attribution.Report{Session: long}},
		{"source", attribution.Report{Session: "s", Source: long}},
		{"attribution_records[1].session", attribution.Report{
			Items: []attribution.Worth{{Session: "s", Item: "i"}, {Item: "j"}}}},
		{"attribution_records[1].attributed_value",
			attribution.Report{Session: "s", Items: used(1.01)}},
		{"attribution_records[1].attributed_value",
			attribution.Report{Session: "s", Items: used(-1.01)}},
		{"attribution_records[0].session", attribution.Report{Session: "s",
			Items: []attribution.Worth{{Session: long}}}},
		{"attribution_records[0].item", attribution.Report{Session: "s",
			Items: []attribution.Worth{{Item: long}}}},
		{"attribution_records[0].answer_id", attribution.Report{Session: "s",
			Items: []attribution.Worth{{Answer: "a\x00"}}}},
	} {
		_, err := test.report.Event("e", time.Unix(1, 0))
		if test.field == "" {
			require.NoError(t, err)
			continue
		}
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, test.field)
		assert.Equal(t, test.field, fault.Field)
	}
	for field, at := range map[string]time.Time{"At": {}, "ID": time.Unix(1, 0)} {
		var fault *heed.InputError
		_, err := attribution.Report{Session: "s"}.Event(map[string]string{"At": "e"}[field], at)
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, field, fault.Field)
	}
}

// Answers are known by the names of their items.
type answers struct {
	calls []string
	known map[string]bool // the ids of outcomes that were recorded, if repetitions matter
	fails int             // how often "flaky" fails
}

func (a *answers) Attribute(_ context.Context, id, session string, o strategy.Outcome) (
	strategy.Disposition, error) {
	a.calls = append(a.calls, fmt.Sprint(o.Choice.Item, " ", id, " ", session, " ", o.Value, " ",
		o.Source, " ", o.ID))
	switch o.Choice.Item {
	case "again":
		return strategy.Duplicate, nil
	case "dropped":
		return strategy.Dropped, nil
	case "unknown":
		return "", heed.ErrNotFound
	case "broken":
		return "", errFlaky
	case "flaky":
		if a.fails--; a.fails >= 0 {
			return "", errFlaky
		}
	}
	if a.known[o.ID] {
		return strategy.Duplicate, nil
	}
	if a.known != nil {
		a.known[o.ID] = true
	}
	return strategy.Applied, nil
}

func (a *answers) EndSession(_ context.Context, session string) error {
	if a.calls = append(a.calls, "end "+session); session == "broken" {
		return errFlaky
	}
	return nil
}

// Each worth of a report is an outcome of an answer. One without an answer is counted and passed
// over, and after a failure the event is not applied, so that it comes again.
func TestOutcomesOfAnswers(t *testing.T) {
	at := time.Unix(1e9, 0)
	handle := func(r attribution.Report) (*answers, attribution.Counts, []string, error) {
		var hooked []string
		a := &answers{}
		c, err := attribution.New(attribution.Config{
			Answers: a, Stream: &tape{}, DeadLetters: &letterbox{}, Hook: attribution.Hook{
				Outcome: func(_ context.Context, o strategy.Outcome) error {
					hooked = append(hooked, o.Choice.Item)
					return nil
				},
				SessionEnd: func(_ context.Context, session string) error {
					hooked = append(hooked, "end "+session)
					return nil
				},
			}})
		require.NoError(t, err)
		e, err := r.Event("e", at)
		require.NoError(t, err)
		err = c.Handle(t.Context(), e)
		return a, c.Counts(), hooked, err
	}
	items := func(names ...string) (all []attribution.Worth) {
		for i, name := range names {
			all = append(all, attribution.Worth{Item: name, Answer: fmt.Sprint("a", i), Activated: true,
				Value: 0.5})
		}
		return all
	}
	all := items("i", "again", "dropped", "unknown", "j", "unused")
	all[4].Session, all[5].Activated = "other", false
	a, counts, hooked, err := handle(attribution.Report{Session: "s", Source: "ci", Items: all})
	require.NoError(t, err)
	assert.Equal(t, []string{"i a0 s 0.5 ci e/0", "again a1 s 0.5 ci e/1", "dropped a2 s 0.5 ci e/2",
		"unknown a3 s 0.5 ci e/3", "j a4 other 0.5 ci e/4"}, a.calls)
	assert.Equal(t, attribution.Counts{RunnerCounts: stream.RunnerCounts{Received: 1, Applied: 1},
		Outcomes: 2, Duplicates: 1, Unmatched: 1, HookCalls: 2}, counts)
	assert.Equal(t, []string{"i", "j"}, hooked)

	a, counts, hooked, err = handle(attribution.Report{Session: "s", Items: items("i"), Ended: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"i a0 s 0.5  e/0", "end s"}, a.calls)
	assert.Equal(t, []string{"i", "end s"}, hooked)
	assert.Equal(t, uint64(2), counts.HookCalls)

	a, counts, hooked, err = handle(attribution.Report{Session: "s", Items: items("i", "broken", "j"),
		Ended: true})
	require.ErrorIs(t, err, errFlaky)
	assert.Len(t, a.calls, 2, "it ends there")
	assert.Equal(t, attribution.Counts{RunnerCounts: stream.RunnerCounts{Received: 1}, Outcomes: 1,
		HookCalls: 1}, counts)
	assert.Equal(t, []string{"i"}, hooked)

	_, counts, _, err = handle(attribution.Report{Session: "broken", Ended: true})
	require.ErrorIs(t, err, errFlaky)
	assert.Zero(t, counts.Applied)
}

// The hook is called for each outcome, also if another one of the report fails at first. One
// without an answer is counted once.
func TestOutcomesBeforeAFailure(t *testing.T) {
	var hooked []string
	report := attribution.Report{Session: "s", Ended: true}
	for _, item := range []string{"unknown", "i", "flaky", "j"} {
		report.Items = append(report.Items, attribution.Worth{Item: item, Activated: true, Value: 1})
	}
	e, err := report.Event("e", time.Unix(1e9, 0))
	require.NoError(t, err)
	c, err := attribution.New(attribution.Config{
		Answers: &answers{known: make(map[string]bool), fails: 2},
		Stream:  &tape{events: []stream.Event{e}}, DeadLetters: &letterbox{},
		Hook: attribution.Hook{
			Outcome: func(_ context.Context, o strategy.Outcome) error {
				hooked = append(hooked, o.Choice.Item)
				return nil
			},
			SessionEnd: func(_ context.Context, session string) error {
				hooked = append(hooked, "end "+session)
				return nil
			},
		},
	})
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	assert.Equal(t, []string{"i", "flaky", "j", "end s"}, hooked)
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 1, Applied: 1, Retries: 2},
		Outcomes:     3, Duplicates: 2, Unmatched: 1, HookCalls: 4,
	}, c.Counts())
}
