package onnx_test

import (
	"testing"

	"tessera/apps/export/onnx"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/shard"
	"tessera/internal/expect"
)

// The part of a training program for one process of several cannot be exported.
func TestAPartOfATrainingIsRefused(t *testing.T) {
	part := func(batch int) (*ir.Module, error) {
		x := &ir.Value{Op: ir.Leaf{}, Shape: []int{batch, 3}, Name: "x"}
		whole := &ir.Module{Batch: batch, Inputs: []ir.Input{{Name: "x", Shape: []int{batch, 3}}},
			Taps: []ir.Tap{{Name: "sum", Value: ir.Reduce(ir.Sum, x, nil)}}}
		p, err := shard.Partition(whole, 0, 2)
		return p.Module, err
	}
	expect.Error(t, expect.Err(onnx.Translate(onnx.Program{Module: part})), "one process's part")
}
