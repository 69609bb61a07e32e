package machine

import (
	"runtime/debug"
	"strings"
	"testing"

	"tessera/internal/expect"
)

func TestTheVersionSaysTheCommit(t *testing.T) {
	if v := Version(); !strings.HasPrefix(v, Release) {
		t.Errorf("got %q, want %q at its start", v, Release)
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, settings := range map[string][]debug.BuildSetting{
		"": {modified}, " 0123456789ab": {commit}, " 0123456789ab modified": {modified, commit},
	} {
		expect.Equal(t, revision(settings), want, settings)
	}
}
