package kernel

// Selection is what this process computes with, and why.
type Selection struct {
	// Name is the name of the best set: "openblas+avx512", "avx2", "portable", ...
	Name string
	// SIMD is avx512, avx2 or portable; SIMDNote says why it is no better, if it is not the best there is.
	SIMD, SIMDNote string
	// BLAS is the loaded library, empty if none is; BLASNote then says why. BLASCore is the CPU that its kernels are
	// made for, and BLASThreads how it was built (serial, pthread, openmp), both as it says itself, or empty.
	BLAS, BLASCore, BLASThreads, BLASNote string
	// BLASFrom is the number of multiplications (m*n*k) from which a product goes to the library; smaller ones, and
	// thin ones of any size, are faster in assembly.
	BLASFrom int
}

// Info tells what was selected. A BLAS is opened where TESSERA_BLAS names one, and where the
// machine has no assembly of this package and TESSERA_BLAS is not set.
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
