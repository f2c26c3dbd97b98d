package env_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/env"
)

type config struct {
	number float64
	count  int
	time   time.Duration
	yes    bool
}

// read reads one of each kind into a configuration that is set already.
func read(variables map[string]string, environ ...string) (config, error) {
	c := config{number: 0.5, count: 3, time: time.Minute, yes: true}
	r := env.Reader{Prefix: "HOST_", Lookup: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }}
	r.Number("NUMBER", &c.number, "must be in (0, 1]", func(x float64) bool { return x > 0 && x <= 1 })
	r.Count("COUNT", &c.count, 1, 9)
	r.Duration("TIME_SEC", &c.time, time.Second, 0, time.Hour)
	r.Boolean("YES", &c.yes)
	r.CheckUnknown(environ)
	return c, r.Faults.Err()
}

func TestRead(t *testing.T) {
	unchanged, err := read(map[string]string{"HOST_NUMBER": "  ", "NUMBER": "1"})
	require.NoError(t, err)
	assert.Equal(t, config{0.5, 3, time.Minute, true}, unchanged)

	set, err := read(map[string]string{"HOST_NUMBER": " 1 ", "HOST_COUNT": "9", "HOST_TIME_SEC": "0.5", "HOST_YES": "false"},
		"HOST_NUMBER=1", "PATH=/bin", "HOST_YES=false")
	require.NoError(t, err)
	assert.Equal(t, config{1, 9, time.Second / 2, false}, set)

	zero, err := read(map[string]string{"HOST_TIME_SEC": "0"})
	require.NoError(t, err)
	assert.Zero(t, zero.time)
}

func TestAllFaultsAreReported(t *testing.T) {
	for _, variables := range []map[string]string{
		{"HOST_NUMBER": "NaN", "HOST_COUNT": "10", "HOST_TIME_SEC": "3601", "HOST_YES": "perhaps"},
		{"HOST_NUMBER": "x", "HOST_COUNT": "0", "HOST_TIME_SEC": "-1", "HOST_YES": "2"},
		{"HOST_NUMBER": "0", "HOST_COUNT": "1.5", "HOST_TIME_SEC": "inf", "HOST_YES": "-"},
	} {
		c, err := read(variables, "HOST_OTHER=1")
		var fields []string
		for fault := range heed.ConfigErrors(err) {
			fields = append(fields, fault.Field)
		}
		assert.Equal(t, []string{"HOST_NUMBER", "HOST_COUNT", "HOST_TIME_SEC", "HOST_YES", "HOST_OTHER"}, fields)
		assert.Equal(t, config{0.5, 3, time.Minute, true}, c)
	}
}
