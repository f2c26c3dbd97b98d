package main

import (
	"runtime/debug"
	"strings"
)

// version says which heed this is: the version of its module, and the commit where the build knows it.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf is version for the build that info describes. Nil describes none.
func versionOf(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" {
		return "heed devel"
	}
	settings := make(map[string]string)
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	text := "heed " + strings.Trim(info.Main.Version, "()") // of a build without a version: (devel)
	commit := settings["vcs.revision"]
	if commit == "" {
		return text
	}
	text += ", commit " + commit[:min(12, len(commit))]
	if settings["vcs.modified"] == "true" {
		text += ", modified"
	}
	return text
}
