package hooks

import (
	"encoding/json"
	"fmt"
	"slices"
)

// State is what a hook keeps in a checkpoint: tensors, and one record as JSON. In the file they are named hook/NAME/TENSOR and
// hook/NAME.
type State struct {
	Tensors []Tensor
	Record  json.RawMessage // nil where the hook has none
}

// Tensor is one named array of a state. Values are read when the checkpoint is encoded, before the next step.
type Tensor struct {
	Name   string
	Shape  []int
	Values []float32
}

// Put adds a tensor.
func (s *State) Put(name string, shape []int, values []float32) {
	s.Tensors = append(s.Tensors, Tensor{name, shape, values})
}

// Load copies the tensor of that name.
func (s *State) Load(name string, shape []int, into []float32) error {
	i := slices.IndexFunc(s.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return fmt.Errorf("it holds no %s", name)
	}
	if t := s.Tensors[i]; !slices.Equal(t.Shape, shape) {
		return fmt.Errorf("%s has shape %v, want %v", name, t.Shape, shape)
	}
	copy(into, s.Tensors[i].Values)
	return nil
}

// PutRecord sets the record. It panics where v cannot be JSON, which is an error of the hook's code: a record is a struct of
// finite numbers, texts and lists of them.
func (s *State) PutRecord(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("hooks: a record that is not JSON: %v", err))
	}
	s.Record = text
}

// LoadRecord reads the record into v, and leaves v as it is where there is none.
func (s *State) LoadRecord(v any) error {
	if s.Record == nil {
		return nil
	}
	return json.Unmarshal(s.Record, v)
}
