//go:build amd64 || arm64

package kernel

import (
	"math"
	"unsafe"
)

// tiles contains the micro-kernels of an instruction set. multiply[rows][vectors] computes a tile of that size.
type tiles[T Float] struct {
	rows     int                  // rows of the largest tile
	lanes    int                  // elements of a vector
	vectors  int                  // vectors of the columns of the largest tile
	side     int                  // rows and columns of a block that transpose turns
	whole    bool                 // there are only tiles of whole vectors, and not of every number of rows
	pack     bool                 // the tiles read panels of A, in which the elements of a column are contiguous
	multiply [13][4]func(t *byte) // t points to a tile

	// packRows, by the number of vectors, copies rows (at least 1), which start every step bytes. Of the last vector, last units of 4
	// bytes are read and the others become 0.
	packRows [5]func(dst, src *byte, rows, step, last int)

	// transpose reads side lines of side x blocks elements, which start every srcStep bytes, and writes them as columns: side elements
	// every dstStep bytes. blocks is at least 1.
	transpose func(dst, src *byte, dstStep, srcStep, blocks int)
}

// columns returns the number of columns of the largest tile.
func (s *tiles[T]) columns() int { return s.vectors * s.lanes }

// The blocks of the tiled product. A panel of B, blockK rows and one tile wide, stays in the L1 cache while it is
// multiplied by all rows of a block of A. The block of A stays in the L2 cache.
const (
	blockK = 256
	blockN = 512
	blockM = 240
)

// Thresholds for copying operands, from measurements. Panels of B are read in place if C has at most directRows rows, B
// has at most directB elements, and the rows of the panel are whole vectors. Panels of a larger B are copied, because
// they come from main memory and are read more than once. A block of A is copied if C has at least copyColumns columns
// and more than directRows rows, and the distance of its rows is a multiple of crowding bytes. Rows at other distances
// do not compete for a few sets of the cache. If A has at most streamA elements and the stored B is transposed, each
// panel is read to its end before the next one, because such a panel is contiguous memory.
const (
	directRows  = 128
	directB     = 1 << 20
	copyColumns = 256
	crowding    = 1024
	streamA     = 1 << 18
)

// product is one call of [Gemm], with the operands as they are stored.
type product[T Float] struct {
	m, n, k     int
	alpha, beta T
	a, b, c     []T
	ars, acs    int // distances between the rows and between the columns of op(A)
	brs, bcs    int
	ldc         int
}

// gemm implements [Gemm] by tiles of C, for one panel of B after the other.
func (s *tiles[T]) gemm(transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	checkGemm(transA, transB, m, n, k, len(a), lda, len(b), ldb, len(c), ldc)
	if m == 0 || n == 0 || k == 0 || alpha == 0 {
		scaleRows(m, n, beta, c, ldc)
		return
	}
	x := product[T]{m: m, n: n, k: k, alpha: alpha, beta: beta, a: a, b: b, c: c, ldc: ldc}
	x.ars, x.acs = strides(transA, lda)
	x.brs, x.bcs = strides(transB, ldb)
	pool := workspaces[T]()
	w := pool.take()
	depth, band, width := tiledDepth(k), n, blockN
	if transB && m*k <= streamA && !s.pack {
		band, width = s.columns(), s.columns()
	}
	for first := 0; first < n; first += band {
		x.beta = beta
		for p := 0; p < k; p += depth {
			for j := first; j < min(first+band, n); j += width {
				s.block(w, &x, p, min(depth, k-p), j, min(width, n-j))
			}
			x.beta = 1
		}
	}
	w.tile = tile[T]{}
	pool.give(w)
}

// sparse returns the sparse product that sums over k in the same blocks as gemm.
func (s *tiles[T]) sparse(of *Set[T], addScaled BinaryScalar[T]) SparseGemm[T] {
	return sparse[T]{tiledDepth, addScaled, of.Add, of.SumAbs, s.transpose, s.side}.gemm
}

// tiledDepth returns the depth of the blocks into which the sums over k are divided.
func tiledDepth(k int) int { return (evenly(k, blockK) + 7) &^ 7 }

// evenly divides total into as few tiles of nearly equal size as possible, and returns the size of a tile. No tile is
// larger than limit.
func evenly(total, limit int) int {
	tiles := (total + limit - 1) / limit
	return (total + tiles - 1) / tiles
}

// block adds the product of kc columns of op(A) with kc rows of op(B) to nc columns of C.
func (s *tiles[T]) block(w *workspace[T], x *product[T], p, kc, j, nc int) {
	size := int(unsafe.Sizeof(x.alpha))
	t := &w.tile
	t.k, t.alpha, t.beta = kc, x.alpha, x.beta
	deep := (kc + 7) &^ 7 // rows that a transposition may write
	height := evenly(x.m, blockM)
	if s.whole {
		height = (height + s.rows - 1) / s.rows * s.rows
	}
	for i := 0; i < x.m; i += height {
		mc := min(height, x.m-i)
		from := s.nearA(w, x, i, mc, p, kc, nc)
		for first := 0; first < nc; first += s.columns() {
			width := min(s.columns(), nc-first)
			vectors := (width + s.lanes - 1) / s.lanes
			panel := w.b[first*deep : first*deep+vectors*s.lanes*deep]
			t.last = width - (vectors-1)*s.lanes
			if x.m <= directRows && x.k*x.n <= directB && x.bcs == 1 && t.last == s.lanes {
				t.b, t.bStep = unsafe.Pointer(&x.b[p*x.brs+j+first]), x.brs*size
			} else {
				if i == 0 {
					s.packPanel(w, panel, operand[T]{x.b, x.brs, x.bcs}, p, kc, j+first, width)
				}
				t.b, t.bStep = unsafe.Pointer(&panel[0]), vectors*s.lanes*size
			}
			s.column(w, x, from, i, mc, j+first, width)
		}
	}
}

// operand is op(A) or op(B) with the distances between its rows and between its columns.
type operand[T Float] struct {
	at          []T
	row, column int
}

// rowsOfA locates the rows of a block of op(A).
type rowsOfA[T Float] struct {
	at        []T
	row, step int // distances between rows and between successive k
	deep      int // distance between the panels of two rows, in elements per row; 0 if A is read in place
}

// nearA copies a block of op(A) if its stride uses only a few sets of the cache and enough panels read the block again.
// The copy keeps the stored layout, lies on fewer memory pages and has a better stride.
func (s *tiles[T]) nearA(w *workspace[T], x *product[T], i, mc, p, kc, nc int) rowsOfA[T] {
	from := rowsOfA[T]{at: x.a[i*x.ars+p*x.acs:], row: x.ars, step: x.acs}
	if s.pack {
		return s.panelsOfA(w, x, from, i, mc, p, kc)
	}
	spread := x.acs == 1 && x.ars*int(unsafe.Sizeof(x.alpha))%crowding != 0
	if nc < copyColumns || x.m <= directRows || spread {
		return from
	}
	lines, length, step := mc, kc, x.ars
	if x.ars == 1 {
		lines, length, step = kc, mc, x.acs
	}
	stride := (length+15)&^15 + 16
	for q := range lines {
		copy(w.a[q*stride:], from.at[q*step:q*step+length])
	}
	if x.ars == 1 {
		return rowsOfA[T]{at: w.a, row: 1, step: stride}
	}
	return rowsOfA[T]{at: w.a, row: stride, step: 1}
}

// panelsOfA copies a block of op(A) into panels of as many rows as a tile has. Stored columns of whole panels are read in place.
func (s *tiles[T]) panelsOfA(w *workspace[T], x *product[T], from rowsOfA[T], i, mc, p, kc int) rowsOfA[T] {
	if x.ars == 1 && mc%s.rows == 0 && x.acs*int(unsafe.Sizeof(x.alpha))%crowding != 0 {
		return from
	}
	deep := (kc + 7) &^ 7
	for r := 0; r < mc; r += s.rows {
		s.packPanel(w, w.a[r*deep:], operand[T]{x.a, x.acs, x.ars}, p, kc, i+r, min(s.rows, mc-r))
	}
	return rowsOfA[T]{at: w.a, row: 1, deep: deep}
}

// column computes mc rows of the tiles under one panel.
func (s *tiles[T]) column(w *workspace[T], x *product[T], from rowsOfA[T], i, mc, j, width int) {
	size := int(unsafe.Sizeof(x.alpha))
	t := &w.tile
	t.aRow, t.aStep, t.cRow = from.row*size, from.step*size, x.ldc*size
	if s.whole {
		s.wholeTiles(w, x, from, i, mc, j, width)
		return
	}
	vectors := (width + s.lanes - 1) / s.lanes
	for r, height := 0, evenly(mc, s.rows); r < mc; r += height {
		rows := min(height, mc-r)
		t.a = unsafe.Pointer(&from.at[r*from.row])
		t.c = unsafe.Pointer(&x.c[(i+r)*x.ldc+j])
		s.multiply[rows][vectors]((*byte)(unsafe.Pointer(t)))
	}
}

// wholeTiles is column where there are only whole tiles.
func (s *tiles[T]) wholeTiles(w *workspace[T], x *product[T], from rowsOfA[T], i, mc, j, width int) {
	size := int(unsafe.Sizeof(x.alpha))
	t := &w.tile
	for r := 0; r < mc; r += s.rows {
		rows, at := min(s.rows, mc-r), r*from.row
		if from.deep > 0 {
			at = r * from.deep
			t.aStep = (rows + s.lanes - 1) / s.lanes * s.lanes * size
		}
		t.a = unsafe.Pointer(&from.at[at])
		s.wholeTile(w, x, (i+r)*x.ldc+j, rows, width)
	}
}

// wholeTile computes a tile of C at an index. If only a larger one is there, it works on a copy of C.
func (s *tiles[T]) wholeTile(w *workspace[T], x *product[T], at, rows, width int) {
	size := int(unsafe.Sizeof(x.alpha))
	t := &w.tile
	vectors := (width + s.lanes - 1) / s.lanes
	if s.multiply[rows][vectors] != nil && width == vectors*s.lanes {
		t.c, t.cRow = unsafe.Pointer(&x.c[at]), x.ldc*size
		s.multiply[rows][vectors]((*byte)(unsafe.Pointer(t)))
		return
	}
	high, wide := rows, vectors*s.lanes
	for s.multiply[high][vectors] == nil {
		high++
	}
	edge := &w.edge
	if t.beta != 0 {
		for r := range rows {
			copy(edge[r*wide:], x.c[at+r*x.ldc:][:width])
		}
	}
	t.c, t.cRow = unsafe.Pointer(&edge[0]), wide*size
	s.multiply[high][vectors]((*byte)(unsafe.Pointer(t)))
	for r := range rows {
		copy(x.c[at+r*x.ldc:][:width], edge[r*wide:])
	}
}

// packPanel copies kc rows of an operand, starting at column j, into a panel. It pads the last vector with zeros.
func (s *tiles[T]) packPanel(w *workspace[T], panel []T, x operand[T], p, kc, j, width int) {
	size := int(unsafe.Sizeof(panel[0]))
	vectors := (width + s.lanes - 1) / s.lanes
	at := p*x.row + j*x.column
	if x.column == 1 {
		last := (width - (vectors-1)*s.lanes) * size / 4
		s.packRows[vectors](bytes(&panel[0]), bytes(&x.at[at]), kc, x.row*size, last)
		return
	}
	stride, side := vectors*s.lanes, s.side
	for q := 0; q < stride; q += side {
		lines, done := min(side, max(0, width-q)), 0
		if lines == side {
			if done = kc &^ (side - 1); done > 0 {
				s.transpose(bytes(&panel[q]), bytes(&x.at[at+q*x.column]), stride*size, x.column*size, done/side)
			}
		}
		if done < kc {
			s.transposeRest(w.lines, panel[done*stride+q:], x.at[min(len(x.at), at+q*x.column+done):], lines, kc-done, stride, x.column)
		}
	}
}

// transposeRest transposes the lines or elements that do not fill a block. It uses a copy that is padded with zeros. It
// may write rows up to the next multiple of the side of a block.
func (s *tiles[T]) transposeRest(scratch, dst, src []T, lines, count, stride, step int) {
	size := int(unsafe.Sizeof(dst[0]))
	side := s.side
	padded := (count + side - 1) &^ (side - 1)
	for i := range side {
		line := scratch[i*padded : (i+1)*padded]
		filled := 0
		if i < lines {
			filled = copy(line, src[i*step:i*step+count])
		}
		clear(line[filled:])
	}
	s.transpose(bytes(&dst[0]), bytes(&scratch[0]), stride*size, padded*size, padded/side)
}

// addScaledFMA is AddScaled of [Set] for float64. It rounds the products as the assembly does.
func addScaledFMA(dst, a, b []float64, s float64) {
	n := min(len(dst), len(a), len(b))
	dst, a, b = dst[:n], a[:n], b[:n]
	for i := range dst {
		dst[i] = math.FMA(b[i], s, a[i])
	}
}
