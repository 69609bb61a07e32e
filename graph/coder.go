package graph

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"tessera/config"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/data/augment"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
	"tessera/posthoc"
)

var _ metrics.Coder = (*Coder)(nil)

// codingBatch is the number of images per run of a program. Large models use fewer, to limit the memory.
const codingBatch = 1000

// maxRunners is the number of compiled programs that a coder caches for each request. A caller that uses few batch
// sizes compiles each program once.
const maxRunners = 4

// Coder computes values of a model without noise. It implements [metrics.Coder] for auto-encoders. Each call uses the
// current parameters of the model. A Coder is not safe for concurrent use.
type Coder struct {
	model    *Model
	backend  ir.Backend
	postHoc  map[string]posthoc.Head
	language *metrics.Language          // nil for that of the declaration, which does not know the bytes of tokens
	required map[string][]config.Wanted // requirements on the columns of a value, by its name
	given    map[string][]float32       // columns of every drawn image; see [Coder.Given]
	ready    map[string][]compiledBatch // by the only output of a request, or its inputs and outputs; the most recently used program is last
}

// NewCoder returns a coder that runs the model's programs on the given back end. If the model or the back end is nil, it is a coder of an
// empty model, whose methods that compute return [ErrNoModel].
func NewCoder(m *Model, backend ir.Backend) *Coder {
	if m == nil || m.Layout == nil || backend == nil {
		m, backend = &Model{Spec: &config.Model{}, Layout: &config.Layout{}}, nil
	}
	return &Coder{model: m, backend: backend, ready: map[string][]compiledBatch{}, required: map[string][]config.Wanted{}}
}

// lacks returns [ErrNoModel] for a coder without a model.
func (c *Coder) lacks() error {
	if c.backend == nil {
		return ErrNoModel
	}
	return nil
}

// WithPostHoc returns a coder of the same compiled programs that applies calibrations, which were fitted after the training, to the
// heads of these names. nil removes them. Attacks on heads use the uncalibrated logits.
func (c *Coder) WithPostHoc(heads map[string]posthoc.Head) *Coder {
	other := *c
	other.postHoc = heads
	return &other
}

// WithLanguage returns a coder of the same compiled programs with this value that predicts tokens.
func (c *Coder) WithLanguage(l *metrics.Language) *Coder {
	other := *c
	other.language = l
	return &other
}

// PostHoc returns the calibration and thresholds that were fitted for a head after the training.
func (c *Coder) PostHoc(head string) posthoc.Head { return c.postHoc[head] }

// ErrNoModel is returned by the methods of a coder without a model or without a back end.
var ErrNoModel = errors.New("graph: the coder has no model or no back end")

type compiledBatch struct {
	size   int
	of     *Program
	runner ir.Runner[float32]
}

func (c *Coder) Shape() []int { return slices.Clone(c.model.Shape) }

func (c *Coder) Units() int {
	if c.lacks() != nil {
		return 0
	}
	return c.model.Units()
}

func (c *Coder) Encode(images []float32) ([]float32, error) {
	codes, err := c.run(Request{Want: []string{losses.Code}}, map[string][]float32{losses.Images: images})
	if err != nil {
		return nil, fmt.Errorf("model %q: encode: %w", c.model.Spec.Name, err)
	}
	return codes, nil
}

// Decode implements [metrics.Coder]. It returns an error if the model has no decoder, or if the decoder reads more than the
// code.
func (c *Coder) Decode(codes []float32) ([]float32, error) {
	if err := c.Decodes(); err != nil {
		return nil, fmt.Errorf("model %q: decode: %w", c.model.Spec.Name, err)
	}
	images, err := c.run(Request{Given: []string{losses.Code}, Want: []string{losses.Output}}, map[string][]float32{losses.Code: codes})
	if err != nil {
		return nil, fmt.Errorf("model %q: decode: %w", c.model.Spec.Name, err)
	}
	return images, nil
}

// Decodes returns an error if the output cannot be computed from the code alone: the model has no decoder, or the
// decoder also reads other values.
func (c *Coder) Decodes() error { return cmp.Or(c.lacks(), c.model.Layout.Decodes()) }

// Reconstructs returns an error if the output does not reconstruct the images; see [config.Model.Reconstructs].
func (c *Coder) Reconstructs() error { return cmp.Or(c.lacks(), c.model.Spec.Reconstructs()) }

// Values returns the names of the values that the model computes: "code", "output" if it has a decoder, and its heads.
func (c *Coder) Values() []string {
	if c.lacks() != nil {
		return nil
	}
	return c.model.Layout.Values()
}

func (c *Coder) ClassHeads() []string {
	return lists.Map(c.model.Spec.ClassHeads(), func(h config.ClassHead) string { return h.Value })
}

func (c *Coder) ClassColumn(head string) string {
	for _, h := range c.model.Spec.ClassHeads() {
		if h.Value == head {
			return h.Column
		}
	}
	return ""
}

func (c *Coder) Targets() []metrics.Target { return c.model.Spec.Targets(c.model.Layout) }

func (c *Coder) Language() *metrics.Language { return cmp.Or(c.language, c.model.Spec.Language()) }

func (c *Coder) Pair() *metrics.Pair { return c.model.Spec.Pair() }

// Named returns the names of the other values that [Coder.Value] computes: the outputs of the layers by path, and the
// values that layers publish.
func (c *Coder) Named() []string { return c.model.Layout.Named() }

// ShapeOf returns the shape that a value of Values or Named has for one image; nil for another name.
func (c *Coder) ShapeOf(name string) []int {
	switch {
	case !slices.Contains(c.Values(), name) && !slices.Contains(c.Named(), name):
		return nil
	case name == losses.Output:
		return c.Shape()
	}
	return slices.Clone(c.model.Layout.Shape(name))
}

func (c *Coder) CodeBooks() (list []metrics.CodeBook) {
	for p := range c.model.Layout.Stacked() {
		for _, v := range p.Published {
			if v.Entries > 0 {
				list = append(list, metrics.CodeBook{Index: p.Path + "." + v.Name, Entries: v.Entries})
			}
		}
	}
	return list
}

// Columns describes the columns, including images, from which a value is computed.
func (c *Coder) Columns(name string) (list []data.Column) {
	for _, column := range c.model.Layout.Sources(name) {
		described, _ := c.model.Layout.Column(column)
		list = append(list, described)
	}
	return list
}

// Value returns the named value for each of the images, row by row. The name is one of Values or Named. For a value
// that also depends on other columns use [Coder.ValueOf].
func (c *Coder) Value(name string, images []float32) ([]float32, error) {
	return c.ValueOf(name, map[string][]float32{losses.Images: images})
}

// ValueOf returns the named value for each sample, row by row. The name is one of Values or Named. columns contains the
// columns that [Coder.Columns] lists, by name; other columns are ignored.
func (c *Coder) ValueOf(name string, columns map[string][]float32) ([]float32, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	if !slices.Contains(c.Values(), name) && !slices.Contains(c.Named(), name) {
		return nil, fmt.Errorf("model %q: got value %q, want one of %s or a value of a layer: one of %s", c.model.Spec.Name, name, table.Quoted(c.Values()), table.Quoted(c.Named()))
	}
	values, err := c.run(Request{Want: []string{name}}, columns)
	if err != nil {
		return nil, fmt.Errorf("model %q: %s: %w", c.model.Spec.Name, name, err)
	}
	c.postHoc[name].Calibration.Apply(values, c.model.Layout.Size(name))
	return values, nil
}

// After returns a value that the model computes from another one of its values alone: a head, from rows of the output of a layer.
func (c *Coder) After(given, name string, rows []float32) ([]float32, error) {
	values, err := c.run(Request{Given: []string{given}, Want: []string{name}}, map[string][]float32{given: rows})
	if err != nil {
		return nil, fmt.Errorf("model %q: %s after %s: %w", c.model.Spec.Name, name, given, err)
	}
	c.postHoc[name].Calibration.Apply(values, c.model.Layout.Size(name))
	return values, nil
}

func (c *Coder) MeasuresObjective(has func(column string) bool) bool {
	if len(c.model.Spec.Losses) == 0 {
		return false
	}
	lacks := func(column string) bool { return !has(column) }
	return !slices.ContainsFunc(c.model.Spec.Losses, func(l config.Loss) bool {
		r := l.Reads()
		return !c.model.Spec.Validates(l) || r.Jacobian || slices.ContainsFunc(l.Names(), func(name string) bool { // a term with derivatives may draw noise
			return slices.ContainsFunc(c.model.Layout.Sources(name), lacks)
		})
	})
}

// Objective implements [metrics.ObjectiveCoder]. For a large model it computes the objective in smaller batches and
// returns their mean.
func (c *Coder) Objective(b *metrics.Batch) (sum float64, err error) {
	n := len(b.Images) / c.model.Pixels()
	batch := c.model.AtOnce(codingBatch)
	for from := 0; from < n; from += batch {
		to := min(from+batch, n)
		one, err := c.objective(b, n, from, to)
		if err != nil {
			return 0, fmt.Errorf("model %q: %w", c.model.Spec.Name, err)
		}
		sum += one * float64(to-from) / float64(n)
	}
	return sum, nil
}

// objective returns the objective of the samples [from, to) of a batch of n samples.
func (c *Coder) objective(b *metrics.Batch, n, from, to int) (sum float64, err error) {
	p, err := c.program(Request{Want: []string{Terms}, Batch: to - from})
	if err != nil {
		return 0, err
	}
	for i, in := range p.of.Inputs {
		all := b.Columns[in.Column]
		if in.Column == losses.Images {
			all = b.Images
		}
		values := all[from*len(all)/n : to*len(all)/n]
		switch {
		case in.Column == losses.Labels && in.Classes > 0 && b.Labels != nil:
			values = oneHot(to-from, in.Classes, func(k int) int { return b.Labels[from+k] })
		case in.Column == losses.Labels && b.Labels != nil:
			values = make([]float32, to-from)
			for k := range values {
				values[k] = float32(b.Labels[from+k])
			}
		case all == nil:
			return 0, fmt.Errorf("loss: its input %q is not given", in.Name)
		case in.Classes > 0:
			values = oneHot(to-from, in.Classes, func(k int) int { return int(all[from+k]) })
		}
		if err := p.runner.Bind(i, values); err != nil {
			return 0, err
		}
	}
	if err := p.runner.Run(); err != nil {
		return 0, err
	}
	for i := range p.of.Taps {
		sum += float64(p.runner.Tap(i)[0])
	}
	return sum, nil
}

// oneHot returns a one-hot row for each of n samples, or a row of zeros if the class is unknown.
func oneHot(n, classes int, class func(k int) int) []float32 {
	values := make([]float32, n*classes)
	for k := range n {
		if i := class(k); i >= 0 && i < classes {
			values[k*classes+i] = 1
		}
	}
	return values
}

// run computes the requested value batch by batch. given contains the inputs, by the name of the column or value.
func (c *Coder) run(want Request, given map[string][]float32) ([]float32, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	n, err := c.rows(want, given)
	if err != nil {
		return nil, err
	}
	for _, w := range c.requirements(want) {
		if err := w.Check(given[w.Column]); err != nil {
			return nil, err
		}
	}
	out := []float32{}
	batch := c.model.AtOnce(codingBatch)
	for from := 0; from < n; from += batch {
		want.Batch = min(batch, n-from)
		p, err := c.program(want)
		if err != nil {
			return nil, err
		}
		for i, in := range p.of.Inputs {
			width := volume.Of(in.Shape[1:])
			if len(given[in.source()]) != n*width { // none of the given values fills this input
				return nil, fmt.Errorf("its input %q is not given", in.Name)
			}
			if err := p.runner.Bind(i, given[in.source()][from*width:(from+want.Batch)*width]); err != nil {
				return nil, err
			}
		}
		if err := p.runner.Run(); err != nil {
			return nil, err
		}
		rows := p.runner.Tap(0)
		if want.Batch == n {
			return slices.Clone(rows), nil // without clearing the memory first
		}
		out = append(slices.Grow(out, len(rows)/want.Batch*(n-from)), rows...)
	}
	return out, nil
}

// requirements returns the requirements on the columns from which a request is computed.
func (c *Coder) requirements(want Request) []config.Wanted {
	key := want.Want[0]
	if len(want.Given) > 0 || key == InputGradient {
		return nil
	}
	list, known := c.required[key]
	if !known {
		list = c.model.Spec.Required(c.model.Layout, key)
		c.required[key] = list
	}
	return list
}

// source returns the name of the column or given value that fills an input. For clean images it is [Target].
func (in Input) source() string {
	if in.Name == Target {
		return Target
	}
	return cmp.Or(in.Column, in.Name)
}

// rows returns the number of rows of the given values. It returns an error if a value that the request needs is
// missing, or if the numbers of rows differ.
func (c *Coder) rows(want Request, given map[string][]float32) (n int, err error) {
	names, first := want.Given, ""
	switch {
	case want.Want[0] == InputGradient:
		names = []string{losses.Images, Target}
	case len(names) == 0:
		names = c.model.Layout.Sources(want.Want[0])
	}
	for _, name := range names {
		values, ok := given[name]
		width := c.model.Layout.Size(name)
		if name == Target {
			width = c.model.Pixels()
		}
		switch {
		case !ok:
			return 0, fmt.Errorf("it is computed from the column %q, which is not given", name)
		case width == 0 || len(values)%width != 0:
			return 0, fmt.Errorf("got %d values, want a multiple of %d, the length of a row", len(values), width)
		case first == "":
			first, n = name, len(values)/width
		case len(values)/width != n:
			return 0, fmt.Errorf("got %d rows of %q, want %d as of %q", len(values)/width, name, n, first)
		}
	}
	return n, nil
}

func (c *Coder) program(want Request) (none compiledBatch, err error) {
	if err := c.lacks(); err != nil {
		return none, err
	}
	key := want.Want[0]
	if len(want.Want) > 1 || len(want.Given) > 0 || want.Step {
		key = fmt.Sprint(want.Given, want.Want, want.Step)
	}
	ready := c.ready[key]
	if i := slices.IndexFunc(ready, func(b compiledBatch) bool { return b.size == want.Batch }); i >= 0 {
		found := ready[i]
		c.ready[key] = append(slices.Delete(ready, i, i+1), found)
		return found, nil
	}
	program, err := c.model.Program(want)
	if err != nil {
		return none, err
	}
	r, err := c.backend.Compile(program)
	if err != nil {
		return none, err
	}
	if len(ready) == maxRunners {
		if err := ready[0].runner.Close(); err != nil {
			return none, err
		}
		ready = slices.Delete(ready, 0, 1)
	}
	c.ready[key] = append(ready, compiledBatch{want.Batch, program, r})
	return c.ready[key][len(c.ready[key])-1], nil
}

// Once runs the program of one output on one batch of images, which is not split, and returns its first two taps. They are valid until the
// next run. The other inputs of the program follow the images.
func (c *Coder) Once(want string, inputs ...[]float32) (first, second []float32, err error) {
	p, err := c.one(want, len(inputs[0])/c.model.Pixels())
	if err == nil && len(p.of.Inputs) != len(inputs) {
		err = fmt.Errorf("it reads %d inputs, want %d", len(p.of.Inputs), len(inputs))
	}
	for i, values := range inputs {
		if err == nil {
			err = p.runner.Bind(i, values)
		}
	}
	if err == nil {
		err = p.runner.Run()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("model %q: %s: %w", c.model.Spec.Name, want, err)
	}
	if first = p.runner.Tap(0); len(p.of.Taps) > 1 {
		second = p.runner.Tap(1)
	}
	return first, second, nil
}

// Compile compiles the program of one output for a batch, and returns the names of the columns other than images and labels that it reads.
func (c *Coder) Compile(want string, batch int) (columns []string, err error) {
	p, err := c.one(want, batch)
	if err != nil {
		return nil, err
	}
	for _, in := range p.of.Inputs {
		if in.Name == ColumnName(in.Column) {
			columns = append(columns, in.Column)
		}
	}
	return columns, nil
}

// one returns the compiled program of one output for a batch. If it is compiled already, one does not allocate.
func (c *Coder) one(want string, batch int) (compiledBatch, error) {
	for _, b := range c.ready[want] {
		if b.size == batch {
			return b, nil
		}
	}
	return c.program(Request{Want: []string{want}, Batch: batch})
}

// Atoms implements [metrics.Coder]. It returns the rows of the weight of the decoder's last layer with weights, and the
// layer's bias. It returns nil if the output of this layer is not an image.
func (c *Coder) Atoms() *metrics.Atoms { return c.model.Atoms() }

// Atoms returns copies of the atoms that [Coder.Atoms] returns, nil if the model has none.
func (m *Model) Atoms() *metrics.Atoms {
	weight, bias := m.dictionary()
	if weight == nil {
		return nil
	}
	a := &metrics.Atoms{Shape: slices.Clone(m.Shape), Count: weight.Shape[0], Values: slices.Clone(weight.Data), Indirect: m.indirect()}
	if bias != nil {
		a.Bias = slices.Clone(bias.Data)
	}
	return a
}

// WithAtoms implements [metrics.Coder]. The model of the new coder shares all other parameters with this one.
func (c *Coder) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	weight, bias := c.model.dictionary()
	switch {
	case a == nil:
		return nil, fmt.Errorf("model %q: got no atoms", c.model.Spec.Name)
	case weight == nil:
		return nil, fmt.Errorf("model %q: its decoder has no atoms to replace", c.model.Spec.Name)
	case len(a.Values) != len(weight.Data):
		return nil, fmt.Errorf("model %q: got %d values of atoms, want %d", c.model.Spec.Name, len(a.Values), len(weight.Data))
	case bias == nil && a.Bias != nil, bias != nil && len(a.Bias) != len(bias.Data):
		return nil, fmt.Errorf("model %q: the length of the atoms' bias differs from the decoder's", c.model.Spec.Name)
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
	if !slices.Contains(c.model.Parameters, weight) { // the decoder is tied; the encoder's weight must not change
		m.Parameters = append(m.Parameters, weight.with(a.Values))
	}
	return NewCoder(&m, c.backend), nil
}

func (c *Coder) WeightNorm() float64 {
	sum := 0.0
	for _, p := range c.model.Parameters {
		if len(p.Shape) < 2 || !strings.HasPrefix(p.Path, "encoder.") {
			continue
		}
		for _, v := range p.Data {
			sum += float64(v) * float64(v)
		}
	}
	return math.Sqrt(sum)
}

func (c *Coder) LastWeight() []float32 {
	if p := c.model.LastWeight(); p != nil {
		return p.Data
	}
	return nil
}

// with returns a copy of the parameter with new values.
func (p *Parameter) with(values []float32) *Parameter {
	q := *p
	q.Data = slices.Clone(values)
	return &q
}

// dictionary returns the weight (atoms, pixels) of the decoder's last layer with weights, and the bias of this layer.
// The weight is nil if the decoder has no atoms, the bias is nil if the layer has none.
func (m *Model) dictionary() (weight, bias *Parameter) {
	i := m.Layout.Dictionary()
	if i < 0 {
		return nil, nil
	}
	path := m.Layout.Decoder[i].Path
	weight, _ = m.Parameter(path + ".weight")
	if weight == nil {
		weight = m.borrowed(path + ".weight")
	}
	bias, _ = m.Parameter(path + ".bias")
	return weight, bias
}

// indirect returns the reason why the output is not a sum of atoms weighted by the code. It returns "" if it is such a
// sum.
func (m *Model) indirect() string {
	i := m.Layout.Dictionary()
	if _, ok := m.Layout.Decoder[i].Layer.(*layers.MaxPlus); ok {
		return "the decoder takes the maximum of its atoms, not their sum"
	}
	if i > 0 {
		return "a deeper decoder weighs its atoms by other values than the codes"
	}
	return ""
}

// borrowed returns a copy of the weight at path, which belongs to another layer. For a tied decoder the copy is the
// transpose.
func (m *Model) borrowed(path string) *Parameter {
	of, swapped := m.alias(path)
	w, err := m.Parameter(of)
	if err != nil || len(w.Shape) != 2 {
		return nil
	}
	if !swapped {
		t := w.with(w.Data)
		t.Path = path
		return t
	}
	rows, columns := w.Shape[0], w.Shape[1]
	t := &Parameter{Path: path, Shape: []int{columns, rows}, Data: make([]float32, len(w.Data))}
	for i, v := range w.Data {
		t.Data[i%columns*rows+i/columns] = v
	}
	return t
}

// Close frees the compiled programs. A coder that is used afterwards compiles them again.
func (c *Coder) Close() error {
	var first error
	for _, ready := range c.ready {
		for _, b := range ready {
			if err := b.runner.Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	clear(c.ready)
	return first
}

// InputGradient returns the gradient of the terms that compare the output with the clean images, with respect to
// images. It is computed without noise, for adversarial attacks.
func (c *Coder) InputGradient(images, clean []float32) ([]float32, error) {
	if len(images) != len(clean) {
		return nil, fmt.Errorf("model %q: gradient of the input: got %d values of images and %d of clean images, want equal numbers", c.model.Spec.Name, len(images), len(clean))
	}
	gradient, err := c.run(Request{Want: []string{InputGradient}}, map[string][]float32{losses.Images: images, Target: clean})
	if err != nil {
		return nil, fmt.Errorf("model %q: gradient of the input: %w", c.model.Spec.Name, err)
	}
	return gradient, nil
}

func (c *Coder) HasViews() bool { return len(c.model.Spec.Views) > 0 }

// View implements [metrics.Viewer]. A model with one declared view draws both from it.
func (c *Coder) View(v int, images []float32, r *rand.Rand) ([]float32, error) {
	if !c.HasViews() {
		return nil, fmt.Errorf("view %d: the model declares no views", v)
	}
	declared := c.model.Spec.Views
	chain, err := augment.NewChain(declared[min(v, len(declared)-1)].Augment, c.model.Shape)
	if err != nil {
		return nil, fmt.Errorf("model %q: view %d: %w", c.model.Spec.Name, v, err)
	}
	view := make([]float32, len(images))
	return view, chain.Apply(view, images, r)
}
