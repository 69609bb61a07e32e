package train

import (
	"errors"
	"fmt"
	"slices"

	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/engine/ir"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
	"tessera/losses"
)

// program is a compiled graph with the indices of the values that the training loop reads.
type program struct {
	*graph.Program
	runner    ir.Runner[float32]
	loss      int         // index of the loss's tap, -1 if there is none
	terms     []int       // index of the tap for each of the model's losses, -1 if the program does not compute it
	adaptive  []adaptive  // weights that adapt to their terms
	gradients [][]float32 // gradients of the parameters in the stepper's order, read after every run
	touched   [][][]int32 // what Touched returns
	of        []int       // index in Parameters of each of these parameters; -1 if the graph does not read it
	separate  []separate  // terms whose gradients hooks read
}

// separate locates the gradient of one term among the taps.
type separate struct {
	hooks.TermGradient
	taps []int // index of the tap for each parameter; -1 for a parameter that the term does not depend on
}

func compile(m *graph.Model, backend ir.Backend, r graph.Request) (*program, error) {
	built, err := m.Program(r)
	if err != nil {
		return nil, err
	}
	runner, err := backend.Compile(built)
	if err != nil {
		return nil, fmt.Errorf("model %q: batch %d: %w", m.Spec.Name, r.Batch, err)
	}
	p := &program{Program: built, runner: runner}
	p.loss = p.tap(graph.Loss)
	for i, l := range m.Spec.Losses {
		p.terms = append(p.terms, p.tap("loss."+m.Spec.TermName(i)))
		w, follows := l.Weight.(losses.Adaptive)
		input := slices.IndexFunc(built.Inputs, func(in graph.Input) bool { return in.Name == graph.WeightName(m.Spec.TermName(i)) })
		if follows && input >= 0 {
			p.adaptive = append(p.adaptive, adaptive{w, i, input, p.tap(graph.UnweightedName(m.Spec.TermName(i)))})
		}
	}
	for _, term := range m.Spec.Terms() {
		if slices.Contains(r.Want, graph.TermGradient(term)) {
			p.separate = append(p.separate, separate{TermGradient: hooks.TermGradient{Term: term}})
		}
	}
	return p, nil
}

// tap returns the index of a tap, -1 if there is none.
func (p *program) tap(name string) int {
	return slices.IndexFunc(p.Taps, func(t graph.Tap) bool { return t.Name == name })
}

// follow sets the list of parameters whose gradients the methods Gradients and Terms return.
func (p *program) follow(parameters []*trainable) {
	p.gradients = make([][]float32, len(parameters))
	p.of = make([]int, len(parameters))
	for i, m := range parameters {
		p.of[i] = slices.IndexFunc(p.Parameters, func(b graph.Binding) bool { return b.Path == m.Path && b.Gradient != nil })
	}
	for i := range p.separate {
		s := &p.separate[i]
		s.Values = make([][]float32, len(parameters))
		for _, m := range parameters {
			s.taps = append(s.taps, p.tap(graph.GradientName(s.Term, m.Path)))
		}
	}
}

// Terms returns the gradients of single terms that hooks read, from the last run.
func (p *program) Terms() (list []hooks.TermGradient) {
	for _, s := range p.separate {
		for i, tap := range s.taps {
			if tap >= 0 {
				s.Values[i] = p.runner.Tap(tap)
			}
		}
		list = append(list, s.TermGradient)
	}
	return list
}

// Gradients returns the gradients of the last run; the gradient is nil if the loss does not depend on the parameter.
func (p *program) Gradients() [][]float32 {
	for i, j := range p.of {
		if p.gradients[i] = nil; j >= 0 { // a hook may have replaced it
			p.gradients[i] = p.runner.Gradient(j)
		}
	}
	return p.gradients
}

// Touched returns, for every gradient, lists of the rows that may differ from 0, as of [ir.Touching]; nil for a gradient of which
// they are not known, and for one that is no longer that of the last run.
func (p *program) Touched(gradients [][]float32) [][][]int32 {
	r, ok := p.runner.(ir.Touching)
	if !ok {
		return nil
	}
	p.touched = p.touched[:0]
	for i, j := range p.of {
		var lists [][]int32
		if g := gradients[i]; j >= 0 && len(g) > 0 && &g[0] == &p.runner.Gradient(j)[0] {
			lists = r.Touched(j)
		}
		p.touched = append(p.touched, lists)
	}
	return p.touched
}

func (p *program) Run(inputs [][]float32) error {
	for i, v := range inputs {
		if err := p.runner.Bind(i, v); err != nil {
			return err
		}
	}
	return p.runner.Run()
}

// value returns the tap with that name, nil if there is none.
func (p *program) value(name string) []float32 {
	if i := p.tap(name); i >= 0 {
		return p.runner.Tap(i)
	}
	return nil
}

// addTerms adds the loss terms of the last run, multiplied by times, to sums.
func (p *program) addTerms(sums []float64, times float64) {
	for i, tap := range p.terms {
		if tap >= 0 {
			sums[i] += p.scalar(tap) * times
		}
	}
}

func (p *program) scalar(tap int) float64 { return float64(p.runner.Tap(tap)[0]) }

// compiled contains the programs of one request by batch size.
type compiled map[int]*program

// compileAll compiles a program for every batch size that occurs if n images are divided into batches.
func compileAll(m *graph.Model, backend ir.Backend, r graph.Request, n, batch int) (compiled, error) {
	all := compiled{}
	for _, r.Batch = range batchSizes(n, batch) {
		p, err := compile(m, backend, r)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all[r.Batch] = p
	}
	return all, nil
}

// batchSizes lists the batch sizes that occur if n images are divided into batches.
func batchSizes(n, batch int) []int {
	full := min(n, batch)
	return slices.DeleteFunc([]int{full, n % full}, func(size int) bool { return size == 0 })
}

func (c compiled) Close() error {
	var err error
	for _, p := range c {
		err = errors.Join(err, p.runner.Close())
	}
	return err
}

// feed runs programs on images in their order: for measurements between epochs or for a full-batch objective.
type feed struct {
	images   *data.Images
	prepared hooks.Prepared // images prepared by a hook; nil if no program reads them
	seed     uint64         // seed of the noise
	upstream []float32      // upstream gradient of all codes, if a program reads it
	order    []int
	memory   map[string][]float32 // buffers for one batch, by input
	inputs   [][]float32          // inputs of the last run
	apart    []float32            // images of the last run, if the program does not read them
}

// newFeed returns a feed for these programs, which read the images or a hook's preparation of them.
func newFeed(images *data.Images, h hookList, seed uint64, programs ...compiled) (f *feed, err error) {
	f = &feed{images: images, seed: seed, order: make([]int, images.Len()), memory: map[string][]float32{}}
	for i := range f.order {
		f.order[i] = i
	}
	f.prepared, err = h.prepare(images, programs...)
	return f, err
}

// run runs a program on the images in [from, to). A panic of a user-defined sampler becomes an error.
func (f *feed) run(p *program, from, to int) error {
	f.inputs = f.inputs[:0]
	for _, in := range p.Inputs {
		n := volume.Of(in.Shape)
		row := n / (to - from)
		if in.Name == graph.UpstreamName {
			f.inputs = append(f.inputs, f.upstream[from*row:to*row])
			continue
		}
		if len(f.memory[in.Name]) < n {
			f.memory[in.Name] = make([]float32, n)
		}
		values := f.memory[in.Name][:n]
		f.inputs = append(f.inputs, values)
		err := guard("making the input "+in.Name, func() error {
			team.For(to-from, 32, func(a, b int) { f.fill(in, values[a*row:b*row], f.order[from+a:from+b]) })
			return nil
		})
		if err != nil {
			return err
		}
	}
	return p.Run(f.inputs)
}

// pixels returns the images in [from, to) after the program has run on them. The program need not read images: an encoder may read columns.
func (f *feed) pixels(p *program, from, to int) []float32 {
	for i, in := range p.Inputs {
		if in.Column == data.ImagesColumn && in.Classes == 0 {
			return f.inputs[i]
		}
	}
	if n := (to - from) * f.images.Pixels(); len(f.apart) < n {
		f.apart = make([]float32, n)
	}
	values := f.apart[:(to-from)*f.images.Pixels()]
	f.images.Gather(values, data.ImagesColumn, f.order[from:to])
	return values
}

// fill writes an input for a range of images. The noise of an image is the same at every evaluation and in every batch.
func (f *feed) fill(in graph.Input, dst []float32, indices []int) {
	if in.Sampler == nil {
		gather(f.images, f.prepared, in, dst, indices)
		return
	}
	row := len(dst) / len(indices)
	for k, i := range indices {
		sample(in, dst[k*row:(k+1)*row], f.seed, in.Name, i)
	}
}
