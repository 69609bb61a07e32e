package kernel

// The blocks of the portable product: a panel of packed A (portableMC x portableKC) stays in the L1 or L2 cache, the
// micro-kernel keeps a tile of portableTile x portableTile sums in registers.
const (
	portableTile = 4
	portableKC   = 256
	portableMC   = 64
	portableNC   = 512
)

// gemmPortable is [Gemm] in plain Go: both operands are packed into panels of four rows or columns, k after k, padded
// with zeros, and multiplied tile by tile.
func gemmPortable[T Float](transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	checkGemm(transA, transB, m, n, k, len(a), lda, len(b), ldb, len(c), ldc)
	scaleRows(m, n, beta, c, ldc)
	if m == 0 || n == 0 || k == 0 || alpha == 0 {
		return
	}
	ars, acs := strides(transA, lda)
	brs, bcs := strides(transB, ldb)
	pool := workspaces[T]()
	w := pool.take()
	pa, pb := w.a[:portableMC*portableKC], w.b[:portableNC*portableKC]
	for j := 0; j < n; j += portableNC {
		nc := min(portableNC, n-j)
		for p := 0; p < k; p += portableKC {
			kc := min(portableKC, k-p)
			packPanels(pb, b[p*brs+j*bcs:], nc, kc, bcs, brs)
			for i := 0; i < m; i += portableMC {
				mc := min(portableMC, m-i)
				packPanels(pa, a[i*ars+p*acs:], mc, kc, ars, acs)
				multiplyPanels(pa, pb, mc, nc, kc, alpha, c[i*ldc+j:], ldc)
			}
		}
	}
	pool.give(w)
}

// strides returns the distances between rows and between columns of op(X), stored with leading dimension ld.
func strides(trans bool, ld int) (row, column int) {
	if trans {
		return 1, ld
	}
	return ld, 1
}

// packPanels copies count lines of kc elements into panels of four lines, element after element.
func packPanels[T Float](dst, src []T, count, kc, line, step int) {
	for i := 0; i < count; i += portableTile {
		panel := dst[i*kc : (i+portableTile)*kc]
		for r := range portableTile {
			if i+r >= count {
				for p := range kc {
					panel[p*portableTile+r] = 0
				}
				continue
			}
			at := (i + r) * line
			for p := range kc {
				panel[p*portableTile+r] = src[at]
				at += step
			}
		}
	}
}

func multiplyPanels[T Float](pa, pb []T, mc, nc, kc int, alpha T, c []T, ldc int) {
	for j := 0; j < nc; j += portableTile {
		for i := 0; i < mc; i += portableTile {
			tile := tileProduct(pa[i*kc:(i+portableTile)*kc], pb[j*kc:(j+portableTile)*kc])
			for r := range min(portableTile, mc-i) {
				row := c[(i+r)*ldc+j:]
				for s := range min(portableTile, nc-j) {
					row[s] += alpha * tile[r][s]
				}
			}
		}
	}
}

// tileProduct multiplies one panel of A by one of B; the sixteen sums are single variables so that they live in
// registers.
func tileProduct[T Float](a, b []T) (t [portableTile][portableTile]T) {
	var c00, c01, c02, c03, c10, c11, c12, c13, c20, c21, c22, c23, c30, c31, c32, c33 T
	for len(a) >= 4 && len(b) >= 4 {
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		v := a[0]
		c00 += v * b0
		c01 += v * b1
		c02 += v * b2
		c03 += v * b3
		v = a[1]
		c10 += v * b0
		c11 += v * b1
		c12 += v * b2
		c13 += v * b3
		v = a[2]
		c20 += v * b0
		c21 += v * b1
		c22 += v * b2
		c23 += v * b3
		v = a[3]
		c30 += v * b0
		c31 += v * b1
		c32 += v * b2
		c33 += v * b3
		a, b = a[4:], b[4:]
	}
	return [4][4]T{{c00, c01, c02, c03}, {c10, c11, c12, c13}, {c20, c21, c22, c23}, {c30, c31, c32, c33}}
}
