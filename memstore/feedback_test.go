package memstore_test

import (
	"testing"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/feedback/feedbacktest"
	"github.com/heedhq/heed/memstore"
)

func TestFeedbackKeepsTheContract(t *testing.T) {
	feedbacktest.Run(t, func() (feedback.Store, error) { return &memstore.Feedback{}, nil })
}
