package kernel

// Selection has the kernels of this process and the reasons for the choice.
type Selection struct {
	// Name is the name of the best set: "openblas+avx512", "avx2", "portable", ...
	Name string
	// SIMD is avx512, avx2 or portable; SIMDNote is the reason if it is not the best one.
	SIMD, SIMDNote string
	// BLAS is the loaded library; if it is empty, BLASNote is the reason. BLASCore is the CPU of the library's kernels and
	// BLASThreads the kind of build (serial, pthread, openmp), both as reported by the library, or empty.
	BLAS, BLASCore, BLASThreads, BLASNote string
	// BLASFrom is the number of multiplications (m*n*k) from which a product goes to the library; smaller ones, and
	// thin ones of any size, are faster in assembly.
	BLASFrom int
}

// Info returns the selection. A BLAS is opened if TESSERA_BLAS names one, or if this package has no assembly for the machine
// and TESSERA_BLAS is not set.
func Info() Selection {
	c := choice()
	s := Selection{Name: c.sets32[0].Name, SIMD: c.backends[0].name, SIMDNote: c.note}
	if c.blas == nil {
		s.BLASNote = c.blasNote
		return s
	}
	s.BLAS, s.BLASCore, s.BLASThreads, s.BLASFrom = c.blas.path, c.blas.core, c.blas.threading, c.backends[0].blasFrom
	return s
}
