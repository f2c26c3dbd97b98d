package enginetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/rulemodel"
	"github.com/heedhq/heed/sqlstore"
)

// Two services reach one database by handles of their own, and rules become and stop being
// active as the model says.
func TestTheGateIsTheModelInTwoProcesses(t *testing.T) {
	skipRaced(t)
	onEach(t, func(t *testing.T, at place) {
		one, other := at.handle(t), at.handle(t)
		at.store(t, sqlstore.Config{}) // which makes the tables
		rapid.Check(t, func(t *rapid.T) {
			m := rulemodel.New()
			wipe(t, one)
			first, err := sqlstore.Open(ctx, one, at.dialect, sqlstore.Config{Now: m.Now})
			require.NoError(t, err)
			second, err := sqlstore.Open(ctx, other, at.dialect, sqlstore.Config{Now: m.Now})
			require.NoError(t, err)
			m.Run(t, first, second)
		})
	})
}
