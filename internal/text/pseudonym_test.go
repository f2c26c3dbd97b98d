package text_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/internal/text"
)

func TestPseudonymKey(t *testing.T) {
	var none text.PseudonymKey
	assert.Equal(t, "ann", none.Of("ann"), "a store that has forgotten nobody")
	assert.False(t, none.Same("ann", "Ann"))

	// The key of these bytes gives this pseudonym in every version and on every machine.
	fixed := text.PseudonymKey{Secret: []byte("0123456789abcdef0123456789abcdef")}
	assert.Equal(t, "forgotten-a7nvws52l7xvhr3d6gu4wgxift", fixed.Of("ann"))

	key := text.PseudonymKey{Secret: []byte("a key of this store")}
	other := text.PseudonymKey{Secret: []byte("a key of another one")}
	ann := key.Of("ann")
	assert.True(t, text.IsPseudonym(ann))
	assert.Equal(t, ann, key.Of(ann), "a pseudonym stays as it is")
	assert.NotEqual(t, ann, other.Of("ann"))
	assert.NotEqual(t, ann, key.Of("Ann"))
	assert.Empty(t, key.Of(""))
	assert.True(t, key.Same("ann", ann) && key.Same(ann, "ann") && key.Same("ann", "ann"))
	assert.False(t, key.Same("bob", ann) || key.Same(other.Of("ann"), ann))
	for _, name := range []string{
		"", "ann", "forgotten-", "forgotten-ann", strings.TrimPrefix(ann, "forgotten-"), ann + "a",
		ann + "!", "x" + ann, strings.ToUpper(ann),
	} {
		assert.False(t, text.IsPseudonym(name), name)
	}
}
