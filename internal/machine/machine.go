// Package machine describes this computer, for records and diagnostics.
package machine

import (
	"cmp"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/cpu"
)

// CPU returns the name of the processor if the system reports it, otherwise the architecture.
func CPU() string { return cmp.Or(systemCPU(), runtime.GOARCH) }

// Features lists the instruction sets of the processor that affect arithmetic.
func Features() []string {
	var found []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"sse4.2", cpu.X86.HasSSE42}, {"avx", cpu.X86.HasAVX}, {"avx2", cpu.X86.HasAVX2}, {"fma", cpu.X86.HasFMA},
		{"avx512f", cpu.X86.HasAVX512F}, {"avx512dq", cpu.X86.HasAVX512DQ}, {"avx512bw", cpu.X86.HasAVX512BW},
		{"avx512vl", cpu.X86.HasAVX512VL}, {"avx512vnni", cpu.X86.HasAVX512VNNI}, {"avx512bf16", cpu.X86.HasAVX512BF16},
		{"amx", cpu.X86.HasAMXTile}, {"asimd", cpu.ARM64.HasASIMD}, {"sve", cpu.ARM64.HasSVE},
	} {
		if f.has {
			found = append(found, f.name)
		}
	}
	return found
}

// Release is the version of this module.
const Release = "0.2.0-dev"

// module is the path of this module. It is derived from a package path, so that only go.mod contains it as text.
var module = strings.TrimSuffix(reflect.TypeFor[versions]().PkgPath(), "/internal/machine")

// versions is a type of this package, from which the path of the package is read.
type versions struct{}

// Version returns [Release], followed by the commit if the program was built from this module's repository. The commit
// of a program from another module would be that of the other module.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != module {
		return Release
	}
	return Release + revision(info.Settings)
}

// revision returns " COMMIT" or " COMMIT modified", and "" if the build does not contain the commit.
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
