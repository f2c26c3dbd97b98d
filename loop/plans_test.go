package loop

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The oldest go first, and each is for one person.
func TestPlans(t *testing.T) {
	var p Plans
	for i := range mostPlans + 5 {
		p.Put("ann", Plan{Event: Event{ID: fmt.Sprint(i),
			OnChunk: func(context.Context, string, bool) {}}})
	}
	p.Put("ann", Plan{Event: Event{ID: "7"}, Prompt: "again"})
	_, oldest := p.Get("ann", "4")
	_, first := p.Get("ann", "5")
	_, bobs := p.Get("bob", "5")
	assert.Equal(t, []bool{false, true, false}, []bool{oldest, first, bobs})
	last, _ := p.Get("ann", "8")
	assert.Nil(t, last.Event.OnChunk, "it belongs to a call that is over")
	again, _ := p.Get("ann", "7")
	assert.Equal(t, "again", again.Prompt)
	assert.Len(t, p.known, mostPlans)
	assert.Len(t, p.order, mostPlans)
}
