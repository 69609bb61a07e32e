package hooks

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tessera/part"
)

// Revive draws dead units again. Before the first step of every `every`-th epoch it encodes the first `sample` fitted images.
// A unit is dead when its largest activation is below threshold times the largest activation of any unit. The k-th dead unit
// takes the direction v = x / ||x|| of the image x whose squared reconstruction error is the k-th largest:
//
//	encoder weight of the unit   <-  v times the mean norm of the living units' encoder weights
//	decoder weight of the unit   <-  v times the mean norm of the living units' decoder weights
//	bias of the unit             <-  0
//
// What is drawn is projected by the constraints, and the optimizer's state of the drawn values is set to 0. A moving average
// of the parameters takes the drawn values too. Nothing in it is random.
//
// The encoder must have one layer with weights, a dense layer on the pixels. The decoder weight is drawn where the decoder's first
// layer with weights is a dense layer from the units to the pixels.
//
// Source: Bricken et al., Towards Monosemanticity, 2023, "neuron resampling", with the images of the largest error in place of
// a draw in proportion to the squared error, and without its factor of 0.2.
type Revive struct {
	Every     int     `toml:"every" want:"> 0" doc:"epochs between two searches for dead units"`
	Threshold float64 `toml:"threshold" want:"in (0,1)" doc:"a unit is dead if its largest activation is below this fraction of the largest of any unit"`
	Sample    int     `toml:"sample" want:"> 0" doc:"number of fitted images that are encoded, from the first"`
}

func init() {
	Registry.Register("revive", "re-initialises dead units from images with large reconstruction errors",
		func() Hook { return &Revive{Every: 10, Threshold: 0.01, Sample: 10000} })
}

// NeedsSteps implements [NeedsSteps].
func (*Revive) NeedsSteps() (problem, hint string) {
	return "%s does not continue from weights that were drawn again: what it knows would be wrong", "leave the hook out"
}

// reviveBatch is how many images are encoded at once.
const reviveBatch = 500

// Attach implements [Hook].
func (r *Revive) Attach(t Training) (*Active, error) {
	h := &reviving{Revive: r, training: t, encode: map[int]Program{}, decode: map[int]Program{}}
	for _, p := range t.Parameters("encoder.*.weight") {
		if h.encoder != nil || len(p.Shape) != 2 {
			return nil, notOneDense
		}
		h.encoder = p
	}
	if h.encoder == nil {
		return nil, notOneDense
	}
	if !h.encoder.Trainable {
		return nil, part.KeyError{Key: "freeze", Problem: h.encoder.Path + " is frozen: no unit could be drawn again"}
	}
	h.units = h.encoder.Shape[1]
	for _, p := range t.Parameters("encoder.*.bias") {
		if len(p.Data) == h.units && p.Trainable {
			h.bias = p
		}
	}
	if decoder := t.Parameters("decoder.*.weight"); len(decoder) > 0 { // of the first layer with weights
		if p := decoder[0]; slices.Equal(p.Shape, []int{h.units, h.encoder.Shape[0]}) && p.Trainable {
			h.decoder = p
		}
	}
	return &Active{Begin: h.begin, BeginEpoch: h.beginEpoch, Close: h.close}, nil
}

var notOneDense = part.KeyError{Key: "encoder", Problem: "revive wants one layer with weights, a dense layer on the pixels"}

// reviving is the running form.
type reviving struct {
	*Revive
	training               Training
	encoder, bias, decoder *Parameter // bias and decoder are nil where there are none to draw
	units                  int
	encode, decode         map[int]Program // by number of images
}

// begin compiles the programs.
func (h *reviving) begin() error {
	images := h.training.Images()
	if images.Pixels() != h.encoder.Shape[0] {
		return notOneDense
	}
	n := min(h.Sample, images.Len())
	for _, size := range []int{min(n, reviveBatch), n % reviveBatch} {
		if size == 0 || h.encode[size] != nil {
			continue
		}
		var err error
		if h.encode[size], err = h.training.Compile(size, Code); err != nil {
			delete(h.encode, size)
			return err
		}
		if h.decode[size], err = h.training.Compile(size, Output); err != nil {
			delete(h.decode, size)
			return err
		}
	}
	return nil
}

func (h *reviving) close() error {
	for _, programs := range []map[int]Program{h.encode, h.decode} {
		for _, p := range programs {
			_ = p.Close() // what cannot be freed does not make the result wrong
		}
	}
	return nil
}

func (h *reviving) beginEpoch() error {
	if epoch := h.training.Epoch(); epoch == 0 || epoch%h.Every != 0 {
		return nil
	}
	dead, err := h.dead()
	if err != nil || !slices.Contains(dead, true) {
		return err
	}
	worst, err := h.worst()
	if err != nil {
		return err
	}
	h.draw(dead, worst)
	return nil
}

// run gives f the values that programs compute of the sample, an image at a time.
func (h *reviving) run(programs map[int]Program, f func(image int, pixels, value []float32)) error {
	images := h.training.Images()
	n, width := min(h.Sample, images.Len()), images.Pixels()
	pixels := make([]float32, min(n, reviveBatch)*width)
	for from := 0; from < n; from += reviveBatch {
		size := min(reviveBatch, n-from)
		indices := make([]int, size)
		for i := range indices {
			indices[i] = from + i
		}
		batch := pixels[:size*width]
		images.Batch(batch, indices)
		p := programs[size]
		if err := p.Bind(0, batch); err != nil {
			return err
		}
		if err := p.Run(); err != nil {
			return err
		}
		row := len(p.Value()) / size
		for i := range size {
			f(from+i, batch[i*width:(i+1)*width], p.Value()[i*row:(i+1)*row])
		}
	}
	return nil
}

// dead tells the dead units.
func (h *reviving) dead() ([]bool, error) {
	most := make([]float32, h.units)
	wrong := 0
	err := h.run(h.encode, func(_ int, _, code []float32) {
		if len(code) != h.units {
			wrong = len(code)
			return
		}
		for j, v := range code {
			most[j] = max(most[j], v)
		}
	})
	if err != nil {
		return nil, err
	}
	if wrong != 0 {
		return nil, fmt.Errorf("a code has %d values, want %d, the units of %s", wrong, h.units, h.encoder.Path)
	}
	largest := slices.Max(most)
	dead := make([]bool, h.units)
	for j, v := range most {
		dead[j] = float64(v) < h.Threshold*float64(largest) || largest == 0
	}
	return dead, nil
}

// worst lists the images of the sample, the one with the largest error first.
func (h *reviving) worst() ([]int, error) {
	var errs []float64
	err := h.run(h.decode, func(_ int, x, y []float32) {
		sum := 0.0
		for i, v := range x {
			sum += (float64(v) - float64(y[i])) * (float64(v) - float64(y[i]))
		}
		errs = append(errs, sum)
	})
	order := make([]int, len(errs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(errs[b], errs[a]) })
	return order, err
}

// draw gives the dead units the directions of images, in order.
func (h *reviving) draw(dead []bool, worst []int) {
	pixels := h.encoder.Shape[0]
	columns := norm{h.encoder.Data, h.units, 1, pixels}.mean(dead)
	rows := 0.0
	if h.decoder != nil {
		rows = norm{h.decoder.Data, 1, pixels, pixels}.mean(dead)
	}
	x := make([]float32, pixels)
	for unit, is := range dead {
		if !is || len(worst) == 0 {
			continue
		}
		h.training.Images().Batch(x, worst[:1])
		worst = worst[1:]
		length := norm{x, 1, 0, pixels}.of(0)
		if length == 0 {
			continue
		}
		h.set(h.encoder, unit, h.units, func(i int) float32 { return float32(columns * float64(x[i]) / length) }, pixels)
		h.set(h.bias, unit, h.units, func(int) float32 { return 0 }, 1)
		h.set(h.decoder, unit*pixels, 1, func(i int) float32 { return float32(rows * float64(x[i]) / length) }, pixels)
	}
	for _, p := range []*Parameter{h.encoder, h.bias, h.decoder} {
		if p != nil {
			h.training.Project(p)
		}
	}
}

// set gives n values of p, from the index first on and stride apart, new values, and their optimizer's state 0.
func (h *reviving) set(p *Parameter, first, stride int, value func(i int) float32, n int) {
	if p == nil {
		return
	}
	h.training.Rewrite(p, func(values []float32) {
		for i := range n {
			values[first+i*stride] = value(i)
		}
	})
	for _, state := range p.State {
		for i := range n {
			state[first+i*stride] = 0
		}
	}
}

// norm is that of the weights of units: n values each, stride apart, the first of a unit step apart from that of the next.
type norm struct {
	values          []float32
	stride, step, n int
}

// of returns the norm of one unit.
func (w norm) of(unit int) float64 {
	sum := 0.0
	for i := range w.n {
		v := float64(w.values[unit*w.step+i*w.stride])
		sum += v * v
	}
	return math.Sqrt(sum)
}

// mean returns the mean norm of the units that are not dead, of all where all are.
func (w norm) mean(dead []bool) float64 {
	sum, living := 0.0, 0
	all := !slices.Contains(dead, false)
	for unit, is := range dead {
		if all || !is {
			sum += w.of(unit)
			living++
		}
	}
	return sum / float64(living)
}
