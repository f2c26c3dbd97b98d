package export_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/export"
)

// TestRoundTrip: what is written is read, to the last bit. What is refused is under test in memstore.
func TestRoundTrip(t *testing.T) {
	var out bytes.Buffer
	w := export.NewWriter(&out)
	text := "é\"\\\n\x01"
	for _, table := range export.Tables {
		values := table.Values()
		for _, value := range values {
			switch value := value.(type) {
			case *int64:
				*value = math.MinInt64
			case *float64:
				*value = math.SmallestNonzeroFloat64
			case *[]byte:
				*value = []byte{0, 255}
			case *string:
				*value = text
			}
		}
		require.NoError(t, w.Row(table, values))
	}
	require.NoError(t, errors.Join(w.End(), w.Flush()))

	tables := export.Tables
	require.NoError(t, export.Read(&out, func(row export.Row) error {
		assert.Same(t, tables[0], row.Table)
		tables = tables[1:]
		for _, c := range row.Table.Columns {
			switch c.Sort {
			case 'i':
				assert.Equal(t, int64(math.MinInt64), row.Int(c.Name))
			case 'f':
				assert.Equal(t, math.SmallestNonzeroFloat64, row.Float(c.Name))
			case 'b':
				assert.Equal(t, []byte{0, 255}, row.Blob(c.Name))
			case 't':
				assert.Equal(t, text, row.Text(c.Name))
			case 'n':
				assert.True(t, row.Null(c.Name))
			}
		}
		return nil
	}))
	assert.Empty(t, tables)
}

// TestErrors: a fault of a row names the line, and what failed otherwise stays what it was.
func TestErrors(t *testing.T) {
	failure := errors.New("the disk is full")
	read := func(err error) error {
		text := `{"heed":3}` + "\n\n" + `{"table":"audit","row":{"entry":""}}`
		return export.Read(strings.NewReader(text), func(export.Row) error { return err })
	}
	require.ErrorIs(t, read(failure), failure)
	require.ErrorContains(t, read(failure), "line 3")
	var fault *heed.InputError
	require.NotErrorAs(t, read(failure), &fault)
	require.ErrorAs(t, read(&heed.InputError{Field: "id", Reason: "must not be empty"}), &fault)
	assert.Equal(t, &heed.InputError{Field: "line 3", Reason: "id: must not be empty"}, fault)

	w := export.NewWriter(failing{failure})
	require.ErrorIs(t, errors.Join(w.End(), w.Flush()), failure)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
