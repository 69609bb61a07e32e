package ir_test

import (
	"fmt"

	"tessera/internal/engine/ir"
)

// An exporter iterates over the values in order and switches on the type of their ops.
func ExampleModule() {
	m, _ := dense()
	for _, v := range m.Values() {
		switch o := v.Op.(type) {
		case ir.Leaf:
			fmt.Printf("%d: %v %s %v\n", v.ID, o, v.Name, v.Shape)
		case ir.Product:
			fmt.Printf("%d: matrix product of %d and %d, transposed: %v, %v\n", v.ID, v.Args[0].ID, v.Args[1].ID, o.TransA, o.TransB)
		case ir.Pointwise: // o.F is an ir.Primitive, or an ir.Elementwise whose Spec describes it
			fmt.Printf("%d: %v of %d args\n", v.ID, o.F, len(v.Args))
		case ir.Reduction:
			fmt.Printf("%d: %v over axes %v\n", v.ID, o.F, o.Axes.List())
		default: // ir.Blockwise and ir.Unitwise also have a Kernel with a Spec
			fmt.Printf("%d: %v to %v\n", v.ID, o, v.Shape)
		}
	}
	// Output:
	// 0: input x [2 3]
	// 1: parameter w [3 4]
	// 2: matrix product of 0 and 1, transposed: false, false
	// 3: parameter b [4]
	// 4: reshape to [1 4]
	// 5: broadcast to [2 4]
	// 6: + of 2 args
	// 7: sigmoid of 1 args
	// 8: sum over axes [0 1]
}
