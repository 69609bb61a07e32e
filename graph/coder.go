package graph

import (
	"errors"
	"fmt"
	"slices"

	"tessera/metrics"
)

// codingBatch images are encoded or decoded by one run of a program, fewer where that would fill the memory.
const codingBatch = 1000

// keptRunners of each direction stay compiled: a caller that codes by the same few batch sizes compiles once.
const keptRunners = 4

// Coder encodes images and decodes codes with a model, without noise: it makes an auto-encoder a [metrics.Coder]. It reads
// the model's parameters when it codes, so that it follows their training. It is not safe for use by several goroutines
// at once.
type Coder struct {
	model     *Model
	backend   Backend
	encoder   coding
	decoder   coding
	adversary coding
}

// NewCoder returns the coder of a model whose programs run on that back end. Without a model or a back end it codes nothing:
// its methods return [ErrNoModel].
func NewCoder(m *Model, backend Backend) *Coder {
	if m == nil || m.Layout == nil || backend == nil {
		return &Coder{}
	}
	return &Coder{model: m, backend: backend,
		encoder:   coding{part: Encoder, in: m.Pixels(), out: m.Units()},
		decoder:   coding{part: Decoder, in: m.Units(), out: m.Pixels()},
		adversary: coding{part: Adversary, in: m.Pixels(), out: m.Pixels()},
	}
}

// ErrNoModel says that a coder was made without a model or without a back end.
var ErrNoModel = errors.New("graph: the coder has no model or no back end")

// coding is one direction of a coder.
type coding struct {
	part    Part
	in, out int             // values of one row
	ready   []compiledBatch // the last used one last
}

// compiledBatch is a program for one batch size.
type compiledBatch struct {
	size   int
	runner Runner[float32]
}

// Shape implements [metrics.Coder].
func (c *Coder) Shape() []int {
	if c.model == nil {
		return nil
	}
	return slices.Clone(c.model.Shape)
}

// Units implements [metrics.Coder].
func (c *Coder) Units() int {
	if c.model == nil {
		return 0
	}
	return c.model.Units()
}

// Encode implements [metrics.Coder].
func (c *Coder) Encode(images []float32) ([]float32, error) {
	if c.model == nil {
		return nil, ErrNoModel
	}
	codes, err := c.code(&c.encoder, images)
	if err != nil {
		return nil, fmt.Errorf("model %q: encode: %w", c.model.Spec.Name, err)
	}
	return codes, nil
}

// Decode implements [metrics.Coder].
func (c *Coder) Decode(codes []float32) ([]float32, error) {
	if c.model == nil {
		return nil, ErrNoModel
	}
	images, err := c.code(&c.decoder, codes)
	if err != nil {
		return nil, fmt.Errorf("model %q: decode: %w", c.model.Spec.Name, err)
	}
	return images, nil
}

// code runs all rows through one direction.
func (c *Coder) code(d *coding, rows []float32) ([]float32, error) {
	if len(rows)%d.in != 0 {
		return nil, fmt.Errorf("%d values are not a whole number of rows of %d", len(rows), d.in)
	}
	n := len(rows) / d.in
	out := make([]float32, 0, n*d.out)
	batch := c.model.AtOnce(codingBatch)
	for from := 0; from < n; from += batch {
		size := min(batch, n-from)
		r, err := c.runner(d, size)
		if err != nil {
			return nil, err
		}
		if err := r.Bind(0, rows[from*d.in:(from+size)*d.in]); err != nil {
			return nil, err
		}
		if err := r.Run(); err != nil {
			return nil, err
		}
		out = append(out, r.Tap(0)...)
	}
	return out, nil
}

// runner returns the compiled program for a batch size.
func (c *Coder) runner(d *coding, size int) (Runner[float32], error) {
	if i := slices.IndexFunc(d.ready, func(b compiledBatch) bool { return b.size == size }); i >= 0 {
		found := d.ready[i]
		d.ready = append(slices.Delete(d.ready, i, i+1), found)
		return found.runner, nil
	}
	program, err := c.model.Program(Options{Batch: size, Part: d.part})
	if err != nil {
		return nil, err
	}
	r, err := c.backend.Compile(program)
	if err != nil {
		return nil, err
	}
	if len(d.ready) == keptRunners {
		if err := d.ready[0].runner.Close(); err != nil {
			return nil, err
		}
		d.ready = slices.Delete(d.ready, 0, 1)
	}
	d.ready = append(d.ready, compiledBatch{size, r})
	return r, nil
}

// Atoms implements [metrics.Coder]: the rows of the weight of the decoder's last layer that has one, and that layer's
// bias, where the layer gives whole images.
func (c *Coder) Atoms() *metrics.Atoms {
	if c.model == nil {
		return nil
	}
	weight, bias := c.model.dictionary()
	if weight == nil {
		return nil
	}
	a := &metrics.Atoms{Shape: c.Shape(), Count: weight.Shape[0], Values: slices.Clone(weight.Data)}
	if bias != nil {
		a.Bias = slices.Clone(bias.Data)
	}
	return a
}

// WithAtoms implements [metrics.Coder]: a coder of a copy of the model that shares every parameter but these.
func (c *Coder) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) {
	if c.model == nil {
		return nil, ErrNoModel
	}
	weight, bias := c.model.dictionary()
	switch {
	case a == nil:
		return nil, fmt.Errorf("model %q: no atoms are given", c.model.Spec.Name)
	case weight == nil:
		return nil, fmt.Errorf("model %q: its decoder has no atoms to replace", c.model.Spec.Name)
	case len(a.Values) != len(weight.Data):
		return nil, fmt.Errorf("model %q: got %d values of atoms, want %d", c.model.Spec.Name, len(a.Values), len(weight.Data))
	case bias == nil && a.Bias != nil, bias != nil && len(a.Bias) != len(bias.Data):
		return nil, fmt.Errorf("model %q: the atoms' bias does not fit the decoder's", c.model.Spec.Name)
	}
	m := *c.model
	m.Parameters = slices.Clone(m.Parameters)
	for i, p := range m.Parameters {
		switch p {
		case weight:
			m.Parameters[i] = p.with(a.Values)
		case bias:
			m.Parameters[i] = p.with(a.Bias)
		}
	}
	if !slices.Contains(c.model.Parameters, weight) { // a tied decoder's: the encoder keeps its own
		m.Parameters = append(m.Parameters, weight.with(a.Values))
	}
	return NewCoder(&m, c.backend), nil
}

// LastWeight implements [metrics.Weighted].
func (c *Coder) LastWeight() []float32 {
	if c.model == nil {
		return nil
	}
	if p := c.model.LastWeight(); p != nil {
		return p.Data
	}
	return nil
}

// with returns the parameter with a copy of other values.
func (p *Parameter) with(values []float32) *Parameter {
	q := *p
	q.Data = slices.Clone(values)
	return &q
}

// dictionary returns the weight, atoms by pixels, of the decoder's last layer that has one, and that layer's bias; nil
// where the decoder has no atoms, or they no bias.
func (m *Model) dictionary() (weight, bias *Parameter) {
	i := m.Layout.Dictionary()
	if i < 0 {
		return nil, nil
	}
	path := m.Layout.Decoder[i].Path
	weight, _ = m.Parameter(path + ".weight")
	if weight == nil {
		weight = m.transposed(path + ".weight")
	}
	bias, _ = m.Parameter(path + ".bias")
	return weight, bias
}

// transposed returns a copy of the parameter whose transpose a tied decoder has under that path, transposed.
func (m *Model) transposed(path string) *Parameter {
	w, err := m.Parameter(m.transposeOf(path))
	if err != nil || len(w.Shape) != 2 {
		return nil
	}
	rows, columns := w.Shape[0], w.Shape[1]
	t := &Parameter{Path: path, Shape: []int{columns, rows}, Data: make([]float32, len(w.Data))}
	for i, v := range w.Data {
		t.Data[i%columns*rows+i/columns] = v
	}
	return t
}

// Close frees what the compiled programs hold. The coder compiles anew when it is used afterwards.
func (c *Coder) Close() error {
	var first error
	for _, d := range []*coding{&c.encoder, &c.decoder, &c.adversary} {
		for _, b := range d.ready {
			if err := b.runner.Close(); err != nil && first == nil {
				first = err
			}
		}
		d.ready = nil
	}
	return first
}
