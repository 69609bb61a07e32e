package engine

import (
	"fmt"
	"slices"
	"testing"

	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// A chain of short rows gives the bytes of plain loops: values of all rows, a vector that all rows share, a number, and sums and
// maxima over the rows, added row by row. Neither rows longer than half a tile nor numbers of single rows are joined.
func TestRowsThatAreJoinedEqualPlainLoops(t *testing.T) {
	for _, c := range []struct {
		shape  []int // the last axis is that of the rows
		column bool  // a number for each row
		joined bool
	}{
		{[]int{300, 48}, false, true},
		{[]int{40, 9, 33}, false, true},
		{[]int{6000, 3}, false, true},
		{[]int{40, 600}, false, false},
		{[]int{300, 48}, true, false},
	} {
		for _, threads := range []int{1, 2} {
			t.Run(fmt.Sprintf("%v on %d threads, column %v", c.shape, threads, c.column), func(t *testing.T) {
				n := c.shape[len(c.shape)-1]
				all, rows := volume.Of(c.shape), volume.Of(c.shape)/n
				row := slices.Repeat([]int{1}, len(c.shape))
				row[len(row)-1] = n
				number := slices.Repeat([]int{1}, len(c.shape))
				if c.column {
					copy(number, c.shape[:len(c.shape)-1])
				}
				leaf := func(i int, shape []int) *ir.Value {
					return &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: i}, Shape: shape}
				}
				shapes := [][]int{c.shape, row, number}
				x, bias, factor := leaf(0, shapes[0]), leaf(1, shapes[1]), leaf(2, shapes[2])
				shifted := ir.Point(ir.Add, c.shape, x, bias)
				y := ir.Point(ir.Mul, c.shape, shifted, factor)
				axes := lists.Range(0, len(c.shape)-1)
				program := &ir.Module{Dtype: ir.Float32}
				for i, shape := range shapes {
					program.Inputs = append(program.Inputs, ir.Input{Name: fmt.Sprint(i), Shape: shape})
				}
				for name, v := range map[string]*ir.Value{"y": y, "sum": ir.Reduce(ir.Sum, y, []int{n}, axes...), "largest": ir.Reduce(ir.Max, shifted, []int{n}, axes...)} {
					program.Taps = append(program.Taps, ir.Tap{Name: name, Value: v})
				}
				members := team.New(threads)
				defer members.Close()
				plan, err := Compile[float32](program, members)
				fatal.If(t, err)
				defer plan.Close()
				joined := false
				for _, p := range plan.phases {
					for _, st := range slices.Concat(p.serial, p.shared) {
						if ch, ok := st.work.(*chain[float32]); ok {
							joined = joined || ch.period > 0
						}
					}
				}
				expect.Equal(t, joined, c.joined, "rows are joined", plan)
				for repetition := range 2 { // the second with other values
					values := make([][]float32, len(shapes))
					for i, shape := range shapes {
						for j := range volume.Of(shape) {
							values[i] = append(values[i], float32((j*7919+i*31+repetition*17)%1009)/1009-0.4)
						}
						fatal.If(t, plan.Bind(i, values[i]))
					}
					fatal.If(t, plan.Run())
					want := map[string][]float32{"y": make([]float32, all)}
					for thread := range threads { // the sums of the threads are added afterwards
						from, to := team.Share(c.shape[0], thread, threads)
						sum, largest := make([]float32, n), make([]float32, n)
						for r := from * (rows / c.shape[0]); r < to*(rows/c.shape[0]); r++ {
							for j := range n {
								s := values[0][r*n+j] + values[1][j]
								y := float32(s * values[2][r%len(values[2])]) // rounded, also where the compiler could join it with the sum
								want["y"][r*n+j] = y
								sum[j] += y
								if largest[j] < s || r == from*(rows/c.shape[0]) {
									largest[j] = s
								}
							}
						}
						if thread == 0 {
							want["sum"], want["largest"] = sum, largest
							continue
						}
						for j := range n {
							want["sum"][j] += sum[j]
							want["largest"][j] = max(want["largest"][j], largest[j])
						}
					}
					for i, tap := range program.Taps {
						expect.Slice(t, plan.Tap(i), want[tap.Name], tap.Name, "differs from plain loops")
					}
				}
			})
		}
	}
}
