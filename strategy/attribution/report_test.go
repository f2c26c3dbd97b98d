package attribution_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/strategy/attribution"
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
		{"attribution_records[1].attributed_value", attribution.Report{Session: "s", Items: used(1.01)}},
		{"attribution_records[1].attributed_value", attribution.Report{Session: "s", Items: used(-1.01)}},
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
