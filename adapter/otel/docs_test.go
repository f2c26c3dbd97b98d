package otel_test

import (
	"testing"

	"github.com/heedhq/heed/internal/adaptertest"
)

func TestDocs(t *testing.T) { adaptertest.Page(t, "../../docs/otel.md") }
