package kernel

import (
	"fmt"
	"sync"
	"unsafe"
)

// checkGemm panics if a shape is negative or a slice is too short, because the kernels read and write through raw pointers.
func checkGemm(transA, transB bool, m, n, k, lenA, lda, lenB, ldb, lenC, ldc int) {
	if m < 0 || n < 0 || k < 0 {
		panic(fmt.Sprintf("kernel: gemm of negative size (%d x %d) (%d x %d)", m, k, k, n))
	}
	ra, ca, rb, cb := m, k, k, n
	if transA {
		ra, ca = k, m
	}
	if transB {
		rb, cb = n, k
	}
	checkMatrix("A", ra, ca, lenA, lda)
	checkMatrix("B", rb, cb, lenB, ldb)
	checkMatrix("C", m, n, lenC, ldc)
}

func checkMatrix(name string, rows, columns, length, ld int) {
	if ld < max(1, columns) {
		panic(fmt.Sprintf("kernel: gemm: leading dimension %d of %s, which has %d columns", ld, name, columns))
	}
	if rows > 0 && columns > 0 && length < (rows-1)*ld+columns {
		panic(fmt.Sprintf("kernel: gemm: %s is %d x %d with leading dimension %d but has %d elements", name, rows, columns, ld, length))
	}
}

// scaleRows computes C = beta C, without reading C when beta is 0.
func scaleRows[T Float](m, n int, beta T, c []T, ldc int) {
	if beta == 1 || n == 0 {
		return
	}
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
}

// workspace is the scratch memory of one running product: its packed operands and the arguments of its tiles.
type workspace[T Float] struct {
	a, b  []T
	lines []T   // a few lines of an operand before they are transposed
	edge  [96]T // a tile of C that is larger than what is left of C
	tile  tile[T]
}

// tile contains the arguments of a micro-kernel. The kernel reads the fields by their offsets. Distances are in bytes.
type tile[T Float] struct {
	a, b, c     unsafe.Pointer
	k           int // depth of the product, at least 1
	aRow, aStep int // distances between the rows of op(A), and between successive k
	bStep       int // distance between successive k
	cRow        int
	last        int // number of elements in the last vector of a row of C, at least 1
	alpha, beta T
}

// The sizes of the parts of a workspace in elements. They suffice for the blocks of every back end: 64 x 256 and 256 x
// 512 in portable Go; 240 x 256 with padded lines, 256 x 512, and 8 lines of 256 in assembly.
const (
	workspaceA     = 256 * 272
	workspaceB     = 256 * 512
	workspaceLines = 8 * 256
)

func newWorkspace[T Float]() *workspace[T] {
	return &workspace[T]{a: make([]T, workspaceA), b: make([]T, workspaceB), lines: make([]T, workspaceLines)}
}

var (
	workspaces32 = pool[workspace[float32]]{fresh: newWorkspace[float32]}
	workspaces64 = pool[workspace[float64]]{fresh: newWorkspace[float64]}
)

func workspaces[T Float]() *pool[workspace[T]] {
	if p, ok := any(&workspaces32).(*pool[workspace[T]]); ok {
		return p
	}
	return any(&workspaces64).(*pool[workspace[T]])
}

// pool is a stack of idle scratch objects. Unlike a sync.Pool, it is not emptied by the garbage collector. After the
// first calls it has one object per computing goroutine, and further calls allocate nothing.
type pool[X any] struct {
	fresh func() *X

	mu   sync.Mutex
	idle []*X
}

func (p *pool[X]) take() *X {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		x := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		return x
	}
	p.mu.Unlock()
	return p.fresh()
}

func (p *pool[X]) give(x *X) {
	p.mu.Lock()
	p.idle = append(p.idle, x)
	p.mu.Unlock()
}

func bytes[T Float](p *T) *byte { return (*byte)(unsafe.Pointer(p)) }
