package hooks

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/attack"
	"tessera/data"
	"tessera/internal/fatal"
)

// fake is a training of an auto-encoder of two linear layers, code = max(0, x W + b), output = code D, computed by plain loops.
type fake struct {
	parameters  []*Parameter
	images      *data.Images
	preparation any
	follows     [][]float32 // moving averages, by parameter
	epoch, step int
	stopped     bool
	projected   []string
}

// newFake returns a training with images of 4 pixels and 3 units.
func newFake(t *testing.T, images ...[]float32) *fake {
	t.Helper()
	return newFakeOf(t, 3, images...)
}

// newFakeOf returns a training with images of 4 pixels and as many units.
func newFakeOf(t *testing.T, units int, images ...[]float32) *fake {
	t.Helper()
	made, err := data.NewFloats([]int{4}, slices.Concat(images...), nil)
	fatal.If(t, err)
	f := &fake{images: made}
	for i, p := range []Parameter{{Path: "encoder.0.weight", Shape: []int{4, units}}, {Path: "encoder.0.bias", Shape: []int{units}},
		{Path: "decoder.0.weight", Shape: []int{units, 4}}, {Path: "decoder.0.bias", Shape: []int{4}}} {
		n := 1
		for _, d := range p.Shape {
			n *= d
		}
		p.Index, p.Trainable, p.Data, p.State = i, true, make([]float32, n), [][]float32{make([]float32, n)}
		f.parameters = append(f.parameters, &p)
		f.follows = append(f.follows, make([]float32, n))
	}
	return f
}

// begun attaches a hook to a training and begins the epoch after as many complete ones.
func begun(t *testing.T, f *fake, hook Hook, epochs int) *Active {
	t.Helper()
	active, err := hook.Attach(f)
	fatal.If(t, err)
	fatal.If(t, active.Begin())
	f.epoch = epochs
	fatal.If(t, active.BeginEpoch())
	return active
}

func (f *fake) Parameters(glob string) (list []*Parameter) {
	for _, p := range f.parameters {
		switch glob {
		case "*", p.Path, p.Path[:8] + "*.weight", p.Path[:8] + "*.bias":
			if glob[0] == '*' || glob == p.Path || glob[len(glob)-4:] == p.Path[len(p.Path)-4:] {
				list = append(list, p)
			}
		}
	}
	return list
}

func (f *fake) Evaluated(p *Parameter) []float32 { return p.Data }
func (f *fake) Rewrite(p *Parameter, change func([]float32)) {
	change(p.Data)
	change(f.follows[p.Index])
}
func (f *fake) Project(p *Parameter)     { f.projected = append(f.projected, p.Path) }
func (f *fake) Preparation() any         { return f.preparation }
func (f *fake) Images() *data.Images     { return f.images }
func (f *fake) BatchSizes() []int        { return []int{f.images.Len()} }
func (f *fake) Random(n int) *rand.Rand  { return rand.New(rand.NewPCG(1, uint64(n))) }
func (f *fake) Epoch() int               { return f.epoch }
func (f *fake) Step() int                { return f.step }
func (f *fake) Stop()                    { f.stopped = true }
func (f *fake) Threads() int             { return 1 }
func (f *fake) Do(work func(thread int)) { work(0) }
func (f *fake) Compile(want Value, _ ...int) (Program, error) {
	return linear{f, want}, nil
}

func (f *fake) CompileHead(string, attack.Objective, ...int) (HeadProgram, error) {
	return nil, errors.New("the fake has no heads")
}

type linear struct {
	f    *fake
	want Value
}

func (l linear) Run(images, _ []float32) (value []float32, err error) {
	w, b := l.f.parameters[0].Data, l.f.parameters[1].Data
	for x := range slices.Chunk(images, 4) {
		code := slices.Clone(b)
		for j := range code {
			for i, v := range x {
				code[j] += v * w[i*len(b)+j]
			}
			code[j] = max(0, code[j])
		}
		if l.want == Code {
			value = append(value, code...)
			continue
		}
		d, y := l.f.parameters[2].Data, slices.Clone(l.f.parameters[3].Data)
		for i := range y {
			for j, v := range code {
				y[i] += v * d[j*4+i]
			}
		}
		value = append(value, y...)
	}
	return value, nil
}
