package shard_test

import (
	"fmt"
	"testing"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/shard"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// program returns a program with a batch of 5. It computes the squared mean of x w over the batch and, in place of its
// gradient, the gradient of the mean of x w, which is a product that sums over the batch.
func program() *ir.Module {
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf}, Shape: []int{5, 3}, Name: "x"}
	w := &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf}, Shape: []int{3, 2}, Name: "w"}
	y := &ir.Value{Op: ir.Product{}, Args: []*ir.Value{x, w}, Shape: []int{5, 2}}
	mean := ir.Point(ir.Mul, []int{2}, ir.Reduce(ir.Sum, y, []int{2}, 0), ir.Uniform(0.2, []int{2}))
	loss := ir.Reduce(ir.Sum, ir.Point(ir.Square, []int{2}, mean), nil)
	slope := &ir.Value{Op: ir.Product{TransA: true}, Args: []*ir.Value{x, ir.Uniform(0.2, []int{5, 2})}, Shape: []int{3, 2}}
	return &ir.Module{Dtype: ir.Float64, Batch: 5,
		Inputs:     []ir.Input{{Name: "x", Shape: []int{5, 3}}},
		Parameters: []ir.Parameter{{Name: "w", Shape: []int{3, 2}, Data: make([]float32, 6)}},
		Taps:       []ir.Tap{{Name: "y", Value: y}, {Name: "loss", Value: loss}},
		Gradients:  []ir.Gradient{{Value: slope}},
	}
}

// The second of two processes has 3 of 5 images. The mean becomes a sum over these images, divided by 5, and an
// all-reduce. The gradient does not depend on the mean and is sent first. Constants keep their values for the complete
// batch.
func ExamplePartition() {
	p, err := shard.Partition(program(), 1, 2)
	if err != nil {
		panic(err)
	}
	fmt.Print(p)
	fmt.Println("taps of the process's images:", p.Parts)
	fmt.Println(p.Traffic())
	// Output:
	// %0 input[3 3] x
	// %1 parameter[3 2] w
	// %2 A×B[3 2] %0 %1
	// %3 sum[0][2] %2
	// %4 0.2[1]
	// %5 broadcast[2] %4
	// %6 ⊙[2] %3 %5
	// %7 all-reduce sum 1.0[2] %6
	// %8 square[2] %7
	// %9 sum[0][] %8
	// %10 0.2[1 1]
	// %11 broadcast[3 2] %10
	// %12 Aᵀ×B[3 2] %0 %11
	// %13 all-reduce sum 0.0 late[3 2] %12
	// taps of the process's images: [true false]
	// 8 0 2
}

func TestWhatCannotBePartitionedIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		rank, size int
		spoil      func(m *ir.Module)
		want       string
	}{
		"a rank that does not exist": {2, 2, func(*ir.Module) {}, "rank"},
		"no batch":                   {0, 2, func(m *ir.Module) { m.Batch = 0 }, "batch"},
		"a part already": {0, 2, func(m *ir.Module) {
			part, err := shard.Partition(m, 0, 2)
			fatal.If(t, err)
			*m = *part.Module
		}, "already"},
		"an invalid program": {0, 2, func(m *ir.Module) { m.Taps[0].Value = nil }, "nil"},
	} {
		m := program()
		c.spoil(m)
		expect.Error(t, expect.Err(shard.Partition(m, c.rank, c.size)), c.want, name)
	}
}

func TestASmallBatchIsWholeOnEveryProcess(t *testing.T) {
	m := program()
	p, err := shard.Partition(m, 3, 6)
	if err != nil || p.Module != m || p.Collective() {
		t.Errorf("got %v, %v", p, err)
	}
	if from, to := shard.Rows(5, 3, 6); from != 0 || to != 5 {
		t.Errorf("a process has images %d to %d, want all 5", from, to)
	}
	if from, to := shard.Rows(5, 1, 2); from != 2 || to != 5 {
		t.Errorf("the second of two processes has images %d to %d, want 2 to 5", from, to)
	}
}
