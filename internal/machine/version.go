package machine

import (
	"reflect"
	"runtime/debug"
	"strings"
)

// Release is the version of this module.
const Release = "0.2.0-dev"

// module is the path of this module, which go.mod alone names.
var module = strings.TrimSuffix(reflect.TypeFor[versions]().PkgPath(), "/internal/machine")

// versions gives this package's path.
type versions struct{}

// Version is [Release] with the commit, where the program was built from this module's repository: a program of another
// module has its own commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != module {
		return Release
	}
	return Release + revision(info.Settings)
}

// revision is " COMMIT" or " COMMIT modified", empty where the build does not know it.
func revision(settings []debug.BuildSetting) string {
	var commit, modified string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision" && s.Value != "":
			commit = " " + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " modified"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + modified
}
