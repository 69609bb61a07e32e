package engine

import (
	"testing"

	"tessera/engine/ir"
)

// weighted is x W and d Wᵀ of a batch of 32 and a matrix of that shape.
func weighted(rows, columns int, trained bool) (m *module, forward, backward *ir.Value) {
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: []int{32, rows}, Name: "x"}
	d := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 1}, Shape: []int{32, columns}, Name: "d"}
	w := &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf, Index: 0}, Shape: []int{rows, columns}, Name: "w"}
	forward = &ir.Value{Op: ir.Product{}, Args: []*ir.Value{x, w}, Shape: []int{32, columns}}
	backward = &ir.Value{Op: ir.Product{TransB: true}, Args: []*ir.Value{d, w}, Shape: []int{32, rows}}
	return &module{wanted: []*ir.Value{forward, backward}, trained: []bool{trained}}, forward, backward
}

func TestDivideMakesPartsOfWhatIsSummedAlongTheLongerSide(t *testing.T) {
	m, _, backward := weighted(256, 64, true)
	divide(m, 2)
	want(t, m, `
		%0 input[32 256] x
		%1 parameter[256 64] w
		%2 A×B partial[32 64] %0 %1
		%3 A×B partial[32 64] %0 %1
		%4 +[32 64] %2 %3
		%5 input[32 64] d
		%6 A×Bᵀ[32 256] %5 %1`)
	if m.values[2].Op.(partialProduct).thread != 0 || m.values[3].Op.(partialProduct).thread != 1 {
		t.Error("the partial products are not those of threads 0 and 1")
	}
	if !m.byColumns(backward, 2) {
		t.Error("the product that keeps the longer side is not shared along it")
	}
	m, forward, _ := weighted(64, 256, true)
	divide(m, 2)
	want(t, m, `
		%0 input[32 64] x
		%1 parameter[64 256] w
		%2 A×B[32 256] %0 %1
		%3 input[32 256] d
		%4 A×Bᵀ partial[32 64] %3 %1
		%5 A×Bᵀ partial[32 64] %3 %1
		%6 +[32 64] %4 %5`)
	if !m.byColumns(forward, 2) {
		t.Error("the product that keeps the longer side is not shared along it")
	}
}

func TestDivideLeavesWhatItDoesNotHelp(t *testing.T) {
	for name, of := range map[string]struct {
		rows, columns, threads int
		trained                bool
	}{
		"one thread":           {256, 64, 1, true},
		"not trained":          {256, 64, 2, false},
		"a small one":          {256, 32, 2, true},
		"thin shares":          {160, 160, 3, true},
		"a small batch matrix": {24, 30, 2, true},
	} {
		m, forward, backward := weighted(of.rows, of.columns, of.trained)
		divide(m, of.threads)
		for _, v := range m.values {
			if _, ok := v.Op.(partialProduct); ok {
				t.Errorf("%s: there is a partial product", name)
			}
		}
		if m.byColumns(forward, of.threads) && of.columns <= 32 || m.keeps(forward, of.threads) || m.keeps(backward, of.threads) {
			t.Errorf("%s: threads keep shares", name)
		}
	}
}
