package classical

import (
	"math"
	"slices"

	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
)

// SparseImages are samples of which most values are 0: the rows of a sparse matrix. Methods that fit them without the zeros
// need memory in proportion to the entries.
type SparseImages interface {
	Images
	// Entries returns the entries of a sample, in ascending order of columns. They must not be changed.
	Entries(i int) (columns []int32, values []float32)
	// Zeros reports whether all other values are 0; else they are missing.
	Zeros() bool
}

// sparse is a matrix X (n x p) of which only the entries are stored. A product with X is a sum over the entries, in their
// order by row and, for products with X', in ranges of columns that are computed concurrently. Results therefore do not
// depend on the number of processors.
type sparse struct {
	images SparseImages
	by     float32 // factor of all entries
	rest   float32 // part of it that multiplies values after small ones are raised
	n, p   int

	atoms []float32 // transposed atoms, p x k, of the last [sparse.take]
}

// sparseOf returns the samples as a sparse matrix, nil if they are not one.
func sparseOf(images Images) *sparse {
	if s, ok := images.(SparseImages); ok && s.Zeros() {
		if of, ok := images.(*data.Images); ok && of.Scaling() != nil {
			s = once(s)
		}
		return &sparse{images: s, by: 1, rest: 1, n: s.Len(), p: s.Pixels()}
	}
	return nil
}

// scaledOnce are samples whose scaled values have been computed.
type scaledOnce struct {
	SparseImages
	columns [][]int32
	values  [][]float32
}

func (s *scaledOnce) Entries(i int) ([]int32, []float32) { return s.columns[i], s.values[i] }

// once returns the same samples, whose entries every call of Entries would scale.
func once(s SparseImages) SparseImages {
	all := &scaledOnce{s, make([][]int32, s.Len()), make([][]float32, s.Len())}
	for i := range all.values {
		all.columns[i], all.values[i] = s.Entries(i)
	}
	return all
}

// rows writes rows [from, to) with their zeros.
func (s *sparse) rows(dst []float32, from, to int) {
	clear(dst)
	for i := from; i < to; i++ {
		columns, values := s.images.Entries(i)
		row := dst[(i-from)*s.p : (i-from+1)*s.p]
		for e, j := range columns {
			row[j] = values[e] * s.by
		}
	}
}

// accepted returns an error for the first value that a method does not accept.
func (s *sparse) accepted(b *Base) error {
	for i := range s.n {
		if _, values := s.images.Entries(i); b.accepts(values) == nil {
			continue
		}
		row := make([]float32, s.p) // names the place
		s.rows(row, i, i+1)
		return acceptFrom(i, row, s.p, b.fit.Signed, false)
	}
	return nil
}

// sum returns the sum of f over all entries.
func (s *sparse) sum(f func(v float64) float64) float64 {
	return sumLanes(s.n, func(i int) (sum float64) {
		_, values := s.images.Entries(i)
		for _, v := range values {
			sum += f(float64(v * s.by))
		}
		return sum
	})
}

// most returns the largest magnitude.
func (s *sparse) most() (most float64) {
	for i := range s.n {
		_, values := s.images.Entries(i)
		for _, v := range values {
			most = max(most, math.Abs(float64(v)))
		}
	}
	return most
}

// columnGroups is the number of ranges of columns that are computed concurrently.
const columnGroups = 16

// inColumns calls do for every range of columns, and in each for every row with its entries in the range.
func (s *sparse) inColumns(do func(group, i int, columns []int32, values []float32)) {
	team.For(columnGroups, 1, func(first, end int) {
		for g := first; g < end; g++ {
			low, high := int32(s.p*g/columnGroups), int32(s.p*(g+1)/columnGroups)
			for i := range s.n {
				columns, values := s.images.Entries(i)
				from, _ := slices.BinarySearch(columns, low)
				to := from
				for to < len(columns) && columns[to] < high {
					to++
				}
				if from < to {
					do(g, i, columns[from:to], values[from:to])
				}
			}
		}
	})
}

// timesRows adds X B to dst for rows [from, to), where B is p x k and dst has a row of k values for each.
func timesRows[T kernel.Float](s *sparse, add kernel.BinaryScalar[T], dst, b []T, k, from, to int) {
	for i := from; i < to; i++ {
		row := dst[(i-from)*k : (i-from+1)*k]
		columns, values := s.images.Entries(i)
		for e, j := range columns {
			add(row, row, b[int(j)*k:int(j)*k+k], T(values[e]*s.by))
		}
	}
}

// timesColumns adds X' B to dst (p x k), where B is n x k.
func timesColumns[T kernel.Float](s *sparse, add kernel.BinaryScalar[T], dst, b []T, k int) {
	s.inColumns(func(_, i int, columns []int32, values []float32) {
		own := b[i*k : i*k+k]
		for e, j := range columns {
			row := dst[int(j)*k : int(j)*k+k]
			add(row, row, own, T(values[e]*s.by))
		}
	})
}

// product returns A X' (k x n) for a matrix A (k x p).
func (s *sparse) product(a []float32, k int) []float32 {
	b, dst := transpose(a, k, s.p), make([]float32, s.n*k)
	team.For(s.n, encodeBlock, func(from, to int) { timesRows(s, kernel.Float32().AddScaled, dst[from*k:], b, k, from, to) })
	return transpose(dst, s.n, k)
}

// mixture returns A X (k x p) for a matrix A (k x n).
func (s *sparse) mixture(a []float32, k int) []float32 {
	dst := make([]float32, s.p*k)
	timesColumns(s, kernel.Float32().AddScaled, dst, transpose(a, k, s.n), k)
	return transpose(dst, s.p, k)
}

// timesGram returns the product of the rows of q (m x size) with X X' if n < p, and else with X'X, of samples minus a mean row,
// which may be nil.
func (s *sparse) timesGram(mean []float64) func(y, q []float64, m int) {
	size := min(s.n, s.p)
	return func(y, q []float64, m int) {
		turned, other := transpose(q, m, size), make([]float64, max(s.n, s.p)*m)
		rows := func(dst, b []float64) {
			team.For(s.n, encodeBlock, func(from, to int) { timesRows(s, addScaled, dst[from*m:], b, m, from, to) })
			s.centreRows(dst, b, m, mean)
		}
		columns := func(dst, b []float64) {
			timesColumns(s, addScaled, dst, b, m)
			s.centreColumns(dst, b, m, mean)
		}
		if s.n < s.p {
			columns(other, turned)
			clear(turned)
			rows(turned, other)
		} else {
			rows(other, turned)
			clear(turned)
			columns(turned, other)
		}
		copy(y, transpose(turned, size, m))
	}
}

// addScaled computes a + b*s. For short rows of float64 it is faster than the kernel, which has no assembly.
func addScaled(dst, a, b []float64, s float64) {
	for i, v := range b {
		dst[i] = a[i] + v*s
	}
}

// centreRows subtracts the product of the mean with B (p x m) from every row of X B.
func (s *sparse) centreRows(dst, b []float64, m int, mean []float64) {
	if mean == nil {
		return
	}
	product := make([]float64, m)
	kernel.Float64().Gemm(false, false, 1, m, s.p, 1, mean, s.p, b, m, 0, product, m)
	for i := range s.n {
		kernel.Float64().Sub(dst[i*m:(i+1)*m], dst[i*m:(i+1)*m], product)
	}
}

// centreColumns subtracts the mean times the sum of the rows of B (n x m) from X'B.
func (s *sparse) centreColumns(dst, b []float64, m int, mean []float64) {
	if mean == nil {
		return
	}
	sums := make([]float64, m)
	for i := range s.n {
		kernel.Float64().Add(sums, sums, b[i*m:(i+1)*m])
	}
	for j, v := range mean {
		kernel.Float64().AddScaled(dst[j*m:(j+1)*m], dst[j*m:(j+1)*m], sums, -v)
	}
}

// squaredError returns the sum of (X - HW)^2, for codes (k x n) and atoms (k x p), without rounding differences of large sums.
func (s *sparse) squaredError(codes, atoms []float32, k int) float64 {
	const rows = 16
	return sumLanesOf(s.n, rows, func(memory *blocks, from, to int) (sum float64) {
		y := memory.result((to - from) * s.p)
		kernel.Float32().Gemm(true, false, to-from, s.p, k, 1, codes[from:], s.n, atoms, s.p, 0, y, s.p)
		for i := from; i < to; i++ {
			row := y[(i-from)*s.p : (i-from+1)*s.p]
			columns, values := s.images.Entries(i)
			for e, j := range columns {
				row[j] -= values[e] * s.by
			}
			sum += vectors.Dot(row, row)
		}
		return sum
	})
}

// blocks is the memory for the blocks of rows that a lane takes one after the other.
type blocks struct{ rows, out []float32 }

// result returns n values of any content.
func (b *blocks) result(n int) []float32 {
	b.out = slices.Grow(b.out[:0], n)[:n]
	return b.out
}

// sumLanesOf returns the sum of of(memory, from, to) over blocks of at most the given number of rows.
func sumLanesOf(n, rows int, of func(memory *blocks, from, to int) float64) float64 {
	sums := make([]float64, fit.Lanes(n))
	fit.ForLanes(n, func(lane, from, to int) {
		var memory blocks
		for ; from < to; from += rows {
			sums[lane] += of(&memory, from, min(from+rows, to))
		}
	})
	return lists.Sum(sums)
}

// quotients calls do for the given entries of row i with the quotient x/(hW + tiny), and returns the sum of x log(x/hW) - x if
// summed is true. ht are the codes, n x k.
func (s *sparse) quotients(i int, columns []int32, values, ht []float32, k int, summed bool, do func(j int32, q float32)) (sum float64) {
	dot, h := kernel.Float32().Dot, ht[i*k:i*k+k]
	for e, j := range columns {
		x := values[e] * s.by
		y := dot(h, s.atoms[int(j)*k:int(j)*k+k]) + tiny
		q := x / y
		do(j, q)
		if summed && x > 0 {
			sum += float64(x)*math.Log(max(float64(q), math.SmallestNonzeroFloat32*(1<<24))) - float64(x)
		}
	}
	return sum
}
