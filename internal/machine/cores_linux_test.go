package machine

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"testing/fstest"

	"tessera/internal/expect"
)

// system returns the folder of processors with these capacities, and with caches whose sizes grow with the capacity.
func system(capacities ...int) fstest.MapFS {
	files := fstest.MapFS{}
	write := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	for i, capacity := range capacities {
		cpu := fmt.Sprintf("cpu%d/", i)
		if capacity > 0 {
			write(cpu+"cpu_capacity", fmt.Sprint(capacity))
		}
		for level, kind := range []string{"Data", "Instruction", "Unified"} {
			write(fmt.Sprintf("%scache/index%d/type", cpu, level), kind)
			write(fmt.Sprintf("%scache/index%d/size", cpu, level), fmt.Sprintf("%dK", (capacity+32)*(level+1)))
		}
	}
	write("cpuidle/cpu_capacity", "9999")
	write("possible", "0-7")
	return files
}

func TestCoresAreCounted(t *testing.T) {
	for _, c := range []struct {
		capacities []int
		want       Cores
	}{
		{[]int{446, 446, 1024, 1024, 871}, Cores{2, []int{1056 << 10, 3 * 1056 << 10}}},
		{[]int{1024, 1024}, Cores{0, []int{1056 << 10, 3 * 1056 << 10}}}, // one kind
		{[]int{0, 0}, Cores{0, []int{32 << 10, 96 << 10}}},               // the system does not tell
		{nil, Cores{}},
	} {
		if got := coresOf(system(c.capacities...)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %+v, want %+v", c.capacities, got, c.want)
		}
	}
	if n := Threads(); n < 1 || n > runtime.GOMAXPROCS(0) {
		t.Errorf("%d threads", n)
	}
}

func TestProcessorsWithoutANameHaveOneFromTheirNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"processor : 0\nmodel name\t: Some CPU @ 2 GHz\n":                         "Some CPU @ 2 GHz",
		"processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\nprocessor: 1": "Neoverse N1",
		"CPU implementer : 0x61\nCPU part : 0x022\n":                              "implementer 0x61 part 0x022",
		"processor : 0\n": "",
	} {
		expect.Equal(t, cpuName(text), want, text)
	}
}
