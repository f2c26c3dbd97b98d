package openaicompat_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/llm/openaicompat"
)

func TestConfigFaults(t *testing.T) {
	base := openaicompat.Config{BaseURL: "http://localhost:8080"}
	for name, tt := range map[string]struct {
		change func(*openaicompat.Config)
		fields []string
	}{
		"none":         {func(*openaicompat.Config) {}, nil},
		"no URL":       {func(c *openaicompat.Config) { c.BaseURL = "" }, []string{"BaseURL"}},
		"a broken URL": {func(c *openaicompat.Config) { c.BaseURL = "http://canary%zz" }, []string{"BaseURL"}},
		"no scheme": {func(c *openaicompat.Config) { c.BaseURL = "localhost:8080/v1" },
			[]string{"BaseURL"}},
		"another scheme": {func(c *openaicompat.Config) { c.BaseURL = "ftp://localhost/v1" },
			[]string{"BaseURL"}},
		"no host":        {func(c *openaicompat.Config) { c.BaseURL = "https:///v1" }, []string{"BaseURL"}},
		"a password":     {func(c *openaicompat.Config) { c.BaseURL = "https://canary:canary@localhost/v1?k=canary" }, []string{"BaseURL"}},
		"a fragment":     {func(c *openaicompat.Config) { c.BaseURL = "https://localhost/v1#canary" }, []string{"BaseURL"}},
		"the whole path": {func(c *openaicompat.Config) { c.BaseURL = "https://localhost/v1/chat/completions/" }, []string{"BaseURL"}},
		"a key of two lines": {func(c *openaicompat.Config) { c.APIKey = "canary\n" },
			[]string{"APIKey"}},
		"a key beyond ASCII": {func(c *openaicompat.Config) { c.APIKey = "canary…" },
			[]string{"APIKey"}},
		"no mode": {func(c *openaicompat.Config) { c.JSON = "yaml" }, []string{"JSON"}},
		"all at once": {func(c *openaicompat.Config) {
			*c = openaicompat.Config{
				APIKey: "canary ", Timeout: -1,
			}
		}, []string{"BaseURL", "APIKey", "Timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := base
			tt.change(&cfg)
			client, err := openaicompat.New(cfg)
			var fields []string
			for fault := range heed.ConfigErrors(err) {
				fields = append(fields, fault.Field)
				assert.NotContains(t, fault.Error(), "canary")
			}
			assert.Equal(t, tt.fields, fields)
			assert.Equal(t, err == nil, client != nil)
		})
	}
}
