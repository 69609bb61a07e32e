package graph

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/layers"
	"tessera/ops"
)

// teacherPrefix is the prefix of the paths of the teacher's parameters, which the hook teacher lends.
const teacherPrefix = "teacher."

// scope implements [layers.Scope] for one layer of the model.
type scope struct {
	*builder
	placed config.Placed
	pass   pass
	noises int
}

// Parameter implements [layers.Scope].
func (s *scope) Parameter(name string) *gorgonia.Node {
	n, err := s.parameter(s.path() + "." + name)
	if err != nil {
		panic(err) // a layer that uses what it does not declare; Program turns it into an error
	}
	return n
}

// path is the path of the layer whose parameters are read.
func (s *scope) path() string {
	if s.pass.teacher {
		return teacherPrefix + s.placed.Path
	}
	return s.placed.Path
}

// Update implements [layers.Scope].
func (s *scope) Update(name string, value *gorgonia.Node) {
	path := s.placed.Path + "." + name
	p, err := s.model.Parameter(path)
	if err == nil && p.Trainable {
		err = fmt.Errorf("parameter %q is updated by the optimizer; declare it with State", path)
	}
	if err == nil && !slices.Equal(value.Shape(), p.Shape) {
		err = fmt.Errorf("update of %q: got shape %v, want %v", path, value.Shape(), p.Shape)
	}
	if err != nil {
		panic(err) // a layer with an error; Program turns it into an error
	}
	assigned := slices.ContainsFunc(s.program.Updates, func(u Update) bool { return u.Parameter == p })
	s.Parameter(name)                                 // the program lists every parameter that it updates
	if s.request.Training && !assigned && !p.Frozen { // a layer that is applied again with other atoms updates its state once
		s.program.Updates = append(s.program.Updates, Update{Parameter: p, Node: value})
	}
}

// Noise implements [layers.Scope].
func (s *scope) Noise(sampler ops.Sampler, shape ...int) *gorgonia.Node {
	s.noises++
	of := s.placed.Path
	if s.pass.stream != Images {
		of = s.pass.stream + "." + of
	}
	name := noiseName(of, s.noises)
	for _, in := range s.program.Inputs { // a layer that is applied again with other atoms uses the same noise
		if in.Name == name {
			return in.Node
		}
	}
	return s.input(name, sampler, shape...)
}

// noiseName is the name of the n-th noise input of a layer or a term, from 1. It also names the random stream.
func noiseName(of string, n int) string {
	if n == 1 {
		return of + ".noise"
	}
	return fmt.Sprintf("%s.noise.%d", of, n)
}

// Training implements [layers.Scope]. A layer whose parameters are all frozen runs in inference mode during training: a
// frozen normalisation keeps its running averages. In a block every layer is judged by its own parameters.
func (s *scope) Training() bool {
	_, block := s.placed.Layer.(layers.Block)
	return s.request.Training && !s.pass.teacher && (block || !s.Frozen(layers.Names(s.placed.Parameters)...))
}

// Frozen implements [layers.Scope].
func (s *scope) Frozen(names ...string) bool { return s.model.Spec.AllFrozen(s.placed.Path, names...) }
