package hooks

import (
	"encoding/json"
	"fmt"
	"slices"
)

// State is the state of a hook in a checkpoint: tensors and one JSON record. Their names in the file are hook/NAME/TENSOR
// and hook/NAME.
type State struct {
	Tensors []Tensor
	Record  json.RawMessage // nil if the hook has none
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
		return fmt.Errorf("%s is missing", name)
	}
	if t := s.Tensors[i]; !slices.Equal(t.Shape, shape) {
		return fmt.Errorf("%s has shape %v, want %v", name, t.Shape, shape)
	}
	copy(into, s.Tensors[i].Values)
	return nil
}

// PutRecord sets the record. v must be a struct of finite numbers, strings and lists of them. PutRecord panics if v cannot
// be encoded as JSON, which is a bug of the hook.
func (s *State) PutRecord(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("hooks: the record cannot be encoded as JSON: %v", err))
	}
	s.Record = text
}

// LoadRecord reads the record into v. It does not change v if there is no record.
func (s *State) LoadRecord(v any) error {
	if s.Record == nil {
		return nil
	}
	return json.Unmarshal(s.Record, v)
}
