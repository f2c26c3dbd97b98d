package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersion(t *testing.T) {
	build := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	const revision = "3938074c0ffee3938074c0ffee3938074c0ffee0"
	for want, info := range map[string]*debug.BuildInfo{
		"heed devel":                       nil,
		"heed v0.1.0":                      build("v0.1.0"),
		"heed v0.1.0, commit 3938074c0ffe": build("v0.1.0", "vcs.revision", revision, "vcs.modified", "false"),
		"heed v0.1.1-0+dirty, commit 3938074c0ffe, modified": build("v0.1.1-0+dirty", "vcs.revision", revision, "vcs.modified", "true"),
		"heed devel, commit abc":                             build("(devel)", "vcs.revision", "abc"),
	} {
		assert.Equal(t, want, versionOf(info))
	}
	assert.Equal(t, "heed devel", versionOf(&debug.BuildInfo{}))
}
