package feedback_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/rulemodel"
	"github.com/heedhq/heed/memstore"
)

// Several people act in two services over one store, with failures in between. The result is that of the table in docs/rules.md.
func TestTheGateIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rulemodel.New()
		st, err := memstore.New(memstore.Config{Now: m.Now})
		if err != nil {
			t.Fatal(err)
		}
		m.Run(t, st, st)
	})
}
