package machine

import "golang.org/x/sys/unix"

// cores reads the values of sysctl. Processors with one kind of cores have hw.nperflevels = 1 or none.
func cores() (c Cores) {
	level := "hw."
	if kinds, err := unix.SysctlUint32("hw.nperflevels"); err == nil && kinds > 1 {
		level = "hw.perflevel0."
		if fast, err := unix.SysctlUint32(level + "logicalcpu"); err == nil {
			c.Fast = int(fast)
		}
	}
	for _, cache := range []string{"l1dcachesize", "l2cachesize", "l3cachesize"} {
		if size, err := bytesOf(level + cache); err == nil && size > 0 {
			c.Caches = append(c.Caches, size)
		}
	}
	return c
}

// bytesOf reads a number of 64 or, as those of a kind of cores, of 32 bits.
func bytesOf(name string) (int, error) {
	if size, err := unix.SysctlUint64(name); err == nil {
		return int(size), nil
	}
	size, err := unix.SysctlUint32(name)
	return int(size), err
}

func systemCPU() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
