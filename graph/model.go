package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tessera/config"
	"tessera/config/part/table"
	"tessera/hooks"
	"tessera/internal/hugepages"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/losses"
)

// Model is a checked declaration together with its parameters.
type Model struct {
	Spec       *config.Model
	Shape      []int // shape of one image
	Layout     *config.Layout
	Parameters []*Parameter // parameters of the encoder, the decoder and the heads, in the order of the layers

	// Lent lists parameters of training hooks that programs can read by path, for example teacher.encoder.0.weight.
	// They do not belong to the model.
	Lent []*Parameter
}

// New returns the model of spec for images of the given shape. Each parameter is initialised from a separate random
// stream, determined by the seed of spec and the path of the parameter.
func New(spec *config.Model, shape []int) (*Model, error) {
	m, err := Empty(spec, shape)
	if err != nil {
		return nil, err
	}
	own := m.Parameters
	for _, p := range m.Layout.Parameters() {
		if p.Of == "" {
			p.Fill(own[0].Data, random.Stream(spec.Train.Seed, p.Path, 0))
			own = own[1:]
		}
	}
	return m, nil
}

// Empty returns the model of spec with parameters of zeros, for a caller that reads their values.
func Empty(spec *config.Model, shape []int) (*Model, error) {
	return newModel(spec, shape, func(p config.ParameterPath) []float32 { return hugepages.Make[float32](volume.Of(p.Shape)) })
}

// newModel returns the model of spec with the parameters that its layers own.
func newModel(spec *config.Model, shape []int, values func(p config.ParameterPath) []float32) (*Model, error) {
	if spec == nil {
		return nil, errors.New("graph: the declaration is nil")
	}
	spec = spec.Defined(shape)
	layout, err := spec.Layout(shape)
	if err != nil {
		return nil, err
	}
	m := &Model{Spec: spec, Shape: slices.Clone(shape), Layout: layout}
	for _, p := range layout.Parameters() {
		if p.Of == "" {
			frozen := spec.Frozen(p.Path)
			m.Parameters = append(m.Parameters, &Parameter{Path: p.Path, Shape: slices.Clone(p.Shape), Data: values(p), Trainable: !p.State && !frozen, Frozen: frozen})
		}
	}
	return m, nil
}

// Check builds the program of a training step without allocating parameters. It returns the errors of the layers'
// Apply, of the losses' Build and of the differentiation.
func Check(spec *config.Model, shape []int) error {
	m, err := newModel(spec, shape, func(config.ParameterPath) []float32 { return nil })
	if err != nil {
		return err
	}
	for name, h := range spec.Hooks {
		if _, lends := h.(hooks.Lender); lends {
			for _, p := range m.Parameters {
				m.Lent = append(m.Lent, &Parameter{Path: name + "." + p.Path, Shape: p.Shape})
			}
		}
	}
	r := Request{Batch: max(1, spec.Train.Batch), Want: m.TrainingOutputs()}
	if !spec.TakesTurns() {
		_, err = m.Program(r)
		return err
	}
	for i := range spec.AllPlayers() {
		r.Player = i + 1
		if _, err := m.Program(r); err != nil {
			return err
		}
	}
	return nil
}

// Encodes reports whether the objective reads a value that is computed from the images, not only from their views.
func (m *Model) Encodes() bool {
	return slices.ContainsFunc(m.Spec.Losses, func(l config.Loss) bool {
		r := l.Reads()
		return r.Per != losses.Parameter && !r.Views
	})
}

// TrainingOutputs returns the names of the outputs of a training step: the loss, the code if the objective reads a value that
// is computed from the images, and the gradients of the terms that a hook reads.
func (m *Model) TrainingOutputs() []string {
	want := []string{Loss}
	if m.Encodes() {
		want = []string{losses.Code, Loss}
	}
	for _, term := range m.Spec.Terms() {
		if m.Spec.Separated(term) {
			want = append(want, TermGradient(term))
		}
	}
	return want
}

// Classes returns the number of units of the values that terms compare with labels, 0 if there are no such values.
func (m *Model) Classes() int {
	for _, l := range m.Spec.Losses {
		if r := l.Reads(); r.Classes && r.Against == losses.Labels {
			return m.Layout.Size(l.On)
		}
	}
	return 0
}

// Parameter returns the parameter with the given path.
func (m *Model) Parameter(path string) (*Parameter, error) {
	for _, p := range slices.Concat(m.Parameters, m.Lent) {
		if p.Path == path {
			return p, nil
		}
	}
	return nil, fmt.Errorf("model %q: no parameter %q: %s", m.Spec.Name, path,
		table.Suggest(path, lists.Map(slices.Concat(m.Parameters, m.Lent), func(p *Parameter) string { return p.Path })))
}

// LastWeight returns the weight of the decoder's last layer with weights, nil if there is none. For a tied layer this
// is the encoder's weight.
func (m *Model) LastWeight() *Parameter {
	p, i := m.Layout.LastWeight()
	if i < 0 {
		return nil
	}
	last, err := m.Parameter(p.Path)
	if err != nil { // the weight, or its transpose, belongs to another layer, unless the atoms were replaced
		last, _ = m.Parameter(p.Of)
	}
	return last
}

// Twin returns a model with the same declaration and copies of the parameters.
func (m *Model) Twin() *Model {
	twin := *m
	twin.Parameters = make([]*Parameter, len(m.Parameters))
	for i, p := range m.Parameters {
		twin.Parameters[i] = p.with(p.Data)
	}
	return &twin
}

// alias resolves the path of a parameter that belongs to another layer or is the transpose of another parameter. It
// returns the path of the original parameter, and "" if the parameter is itself an original. For a parameter of a
// teacher, the original also belongs to the teacher.
func (m *Model) alias(path string) (of string, transposed bool) {
	own, teacher := path, ""
	if t := m.teacherOf(path); t != "" {
		teacher, own = t+".", path[len(t)+1:]
	}
	for _, p := range m.Layout.Parameters() {
		if p.Path == own && p.Of != "" {
			return teacher + p.Of, p.Transposed
		}
	}
	return "", false
}

// teacherOf returns the name of the hook that lends a parameter, "" if the parameter belongs to the model.
func (m *Model) teacherOf(path string) string {
	name, _, _ := strings.Cut(path, ".")
	if _, ok := m.Spec.Hooks[name]; ok {
		return name
	}
	return ""
}

// values lists the names of all values of the model, in the order in which a program computes them.
func (m *Model) values() []string { return append(m.Layout.Values(), m.Layout.Named()...) }

// Pixels returns the number of values of one image.
func (m *Model) Pixels() int { return volume.Of(m.Shape) }

// maxValues is the maximum number of values of the largest tensor in a program of a coder: half a gigabyte.
const maxValues = 1 << 27

// AtOnce returns the number of images for one run of a coder's program. It is at most limit.
func (m *Model) AtOnce(limit int) int {
	return max(1, min(limit, maxValues/max(1, m.Layout.Largest())))
}

// Units returns the number of units of a code.
func (m *Model) Units() int {
	if n := len(m.Layout.Encoder); n > 0 {
		return volume.Of(m.Layout.Encoder[n-1].Out)
	}
	return m.Pixels()
}
