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

// A SparseGemm computes the result of a [Gemm] with alpha = 1 and beta = 0, and skips the products with zeros of one
// operand. It reports whether it has computed the result; if not, C is unchanged. It computes the result only if at
// most one value in [sparseShare] of the sparse operand differs from 0, if the other operand has only finite values (0
// times infinity is NaN), and if the rows that it adds are contiguous: transB must be false and, for ZerosInB, transA
// must be true.
//
// The additions have the order of Gemm in assembly and in portable Go, so the result has the same bits. The only
// exception is the sign of a zero that is the sum of products that all lie below the smallest denormal. The Gemm of a
// BLAS library adds in another order.
type SparseGemm[T Float] = func(zeros Zeros, kept Kept, transA, transB bool, m, n, k int, a []T, lda int, b []T, ldb int, c []T, ldc int) bool

// Kept lists the places of the values of a sparse operand that may differ from 0. The zero Kept is unknown: the product then
// looks for these values itself.
type Kept struct {
	Most    int     // maximum number of places of a row
	Counts  []int32 // number of places of each row, [Unlisted] for a row with more
	Columns []int32 // their columns in ascending order, Most for each row
	// First is the column of a larger matrix in which the operand begins: Columns counts from that of the larger matrix.
	First int
}

// Unlisted is the count of a row with more than Most places.
const Unlisted = -1

// Row returns the columns of row i; ok is false if they are not listed.
func (k *Kept) Row(i int) (columns []int32, ok bool) {
	if k.Counts == nil || k.Counts[i] == Unlisted {
		return nil, false
	}
	return k.Columns[i*k.Most:][:k.Counts[i]], true
}

// From returns the places of the part of the matrix that begins in a row and a column of it.
func (k Kept) From(row, column int) Kept {
	if k.Counts == nil {
		return k
	}
	return Kept{Most: k.Most, Counts: k.Counts[row:], Columns: k.Columns[row*k.Most:], First: k.First + column}
}

// sparseShare is the minimum ratio of all values to non-zero values of an operand at which skipping zeros is
// worthwhile. A product that is added separately costs about as much as ten products in a tile.
const sparseShare = 16

// sparse contains the kernels of a [SparseGemm].
type sparse[T Float] struct {
	depth     func(k int) int // depth of the blocks that Gemm sums separately, for k summands
	addScaled BinaryScalar[T] // rounds products and sums as Gemm does
	add       Binary[T]
	sumAbs    Reduce[T]
	// transpose writes the transpose of a block of side rows and columns. It may be nil; see [tiles].
	transpose func(dst, src *byte, dstStep, srcStep, blocks int)
	side      int
}

// portableSparse returns the sparse product that sums over k in the same blocks as gemmPortable.
func portableSparse[T Float](s *Set[T]) SparseGemm[T] {
	depth := func(int) int { return portableKC }
	return sparse[T]{depth: depth, addScaled: s.AddScaled, add: s.Add, sumAbs: s.SumAbs}.gemm
}

// entries lists the values of a matrix that differ from 0, line by line, where lines are rows or columns. The entries
// of line i have the indices starts[i] to starts[i+1]-1 of places and values, with places in ascending order.
type entries[T Float] struct {
	starts []int
	places []int32
	values []T
}

// sparseSpace is the memory of one running sparse product.
type sparseSpace[T Float] struct {
	rows, columns entries[T]
	next          []int // for each column, the position of its next entry
	line          []T   // sum of a block
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

func (s sparse[T]) gemm(zeros Zeros, kept Kept, transA, transB bool, m, n, k int, a []T, lda int, b []T, ldb int, c []T, ldc int) bool {
	checkGemm(transA, transB, m, n, k, len(a), lda, len(b), ldb, len(c), ldc)
	if transB || m == 0 || n == 0 || k == 0 || zeros == NoZeros || zeros == ZerosInB && !transA {
		return false
	}
	pool := sparseSpaces[T]()
	w := pool.take()
	defer pool.give(w)
	switch {
	case zeros == ZerosInB: // computed as Cᵀ = Bᵀ A
		if !w.find(s.sumAbs, kept, k, n, b, ldb) || !s.finite(k, m, a, lda) {
			return false
		}
		w.byColumn(n)
		s.turned(w, m, n, k, a, lda, c, ldc)
	case transA:
		if !w.find(s.sumAbs, kept, k, m, a, lda) || !s.finite(k, n, b, ldb) {
			return false
		}
		w.byColumn(m)
		s.lines(w, &w.columns, m, n, k, b, ldb, c, ldc)
	default:
		if !w.find(s.sumAbs, kept, m, k, a, lda) || !s.finite(k, n, b, ldb) {
			return false
		}
		s.lines(w, &w.rows, m, n, k, b, ldb, c, ldc)
	}
	return true
}

// soon is the number of values that find may list beyond one full row and the permitted share before it gives up.
const soon = 64

// scanned is the number of values that are examined together. Most groups of this size contain only zeros.
const scanned = 32

// find lists the values of a matrix that differ from 0, row by row, and reports whether they are few. It stops as soon
// as there are too many.
func (w *sparseSpace[T]) find(sumAbs Reduce[T], kept Kept, rows, columns int, x []T, ld int) bool {
	l := &w.rows
	l.starts, l.places, l.values = l.starts[:0], l.places[:0], l.values[:0]
	if columns > math.MaxInt32 {
		return false
	}
	for i := range rows {
		l.starts = append(l.starts, len(l.places))
		row := x[i*ld : i*ld+columns]
		if places, ok := kept.Row(i); ok {
			for _, place := range places {
				if j := int(place) - kept.First; 0 <= j && j < columns && row[j] != 0 {
					l.places, l.values = append(l.places, int32(j)), append(l.values, row[j])
				}
			}
			continue
		}
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

// byColumn lists the values that find has listed by row, by column.
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

// sized returns a slice of n elements, in the memory of x if that is large enough. The elements are undefined.
func sized[E any](x []E, n int) []E {
	if cap(x) < n {
		return make([]E, n, n+n/4)
	}
	return x[:n]
}

// finite reports whether all values of a matrix are finite. It returns false also if their sum overflows.
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

// sum writes the product of a line of the sparse operand and a matrix of k rows to dst. It sums over one block of depth
// rows after the other.
func (s sparse[T]) sum(w *sparseSpace[T], of *entries[T], line, k int, x []T, ld int, dst []T) {
	w.line = sized(w.line, len(dst))
	depth := s.depth(k)
	clear(dst)
	into, end := dst, 0
	for e := of.starts[line]; e < of.starts[line+1]; e++ {
		at := int(of.places[e])
		if at >= end { // first entry of its block
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

// turnedLines is the number of columns of C that are computed before they are written together: a few cache lines of
// every row.
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

// turn writes the transpose of a matrix to dst. Blocks that a kernel can transpose are written a few rows of the result
// at a time, the rest element by element.
func (s sparse[T]) turn(x []T, rows, columns int, dst []T, ld int) {
	size := int(unsafe.Sizeof(x[0]))
	wide, high := 0, 0 // size of the part that the kernel transposes
	if s.transpose != nil {
		side := s.side
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
