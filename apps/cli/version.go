package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"
	"tessera/internal/machine"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Args:  cobra.NoArgs,
		RunE: work(func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return nil
		}),
	}
}

// versionLine returns a description of the program and its version.
func versionLine() string {
	return fmt.Sprintf("tessera %s %s %s/%s", machine.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildSetting returns a setting of the build, "" if unknown.
func buildSetting(key string) string {
	info, _ := debug.ReadBuildInfo()
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
	info, ok := debug.ReadBuildInfo()
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
