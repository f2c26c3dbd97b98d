package sqlstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

func fields(err error) (all []string) {
	for fault := range heed.ConfigErrors(err) {
		all = append(all, fault.Field)
	}
	return all
}

func TestConfigFaults(t *testing.T) {
	_, err := sqlstore.Open(context.Background(), nil, sqlstore.SQLite, sqlstore.Config{
		Retention: store.Retention{HistoryPerCell: -1, HistoryFor: 48 * time.Hour, IDsFor: time.Hour},
	})
	assert.Equal(t, []string{"handle", "HistoryPerCell", "IDsFor"}, fields(err))
	_, err = sqlstore.Open(context.Background(), nil, sqlstore.SQLite, sqlstore.Config{},
		sqlstore.Config{})
	assert.Equal(t, []string{"handle", "configs"}, fields(err))
	_, err = sqlstore.Open(context.Background(), nil, 0)
	assert.Equal(t, []string{"handle"}, fields(err))
	for _, dialect := range []sqlstore.Dialect{-1, 4} {
		_, err := sqlstore.Open(context.Background(), nil, dialect)
		assert.Equal(t, []string{"handle", "Dialect"}, fields(err))
		_, err = sqlstore.Schema(dialect)
		assert.Equal(t, []string{"Dialect"}, fields(err))
		assert.Contains(t, dialect.String(), "Dialect(")
	}
}
