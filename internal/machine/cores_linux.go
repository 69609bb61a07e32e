package machine

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

func cores() Cores { return coresOf(os.DirFS("/sys/devices/system/cpu")) }

// coresOf reads the folder of the processors. Only kernels for processors with several kinds of cores write cpu_capacity.
func coresOf(system fs.FS) (c Cores) {
	var fastest, all, best int
	first := "cpu0"
	names, _ := fs.Glob(system, "cpu[0-9]*/cpu_capacity")
	for _, name := range names {
		capacity, err := number(system, name)
		if err != nil {
			continue
		}
		all++
		switch {
		case capacity > best:
			best, fastest, first = capacity, 1, path.Dir(name)
		case capacity == best:
			fastest++
		}
	}
	if fastest < all {
		c.Fast = fastest
	}
	caches, _ := fs.Glob(system, first+"/cache/index[0-9]*")
	for _, cache := range caches {
		kind, err := fs.ReadFile(system, cache+"/type")
		size, wrong := number(system, cache+"/size")
		if cmp.Or(err, wrong) == nil && strings.TrimSpace(string(kind)) != "Instruction" {
			c.Caches = append(c.Caches, size)
		}
	}
	return c
}

// number reads a file that contains a number, with K for units of 1024.
func number(system fs.FS, name string) (int, error) {
	text, err := fs.ReadFile(system, name)
	if err != nil {
		return 0, err
	}
	digits, thousands := strings.CutSuffix(strings.TrimSpace(string(text)), "K")
	n, err := strconv.Atoi(digits)
	if thousands {
		n *= 1024
	}
	return n, err
}

// arm names the processors of which /proc/cpuinfo has only numbers: those of the implementer and of the part.
var arm = map[string]string{
	"0x41 0xd03": "Cortex-A53", "0x41 0xd05": "Cortex-A55", "0x41 0xd07": "Cortex-A57", "0x41 0xd08": "Cortex-A72", "0x41 0xd0b": "Cortex-A76",
	"0x41 0xd0c": "Neoverse N1", "0x41 0xd40": "Neoverse V1", "0x41 0xd49": "Neoverse N2", "0x41 0xd4f": "Neoverse V2", "0xc0 0xac3": "Ampere-1",
}

// cpuName returns the name of the first processor in the text of /proc/cpuinfo.
func cpuName(text string) string {
	var implementer, part string
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			if value != "" {
				return value
			}
		case "CPU implementer":
			implementer = value
		case "CPU part":
			part = value
		}
	}
	if part == "" {
		return ""
	}
	return cmp.Or(arm[implementer+" "+part], "implementer "+implementer+" part "+part)
}

func systemCPU() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return cpuName(string(text))
}
