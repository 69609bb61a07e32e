// Package onnx writes programs of package ir as ONNX models: opset 17, float32, a batch of any size as the first axis of the
// inputs and outputs. [Translate] makes the nodes, [Model.Append] the bytes of a file, [Read] reads a file back.
//
// Source: the Open Neural Network Exchange specification, https://onnx.ai/onnx/repo-docs/IR.html and
// https://onnx.ai/onnx/operators/.
package onnx

import (
	"errors"
	"fmt"

	"tessera/internal/wire"
)

// The versions that files of this package have: of the format, and of the operators.
const (
	FormatVersion = 8
	OpsetVersion  = 17
)

// The messages of onnx.proto3, with the fields that this package uses. The tags are their numbers.
type (
	// Model is a ModelProto.
	Model struct {
		FormatVersion   int64      `pb:"1"`
		Producer        string     `pb:"2"`
		ProducerVersion string     `pb:"3"`
		Domain          string     `pb:"4"`
		Version         int64      `pb:"5"`
		Doc             string     `pb:"6"`
		Graph           *Graph     `pb:"7"`
		Opsets          []Opset    `pb:"8"`
		Metadata        []Property `pb:"14"`
	}
	// Opset is an OperatorSetIdProto. The domain of the standard operators is "".
	Opset struct {
		Domain  string `pb:"1"`
		Version int64  `pb:"2"`
	}
	// Property is a StringStringEntryProto.
	Property struct {
		Key   string `pb:"1"`
		Value string `pb:"2"`
	}
	// Graph is a GraphProto. Its nodes are in an order in which values are computed before they are read.
	Graph struct {
		Nodes        []Node   `pb:"1"`
		Name         string   `pb:"2"`
		Initializers []Tensor `pb:"5"`
		Doc          string   `pb:"10"`
		Inputs       []Value  `pb:"11"`
		Outputs      []Value  `pb:"12"`
	}
	// Node is a NodeProto: an operator with the names of the values that it reads and gives.
	Node struct {
		Inputs     []string    `pb:"1"`
		Outputs    []string    `pb:"2"`
		Name       string      `pb:"3"`
		Op         string      `pb:"4"`
		Attributes []Attribute `pb:"5"`
	}
	// Attribute is an AttributeProto: a setting of an operator, in the field that Type tells.
	Attribute struct {
		Name  string   `pb:"1"`
		Float *float32 `pb:"2"`
		Int   *int64   `pb:"3"`
		Graph *Graph   `pb:"6"`
		Ints  []int64  `pb:"8"`
		Type  int64    `pb:"20"`
	}
	// Tensor is a TensorProto: the name, type, shape and little-endian values of a constant.
	Tensor struct {
		Dims []int64 `pb:"1"`
		Type int64   `pb:"2"`
		Name string  `pb:"8"`
		Raw  []byte  `pb:"9"`
	}
	// Value is a ValueInfoProto: the name, type and shape of an input or an output.
	Value struct {
		Name string `pb:"1"`
		Type *Type  `pb:"2"`
	}
	// Type is a TypeProto of a tensor.
	Type struct {
		Tensor *TensorType `pb:"1"`
	}
	// TensorType is a TypeProto.Tensor.
	TensorType struct {
		Element int64  `pb:"1"`
		Shape   *Shape `pb:"2"`
	}
	// Shape is a TensorShapeProto.
	Shape struct {
		Dims []Dim `pb:"1"`
	}
	// Dim is a TensorShapeProto.Dimension: a length, or the name of a length that is known when the model runs.
	Dim struct {
		Length *int64 `pb:"1"`
		Name   string `pb:"2"`
	}
)

// The types of elements, and those of attributes.
const (
	float32Element = 1
	int64Element   = 7
	boolElement    = 9

	floatAttribute = 1
	intAttribute   = 2
	graphAttribute = 5
	intsAttribute  = 7
)

// mostBytes is the largest message that readers of Protocol Buffers take.
const mostBytes = 1<<31 - 1

// Append appends the bytes of the model's file to b. A model of 2 GiB or more is an error: no reader takes it.
func (m *Model) Append(b []byte) ([]byte, error) {
	if m == nil || m.Graph == nil {
		return b, errors.New("onnx: the model has no graph")
	}
	total := 0
	for _, t := range m.Graph.Initializers {
		total += len(t.Raw)
	}
	if total > mostBytes {
		return b, fmt.Errorf("onnx: the parameters have %d bytes, want at most %d in one file", total, mostBytes)
	}
	return wire.Append(b, m), nil
}

// Read returns the model whose file has these bytes. Fields that [Model] lacks are left out.
func Read(b []byte) (*Model, error) {
	m := &Model{}
	if err := wire.Read(b, m); err != nil {
		return nil, fmt.Errorf("onnx: not a model: %w", err)
	}
	return m, nil
}
