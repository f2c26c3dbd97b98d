package memstore_test

import (
	"testing"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/evidence/evidencetest"
	"github.com/heedhq/heed/memstore"
)

func TestEvidenceKeepsTheContract(t *testing.T) {
	evidencetest.Run(t, func(now func() time.Time) (evidence.Store, error) {
		return memstore.NewEvidence(memstore.EvidenceConfig{Now: now})
	})
}
