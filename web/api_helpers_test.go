package web

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/strategy"
)

func choicesOf(item string) strategy.ChoiceFilter { return strategy.ChoiceFilter{Item: item} }

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}
