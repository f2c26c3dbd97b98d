package otel_test

import (
	"testing"

	"github.com/heedhq/heed/adapter/internal/adaptertest"
)

func TestDocs(t *testing.T) { adaptertest.Page(t, "README.md") }
