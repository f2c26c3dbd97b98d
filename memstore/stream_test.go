package memstore_test

import (
	"testing"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy/consumertest"
)

func TestStreamConforms(t *testing.T) {
	consumertest.Run(t, func() (consumertest.Harness, error) {
		stream := &memstore.Stream{}
		return consumertest.Harness{Source: stream, Sink: stream, Close: stream.Close}, nil
	})
}
