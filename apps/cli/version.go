package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"tessera/apps/show/doc"
	"tessera/internal/machine"
)

func init() {
	Commands.Register("version", "Show the version", func() Command { return &versionCommand{} })
}

type versionCommand struct{ jsonFlag }

func (f *versionCommand) Help() Help { return Help{Examples: []string{"tessera version"}} }

func (f *versionCommand) Do(cmd *Call) error {
	facts := &doc.Facts{Facts: []doc.Fact{{Key: "version", Value: machine.Version()}, {Key: "go", Value: runtime.Version()}, {Key: "system", Value: runtime.GOOS + "/" + runtime.GOARCH}}}
	return cmd.Show(&doc.Document{Title: versionLine(), Blocks: []doc.Block{facts}}, f.JSON)
}

func versionLine() string {
	return fmt.Sprintf("tessera %s %s %s/%s", machine.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// readBuildInfo is replaced by tests: Go records no modules in a test binary.
var readBuildInfo = debug.ReadBuildInfo

// buildSetting returns a setting of the build, "" if unknown.
func buildSetting(key string) string {
	info, _ := readBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// dependencies returns the versions of these modules in the program, in that order.
func dependencies(paths ...string) []*debug.Module {
	info, ok := readBuildInfo()
	if !ok {
		return nil
	}
	var found []*debug.Module
	for _, path := range paths {
		if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == path }); i >= 0 {
			found = append(found, info.Deps[i])
		}
	}
	return found
}
