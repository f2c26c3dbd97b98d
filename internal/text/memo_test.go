package text_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/internal/text"
)

func TestMemo(t *testing.T) {
	m := text.NewMemo[int](3)
	kept := func(name string) bool { _, known := m.Get(name); return known }
	for i := range 100 {
		m.Put(fmt.Sprint(i), i)
		assert.True(t, kept("0"), "what is used stays")
	}
	assert.Equal(t, []bool{true, true, false}, []bool{kept("99"), kept("98"), kept("93")})

	m.Put("99", 9)
	assert.Equal(t, map[string]int{"0": 0, "98": 98, "99": 9}, m.All())
	m.Put("99", 99)

	assert.Equal(t, 99, m.Add("99", 1), "the first one stays")
	assert.Equal(t, 7, m.Add("new", 7))
	assert.True(t, kept("new"))
	m.Put("new", 8)
	m.Drop("new", func(n int) bool { return n == 7 })
	assert.True(t, kept("new"))
	m.Drop("new", func(n int) bool { return n == 8 })
	m.Drop("none", func(int) bool { return true })
	assert.False(t, kept("new"))
}
