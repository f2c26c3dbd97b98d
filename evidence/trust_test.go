package evidence_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
)

func TestTrustIsValidated(t *testing.T) {
	quiet := evidence.Trust{Instruments: []string{"ci"}, Silence: []string{"s"}}
	require.NoError(t, quiet.Validate())
	assert.ErrorContains(t, evidence.Trust{Instruments: []string{"ci", ""}}.Validate(), "Instruments")
}
