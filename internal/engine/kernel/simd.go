//go:build amd64 || arm64

package kernel

// tiledThin is the largest side of a product that the tiles compute whatever its size; see [backend].
const tiledThin = 128

// assembled returns the back end of an instruction set: its tiles and the kernels that assign sets, and the loops in Go where it has none.
func assembled(name string, tiles32 *tiles[float32], tiles64 *tiles[float64], assign func(*Set[float32]), steps *stepSet, choose chooser, blasFrom int, p peak) backend {
	set32 := func() *Set[float32] {
		s := portable[float32]()
		s.Name, s.Gemm = name, tiles32.gemm
		assign(s)
		s.SparseGemm = tiles32.sparse(s, s.AddScaled)
		return s
	}
	set64 := func() *Set[float64] {
		s := portable[float64]()
		s.Name, s.Gemm = name, tiles64.gemm
		s.SparseGemm = tiles64.sparse(s, addScaledFMA)
		return s
	}
	return backend{name, set32, set64, steps, choose, blasFrom, tiledThin, p}
}
