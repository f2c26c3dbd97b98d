package web_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/web"
)

// The first page names a model that the agent can't ask, also the page of a tenant and of a store
// whose agent is in another process, and no longer when the model answers again.
func TestTheFirstPageNamesAModelThatIsUnavailable(t *testing.T) {
	now, down := start, true
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	agent, err := loop.New(t.Context(), loop.Config{
		Store: st, Testing: loop.Testing{Now: clock}, Model: decision.LLMFunc(func(
			context.Context, decision.LLMRequest,
		) (decision.LLMResponse, error) {
			if down {
				return decision.LLMResponse{}, &llm.Error{Failure: llm.RateLimited}
			}
			return decision.LLMResponse{Model: "large", Text: "Yes."}, nil
		}),
	})
	require.NoError(t, err)
	tenant, err := agent.Tenant(t.Context(), "acme")
	require.NoError(t, err)
	w := &world{T: t}
	const says = "No answer comes from the"
	for _, down = range []bool{true, false} {
		for i := range 20 {
			now = now.Add(20 * time.Second)
			_, _ = agent.Answer(t.Context(), loop.Event{ID: fmt.Sprint(down, i), Text: "is it up?"})
		}
		for name, cfg := range map[string]web.Config{
			"agent": {Agent: agent}, "tenant": {Agent: tenant}, "store": {Store: st},
		} {
			cfg.Identify, cfg.Now = byHeader, clock
			h, err := web.New(cfg)
			require.NoError(t, err)
			page := w.shown(h, "/")
			if !down {
				assert.NotContains(t, page, says, name)
				continue
			}
			assert.Contains(t, page, says, name)
			assert.Contains(t, page, "limits the rate of requests", name)
		}
	}
}
