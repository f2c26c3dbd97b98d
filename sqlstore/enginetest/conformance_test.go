package enginetest_test

import (
	"testing"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/evidence/evidencetest"
	"github.com/heedhq/heed/sqlstore"
)

func TestEvidenceKeepsTheContract(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			evidencetest.Run(t, func(now func() time.Time) (evidence.Store, error) {
				return sqlstore.NewEvidence(b.place(t).db(t), sqlstore.EvidenceConfig{Now: now})
			})
		})
	}
}
