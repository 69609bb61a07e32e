package machine

import "runtime/debug"

// Version is that of the program's main module, with the commit where the build knows it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	if text == "" {
		text = "(devel)"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if commit := settings["vcs.revision"]; text == "(devel)" && commit != "" {
		text += " " + commit[:min(12, len(commit))]
		if settings["vcs.modified"] == "true" {
			text += " modified"
		}
	}
	return text
}
