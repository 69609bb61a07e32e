package kernel

import (
	"math"
	"unsafe"
)

// Zeros names the operand of a product that is probably almost all zeros.
type Zeros uint8

// The operands.
const (
	NoZeros Zeros = iota
	ZerosInA
	ZerosInB
)

// A SparseGemm computes the result of a [Gemm] with alpha = 1 and beta = 0 without the products with the zeros of one operand. It
// reports whether it has done so; if not, C is unchanged. It does so if at most one value in [sparseShare] of that operand differs
// from 0, if the other operand has only finite values (0 times infinity is NaN), and if the rows that
// it adds are contiguous: transB = false, and for ZerosInB also transA = true.
//
// The additions have the order of Gemm in assembly and in portable Go, so that the result has the same bits. One
// exception is the sign of a zero that is the sum of nothing but products below the smallest denormal. A library's Gemm adds
// in another order.
type SparseGemm[T Float] = func(zeros Zeros, transA, transB bool, m, n, k int, a []T, lda int, b []T, ldb int, c []T, ldc int) bool

// sparseShare is the smallest number of values of an operand per non-zero value that make leaving out zeros worthwhile: a
// product that is added alone costs about as much as ten in a tile.
const sparseShare = 16

// sparse contains the kernels of a [SparseGemm].
type sparse[T Float] struct {
	depth     func(k int) int // depth of the blocks that Gemm sums separately
	addScaled BinaryScalar[T] // rounds like a product of Gemm and its addition
	add       Binary[T]
	sumAbs    Reduce[T]
	// transpose writes the transpose of a block of 32 bytes by as many rows, or is nil; see [tiles].
	transpose func(dst, src *byte, dstStep, srcStep, blocks int)
}

// portableSparse returns the sparse product with the same blocks of the sum over k as gemmPortable.
func portableSparse[T Float](s *Set[T]) SparseGemm[T] {
	depth := func(int) int { return portableKC }
	return sparse[T]{depth: depth, addScaled: s.AddScaled, add: s.Add, sumAbs: s.SumAbs}.gemm
}

// entries are the values of a matrix that differ from 0, line by line: rows or columns. Line i has places[starts[i]] and
// following, in ascending order, up to starts[i+1].
type entries[T Float] struct {
	starts []int
	places []int32
	values []T
}

// sparseSpace is the memory of one sparse product in flight.
type sparseSpace[T Float] struct {
	rows, columns entries[T]
	next          []int // per column: where its next entry goes
	line          []T   // the sum of a block
	turned        []T   // lines of the transposed result
}

var (
	sparseSpaces32 = pool[sparseSpace[float32]]{fresh: func() *sparseSpace[float32] { return &sparseSpace[float32]{} }}
	sparseSpaces64 = pool[sparseSpace[float64]]{fresh: func() *sparseSpace[float64] { return &sparseSpace[float64]{} }}
)

func sparseSpaces[T Float]() *pool[sparseSpace[T]] {
	if p, ok := any(&sparseSpaces32).(*pool[sparseSpace[T]]); ok {
		return p
	}
	return any(&sparseSpaces64).(*pool[sparseSpace[T]])
}

// gemm is [SparseGemm].
func (s sparse[T]) gemm(zeros Zeros, transA, transB bool, m, n, k int, a []T, lda int, b []T, ldb int, c []T, ldc int) bool {
	checkGemm(transA, transB, m, n, k, len(a), lda, len(b), ldb, len(c), ldc)
	if transB || m == 0 || n == 0 || k == 0 || zeros == NoZeros || zeros == ZerosInB && !transA {
		return false
	}
	pool := sparseSpaces[T]()
	w := pool.take()
	defer pool.give(w)
	switch {
	case zeros == ZerosInB: // Cᵀ = Bᵀ A
		if !w.find(s.sumAbs, k, n, b, ldb) || !s.finite(k, m, a, lda) {
			return false
		}
		w.byColumn(n)
		s.turned(w, m, n, k, a, lda, c, ldc)
	case transA:
		if !w.find(s.sumAbs, k, m, a, lda) || !s.finite(k, n, b, ldb) {
			return false
		}
		w.byColumn(m)
		s.lines(w, &w.columns, m, n, k, b, ldb, c, ldc)
	default:
		if !w.find(s.sumAbs, m, k, a, lda) || !s.finite(k, n, b, ldb) {
			return false
		}
		s.lines(w, &w.rows, m, n, k, b, ldb, c, ldc)
	}
	return true
}

// soon is the number of values that find lists, in addition to a row, before it gives up.
const soon = 64

// scanned is the number of values that are examined together: most groups of this size contain only zeros.
const scanned = 32

// find lists the values of a matrix that differ from 0 row by row, and reports whether they are few. It gives up early.
func (w *sparseSpace[T]) find(sumAbs Reduce[T], rows, columns int, x []T, ld int) bool {
	l := &w.rows
	l.starts, l.places, l.values = l.starts[:0], l.places[:0], l.values[:0]
	if columns > math.MaxInt32 {
		return false
	}
	for i := range rows {
		l.starts = append(l.starts, len(l.places))
		row := x[i*ld : i*ld+columns]
		for from := 0; from < columns; from += scanned {
			part := row[from:min(from+scanned, columns)]
			if sumAbs(part) == 0 {
				continue
			}
			for j, v := range part {
				if v != 0 {
					l.places, l.values = append(l.places, int32(from+j)), append(l.values, v)
				}
			}
		}
		if len(l.places) > soon+columns+(i+1)*columns/sparseShare {
			return false
		}
	}
	l.starts = append(l.starts, len(l.places))
	return len(l.places) <= rows*columns/sparseShare
}

// byColumn lists the values of rows column by column.
func (w *sparseSpace[T]) byColumn(columns int) {
	from, to := &w.rows, &w.columns
	n := len(from.places)
	to.starts, to.places, to.values = sized(to.starts, columns+1), sized(to.places, n), sized(to.values, n)
	w.next = sized(w.next, columns)
	clear(to.starts)
	for _, j := range from.places {
		to.starts[j+1]++
	}
	for j := range columns {
		w.next[j] = to.starts[j]
		to.starts[j+1] += to.starts[j]
	}
	for i := range len(from.starts) - 1 {
		for e := from.starts[i]; e < from.starts[i+1]; e++ {
			at := &w.next[from.places[e]]
			to.places[*at], to.values[*at] = int32(i), from.values[e]
			*at++
		}
	}
}

// sized returns a slice of n elements in the memory of x, if that is enough. The elements are undefined.
func sized[E any](x []E, n int) []E {
	if cap(x) < n {
		return make([]E, n, n+n/4)
	}
	return x[:n]
}

// finite reports whether all values of a matrix are finite. It also reports false if their sum overflows.
func (s sparse[T]) finite(rows, columns int, x []T, ld int) bool {
	for i := range rows {
		if sum := s.sumAbs(x[i*ld : i*ld+columns]); sum-sum != 0 {
			return false
		}
	}
	return true
}

// lines computes m rows of C, each from one line of the sparse operand.
func (s sparse[T]) lines(w *sparseSpace[T], of *entries[T], m, n, k int, b []T, ldb int, c []T, ldc int) {
	for i := range m {
		s.sum(w, of, i, k, b, ldb, c[i*ldc:i*ldc+n])
	}
}

// sum writes a line of the sparse operand times a matrix of k rows to dst: a block of depth values after the other.
func (s sparse[T]) sum(w *sparseSpace[T], of *entries[T], line, k int, x []T, ld int, dst []T) {
	w.line = sized(w.line, len(dst))
	depth := s.depth(k)
	clear(dst)
	into, end := dst, 0
	for e := of.starts[line]; e < of.starts[line+1]; e++ {
		at := int(of.places[e])
		if at >= end { // the first of its block
			if end > 0 {
				if &into[0] != &dst[0] {
					s.add(dst, dst, into)
				}
				into = w.line
				clear(into)
			}
			end = (at/depth + 1) * depth
		}
		s.addScaled(into, into, x[at*ld:at*ld+len(dst)], of.values[e])
	}
	if &into[0] != &dst[0] {
		s.add(dst, dst, into)
	}
}

// turnedLines is the number of columns of C that are computed before they are written: a few cache lines of every row.
const turnedLines = 32

// turned computes the n columns of C, each from one column of the sparse operand.
func (s sparse[T]) turned(w *sparseSpace[T], m, n, k int, a []T, lda int, c []T, ldc int) {
	w.turned = sized(w.turned, turnedLines*m)
	for first := 0; first < n; first += turnedLines {
		count := min(turnedLines, n-first)
		for j := range count {
			s.sum(w, &w.columns, first+j, k, a, lda, w.turned[j*m:(j+1)*m])
		}
		s.turn(w.turned, count, m, c[first:], ldc)
	}
}

// turn writes the transpose of a matrix: in blocks that a kernel can transpose, a few rows of the result at a time, and the
// rest one by one.
func (s sparse[T]) turn(x []T, rows, columns int, dst []T, ld int) {
	size := int(unsafe.Sizeof(x[0]))
	wide, high := 0, 0 // transposed by the kernel
	if s.transpose != nil {
		side := 32 / size
		wide, high = columns&^(side-1), rows&^(side-1)
		for i := 0; i < wide; i += side {
			for j := 0; j < high; j += side {
				s.transpose(bytes(&dst[i*ld+j]), bytes(&x[j*columns+i]), ld*size, columns*size, 1)
			}
		}
	}
	for i := range columns {
		from := high
		if i >= wide {
			from = 0
		}
		for j := from; j < rows; j++ {
			dst[i*ld+j] = x[j*columns+i]
		}
	}
}
